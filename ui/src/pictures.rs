//! Batches of analog bits as one picture, and as a histogram.

use bit_diffusion::{
    bits::Codec,
    data::shapes,
    metrics::bits::{Histogram, N_BINS},
};
use burn::tensor::Tensor;
use egui::{Color32, ColorImage};

/// How many samples a row of the grid has.
pub(crate) const COLUMNS: usize = 4;

/// Analog bits `[b, 3·n, SIZE, SIZE]` read by threshold: the grid of pictures, and how many pixels are off the palette.
pub(crate) fn grid(bits: Tensor<4>, codec: &Codec) -> (ColorImage, usize) {
    let batch = bits.dims()[0];
    let symbols = codec.decode_tensor(bits).expect("the codec made these bits");
    let symbols: Vec<u32> = symbols.into_data().iter::<u32>().collect();
    // One pixel between the pictures.
    let (rows, pitch) = (batch.div_ceil(COLUMNS), shapes::SIZE + 1);
    let mut image = ColorImage::filled([COLUMNS * pitch - 1, rows * pitch - 1], Color32::TRANSPARENT);
    let n = shapes::SIZE * shapes::SIZE;
    let mut n_off = 0;
    for (index, picture) in symbols.chunks_exact(3 * n).enumerate() {
        n_off += shapes::n_off_palette(picture);
        let (left, top) = (index % COLUMNS * pitch, index / COLUMNS * pitch);
        for i in 0..n {
            let [r, g, b] = [0, 1, 2].map(|channel| picture[channel * n + i] as u8);
            image[(left + i % shapes::SIZE, top + i / shapes::SIZE)] = Color32::from_rgb(r, g, b);
        }
    }
    (image, n_off)
}

/// The share of values in each bin from −`limit` to `limit`.
pub(crate) fn histogram(bits: &Tensor<4>, limit: f64) -> [f64; N_BINS] {
    let data = bits.to_data();
    Histogram::new(data.as_slice::<f32>().expect("states are f32"), limit).expect("the limit is above 0").shares()
}
