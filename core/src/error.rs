//! The one error of the mathematics: a number or a shape, given by a person, that cannot be used, or numbers that a device has lost.

use std::fmt::Display;

/// An argument that cannot be used; says which one, what it was, and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number outside the range that makes sense.
    #[error("{name} is {value}, but must be {allowed}")]
    Argument {
        /// The argument's name, as a user knows it.
        name: &'static str,
        /// What was given.
        value: String,
        /// What is allowed, in words.
        allowed: String,
    },
    /// A tensor or slice of a shape that does not fit the others.
    #[error("{name} has shape {found:?}, but must have {expected}")]
    Shape {
        /// What the tensor is.
        name: &'static str,
        /// Its shape.
        found: Vec<usize>,
        /// The shape that would fit, in words.
        expected: String,
    },
    /// The device failed while it worked.
    #[error("the device did not return its numbers: {0}; try again, or start with the device `cpu`")]
    Readback(String),
}

impl Error {
    /// The error for a number outside its range.
    pub(crate) fn argument(name: &'static str, value: impl Display, allowed: impl Into<String>) -> Self {
        Self::Argument { name, value: format!("{value}"), allowed: allowed.into() }
    }

    /// The error for numbers that do not come back from their device.
    pub(crate) fn readback(error: impl Display) -> Self {
        Self::Readback(error.to_string())
    }

    /// The error for a shape that does not fit.
    pub(crate) fn shape(name: &'static str, found: &[usize], expected: impl Into<String>) -> Self {
        Self::Shape { name, found: found.to_vec(), expected: expected.into() }
    }
}

/// `Ok` if `value` is finite and `is_allowed`, else the error that says so.
pub(crate) fn check_number(
    name: &'static str,
    value: f64,
    is_allowed: impl FnOnce(f64) -> bool,
    allowed: &str,
) -> Result<(), Error> {
    if value.is_finite() && is_allowed(value) { Ok(()) } else { Err(Error::argument(name, value, allowed)) }
}
