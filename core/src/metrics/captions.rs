//! How much captions are like those that people wrote: BLEU, ROUGE-L and CIDEr-D.
//!
//! The conventions are those of the COCO evaluation (Chen et al. 2015; Python's `pycocoevalcap`), so that numbers can be compared with
//! published ones, the paper's Tables 3 and 4 among them: words as [`crate::text::ptb`] has them, all candidates scored together.
//!
//! Deliberately absent: METEOR and SPICE, which need databases of synonyms and parsers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::MetricError;
use crate::text::ptb;

/// The longest n-gram that is counted.
const MAX_N: usize = 4;

/// The weight of recall against precision in ROUGE-L.
const ROUGE_BETA: f64 = 1.2;

/// How much a difference in length counts in CIDEr-D.
const CIDER_SIGMA: f64 = 6.0;

/// Keep BLEU finite where nothing matches or there is nothing to match.
const TINY: f64 = 1e-15;
const SMALL: f64 = 1e-9;

/// All scores of a set of candidates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CaptionScores {
    /// BLEU-1 to BLEU-4, from 0 to 1.
    pub bleu: [f64; MAX_N],
    /// CIDEr-D, from 0 to 10; people reach about 0.9.
    pub cider: f64,
    /// ROUGE-L, from 0 to 1.
    pub rouge: f64,
}

/// Every score of candidates, one for each picture, against the captions that people gave that picture.
///
/// A candidate without words scores 0. CIDEr-D weighs words by how few of the pictures have them: with one picture it is 0, and it is only
/// comparable between models on the same pictures.
pub fn caption_scores(candidates: &[String], references: &[Vec<String>]) -> Result<CaptionScores, MetricError> {
    let corpus = Corpus::new(candidates, references)?;
    Ok(CaptionScores { bleu: corpus.bleu(), cider: mean(&corpus.cider_d()), rouge: mean(&corpus.rouge_l()) })
}

/// BLEU-1 to BLEU-4 of all candidates together (Papineni et al. 2002): no smoothing, the reference nearest in length for each, the shorter of
/// two as near.
pub fn bleu(candidates: &[String], references: &[Vec<String>]) -> Result<[f64; MAX_N], MetricError> {
    Ok(Corpus::new(candidates, references)?.bleu())
}

/// CIDEr-D of each candidate (Vedantam et al. 2015): the mean over n-grams of 1 to 4 words of clipped cosines, weighted by the rarity of the
/// n-gram among the pictures' references and by how near the lengths are (σ = 6), times 10. The score of a set is the mean.
pub fn cider_d(candidates: &[String], references: &[Vec<String>]) -> Result<Vec<f64>, MetricError> {
    Ok(Corpus::new(candidates, references)?.cider_d())
}

/// ROUGE-L of each candidate (Lin 2004): the longest common subsequence as precision and recall, the best of each over the references, and
/// their F-measure with β = 1.2. The score of a set is the mean.
pub fn rouge_l(candidates: &[String], references: &[Vec<String>]) -> Result<Vec<f64>, MetricError> {
    Ok(Corpus::new(candidates, references)?.rouge_l())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The words of a caption, as numbers.
type Sentence = Vec<u32>;

/// How often each n-gram of some length appears; in order, so that sums do not depend on how a map is filled.
type Counts<'a> = BTreeMap<&'a [u32], usize>;

/// Candidates and references as numbered words.
struct Corpus {
    pictures: Vec<(Sentence, Vec<Sentence>)>,
}

impl Corpus {
    fn new(candidates: &[String], references: &[Vec<String>]) -> Result<Self, MetricError> {
        let metric = "the score of captions";
        if candidates.len() != references.len() {
            return Err(MetricError::Unpaired { candidates: candidates.len(), references: references.len() });
        }
        if candidates.is_empty() {
            return Err(MetricError::TooFew { metric, needed: 1, of: "candidate", found: 0 });
        }
        if let Some(index) = references.iter().position(Vec::is_empty) {
            return Err(MetricError::NoReferences { index });
        }
        let mut numbers = HashMap::new();
        let mut sentence = |text: &String| -> Sentence {
            let number = |word| {
                let next = numbers.len() as u32;
                *numbers.entry(word).or_insert(next)
            };
            ptb::words(text).into_iter().map(number).collect()
        };
        let pairs = candidates.iter().zip(references);
        let pictures = pairs.map(|(candidate, of)| (sentence(candidate), of.iter().map(&mut sentence).collect()));
        Ok(Self { pictures: pictures.collect() })
    }

    fn bleu(&self) -> [f64; MAX_N] {
        let (mut length, mut reference_length) = (0, 0);
        let mut n_candidate = [0; MAX_N];
        let mut n_correct = [0; MAX_N];
        for (candidate, references) in &self.pictures {
            length += candidate.len();
            let nearest = references.iter().map(Vec::len).min_by_key(|&n| (n.abs_diff(candidate.len()), n));
            reference_length += nearest.unwrap_or(0);
            for n in 1..=MAX_N {
                n_candidate[n - 1] += (candidate.len() + 1).saturating_sub(n);
                // Each n-gram counts as often as the reference with most of it has it.
                let mut most = Counts::new();
                for reference in references {
                    for (gram, count) in count(reference, n) {
                        let most = most.entry(gram).or_default();
                        *most = count.max(*most);
                    }
                }
                let found = count(candidate, n).into_iter();
                n_correct[n - 1] +=
                    found.map(|(gram, count)| count.min(most.get(gram).copied().unwrap_or(0))).sum::<usize>();
            }
        }
        let ratio = (length as f64 + TINY) / (reference_length as f64 + SMALL);
        let brevity = if ratio < 1.0 { (1.0 - 1.0 / ratio).exp() } else { 1.0 };
        let mut product = 1.0;
        std::array::from_fn(|i| {
            product *= (n_correct[i] as f64 + TINY) / (n_candidate[i] as f64 + SMALL);
            product.powf(1.0 / (i + 1) as f64) * brevity
        })
    }

    fn rouge_l(&self) -> Vec<f64> {
        let of_picture = |(candidate, references): &(Sentence, Vec<Sentence>)| {
            let (mut precision, mut recall) = (0.0_f64, 0.0_f64);
            for reference in references {
                let common = common_subsequence(candidate, reference) as f64;
                precision = precision.max(common / candidate.len().max(1) as f64);
                recall = recall.max(common / reference.len().max(1) as f64);
            }
            if precision == 0.0 || recall == 0.0 {
                return 0.0;
            }
            let beta_2 = ROUGE_BETA * ROUGE_BETA;
            (1.0 + beta_2) * precision * recall / (recall + beta_2 * precision)
        };
        self.pictures.iter().map(of_picture).collect()
    }

    fn cider_d(&self) -> Vec<f64> {
        // In how many pictures some reference has the n-gram.
        let mut n_pictures = HashMap::<&[u32], usize>::new();
        for (_, references) in &self.pictures {
            let grams: BTreeSet<&[u32]> =
                references.iter().flat_map(|r| (1..=MAX_N).flat_map(|n| r.windows(n))).collect();
            for gram in grams {
                *n_pictures.entry(gram).or_default() += 1;
            }
        }
        let n_all = (self.pictures.len() as f64).ln();
        let rarity = |gram: &[u32]| n_all - n_pictures.get(gram).map_or(0.0, |&n| (n as f64).ln());
        let of_picture = |(candidate, references): &(Sentence, Vec<Sentence>)| {
            let candidate = Weights::new(candidate, rarity);
            let similarities =
                references.iter().map(|reference| candidate.similarity(&Weights::new(reference, rarity)));
            let sum: f64 = similarities.sum();
            10.0 * sum / references.len() as f64
        };
        self.pictures.iter().map(of_picture).collect()
    }
}

/// The n-grams of a sentence, for each n weighted by count and rarity.
struct Weights<'a> {
    grams: [BTreeMap<&'a [u32], f64>; MAX_N],
    norms: [f64; MAX_N],
    /// How many pairs of words there are, which CIDEr-D takes for the length.
    length: f64,
}

impl<'a> Weights<'a> {
    fn new(sentence: &'a Sentence, rarity: impl Fn(&[u32]) -> f64) -> Self {
        let weights =
            |n| count(sentence, n).into_iter().map(|(gram, count)| (gram, count as f64 * rarity(gram))).collect();
        let grams: [BTreeMap<_, f64>; MAX_N] = std::array::from_fn(|i| weights(i + 1));
        let norms = std::array::from_fn(|i| grams[i].values().map(|weight| weight * weight).sum::<f64>().sqrt());
        Self { grams, norms, length: sentence.len().saturating_sub(1) as f64 }
    }

    /// The mean over n of the clipped cosines, where lengths differ less.
    fn similarity(&self, reference: &Self) -> f64 {
        let difference = self.length - reference.length;
        let nearness = (-difference * difference / (2.0 * CIDER_SIGMA * CIDER_SIGMA)).exp();
        let cosine = |i: usize| {
            let norms = self.norms[i] * reference.norms[i];
            let common =
                self.grams[i].iter().filter_map(|(gram, weight)| Some((weight, reference.grams[i].get(gram)?)));
            let product: f64 = common.map(|(weight, of_reference)| weight.min(*of_reference) * of_reference).sum();
            if norms == 0.0 { 0.0 } else { product / norms }
        };
        (0..MAX_N).map(cosine).sum::<f64>() / MAX_N as f64 * nearness
    }
}

/// How often each n-gram appears.
fn count(sentence: &[u32], n: usize) -> Counts<'_> {
    let mut counts = Counts::new();
    for gram in sentence.windows(n) {
        *counts.entry(gram).or_default() += 1;
    }
    counts
}

/// The length of the longest common subsequence.
fn common_subsequence(left: &[u32], right: &[u32]) -> usize {
    // The lengths for all beginnings of `right`, one more word of `left` a round.
    let mut lengths = vec![0; right.len() + 1];
    for word in left {
        let mut diagonal = 0;
        for (i, other) in right.iter().enumerate() {
            let above = lengths[i + 1];
            lengths[i + 1] = if word == other { diagonal + 1 } else { above.max(lengths[i]) };
            diagonal = above;
        }
    }
    lengths[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    /// The scores of one candidate.
    fn score(candidate: &str, references: &[&str]) -> CaptionScores {
        caption_scores(&strings(&[candidate]), &[strings(references)]).unwrap()
    }

    #[track_caller]
    fn assert_near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-8, "{found}, not {expected}");
    }

    #[test]
    fn bleu_by_hand() {
        // Words: "the" counts twice of three times, as in the first reference. Pairs: "the cat" of two.
        let scores = score("The the the cat.", &["the cat on the mat", "a cat"]);
        assert_near(scores.bleu[0], 3.0 / 4.0 * (1.0_f64 - 5.0 / 4.0).exp());
        assert_near(scores.bleu[1], (3.0_f64 / 4.0 * 1.0 / 3.0).sqrt() * (1.0_f64 - 5.0 / 4.0).exp());
        assert!(scores.bleu[2] < 1e-3, "no three words in common");
        // The lengths 3 and 5 are as near to 4: the shorter counts, and nothing is taken off.
        assert_near(score("a b c d", &["a b c d e", "a b c"]).bleu[0], 1.0);
    }

    #[test]
    fn rouge_by_hand() {
        // "a c" of three words, recall best with the second reference.
        let scores = score("a b c", &["a x y c", "c z"]);
        let (precision, recall) = (2.0 / 3.0, 0.5);
        assert_near(scores.rouge, 2.44 * precision * recall / (recall + 1.44 * precision));
        assert_eq!(common_subsequence(&[1, 2, 3, 2], &[2, 4, 3, 1, 2]), 3);
    }

    #[test]
    fn cider_by_hand() {
        // Two pictures; every word is in one of them, so that all weigh the same. The same caption has cosine 1 for each n.
        let references = [strings(&["a b c d"]), strings(&["e f g h"])];
        let scores = cider_d(&strings(&["a b c d", "e f x y"]), &references).unwrap();
        assert_near(scores[0], 10.0);
        // Of the words 2 of 4, of the pairs 1 of 3; unknown ones have the rarity of those in one picture.
        assert_near(scores[1], 10.0 * (0.5 + 1.0 / 3.0) / 4.0);
        let shorter = cider_d(&strings(&["a b", "e f g h"]), &references).unwrap();
        let nearness = (-4.0_f64 / 72.0).exp();
        assert_near(shorter[0], 10.0 * nearness * (0.5_f64.sqrt() + (1.0_f64 / 3.0).sqrt()) / 4.0);
        assert_near(score("a b c d", &["a b c d"]).cider, 0.0);
    }

    #[test]
    fn captions_without_words_score_nothing() {
        let scores = score("...", &["a dog"]);
        assert!(
            scores.bleu.iter().all(|&bleu| bleu < 1e-3) && scores.rouge == 0.0 && scores.cider == 0.0,
            "{scores:?}"
        );
        assert!(score("a dog", &["", "a dog"]).rouge > 0.99);
        assert!(score("", &[""]).bleu.iter().all(|bleu| bleu.is_finite()));
    }

    #[test]
    fn what_cannot_be_scored_says_why() {
        let one = strings(&["a"]);
        let error = caption_scores(&one, &[]).unwrap_err();
        assert_eq!(error, MetricError::Unpaired { candidates: 1, references: 0 });
        let error = bleu(&strings(&["a", "b"]), &[one.clone(), vec![]]).unwrap_err();
        assert!(error.to_string().contains("picture 1 has no reference"), "{error}");
        assert!(matches!(rouge_l(&[], &[]), Err(MetricError::TooFew { found: 0, .. })));
    }
}
