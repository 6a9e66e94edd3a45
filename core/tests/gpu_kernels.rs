//! The shaders against their twins, burn's own operations on the same adapter, a software one if there is no other: results and gradients, to
//! 1e-4 of the largest number. Without an adapter the test says that it was skipped.

use std::io::Write as _;

use bit_diffusion::{
    kernels::{
        Learner, Learning, MOST_OTHERS, TOKEN_EPSILON, attention, attention_to_pixels, conv2d, conv2d_onto, double,
        finish_step, gelu, group_norm, group_norm_modulated_silu, group_norm_silu, histogram, join, layer_norm, linear,
        linear_onto, linear_silu, sum_of_squares, sum_scaled, with_twins,
    },
    metrics::bits::{Histogram, N_BINS},
    rng::Rng,
};
use burn::{
    nn::{GroupNormConfig, LayerNormConfig, LinearConfig, PaddingConfig2d, conv::Conv2dConfig},
    tensor::{Device, Gradients, Tensor, wgpu::WgpuInitError},
};

/// The GPU, or `None`; says which on standard error itself, which the test harness does not hide.
fn gpu() -> Option<Device> {
    let (device, word) = match Device::wgpu_options().init_with_setup() {
        Ok((device, setup)) => (Some(device), format!("on {}", setup.adapter.get_info().name)),
        Err(error @ WgpuInitError::AdapterUnavailable { .. }) => {
            (None, format!("SKIPPED, there is no graphics driver, not even mesa-vulkan-drivers ({error})"))
        }
        Err(error) => panic!("there is a graphics driver, but it does not work: {error}"),
    };
    writeln!(std::io::stderr(), "gpu kernels: {word}").expect("standard error is open");
    device
}

fn normal<const D: usize>(seed: u64, shape: [usize; D], device: &Device) -> Tensor<D> {
    Rng::new(seed).normal_tensor(shape, device).require_grad()
}

#[track_caller]
fn assert_close<const D: usize>(ours: Tensor<D>, twin: Tensor<D>, what: &str) {
    assert_eq!(ours.dims(), twin.dims(), "{what}");
    let [ours, twin]: [Vec<f32>; 2] = [ours, twin].map(|tensor| tensor.into_data().try_to_vec().unwrap());
    let limit = 1e-4 * twin.iter().fold(1.0, |max: f32, v| max.max(v.abs()));
    for (i, (a, b)) in ours.iter().zip(&twin).enumerate() {
        assert!((a - b).abs() <= limit, "{what}: element {i} is {a}, the twin says {b}");
    }
}

/// The gradients of `Σ y·r` for a fixed random r.
fn backward<const D: usize>(y: Tensor<D>) -> Gradients {
    let r = Rng::new(99).normal_tensor(y.dims(), &y.device());
    (y * r).sum().backward()
}

#[track_caller]
fn assert_same_gradient<const D: usize>(of: &Tensor<D>, ours: &Gradients, twin: &Gradients, what: &str) {
    let [ours, twin] = [ours, twin].map(|gradients| of.grad(gradients).expect("the result depends on it"));
    assert_close(ours, twin, what);
}

/// One test, because a process has one wgpu device and its tensors belong to one thread.
#[test]
fn shaders_agree_with_their_twins() {
    let Some(gpu) = gpu() else { return };
    convolutions(&gpu.clone().autodiff());
    any_order(&gpu);
    updates(&gpu);
    steps(&gpu);
    histograms(&gpu);
    layers_with_what_follows(&gpu);
    let device = gpu.autodiff();
    normalisations(&device);
    connections(&device);
    tokens(&device);
    attentions(&device);
    pixels(&device);
}

fn convolutions(device: &Device) {
    // [batch, from, to, height, width], kernel, stride; sizes that do and do not fill vectors and tiles.
    let cases = [
        ([2, 3, 5, 6, 6], 3, 1),
        ([1, 4, 33, 7, 7], 3, 1),
        ([2, 5, 40, 16, 16], 3, 2),
        ([3, 11, 40, 8, 8], 1, 1),
        ([1, 8, 16, 5, 3], 1, 1),
        ([2, 3, 20, 9, 13], 3, 1),
        ([1, 3, 8, 4, 4], 3, 2),
        ([1, 2, 70, 1, 1], 3, 1),
        ([1, 3, 9, 15, 15], 3, 2),
        ([2, 66, 7, 5, 9], 3, 1),
        ([1, 70, 66, 13, 5], 1, 1),
        ([9, 12, 12, 8, 8], 3, 1),
        // With channels and tiles enough for Winograd's trick, few and many.
        ([1, 18, 21, 6, 9], 3, 1),
        ([3, 16, 40, 16, 20], 3, 1),
    ];
    for (shape @ [batch, from, to, height, width], size, stride) in cases {
        let padding = size / 2;
        let mut layer = Conv2dConfig::new([from, to], [size, size])
            .with_stride([stride, stride])
            .with_padding(PaddingConfig2d::Explicit(padding, padding, padding, padding))
            .init(device);
        layer.bias = layer.bias.map(|bias| bias.map(|_| normal(3, [to], device)));
        let what = format!("{shape:?}, kernel {size}, stride {stride}");
        let x = normal(1, [batch, from, height, width], device);
        let (ours, twin) = (conv2d(&layer, x.clone()), layer.forward(x.clone()));
        assert_close(ours.clone(), twin.clone(), &what);
        let (ours, twin) = (backward(ours), backward(twin));
        assert_same_gradient(&x, &ours, &twin, &format!("{what}, gradient of x"));
        assert_same_gradient(&layer.weight.val(), &ours, &twin, &format!("{what}, gradient of the weights"));
        let bias = layer.bias.as_ref().unwrap().val();
        assert_same_gradient(&bias, &ours, &twin, &format!("{what}, gradient of the bias"));
    }
}

fn any_order(device: &Device) {
    let layer = Conv2dConfig::new([3, 4], [1, 1]).init(device);
    let x = Rng::new(1).normal_tensor([2, 5, 6, 3], device).permute([0, 3, 1, 2]).narrow(0, 1, 1);
    assert_close(conv2d(&layer, x.clone()), layer.forward(x), "permuted and cut");
}

fn normalisations(device: &Device) {
    let cases = [([2, 8, 3, 3], 2), ([1, 32, 8, 8], 8), ([3, 6, 1, 5], 1), ([2, 70, 16, 16], 35)];
    for (shape @ [batch, channels, ..], groups) in cases {
        let mut layer = GroupNormConfig::new(groups, channels).init(device);
        layer.gamma = layer.gamma.map(|gamma| gamma.map(|_| normal(3, [channels], device)));
        layer.beta = layer.beta.map(|beta| beta.map(|_| normal(4, [channels], device)));
        let (weight, bias) = (layer.gamma.as_ref().unwrap().val(), layer.beta.as_ref().unwrap().val());
        let x = normal(1, shape, device);
        let scale_shift = normal(2, [batch, 2 * channels], device);
        let run = |name: &str| match name {
            "norm" => group_norm(&layer, x.clone()),
            "norm, silu" => group_norm_silu(&layer, x.clone()),
            _ => group_norm_modulated_silu(&layer, x.clone(), scale_shift.clone()),
        };
        for name in ["norm", "norm, silu", "modulated"] {
            let what = format!("{name} of {shape:?} in {groups} groups");
            let (ours, twin) = (run(name), with_twins(|| run(name)));
            assert_close(ours.clone(), twin.clone(), &what);
            let (ours, twin) = (backward(ours), backward(twin));
            assert_same_gradient(&x, &ours, &twin, &format!("{what}, gradient of x"));
            assert_same_gradient(&weight, &ours, &twin, &format!("{what}, gradient of the weight"));
            assert_same_gradient(&bias, &ours, &twin, &format!("{what}, gradient of the bias"));
            if name == "modulated" {
                assert_same_gradient(&scale_shift, &ours, &twin, &format!("{what}, gradient of scale and shift"));
            }
        }
    }
}

fn updates(device: &Device) {
    for n in [70, 400] {
        learned(n, device);
    }
    let gradients: Vec<Tensor<1>> =
        [1, 70, 5000].map(|n| Rng::new(n as u64).normal_tensor([n], device)).into_iter().collect();
    let run = || sum_of_squares(&gradients, device);
    assert_close(run(), with_twins(run), "the sum of squares");
}

/// Three steps of learning for a parameter of so many numbers.
fn learned(n: usize, device: &Device) {
    let given = |seed| Rng::new(seed).normal_tensor([n], device);
    let learning = Learning { rate: 0.1, shorten: 0.5, decay: 0.75 };
    let run = || {
        let mut learner = Learner { value: given(1), moments: None, average: given(9) };
        for step in 0..3 {
            learner = learning.step(learner, given(2 + step));
        }
        learner
    };
    let (ours, twin) = (run(), with_twins(run));
    let [first, second] =
        [&ours, &twin].map(|learner| learner.moments.clone().expect("there have been steps").momentum);
    assert_close(ours.value, twin.value, "Adam's weight");
    assert_close(ours.average, twin.average, "the average");
    assert_close(first.moment_1, second.moment_1, "Adam's first moment");
    assert_close(first.moment_2, second.moment_2, "Adam's second moment");
    assert_eq!(first.time, second.time);
}

/// The result and the gradients of a function against those of its twin.
#[track_caller]
fn compare<const D: usize, const E: usize>(what: &str, given: &[&Tensor<D>], run: impl Fn() -> Tensor<E>) {
    let (ours, twin) = (run(), with_twins(&run));
    assert_close(ours.clone(), twin.clone(), what);
    let (ours, twin) = (backward(ours), backward(twin));
    for (i, tensor) in given.iter().enumerate() {
        assert_same_gradient(tensor, &ours, &twin, &format!("{what}, gradient {i}"));
    }
}

fn connections(device: &Device) {
    // Sizes that do and do not fill fours and tiles; one of few columns, which is made turned, and the largest tiles.
    let sizes = [
        [1, 1, 3, 2],
        [2, 20, 10, 128],
        [3, 7, 128, 5],
        [5, 1, 64, 70],
        [4, 65, 36, 130],
        [3, 41, 36, 12],
        [1, 300, 36, 260],
    ];
    for [batch, n, from, to] in sizes {
        let mut layer = LinearConfig::new(from, to).init(device);
        layer.weight = layer.weight.map(|_| normal(2, [from, to], device));
        layer.bias = layer.bias.map(|bias| bias.map(|_| normal(3, [to], device)));
        let x = normal(1, [batch, n, from], device);
        let what = format!("{batch}×{n}: {from} → {to}");
        compare(&what, &[&x], || linear(&layer, x.clone()));
        compare(&what, &[&layer.weight.val()], || linear(&layer, x.clone()));
        compare(&what, &[&layer.bias.as_ref().unwrap().val()], || linear(&layer, x.clone()));
    }
}

/// Where nobody learns, in one launch.
fn layers_with_what_follows(device: &Device) {
    // Products in vectors of four and others, turned and not; convolutions by Winograd's trick, of one pixel, and others.
    for [batch, n, from, to] in [[2, 20, 36, 128], [1, 2, 128, 12], [3, 7, 10, 5]] {
        let layer = LinearConfig::new(from, to).init(device);
        let draw = |seed, width| Rng::new(seed).normal_tensor([batch, n, width], device);
        let run = || [linear_silu(&layer, draw(1, from)), linear_onto(draw(2, to), &layer, draw(1, from))];
        for ((ours, twin), what) in run().into_iter().zip(with_twins(run)).zip(["and SiLU", "and a sum"]) {
            assert_close(ours, twin, &format!("{batch}×{n}: {from} → {to} {what}"));
        }
    }
    for [batch, c, d, n] in [[3, 4, 6, 8], [2, 3, 5, 7], [1, 8, 3, 1]] {
        let draw = |seed, channels| Rng::new(seed).normal_tensor([batch, channels, n], device);
        let run = || join(draw(1, c), draw(2, d));
        assert_close(run(), with_twins(run), &format!("{batch} × {c} and {d} channels of {n}"));
    }
    let cases =
        [([2, 16, 20, 8, 12], 3, 1), ([2, 8, 12, 4, 6], 1, 1), ([1, 3, 5, 3, 3], 1, 1), ([2, 5, 9, 6, 7], 3, 2)];
    for (shape @ [batch, from, to, height, width], size, stride) in cases {
        let padding = size / 2;
        let layer = Conv2dConfig::new([from, to], [size, size])
            .with_stride([stride, stride])
            .with_padding(PaddingConfig2d::Explicit(padding, padding, padding, padding))
            .init(device);
        let x = Rng::new(1).normal_tensor([batch, from, height, width], device);
        let onto = Rng::new(2).normal_tensor([batch, to, height.div_ceil(stride), width.div_ceil(stride)], device);
        let run = || conv2d_onto(onto.clone(), &layer, x.clone(), 0.7);
        assert_close(run(), with_twins(run), &format!("{shape:?}, kernel {size}, stride {stride}, and a sum"));
    }
}

fn tokens(device: &Device) {
    for [batch, n, width] in [[1, 1, 4], [2, 20, 128], [9, 16, 50]] {
        let mut layer = LayerNormConfig::new(width).with_epsilon(TOKEN_EPSILON).init(device);
        layer.gamma = layer.gamma.map(|_| normal(2, [width], device));
        layer.beta = layer.beta.map(|beta| beta.map(|_| normal(3, [width], device)));
        let x = normal(1, [batch, n, width], device);
        let what = format!("norm of {batch}×{n}×{width}");
        compare(&what, &[&x], || layer_norm(&layer, x.clone()));
        compare(&what, &[&layer.gamma.val(), &layer.beta.as_ref().unwrap().val()], || layer_norm(&layer, x.clone()));
    }
    let x = normal(1, [3, 50, 12], device);
    // burn's own gradient on a card is that of an approximation, off by 1e-3; this one's is exact.
    let twin = |x: Tensor<3>| x.clone() * (x.mul_scalar(std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0).mul_scalar(0.5);
    for size in [1.0, 10.0] {
        let (ours, twin) = (gelu(x.clone().mul_scalar(size)), twin(x.clone().mul_scalar(size)));
        assert_close(ours.clone(), twin.clone(), "gelu");
        assert_same_gradient(&x, &backward(ours), &backward(twin), "gelu, gradient");
    }
}

fn attentions(device: &Device) {
    for [batch, n, m, width, n_heads] in [[1, 1, 1, 4, 1], [2, 20, 16, 128, 4], [3, 33, 70, 24, 2]] {
        let [query, key, value] = [(1, n), (2, m), (3, m)].map(|(seed, n)| normal(seed, [batch, n, width], device));
        let what = format!("{n_heads} heads of {width}, from {n} to {m}");
        compare(&what, &[&query, &key, &value], || attention(query.clone(), key.clone(), value.clone(), n_heads, None));
    }
}

fn pixels(device: &Device) {
    for [batch, channels, height, width, n_heads] in [[1, 4, 1, 2, 1], [2, 64, 8, 8, 2], [2, 12, 7, 7, 3]] {
        let projected = normal(1, [batch, 3 * channels, height, width], device);
        let what = format!("{n_heads} heads of {channels} × {height} × {width}");
        compare(&what, &[&projected], || attention_to_pixels(projected.clone(), n_heads));
    }
    let (x, y) = (normal(1, [2, 3, 4, 5], device), normal(2, [2, 3, 4, 5], device));
    compare("sum", &[&x, &y], || sum_scaled(x.clone(), y.clone(), 0.7));
    compare("doubled", &[&x], || double(x.clone()));
}

fn steps(device: &Device) {
    for n_others in 0..=MOST_OTHERS {
        let draw = |seed| Rng::new(seed).normal_tensor([3, 5, 7], device);
        let others = || (0..n_others).map(|i| (0.3 + i as f64, draw(3 + i as u64))).collect();
        let run = || finish_step(draw(1), 0.9, -0.7, (1.2, draw(2)), others());
        let (ours, twin) = (run(), with_twins(run));
        for ((ours, twin), what) in ours.into_iter().zip(twin).zip(["estimate", "state"]) {
            assert_close(ours, twin, &format!("{what} of a step with {n_others} others"));
        }
    }
}

fn histograms(device: &Device) {
    // Within bins, so that rounding moves nothing; some outside, and more than one part.
    let limit = 3.0;
    let width = 2.0 * limit / N_BINS as f64;
    let mut rng = Rng::new(1);
    let mut draw = || {
        let bin = rng.below(N_BINS + 4) as f64 - 2.0;
        (-limit + width * (bin + 0.1 + 0.8 * rng.uniform())) as f32
    };
    for n in [1, 70, 5000] {
        let bits: Vec<f32> = (0..n).map(|_| draw()).collect();
        let on_card = histogram(Tensor::<1>::from_floats(bits.as_slice(), device), limit);
        assert_eq!(on_card, Histogram::new(&bits, limit), "{n} bits");
    }
}
