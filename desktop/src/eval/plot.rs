//! The first score of an evaluation as a line plot, with its spread over the seeds.

use anyhow::{Result, anyhow};
use image::RgbImage;
use plotters::prelude::{
    BitMapBackend, ChartBuilder, Circle, Color as _, IntoDrawingArea as _, LineSeries, PathElement, RGBColor,
    SeriesLabelPosition, WHITE,
};

use super::table::{Row, Table};
use crate::histogram::{FONT, register};

const SIZE: (u32, u32) = (960, 600);

/// Colours that people with any colour vision can tell apart (Okabe & Ito 2008), without their yellow.
const INKS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
];

/// A score at a place on the x axis, and its spread.
type Point = (f64, f64, f64);

/// What runs along the x axis.
#[derive(Clone, Copy, PartialEq)]
enum Axis {
    Td,
    Evaluations,
}

impl Axis {
    /// td if it varies, else the number of evaluations if that does.
    fn of(table: &Table) -> Option<Self> {
        let rows: Vec<&Row> = table.rows.iter().filter(|row| row.settings.is_some()).collect();
        let varies = |axis: &Self| rows.windows(2).any(|pair| axis.value(pair[0]) != axis.value(pair[1]));
        [Self::Td, Self::Evaluations].into_iter().find(varies)
    }

    /// Where on the axis a row is; nowhere if it has no time difference.
    fn value(self, row: &Row) -> Option<f64> {
        match self {
            Self::Td => row.settings.map(|settings| settings.td),
            Self::Evaluations => Some(row.evaluations as f64),
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Td => "time difference td, in steps",
            Self::Evaluations => "network evaluations",
        }
    }

    /// The name of the line a row belongs to: everything but what is on the axis.
    fn line(self, row: &Row) -> String {
        let Some(settings) = &row.settings else { return "autoregressive".to_owned() };
        let name = format!("{}, {}", settings.sampler.label(), settings.self_cond);
        match self {
            Self::Td => format!("{name}, {} steps", settings.n_steps),
            Self::Evaluations => name,
        }
    }
}

/// A picture of the first score; `None` where nothing varies.
pub(super) fn draw(table: &Table) -> Result<Option<RgbImage>> {
    let Some(axis) = Axis::of(table) else { return Ok(None) };
    let mut pixels = vec![0; (SIZE.0 * SIZE.1 * 3) as usize];
    draw_on(&mut pixels, table, axis).map_err(|error| anyhow!("cannot draw the plot: {error}"))?;
    Ok(RgbImage::from_raw(SIZE.0, SIZE.1, pixels))
}

fn draw_on(pixels: &mut [u8], table: &Table, axis: Axis) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    register()?;
    let root = BitMapBackend::with_buffer(pixels, SIZE).into_drawing_area();
    root.fill(&WHITE).map_err(|error| text(&error))?;
    let places = || table.rows.iter().filter_map(|row| axis.value(row));
    let (low, high) = (places().fold(f64::MAX, f64::min), places().fold(f64::MIN, f64::max));
    // What has no place on the axis is a level line.
    let points = |row: &Row| -> Vec<Point> {
        let places = axis.value(row).map_or(vec![low, high], |place| vec![place]);
        let at = |place: f64| row.scores.first().map(|spread| (place, spread.mean, spread.deviation));
        places.into_iter().filter_map(at).collect()
    };
    let top = table.rows.iter().flat_map(points).map(|(_, y, deviation)| y + deviation).fold(0.0, f64::max);
    let heading = table.rows.first().and_then(|row| row.scores.first()).map_or("", |spread| spread.score.label());
    let mut chart = ChartBuilder::on(&root)
        .caption(heading, (FONT, 24))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d(low..high, 0.0..(1.05 * top).max(1e-6))
        .map_err(|error| text(&error))?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc(axis.label())
        .y_desc(heading)
        .label_style((FONT, 16))
        .draw()
        .map_err(|error| text(&error))?;
    let mut lines: Vec<(String, Vec<Point>)> = Vec::new();
    for row in &table.rows {
        let name = axis.line(row);
        match lines.iter_mut().find(|(line, _)| *line == name) {
            Some((_, line)) => line.extend(points(row)),
            None => lines.push((name, points(row))),
        }
    }
    for (i, (name, mut points)) in lines.into_iter().enumerate() {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let ink = INKS[i % INKS.len()];
        let mean = LineSeries::new(points.iter().map(|&(x, y, _)| (x, y)), ink.stroke_width(2));
        chart
            .draw_series(mean)
            .map_err(|error| text(&error))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], ink.stroke_width(2)));
        let dots = points.iter().map(|&(x, y, _)| Circle::new((x, y), 3, ink.filled()));
        chart.draw_series(dots).map_err(|error| text(&error))?;
        let bars = points.iter().map(|&(x, y, deviation)| {
            PathElement::new([(x, (y - deviation).max(0.0)), (x, y + deviation)], ink.stroke_width(1))
        });
        chart.draw_series(bars).map_err(|error| text(&error))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .label_font((FONT, 16))
        .draw()
        .map_err(|error| text(&error))?;
    root.present().map_err(|error| text(&error))
}
