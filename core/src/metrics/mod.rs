//! How good samples are, as numbers.
//!
//! [`frechet`] and [`kid`] compare two sets of feature vectors; the vectors come from a network of [`crate::model::features`].
//! [`bits`] looks at the analog bits themselves. [`captions`] compares captions with those of people.
//!
//! Deliberately absent: pictures, networks and files. Numbers in, numbers out. And the name FID: a Fréchet distance is one only if
//! its features are those of the FID Inception, which is for [`crate::model::features::FeatureNetwork`] to say.

pub mod bits;
pub mod captions;
pub mod frechet;
pub mod kid;

/// Why a number cannot be computed; says what is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricError {
    /// Too little to say anything.
    #[error("{metric} needs at least {needed} {of}, and there are {found}; make more samples")]
    TooFew {
        /// What was to be computed.
        metric: &'static str,
        /// How many it takes.
        needed: usize,
        /// Of what.
        of: &'static str,
        /// How many there are.
        found: usize,
    },
    /// Two sets that cannot be compared.
    #[error(
        "{name} differ: {left} and {right}; compare what comes from the same feature network, at the same settings"
    )]
    Different {
        /// What differs.
        name: &'static str,
        /// In the first set.
        left: usize,
        /// In the second set.
        right: usize,
    },
    /// A slice that does not consist of whole vectors.
    #[error("{found} numbers are no whole feature vectors of {dim}; give the features of whole pictures")]
    Ragged {
        /// The length of a feature vector.
        dim: usize,
        /// How many numbers there are.
        found: usize,
    },
    /// Infinite, or not a number.
    #[error(
        "{name} number {index} is {value}; the samples or the feature network are broken, look for where it first appears"
    )]
    NotFinite {
        /// What has it.
        name: &'static str,
        /// Which one.
        index: usize,
        /// What it is, as text.
        value: String,
    },
    /// A matrix that is the covariance of nothing.
    #[error(
        "the covariance is not symmetric at row {row}, column {column}; compute the statistics again from the pictures"
    )]
    NotSymmetric {
        /// Where.
        row: usize,
        /// Where.
        column: usize,
    },
    /// Candidates that do not belong to the references.
    #[error(
        "there are {candidates} captions and references of {references} pictures; give one caption for each picture"
    )]
    Unpaired {
        /// How many captions there are.
        candidates: usize,
        /// Of how many pictures there are references.
        references: usize,
    },
    /// Nothing to compare a caption with.
    #[error("picture {index} has no reference caption; leave it out, or give it one")]
    NoReferences {
        /// Which picture, counted from 0.
        index: usize,
    },
    /// A number outside the range that makes sense.
    #[error(transparent)]
    Argument(#[from] crate::Error),
}

/// `Ok` if all the numbers are finite, else the error that names the first that is not.
fn check_finite<T: Copy + Into<f64>>(name: &'static str, values: &[T]) -> Result<(), MetricError> {
    match values.iter().position(|&value| !value.into().is_finite()) {
        None => Ok(()),
        Some(index) => Err(MetricError::NotFinite { name, index, value: values[index].into().to_string() }),
    }
}

/// The number of vectors of length `dim` in a slice, all of it checked.
fn count_vectors(features: &[f32], dim: usize) -> Result<usize, MetricError> {
    assert!(dim > 0, "a feature vector has at least one number");
    if !features.len().is_multiple_of(dim) {
        return Err(MetricError::Ragged { dim, found: features.len() });
    }
    check_finite("feature", features)?;
    Ok(features.len() / dim)
}
