//! How a sentencepiece model writes a text before it is cut into pieces: other characters for some (mostly Unicode's NFKC, from a table
//! in the model), one space where there were several, and `▁` for a space.

use super::super::TextError;

/// What a space is in pieces.
pub(super) const SPACE: char = '\u{2581}';

/// The rules of a model.
#[derive(Debug, Clone)]
pub(super) struct Normalizer {
    /// Before the text comes a space, as before any other word.
    pub adds_space: bool,
    /// Spaces at both ends go, and of several together all but one.
    pub removes_spaces: bool,
    map: Map,
}

/// What is written in place of some characters: a double-array trie (as in Darts-clone) of what to look for, whose values are places in
/// a list of texts that each end with a NUL.
#[derive(Debug, Clone, Default)]
struct Map {
    trie: Vec<u32>,
    texts: String,
}

impl Default for Normalizer {
    /// What a model that says nothing means.
    fn default() -> Self {
        Self { adds_space: true, removes_spaces: true, map: Map::default() }
    }
}

impl Normalizer {
    /// Reads the table: the trie's length in bytes, the trie, the texts.
    pub fn set_map(&mut self, bytes: &[u8]) -> Result<(), TextError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let wrong = || TextError::Model { reason: "its table of characters is broken".to_owned() };
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(wrong)?;
        let (trie, texts) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(wrong)?;
        let (units, rest) = trie.as_chunks::<4>();
        if units.is_empty() || !rest.is_empty() {
            return Err(wrong());
        }
        let texts = String::from_utf8(texts.to_vec()).map_err(|_| wrong())?;
        self.map = Map { trie: units.iter().map(|unit| u32::from_le_bytes(*unit)).collect(), texts };
        Ok(())
    }

    /// A text as the pieces have it.
    pub fn normalize(&self, text: &str) -> String {
        let mut out = String::with_capacity(2 * text.len());
        let mut rest = text;
        if self.removes_spaces {
            while let Some((" ", after)) = self.map.step(rest) {
                rest = after;
            }
        }
        if rest.is_empty() {
            return out;
        }
        if self.adds_space {
            out.push(SPACE);
        }
        let mut after_space = self.removes_spaces;
        while let Some((mut written, after)) = self.map.step(rest) {
            if after_space {
                written = written.trim_start_matches(' ');
            }
            if !written.is_empty() {
                out.extend(written.chars().map(|c| if c == ' ' { SPACE } else { c }));
                after_space = written.ends_with(' ');
            }
            after_space &= self.removes_spaces;
            rest = after;
        }
        if self.removes_spaces {
            out.truncate(out.trim_end_matches(SPACE).len());
        }
        out
    }

    /// Whether spaces at the beginning of a text are not its own.
    pub fn adds_or_removes_spaces(&self) -> bool {
        self.adds_space || self.removes_spaces
    }

    /// Whether no text begins with a space.
    pub fn removes_spaces(&self) -> bool {
        self.removes_spaces
    }
}

impl Map {
    /// What is written for the beginning of a text, and what follows that; `None` at the end.
    fn step<'a>(&'a self, text: &'a str) -> Option<(&'a str, &'a str)> {
        let character = text.chars().next()?;
        let found = self.longest_prefix(text.as_bytes()).and_then(|(place, length)| {
            let written = self.texts.get(place..)?.split('\0').next()?;
            Some((written, text.get(length..)?))
        });
        // A table that would divide a character is broken; it is then not used there.
        found.or_else(|| Some(text.split_at(character.len_utf8())))
    }

    /// The value of the longest entry that a text begins with, and that entry's length.
    fn longest_prefix(&self, text: &[u8]) -> Option<(usize, usize)> {
        let offset = |unit: u32| ((unit >> 10) << ((unit & 1 << 9) >> 6)) as usize;
        let mut node = offset(*self.trie.first()?);
        let mut found = None;
        for (i, &byte) in text.iter().enumerate() {
            node ^= usize::from(byte);
            let Some(&unit) = self.trie.get(node) else { break };
            if unit & (1 << 31 | 0xFF) != u32::from(byte) {
                break;
            }
            node ^= offset(unit);
            if unit >> 8 & 1 == 1
                && let Some(value) = self.trie.get(node)
            {
                found = Some(((value & 0x7FFF_FFFF) as usize, i + 1));
            }
        }
        found
    }
}
