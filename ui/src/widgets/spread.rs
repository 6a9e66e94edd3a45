//! How analog bits are spread at each step of a chain: all of them, or those of one bit plane.

use std::sync::Arc;

use bit_diffusion::{
    engine::{Frame, ModelInfo, View},
    metrics::bits::{Histogram, N_BINS, share_near_modes},
};

/// Which bits are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plane {
    /// All of them.
    All,
    /// This bit of every channel, the lowest is 0.
    Bit(usize),
}

impl Plane {
    /// Every plane of values that take so many bits, the highest bit first. One number a value has no planes, and 256 are too many.
    pub fn all(n_bits: usize) -> impl Iterator<Item = Self> {
        let n_planes = if (2..=16).contains(&n_bits) { n_bits } else { 0 };
        [Self::All].into_iter().chain((0..n_planes).rev().map(Self::Bit))
    }

    pub fn label(self, n_bits: usize) -> String {
        match self {
            Self::All => "all bits".to_owned(),
            Self::Bit(0) => "bit 0, the lowest".to_owned(),
            Self::Bit(bit) if bit + 1 == n_bits => format!("bit {bit}, the highest"),
            Self::Bit(bit) => format!("bit {bit}"),
        }
    }
}

/// The spread of the bits of one state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spread {
    /// The share of bits in each bin, from −limit to limit.
    pub shares: [f64; N_BINS],
    /// The share of bits near a mode.
    pub decided: f64,
}

/// The spreads of a chain, each worked out once.
#[derive(Default)]
pub(crate) struct Spreads {
    /// What they were worked out of: the first frame and the plane.
    of: Option<(Arc<Frame>, Plane)>,
    limit: f64,
    states: Vec<Spread>,
    estimates: Vec<Spread>,
}

impl Spreads {
    /// Works out what is new.
    pub fn update(&mut self, frames: &[Arc<Frame>], plane: Plane, info: &ModelInfo) {
        let Some(first) = frames.first() else { return };
        let is_same = self.of.as_ref().is_some_and(|(frame, of)| Arc::ptr_eq(frame, first) && *of == plane);
        if !is_same || frames.len() < self.states.len() {
            self.of = Some((first.clone(), plane));
            self.limit = first.x_t.histogram.limit;
            self.states.clear();
            self.estimates.clear();
        }
        for frame in &frames[self.states.len()..] {
            self.states.push(spread(&frame.x_t, plane, info));
            self.estimates.push(spread(&frame.x_pred, plane, info));
        }
    }

    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// The bins go from −limit to limit.
    pub fn limit(&self) -> f64 {
        self.limit
    }

    /// Of `x_t` at each step.
    pub fn states(&self) -> &[Spread] {
        &self.states
    }

    /// Of `x_pred` at each step.
    pub fn estimates(&self) -> &[Spread] {
        &self.estimates
    }
}

fn spread(view: &View, plane: Plane, info: &ModelInfo) -> Spread {
    let Plane::Bit(bit) = plane else {
        return Spread { shares: view.histogram.shares(), decided: view.share_near_modes };
    };
    let area = info.size * info.size;
    // Channel after channel, each with its bits, the lowest first.
    let planes = view.bits.chunks_exact(area).skip(bit).step_by(info.codec.bits_per_symbol());
    let values: Vec<f32> = planes.flatten().map(|value| value.to_f32()).collect();
    let histogram = Histogram::new(&values, view.histogram.limit).map(|histogram| histogram.shares());
    Spread {
        shares: histogram.unwrap_or([0.0; N_BINS]),
        decided: share_near_modes(&values, info.codec.scale()).unwrap_or(0.0),
    }
}
