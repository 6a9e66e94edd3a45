//! Files on their way in and out: what a person brought, and what a shell has to write or download.
//!
//! Deliberately absent: paths and dialogs. A shell reads what is dropped on its window or chosen in its dialog, and empties the outbox of the
//! session.

use std::sync::Arc;

/// A file for the shell to write, or for the browser to download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Save {
    /// What to call it, without a folder.
    pub name: String,
    /// What is in it.
    pub bytes: Arc<[u8]>,
}

/// A file that a person brought: dropped on the window or opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brought {
    /// Its name, without a folder.
    pub name: String,
    /// What is in it.
    pub bytes: Arc<[u8]>,
}

/// What a file seems to be, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// PNG or JPEG.
    Picture,
    /// A model or a checkpoint, as a safetensors file.
    Weights,
    /// None of these.
    Unknown,
}

impl Kind {
    pub fn of(bytes: &[u8]) -> Self {
        match bytes {
            [0x89, b'P', b'N', b'G', ..] | [0xff, 0xd8, 0xff, ..] => Self::Picture,
            // Eight bytes of length, then the header as JSON.
            [_, _, _, _, _, _, _, _, b'{', ..] => Self::Weights,
            _ => Self::Unknown,
        }
    }
}

/// Takes the files of one kind out of an inbox.
pub(crate) fn take(inbox: &mut Vec<Brought>, kind: Kind) -> Vec<Brought> {
    inbox.extract_if(.., |file| Kind::of(&file.bytes) == kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_their_first_bytes() {
        assert_eq!(Kind::of(b"\x89PNG\r\n"), Kind::Picture);
        assert_eq!(Kind::of(&[0xff, 0xd8, 0xff, 0xe0]), Kind::Picture);
        assert_eq!(Kind::of(b"\x10\0\0\0\0\0\0\0{\"a\""), Kind::Weights);
        assert_eq!(Kind::of(b"\x10\0\0\0\0\0\0\0"), Kind::Unknown);
        assert_eq!(Kind::of(b""), Kind::Unknown);
    }

    #[test]
    fn taking_one_kind_leaves_the_others() {
        let file = |name: &str, bytes: &[u8]| Brought { name: name.to_owned(), bytes: bytes.into() };
        let mut inbox = vec![file("a", b"\x89PNG"), file("b", b"?"), file("c", &[0xff, 0xd8, 0xff])];
        let taken = take(&mut inbox, Kind::Picture);
        assert_eq!(taken.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(inbox, [file("b", b"?")]);
    }
}
