//! Checkpoints: a run goes on exactly where it was saved, and no file, however broken, does more than give an error.

mod tiny;

use bit_diffusion::{
    checkpoint::{self, CheckpointError, Precision},
    model::{Condition, Denoiser, Input, UNet, UNetConfig},
    rng::Rng,
    train::{Batch, TrainConfig, Trainer},
};
use burn::tensor::Device;

fn config() -> TrainConfig {
    let network = UNetConfig { n_classes: 0, ..tiny::unet(4) };
    TrainConfig { batch_size: 4, learning_rate: 1e-3, n_warmup_steps: 3, seed: 2, ..TrainConfig::new(network) }
}

fn train(trainer: &mut Trainer, n_steps: usize) -> Vec<f32> {
    (0..n_steps)
        .map(|_| {
            // The pictures of a step follow from its own randomness, as they do in a real run.
            let mut rng = trainer.rng();
            let batch = Batch { pixels: (0..64).map(|_| rng.below(4) as u32).collect(), classes: Vec::new() };
            pollster::block_on(trainer.step(&batch)).unwrap().loss
        })
        .collect()
}

fn output(network: &UNet) -> Vec<f32> {
    let x_t = Rng::new(4).normal_tensor(network.state_shape(1), &Device::flex());
    let input = Input { x_pred: x_t.zeros_like(), x_t, gamma: &[0.5], condition: &Condition::None };
    network.forward(input).into_data().try_to_vec().unwrap()
}

fn saved(n_steps: usize) -> Vec<u8> {
    let mut trainer = Trainer::new(config(), &Device::flex()).unwrap();
    train(&mut trainer, n_steps);
    pollster::block_on(checkpoint::save_trainer(&trainer)).unwrap()
}

#[test]
fn a_run_of_2n_steps_equals_n_and_resume_and_n() {
    let mut whole = Trainer::new(config(), &Device::flex()).unwrap();
    let losses = train(&mut whole, 10);
    for n in [0, 5] {
        let mut resumed = checkpoint::load_trainer::<UNetConfig>(&saved(n), &Device::flex()).unwrap();
        assert_eq!(resumed.n_steps(), n);
        assert_eq!(train(&mut resumed, 10 - n), losses[n..], "from step {n}");
        assert_eq!(output(&resumed.averaged()), output(&whole.averaged()), "from step {n}");
        let again = pollster::block_on(checkpoint::save_trainer(&resumed)).unwrap();
        assert_eq!(again, pollster::block_on(checkpoint::save_trainer(&whole)).unwrap(), "from step {n}");
    }
}

#[test]
fn a_network_comes_back_in_either_precision() {
    let mut trainer = Trainer::new(config(), &Device::flex()).unwrap();
    train(&mut trainer, 5);
    let expected = output(&trainer.averaged());
    let load = |bytes: &[u8]| output(&checkpoint::load_network(bytes, &Device::flex()).unwrap());
    let single = pollster::block_on(checkpoint::export(&trainer, Precision::F32)).unwrap();
    let half = pollster::block_on(checkpoint::export(&trainer, Precision::F16)).unwrap();
    assert_eq!(load(&single), expected);
    assert_eq!(load(&saved(5)), expected, "a training checkpoint has the averaged network too");
    // Half floats round by 5e-4 of a weight's size.
    assert!(load(&half).iter().zip(&expected).all(|(a, b)| (a - b).abs() < 5e-3));
    assert!(half.len() < single.len() * 6 / 10, "{} {}", half.len(), single.len());

    let header = checkpoint::inspect(&half).unwrap();
    assert_eq!((header.n_steps, &header.config), (5, &config()));
    assert!(matches!(
        checkpoint::load_trainer::<UNetConfig>(&half, &Device::flex()),
        Err(CheckpointError::NotTraining)
    ));
}

#[test]
fn a_network_is_taken_out_of_a_checkpoint_without_a_device() {
    let trainer = checkpoint::load_trainer::<UNetConfig>(&saved(3), &Device::flex()).unwrap();
    for precision in Precision::ALL {
        let exported = pollster::block_on(checkpoint::export(&trainer, precision)).unwrap();
        assert!(checkpoint::extract(&saved(3), precision).unwrap() == exported, "{precision}");
        assert_eq!(precision.label().parse(), Ok(precision));
    }
    let names: Vec<String> = checkpoint::entries(&saved(3)).unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), 4 * trainer.averaged().parameters().len());
    assert!(names.is_sorted() && names.contains(&"adam.first.input.bias".to_owned()), "{names:?}");
}

/// A safetensors file of another program: for each tensor its name, shape and numbers.
fn foreign(tensors: &[(String, Vec<usize>, Vec<f32>)]) -> Vec<u8> {
    let views = tensors.iter().map(|(name, shape, values)| {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        (name.clone(), shape.clone(), bytes)
    });
    let stored: Vec<_> = views.collect();
    let views = stored.iter().map(|(name, shape, bytes)| {
        (name, safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.clone(), bytes).unwrap())
    });
    safetensors::tensor::serialize(views, None).unwrap()
}

#[test]
fn weights_of_another_program_come_in_by_their_names() {
    let parameters = config().network.init(0, &Device::flex()).unwrap().parameters();
    let mut rng = Rng::new(5);
    let tensors: Vec<_> = parameters
        .into_iter()
        .map(|(name, shape)| {
            let n = shape.iter().product();
            (name, shape, rng.normals(n))
        })
        .collect();
    let import =
        |tensors: &[(String, Vec<usize>, Vec<f32>)]| checkpoint::import(&foreign(tensors), config(), Precision::F32);
    let plain = import(&tensors).unwrap();
    let with_prefix: Vec<_> =
        tensors.iter().map(|(name, shape, values)| (format!("ema.{name}"), shape.clone(), values.clone())).collect();
    assert!(import(&with_prefix).unwrap() == plain, "with or without the prefix");
    assert!(checkpoint::load_network(&plain, &Device::flex()).is_ok());
    assert!(plain.windows(4).any(|bytes| bytes == tensors[0].2[0].to_le_bytes()), "the numbers are those given");
    // Our own files come in too, as does what a run is saved as.
    assert_eq!(
        checkpoint::entries(&checkpoint::import(&saved(2), config(), Precision::F16).unwrap()).unwrap(),
        checkpoint::entries(&checkpoint::extract(&saved(2), Precision::F16).unwrap()).unwrap()
    );

    let error = |tensors: &[(String, Vec<usize>, Vec<f32>)]| import(tensors).unwrap_err().to_string();
    let missing = error(&tensors[1..]);
    assert!(missing.contains(&format!("there is no {}", tensors[0].0)), "{missing}");
    let mut odd = tensors.clone();
    odd.push(("middle.weight".to_owned(), vec![1], vec![0.0]));
    assert!(error(&odd).contains("the network has no middle.weight"), "{}", error(&odd));
    let mut turned = tensors.clone();
    let linear = turned.iter_mut().find(|(_, shape, _)| shape.len() == 2 && shape[0] != shape[1]).unwrap();
    linear.1.reverse();
    assert!(error(&turned).contains("transpose"), "{}", error(&turned));
    let mut broken = tensors;
    broken[3].2[0] = f32::NAN;
    assert!(error(&broken).contains("not a number"), "{}", error(&broken));
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = saved(1);
    // Every offset of the header, then every 97th of the weights.
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    for end in (0..header).chain((header..bytes.len()).step_by(97)) {
        assert!(
            checkpoint::load_trainer::<UNetConfig>(&bytes[..end], &Device::flex()).is_err(),
            "{end} of {} bytes",
            bytes.len()
        );
    }
}

#[test]
fn every_flipped_byte_is_an_error_or_changes_nothing_that_matters() {
    let bytes = saved(1);
    for at in (0..bytes.len()).step_by(211) {
        let mut broken = bytes.clone();
        broken[at] ^= 0x20;
        // A flip in the header may change a name's case or a setting's last digit; weights have a checksum.
        if let Ok(header) = checkpoint::inspect(&broken) {
            assert!(at < 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize, "byte {at}");
            drop(header);
            let _ = checkpoint::load_trainer::<UNetConfig>(&broken, &Device::flex());
        }
    }
}

/// The file with another text in its header, of the same length or not.
fn with_header(bytes: &[u8], change: impl Fn(&str) -> String) -> Vec<u8> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header = change(std::str::from_utf8(&bytes[8..8 + length]).unwrap());
    let mut out = (header.len() as u64).to_le_bytes().to_vec();
    out.extend(header.as_bytes());
    out.extend(&bytes[8 + length..]);
    out
}

#[test]
fn a_file_from_before_data_had_names_is_read() {
    let bytes = saved(1);
    let old = with_header(&bytes, |header| header.replace(r#",\"data\":\"\""#, ""));
    assert_ne!(old.len(), bytes.len());
    assert_eq!(checkpoint::inspect(&old).unwrap(), checkpoint::inspect(&bytes).unwrap());
    assert!(checkpoint::load_trainer::<UNetConfig>(&old, &Device::flex()).is_ok());
}

#[test]
fn foreign_future_and_boastful_files_are_told_apart() {
    let bytes = saved(1);
    let load = |change: &dyn Fn(&str) -> String| {
        checkpoint::load_trainer::<UNetConfig>(&with_header(&bytes, change), &Device::flex())
    };
    let error = |change: &dyn Fn(&str) -> String| load(change).err().expect("this file must not load").to_string();

    assert!(load(&|header| header.to_owned()).is_ok());
    assert!(error(&|header| header.replace("bit-diffusion", "some-program")).contains("not from Bit Diffusion Studio"));
    assert!(error(&|header| header.replace(r#"\"version\":1"#, r#"\"version\":9"#)).contains("format version 9"));
    assert!(error(&|header| header.replace(r#"\"n_steps\":1"#, r#"\"n_steps\":-1"#)).contains("not from"));
    // A network far larger than the file: refused before it is made.
    let boast = error(&|header| header.replace(r#"\"width\":8"#, r#"\"width\":4096"#));
    assert!(boast.contains("more than its"), "{boast}");
    assert!(error(&|header| header.replace(r#"\"n_classes\":0"#, r#"\"n_classes\":99999999999"#)).contains("classes"));
    // A shape that the weights do not have, and settings that make no sense.
    assert!(error(&|header| header.replace(r#"\"width\":8"#, r#"\"width\":4"#)).contains("has shape"));
    assert!(error(&|header| header.replace(r#"\"width\":8"#, r#"\"width\":0"#)).contains("settings"));
    assert!(error(&|header| header.replace("ema.input.weight", "ema.input.height")).contains("damaged"));
    for junk in [&b""[..], b"PNG", &[0xFF; 64]] {
        assert!(checkpoint::load_network(junk, &Device::flex()).is_err());
    }
}
