//! The sentencepiece tokenizer against sentencepiece's own code, `golden/text_reference.py`, whose results are in `golden/text.json`; and
//! files that are no models.
//!
//! Ids are compared exactly. The two large models are not in the repository: they are looked for in the folder that
//! `BIT_DIFFUSION_DATA` names, else in `../shared/data` beside the repository. Without them that test says that it was skipped.

use std::{
    collections::BTreeSet,
    env, fs,
    io::{self, Write as _},
    path::PathBuf,
};

use bit_diffusion::text::{SentencePiece, TextError, Tokenizer};
use proptest::prelude::*;
use serde::Deserialize;

const TINY: &[u8] = include_bytes!("golden/tiny.spm.model");

#[derive(Deserialize)]
struct Golden {
    pieces: Vec<String>,
    tiny: Vec<Case>,
    random: Vec<Random>,
    /// A caption, its ids with T5's model, and its ids with C4's.
    captions: Vec<(String, Vec<u32>, Vec<u32>)>,
}

#[derive(Deserialize)]
struct Case {
    text: String,
    ids: Vec<u32>,
    decoded: String,
}

#[derive(Deserialize)]
struct Random {
    ids: Vec<u32>,
    decoded: String,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden/text.json")).unwrap()
}

fn tokenizer(bytes: &[u8]) -> Result<Tokenizer, TextError> {
    SentencePiece::from_bytes(bytes).map(Tokenizer::SentencePiece)
}

#[test]
fn a_tiny_model_gives_the_ids_of_sentencepiece() {
    let (golden, tiny) = (golden(), tokenizer(TINY).unwrap());
    assert_eq!((tiny.n_tokens(), tiny.pad(), tiny.eos()), (200, 0, 1));
    for (id, piece) in (0..).zip(&golden.pieces).skip(2) {
        assert_eq!(tiny.piece(id), *piece);
    }
    assert_eq!([0, 1, 200].map(|id| tiny.piece(id)), ["<pad>", "<end>", "<no token 200>"]);
    assert_eq!(golden.tiny.len(), 120);
    for Case { text, ids, decoded } in &golden.tiny {
        assert_eq!(tiny.encode(text).unwrap(), *ids, "{text:?}");
        assert_eq!(tiny.decode(ids).unwrap(), *decoded, "{text:?}");
        let padded = tiny.encode_padded(text, 80).unwrap();
        assert_eq!(padded.len(), 80);
        assert_eq!(tiny.decode(&padded).unwrap(), *decoded, "{text:?}");
    }
    assert_eq!(golden.random.len(), 100);
    for Random { ids, decoded } in &golden.random {
        // Ours stops at the end and at padding, which sentencepiece passes over.
        if !ids.iter().any(|&id| id < 2) {
            assert_eq!(tiny.decode(ids).unwrap(), *decoded, "{ids:?}");
        }
    }
    let error = tiny.encode_padded("a red square", 4).unwrap_err();
    assert_eq!(error, TextError::TooLong { found: 5, length: 4 });
    assert_eq!(tiny.decode(&[200]), Err(TextError::Id { id: 200, n_tokens: 200 }));
}

fn large_model(name: &str) -> Option<Vec<u8>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = env::var_os("BIT_DIFFUSION_DATA").map_or(root.join("shared/data"), PathBuf::from);
    fs::read(folder.join(name)).ok()
}

#[test]
fn a_thousand_captions_have_the_ids_of_sentencepiece() {
    let captions = golden().captions;
    assert_eq!(captions.len(), 1000);
    let models = [("t5-32k.spm.model", 32_000, [0, 1]), ("c4-32768.spm.model", 32_768, [0, 2])];
    for (i, (name, n_tokens, [pad, eos])) in models.into_iter().enumerate() {
        let Some(bytes) = large_model(name) else {
            // Past the test harness, which keeps what a test prints to itself.
            writeln!(io::stderr(), "text: SKIPPED, there is no {name}; set BIT_DIFFUSION_DATA to its folder").unwrap();
            continue;
        };
        let model = tokenizer(&bytes).unwrap();
        assert_eq!((model.n_tokens(), model.pad(), model.eos()), (n_tokens, pad, eos));
        for (caption, t5, c4) in &captions {
            let ids = model.encode(caption).unwrap();
            assert_eq!(ids, *[t5, c4][i], "{name}: {caption:?}");
            // One caption in 70 has two spaces together, or a space at its end; all else comes back as it was.
            let plain: Vec<&str> = caption.split_whitespace().collect();
            assert_eq!(model.decode(&model.encode_padded(caption, 64).unwrap()).unwrap(), plain.join(" "), "{name}");
        }
        // Where padding is the unknown token, only what stands at the end is padding.
        let unknown = model.encode_padded("a \u{72AC} dog", 16).unwrap();
        assert_eq!(model.decode(&unknown).unwrap(), "a  \u{2047}  dog");
    }
}

#[test]
fn models_that_cannot_be_used_say_why() {
    let message = |bytes: &[u8]| tokenizer(bytes).unwrap_err().to_string();
    assert!(message(b"").contains("no pieces"));
    assert!(message(b"PK\x03\x04 and so on").contains("no protocol buffer"));
    // A piece: field 1 of the model, with its text (field 1) and its kind (field 3).
    let piece = |text: &str, kind: u8| {
        let text = [&[0x0A, text.len() as u8], text.as_bytes(), &[0x18, kind]].concat();
        [&[0x0A, text.len() as u8], text.as_slice()].concat()
    };
    // A field of the trainer (field 2 of the model).
    let trainer = |field: &[u8]| [&[0x12, field.len() as u8], field].concat();
    let good = [piece("<pad>", 3), piece("</s>", 3), piece("<unk>", 2), piece("a", 1)].concat();
    assert!(tokenizer(&good).is_ok());
    let with = |more: Vec<u8>| message(&[good.clone(), more].concat());
    assert!(with(piece("a", 1)).contains("the piece \"a\" twice"));
    assert!(with(piece("<unk>", 2)).contains("twice"));
    assert!(with(piece("", 1)).contains("piece 4 has 0 bytes"));
    assert!(with(piece("b", 4)).contains("defined by a user"));
    assert!(with(piece("<0x00>", 6)).contains("unknown kind, 6"));
    assert!(with(trainer(&[0x18, 2])).contains("another type than unigram"));
    assert!(with(trainer(&[0x98, 0x02, 1])).contains("byte fallback"));
    assert!(message(&[piece("<unk>", 2), piece("a", 1)].concat()).contains("no piece \"</s>\""));
    assert!(message(&[piece("</s>", 3), piece("<unk>", 2), piece("a", 1)].concat()).contains("would be the padding"));
    assert!(message(&[piece("</s>", 3), piece("a", 1)].concat()).contains("no unknown piece"));
}

#[test]
fn files_that_are_cut_off_are_errors() {
    let kept: BTreeSet<usize> = (0..TINY.len()).filter(|&end| tokenizer(&TINY[..end]).is_ok()).collect();
    // The pieces come first, so that a file that ends between two of them is a smaller model; it never ends inside one.
    assert!(kept.len() < golden().pieces.len() + 10, "{} lengths of {}", kept.len(), TINY.len());
}

proptest! {
    #[test]
    fn any_changes_are_an_error_or_a_model(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        text in "\\PC{0,20}",
    ) {
        let mut bytes = TINY.to_vec();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(model) = tokenizer(&bytes) {
            let ids = model.encode(&text).unwrap();
            prop_assert!(ids.iter().all(|&id| (id as usize) < model.n_tokens()));
            model.decode(&ids).unwrap();
        }
    }

    #[test]
    fn any_text_is_tokens(text in any::<String>()) {
        let model = tokenizer(TINY).unwrap();
        let ids = model.encode(&text).unwrap();
        // What has no unknown characters is the same when it is read back and encoded again.
        if !ids.contains(&2) {
            let decoded = model.decode(&ids).unwrap();
            prop_assert_eq!(model.encode(&decoded).unwrap(), ids);
        }
    }
}
