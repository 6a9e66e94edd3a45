//! Pictures with captions: the trait, and the shapes world as such data.

use super::{
    DataError,
    caption::Caption,
    shapes::{self, Scene},
};
use crate::rng::Rng;

/// A picture and what people, or the grammar, say of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captioned {
    /// Colour values, all red ones first, then green, then blue; each row by row.
    pub pixels: Vec<u8>,
    /// Captions of it, at least one.
    pub captions: Vec<String>,
}

/// A data set of square colour pictures of one size with their captions, read one at a time.
pub trait CaptionedPictures {
    /// What the data are called, see [`super::Pictures::name`].
    fn name(&self) -> &'static str;

    /// The number of pictures; at least 1.
    fn n_examples(&self) -> usize;

    /// The width and the height of a picture, in pixels.
    fn size(&self) -> usize;

    /// Reads one picture, of `3 · size · size` values, and its captions.
    fn read(&mut self, index: usize) -> Result<Captioned, DataError>;
}

impl<P: CaptionedPictures + ?Sized> CaptionedPictures for Box<P> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn n_examples(&self) -> usize {
        (**self).n_examples()
    }

    fn size(&self) -> usize {
        (**self).size()
    }

    fn read(&mut self, index: usize) -> Result<Captioned, DataError> {
        (**self).read(index)
    }
}

/// One scene of so many is kept for testing.
const TEST_SHARE: u32 = 10;

/// Random scenes of the shapes world, each with one caption of its grammar.
///
/// A tenth of all scenes, chosen by a checksum of their pictures, is only ever in the data to test with: whatever the seeds, a model is tested
/// on scenes that it has not seen.
#[derive(Debug, Clone)]
pub struct CaptionedShapes {
    rng: Rng,
    is_test: bool,
}

impl CaptionedShapes {
    /// Scenes to train on.
    #[must_use]
    pub fn train(seed: u64) -> Self {
        Self { rng: Rng::new(seed), is_test: false }
    }

    /// Scenes to test with.
    #[must_use]
    pub fn test(seed: u64) -> Self {
        Self { rng: Rng::new(seed), is_test: true }
    }
}

impl CaptionedPictures for CaptionedShapes {
    fn name(&self) -> &'static str {
        shapes::NAME
    }

    fn n_examples(&self) -> usize {
        shapes::N_EXAMPLES
    }

    fn size(&self) -> usize {
        shapes::SIZE
    }

    /// The first scene of the right kind of stream `index` of the seed, and a caption drawn after it.
    fn read(&mut self, index: usize) -> Result<Captioned, DataError> {
        let n_examples = self.n_examples();
        if index >= n_examples {
            return Err(DataError::Index { index, n_examples });
        }
        let mut rng = self.rng.fork(index as u64);
        loop {
            let scene = Scene::random(&mut rng);
            let pixels: Vec<u8> = scene.render().into_iter().map(|value| value as u8).collect();
            if is_for_testing(&pixels) == self.is_test {
                return Ok(Captioned { pixels, captions: vec![Caption::of(&scene, &mut rng).to_string()] });
            }
        }
    }
}

/// Whether a scene is only to test with, by its picture.
fn is_for_testing(pixels: &[u8]) -> bool {
    crc32fast::hash(pixels).is_multiple_of(TEST_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn read(mut data: CaptionedShapes, indices: std::ops::Range<usize>) -> Vec<Captioned> {
        indices.map(|index| data.read(index).unwrap()).collect()
    }

    #[test]
    fn captions_are_true_of_their_pictures() {
        for Captioned { pixels, captions } in read(CaptionedShapes::train(1), 0..200) {
            let picture: Vec<u32> = pixels.into_iter().map(u32::from).collect();
            let scene = Scene::parse(&picture).unwrap();
            assert_eq!(captions.len(), 1);
            assert!(captions[0].parse::<Caption>().unwrap().is_true_of(&scene), "{captions:?}");
        }
    }

    #[test]
    fn an_example_depends_on_its_number_and_the_seed() {
        let two = read(CaptionedShapes::train(1), 0..2);
        assert_ne!(two[0], two[1]);
        assert_eq!(read(CaptionedShapes::train(1), 1..2), two[1..]);
        assert_ne!(read(CaptionedShapes::train(2), 0..1), two[..1]);
        let mut data = CaptionedShapes::test(1);
        assert_eq!((data.n_examples(), data.size()), (shapes::N_EXAMPLES, 16));
        assert!(data.read(shapes::N_EXAMPLES).is_err());
    }

    #[test]
    fn no_scene_is_in_both_splits_and_a_tenth_is_for_testing() {
        let pictures = |data| read(data, 0..2000).into_iter().map(|one| one.pixels).collect::<HashSet<_>>();
        let (train, test) = (pictures(CaptionedShapes::train(1)), pictures(CaptionedShapes::test(1)));
        // Scenes of one shape are few and come often: without the split these would meet.
        assert!(train.is_disjoint(&test));
        let mut rng = Rng::new(3);
        let mut scene = || Scene::random(&mut rng).render().into_iter().map(|value| value as u8).collect::<Vec<_>>();
        let n_test = (0..2000).filter(|_| is_for_testing(&scene())).count();
        // Some 200, with a standard deviation of 13 and a little more, as scenes repeat.
        assert!((130..270).contains(&n_test), "{n_test}");
    }
}
