//! Files on their way in and out: what was dropped on the window, and what a shell has to write or download.
//!
//! Deliberately absent: paths and dialogs. A shell fills in the bytes of dropped files, and empties the outbox of the session.

use std::sync::Arc;

use egui::Ui;

/// A file for the shell to write, or for the browser to download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Save {
    /// What to call it, without a folder.
    pub name: String,
    /// What is in it.
    pub bytes: Arc<[u8]>,
}

/// A file that was dropped on the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub name: String,
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

/// The files of one kind that were dropped since the last frame.
pub(crate) fn dropped(ui: &Ui, kind: Kind) -> Vec<Dropped> {
    ui.input(|input| {
        let files = input.raw.dropped_files.iter();
        let files = files.filter_map(|file| Some(Dropped { name: file.name.clone(), bytes: file.bytes.clone()? }));
        files.filter(|file| Kind::of(&file.bytes) == kind).collect()
    })
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
}
