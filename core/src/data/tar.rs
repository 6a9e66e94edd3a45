//! The members of a tar archive, by where they are.
//!
//! Deliberately absent: links, folders, long names and sparse files; other members than plain files are passed over.

use std::io::{Read, Seek, SeekFrom};

use super::{DataError, records::read_at};

/// Headers and contents begin at multiples of this.
const BLOCK: u64 = 512;

/// A plain file in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub name: String,
    pub offset: u64,
    pub length: usize,
}

/// Lists the plain files of an archive; every one lies inside it, and the archive has its end.
pub(super) fn members<R: Read + Seek>(source: &mut R, file: &str) -> Result<Vec<Member>, DataError> {
    let wrong = |reason: &str, offset| DataError::Format { reason: reason.to_owned(), offset, file: file.to_owned() };
    let end =
        source.seek(SeekFrom::End(0)).map_err(|source| DataError::Io { source, offset: 0, file: file.to_owned() })?;
    let mut members = Vec::new();
    let mut at = 0;
    let mut is_end = false;
    loop {
        if at + BLOCK > end {
            return Err(wrong("the archive was cut off, or is no tar: two empty blocks must end it", at));
        }
        let header = read_at(source, at, BLOCK as usize, file)?;
        if header.iter().all(|&byte| byte == 0) {
            if is_end {
                return Ok(members);
            }
            is_end = true;
            at += BLOCK;
            continue;
        }
        // The sum of all bytes, with spaces where it stands itself.
        let sum: u64 = header.iter().map(|&byte| u64::from(byte)).sum();
        let itself: u64 = header[148..156].iter().map(|&byte| u64::from(byte)).sum();
        if is_end || octal(&header[148..156]) != Some(sum - itself + 8 * u64::from(b' ')) {
            return Err(wrong("this is no header of a tar archive: its checksum is wrong", at));
        }
        let length = octal(&header[124..136]).ok_or_else(|| wrong("a file's length is no octal number", at))?;
        let offset = at + BLOCK;
        let next = length.checked_next_multiple_of(BLOCK).and_then(|padded| padded.checked_add(offset));
        let Some(next) = next.filter(|&next| next <= end) else {
            return Err(wrong("the archive was cut off: a file is longer than what is left", at));
        };
        let name = text(&header[..100]).ok_or_else(|| wrong("a file's name is no UTF-8", at))?;
        // A plain file is "0", or nothing in archives older than that.
        if matches!(header[156], b'0' | 0) {
            let length = usize::try_from(length).map_err(|_| wrong("a file is larger than the memory", at))?;
            members.push(Member { name: name.to_owned(), offset, length });
        }
        at = next;
    }
}

/// The text of a field, up to its first NUL.
fn text(field: &[u8]) -> Option<&str> {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    str::from_utf8(&field[..end]).ok()
}

/// An octal number, with spaces or NULs around it.
fn octal(field: &[u8]) -> Option<u64> {
    u64::from_str_radix(text(field)?.trim_matches(' '), 8).ok()
}
