//! The feature networks against PyTorch, `golden/features_reference.py`, whose results are in `golden/features.json`; and files that
//! are no feature networks.
//!
//! Tolerances: the reference is in f64. Here some 50 layers in f32 follow one another, each of which rounds by 6e-8 of its terms, and
//! batch normalisation is folded into the weights: 1e-5 of a feature's own size would do, but features are also sums of
//! larger terms that cancel. Hence 1e-4 of a number's size and 1e-5 of the largest. What is easily mistaken in these networks (the
//! padding of average pools, the last pool, the corners of the resizing) changes features by far more; that was tried.

mod generated;

use bit_diffusion::model::features::{FeatureError, FeatureNetwork, Features};
use burn::tensor::Device;
use generated::{Shapes, Tensors, assert_close, file, pictures, tensors};
use serde::Deserialize;

/// What PyTorch made of two pictures, and the shapes of the weights that it made it with.
#[derive(Deserialize)]
struct Case {
    name: String,
    size: usize,
    features: Vec<f32>,
    logits: Vec<f32>,
    #[serde(flatten)]
    shapes: Shapes,
}

fn case(network: FeatureNetwork) -> Case {
    let cases: Vec<Case> = serde_json::from_str(include_str!("golden/features.json")).unwrap();
    cases.into_iter().find(|case| case.name == network.label()).unwrap()
}

fn check(network: FeatureNetwork) -> Features {
    let case = case(network);
    let features = FeatureNetwork::load(&file(&tensors(&case.shapes)), &Device::flex()).unwrap();
    assert_eq!((features.network(), features.dim()), (network, network.dim()));
    let output = features.forward(pictures(case.size));
    assert_eq!(output.dims(), [2, features.dim()]);
    let logits: Vec<f32> =
        features.logits(output.clone()).map_or(vec![], |logits| logits.into_data().try_to_vec().unwrap());
    assert_close("logits", &logits, &case.logits);
    // The script wrote every few features of each picture.
    let every = 2 * features.dim() / case.features.len();
    let output: Vec<f32> = output.into_data().try_to_vec().unwrap();
    let some: Vec<f32> = output.into_iter().step_by(every).collect();
    assert_close("features", &some, &case.features);
    features
}

#[test]
fn resnet_56_agrees_with_pytorch() {
    let features = check(FeatureNetwork::CifarResNet56);
    let error = features.accepts([1, 3, 16, 16]).unwrap_err();
    assert!(error.to_string().contains("takes colour pictures of 32 × 32"), "{error}");
    assert!(features.accepts([1, 1, 32, 32]).is_err() && features.accepts([0, 3, 32, 32]).is_err());
}

#[test]
fn the_inception_agrees_with_pytorch_fid() {
    let features = check(FeatureNetwork::FidInception);
    assert!(features.accepts([1, 3, 7, 500]).is_ok() && features.accepts([1, 1, 32, 32]).is_err());
}

fn error(tensors: &Tensors) -> FeatureError {
    FeatureNetwork::load(&file(tensors), &Device::flex()).expect_err("this file must not load")
}

#[test]
fn broken_weights_are_named() {
    let good = tensors(&case(FeatureNetwork::CifarResNet56).shapes);
    let after = |change: &dyn Fn(&mut Tensors)| {
        let mut tensors = good.clone();
        change(&mut tensors);
        error(&tensors).to_string()
    };
    let message = after(&|tensors| drop(tensors.remove("layer2.3.bn1.bias")));
    assert!(message.contains("no layer2.3.bn1.bias, which a CIFAR-10 ResNet-56 needs"), "{message}");
    let message = after(&|tensors| drop(tensors.insert("linear.bias".to_owned(), (vec![100], vec![0.0; 100]))));
    assert!(message.contains("linear.bias has shape [100], but must have [10]"), "{message}");
    let message = after(&|tensors| tensors.get_mut("conv1.weight").unwrap().1[5] = f32::NAN);
    assert!(message.contains("conv1.weight has NaN as its number 5"), "{message}");
    let message = after(&|tensors| tensors.get_mut("bn1.running_var").unwrap().1[2] = -1.0);
    assert!(message.contains("bn1.running_var has a negative variance"), "{message}");
    // What a converted file has besides is left alone.
    let mut more = good.clone();
    more.insert("bn1.num_batches_tracked".to_owned(), (vec![], vec![7.0]));
    assert!(FeatureNetwork::load(&file(&more), &Device::flex()).is_ok());
}

#[test]
fn other_networks_and_other_files_are_told_apart() {
    let load = |bytes: &[u8]| FeatureNetwork::load(bytes, &Device::flex()).expect_err("this file must not load");
    let none = Tensors::new();
    assert!(error(&none).to_string().contains("the file has no tensors"));
    let other = Tensors::from([("module.conv1.weight".to_owned(), (vec![1], vec![0.0]))]);
    assert!(matches!(error(&other), FeatureError::Unknown { .. }));
    // A PyTorch file is a zip archive.
    for junk in [&b""[..], b"PK\x03\x04 and so on", &[0xFF; 64]] {
        assert!(load(junk).to_string().contains("bench/features_to_safetensors.py"));
    }

    // torchvision's Inception has the same names; its features are not those of the FID.
    let mark = ("Mixed_7c.branch_pool.conv.weight".to_owned(), (vec![1], vec![0.0]));
    let with = |name: &str, shape: Vec<usize>| {
        let n = shape.iter().product();
        error(&Tensors::from([mark.clone(), (name.to_owned(), (shape, vec![0.0; n]))]))
    };
    for (name, shape) in [("fc.weight", vec![1000, 2048]), ("AuxLogits.fc.bias", vec![2]), ("x", vec![1])] {
        let error = with(name, shape);
        assert!(matches!(error, FeatureError::OtherInception { .. }), "{error}");
    }
    assert!(matches!(with("fc.weight", vec![1008, 2048]), FeatureError::Missing { .. }));
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = file(&tensors(&case(FeatureNetwork::CifarResNet56).shapes));
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    for end in (0..header).step_by(41).chain((header..bytes.len()).step_by(100_003)).chain([bytes.len() - 1]) {
        let loaded = FeatureNetwork::load(&bytes[..end], &Device::flex());
        assert!(matches!(loaded, Err(FeatureError::Unreadable(_))), "{end} of {} bytes", bytes.len());
    }
}
