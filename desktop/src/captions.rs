//! Captioned pictures and tokenizers by the paths and names that people type.
//!
//! Deliberately absent: how captions are made and scored.

use std::{
    fs::{self, File},
    path::Path,
};

use anyhow::{Context as _, Result, bail};
use bit_diffusion::{
    data::{CaptionedPictures, CaptionedShapes, coco::Coco, shapes},
    experiment::CaptionPreset,
    model::{CaptionerConfig, Eye, features::TokenCache},
    text::{SentencePiece, Tokenizer, Vocabulary, Words},
    train::{CaptionData, ReadFeatures},
};

use crate::{captioned::open_coco, cli::CaptionDataArguments, data::Split};

/// The vocabulary of a preset with these data: what `--tokenizer` says, or else what the preset is meant for.
pub(crate) fn vocabulary(
    preset: CaptionPreset,
    arguments: &CaptionDataArguments,
    data: Option<&Path>,
) -> Result<Vocabulary> {
    let of_data = |max_words: usize| -> Result<Vocabulary> {
        let Some(folder) = data else {
            return Ok(Vocabulary::Words(Words::shapes()));
        };
        let coco = open_coco(folder, Split::Train, shapes::SIZE)?;
        let mut captions = Vec::new();
        for index in 0..coco.n_examples() {
            captions.extend_from_slice(coco.captions(index)?);
        }
        Ok(Vocabulary::Words(Words::from_corpus(captions.iter().map(String::as_str), max_words)?))
    };
    match &arguments.tokenizer {
        Some(name) if name.as_os_str() == "bytes" => Ok(Vocabulary::Bytes),
        Some(name) if name.as_os_str() == "words" => of_data(preset.max_words().unwrap_or(4_096)),
        Some(file) => Ok(Vocabulary::of(&read_sentencepiece(file)?)),
        None => match (preset.max_words(), preset.usual_vocabulary()) {
            (Some(max_words), _) => of_data(max_words),
            (None, Vocabulary::SentencePiece { .. }) => {
                bail!("this run needs a tokenizer; give a sentencepiece file with --tokenizer FILE.model")
            }
            (None, vocabulary) => Ok(vocabulary),
        },
    }
}

/// The tokenizer of a vocabulary; one of word pieces needs its file.
pub(crate) fn tokenizer(vocabulary: &Vocabulary, arguments: &CaptionDataArguments) -> Result<Tokenizer> {
    let given =
        arguments.tokenizer.as_ref().filter(|name| !["words", "bytes"].iter().any(|word| name.as_os_str() == *word));
    let tokenizer = match (vocabulary.tokenizer(), given) {
        (_, Some(file)) => read_sentencepiece(file)?,
        (Some(tokenizer), None) => tokenizer,
        (None, None) => {
            bail!("this captioner writes word pieces; give its sentencepiece file with --tokenizer FILE.model")
        }
    };
    vocabulary.check(&tokenizer)?;
    Ok(tokenizer)
}

fn read_sentencepiece(file: &Path) -> Result<Tokenizer> {
    let bytes = fs::read(file).with_context(|| format!("cannot read the tokenizer {}", file.display()))?;
    let model = SentencePiece::from_bytes(&bytes).with_context(|| format!("in {}", file.display()))?;
    Ok(Tokenizer::SentencePiece(model))
}

/// Opens the data for a captioner; no folder means the shapes world.
pub(crate) fn open(
    arguments: &CaptionDataArguments,
    folder: Option<&Path>,
    split: Split,
    network: &CaptionerConfig,
) -> Result<CaptionData> {
    let tokenizer = tokenizer(&network.vocabulary, arguments)?;
    // An eye that takes features sees no pixels: any size will do.
    let size = if let Eye::Convolutions { size, .. } = network.eye { size } else { shapes::SIZE };
    let mut features = None;
    let pictures: Box<dyn CaptionedPictures> = match folder {
        None if size == shapes::SIZE => Box::new(match split {
            Split::Train => CaptionedShapes::train(shapes::SEEDS[0]),
            Split::Test => CaptionedShapes::test(shapes::SEEDS[1]),
        }),
        None => bail!("the captioner sees {size} × {size} pixels, the shapes have fewer; name a folder with --data"),
        Some(folder) => {
            let coco = open_coco(folder, split, size)?;
            // Nobody teaches while captions are tested.
            let is_needed = split == Split::Train || matches!(network.eye, Eye::Features { .. });
            if let Some([channels, side, _]) = network.eye.features_shape().filter(|_| is_needed) {
                let Some(file) = &arguments.features else {
                    bail!(
                        "this captioner sees features, or learns to; make them with `bit-diffusion features` and give them with --features"
                    )
                };
                features = Some(open_features(file, &coco, side, channels)?);
            }
            Box::new(coco)
        }
    };
    if folder.is_none() && network.eye.features_shape().is_some() {
        bail!("this captioner sees features of pictures in a folder; name it with --data");
    }
    Ok(CaptionData { pictures, tokenizer, features })
}

/// The features in a file, if they are those of these pictures and of the right shape.
fn open_features(file: &Path, coco: &Coco<File>, side: usize, channels: usize) -> Result<ReadFeatures> {
    let name = file.display().to_string();
    let source = File::open(file).with_context(|| format!("cannot open {name}"))?;
    let mut cache = TokenCache::open(source, &name)?;
    let info = cache.info();
    if info.data != coco.fingerprint() || info.n_examples != coco.n_examples() {
        bail!(
            "these are the features of other pictures; make those of this folder with `bit-diffusion features`: {name}"
        );
    }
    let found = (info.encoder.n_tokens(), info.encoder.channels());
    if found != (side * side, channels) {
        bail!(
            "a picture has {} tokens of {} features there, but the captioner sees {} of {channels}; make them with other --size and \
             --layer: {name}",
            found.0,
            found.1,
            side * side
        );
    }
    Ok(Box::new(move |index| cache.read(index)))
}
