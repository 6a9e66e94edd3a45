//! One bit in one dimension: how a continuous sampler makes a discrete variable (appendix D).

use std::ops::ControlFlow;

use bit_diffusion::{
    Error,
    model::{Bernoulli, Condition},
    sampler::{Chain, Sampler, Settings, State},
    self_cond::SelfCond,
};
use burn::tensor::Device;
use egui::{Color32, Slider, Ui};
use egui_plot::{HLine, Line, LineStyle, PlotPoint, PlotPoints};

use crate::controls;

/// How many paths are drawn; how many more are counted.
const N_DRAWN: usize = 80;
const N_COUNTED: usize = 2000;

/// The paths of many noise values, and the bits they became.
struct Paths {
    /// Each path as points `(1 − t, x_t)`, and whether it became a 1.
    drawn: Vec<(Vec<PlotPoint>, bool)>,
    /// The share of all values that became 1.
    share_of_ones: f64,
}

/// Settings on the left, paths on the right.
pub(crate) struct ToyPanel {
    p: f64,
    settings: Settings,
    seed: u64,
    paths: Option<Result<Paths, String>>,
}

impl ToyPanel {
    pub fn new() -> Self {
        Self {
            p: 0.7,
            settings: Settings { n_steps: 100, self_cond: SelfCond::Off, ..Settings::default() },
            seed: 1,
            paths: None,
        }
    }

    pub fn ui(&mut self, ui: &mut Ui) {
        let before = (self.p, self.settings, self.seed);
        controls::beside(ui, "toy", self, Self::settings_ui, |panel, ui| {
            let Self { p, settings, seed, .. } = *panel;
            if before != (p, settings, seed) {
                panel.paths = None;
            }
            let paths =
                panel.paths.get_or_insert_with(|| draw_paths(p, settings, seed).map_err(|error| error.to_string()));
            egui::CentralPanel::default().show(ui, |ui| match paths {
                Ok(paths) => paths_ui(ui, p, paths),
                Err(error) => {
                    ui.colored_label(ui.visuals().error_fg_color, &*error);
                }
            });
        });
    }

    fn settings_ui(&mut self, ui: &mut Ui) {
        ui.add_space(4.0);
        ui.label(
            "A bit is 1 with probability p. Written as −1 or 1 and drowned in noise, it is an ordinary number, and a continuous sampler can \
             bring it back: every noise value is carried to −1 or to 1. Its best denoiser is known exactly, so no network is needed.",
        );
        ui.add_space(8.0);
        ui.add(Slider::new(&mut self.p, 0.02..=0.98).text("probability p"))
            .on_hover_text("How often the bit is 1.\n\nx_pred = tanh(√γ·x_t/(1−γ) + ½ ln(p/(1−p)))");
        controls::n_steps(ui, &mut self.settings.n_steps);
        controls::sampler(
            ui,
            &mut self.settings.sampler,
            &[Sampler::Ddim, Sampler::Ddpm, Sampler::DpmSolverMultistep2],
        );
        controls::seed(ui, &mut self.seed);
        ui.add_space(8.0);
        if let Some(Ok(paths)) = &self.paths {
            ui.label(format!(
                "{:.1}% of {N_COUNTED} noise values became 1, p is {:.1}%",
                100.0 * paths.share_of_ones,
                100.0 * self.p
            ));
        }
        ui.label("DDIM is deterministic: with enough steps, all noise above the dashed line becomes 1. DDPM adds noise on the way, so a path may cross.");
    }
}

fn draw_paths(p: f64, settings: Settings, seed: u64) -> Result<Paths, Error> {
    let bit = Bernoulli::new(p)?;
    let state = State::from_seed([N_COUNTED, 1], seed, &Device::flex());
    let first = |state: &State<2>| -> Vec<f32> {
        let drawn = state.x_t.clone().narrow(0, 0, N_DRAWN);
        drawn.into_data().iter::<f32>().collect()
    };
    let mut points: Vec<Vec<PlotPoint>> = first(&state).iter().map(|&x| vec![PlotPoint::new(0.0, x)]).collect();
    let mut chain = Chain::new(settings, Condition::None, state)?;
    let x_pred = chain.run(&bit, |step| {
        for (path, x) in points.iter_mut().zip(first(&step.next)) {
            path.push(PlotPoint::new(1.0 - step.t_next, x));
        }
        ControlFlow::Continue(())
    })?;
    let ones: Vec<bool> = x_pred.into_data().iter::<f32>().map(|x| x > 0.0).collect();
    let n_ones = ones.iter().filter(|is_one| **is_one).count();
    Ok(Paths { drawn: points.into_iter().zip(ones).collect(), share_of_ones: n_ones as f64 / N_COUNTED as f64 })
}

fn paths_ui(ui: &mut Ui, p: f64, paths: &Paths) {
    ui.weak("From noise, left, to a bit, right: the value of each path as the clock runs from t = 1 to t = 0");
    let divide = Bernoulli::new(p).map(|bit| bit.divide());
    controls::still_plot("paths").x_axis_label("1 − t").y_axis_label("x_t").include_y(-3.2).include_y(3.2).show(
        ui,
        |plot| {
            for (path, becomes_one) in &paths.drawn {
                let colour = if *becomes_one {
                    Color32::from_rgb(0x2a, 0x8c, 0xd8)
                } else {
                    Color32::from_rgb(0xd8, 0x7a, 0x2a)
                };
                let name = if *becomes_one { "becomes 1" } else { "becomes −1" };
                plot.line(Line::new(name, PlotPoints::Borrowed(path)).color(colour.gamma_multiply(0.6)));
            }
            if let Ok(divide) = divide {
                plot.hline(HLine::new("divide", divide).style(LineStyle::dashed_loose()));
            }
        },
    );
}
