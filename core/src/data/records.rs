//! Files of records that all have the same length, read one at a time.

use std::io::{Read, Seek, SeekFrom};

/// Why a data file cannot be used; says which file and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The contents are not what the format says.
    #[error("{reason}, at byte {offset} of {file}")]
    Format {
        /// What is wrong and what was expected.
        reason: String,
        /// Where.
        offset: u64,
        /// The file's name.
        file: String,
    },
    /// The operating system says no.
    #[error("cannot read at byte {offset}: {source}, in {file}")]
    Io {
        /// What it said.
        source: std::io::Error,
        /// Where.
        offset: u64,
        /// The file's name.
        file: String,
    },
    /// A picture file cannot be decoded.
    #[error("cannot decode the picture: {reason}, in {file}")]
    Decode {
        /// What the decoder said.
        reason: String,
        /// The file's name.
        file: String,
    },
    /// Data that do not go together.
    #[error("{reason}")]
    Mismatch {
        /// What there is and what it must be.
        reason: String,
    },
    /// There are fewer examples.
    #[error("there is no example {index}: the data have {n_examples}")]
    Index {
        /// The example asked for.
        index: usize,
        /// How many there are.
        n_examples: usize,
    },
}

/// A file with a header of known length and then records of one length.
#[derive(Debug)]
pub(crate) struct Records<R> {
    pub source: R,
    /// For messages.
    pub file: String,
    header: u64,
    record: usize,
    pub n_entries: usize,
}

impl<R: Read + Seek> Records<R> {
    /// Opens a file whose records of `record` bytes follow `header` bytes; the file must end with a whole record.
    pub fn open(mut source: R, file: &str, header: u64, record: usize) -> Result<Self, DataError> {
        let io = |source, offset| DataError::Io { source, offset, file: file.to_owned() };
        let length = source.seek(SeekFrom::End(0)).map_err(|error| io(error, 0))?;
        let body = length.checked_sub(header).filter(|body| *body > 0 && body.is_multiple_of(record as u64));
        let Some(body) = body else {
            let reason =
                format!("the file has {length} bytes, but must have {header} and then whole records of {record}");
            return Err(DataError::Format { reason, offset: length, file: file.to_owned() });
        };
        let n_entries = (body / record as u64) as usize;
        Ok(Self { source, file: file.to_owned(), header, record, n_entries })
    }

    /// Records whose place is known: `n_entries` of them from `header` on, all inside the file.
    pub fn at(source: R, file: &str, header: u64, record: usize, n_entries: usize) -> Self {
        Self { source, file: file.to_owned(), header, record, n_entries }
    }

    /// The bytes of a record.
    pub fn read(&mut self, index: usize) -> Result<Vec<u8>, DataError> {
        if index >= self.n_entries {
            return Err(DataError::Index { index, n_examples: self.n_entries });
        }
        let offset = self.offset(index);
        read_at(&mut self.source, offset, self.record, &self.file)
    }

    /// Where a record starts.
    pub fn offset(&self, index: usize) -> u64 {
        // In 64 bits: a file can be larger than the memory of a 32-bit machine.
        self.header + index as u64 * self.record as u64
    }

    /// The error for a record whose contents are wrong.
    pub fn error(&self, index: usize, reason: String) -> DataError {
        DataError::Format { reason, offset: self.offset(index), file: self.file.clone() }
    }
}

/// `length` bytes from `offset` on.
pub(crate) fn read_at<R: Read + Seek>(
    source: &mut R,
    offset: u64,
    length: usize,
    file: &str,
) -> Result<Vec<u8>, DataError> {
    let mut bytes = vec![0; length];
    let read = source.seek(SeekFrom::Start(offset)).and_then(|_| source.read_exact(&mut bytes));
    read.map_err(|source| DataError::Io { source, offset, file: file.to_owned() })?;
    Ok(bytes)
}
