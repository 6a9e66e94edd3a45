//! Sentencepiece models of type unigram (Kudo 2018), read from a `.model` file: the same ids as sentencepiece's own code.
//!
//! A text is normalised ([`normalize`]), then cut into the pieces whose scores have the largest sum. What no piece covers is one unknown
//! token.
//!
//! Deliberately absent: training, sampling of segmentations, and what the models here do without: byte fallback, symbols defined by
//! the user, models of other types. A file with one of those is refused, rather than read wrongly. (A crate that reads all of them
//! exists, kitoken; its ids differ on tabs and on texts of spaces, and its features would rebuild burn.)

mod normalize;
mod proto;

use std::{collections::HashMap, fmt, sync::Arc};

use self::{
    normalize::{Normalizer, SPACE},
    proto::{Kind, Model, Piece},
};
use super::TextError;

/// How much worse an unknown character scores than the worst piece.
const UNKNOWN_PENALTY: f32 = 10.0;

/// The longest piece that is read, in bytes; sentencepiece makes them of 16 characters. It bounds the time that a text takes.
const MAX_PIECE_BYTES: usize = 512;

/// What an unknown token looks like in a text.
const UNKNOWN_SURFACE: &str = " \u{2047} ";

/// A sentencepiece model; a clone shares the pieces.
#[derive(Clone)]
pub struct SentencePiece(Arc<Inner>);

struct Inner {
    pieces: Vec<Piece>,
    /// The pieces that a text can have, and the length of the longest, in bytes.
    ids: HashMap<String, u32>,
    longest: usize,
    /// The score of an unknown character.
    unknown_score: f32,
    unknown: u32,
    eos: u32,
    pad: u32,
    normalizer: Normalizer,
    fingerprint: u32,
}

/// The best way to cut the text up to some place: its score, and where and what its last piece is.
#[derive(Clone, Copy)]
struct Best {
    score: f32,
    start: usize,
    id: u32,
}

impl SentencePiece {
    /// Reads a `.model` file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TextError> {
        let wrong = |reason: String| TextError::Model { reason };
        let Model { pieces, eos_piece, pad_piece, normalizer } = proto::read(bytes)?;
        let mut ids = HashMap::with_capacity(pieces.len());
        let mut special = HashMap::new();
        let mut unknown = None;
        let mut worst = f32::INFINITY;
        for (id, piece) in (0_u32..).zip(&pieces) {
            if piece.text.is_empty() || piece.text.len() > MAX_PIECE_BYTES {
                return Err(wrong(format!("piece {id} has {} bytes", piece.text.len())));
            }
            let is_new = match piece.kind {
                Kind::Normal => {
                    worst = worst.min(piece.score);
                    ids.insert(piece.text.clone(), id).is_none()
                }
                // A piece that stands for itself only.
                Kind::Control => special.insert(piece.text.as_str(), id).is_none(),
                Kind::Unused => true,
                Kind::Unknown => unknown.replace(id).is_none(),
            };
            if !is_new {
                return Err(wrong(format!("it has the piece {:?} twice", piece.text)));
            }
        }
        let unknown = unknown.ok_or_else(|| wrong("it has no unknown piece".to_owned()))?;
        let eos = *special
            .get(eos_piece.as_str())
            .ok_or_else(|| wrong(format!("it has no piece {eos_piece:?} that ends a text")))?;
        // Without a padding piece it is 0, as in the authors' code; there the unknown piece stands.
        let pad = special.get(pad_piece.as_str()).copied().unwrap_or(0);
        if pad == eos || matches!(pieces[pad as usize].kind, Kind::Normal) {
            return Err(wrong(format!("piece {pad}, which would be the padding, is {:?}", pieces[pad as usize].text)));
        }
        if ids.is_empty() {
            return Err(wrong("it has no pieces of text".to_owned()));
        }
        let longest = ids.keys().map(String::len).max().unwrap_or(0);
        let (unknown_score, fingerprint) = (worst - UNKNOWN_PENALTY, crc32fast::hash(bytes));
        let inner = Inner { pieces, ids, longest, unknown_score, unknown, eos, pad, normalizer, fingerprint };
        Ok(Self(Arc::new(inner)))
    }

    pub(super) fn n_tokens(&self) -> usize {
        self.0.pieces.len()
    }

    pub(super) fn eos(&self) -> u32 {
        self.0.eos
    }

    pub(super) fn pad(&self) -> u32 {
        self.0.pad
    }

    pub(super) fn unknown(&self) -> u32 {
        self.0.unknown
    }

    pub(super) fn fingerprint(&self) -> u32 {
        self.0.fingerprint
    }

    /// A piece's text.
    pub(super) fn piece(&self, id: u32) -> &str {
        &self.0.pieces[id as usize].text
    }

    /// The pieces of a text: of all ways to cut it, the one with the largest sum of scores (Viterbi).
    pub(super) fn encode(&self, text: &str) -> Vec<u32> {
        let Inner { pieces, ids, longest, unknown_score, unknown, .. } = &*self.0;
        let text = self.0.normalizer.normalize(text);
        let mut best: Vec<Option<Best>> = vec![None; text.len() + 1];
        for (start, character) in text.char_indices() {
            let before = best[start].map_or(0.0, |best| best.score);
            let mut improve = |end: usize, score: f32, id: u32| {
                // In single precision, as sentencepiece does it: else ties would be decided otherwise.
                let score = score + before;
                if best[end].is_none_or(|best| score > best.score) {
                    best[end] = Some(Best { score, start, id });
                }
            };
            let next = start + character.len_utf8();
            let ends = text[start..].char_indices().map(|(at, c)| start + at + c.len_utf8());
            let mut covers_character = false;
            for end in ends.take_while(|end| end - start <= *longest) {
                if let Some(&id) = ids.get(&text[start..end]) {
                    improve(end, pieces[id as usize].score, id);
                    covers_character |= end == next;
                }
            }
            if !covers_character {
                improve(next, *unknown_score, *unknown);
            }
        }
        let mut out = Vec::new();
        let mut end = text.len();
        while end > 0 {
            let Best { start, id, .. } = best[end].expect("every character ends a piece or is unknown");
            // Unknown characters one after another are one token.
            if id != *unknown || out.last() != Some(unknown) {
                out.push(id);
            }
            end = start;
        }
        out.reverse();
        out
    }

    /// The text of pieces.
    pub(super) fn decode(&self, ids: &[u32]) -> String {
        let mut out = String::new();
        let mut prefix_seen = false;
        for &id in ids {
            let Piece { text, kind, .. } = &self.0.pieces[id as usize];
            match kind {
                Kind::Control => {}
                Kind::Unknown => out.push_str(UNKNOWN_SURFACE),
                Kind::Normal | Kind::Unused => {
                    let mut text = text.as_str();
                    if out.is_empty()
                        && !prefix_seen
                        && self.0.normalizer.adds_or_removes_spaces()
                        && let Some(rest) = text.strip_prefix(SPACE)
                    {
                        text = rest;
                        // If only the space that was added is to go, later ones stay.
                        prefix_seen = !self.0.normalizer.removes_spaces();
                    }
                    out.push_str(&text.replace(SPACE, " "));
                }
            }
        }
        out
    }
}

impl fmt::Debug for SentencePiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SentencePiece")
            .field("n_tokens", &self.n_tokens())
            .field("eos", &self.0.eos)
            .field("pad", &self.0.pad)
            .finish_non_exhaustive()
    }
}
