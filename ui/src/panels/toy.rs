//! One bit in one dimension: how a continuous sampler makes a discrete variable (appendix D).
//!
//! Everything is known in closed form here, so this panel needs neither a network nor the engine.

mod kept;

use std::ops::ControlFlow;

use bit_diffusion::{
    Error,
    model::{Bernoulli, Condition},
    sampler::{Chain, Sampler, Settings, State},
    self_cond::SelfCond,
};
use burn::tensor::{Device, Tensor};
use egui::{Slider, Ui};
use egui_plot::{Bar, BarChart, HLine, Line, LineStyle, Plot, PlotPoint, PlotPoints, Points};

use crate::{
    controls,
    session::{Pane, Session},
    theme::Ink,
    widgets::Undo,
};

/// How many paths are drawn; how many more are counted.
const N_DRAWN: usize = 80;
const N_COUNTED: usize = 2000;

/// The values that are in sight.
const LIMIT: f64 = 3.5;

/// The width of the two distributions at the sides, in points.
const SIDE: f32 = 110.0;

/// A path as points `(1 − t, x_t)`, and whether it became a 1.
type Path = (Vec<PlotPoint>, bool);

/// The paths of many noise values, and the bits they became.
struct Paths {
    drawn: Vec<Path>,
    /// The path of the chosen starting point.
    chosen: Path,
    /// The share of all values that became 1.
    share_of_ones: f64,
}

/// What decides the paths.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Wanted {
    p: f64,
    settings: Settings,
    seed: u64,
    /// Where the chosen path starts.
    start: f64,
}

/// Settings on the left, paths on the right.
pub(crate) struct Toy {
    wanted: Wanted,
    undo: Undo<Wanted>,
    /// The paths, and what they were made for.
    paths: Option<(Wanted, Result<Paths, String>)>,
}

impl Default for Toy {
    fn default() -> Self {
        let settings = Settings { n_steps: 100, self_cond: SelfCond::Off, ..Settings::default() };
        let wanted = Wanted { p: 0.7, settings, seed: 1, start: 1.0 };
        Self { wanted, undo: Undo::new(wanted), paths: None }
    }
}

impl Pane for Toy {
    fn ui(&mut self, ui: &mut Ui, _session: &mut Session) {
        controls::beside(ui, "toy", self, Self::settings_ui, |panel, ui| {
            let wanted = panel.wanted;
            panel.undo.note(ui, &wanted);
            if panel.paths.as_ref().is_none_or(|(of, _)| *of != wanted) {
                panel.paths = Some((wanted, draw_paths(wanted).map_err(|error| error.to_string())));
            }
            egui::CentralPanel::default().show(ui, |ui| match &panel.paths {
                Some((_, Ok(paths))) => {
                    if let Some(start) = paths_ui(ui, wanted, paths) {
                        panel.wanted.start = start;
                    }
                }
                Some((_, Err(error))) => {
                    ui.colored_label(ui.visuals().error_fg_color, error);
                }
                None => {}
            });
        });
    }

    fn undo(&mut self) {
        if let Some(wanted) = self.undo.undo() {
            self.wanted = wanted;
        }
    }
}

impl Toy {
    fn settings_ui(&mut self, ui: &mut Ui) {
        let Wanted { p, settings, seed, start } = &mut self.wanted;
        ui.add_space(4.0);
        ui.label(
            "A bit is 1 with probability p. Written as −1 or 1 and drowned in noise, it is an ordinary number, and a continuous sampler can \
             bring it back: every noise value is carried to −1 or to 1. Its best denoiser is known exactly, so no network is needed.",
        );
        ui.add_space(8.0);
        ui.add(Slider::new(p, 0.02..=0.98).text("probability p"))
            .on_hover_text("How often the bit is 1.\n\nx_pred = tanh(√γ·x_t/(1−γ) + ½ ln(p/(1−p)))");
        ui.add(Slider::new(start, -3.0..=3.0).text("starting point"))
            .on_hover_text("Where the thick path starts; or drag it in the picture.");
        controls::n_steps(ui, &mut settings.n_steps);
        let samplers = [Sampler::Ddim, Sampler::Ddpm, Sampler::DpmSolverMultistep2];
        controls::sampler(ui, &mut settings.sampler, &samplers);
        controls::seed(ui, seed);
        ui.add_space(8.0);
        if let Some((_, Ok(paths))) = &self.paths {
            let share = 100.0 * paths.share_of_ones;
            ui.label(format!("{share:.1}% of {N_COUNTED} noise values became 1, p is {:.1}%", 100.0 * self.wanted.p));
            let bit = if paths.chosen.1 { "1" } else { "−1" };
            ui.label(format!("The thick path starts at {:.2} and becomes {bit}", self.wanted.start));
        }
        ui.label("DDIM is deterministic: with enough steps, all noise above the dashed line becomes 1. DDPM adds noise on the way, so a path may cross.");
    }
}

fn draw_paths(wanted: Wanted) -> Result<Paths, Error> {
    let Wanted { p, settings, seed, start } = wanted;
    let bit = Bernoulli::new(p)?;
    let device = Device::flex();
    let noise = State::from_seed([N_COUNTED, 1], seed, &device).x_t;
    // Last, so that the noise of all others is the same wherever it starts.
    let chosen = Tensor::<2>::from_floats([[start as f32]], &device);
    let state = State::new(Tensor::cat(vec![noise, chosen], 0), seed);
    let watched = |state: &State<2>| -> Vec<f32> {
        let x_t: Vec<f32> = state.x_t.clone().into_data().iter::<f32>().collect();
        x_t[..N_DRAWN].iter().chain(x_t.last()).copied().collect()
    };
    let mut points: Vec<Vec<PlotPoint>> = watched(&state).iter().map(|&x| vec![PlotPoint::new(0.0, x)]).collect();
    let mut chain = Chain::new(settings, Condition::None, state)?;
    let x_pred = chain.run(&bit, |step| {
        for (path, x) in points.iter_mut().zip(watched(&step.next)) {
            path.push(PlotPoint::new(1.0 - step.t_next, x));
        }
        ControlFlow::Continue(())
    })?;
    let mut ones: Vec<bool> = x_pred.into_data().iter::<f32>().map(|x| x > 0.0).collect();
    let chosen = (points.pop().unwrap_or_default(), ones.pop().unwrap_or_default());
    let n_ones = ones.iter().filter(|is_one| **is_one).count();
    let share_of_ones = n_ones as f64 / N_COUNTED as f64;
    Ok(Paths { drawn: points.into_iter().zip(ones).collect(), chosen, share_of_ones })
}

/// Noise on the left, paths in the middle, bits on the right; returns where the chosen path is dragged to.
fn paths_ui(ui: &mut Ui, wanted: Wanted, paths: &Paths) -> Option<f64> {
    ui.weak("From noise, left, to a bit, right, as the clock runs from t = 1 to t = 0. Drag up and down to move the start of the thick path");
    let gap = ui.spacing().item_spacing.x;
    let has_sides = !controls::is_narrow(ui);
    let width = ui.available_width() - if has_sides { 2.0 * (SIDE + gap) } else { 0.0 };
    ui.horizontal_top(|ui| {
        if has_sides {
            noise_ui(ui);
        }
        let start = middle_ui(ui, wanted, paths, width);
        if has_sides {
            bits_ui(ui, wanted.p, paths.share_of_ones);
        }
        start
    })
    .inner
}

fn middle_ui(ui: &mut Ui, wanted: Wanted, paths: &Paths, width: f32) -> Option<f64> {
    let inks = [Ink::Zero, Ink::One].map(|ink| ink.colour(ui));
    let ink_of = |is_one: bool| inks[usize::from(is_one)];
    let divide = Bernoulli::new(wanted.p).map(|bit| bit.divide());
    let divide_ink = ui.visuals().text_color();
    let plot = controls::still_plot("paths").width(width).x_axis_label("time gone by, 1 − t").y_axis_label("value x_t");
    let shown = plot.show(ui, |plot| {
        for (path, is_one) in &paths.drawn {
            let name = if *is_one { "becomes 1" } else { "becomes −1" };
            let line = Line::new(name, PlotPoints::Borrowed(path)).color(ink_of(*is_one).gamma_multiply(0.5));
            plot.line(line.allow_hover(false));
        }
        if let Ok(divide) = divide {
            plot.hline(
                HLine::new("divide", divide).color(divide_ink).style(LineStyle::dashed_loose()).allow_hover(false),
            );
        }
        let (path, is_one) = &paths.chosen;
        plot.line(Line::new("the chosen path", PlotPoints::Borrowed(path)).color(ink_of(*is_one)).width(4.0));
        let start = Points::new("its start", [0.0, wanted.start]).radius(8.0).color(ink_of(*is_one));
        plot.points(start);
        plot.set_plot_bounds_y(-LIMIT..=LIMIT);
        plot.pointer_coordinate()
    });
    let becomes = if paths.chosen.1 { "1" } else { "−1" };
    controls::name(&shown.response, &format!("{N_DRAWN} paths from noise to a bit; the thick one becomes {becomes}"));
    let is_moved = shown.response.dragged() || shown.response.clicked();
    shown.inner.filter(|_| is_moved).map(|point| point.y.clamp(-3.0, 3.0))
}

/// A distribution on its side, with the same values as the paths beside it.
fn side_plot<'a>(name: &'a str, label: &'a str) -> Plot<'a> {
    let plot = controls::still_plot(name).width(SIDE).include_x(0.0);
    plot.show_axes([true, false]).x_axis_label(label).show_grid([false, true]).show_x(false).show_y(false)
}

fn noise_ui(ui: &mut Ui) {
    let ink = Ink::State.colour(ui);
    // At γ = 0 nothing but noise is left.
    let density = |x: f64| (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
    let points = (-32..=32).map(|tenths| f64::from(tenths) / 10.0).map(|x| [density(x), x]);
    let line = Line::new("density of the noise", points.collect::<Vec<_>>()).color(ink).width(2.0);
    let shown = side_plot("noise", "the noise").invert_x(true).show(ui, |plot| {
        plot.line(line.allow_hover(false));
        plot.set_plot_bounds_y(-LIMIT..=LIMIT);
    });
    controls::name(&shown.response, "The density of the noise, highest at 0");
    shown.response.on_hover_text("How likely each noise value is: a bell around 0");
}

fn bits_ui(ui: &mut Ui, p: f64, share_of_ones: f64) {
    let bars = [(-1.0, 1.0 - share_of_ones, 1.0 - p, Ink::Zero), (1.0, share_of_ones, p, Ink::One)];
    let bars = bars.map(|(value, share, wanted, ink)| {
        let colour = ink.colour(ui);
        let wanted = Bar::new(value, wanted).width(0.5).fill(egui::Color32::TRANSPARENT).stroke((1.5, colour));
        [Bar::new(value, share).width(0.35).fill(colour), wanted]
    });
    let chart = BarChart::new("the bits", bars.into_iter().flatten().collect()).horizontal().allow_hover(false);
    let shown = side_plot("bits", "the bits").include_x(1.0).show(ui, |plot| {
        plot.bar_chart(chart);
        plot.set_plot_bounds_y(-LIMIT..=LIMIT);
    });
    controls::name(&shown.response, &format!("How often the bits came out: 1 in {:.1}%", 100.0 * share_of_ones));
    shown.response.on_hover_text("Filled: how often each bit came out. Outlined: how often it should");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_above_the_divide_becomes_one() {
        let settings = Settings { n_steps: 100, self_cond: SelfCond::Off, ..Settings::default() };
        let divide = Bernoulli::new(0.7).unwrap().divide();
        let becomes_one = |start: f64| {
            let paths = draw_paths(Wanted { p: 0.7, settings, seed: 1, start }).unwrap();
            assert_eq!(paths.drawn.len(), N_DRAWN);
            assert!((paths.chosen.0[0].y - start).abs() < 1e-6);
            paths.chosen.1
        };
        assert!(becomes_one(divide + 0.2) && !becomes_one(divide - 0.2));
    }
}
