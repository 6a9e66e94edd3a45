//! How analog bits are spread, step by step, as a picture: the paper's histogram of 50 bins, for a whole chain.

use anyhow::{Result, anyhow};
use bit_diffusion::{kernels::histogram, metrics::bits::N_BINS};
use burn::tensor::Tensor;
use image::RgbImage;
use plotters::{
    coord::Shift,
    prelude::{
        BitMapBackend, ChartBuilder, Color as _, DrawingArea, IntoDrawingArea as _, LineSeries, RGBColor, Rectangle,
        WHITE,
    },
    style::{FontStyle, register_font},
};

/// The ends of the histogram, in units of the bits' size.
const LIMIT: f64 = 2.0;

const SIZE: (u32, u32) = (960, 640);
/// The one font of all plots.
pub(crate) const FONT: &str = "sans-serif";
const INK: RGBColor = RGBColor(38, 110, 220);

/// The histograms of a chain.
pub(crate) struct Histograms {
    scale: f64,
    /// The shares of the bins at each step, of the state.
    x_t: Vec<[f64; N_BINS]>,
    /// The same of the estimate.
    x_pred: Vec<[f64; N_BINS]>,
}

impl Histograms {
    /// No histograms yet, of bits of ±`scale`.
    pub fn new(scale: f64) -> Self {
        Self { scale, x_t: Vec::new(), x_pred: Vec::new() }
    }

    /// Adds a step.
    pub fn add(&mut self, x_t: &Tensor<4>, x_pred: &Tensor<4>) {
        self.x_t.push(self.count(x_t));
        self.x_pred.push(self.count(x_pred));
    }

    fn count(&self, bits: &Tensor<4>) -> [f64; N_BINS] {
        histogram(bits.clone(), LIMIT * self.scale).expect("the limit is above 0").shares()
    }

    /// Above, a column for each step, the darker the more bits; below, the last step alone. The state left, the estimate right.
    pub fn draw(&self) -> Result<RgbImage> {
        let mut pixels = vec![0; (SIZE.0 * SIZE.1 * 3) as usize];
        self.draw_on(&mut pixels).map_err(|error| anyhow!("cannot draw the histogram: {error}"))?;
        RgbImage::from_raw(SIZE.0, SIZE.1, pixels).ok_or_else(|| anyhow!("cannot draw the histogram"))
    }

    fn draw_on(&self, pixels: &mut [u8]) -> Result<(), Box<dyn std::error::Error + '_>> {
        register()?;
        let root = BitMapBackend::with_buffer(pixels, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let limit = LIMIT * self.scale;
        let areas = root.split_evenly((2, 2));
        for (i, (name, steps)) in [("state x_t", &self.x_t), ("estimate of x_0", &self.x_pred)].into_iter().enumerate()
        {
            over_steps(&areas[i], name, steps, limit).map_err(|error| error.to_string())?;
            last_step(&areas[2 + i], name, steps, limit).map_err(|error| error.to_string())?;
        }
        root.present()?;
        Ok(())
    }
}

/// Makes the font known to plotters.
pub(crate) fn register() -> Result<(), &'static str> {
    register_font(FONT, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT).map_err(|_| "the font is broken")
}

type Area<'a> = DrawingArea<BitMapBackend<'a>, Shift>;

fn over_steps(
    area: &Area<'_>,
    name: &str,
    steps: &[[f64; N_BINS]],
    limit: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{name}, step by step"), (FONT, 20))
        .margin(8)
        .margin_right(20)
        .x_label_area_size(36)
        .y_label_area_size(48)
        .build_cartesian_2d(0.0..steps.len() as f64, -limit..limit)
        .map_err(|error| error.to_string())?;
    let width = 2.0 * limit / N_BINS as f64;
    let cells = steps.iter().enumerate().flat_map(|(step, shares)| {
        shares.iter().enumerate().map(move |(bin, &share)| {
            let low = -limit + bin as f64 * width;
            // The square root shows the few bits between the peaks too.
            let ink = INK.mix(share.sqrt()).filled();
            Rectangle::new([(step as f64, low), (step as f64 + 1.0, low + width)], ink)
        })
    });
    chart.draw_series(cells).map_err(|error| error.to_string())?;
    chart
        .configure_mesh()
        .disable_mesh()
        .x_desc("step")
        .y_desc("value")
        .label_style((FONT, 14))
        .draw()
        .map_err(|error| error.to_string())?;
    Ok(())
}

fn last_step(
    area: &Area<'_>,
    name: &str,
    steps: &[[f64; N_BINS]],
    limit: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let Some(shares) = steps.last() else {
        return Ok(());
    };
    let highest = shares.iter().copied().fold(0.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{name}, last step"), (FONT, 20))
        .margin(8)
        .margin_right(20)
        .x_label_area_size(36)
        .y_label_area_size(48)
        .build_cartesian_2d(-limit..limit, 0.0..100.0 * highest.max(1e-6) * 1.05)
        .map_err(|error| error.to_string())?;
    let width = 2.0 * limit / N_BINS as f64;
    let outline = shares.iter().enumerate().flat_map(|(bin, share)| {
        let low = -limit + bin as f64 * width;
        [(low, 100.0 * share), (low + width, 100.0 * share)]
    });
    chart.draw_series(LineSeries::new(outline, INK.stroke_width(2))).map_err(|error| error.to_string())?;
    chart
        .configure_mesh()
        .disable_mesh()
        .x_desc("value")
        .y_desc("bits, in percent")
        .label_style((FONT, 14))
        .draw()
        .map_err(|error| error.to_string())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn the_picture_has_ink_where_the_bits_are() {
        let mut histograms = Histograms::new(1.0);
        let ones = Tensor::ones([1, 2, 2, 2], &Device::flex());
        for _ in 0..10 {
            histograms.add(&ones, &ones);
        }
        let picture = histograms.draw().unwrap();
        assert_eq!(picture.dimensions(), SIZE);
        let ink = picture.pixels().filter(|pixel| pixel.0 == [INK.0, INK.1, INK.2]).count();
        // Two bars as wide as a chart and one bin high, 4 or 5 pixels, and the lines below.
        assert!((1500..20_000).contains(&ink), "{ink}");
    }
}
