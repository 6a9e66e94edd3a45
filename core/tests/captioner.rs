//! The captioner: against its PyTorch twin, `golden/captioner_twin.py`, whose results are in `golden/captioner.json`; learning, writing,
//! saving.
//!
//! Tolerances: those of the U-Net, for the same reasons.

mod twin;

use std::ops::ControlFlow;

use bit_diffusion::{
    checkpoint::{self, CheckpointError, Precision},
    data::CaptionedShapes,
    model::{
        Captioner, CaptionerConfig, Condition, Denoiser, Eye, Input, Method, Output, Padding, Writing,
        features::EncoderConfig,
    },
    objective::Loss,
    rng::Rng,
    sampler::{Chain, Settings, State},
    text::{Tokenizer, Vocabulary, Words},
    train::{CaptionBatch, CaptionData, Draw, Event, Kind, Network as _, Plan, Run, TrainConfig, Trainer, loss},
};
use burn::{
    module::Module as _,
    tensor::{Device, Tensor},
};
use serde::Deserialize;
use twin::{Fill, Sums};

#[derive(Deserialize)]
struct Case {
    name: String,
    n_parameters: usize,
    output: Vec<f32>,
    loss: f32,
    gradients: Vec<[f32; 2]>,
}

fn config(method: Method) -> CaptionerConfig {
    let vocabulary = Vocabulary::SentencePiece { n_tokens: 6, eos: 1, pad: 0, fingerprint: 0 };
    let eye = Eye::convolutions(8, &[8, 12]);
    CaptionerConfig {
        method,
        length: 5,
        width: 16,
        n_layers: 2,
        n_heads: 2,
        dropout: 0.0,
        ..CaptionerConfig::paper(vocabulary, eye)
    }
}

/// Bit diffusion that learns which token each is, rather than its bits.
fn cross_entropy() -> CaptionerConfig {
    CaptionerConfig {
        output: Output::SoftmaxFactorised,
        loss: Loss::SoftmaxCrossEntropy,
        ..config(Method::BitDiffusion)
    }
}

fn run_of(network: CaptionerConfig) -> TrainConfig<CaptionerConfig> {
    let batch_size = 2;
    TrainConfig {
        batch_size,
        micro_batch_size: batch_size,
        learning_rate: 3e-3,
        n_warmup_steps: 10,
        ema_decay: 0.9,
        class_dropout: 0.0,
        flips: false,
        seed: 2,
        ..TrainConfig::new(network)
    }
}

/// Two captions, of which the first ends early.
const TOKENS: [u32; 10] = [2, 3, 1, 0, 0, 5, 4, 3, 2, 1];

fn pictures(device: &Device) -> Tensor<4> {
    Rng::new(4).normal_tensor([2, 3, 8, 8], device)
}

fn batch() -> CaptionBatch {
    CaptionBatch { inputs: Rng::new(4).normals(2 * 3 * 8 * 8), taught: Vec::new(), tokens: TOKENS.to_vec() }
}

#[test]
fn it_agrees_with_its_pytorch_twin() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("golden/captioner.json")).unwrap();
    assert_eq!(cases.len(), 4);
    let device = Device::flex().autodiff();
    for case in cases {
        let network = match case.name.as_str() {
            "linear" => config(Method::BitDiffusion),
            "softmax" => CaptionerConfig { output: Output::SoftmaxFactorised, ..config(Method::BitDiffusion) },
            "cross-entropy" => cross_entropy(),
            _ => config(Method::Autoregressive),
        };
        let mut net = network.init(0, &device).unwrap();
        net.layers = net.layers.map(&mut Fill { rng: Rng::new(5) });
        assert_eq!(net.layers.num_params(), case.n_parameters, "{}", case.name);

        let loss = if network.method == Method::Autoregressive {
            let config = run_of(network);
            let mut pieces = net.pieces(&config, &batch(), &mut Rng::new(0), &device).unwrap();
            net.loss(&config, pieces.remove(0).1, &mut Rng::new(0)).unwrap()
        } else {
            let shape = net.state_shape(2);
            let input = Input {
                x_t: Rng::new(1).normal_tensor(shape, &device),
                x_pred: Rng::new(2).normal_tensor(shape, &device).clamp(-1.0, 1.0),
                gamma: &[0.3, 0.9],
                condition: &net.prepare(Condition::picture(net.look(pictures(&device)).unwrap())),
            };
            let x_0 = match network.loss {
                Loss::SoftmaxCrossEntropy => net.codec().encode_tensor(&TOKENS, [2, 1, 5], &device).unwrap(),
                _ => Rng::new(3).normal_tensor(shape, &device).sign(),
            };
            let values: Vec<f32> = net.forward(input.clone()).into_data().try_to_vec().unwrap();
            assert_eq!(values.len(), case.output.len());
            for (i, (got, expected)) in values.iter().zip(&case.output).enumerate() {
                assert!((got - expected).abs() < 1e-4, "{}: output {i} is {got}, not {expected}", case.name);
            }
            net.losses(input, x_0.clone(), x_0).mean()
        };
        let gradients = loss.backward();
        let value: f32 = loss.into_scalar();
        assert!((value - case.loss).abs() < 1e-4 * case.loss, "{}: loss {value}, not {}", case.name, case.loss);
        let mut sums = Sums { gradients: &gradients, sums: Vec::new() };
        net.layers.visit(&mut sums);
        assert_eq!(sums.sums.len(), case.gradients.len());
        for (i, (got, expected)) in sums.sums.iter().zip(&case.gradients).enumerate() {
            let size = expected[1].max(1e-3);
            for k in 0..2 {
                let difference = (got[k] - expected[k]).abs();
                assert!(difference < 1e-3 * size, "{}: parameter {i}: {got:?} {expected:?}", case.name);
            }
        }
    }
}

fn train(trainer: &mut Trainer<CaptionerConfig>, n_steps: usize) -> Vec<f32> {
    (0..n_steps).map(|_| pollster::block_on(trainer.step(&batch())).unwrap().loss).collect()
}

/// The captions of the two pictures: by ten steps of bit diffusion, or by writing.
fn captions(net: &Captioner, beam: usize) -> Vec<u32> {
    let device = Device::flex();
    let picture = net.look(pictures(&device)).unwrap();
    if net.config().method == Method::BitDiffusion {
        let settings = Settings { n_steps: 10, td: 2.0, ..Settings::default() };
        let state = State::from_seed(net.state_shape(2), 1, &device);
        let mut chain = Chain::new(settings, Condition::picture(picture), state).unwrap();
        let bits = chain.run(net, |_| ControlFlow::Continue(())).unwrap();
        return net.codec().decode_tensor(bits).unwrap().into_data().iter::<u32>().collect();
    }
    let mut writing = Writing::new(net, &picture, beam).unwrap();
    while !writing.is_finished() {
        pollster::block_on(writing.step()).unwrap();
    }
    let written = writing.captions();
    assert!(written.iter().all(|one| one.probabilities.iter().all(|p| (0.0..=1.0 + 1e-6).contains(p))));
    let padded = written.into_iter().flat_map(|one| {
        let mut row = one.tokens;
        row.push(1);
        row.resize(5, 0);
        row.truncate(5);
        row
    });
    padded.collect()
}

#[test]
fn two_captions_are_learned_by_heart() {
    for network in [config(Method::BitDiffusion), config(Method::Autoregressive), cross_entropy()] {
        let (method, output) = (network.method, network.output);
        for padding in [Padding::Learned, Padding::Ignored] {
            let network = CaptionerConfig { padding, ..network.clone() };
            // Each of the two at eight noise levels a step.
            let config = TrainConfig { batch_size: 16, micro_batch_size: 16, ..run_of(network) };
            let CaptionBatch { inputs, taught, tokens } = batch();
            let batch = CaptionBatch { inputs: inputs.repeat(8), taught, tokens: tokens.repeat(8) };
            let mut trainer = Trainer::new(config, &Device::flex()).unwrap();
            let mut step = || pollster::block_on(trainer.step(&batch)).unwrap().loss;
            let losses: Vec<f32> = (0..300).map(|_| step()).collect();
            assert!(
                losses[299] < 0.2 * losses[0],
                "{method:?} {output:?} {padding:?}: {} → {}",
                losses[0],
                losses[299]
            );
            let net = trainer.averaged();
            for beam in [1, 3] {
                let mut found = captions(&net, beam);
                if padding == Padding::Ignored {
                    // What follows the end was not learned.
                    found[3..5].fill(0);
                }
                assert_eq!(found, TOKENS, "{method:?} {output:?} {padding:?}, beam {beam}");
            }
        }
    }
}

#[test]
fn an_eye_learns_to_see_what_its_teacher_sees() {
    let teacher = EncoderConfig::of_grid(2, 112);
    let eye = Eye::Convolutions { size: 8, widths: vec![8, 112], stride: 2, teacher };
    let network = CaptionerConfig { eye, ..config(Method::BitDiffusion) };
    let run = TrainConfig { flips: true, ..run_of(network) };
    // Features that are the same left and right, as what is mirrored must be learned too.
    let taught: Vec<f32> = Rng::new(6).normals(2 * 112 * 2).into_iter().flat_map(|value| [value; 2]).collect();
    let batch = CaptionBatch { taught, ..batch() };
    let mut trainer = Trainer::new(run.clone(), &Device::flex()).unwrap();
    let losses: Vec<f32> = (0..200).map(|_| pollster::block_on(trainer.step(&batch)).unwrap().loss).collect();
    // Without its teacher it would end near the loss of the captions alone; at first the teacher's part is 1 and more.
    assert!(losses[0] > 1.8 && losses[199] < 0.6, "{} → {}", losses[0], losses[199]);
    let untaught = CaptionBatch { taught: Vec::new(), ..batch };
    assert!(pollster::block_on(trainer.step(&untaught)).is_err(), "the teacher is missing");
}

/// A denoiser that always says 0: its loss is the mean square of the data.
struct Silent;

impl Denoiser<3> for Silent {
    fn forward(&self, input: Input<'_, 3>) -> Tensor<3> {
        input.x_t.zeros_like()
    }

    fn accepts(&self, _: [usize; 3], _: &Condition) -> Result<(), bit_diffusion::Error> {
        Ok(())
    }
}

#[test]
fn what_has_no_weight_does_not_count() {
    let device = Device::flex();
    // Two captions of one bit and three tokens, the second shorter by two.
    let x_0 = Tensor::<3>::from_floats([[[1.0, 2.0, 3.0]], [[4.0, 100.0, 100.0]]], &device);
    let weight = Tensor::<3>::from_floats([[[1.0, 1.0, 1.0]], [[1.0, 0.0, 0.0]]], &device);
    let draw = Draw { eps: x_0.zeros_like(), gamma: vec![0.5; 2], n_self_cond: 1 };
    let value: f32 = loss(&Silent, x_0, &Condition::None, &draw, Some(weight)).unwrap().into_scalar();
    assert!((value - (1.0 + 4.0 + 9.0 + 16.0) / 4.0).abs() < 1e-5, "{value}");
}

#[test]
fn a_run_goes_on_exactly_and_a_captioner_comes_back() {
    for method in Method::ALL {
        let mut whole = Trainer::new(run_of(config(method)), &Device::flex()).unwrap();
        let losses = train(&mut whole, 6);
        let mut half = Trainer::new(run_of(config(method)), &Device::flex()).unwrap();
        train(&mut half, 3);
        let bytes = pollster::block_on(checkpoint::save_trainer(&half)).unwrap();
        let mut resumed: Trainer<CaptionerConfig> = checkpoint::load_trainer(&bytes, &Device::flex()).unwrap();
        assert_eq!(train(&mut resumed, 3), losses[3..], "{method:?}");

        assert_eq!(checkpoint::kind(&bytes).unwrap(), Kind::Captions);
        assert_eq!(checkpoint::inspect_captioner(&bytes).unwrap().n_steps, 3);
        let small = checkpoint::extract(&bytes, Precision::F32).unwrap();
        let loaded = checkpoint::load_captioner(&small, &Device::flex()).unwrap();
        assert_eq!(captions(&loaded, 1), captions(&half.averaged(), 1), "{method:?}");
        let error = checkpoint::load_network(&small, &Device::flex()).unwrap_err();
        assert!(matches!(error, CheckpointError::Kind { found: Kind::Captions, wanted: Kind::Pictures }), "{error}");
        for end in [0, 8, 100, small.len() / 2, small.len() - 1] {
            assert!(checkpoint::load_captioner(&small[..end], &Device::flex()).is_err(), "{end} bytes");
        }
    }
}

#[test]
fn a_run_on_shapes_writes_sheets_of_captions() {
    let words = Tokenizer::Words(Words::shapes());
    let eye = Eye::convolutions(16, &[8, 8]);
    for method in Method::ALL {
        let network = CaptionerConfig {
            method,
            length: 20,
            width: 16,
            n_layers: 1,
            n_heads: 2,
            ..CaptionerConfig::paper(Vocabulary::of(&words), eye.clone())
        };
        let trainer = Trainer::new(run_of(network), &Device::flex()).unwrap();
        let sheet = Settings { n_steps: 3, ..Settings::default() };
        let plan = Plan { n_steps: 2, save_every: 0, sheet_every: 2, sheet_size: 3, sheet };
        let mut run = Run::new(trainer, plan, &Device::flex()).unwrap();
        let mut data =
            CaptionData { pictures: Box::new(CaptionedShapes::train(0)), tokenizer: words.clone(), features: None };
        let mut sheets = Vec::new();
        while let Some(event) = pollster::block_on(run.next(&mut data)).unwrap() {
            if let Event::Sheet(tokens) = event {
                sheets.push(tokens);
            }
        }
        assert_eq!(sheets.len(), 1, "{method:?}");
        assert_eq!(sheets[0].len(), 3 * 20, "{method:?}");
        for row in sheets[0].chunks_exact(20) {
            words.decode(row).unwrap();
        }
    }
}

/// What is worked out once for a chain against what is worked out at every step, of all pictures and of one, with and without guidance.
#[test]
fn what_a_chain_prepares_changes_nothing() {
    let device = Device::flex().autodiff();
    let mut net = config(Method::BitDiffusion).init(0, &device).unwrap();
    net.layers = net.layers.map(&mut Fill { rng: Rng::new(5) });
    let plain = Condition::picture(net.look(pictures(&device)).unwrap());
    let [x_t, x_pred] = [1, 2].map(|seed| Rng::new(seed).normal_tensor(net.state_shape(2), &device));
    let estimate = |condition: &Condition, from: usize, n: usize| -> Vec<f32> {
        let [x_t, x_pred] = [&x_t, &x_pred].map(|tensor| tensor.clone().narrow(0, from, n));
        let estimate = net.estimate(Input { x_t, x_pred, gamma: &[0.4, 0.4][..n], condition });
        estimate.into_data().try_to_vec().unwrap()
    };
    let prepared = net.prepare(plain.clone());
    let both = estimate(&plain, 0, 2);
    assert_eq!(estimate(&prepared, 0, 2), both);
    assert_eq!(estimate(&prepared.narrow(1, 1), 1, 1), estimate(&plain.narrow(1, 1), 1, 1));
    assert_ne!(estimate(&net.prepare(plain.null()), 0, 2), both, "the picture matters");

    let settings = Settings { n_steps: 1, guidance: 1.5, ..Settings::default() };
    let mut chain = Chain::new(settings, plain.clone(), State::new(x_t.clone(), 1)).unwrap();
    let guided: Vec<f32> = chain.step(&net).unwrap().unwrap().x_pred.into_data().try_to_vec().unwrap();
    let gamma = [settings.schedule.gamma(1.0); 2];
    let run = |condition: &Condition| {
        net.estimate(Input { x_t: x_t.clone(), x_pred: x_t.zeros_like(), gamma: &gamma, condition })
    };
    let twin = (run(&plain).mul_scalar(1.5) - run(&plain.null()).mul_scalar(0.5)).clamp(-1.0, 1.0);
    for (got, expected) in guided.iter().zip(twin.into_data().try_to_vec::<f32>().unwrap()) {
        assert!((got - expected).abs() < 1e-5, "{got}, not {expected}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let device = Device::flex();
    let net = config(Method::BitDiffusion).init(0, &device).unwrap();
    let picture = net.look(pictures(&device)).unwrap();
    let error = net.accepts([2, 3, 5], &Condition::None).unwrap_err().to_string();
    assert!(error.contains("picture"), "{error}");
    assert!(net.accepts([2, 3, 4], &Condition::picture(picture.clone())).is_err());
    assert!(net.accepts([1, 3, 5], &Condition::picture(picture.clone())).is_err(), "one state, two pictures");
    assert!(net.accepts([2, 3, 5], &Condition::picture(picture.clone())).is_ok());
    assert!(net.look(Tensor::zeros([1, 3, 8, 4], &device)).is_err());
    assert!(net.look_at_pixels(&[0; 100], &device).is_err());
    assert!(Writing::new(&net, &picture, 1).is_err(), "bit diffusion does not write");
    let writer = config(Method::Autoregressive).init(0, &device).unwrap();
    assert!(Writing::new(&writer, &picture, 0).is_err());
    assert!(writer.accepts([2, 3, 5], &Condition::picture(picture)).is_err());
    for network in [
        CaptionerConfig { n_heads: 3, ..config(Method::BitDiffusion) },
        CaptionerConfig { length: 0, ..config(Method::BitDiffusion) },
        CaptionerConfig { width: 6, ..config(Method::BitDiffusion) },
        CaptionerConfig { dropout: 1.0, ..config(Method::BitDiffusion) },
        CaptionerConfig { eye: Eye::convolutions(7, &[4, 4]), ..config(Method::BitDiffusion) },
        CaptionerConfig { encoding: bit_diffusion::bits::Encoding::Continuous, ..config(Method::BitDiffusion) },
    ] {
        assert!(network.validate().is_err(), "{network:?}");
    }
}
