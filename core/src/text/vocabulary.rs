//! What a captioner knows of its tokens: enough to turn ids into text, or to tell that the tokenizer is the wrong one.

use serde::{Deserialize, Serialize};

use super::{TextError, Tokenizer, Words};

/// The tokens of a captioner, as they are kept with its weights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Vocabulary {
    /// The bytes of the text.
    Bytes,
    /// Words, which travel with the weights.
    Words(Words),
    /// Word pieces of a sentencepiece file, which does not.
    SentencePiece {
        /// The number of pieces.
        n_tokens: usize,
        /// The end of a text.
        eos: u32,
        /// What follows it.
        pad: u32,
        /// Tells the file from others.
        fingerprint: u32,
    },
}

impl Vocabulary {
    /// The vocabulary of a tokenizer.
    #[must_use]
    pub fn of(tokenizer: &Tokenizer) -> Self {
        match tokenizer {
            Tokenizer::Bytes => Self::Bytes,
            Tokenizer::Words(words) => Self::Words(words.clone()),
            Tokenizer::SentencePiece(_) => Self::SentencePiece {
                n_tokens: tokenizer.n_tokens(),
                eos: tokenizer.eos(),
                pad: tokenizer.pad(),
                fingerprint: tokenizer.fingerprint(),
            },
        }
    }

    /// The number of tokens, K.
    #[must_use]
    pub fn n_tokens(&self) -> usize {
        match self {
            Self::Bytes => Tokenizer::Bytes.n_tokens(),
            Self::Words(words) => Tokenizer::Words(words.clone()).n_tokens(),
            Self::SentencePiece { n_tokens, .. } => *n_tokens,
        }
    }

    /// The token that ends a text.
    #[must_use]
    pub fn eos(&self) -> u32 {
        match self {
            Self::Bytes => Tokenizer::Bytes.eos(),
            Self::Words(_) => Words::EOS,
            Self::SentencePiece { eos, .. } => *eos,
        }
    }

    /// The token of all words that the vocabulary lacks, if it has one.
    #[must_use]
    pub fn unknown(&self) -> Option<u32> {
        match self {
            Self::Words(words) => words.unknown(),
            Self::Bytes | Self::SentencePiece { .. } => None,
        }
    }

    /// The tokenizer, if nothing more is needed for it: for a sentencepiece vocabulary its file is.
    #[must_use]
    pub fn tokenizer(&self) -> Option<Tokenizer> {
        match self {
            Self::Bytes => Some(Tokenizer::Bytes),
            Self::Words(words) => Some(Tokenizer::Words(words.clone())),
            Self::SentencePiece { .. } => None,
        }
    }

    /// `Ok` if the tokenizer is the one that the captioner was trained with.
    pub fn check(&self, tokenizer: &Tokenizer) -> Result<(), TextError> {
        if Self::of(tokenizer) == *self { Ok(()) } else { Err(TextError::WrongTokenizer) }
    }
}
