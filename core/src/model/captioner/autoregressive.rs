//! The autoregressive baseline: one token after the other, greedily or by beam search, with keys and values kept from token to token.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData, activation::log_softmax};

use super::{Captioner, Method, transformer::Seen};
use crate::Error;

impl Captioner {
    /// The logits of each next token, all places at once: what training needs.
    ///
    /// # Shapes
    /// - `tokens`: b rows of n token ids; `picture`: as [`Captioner::look`] gives it; output: `[b, n, K]`, of which row i, seeing the
    ///   tokens before i, guesses token i
    pub(crate) fn next_tokens(&self, tokens: &[u32], picture: &Tensor<3>) -> Tensor<3> {
        let [batch, ..] = picture.dims();
        let n = tokens.len() / batch;
        assert!(n > 0 && n <= self.config.length && tokens.len() == batch * n, "{} tokens for {batch}", tokens.len());
        let beginning = self.codec.alphabet() as u32;
        let shifted =
            tokens.chunks_exact(n).flat_map(|row| std::iter::once(beginning).chain(row[..n - 1].iter().copied()));
        let seen = self.picture_of_layers(picture);
        let (x, _) = self.read(&shifted.collect::<Vec<_>>(), batch, 0, None, &seen);
        self.finish(x)
    }

    /// Reads tokens that stand at the places from `first` on, after those that `before` is of.
    fn read(
        &self,
        tokens: &[u32],
        batch: usize,
        first: usize,
        before: Option<Vec<Seen>>,
        picture: &[Seen],
    ) -> (Tensor<3>, Vec<Seen>) {
        let layers = &self.layers;
        let embedding = layers.embedding.as_ref().expect("an autoregressive captioner has one").val();
        let device = embedding.device();
        let n = tokens.len() / batch;
        let ids: Vec<i32> = tokens.iter().map(|&token| token as i32).collect();
        let ids = Tensor::<1, Int>::from_data(TensorData::new(ids, [tokens.len()]), &device);
        let x = embedding.select(0, ids).reshape([batch, n, self.config.width]);
        let mut x = x + layers.positions.val().narrow(0, first, n).unsqueeze::<3>();
        let hidden = (n > 1).then(|| later(n, &device));
        let mut before = before.map(Vec::into_iter);
        let mut seen = Vec::new();
        for (layer, picture) in layers.layers.iter().zip(picture) {
            let before = before.as_mut().and_then(Iterator::next);
            let (next, kept) = layer.forward(x, before, picture.clone(), hidden.clone());
            x = next;
            seen.push(kept);
        }
        (x, seen)
    }
}

/// `[n, n]`, true where a column comes after its row.
fn later(n: usize, device: &Device) -> Tensor<2, Bool> {
    let values: Vec<bool> = (0..n * n).map(|i| i % n > i / n).collect();
    Tensor::from_data(TensorData::new(values, [n, n]), device)
}

/// A caption so far.
#[derive(Debug, Clone, PartialEq)]
struct Draft {
    tokens: Vec<u32>,
    /// The probability of each, when it was chosen.
    probabilities: Vec<f32>,
    /// The logarithm of its probability.
    score: f64,
    is_ended: bool,
}

impl Draft {
    /// The score a token: long captions are not worse for being long.
    fn mean_score(&self) -> f64 {
        self.score / self.tokens.len().max(1) as f64
    }
}

/// A caption that was written, without its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The token ids.
    pub tokens: Vec<u32>,
    /// The probability of each, when it was chosen.
    pub probabilities: Vec<f32>,
}

/// Captions under way, of the autoregressive captioner.
pub struct Writing {
    captioner: Captioner,
    /// What each layer sees of the pictures, and of the tokens so far; a row for each draft.
    picture: Vec<Seen>,
    before: Option<Vec<Seen>>,
    /// For each picture the best drafts, the best first; as many as the beam is wide.
    drafts: Vec<Vec<Draft>>,
    n_tokens: usize,
    device: Device,
}

impl Writing {
    /// The widest beam.
    pub const MAX_BEAM: usize = 64;

    /// Begins a caption for each picture; a `beam` of 1 is greedy.
    ///
    /// # Shapes
    /// - `picture`: as [`Captioner::look`] gives it
    pub fn new(captioner: &Captioner, picture: &Tensor<3>, beam: usize) -> Result<Self, Error> {
        if captioner.config.method != Method::Autoregressive {
            return Err(Error::argument("captioner", captioner.config.method.label(), "an autoregressive one"));
        }
        if !(1..=Self::MAX_BEAM).contains(&beam) {
            return Err(Error::argument("beam", beam, format!("from 1 to {}", Self::MAX_BEAM)));
        }
        let [batch, n, width] = picture.dims();
        // Each picture once for each of its drafts.
        let rows =
            picture.clone().unsqueeze_dim::<4>(1).expand([batch, beam, n, width]).reshape([batch * beam, n, width]);
        let empty = Draft { tokens: Vec::new(), probabilities: Vec::new(), score: 0.0, is_ended: false };
        // All drafts but the first would only repeat it.
        let never = Draft { score: f64::NEG_INFINITY, ..empty.clone() };
        let first: Vec<Draft> = (0..beam).map(|i| if i == 0 { empty.clone() } else { never.clone() }).collect();
        Ok(Self {
            picture: captioner.picture_of_layers(&rows),
            before: None,
            drafts: vec![first; batch],
            n_tokens: 0,
            device: picture.device(),
            captioner: captioner.clone(),
        })
    }

    /// How many tokens have been written, which is how many times the network was run.
    #[must_use]
    pub fn n_tokens(&self) -> usize {
        self.n_tokens
    }

    /// Whether every caption is at its end.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        let is_ended = |drafts: &Vec<Draft>| drafts.iter().all(|draft| draft.is_ended || draft.score.is_infinite());
        self.n_tokens == self.captioner.config.length || self.drafts.iter().all(is_ended)
    }

    /// The best caption of each picture so far, without its end.
    #[must_use]
    pub fn captions(&self) -> Vec<Written> {
        let end = self.captioner.config.vocabulary.eos();
        let best = |drafts: &Vec<Draft>| {
            let best = drafts.iter().max_by(|a, b| a.mean_score().total_cmp(&b.mean_score()));
            let Draft { tokens, probabilities, .. } = best.expect("a beam has drafts");
            let n = tokens.iter().position(|token| *token == end).unwrap_or(tokens.len());
            Written { tokens: tokens[..n].to_vec(), probabilities: probabilities[..n].to_vec() }
        };
        self.drafts.iter().map(best).collect()
    }

    /// Writes one more token of every caption, running the network once. Does nothing once they are finished.
    ///
    /// Asynchronous because reading numbers back from a GPU is, in a browser.
    pub async fn step(&mut self) -> Result<(), Error> {
        if self.is_finished() {
            return Ok(());
        }
        let beginning = self.captioner.codec.alphabet() as u32;
        let last = self.drafts.iter().flatten().map(|draft| draft.tokens.last().copied().unwrap_or(beginning));
        let last: Vec<u32> = last.collect();
        let (x, seen) = self.captioner.read(&last, last.len(), self.n_tokens, self.before.take(), &self.picture);
        let scores = log_softmax(self.captioner.finish(x), 2);
        let scores: Vec<f32> =
            scores.into_data_async().await.map_err(Error::readback)?.try_to_vec().map_err(Error::readback)?;
        self.n_tokens += 1;

        let end = self.captioner.config.vocabulary.eos();
        let k = self.captioner.codec.alphabet();
        let mut rows = Vec::new();
        let per_picture = self.drafts[0].len();
        for (i, drafts) in self.drafts.iter_mut().enumerate() {
            let first_row = i * per_picture;
            let chosen = extend(drafts, &scores[first_row * k..(first_row + per_picture) * k], end);
            rows.extend(chosen.iter().map(|(from, _)| (first_row + from) as i32));
            *drafts = chosen.into_iter().map(|(_, draft)| draft).collect();
        }
        let rows = Tensor::<1, Int>::from_data(TensorData::new(rows.clone(), [rows.len()]), &self.device);
        self.before = Some(seen.into_iter().map(|seen| seen.select(rows.clone())).collect());
        Ok(())
    }
}

/// The best ways to go on: which draft each comes from, and what it is then. `scores` has K numbers a draft.
fn extend(drafts: &[Draft], scores: &[f32], end: u32) -> Vec<(usize, Draft)> {
    let k = scores.len() / drafts.len();
    let mut ways: Vec<(usize, Option<u32>, f64)> = Vec::new();
    for (from, draft) in drafts.iter().enumerate() {
        if draft.is_ended {
            ways.push((from, None, draft.score));
        } else if draft.score.is_finite() {
            let scores = scores[from * k..(from + 1) * k].iter().enumerate();
            ways.extend(scores.map(|(token, score)| (from, Some(token as u32), draft.score + f64::from(*score))));
        }
    }
    let n = drafts.len().min(ways.len());
    // Equal scores go to the earlier draft and the lower token, on every device.
    let order = |a: &(usize, Option<u32>, f64), b: &(usize, Option<u32>, f64)| {
        b.2.total_cmp(&a.2).then(a.0.cmp(&b.0)).then(a.1.cmp(&b.1))
    };
    if n < ways.len() {
        ways.select_nth_unstable_by(n - 1, order);
        ways.truncate(n);
    }
    ways.sort_by(order);
    let draft = |(from, token, score): (usize, Option<u32>, f64)| {
        let mut tokens = drafts[from].tokens.clone();
        // An ended caption stays as it is; its row goes on with its end, which nobody reads.
        tokens.extend(token);
        let mut probabilities = drafts[from].probabilities.clone();
        probabilities.extend(token.map(|_| (score - drafts[from].score).exp() as f32));
        (from, Draft { tokens, probabilities, score, is_ended: token.is_none_or(|token| token == end) })
    };
    let mut chosen: Vec<(usize, Draft)> = ways.into_iter().map(draft).collect();
    // Where there are fewer ways than drafts, the rest is never chosen.
    chosen.resize(
        drafts.len(),
        (0, Draft { tokens: Vec::new(), probabilities: Vec::new(), score: f64::NEG_INFINITY, is_ended: false }),
    );
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beam_finds_what_greed_misses() {
        // Three tokens, of which 2 is the end. Greed takes 0 (0.6) and then the best of bad ways (0.4): 0.24 in all; 1 (0.4) and then the
        // end (0.9) is 0.36.
        let ln = |values: [f32; 3]| values.map(f32::ln);
        let start = vec![
            Draft { tokens: Vec::new(), probabilities: Vec::new(), score: 0.0, is_ended: false },
            Draft { tokens: Vec::new(), probabilities: Vec::new(), score: f64::NEG_INFINITY, is_ended: false },
        ];
        let first = extend(&start, &[ln([0.6, 0.4, 1e-9]), ln([1.0, 1.0, 1.0])].concat(), 2);
        let drafts: Vec<Draft> = first.iter().map(|(_, draft)| draft.clone()).collect();
        assert_eq!([&drafts[0].tokens, &drafts[1].tokens], [&vec![0], &vec![1]]);
        let second = extend(&drafts, &[ln([0.3, 0.3, 0.4]), ln([0.05, 0.05, 0.9])].concat(), 2);
        assert_eq!((second[0].0, &second[0].1.tokens), (1, &vec![1, 2]));
        assert!(second[0].1.is_ended && (second[0].1.score.exp() - 0.36).abs() < 1e-6);
        assert_eq!((second[1].0, &second[1].1.tokens), (0, &vec![0, 2]));
        // What is ended stays.
        let drafts: Vec<Draft> = second.into_iter().map(|(_, draft)| draft).collect();
        let third = extend(&drafts, &[0.0; 6], 2);
        assert_eq!(third[0].1, drafts[0]);
    }
}
