//! Downsampled ImageNet (Chrabaszcz, Loshchilov & Hutter 2017), from its official NumPy archives: `train_data_batch_1.npz` to
//! `train_data_batch_10.npz` and `val_data.npz`, with 64 × 64 pixels, or the same project's 8, 16 or 32.
//!
//! An archive has `data.npy`, bytes of `[examples, 3 · size · size]`, red first, and `labels.npy`, classes from 1 to 1000. Its entries
//! are stored, not compressed, so that one picture is read from its place in the file. Deliberately absent: the mean picture,
//! which the archives have too, and the archive's own checksums, which would take reading all of it.

use std::{
    io::{Read, Seek, SeekFrom},
    ops::Range,
};

use zip::{
    CompressionMethod, ZipArchive,
    read::{ArchiveOffset, Config},
    result::ZipError,
};

use super::{DataError, Picture, Pictures, npy::Array, records::Records};

/// The number of classes.
pub const N_CLASSES: usize = 1000;

/// The largest width and height that is taken for a picture, rather than for a broken file.
const MAX_SIZE: u64 = 1024;

/// One archive; [`super::Concat`] makes one data set of several.
#[derive(Debug)]
pub struct ImageNet64<R> {
    records: Records<R>,
    /// From 0 to 999.
    classes: Vec<u16>,
    size: usize,
}

impl<R: Read + Seek> ImageNet64<R> {
    /// Opens an archive and reads its labels; `file` is its name, for messages.
    pub fn open(mut source: R, file: &str) -> Result<Self, DataError> {
        let io = |source| DataError::Io { source, offset: 0, file: file.to_owned() };
        let length = source.seek(SeekFrom::End(0)).map_err(io)?;
        // Known: otherwise a broken archive of gigabytes would be searched from end to end.
        let config = Config { archive_offset: ArchiveOffset::Known(0) };
        let mut archive = ZipArchive::with_config(config, source).map_err(|error| not_an_archive(error, file))?;
        let data = place(&mut archive, "data.npy", length, file)?;
        let labels = place(&mut archive, "labels.npy", length, file)?;
        let mut source = archive.into_inner();

        let data = Array::open(&mut source, data, file)?;
        if data.kind != "u1" {
            return Err(data.error(format!("the pictures are of type {:?}, but must be bytes (uint8)", data.kind)));
        }
        let size = |width: u64| (1..=MAX_SIZE).find(|size| 3 * size * size == width);
        let &[n_examples @ 1..=u64::MAX, width] = data.shape.as_slice() else {
            let reason =
                format!("the pictures have the shape {:?}, but must have [examples, 3 · size · size]", data.shape);
            return Err(data.error(reason));
        };
        let Some(size) = size(width) else {
            let reason =
                format!("a picture has {width} values, but must have 3 · size · size, 12288 for 64 × 64 pixels");
            return Err(data.error(reason));
        };
        data.check_length(1)?;

        let labels = Array::open(&mut source, labels, file)?;
        if labels.shape != [n_examples] {
            let reason =
                format!("the labels have the shape {:?}, but must have [{n_examples}] as the pictures", labels.shape);
            return Err(labels.error(reason));
        }
        let mut classes = Vec::new();
        for (example, label) in labels.integers(&mut source)?.into_iter().enumerate() {
            if !(1..=N_CLASSES as i128).contains(&label) {
                let reason = format!("label {label} of example {example} must be from 1 to {N_CLASSES}");
                return Err(labels.error_at(example, reason));
            }
            classes.push((label - 1) as u16);
        }
        let records = Records::at(source, file, data.numbers.start, width as usize, classes.len());
        Ok(Self { records, classes, size: size as usize })
    }
}

impl<R: Read + Seek> Pictures for ImageNet64<R> {
    fn name(&self) -> &'static str {
        "imagenet64"
    }

    fn n_examples(&self) -> usize {
        self.classes.len()
    }

    fn channels(&self) -> usize {
        3
    }

    fn size(&self) -> usize {
        self.size
    }

    fn n_classes(&self) -> usize {
        N_CLASSES
    }

    fn read(&mut self, index: usize) -> Result<Picture, DataError> {
        Ok(Picture { pixels: self.records.read(index)?, class: usize::from(self.classes[index]) })
    }
}

/// Where in the file a stored entry of the archive is.
fn place<R: Read + Seek>(
    archive: &mut ZipArchive<R>,
    name: &str,
    length: u64,
    file: &str,
) -> Result<Range<u64>, DataError> {
    let error = |reason: String, offset| DataError::Format { reason, offset, file: file.to_owned() };
    let Some(index) = archive.index_for_name(name) else {
        let reason = format!("the archive must have data.npy and labels.npy, but has no {name}");
        return Err(error(reason, archive.central_directory_start()));
    };
    let entry = archive.by_index_raw(index).map_err(|error| not_an_archive(error, file))?;
    if entry.compression() != CompressionMethod::Stored {
        let reason = format!(
            "{name} is compressed, but must be stored; save it again with numpy.savez, not numpy.savez_compressed"
        );
        return Err(error(reason, entry.header_start()));
    }
    if entry.encrypted() {
        return Err(error(format!("{name} is encrypted; save it again with numpy.savez"), entry.header_start()));
    }
    let start = entry.data_start().unwrap_or(entry.header_start());
    let end = start.checked_add(entry.compressed_size()).filter(|end| *end <= length);
    let Some(end) = end else {
        let reason =
            format!("{name} has {} bytes, but the file ends at {length}; fetch it again", entry.compressed_size());
        return Err(error(reason, start));
    };
    Ok(start..end)
}

/// The error for a file that is no archive, or a broken one.
fn not_an_archive(error: ZipError, file: &str) -> DataError {
    match error {
        ZipError::Io(source) => DataError::Io { source, offset: 0, file: file.to_owned() },
        other => {
            let reason = format!("this is no whole NumPy archive (.npz): {other}; fetch it again");
            DataError::Format { reason, offset: 0, file: file.to_owned() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::npy::tests::npy;
    use std::io::{Cursor, Write};
    use zip::{ZipWriter, write::SimpleFileOptions};

    /// An archive as `numpy.savez` writes it.
    fn archive(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(vec![]));
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
        for (name, bytes) in entries {
            writer.start_file(*name, options).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    /// Two pictures of 2 × 2 pixels.
    fn two_pictures() -> Vec<u8> {
        archive(&[
            ("data.npy", npy("|u1", "(2, 12)", &(0..24).collect::<Vec<u8>>())),
            ("labels.npy", npy("<i8", "(2,)", &[1000_i64, 1].map(i64::to_le_bytes).concat())),
            ("mean.npy", npy("<f8", "(12,)", &[0; 96])),
        ])
    }

    fn open(bytes: &[u8]) -> Result<ImageNet64<Cursor<&[u8]>>, DataError> {
        ImageNet64::open(Cursor::new(bytes), "x.npz")
    }

    #[track_caller]
    fn assert_says(bytes: &[u8], words: &str) {
        let error = open(bytes).unwrap_err().to_string();
        assert!(error.contains(words) && error.ends_with("of x.npz"), "{error}");
    }

    #[test]
    fn pictures_and_classes() {
        let bytes = two_pictures();
        let mut imagenet = open(&bytes).unwrap();
        let (n_examples, size) = (imagenet.n_examples(), imagenet.size());
        assert_eq!((n_examples, imagenet.channels(), size, imagenet.n_classes()), (2, 3, 2, 1000));
        assert_eq!(imagenet.read(1).unwrap(), Picture { pixels: (12..24).collect(), class: 0 });
        assert_eq!(imagenet.read(0).unwrap(), Picture { pixels: (0..12).collect(), class: 999 });
        assert!(matches!(imagenet.read(2), Err(DataError::Index { index: 2, n_examples: 2 })));
    }

    #[test]
    fn the_official_size() {
        let data = npy("|u1", "(1, 12288)", &[7; 12288]);
        let labels = npy("<i4", "(1,)", &[5, 0, 0, 0]);
        let bytes = archive(&[("labels.npy", labels), ("data.npy", data)]);
        let mut imagenet = open(&bytes).unwrap();
        assert_eq!(imagenet.size(), 64);
        assert_eq!(imagenet.read(0).unwrap(), Picture { pixels: vec![7; 12288], class: 4 });
    }

    #[test]
    fn what_is_wrong_is_named_with_its_cure() {
        let data = || ("data.npy", npy("|u1", "(1, 3)", &[1, 2, 3]));
        let labels = || ("labels.npy", npy("|u1", "(1,)", &[1]));
        assert!(open(&archive(&[data(), labels()])).is_ok());
        assert_says(&archive(&[data()]), "has no labels.npy");
        assert_says(&archive(&[labels()]), "has no data.npy");
        assert_says(&archive(&[("data.npy", npy("<i8", "(1, 3)", &[0; 24])), labels()]), "must be bytes (uint8)");
        assert_says(&archive(&[("data.npy", npy("|u1", "(1, 4)", &[0; 4])), labels()]), "3 · size · size");
        assert_says(&archive(&[("data.npy", npy("|u1", "(3,)", &[0; 3])), labels()]), "shape [3]");
        assert_says(&archive(&[("data.npy", npy("|u1", "(0, 3)", &[])), labels()]), "shape [0, 3]");
        assert_says(&archive(&[("data.npy", npy("|u1", "(1, 3)", &[0; 4])), labels()]), "4 bytes of numbers follow");
        assert_says(&archive(&[data(), ("labels.npy", npy("|u1", "(2,)", &[1, 2]))]), "must have [1]");
        assert_says(&archive(&[data(), ("labels.npy", npy("|u1", "(1,)", &[0]))]), "label 0 of example 0");
        assert_says(&archive(&[data(), ("labels.npy", npy("<u2", "(1,)", &[233, 3]))]), "label 1001");
        let two = npy("|u1", "(2, 3)", &[0; 6]);
        let bytes = archive(&[("data.npy", two), ("labels.npy", npy("<u2", "(2,)", &[1, 0, 234, 3]))]);
        let place = bytes.windows(4).position(|bytes| bytes == [1, 0, 234, 3]).unwrap() + 2;
        assert_says(&bytes, &format!("label 1002 of example 1 must be from 1 to 1000, at byte {place}"));
        assert_says(b"not an archive at all", "no whole NumPy archive");
        let huge = npy("|u1", "(4611686018427387904, 3)", &[0; 3]);
        assert_says(&archive(&[("data.npy", huge), labels()]), "shape [4611686018427387904, 3] needs");

        // The method stands at byte 10 of an entry of the directory; 8 is deflate.
        let mut bytes = two_pictures();
        let directory = bytes.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
        bytes[directory + 10] = 8;
        assert_says(&bytes, "data.npy is compressed, but must be stored; save it again with numpy.savez");
        // The lengths stand at bytes 20 and 24.
        bytes[directory + 10] = 0;
        bytes[directory + 20..directory + 28].fill(0x7F);
        assert_says(&bytes, &format!("data.npy has 2139062143 bytes, but the file ends at {}", bytes.len()));
    }

    #[test]
    fn every_truncation_is_an_error() {
        let bytes = two_pictures();
        for end in 0..bytes.len() {
            assert!(open(&bytes[..end]).is_err(), "{end} bytes");
        }
    }
}
