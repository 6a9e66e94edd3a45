//! The image encoder against PyTorch, `golden/encoder_reference.py`, whose results are in `golden/encoder.json`; and files that are none.
//!
//! Tolerances as for the feature networks (`features.rs`): the reference is in f64, here 50 layers in f32 follow one another. Padding on the
//! wrong side, PyTorch's epsilon, or a plain `ReLU` changes tokens by far more; that was tried.

mod generated;

use bit_diffusion::model::features::{EncoderConfig, EncoderLayer, FeatureError, ImageEncoder};
use burn::tensor::Device;
use generated::{Shapes, Tensors, assert_close, file, pictures, tensors};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
    #[serde(flatten)]
    shapes: Shapes,
}

/// What PyTorch made of two pictures.
#[derive(Deserialize)]
struct Case {
    from: usize,
    size: usize,
    layer: EncoderLayer,
    shape: [usize; 3],
    /// Every 37th channel of each token.
    values: Vec<f32>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden/encoder.json")).unwrap()
}

fn load(tensors: &Tensors, size: usize, layer: EncoderLayer) -> Result<ImageEncoder, FeatureError> {
    ImageEncoder::load(&file(tensors), EncoderConfig { size, layer }, &Device::flex())
}

#[test]
fn tokens_agree_with_pytorch() {
    let Golden { cases, shapes } = golden();
    let tensors = tensors(&shapes);
    assert_eq!(cases.len(), 2 * EncoderLayer::ALL.len());
    for Case { from, size, layer, shape, values } in cases {
        let encoder = load(&tensors, size, layer).unwrap();
        let config = encoder.config();
        assert_eq!(shape, [2, config.n_tokens(), config.channels()]);
        let tokens = encoder.forward(pictures(from));
        assert_eq!(tokens.dims(), shape);
        let tokens: Vec<f32> = tokens.into_data().try_to_vec().unwrap();
        let some: Vec<f32> = tokens.chunks(shape[2]).flat_map(|token| token.iter().step_by(37).copied()).collect();
        assert_close(&format!("{from} to {size}, {}", layer.label()), &some, &values);
    }
}

#[test]
fn files_that_are_no_encoder_say_why() {
    let good = tensors(&golden().shapes);
    let message = |tensors: &Tensors, layer| load(tensors, 32, layer).unwrap_err().to_string();
    let mut without_head = good.clone();
    without_head.remove("_conv_head.weight");
    assert!(load(&without_head, 32, EncoderLayer::Last).is_ok(), "what is not needed need not be there");
    let missing = message(&without_head, EncoderLayer::Head);
    assert!(missing.contains("no _conv_head.weight, which a pretrained EfficientNet-lite0 needs"), "{missing}");
    let mut other = good.clone();
    other.insert("_blocks.3._depthwise_conv.weight".to_owned(), (vec![144, 1, 3, 3], vec![0.0; 144 * 9]));
    let shape = message(&other, EncoderLayer::Sixteenth);
    assert!(shape.contains("_blocks.3._depthwise_conv.weight has shape [144, 1, 3, 3]"), "{shape}");
    for size in [0, 897] {
        assert!(matches!(load(&good, size, EncoderLayer::Last), Err(FeatureError::EncoderSize { .. })), "{size}");
    }
    let bytes = file(&good);
    for end in (0..bytes.len()).step_by(1_000_003) {
        let config = EncoderConfig { size: 32, layer: EncoderLayer::Last };
        let loaded = ImageEncoder::load(&bytes[..end], config, &Device::flex());
        assert!(matches!(loaded, Err(FeatureError::Unreadable(_))), "{end} of {} bytes", bytes.len());
    }
}
