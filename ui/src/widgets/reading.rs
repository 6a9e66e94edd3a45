//! Analog bits as pictures: by threshold, softly, or one bit at a time.

use std::sync::Arc;

use bit_diffusion::{
    bits::{Codec, Encoding},
    engine::{Frame, LivePicture, LiveStep, ModelInfo, PictureSheet, View},
};

/// Which of the two things of a step is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The state that the step started from.
    State,
    /// The estimate that the network made of it.
    Estimate,
}

impl Source {
    pub const ALL: [Self; 2] = [Self::State, Self::Estimate];

    pub fn label(self) -> &'static str {
        match self {
            Self::State => "noisy state x_t",
            Self::Estimate => "estimate x_pred",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::State => "Noisy state x_t",
            Self::Estimate => "Estimate x_pred",
        }
    }

    pub fn of(self, frame: &Frame) -> &View {
        match self {
            Self::State => &frame.x_t,
            Self::Estimate => &frame.x_pred,
        }
    }

    pub fn of_live(self, step: &LiveStep) -> &LivePicture {
        match self {
            Self::State => &step.x_t,
            Self::Estimate => &step.x_pred,
        }
    }
}

/// How analog bits become a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Reading {
    /// A bit above 0 is a 1.
    #[default]
    Threshold,
    /// Each bit counts for as much as it is a 1: the mean of the values that it may stand for.
    Soft,
    /// One bit alone, from 0 (black) over undecided (grey) to 1.
    Plane(usize),
}

/// A colour value from analog bits, from 0 to 1, without a threshold. A bit of −scale is surely 0, one of scale surely 1.
fn soft_value(bits: &[f32], codec: &Codec) -> f32 {
    let scale = codec.scale() as f32;
    let ones = bits.iter().map(|bit| f32::midpoint(bit / scale, 1.0).clamp(0.0, 1.0));
    let last = (codec.alphabet() - 1) as f32;
    match codec.encoding() {
        Encoding::Continuous => ones.sum(),
        Encoding::OneHot => {
            let (sum, total) =
                ones.enumerate().fold((0.0, 0.0), |(sum, total), (k, one)| (sum + k as f32 * one, total + one));
            if total > 0.0 { sum / total / last } else { 0.5 }
        }
        // Value by value: a bit halves the table by mixing the codes that have it with those that do not.
        Encoding::Uint8 | Encoding::Gray | Encoding::Uint8Rand => {
            let mut values: Vec<f32> = codec.symbols().iter().map(|&symbol| symbol as f32).collect();
            for one in ones {
                values = values.chunks_exact(2).map(|pair| pair[0] * (1.0 - one) + pair[1] * one).collect();
            }
            values[0] / last
        }
    }
}

/// The analog bits of one colour value: of a picture, a channel and a pixel counted row by row.
pub(crate) fn bits_at(view: &View, info: &ModelInfo, picture: usize, channel: usize, pixel: usize) -> Vec<f32> {
    let (n, area) = (info.codec.bits_per_symbol(), info.size * info.size);
    let first = (picture * info.channels + channel) * n;
    (first..first + n).map(|plane| view.bits[plane * area + pixel].to_f32()).collect()
}

/// The pictures that analog bits stand for.
pub(crate) fn read(view: &View, info: &ModelInfo, reading: Reading) -> PictureSheet {
    let PictureSheet { n, size, channels, .. } = view.pictures;
    let byte = |share: f32| (share.clamp(0.0, 1.0) * 255.0).round() as u8;
    let mut pixels = Vec::with_capacity(n * size * size * channels);
    let scale = info.codec.scale() as f32;
    let planes = info.codec.bits_per_symbol();
    for index in 0..n * size * size {
        let (picture, pixel) = (index / (size * size), index % (size * size));
        for channel in 0..channels {
            pixels.push(match reading {
                Reading::Threshold => view.pictures.pixels[index * channels + channel],
                Reading::Soft => byte(soft_value(&bits_at(view, info, picture, channel, pixel), &info.codec)),
                Reading::Plane(plane) => {
                    let plane = (picture * channels + channel) * planes + plane.min(planes - 1);
                    byte(f32::midpoint(view.bits[plane * size * size + pixel].to_f32() / scale, 1.0))
                }
            });
        }
    }
    PictureSheet { n, size, channels, pixels: pixels.into() }
}

/// What a step looks like, worked out once.
#[derive(Default)]
pub(crate) struct Read {
    of: Option<(Arc<Frame>, Source, Reading)>,
    sheet: Option<PictureSheet>,
}

impl Read {
    pub fn sheet(&mut self, frame: &Arc<Frame>, info: &ModelInfo, source: Source, reading: Reading) -> PictureSheet {
        let view = source.of(frame);
        if reading == Reading::Threshold {
            return view.pictures.clone();
        }
        let is_same = self.of.as_ref().is_some_and(|(old, old_source, old_reading)| {
            Arc::ptr_eq(old, frame) && (*old_source, *old_reading) == (source, reading)
        });
        match &self.sheet {
            Some(sheet) if is_same => sheet.clone(),
            _ => {
                let sheet = read(view, info, reading);
                self.of = Some((frame.clone(), source, reading));
                self.sheet = Some(sheet.clone());
                sheet
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sure_bits_read_softly_are_their_value() {
        for encoding in [Encoding::Uint8, Encoding::Gray, Encoding::Uint8Rand, Encoding::OneHot, Encoding::Continuous] {
            let codec = Codec::pixels(encoding);
            for value in [0, 1, 100, 255] {
                let bits = codec.encode(&[value]).unwrap();
                assert!((soft_value(&bits, &codec) * 255.0 - value as f32).abs() < 1e-3, "{encoding:?} {value}");
            }
        }
    }

    #[test]
    fn an_undecided_bit_counts_half() {
        let codec = Codec::pixels(Encoding::Uint8);
        let mut bits = codec.encode(&[0]).unwrap();
        bits[7] = 0.0;
        assert!((soft_value(&bits, &codec) * 255.0 - 64.0).abs() < 1e-3);
        // In Gray code the highest bit turns 0 into 255.
        let codec = Codec::pixels(Encoding::Gray);
        assert!((soft_value(&bits, &codec) * 255.0 - 127.5).abs() < 1e-3);
    }
}
