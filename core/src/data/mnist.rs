//! MNIST and its relatives, from the original IDX files: one of pictures and one of labels.
//!
//! An IDX file starts with two zero bytes, the type of its numbers (8 is a byte), the number of dimensions, and each dimension
//! as a big-endian 32-bit number.

use std::io::{Read, Seek};

use super::{
    DataError, Picture, Pictures,
    records::{Records, read_at},
};

/// The largest width and height that is taken for a picture, rather than for a broken file.
const MAX_SIZE: usize = 1024;

/// The classes that there are at least: a test set need not show every digit.
const N_DIGITS: usize = 10;

/// A file of square pictures with its file of labels.
#[derive(Debug)]
pub struct Mnist<R> {
    pictures: Records<R>,
    labels: Vec<u8>,
    size: usize,
}

impl<R: Read + Seek> Mnist<R> {
    /// Opens the two files, which must have as many entries as they claim; each comes with its name, for messages.
    pub fn open(pictures: (R, &str), labels: (R, &str)) -> Result<Self, DataError> {
        let (mut source, file) = pictures;
        let [_, height, width] = dimensions(&mut source, file)?;
        if height != width || !(1..=MAX_SIZE).contains(&height) {
            let reason = format!(
                "the pictures have {height} × {width} pixels, but must be squares of 1 to {MAX_SIZE} pixels each way"
            );
            return Err(DataError::Format { reason, offset: 8, file: file.to_owned() });
        }
        let pictures = open::<_, 3>(source, file, height * width)?;
        let mut labels = open::<_, 1>(labels.0, labels.1, 1)?;
        if pictures.n_entries != labels.n_entries {
            let reason = format!("there are {} labels for {} pictures", labels.n_entries, pictures.n_entries);
            return Err(DataError::Format { reason, offset: 4, file: labels.file });
        }
        let start = labels.offset(0);
        let labels = read_at(&mut labels.source, start, labels.n_entries, &labels.file)?;
        Ok(Self { pictures, labels, size: height })
    }
}

impl<R: Read + Seek> Pictures for Mnist<R> {
    fn name(&self) -> &'static str {
        "mnist"
    }

    fn n_examples(&self) -> usize {
        self.pictures.n_entries
    }

    fn channels(&self) -> usize {
        1
    }

    fn size(&self) -> usize {
        self.size
    }

    /// 10, or more if the labels say so, as those of EMNIST do.
    fn n_classes(&self) -> usize {
        self.labels.iter().map(|&label| usize::from(label) + 1).max().unwrap_or(0).max(N_DIGITS)
    }

    fn read(&mut self, index: usize) -> Result<Picture, DataError> {
        Ok(Picture { pixels: self.pictures.read(index)?, class: usize::from(self.labels[index]) })
    }
}

/// The dimensions of an IDX file of bytes.
fn dimensions<R: Read + Seek, const N: usize>(source: &mut R, file: &str) -> Result<[usize; N], DataError> {
    let magic = read_at(source, 0, 4, file)?;
    if magic != [0, 0, 8, N as u8] {
        let reason =
            format!("the file starts with {magic:?}, but an IDX file of bytes with {N} dimensions with [0, 0, 8, {N}]");
        return Err(DataError::Format { reason, offset: 0, file: file.to_owned() });
    }
    let header = read_at(source, 4, 4 * N, file)?;
    let mut numbers = header.as_chunks().0.iter().map(|bytes| u32::from_be_bytes(*bytes) as usize);
    Ok(std::array::from_fn(|_| numbers.next().expect("the header has N numbers")))
}

/// The records of an IDX file, as many as its header says.
fn open<R: Read + Seek, const N: usize>(mut source: R, file: &str, record: usize) -> Result<Records<R>, DataError> {
    let count = dimensions::<_, N>(&mut source, file)?[0];
    let records = Records::open(source, file, 4 + 4 * N as u64, record)?;
    if records.n_entries == count {
        Ok(records)
    } else {
        let reason = format!("the header says {count} entries, the file has {}", records.n_entries);
        Err(DataError::Format { reason, offset: 4, file: file.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn files() -> (Vec<u8>, Vec<u8>) {
        let mut pictures = vec![0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2];
        pictures.extend(1..=8);
        (pictures, vec![0, 0, 8, 1, 0, 0, 0, 2, 7, 5])
    }

    fn open(pictures: &[u8], labels: &[u8]) -> Result<Mnist<Cursor<Vec<u8>>>, DataError> {
        Mnist::open((Cursor::new(pictures.to_vec()), "pictures"), (Cursor::new(labels.to_vec()), "labels"))
    }

    #[test]
    fn pictures_and_labels() {
        let (pictures, labels) = files();
        let mut mnist = open(&pictures, &labels).unwrap();
        assert_eq!((mnist.n_examples(), mnist.channels(), mnist.size(), mnist.n_classes()), (2, 1, 2, 10));
        assert_eq!(mnist.read(1).unwrap(), Picture { pixels: (5..=8).collect(), class: 5 });
        assert!(mnist.read(2).is_err());
        let letters = open(&pictures, &[0, 0, 8, 1, 0, 0, 0, 2, 61, 5]).unwrap();
        assert_eq!(letters.n_classes(), 62);
    }

    #[test]
    fn broken_files_are_errors_at_every_length() {
        let (pictures, labels) = files();
        for end in 0..pictures.len() {
            assert!(open(&pictures[..end], &labels).is_err(), "{end} bytes of pictures");
        }
        for end in 0..labels.len() {
            assert!(open(&pictures, &labels[..end]).is_err(), "{end} bytes of labels");
        }
        // Every byte of the headers changed: an error, or never a panic on reading.
        for at in 0..16 {
            let mut broken = pictures.clone();
            broken[at] ^= 0xFF;
            if let Ok(mut mnist) = open(&broken, &labels) {
                let _ = mnist.read(0);
            }
        }
        let mut oblong = pictures.clone();
        (oblong[11], oblong[15]) = (4, 1);
        let error = open(&oblong, &labels).unwrap_err().to_string();
        assert!(
            error.contains("4 × 1 pixels, but must be squares") && error.ends_with("at byte 8 of pictures"),
            "{error}"
        );
        let mut more = pictures.clone();
        more[7] = 3;
        let error = open(&more, &labels).unwrap_err().to_string();
        assert_eq!(error, "the header says 3 entries, the file has 2, at byte 4 of pictures");
        let error = open(&pictures, &[0, 0, 8, 1, 0, 0, 0, 1, 7]).unwrap_err();
        assert_eq!(error.to_string(), "there are 1 labels for 2 pictures, at byte 4 of labels");
    }
}
