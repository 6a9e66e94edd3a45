//! What is measured of samples.

use anyhow::{Context as _, Result, bail};
use bit_diffusion::{
    data::Pictures as _,
    metrics::{
        bits::share_near_modes,
        frechet::{Gaussian, Statistics, frechet_distance},
        kid::{KidSettings, kernel_distance},
    },
    model::{
        UNet,
        features::{FeatureNetwork, Features},
    },
    rng::Rng,
};
use burn::tensor::{Device, Tensor, TensorData};

use crate::{
    cli::EvalArguments,
    data::{self, Split},
    sample::shapes_score,
    sheet::Pictures,
};

/// Pictures that the feature network sees at a time.
const FEATURE_BATCH: usize = 32;

/// A number that says how good samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(into = "&'static str")]
pub(super) enum Score {
    /// Pixels whose colour is not of the palette, in percent; shapes only.
    OffPalette,
    /// Pictures that are a scene to the last pixel, in percent; shapes only.
    Scenes,
    /// Analog bits of the last estimate nearer than a tenth of the scale to a mode, in percent.
    NearModes,
    /// The Fréchet distance of a classifier's features to those of the data. Not FID.
    Frechet,
    /// The Fréchet distance of the FID Inception's features to those of the data.
    Fid,
    /// The kernel distance of the features, times 1000.
    Kid,
    /// Captions that are true of their picture, in percent; shapes only.
    True,
    /// Captions that are the very one of the data, in percent; shapes only.
    Exact,
    /// BLEU-4, in percent.
    Bleu4,
    /// CIDEr-D.
    Cider,
    /// ROUGE-L.
    RougeL,
}

impl Score {
    /// The heading of its column.
    pub fn label(self) -> &'static str {
        match self {
            Self::OffPalette => "wrong colours %",
            Self::Scenes => "flawless scenes %",
            Self::NearModes => "bits near a mode %",
            Self::Frechet => "Fréchet (ResNet-56)",
            Self::Fid => "FID",
            Self::Kid => "KID ×1000",
            Self::True => "true %",
            Self::Exact => "exact %",
            Self::Bleu4 => "BLEU-4",
            Self::Cider => "CIDEr-D",
            Self::RougeL => "ROUGE-L",
        }
    }
}

impl From<Score> for &'static str {
    fn from(score: Score) -> Self {
        score.label()
    }
}

/// Measures samples; what depends on the data only is worked out once.
pub(super) struct Scorer {
    /// The name of the data that the model was trained on.
    data: String,
    scale: f64,
    reference: Option<Reference>,
}

/// The data as the feature network sees them.
struct Reference {
    features: Features,
    gaussian: Gaussian,
    vectors: Vec<f32>,
}

impl Scorer {
    /// Reads the feature network and the data, if they are wanted.
    pub fn open(arguments: &EvalArguments, network: &UNet, data: &str, device: &Device) -> Result<Self> {
        let config = network.config();
        let Some(path) = &arguments.features else {
            return Ok(Self { data: data.to_owned(), scale: config.scale, reference: None });
        };
        let Some(folder) = &arguments.data else {
            bail!("features are compared with those of the data; say where the data are, with --data");
        };
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let features =
            FeatureNetwork::load(&bytes, device).with_context(|| format!("cannot use {}", path.display()))?;
        features.accepts([1, config.channels, config.size, config.size])?;
        let mut pictures = data::open(Some(folder), Split::Train, config.size, config.channels)?;
        let n = arguments.reference.min(pictures.n_examples());
        eprintln!("reading {n} pictures of the data…");
        // Spread over all of the data, whatever their order.
        let stride = pictures.n_examples() / n.max(1);
        let mut values = Vec::new();
        for i in 0..n {
            values.extend(pictures.read(i * stride)?.pixels.into_iter().map(u32::from));
        }
        let shape = [config.channels, config.size, config.size];
        let vectors = extract(&features, &values, shape, 255.0, device);
        let gaussian = gaussian(&vectors, features.dim())?;
        let reference = Some(Reference { features, gaussian, vectors });
        Ok(Self { data: data.to_owned(), scale: config.scale, reference })
    }

    /// All scores that apply to these samples and the analog bits they were read from.
    pub fn score(&self, pictures: &Pictures, bits: &[f32], device: &Device) -> Result<Vec<(Score, f64)>> {
        let mut scores = Vec::new();
        if let Some(shapes) = shapes_score(&self.data, pictures) {
            // The one that still tells good models apart comes first: it is the one that is plotted.
            scores.push((Score::Scenes, 100.0 * shapes.scenes));
            scores.push((Score::OffPalette, 100.0 * shapes.off_palette));
        }
        if let Some(Reference { features, gaussian: of_data, vectors: data_vectors }) = &self.reference {
            let shape = [pictures.channels, pictures.size, pictures.size];
            let highest = (pictures.alphabet - 1) as f32;
            let vectors = extract(features, &pictures.values, shape, highest, device);
            let distance = frechet_distance(&gaussian(&vectors, features.dim())?, of_data)?;
            let name = match features.network() {
                FeatureNetwork::FidInception => Score::Fid,
                FeatureNetwork::CifarResNet56 => Score::Frechet,
            };
            scores.push((name, distance));
            let kid = kernel_distance(&vectors, data_vectors, features.dim(), KidSettings::default(), &Rng::new(0))?;
            scores.push((Score::Kid, 1000.0 * kid.mean));
        }
        scores.push((Score::NearModes, 100.0 * share_near_modes(bits, self.scale)?));
        Ok(scores)
    }
}

/// The features of pictures with values from 0 to `highest`.
fn extract(
    features: &Features,
    values: &[u32],
    shape @ [channels, height, width]: [usize; 3],
    highest: f32,
    device: &Device,
) -> Vec<f32> {
    let one: usize = shape.iter().product();
    let mut out = Vec::with_capacity(values.len() / one * features.dim());
    for batch in values.chunks(FEATURE_BATCH * one) {
        let pixels: Vec<f32> = batch.iter().map(|&value| value as f32 * 255.0 / highest).collect();
        let data = TensorData::new(pixels, [batch.len() / one, channels, height, width]);
        out.extend(features.forward(Tensor::from_data(data, device)).into_data().iter::<f32>());
    }
    out
}

fn gaussian(vectors: &[f32], dim: usize) -> Result<Gaussian> {
    let mut statistics = Statistics::new(dim);
    for vector in vectors.chunks_exact(dim) {
        statistics.add(vector)?;
    }
    Ok(statistics.finish()?)
}
