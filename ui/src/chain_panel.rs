//! Noise becomes pictures: the reverse chain, step by step.

use std::time::Duration;

use bit_diffusion::{
    bits::Encoding,
    data::shapes::SIZE,
    sampler::{Sampler, Settings},
};
use egui::{Color32, Image, RichText, ScrollArea, Slider, TextureHandle, TextureOptions, Ui, Vec2, load::SizedTexture};
use egui_plot::{Bar, BarChart};

use crate::{
    controls,
    run::{BATCH, Frame, HISTOGRAM_LIMIT, Request, Run},
};

/// How long one frame of the interface may work on the chain.
const BUDGET: Duration = Duration::from_millis(8);

/// The speed of playing, in steps a second.
const STEPS_PER_SECOND: f64 = 20.0;

/// The encodings whose pictures are quick to make: one-hot takes 32 times as many numbers.
const ENCODINGS: [Encoding; 4] = [Encoding::Uint8, Encoding::Gray, Encoding::Uint8Rand, Encoding::Continuous];

/// Settings on the left, pictures and the timeline on the right.
pub(crate) struct ChainPanel {
    request: Request,
    run: Result<Run, String>,
    /// The step that is shown, from 0.
    shown: usize,
    /// While playing, the time at which the next step is shown.
    next_at: Option<f64>,
    /// What was shown before the settings changed; stays until the new chain has come as far.
    stale: Option<Frame>,
    view: View,
}

/// The pictures on the screen, and what they were made of.
#[derive(Default)]
struct View {
    /// The number of the run and of its step.
    of: Option<(u64, usize)>,
    textures: Option<[TextureHandle; 2]>,
    n_runs: u64,
}

impl ChainPanel {
    pub fn new() -> Self {
        let request = Request {
            settings: Settings { n_steps: 60, ..Settings::default() },
            encoding: Encoding::Uint8,
            trust: 0.002,
            seed: 1,
        };
        Self {
            request,
            run: Run::start(&request, None).map_err(|error| error.to_string()),
            shown: 0,
            next_at: Some(0.0),
            stale: None,
            view: View::default(),
        }
    }

    pub fn progress(&self) -> (usize, usize) {
        self.run.as_ref().map_or((0, 1), |run| (run.frames.len(), run.n_steps()))
    }

    pub fn ui(&mut self, ui: &mut Ui) {
        let before = self.request;
        controls::beside(ui, "chain", self, Self::settings_ui, |panel, ui| {
            if panel.request != before {
                panel.restart();
            }
            panel.work(ui);
            egui::Panel::bottom("timeline").show(ui, |ui| panel.timeline_ui(ui));
            egui::CentralPanel::default().show(ui, |ui| {
                ScrollArea::both().show(ui, |ui| panel.frame_ui(ui));
            });
        });
    }

    /// Starts a chain with the new settings; what is on the screen stays until it is there.
    fn restart(&mut self) {
        self.shown = self.shown.min(self.request.settings.n_steps - 1);
        let old = std::mem::replace(&mut self.run, Err(String::new())).ok();
        self.run = Run::start(&self.request, old.as_ref()).map_err(|error| error.to_string());
        if let Some(mut old) = old
            && !old.frames.is_empty()
        {
            let last = self.shown.min(old.frames.len() - 1);
            // A chain that had not come as far has shown the stale frame all along.
            if self.stale.is_none() || old.frames.len() > self.shown {
                self.stale = Some(old.frames.swap_remove(last));
            }
        }
        self.view.n_runs += 1;
    }

    fn settings_ui(&mut self, ui: &mut Ui) {
        let Request { settings, encoding, trust, seed } = &mut self.request;
        ui.add_space(4.0);
        ui.label(
            "Sixteen pictures of pure noise are cleaned up a little at a time. Here the denoiser is a perfect one: it knows the 64 scenes \
             there are, and guesses their average, weighted by how well each fits.",
        );
        ui.add_space(8.0);
        controls::n_steps(ui, &mut settings.n_steps);
        let most = settings.n_steps as f64;
        settings.td = settings.td.min(most);
        ui.add(Slider::new(&mut settings.td, 0.0..=most).text("time difference td")).on_hover_text(
            "Each step takes the state this many steps further than the clock says, so the denoiser is told of more noise than there is.\n\n\
             t_now = 1 − step/steps\nt_next = max(1 − (step + 1 + td)/steps, 0)",
        );
        controls::sampler(ui, &mut settings.sampler, &Sampler::ALL);
        controls::self_cond(ui, &mut settings.self_cond);
        ui.add(Slider::new(trust, 0.0..=0.01).text("trust in the last guess β")).on_hover_text(
            "How much this perfect denoiser lets its earlier guess count. A trained network learns this by itself; at 0 all \
             self-conditioning strategies are the same.",
        );
        let explanation = "How a colour value from 0 to 255 is written: in base 2, in a code where neighbours differ in one bit, in base 2 \
             after a random shuffle, or not as bits at all.";
        controls::choice(ui, "encoding", explanation, encoding, &ENCODINGS, |encoding| encoding.label());
        controls::seed(ui, seed);
        ui.add_space(8.0);
        if let Ok(run) = &self.run {
            let (done, total) = (run.frames.len(), run.n_steps());
            ui.weak(format!("{done} of {total} steps made, {} evaluations of the denoiser", run.n_evaluations()));
        }
    }

    /// Moves the chain on, and the shown step if it is playing.
    fn work(&mut self, ui: &Ui) {
        let Ok(run) = &mut self.run else { return };
        if !run.is_finished() {
            if let Err(error) = run.advance(BUDGET) {
                self.run = Err(error.to_string());
                return;
            }
            ui.ctx().request_repaint();
        }
        if run.frames.len() > self.shown {
            self.stale = None;
        }
        let now = ui.input(|input| input.time);
        if let Some(next_at) = self.next_at
            && now >= next_at
        {
            let last = run.n_steps() - 1;
            if self.shown < last && self.shown + 1 < run.frames.len() {
                self.shown += 1;
            }
            self.next_at = (self.shown < last).then_some(now + 1.0 / STEPS_PER_SECOND);
        }
        if self.next_at.is_some() {
            ui.ctx().request_repaint_after(Duration::from_secs_f64(1.0 / STEPS_PER_SECOND));
        }
    }

    fn timeline_ui(&mut self, ui: &mut Ui) {
        let n_steps = self.request.settings.n_steps;
        let last = n_steps - 1;
        ui.add_space(4.0);
        ui.horizontal(|ui| {
            let is_playing = self.next_at.is_some();
            let play = ui.button(if is_playing { "Pause" } else { "Play" }).on_hover_text("Space bar");
            let space =
                ui.input(|input| input.key_pressed(egui::Key::Space)) && ui.memory(|memory| memory.focused().is_none());
            if play.clicked() || space {
                self.next_at = if is_playing { None } else { Some(0.0) };
                if !is_playing && self.shown >= last {
                    self.shown = 0;
                }
            }
            for (text, hint, to) in [
                ("Previous", "One step towards the noise", self.shown.saturating_sub(1)),
                ("Next", "One step towards the picture", (self.shown + 1).min(last)),
            ] {
                if ui.button(text).on_hover_text(hint).clicked() {
                    (self.shown, self.next_at) = (to, None);
                }
            }
            ui.spacing_mut().slider_width = (ui.available_width() - 90.0).max(80.0);
            let mut step = self.shown + 1;
            if ui.add(Slider::new(&mut step, 1..=n_steps).text("step")).changed() {
                (self.shown, self.next_at) = (step - 1, None);
            }
        });
        ui.add_space(4.0);
    }

    fn frame_ui(&mut self, ui: &mut Ui) {
        let run = match &self.run {
            Ok(run) => run,
            Err(error) => {
                ui.colored_label(ui.visuals().error_fg_color, error);
                return;
            }
        };
        let reached = self.shown.min(run.frames.len().saturating_sub(1));
        match (&self.stale, run.frames.get(reached)) {
            // The old pictures, under a heading that says so.
            (Some(frame), _) => {
                ui.horizontal(|ui| {
                    ui.strong("Working on the new settings…");
                    ui.label(format!("step {} of {}", run.frames.len(), self.shown + 1));
                });
                self.view.show(ui, frame, None);
            }
            (None, Some(frame)) => {
                heading_ui(ui, frame, reached);
                let of = (self.view.n_runs, reached);
                self.view.show(ui, frame, Some(of));
            }
            (None, None) => {
                ui.spinner();
            }
        }
    }
}

fn heading_ui(ui: &mut Ui, frame: &Frame, step: usize) {
    let Frame { t_now, t_next, n_off_palette, .. } = frame;
    ui.horizontal_wrapped(|ui| {
        ui.strong(format!("Step {}:", step + 1));
        ui.label(format!("the denoiser is told t = {t_now:.3}, the state goes to t = {t_next:.3};"));
        let share = 100.0 * *n_off_palette as f64 / (BATCH * SIZE * SIZE) as f64;
        ui.label(format!("{share:.1}% of the guessed pixels have a colour that no scene has"));
    });
}

impl View {
    /// Shows a frame; `of` says which it is, `None` keeps the pictures that are there.
    fn show(&mut self, ui: &mut Ui, frame: &Frame, of: Option<(u64, usize)>) {
        if self.textures.is_none() || of.is_some() && self.of != of {
            let load = |name: &str, image: &egui::ColorImage| {
                ui.ctx().load_texture(name, image.clone(), TextureOptions::NEAREST)
            };
            self.textures = Some([load("noisy", &frame.noisy), load("estimate", &frame.estimate)]);
            self.of = of;
        }
        let Some([noisy, estimate]) = &self.textures else { return };
        ui.add_space(4.0);
        let views = [
            ("Noisy state x_t, read by threshold", noisy, &frame.noisy_histogram[..], ui.visuals().weak_text_color()),
            (
                "The denoiser's guess x_pred",
                estimate,
                &frame.estimate_histogram[..],
                Color32::from_rgb(0x2a, 0x8c, 0xd8),
            ),
        ];
        if controls::is_narrow(ui) {
            let side = ui.available_width().clamp(120.0, 360.0);
            for view in views {
                view_ui(ui, view, side, 100.0);
            }
        } else {
            // Room for the names and a small histogram is left below the pictures; what the width leaves over is the histogram's too.
            const NAMES: f32 = 70.0;
            let room = ui.available_size() - Vec2::new(ui.spacing().item_spacing.x, NAMES);
            let side = (room.x / 2.0).min(room.y - 100.0).max(120.0);
            let histogram_height = (room.y - side).clamp(80.0, 240.0);
            ui.horizontal(|ui| {
                for view in views {
                    ui.vertical(|ui| view_ui(ui, view, side, histogram_height));
                }
            });
        }
    }
}

/// One grid of pictures and the histogram of its bits.
fn view_ui(
    ui: &mut Ui,
    (name, texture, histogram, colour): (&str, &TextureHandle, &[f64], Color32),
    side: f32,
    histogram_height: f32,
) {
    ui.set_width(side);
    ui.label(RichText::new(name).strong());
    ui.add(Image::from_texture(SizedTexture::new(texture.id(), Vec2::splat(side))).alt_text(name));
    histogram_ui(ui, name, histogram, colour, [side, histogram_height]);
}

/// The shares of analog bits in each bin.
fn histogram_ui(ui: &mut Ui, name: &str, shares: &[f64], colour: Color32, [width, height]: [f32; 2]) {
    let limit = HISTOGRAM_LIMIT;
    let bin = 2.0 * limit / shares.len() as f64;
    let bars = shares
        .iter()
        .enumerate()
        .map(|(i, share)| Bar::new(-limit + (i as f64 + 0.5) * bin, 100.0 * share).width(bin))
        .collect();
    ui.weak("Its analog bits: % at each value");
    controls::still_plot(name)
        .width(width)
        .height(height)
        .include_y(0.0)
        .include_x(-limit)
        .include_x(limit)
        .show(ui, |plot| plot.bar_chart(BarChart::new("analog bits", bars).color(colour)));
}
