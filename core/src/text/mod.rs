//! Tokenizers: text ↔ token ids.
//!
//! Every tokenizer has an alphabet of K tokens, so that a token is `⌈log₂ K⌉` analog bits like any other symbol ([`crate::bits`]). A
//! text of fixed length is its tokens, the token that ends it, and padding. [`ptb`] has the words that captions are scored by.
//!
//! Deliberately absent: a token that begins a text (a model that needs one has a vector for it), bits, and the file system.

pub mod ptb;
mod sentencepiece;
mod vocabulary;
mod words;

pub use sentencepiece::SentencePiece;
pub use vocabulary::Vocabulary;
pub use words::Words;

/// Why a text cannot be tokens, or tokens no text; says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// More tokens than fit.
    #[error("the text has {found} tokens with the one that ends it, but the model takes {length}; shorten it")]
    TooLong {
        /// How many there are.
        found: usize,
        /// How many there may be.
        length: usize,
    },
    /// Not the tokenizer that a model was trained with.
    #[error("this is not the tokenizer that the model was trained with; give the file that it was trained with")]
    WrongTokenizer,
    /// A word of no vocabulary.
    #[error("the vocabulary has no word {word:?}; its words are {known}")]
    UnknownWord {
        /// The word.
        word: String,
        /// Some words that it has.
        known: String,
    },
    /// A character that stands for something else.
    #[error("the text has the control character {byte} (at byte {offset}), which ends or pads a text here; remove it")]
    Control {
        /// The character.
        byte: u8,
        /// Where.
        offset: usize,
    },
    /// An id of no token.
    #[error("there is no token {id}: the vocabulary has {n_tokens}; use the tokenizer that the model was trained with")]
    Id {
        /// The id.
        id: u32,
        /// How many tokens there are.
        n_tokens: usize,
    },
    /// A list of words that is no vocabulary.
    #[error("this is no vocabulary: {reason}")]
    Vocabulary {
        /// What is wrong with it.
        reason: String,
    },
    /// A file that is no sentencepiece model, or one that is not understood.
    #[error(
        "this is no sentencepiece model that can be used: {reason}; give a .model file of type unigram, such as T5's"
    )]
    Model {
        /// What is wrong with it.
        reason: String,
    },
}

/// What turns a text into token ids and back.
#[derive(Debug, Clone)]
pub enum Tokenizer {
    /// The bytes of UTF-8: 8 bits a token, no vocabulary. The character NUL pads, ETX (end of text) ends.
    Bytes,
    /// The words of a small vocabulary.
    Words(Words),
    /// Pieces of words, from a sentencepiece model.
    SentencePiece(SentencePiece),
}

impl Tokenizer {
    /// NUL, which pads bytes.
    const NUL: u8 = 0;

    /// End of text, which ends bytes.
    const ETX: u8 = 3;

    /// K, the number of tokens; every id is below it.
    #[must_use]
    pub fn n_tokens(&self) -> usize {
        match self {
            Self::Bytes => 256,
            Self::Words(words) => words.n_tokens(),
            Self::SentencePiece(model) => model.n_tokens(),
        }
    }

    /// The token that ends a text.
    #[must_use]
    pub fn eos(&self) -> u32 {
        match self {
            Self::Bytes => u32::from(Self::ETX),
            Self::Words(_) => Words::EOS,
            Self::SentencePiece(model) => model.eos(),
        }
    }

    /// The token that fills up what is left after the end: 0, but for a sentencepiece model that has its own elsewhere.
    #[must_use]
    pub fn pad(&self) -> u32 {
        match self {
            Self::Bytes => u32::from(Self::NUL),
            Self::Words(_) => Words::PAD,
            Self::SentencePiece(model) => model.pad(),
        }
    }

    /// The tokens of a text, without its end.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TextError> {
        match self {
            Self::Bytes => match text.bytes().position(|byte| matches!(byte, Self::NUL | Self::ETX)) {
                Some(offset) => Err(TextError::Control { byte: text.as_bytes()[offset], offset }),
                None => Ok(text.bytes().map(u32::from).collect()),
            },
            Self::Words(words) => words.encode(text),
            Self::SentencePiece(model) => Ok(model.encode(text)),
        }
    }

    /// Exactly `length` tokens: those of a text, its end, and padding.
    pub fn encode_padded(&self, text: &str, length: usize) -> Result<Vec<u32>, TextError> {
        let mut ids = self.encode(text)?;
        ids.push(self.eos());
        if ids.len() > length {
            return Err(TextError::TooLong { found: ids.len(), length });
        }
        ids.resize(length, self.pad());
        Ok(ids)
    }

    /// The same of a text that may be too long: then it is cut off, and ends.
    pub fn encode_cut(&self, text: &str, length: usize) -> Result<Vec<u32>, TextError> {
        let mut ids = self.encode(text)?;
        ids.truncate(length.saturating_sub(1));
        ids.push(self.eos());
        ids.resize(length, self.pad());
        Ok(ids)
    }

    /// The text of tokens, up to the first that ends or pads it; bytes that are no UTF-8 become `�`.
    ///
    /// Where padding is also the unknown token (a sentencepiece model without a padding token), it only counts as padding at the end.
    pub fn decode(&self, ids: &[u32]) -> Result<String, TextError> {
        let n_tokens = self.n_tokens();
        if let Some(&id) = ids.iter().find(|&&id| id as usize >= n_tokens) {
            return Err(TextError::Id { id, n_tokens });
        }
        let (pad, eos) = (self.pad(), self.eos());
        let end = ids.iter().position(|&id| id == eos).unwrap_or(ids.len());
        let ids = &ids[..end];
        let end = match self {
            Self::SentencePiece(model) if model.unknown() == pad => {
                ids.iter().rposition(|&id| id != pad).map_or(0, |last| last + 1)
            }
            _ => ids.iter().position(|&id| id == pad).unwrap_or(ids.len()),
        };
        let ids = &ids[..end];
        Ok(match self {
            Self::Bytes => {
                let bytes: Vec<u8> = ids.iter().map(|&id| id as u8).collect();
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Self::Words(words) => words.decode(ids),
            Self::SentencePiece(model) => model.decode(ids),
        })
    }

    /// One token as a person reads it: `▁dog` (the bar is the space before a word), `a`, `<end>`, `<pad>`; `<…>` if there is none.
    #[must_use]
    pub fn piece(&self, id: u32) -> String {
        if id == self.eos() {
            return "<end>".to_owned();
        }
        if id == self.pad() {
            return "<pad>".to_owned();
        }
        if id as usize >= self.n_tokens() {
            return format!("<no token {id}>");
        }
        match self {
            Self::Bytes => match id as u8 {
                byte @ (b'!'..=b'~') => char::from(byte).to_string(),
                b' ' => "▁".to_owned(),
                byte => format!("<0x{byte:02X}>"),
            },
            Self::Words(words) => words.piece(id).to_owned(),
            Self::SentencePiece(model) => model.piece(id).to_owned(),
        }
    }

    /// A checksum of the vocabulary, by which a model can tell that it was given another tokenizer.
    #[must_use]
    pub fn fingerprint(&self) -> u32 {
        match self {
            Self::Bytes => crc32fast::hash(b"bytes"),
            Self::Words(words) => words.fingerprint(),
            Self::SentencePiece(model) => model.fingerprint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_there_and_back() {
        let bytes = Tokenizer::Bytes;
        assert_eq!(bytes.encode("aé").unwrap(), [97, 0xC3, 0xA9]);
        let padded = bytes.encode_padded("aé", 6).unwrap();
        assert_eq!(padded, [97, 0xC3, 0xA9, 3, 0, 0]);
        assert_eq!(bytes.decode(&padded).unwrap(), "aé");
        // A model may leave out the end, or write on after it, or break a character.
        assert_eq!(bytes.decode(&[97, 0, 98]).unwrap(), "a");
        assert_eq!(bytes.decode(&[97, 3, 98]).unwrap(), "a");
        assert_eq!(bytes.decode(&[97, 0xC3, 98]).unwrap(), "a\u{FFFD}b");
        assert_eq!(
            [97, 32, 9, 3, 0, 256].map(|id| bytes.piece(id)),
            ["a", "▁", "<0x09>", "<end>", "<pad>", "<no token 256>"]
        );
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let bytes = Tokenizer::Bytes;
        let error = bytes.encode_padded("a dog", 5).unwrap_err().to_string();
        assert!(error.contains("6 tokens") && error.contains("takes 5"), "{error}");
        assert!(bytes.encode_padded("a dog", 6).is_ok());
        assert_eq!(bytes.encode_cut("a dog", 4).unwrap(), [97, 32, 100, 3]);
        assert!(bytes.encode_padded("", 0).is_err());
        assert_eq!(bytes.encode("a\u{3}"), Err(TextError::Control { byte: 3, offset: 1 }));
        assert!(bytes.encode("\0").is_err());
        assert_eq!(bytes.decode(&[97, 3, 256]), Err(TextError::Id { id: 256, n_tokens: 256 }), "after the end too");
    }

    #[test]
    fn fingerprints_differ() {
        let shapes = Tokenizer::Words(Words::shapes());
        let other = Tokenizer::Words(Words::from_corpus(["a dog"], 10).unwrap());
        assert_eq!(shapes.fingerprint(), Tokenizer::Words(Words::shapes()).fingerprint());
        assert_ne!(shapes.fingerprint(), other.fingerprint());
        assert_ne!(shapes.fingerprint(), Tokenizer::Bytes.fingerprint());
    }
}
