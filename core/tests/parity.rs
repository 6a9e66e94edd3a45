//! The CPU against the GPU: the same numbers on `flex` and on `wgpu`, on tiny shapes, on whatever adapter there is (a software
//! one will do: Debian's `mesa-vulkan-drivers`). Without an adapter the test says that it was skipped.
//!
//! Tolerance: both are f32, but sums run in another order and a GPU's `exp` may be off by a few units in the last place. 1e-5 covers
//! one evaluation; whole chains get 1e-4, ten times the CPU's own tolerance against f64.

mod tiny;

use std::{io::Write as _, ops::ControlFlow};

use bit_diffusion::{
    bits::{Codec, Encoding},
    model::{Condition, Denoiser as _, ExactDenoiser, Input},
    objective::{Loss, Objective},
    rng::Rng,
    sampler::{Chain, Sampler, Settings, State},
    self_cond::SelfCond,
    train::{Batch, TrainConfig, Trainer},
};
use burn::tensor::{Device, Int, Tensor, wgpu::WgpuInitError};

/// The GPU, or `None`; says which on standard error itself, which the test harness does not hide.
fn gpu() -> Option<Device> {
    let (device, word) = match Device::wgpu_options().init_with_setup() {
        Ok((device, setup)) => {
            let info = setup.adapter.get_info();
            (Some(device), format!("on {} ({:?}, {:?})", info.name, info.device_type, info.backend))
        }
        Err(error @ WgpuInitError::AdapterUnavailable { .. }) => {
            (None, format!("SKIPPED, there is no graphics driver, not even mesa-vulkan-drivers ({error})"))
        }
        Err(error) => panic!("there is a graphics driver, but it does not work: {error}"),
    };
    writeln!(std::io::stderr(), "parity: {word}").expect("standard error is open");
    device
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().unwrap()
}

fn symbols<const D: usize>(tensor: Tensor<D, Int>) -> Vec<u32> {
    tensor.into_data().iter::<u32>().collect()
}

#[track_caller]
fn assert_close(cpu: &[f32], gpu: &[f32], tolerance: f32, what: &str) {
    assert_eq!(cpu.len(), gpu.len(), "{what}");
    for (i, (c, g)) in cpu.iter().zip(gpu).enumerate() {
        assert!((c - g).abs() <= tolerance, "{what}: element {i} is {c} on the CPU, {g} on the GPU");
    }
}

/// One test, because a process has one wgpu device and its tensors belong to one thread.
#[test]
fn cpu_and_gpu_agree() {
    let Some(gpu) = gpu() else { return };
    let cpu = Device::flex();
    codecs(&cpu, &gpu);
    objectives(&cpu, &gpu);
    chains(&cpu, &gpu);
    gradients(&cpu, &gpu);
    networks(&cpu, &gpu);
    training(&cpu, &gpu);
}

fn codecs(cpu: &Device, gpu: &Device) {
    let pixels: Vec<u32> = (0..24).map(|i| i * 10).collect();
    for encoding in Encoding::ALL {
        let codec = Codec::pixels(encoding);
        let on = |device: &Device| codec.encode_tensor(&pixels, [2, 3, 2, 2], device).unwrap();
        assert_close(&values(on(cpu)), &values(on(gpu)), 0.0, encoding.label());
        assert_eq!(symbols(codec.decode_tensor(on(gpu)).unwrap()), pixels, "{encoding:?}");
        let noise = |device: &Device| Rng::new(4).normal_tensor([1, 2 * codec.bits_per_symbol(), 3], device);
        let (a, b) = (codec.decode_tensor(noise(cpu)).unwrap(), codec.decode_tensor(noise(gpu)).unwrap());
        assert_eq!(symbols(a), symbols(b), "{encoding:?}");
        let logits = |device: &Device| Rng::new(5).normal_tensor([1, 512, 2], device);
        let (a, b) = (codec.expected_bits(logits(cpu)).unwrap(), codec.expected_bits(logits(gpu)).unwrap());
        assert_close(&values(a), &values(b), 1e-5, &format!("expected bits, {encoding:?}"));
    }
}

fn objectives(cpu: &Device, gpu: &Device) {
    for loss in Loss::ALL {
        let objective = Objective { loss, bits_per_symbol: 4, ..Objective::default() };
        let on = |device: &Device| {
            let output = Rng::new(1).normal_tensor([2, 8, 3], device);
            let x_0 = Rng::new(2).normal_tensor([2, 8, 3], device).sign();
            let value = objective.loss(output.clone(), x_0.clone(), x_0.clone());
            (values(value), values(objective.estimate(output, x_0, &[0.3, 0.8])))
        };
        let (a, b) = (on(cpu), on(gpu));
        assert_close(&a.0, &b.0, 1e-5, loss.label());
        assert_close(&a.1, &b.1, 1e-5, loss.label());
    }
}

fn chains(cpu: &Device, gpu: &Device) {
    let codec = Codec::new(Encoding::Gray, 8, 1.0).unwrap();
    let mut rng = Rng::new(3);
    let data: Vec<u32> = (0..40).map(|_| rng.below(8) as u32).collect();
    for sampler in Sampler::ALL {
        for self_cond in SelfCond::ALL {
            let on = |device: &Device| {
                let points = codec.encode_tensor(&data, [10, 4], device).unwrap();
                let denoiser = ExactDenoiser::new(points, 1.0).unwrap().with_trust(0.2).unwrap();
                let settings = Settings { n_steps: 6, td: 0.5, sampler, self_cond, ..Settings::default() };
                let start = State::from_seed([4, 12], 9, device);
                let mut chain = Chain::new(settings, Condition::None, start).unwrap();
                let x_pred = chain.run(&denoiser, |_| ControlFlow::Continue(())).unwrap();
                (values(chain.state().x_t.clone()), values(x_pred))
            };
            let (a, b) = (on(cpu), on(gpu));
            let what = format!("{sampler:?} {self_cond:?}");
            assert_close(&a.0, &b.0, 1e-4, &what);
            assert_close(&a.1, &b.1, 1e-4, &what);
        }
    }
}

fn gradients(cpu: &Device, gpu: &Device) {
    let on = |device: Device| {
        let device = device.autodiff();
        let output = Rng::new(1).normal_tensor([2, 8], &device).require_grad();
        let x_0 = Rng::new(2).normal_tensor([2, 8], &device).sign();
        let objective = Objective { loss: Loss::SigmoidCrossEntropy, ..Objective::default() };
        let loss = objective.loss(output.clone(), x_0.clone(), x_0);
        values(output.grad(&loss.backward()).expect("the output is used"))
    };
    assert_close(&on(cpu.clone()), &on(gpu.clone()), 1e-6, "gradient");
}

fn networks(cpu: &Device, gpu: &Device) {
    let condition = Condition::Classes(vec![Some(1), None]);
    let on = |device: &Device| {
        let network = tiny::unet(4).init(3, device).unwrap();
        let x_t = Rng::new(1).normal_tensor(network.state_shape(2), device);
        let x_pred = x_t.clone().sign();
        values(network.forward(Input { x_t, x_pred, gamma: &[0.2, 0.7], condition: &condition }))
    };
    // A fresh network's output is almost 0, of the size of 1e-5.
    assert_close(&on(cpu), &on(gpu), 1e-8, "U-Net");
}

fn training(cpu: &Device, gpu: &Device) {
    let config =
        TrainConfig { batch_size: 2, learning_rate: 1e-2, n_warmup_steps: 0, ..TrainConfig::new(tiny::unet(4)) };
    let batch = Batch { pixels: (0..32).map(|i| i % 4).collect(), classes: vec![0, 1] };
    let on = |device: &Device| {
        let mut trainer = Trainer::new(config.clone(), device).unwrap();
        let losses = (0..4).map(|_| pollster::block_on(trainer.step(&batch)).unwrap().loss);
        losses.collect::<Vec<f32>>()
    };
    // Adam divides by the size of the gradient, so it enlarges the rounding of the smallest ones.
    let (a, b) = (on(cpu), on(gpu));
    assert!((a[3] - a[0]).abs() > 1e-3, "nothing was learned: {a:?}");
    assert_close(&a, &b, 1e-2, "training");
    assert_close(&a[..2], &b[..2], 1e-4, "first steps");
}
