//! The few fields of sentencepiece's protocol buffer (`sentencepiece_model.proto`) that a tokenizer needs.

use super::{super::TextError, normalize::Normalizer};

/// A whole model.
pub(super) struct Model {
    pub pieces: Vec<Piece>,
    pub eos_piece: String,
    pub pad_piece: String,
    pub normalizer: Normalizer,
}

/// A piece of text.
pub(super) struct Piece {
    pub text: String,
    /// The logarithm of its probability.
    pub score: f32,
    pub kind: Kind,
}

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Normal,
    /// What is in no piece.
    Unknown,
    /// A mark such as the end, never part of a text.
    Control,
    /// Takes up an id only.
    Unused,
}

/// A field's contents.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Float(f32),
    /// A fixed number of 64 bits: no field of ours.
    Other,
}

/// The fields of a message, one after another.
struct Fields<'a>(&'a [u8]);

/// Where reading stopped, as an error.
fn cut_off() -> TextError {
    wrong("it is no protocol buffer, or was cut off")
}

fn wrong(reason: impl Into<String>) -> TextError {
    TextError::Model { reason: reason.into() }
}

impl<'a> Fields<'a> {
    fn number(&mut self) -> Result<u64, TextError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or_else(cut_off)?;
            self.0 = rest;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(cut_off())
    }

    fn bytes(&mut self, n: u64) -> Result<&'a [u8], TextError> {
        let n = usize::try_from(n).map_err(|_| cut_off())?;
        let (bytes, rest) = self.0.split_at_checked(n).ok_or_else(cut_off)?;
        self.0 = rest;
        Ok(bytes)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), TextError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let mut field = || {
            let key = self.number()?;
            let value = match key & 7 {
                0 => Value::Number(self.number()?),
                1 => self.bytes(8).map(|_| Value::Other)?,
                2 => {
                    let n = self.number()?;
                    Value::Bytes(self.bytes(n)?)
                }
                5 => {
                    Value::Float(f32::from_bits(u32::from_le_bytes(self.bytes(4)?.try_into().map_err(|_| cut_off())?)))
                }
                _ => return Err(cut_off()),
            };
            Ok((key >> 3, value))
        };
        let field = field();
        if field.is_err() {
            // Nothing after this means anything.
            self.0 = &[];
        }
        Some(field)
    }
}

fn text(bytes: &[u8]) -> Result<String, TextError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| wrong("a piece is no UTF-8"))
}

/// Reads a `ModelProto`.
pub(super) fn read(bytes: &[u8]) -> Result<Model, TextError> {
    let mut pieces = Vec::new();
    let (mut eos_piece, mut pad_piece) = ("</s>".to_owned(), "<pad>".to_owned());
    let mut normalizer = Normalizer::default();
    for field in Fields(bytes) {
        match field? {
            (1, Value::Bytes(piece)) => pieces.push(read_piece(piece, pieces.len())?),
            (2, Value::Bytes(trainer)) => {
                for field in Fields(trainer) {
                    match field? {
                        (3, Value::Number(1)) => {}
                        (3, Value::Number(_)) => return Err(wrong("it is of another type than unigram")),
                        (24, Value::Number(1)) => return Err(wrong("its spaces follow words, which is not supported")),
                        (35, Value::Number(1)) => return Err(wrong("it uses byte fallback, which is not supported")),
                        (47, Value::Bytes(piece)) => eos_piece = text(piece)?,
                        (48, Value::Bytes(piece)) => pad_piece = text(piece)?,
                        _ => {}
                    }
                }
            }
            (3, Value::Bytes(spec)) => normalizer = read_normalizer(spec)?,
            (5, Value::Bytes(spec)) if Fields(spec).any(|field| matches!(field, Ok((2, Value::Bytes([_, ..]))))) => {
                return Err(wrong("it changes texts after decoding, which is not supported"));
            }
            _ => {}
        }
    }
    if pieces.is_empty() {
        return Err(wrong("it has no pieces"));
    }
    Ok(Model { pieces, eos_piece, pad_piece, normalizer })
}

fn read_piece(bytes: &[u8], id: usize) -> Result<Piece, TextError> {
    let mut piece = Piece { text: String::new(), score: 0.0, kind: Kind::Normal };
    for field in Fields(bytes) {
        match field? {
            (1, Value::Bytes(bytes)) => piece.text = text(bytes)?,
            (2, Value::Float(score)) if score.is_finite() => piece.score = score,
            (2, Value::Float(score)) => return Err(wrong(format!("piece {id} has a score of {score}"))),
            (3, Value::Number(kind)) => {
                piece.kind = match kind {
                    1 => Kind::Normal,
                    2 => Kind::Unknown,
                    3 => Kind::Control,
                    5 => Kind::Unused,
                    4 => return Err(wrong("it has symbols defined by a user, which are not supported")),
                    _ => return Err(wrong(format!("piece {id} is of an unknown kind, {kind}"))),
                };
            }
            _ => {}
        }
    }
    Ok(piece)
}

fn read_normalizer(bytes: &[u8]) -> Result<Normalizer, TextError> {
    let mut normalizer = Normalizer::default();
    for field in Fields(bytes) {
        match field? {
            (2, Value::Bytes(map)) => normalizer.set_map(map)?,
            (3, Value::Number(flag)) => normalizer.adds_space = flag != 0,
            (4, Value::Number(flag)) => normalizer.removes_spaces = flag != 0,
            (5, Value::Number(0)) => return Err(wrong("its pieces have plain spaces, which is not supported")),
            _ => {}
        }
    }
    Ok(normalizer)
}
