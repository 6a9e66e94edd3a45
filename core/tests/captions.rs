//! Scores of captions against `pycocoevalcap`, `golden/captions_reference.py`, whose results are in `golden/captions.json`.
//!
//! Tolerance: both sides are in f64 and differ in the order of sums of a few thousand terms only: 1e-12 leaves room for that, and
//! 1e-6 is what was promised.

use bit_diffusion::{
    metrics::captions::{caption_scores, cider_d, rouge_l},
    text::ptb,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    captions: Vec<Vec<String>>,
    /// What Stanford's tokenizer finds in each, separated by spaces.
    words: Vec<Vec<String>>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    bleu: [f64; 4],
    cider: f64,
    rouge: f64,
    /// Of the first pictures.
    ciders: Vec<f64>,
    rouges: Vec<f64>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden/captions.json")).unwrap()
}

#[track_caller]
fn assert_near(name: &str, found: &[f64], expected: &[f64]) {
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-12, "{name}: {found}, pycocoevalcap has {expected}");
    }
}

#[test]
fn words_agree_with_stanfords_tokenizer() {
    let golden = golden();
    let captions = golden.captions.iter().flatten();
    assert_eq!(captions.clone().count(), 1285);
    for (caption, words) in captions.zip(golden.words.iter().flatten()) {
        assert_eq!(ptb::words(caption).join(" "), *words, "{caption:?}");
    }
}

#[test]
fn scores_agree_with_pycocoevalcap() {
    let Golden { captions, cases, .. } = golden();
    let four: Vec<Vec<String>> = captions.iter().map(|texts| texts[..4].to_vec()).collect();
    let fifth: Vec<String> = captions.iter().map(|texts| texts[4].clone()).collect();
    assert_eq!(cases.len(), 3);
    for case in cases {
        let (candidates, references) = match case.name.as_str() {
            "held out" => (fifth.clone(), &four),
            "shuffled" => {
                let mut candidates: Vec<String> = captions.iter().map(|texts| texts[0].clone()).collect();
                candidates.rotate_left(1);
                (candidates, &captions)
            }
            "cut" => {
                let five = |text: &String| text.split_whitespace().take(5).collect::<Vec<_>>().join(" ");
                (fifth.iter().map(five).collect(), &four)
            }
            other => panic!("{other}"),
        };
        let scores = caption_scores(&candidates, references).unwrap();
        assert_near(&case.name, &scores.bleu, &case.bleu);
        assert_near(&case.name, &[scores.cider, scores.rouge], &[case.cider, case.rouge]);
        assert_eq!((case.ciders.len(), case.rouges.len()), (8, 8));
        assert_near(&case.name, &cider_d(&candidates, references).unwrap(), &case.ciders);
        assert_near(&case.name, &rouge_l(&candidates, references).unwrap(), &case.rouges);
    }
}
