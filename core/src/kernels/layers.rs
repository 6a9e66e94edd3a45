//! Layers around convolutions, on any device: the CPU's kernels, a graphics card's, elsewhere their twins in plain tensor operations.

use burn::{
    backend::Dispatch,
    nn::{LayerNorm, Linear},
    tensor::{Bool, Tensor, activation, activation::softmax},
};

use super::{
    gpu::{self, GpuLayerOps},
    is_on_cpu,
    layer_ops::LayerOps,
};

/// What is added to the variance of a token. burn's layer keeps its own to itself.
pub const TOKEN_EPSILON: f64 = 1e-5;

/// Where there are kernels for a tensor.
enum Place {
    Processor,
    Card,
}

impl Place {
    /// `None` if only the twins can be used, or they are wanted.
    fn of<const D: usize>(x: &Tensor<D>) -> Option<Self> {
        if is_on_cpu(x) { Some(Self::Processor) } else { gpu::has(x).then_some(Self::Card) }
    }
}

/// `x·weight + bias`.
///
/// # Shapes
/// - `x`: `[…, from]`; output: `[…, to]`
#[must_use]
pub fn linear<const D: usize>(layer: &Linear, x: Tensor<D>) -> Tensor<D> {
    let (Some(place), Some(bias)) = (Place::of(&x), &layer.bias) else {
        return layer.forward(x);
    };
    let (weight, bias) = (layer.weight.val().into_dispatch(), bias.val().into_dispatch());
    Tensor::from_dispatch(match place {
        Place::Processor => Dispatch::connect(x.into_dispatch(), weight, bias),
        Place::Card => Dispatch::gpu_connect(x.into_dispatch(), weight, bias),
    })
}

/// Normalisation of each token, by a layer with [`TOKEN_EPSILON`].
#[must_use]
pub fn layer_norm(layer: &LayerNorm, x: Tensor<3>) -> Tensor<3> {
    let (Some(place), Some(bias)) = (Place::of(&x), &layer.beta) else {
        return layer.forward(x);
    };
    let (weight, bias) = (layer.gamma.val().into_dispatch(), bias.val().into_dispatch());
    Tensor::from_dispatch(match place {
        Place::Processor => Dispatch::normalise_tokens(x.into_dispatch(), weight, bias, TOKEN_EPSILON),
        Place::Card => Dispatch::gpu_normalise_tokens(x.into_dispatch(), weight, bias, TOKEN_EPSILON),
    })
}

/// GELU, `x·Φ(x)`.
#[must_use]
pub fn gelu(x: Tensor<3>) -> Tensor<3> {
    match Place::of(&x) {
        Some(Place::Processor) => Tensor::from_dispatch(Dispatch::gelu_tokens(x.into_dispatch())),
        Some(Place::Card) => Tensor::from_dispatch(Dispatch::gpu_gelu(x.into_dispatch())),
        None => activation::gelu(x),
    }
}

/// `softmax(query·keyᵀ/√head_dim)·value` for each head.
///
/// # Shapes
/// - `query` and output: `[b, n, width]`; `key`, `value`: `[b, m, width]`; `hidden`: `[n, m]`, true where nothing is seen
#[must_use]
pub fn attention(
    query: Tensor<3>,
    key: Tensor<3>,
    value: Tensor<3>,
    n_heads: usize,
    hidden: Option<Tensor<2, Bool>>,
) -> Tensor<3> {
    if let (Some(place), None) = (Place::of(&query), &hidden) {
        let [query, key, value] = [query, key, value].map(Tensor::into_dispatch);
        return Tensor::from_dispatch(match place {
            Place::Processor => Dispatch::attend(query, key, value, n_heads),
            Place::Card => Dispatch::gpu_attend(query, key, value, n_heads),
        });
    }
    let [batch, n, width] = query.dims();
    let head_dim = width / n_heads;
    let [query, key, value] = [query, key, value].map(|x| {
        let [batch, n, _] = x.dims();
        x.reshape([batch, n, n_heads, head_dim]).swap_dims(1, 2)
    });
    let mut scores = query.matmul(key.swap_dims(2, 3)).mul_scalar((head_dim as f64).sqrt().recip());
    if let Some(hidden) = hidden {
        let mask = hidden.unsqueeze::<4>().expand(scores.dims());
        scores = scores.mask_fill(mask, -1e9);
    }
    // [b, heads, n, head_dim] → [b, n, width]
    softmax(scores, 3).matmul(value).swap_dims(1, 2).reshape([batch, n, width])
}

/// Attention of all pixels to all others.
///
/// # Shapes
/// - `projected`: queries, keys and values, `[b, 3·c, h, w]`; output: `[b, c, h, w]`
#[must_use]
pub fn attention_to_pixels(projected: Tensor<4>, n_heads: usize) -> Tensor<4> {
    if let Some(place) = Place::of(&projected) {
        let projected = projected.into_dispatch();
        return Tensor::from_dispatch(match place {
            Place::Processor => Dispatch::attend_to_pixels(projected, n_heads),
            Place::Card => Dispatch::gpu_attend_to_pixels(projected, n_heads),
        });
    }
    let [batch, channels, height, width] = projected.dims();
    let channels = channels / 3;
    let head_dim = channels / n_heads;
    // [b, 3c, h, w] → three of [b, heads, pixels, head_dim]
    let parts = projected.reshape([batch, 3 * n_heads, head_dim, height * width]).swap_dims(2, 3).chunk(3, 1);
    let [query, key, value] = [0, 1, 2].map(|i| parts[i].clone());
    let scores = query.matmul(key.swap_dims(2, 3)).mul_scalar((head_dim as f64).sqrt().recip());
    // [b, heads, pixels, head_dim] → [b, c, h, w]
    softmax(scores, 3).matmul(value).swap_dims(2, 3).reshape([batch, channels, height, width])
}

/// Twice the width and height, each pixel four times.
#[must_use]
pub fn double(x: Tensor<4>) -> Tensor<4> {
    if let Some(place) = Place::of(&x) {
        return Tensor::from_dispatch(match place {
            Place::Processor => Dispatch::double(x.into_dispatch()),
            Place::Card => Dispatch::gpu_double(x.into_dispatch()),
        });
    }
    let [batch, channels, height, width] = x.dims();
    x.reshape([batch, channels, height, 1, width, 1]).expand([batch, channels, height, 2, width, 2]).reshape([
        batch,
        channels,
        2 * height,
        2 * width,
    ])
}

/// `(x + y)·factor`.
#[must_use]
pub fn sum_scaled(x: Tensor<4>, y: Tensor<4>, factor: f64) -> Tensor<4> {
    if let Some(place) = Place::of(&x) {
        let [x, y] = [x, y].map(Tensor::into_dispatch);
        return Tensor::from_dispatch(match place {
            Place::Processor => Dispatch::sum_scaled(x, y, factor),
            Place::Card => Dispatch::gpu_sum_scaled(x, y, factor),
        });
    }
    (x + y).mul_scalar(factor)
}

#[cfg(test)]
mod tests {
    use super::{super::tests::*, *};
    use burn::nn::{LayerNormConfig, LinearConfig};

    /// The result and the gradients of a function of three tensors against those of its twin.
    fn compare<const D: usize, const E: usize>(
        what: &str,
        given: &[&Tensor<D>],
        ours: impl Fn() -> Tensor<E>,
        twin: impl Fn() -> Tensor<E>,
    ) {
        assert_close(ours(), twin(), what);
        let (ours, twin) = (backward(ours()), backward(twin()));
        for (i, tensor) in given.iter().enumerate() {
            assert_same_gradient(tensor, &ours, &twin, &format!("{what}, gradient {i}"));
        }
    }

    #[test]
    fn connections_agree_with_their_twin() {
        for [batch, n, from, to] in [[1, 1, 3, 2], [2, 20, 10, 128], [3, 7, 128, 5], [16, 20, 64, 96]] {
            let mut layer = LinearConfig::new(from, to).init(&device());
            layer.weight = layer.weight.map(|_| normal(2, [from, to]));
            layer.bias = layer.bias.map(|bias| bias.map(|_| normal(3, [to])));
            let x = normal(1, [batch, n, from]);
            let what = format!("{batch}×{n}: {from} → {to}");
            let (ours, twin) = (|| linear(&layer, x.clone()), || layer.forward(x.clone()));
            compare(&what, &[&x], ours, twin);
            compare(&what, &[&layer.weight.val()], ours, twin);
            compare(&what, &[&layer.bias.as_ref().unwrap().val()], ours, twin);
        }
    }

    #[test]
    fn token_norms_agree_with_their_twin() {
        for [batch, n, width] in [[1, 1, 4], [2, 20, 128], [9, 16, 50]] {
            let mut layer = LayerNormConfig::new(width).with_epsilon(TOKEN_EPSILON).init(&device());
            layer.gamma = layer.gamma.map(|_| normal(2, [width]));
            layer.beta = layer.beta.map(|beta| beta.map(|_| normal(3, [width])));
            let x = normal(1, [batch, n, width]);
            let what = format!("norm of {batch}×{n}×{width}");
            let (ours, twin) = (|| layer_norm(&layer, x.clone()), || layer.forward(x.clone()));
            compare(&what, &[&x], ours, twin);
            compare(&what, &[&layer.gamma.val(), &layer.beta.as_ref().unwrap().val()], ours, twin);
        }
    }

    #[test]
    fn gelu_agrees_with_its_twin() {
        let x = normal(1, [3, 50, 120]);
        compare("gelu", &[&x], || gelu(x.clone()), || activation::gelu(x.clone()));
        let wide = x.clone().mul_scalar(10.0);
        assert_close(gelu(wide.clone()), activation::gelu(wide), "gelu of large numbers");
    }

    #[test]
    fn attention_agrees_with_its_twin() {
        for [batch, n, m, width, n_heads] in [[1, 1, 1, 4, 1], [2, 20, 16, 128, 4], [3, 33, 70, 24, 2]] {
            let [query, key, value] =
                [normal(1, [batch, n, width]), normal(2, [batch, m, width]), normal(3, [batch, m, width])];
            let given = || (query.clone(), key.clone(), value.clone());
            let what = format!("{n_heads} heads of {width}, from {n} to {m}");
            // A mask that hides nothing makes the twin work.
            let nothing = Tensor::<2, Bool>::full([n, m], false, &device());
            let run = |mask| {
                let (query, key, value) = given();
                attention(query, key, value, n_heads, mask)
            };
            compare(&what, &[&query, &key, &value], || run(None), || run(Some(nothing.clone())));
        }
    }

    #[test]
    fn pixels_agree_with_their_twins() {
        for [batch, channels, height, width, n_heads] in [[1, 4, 1, 2, 1], [2, 64, 8, 8, 2], [2, 12, 7, 7, 3]] {
            let projected = normal(1, [batch, 3 * channels, height, width]);
            let what = format!("{n_heads} heads of {channels} × {height} × {width}");
            let tokens = || {
                let parts =
                    projected.clone().reshape([batch, 3 * channels, height * width]).swap_dims(1, 2).chunk(3, 2);
                let mixed = attention(parts[0].clone(), parts[1].clone(), parts[2].clone(), n_heads, None);
                mixed.swap_dims(1, 2).reshape([batch, channels, height, width])
            };
            compare(&what, &[&projected], || attention_to_pixels(projected.clone(), n_heads), tokens);
        }
        let (x, y) = (normal(1, [2, 3, 4, 5]), normal(2, [2, 3, 4, 5]));
        compare("sum", &[&x, &y], || sum_scaled(x.clone(), y.clone(), 0.7), || (x.clone() + y.clone()).mul_scalar(0.7));
        let twin = || {
            let wide = x.clone().reshape([2, 3, 4, 1, 5, 1]).expand([2, 3, 4, 2, 5, 2]);
            wide.reshape([2, 3, 8, 10])
        };
        compare("doubled", &[&x], || double(x.clone()), twin);
    }
}
