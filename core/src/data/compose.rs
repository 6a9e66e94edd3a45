//! Data sets made of other data sets: several one after the other, or each picture with a margin.
//!
//! Deliberately absent: shuffling, which is the trainer's, and anything that changes the values of a pixel.

use super::{DataError, Picture, Pictures};

/// Several data sets, one after the other: the batches of CIFAR-10 or of ImageNet.
#[derive(Debug)]
pub struct Concat<P> {
    parts: Vec<P>,
    n_examples: usize,
}

impl<P: Pictures> Concat<P> {
    /// Puts data sets together, at least one, all with pictures of the same size and number of channels.
    pub fn new(parts: Vec<P>) -> Result<Self, DataError> {
        let shape = |part: &P| [part.channels(), part.size()];
        let mismatch = |reason| Err(DataError::Mismatch { reason });
        let Some(first) = parts.first().map(shape) else {
            return mismatch("there are no parts, but a data set must have at least one".to_owned());
        };
        let mut n_examples = 0_usize;
        for (i, part) in parts.iter().enumerate() {
            let [channels, size] = shape(part);
            if [channels, size] != first {
                let (part, [first_channels, first_size]) = (i + 1, first);
                return mismatch(format!(
                    "the pictures of part {part} have {size} × {size} pixels of {channels} channels, but must have \
                     {first_size} × {first_size} of {first_channels} as those of part 1"
                ));
            }
            let Some(sum) = n_examples.checked_add(part.n_examples()) else {
                return mismatch(format!("the parts have more than {} examples; leave some out", usize::MAX));
            };
            n_examples = sum;
        }
        Ok(Self { parts, n_examples })
    }
}

impl<P: Pictures> Pictures for Concat<P> {
    fn name(&self) -> &'static str {
        self.parts[0].name()
    }

    fn n_examples(&self) -> usize {
        self.n_examples
    }

    fn channels(&self) -> usize {
        self.parts[0].channels()
    }

    fn size(&self) -> usize {
        self.parts[0].size()
    }

    fn n_classes(&self) -> usize {
        self.parts.iter().map(Pictures::n_classes).max().unwrap_or(0)
    }

    fn read(&mut self, index: usize) -> Result<Picture, DataError> {
        let mut rest = index;
        for part in &mut self.parts {
            if rest < part.n_examples() {
                return part.read(rest);
            }
            rest -= part.n_examples();
        }
        Err(DataError::Index { index, n_examples: self.n_examples })
    }
}

/// A data set with a black margin around each picture, as MNIST's 28 × 28 pixels for a network of 32 × 32.
#[derive(Debug)]
pub struct Padded<P> {
    inner: P,
    size: usize,
}

impl<P: Pictures> Padded<P> {
    /// Pads to `size` pixels each way; an odd margin has its extra line below and on the right.
    pub fn new(inner: P, size: usize) -> Result<Self, DataError> {
        if size < inner.size() {
            let reason =
                format!("the pictures have {0} × {0} pixels, but must have at most {size} × {size}", inner.size());
            return Err(DataError::Mismatch { reason });
        }
        Ok(Self { inner, size })
    }
}

impl<P: Pictures> Pictures for Padded<P> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn n_examples(&self) -> usize {
        self.inner.n_examples()
    }

    fn channels(&self) -> usize {
        self.inner.channels()
    }

    fn size(&self) -> usize {
        self.size
    }

    fn n_classes(&self) -> usize {
        self.inner.n_classes()
    }

    fn read(&mut self, index: usize) -> Result<Picture, DataError> {
        let Picture { pixels: small, class } = self.inner.read(index)?;
        let (inside, size) = (self.inner.size(), self.size);
        let margin = (size - inside) / 2;
        let mut pixels = vec![0; self.channels() * size * size];
        for (row, line) in small.chunks_exact(inside).enumerate() {
            let (channel, y) = (row / inside, row % inside);
            let start = (channel * size + margin + y) * size + margin;
            pixels[start..start + inside].copy_from_slice(line);
        }
        Ok(Picture { pixels, class })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pictures whose values count on from `first`, one class per data set.
    #[derive(Debug)]
    struct Counting {
        n_examples: usize,
        channels: usize,
        size: usize,
        first: u8,
    }

    impl Pictures for Counting {
        fn n_examples(&self) -> usize {
            self.n_examples
        }

        fn channels(&self) -> usize {
            self.channels
        }

        fn size(&self) -> usize {
            self.size
        }

        fn n_classes(&self) -> usize {
            usize::from(self.first) + 1
        }

        fn read(&mut self, index: usize) -> Result<Picture, DataError> {
            let n = (self.channels * self.size * self.size) as u8;
            let start = self.first + index as u8;
            Ok(Picture { pixels: (start..start + n).collect(), class: usize::from(self.first) })
        }
    }

    fn counting(n_examples: usize, channels: usize, size: usize, first: u8) -> Counting {
        Counting { n_examples, channels, size, first }
    }

    #[test]
    fn parts_follow_each_other() {
        let mut all = Concat::new(vec![counting(2, 1, 1, 0), counting(1, 1, 1, 40), counting(3, 1, 1, 20)]).unwrap();
        assert_eq!((all.n_examples(), all.channels(), all.size(), all.n_classes()), (6, 1, 1, 41));
        let values: Vec<u8> = (0..6).map(|i| all.read(i).unwrap().pixels[0]).collect();
        assert_eq!(values, [0, 1, 40, 20, 21, 22]);
        let error = all.read(6).unwrap_err().to_string();
        assert_eq!(error, "there is no example 6: the data have 6");
    }

    #[test]
    fn parts_must_fit_together() {
        let error = Concat::new(vec![counting(1, 1, 2, 0), counting(1, 1, 3, 0)]).unwrap_err().to_string();
        assert!(error.contains("part 2 have 3 × 3 pixels of 1 channels, but must have 2 × 2 of 1"), "{error}");
        assert!(Concat::new(vec![counting(1, 1, 2, 0), counting(1, 3, 2, 0)]).is_err());
        assert!(Concat::new(vec![counting(usize::MAX, 1, 2, 0), counting(1, 1, 2, 0)]).is_err());
        assert!(Concat::<Counting>::new(vec![]).is_err());
    }

    #[test]
    fn a_margin_is_black_and_the_picture_in_its_middle() {
        let mut padded = Padded::new(counting(1, 1, 2, 1), 5).unwrap();
        assert_eq!(padded.size(), 5);
        #[rustfmt::skip]
        assert_eq!(padded.read(0).unwrap().pixels, [
            0, 0, 0, 0, 0,
            0, 1, 2, 0, 0,
            0, 3, 4, 0, 0,
            0, 0, 0, 0, 0,
            0, 0, 0, 0, 0,
        ]);
        let three = Padded::new(counting(1, 3, 1, 7), 2).unwrap().read(0).unwrap();
        assert_eq!(three.pixels, [7, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0]);
        assert_eq!(Padded::new(counting(1, 3, 2, 7), 2).unwrap().read(0).unwrap().pixels, (7..19).collect::<Vec<u8>>());
        assert!(Padded::new(counting(1, 1, 3, 0), 2).is_err());
    }
}
