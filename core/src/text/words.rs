//! A small vocabulary of whole words.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{TextError, ptb};
use crate::data::caption;

/// A vocabulary: padding, the end of a text, perhaps a token for every other word, and then the words.
///
/// It serialises to its words and to whether it has that token, and is checked when it is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Words {
    list: Vec<String>,
    others: bool,
    /// The place of each word in the list.
    index: HashMap<String, usize>,
}

/// What a vocabulary consists of.
#[derive(Clone, Serialize, Deserialize)]
struct Parts {
    words: Vec<String>,
    others: bool,
}

impl Words {
    pub(super) const PAD: u32 = 0;
    pub(super) const EOS: u32 = 1;
    const UNKNOWN: u32 = 2;

    /// The words of the shapes' captions; any other is an error.
    #[must_use]
    pub fn shapes() -> Self {
        let parts = Parts { words: caption::WORDS.map(str::to_owned).to_vec(), others: false };
        parts.try_into().expect("the grammar's words are all different")
    }

    /// The most frequent words of captions, at most `max_words`, with a token for all others. Of equally frequent ones, those that come
    /// first in the alphabet.
    pub fn from_corpus<'a>(captions: impl IntoIterator<Item = &'a str>, max_words: usize) -> Result<Self, TextError> {
        let mut counts = HashMap::<String, usize>::new();
        for word in captions.into_iter().flat_map(ptb::words) {
            *counts.entry(word).or_default() += 1;
        }
        let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
        counts.sort_unstable_by(|(a, n), (b, m)| m.cmp(n).then_with(|| a.cmp(b)));
        Parts { words: counts.into_iter().take(max_words).map(|(word, _)| word).collect(), others: true }.try_into()
    }

    /// The words, in the order of their ids.
    #[must_use]
    pub fn words(&self) -> &[String] {
        &self.list
    }

    /// The token of all other words, if there is one.
    pub(super) fn unknown(&self) -> Option<u32> {
        self.others.then_some(Self::UNKNOWN)
    }

    pub(super) fn n_tokens(&self) -> usize {
        self.first() + self.list.len()
    }

    /// The id of the first word.
    fn first(&self) -> usize {
        2 + usize::from(self.others)
    }

    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>, TextError> {
        let id = |word: String| match self.index.get(&word) {
            Some(place) => Ok((self.first() + place) as u32),
            None if self.others => Ok(Self::UNKNOWN),
            None => {
                let some: Vec<&str> = self.list.iter().take(24).map(String::as_str).collect();
                let more = if self.list.len() > some.len() { ", …" } else { "" };
                Err(TextError::UnknownWord { word, known: some.join(", ") + more })
            }
        };
        ptb::words(text).into_iter().map(id).collect()
    }

    pub(super) fn decode(&self, ids: &[u32]) -> String {
        ids.iter().map(|&id| self.piece(id)).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn piece(&self, id: u32) -> &str {
        match (id as usize).checked_sub(self.first()) {
            Some(place) => &self.list[place],
            None => "<unknown>",
        }
    }

    pub(super) fn fingerprint(&self) -> u32 {
        let others = if self.others { "words and others" } else { "words" };
        crc32fast::hash(format!("{others}\n{}", self.list.join("\n")).as_bytes())
    }
}

impl TryFrom<Parts> for Words {
    type Error = TextError;

    fn try_from(Parts { words, others }: Parts) -> Result<Self, TextError> {
        let wrong = |reason: String| Err(TextError::Vocabulary { reason });
        if words.is_empty() {
            return wrong("it has no words".to_owned());
        }
        let mut index = HashMap::with_capacity(words.len());
        for (place, word) in words.iter().enumerate() {
            if word.is_empty() || word.contains(|c: char| c.is_whitespace() || c.is_control() || c.is_uppercase()) {
                return wrong(format!("{word:?} is no single word of lower case"));
            }
            if index.insert(word.clone(), place).is_some() {
                return wrong(format!("it has {word:?} twice"));
            }
        }
        Ok(Self { list: words, others, index })
    }
}

impl From<Words> for Parts {
    fn from(words: Words) -> Self {
        Self { words: words.list, others: words.others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        data::{caption::Caption, shapes::Scene},
        rng::Rng,
        text::Tokenizer,
    };

    #[test]
    fn captions_of_shapes_go_there_and_back() {
        let tokenizer = Tokenizer::Words(Words::shapes());
        assert_eq!(tokenizer.n_tokens(), 26);
        assert_eq!((tokenizer.pad(), tokenizer.eos()), (0, 1));
        let mut rng = Rng::new(1);
        let mut longest = 0;
        for _ in 0..500 {
            let caption = Caption::of(&Scene::random(&mut rng), &mut rng).to_string();
            let ids = tokenizer.encode(&caption).unwrap();
            longest = longest.max(ids.len());
            assert_eq!(tokenizer.decode(&ids).unwrap(), caption);
            let padded = tokenizer.encode_padded(&caption, 20).unwrap();
            assert_eq!(padded.len(), 20);
            assert_eq!(tokenizer.decode(&padded).unwrap(), caption);
        }
        // "a … … above left of a … … and left of a … … on …": one of two others at most is across.
        assert_eq!(longest, 17);
        let error = tokenizer.encode("a pink square").unwrap_err().to_string();
        assert!(error.contains("no word \"pink\"") && error.contains("purple"), "{error}");
        assert_eq!([2, 25].map(|id| tokenizer.piece(id)), ["a", "black"]);
    }

    #[test]
    fn a_corpus_gives_its_most_frequent_words() {
        let captions = ["A dog.", "a cat", "A dog and a cat", "b"];
        let words = Words::from_corpus(captions, 3).unwrap();
        assert_eq!(words.words(), ["a", "cat", "dog"]);
        let tokenizer = Tokenizer::Words(words);
        assert_eq!(tokenizer.n_tokens(), 6);
        let ids = tokenizer.encode("The dog!").unwrap();
        assert_eq!(ids, [2, 5]);
        assert_eq!(tokenizer.decode(&ids).unwrap(), "<unknown> dog");
        assert!(Words::from_corpus([""], 3).is_err() && Words::from_corpus(captions, 0).is_err());
    }

    #[test]
    fn a_vocabulary_is_checked_when_it_is_read() {
        let words = Words::from_corpus(["a dog's"], 3).unwrap();
        let text = serde_json::to_string(&words).unwrap();
        assert_eq!(text, r#"{"words":["'s","a","dog"],"others":true}"#);
        assert_eq!(serde_json::from_str::<Words>(&text).unwrap(), words);
        for (bad, why) in [
            (r#"{"words":[],"others":true}"#, "no words"),
            (r#"{"words":["a","a"],"others":true}"#, "twice"),
            (r#"{"words":["a b"],"others":true}"#, "no single word"),
            (r#"{"words":[""],"others":false}"#, "no single word"),
            (r#"{"words":["A"],"others":false}"#, "no single word"),
        ] {
            let error = serde_json::from_str::<Words>(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
