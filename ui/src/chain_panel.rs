//! Noise becomes pictures: the reverse chain, step by step.

use std::time::Duration;

use bit_diffusion::{
    bits::Encoding,
    data::shapes::SIZE,
    sampler::{Sampler, Settings},
};
use egui::{Color32, Image, RichText, ScrollArea, Slider, TextureHandle, TextureOptions, Ui, Vec2, load::SizedTexture};
use egui_plot::{Bar, BarChart, Plot};

use crate::{
    controls,
    pictures::BINS,
    run::{BATCH, Frame, HISTOGRAM_LIMIT, Request, Run},
};

/// How long one frame of the interface may work on the chain.
const BUDGET: Duration = Duration::from_millis(8);

/// The speed of playing, in steps a second.
const STEPS_PER_SECOND: f64 = 20.0;

/// Settings on the left, pictures and the timeline on the right.
pub(crate) struct ChainPanel {
    request: Request,
    run: Result<Run, String>,
    /// The step that is shown.
    shown: usize,
    /// While playing, the time at which the next step is shown.
    next_at: Option<f64>,
    /// The two grids, and the step they were made of.
    textures: Option<(usize, [TextureHandle; 2])>,
}

impl ChainPanel {
    pub fn new() -> Self {
        let request = Request {
            settings: Settings { n_steps: 60, td: 0.0, ..Settings::default() },
            encoding: Encoding::Uint8,
            trust: 0.0,
            seed: 1,
        };
        Self {
            request,
            run: Run::start(&request).map_err(|error| error.to_string()),
            shown: 0,
            next_at: Some(0.0),
            textures: None,
        }
    }

    pub fn progress(&self) -> (usize, usize) {
        self.run.as_ref().map_or((0, 0), |run| (run.frames.len(), run.n_steps()))
    }

    pub fn ui(&mut self, ui: &mut Ui) {
        let before = self.request;
        egui::Panel::left("chain settings").default_size(290.0).show(ui, |ui| {
            ScrollArea::vertical().show(ui, |ui| self.settings_ui(ui));
        });
        if self.request != before {
            self.run = Run::start(&self.request).map_err(|error| error.to_string());
            self.textures = None;
            self.shown = self.shown.min(self.request.settings.n_steps - 1);
        }
        self.work(ui);
        egui::Panel::bottom("timeline").show(ui, |ui| self.timeline_ui(ui));
        egui::CentralPanel::default().show(ui, |ui| match &self.run {
            Ok(run) => match run.frames.get(self.shown).or(run.frames.last()) {
                Some(frame) => {
                    let step = self.shown.min(run.frames.len() - 1);
                    show_frame(ui, frame, step, &mut self.textures);
                }
                None => {
                    ui.spinner();
                }
            },
            Err(error) => {
                ui.colored_label(ui.visuals().error_fg_color, error);
            }
        });
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
            "Each step takes the state this many steps further than the clock says, so the network is told of more noise than there is.\n\n\
             t_now = 1 − step/steps\nt_next = max(1 − (step + 1 + td)/steps, 0)",
        );
        controls::sampler(ui, &mut settings.sampler, &Sampler::ALL);
        controls::self_cond(ui, &mut settings.self_cond);
        ui.add(Slider::new(trust, 0.0..=0.01).text("trust β")).on_hover_text(
            "How much this perfect denoiser lets its earlier guess count. A trained network learns this by itself; at 0 all \
             self-conditioning strategies are the same.",
        );
        let explanation = "How a colour value from 0 to 255 is written: in base 2, in a code where neighbours differ in one bit, in base 2 \
             after a random shuffle, as 256 yes-or-no numbers, or not as bits at all.";
        let encodings = [Encoding::Uint8, Encoding::Gray, Encoding::Uint8Rand, Encoding::Continuous];
        controls::choice(ui, "encoding", explanation, encoding, &encodings, |encoding| encoding.label());
        controls::seed(ui, seed);
        ui.add_space(8.0);
        if let Ok(run) = &self.run {
            ui.weak(format!(
                "{} of {} steps made, {} evaluations",
                run.frames.len(),
                run.n_steps(),
                run.n_evaluations()
            ));
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
        let last = self.request.settings.n_steps - 1;
        ui.add_space(4.0);
        ui.horizontal(|ui| {
            let is_playing = self.next_at.is_some();
            let play = ui.button(if is_playing { "Pause" } else { "Play" }).on_hover_text("Space");
            let space = ui.input(|input| input.key_pressed(egui::Key::Space)) && !ui.ctx().egui_wants_keyboard_input();
            if play.clicked() || space {
                self.next_at = if is_playing { None } else { Some(0.0) };
                if !is_playing && self.shown >= last {
                    self.shown = 0;
                }
            }
            for (text, hint, to) in [
                ("Back", "One step towards the noise", self.shown.saturating_sub(1)),
                ("On", "One step towards the picture", (self.shown + 1).min(last)),
            ] {
                if ui.button(text).on_hover_text(hint).clicked() {
                    (self.shown, self.next_at) = (to, None);
                }
            }
            ui.spacing_mut().slider_width = (ui.available_width() - 110.0).max(80.0);
            if ui.add(Slider::new(&mut self.shown, 0..=last).text("step")).dragged() {
                self.next_at = None;
            }
        });
        ui.add_space(4.0);
    }
}

fn show_frame(ui: &mut Ui, frame: &Frame, step: usize, textures: &mut Option<(usize, [TextureHandle; 2])>) {
    let Frame { t_now, t_next, n_off_palette, .. } = frame;
    ui.horizontal_wrapped(|ui| {
        ui.strong(format!("Step {}", step + 1));
        ui.label(format!("the network is told t = {t_now:.3}, the state goes to t = {t_next:.3};"));
        let share = 100.0 * *n_off_palette as f64 / (BATCH * SIZE * SIZE) as f64;
        ui.label(format!("{share:.1}% of the guessed pixels have a colour that no scene has"));
    });
    ui.add_space(4.0);
    if textures.as_ref().is_none_or(|(of, _)| *of != step) {
        let load =
            |name: &str, image: &egui::ColorImage| ui.ctx().load_texture(name, image.clone(), TextureOptions::NEAREST);
        *textures = Some((step, [load("noisy", &frame.noisy), load("estimate", &frame.estimate)]));
    }
    let Some((_, [noisy, estimate])) = textures else { return };
    let gap = ui.spacing().item_spacing.x;
    let side = ((ui.available_width() - gap) / 2.0).min(ui.available_height() - 190.0).max(120.0);
    ui.horizontal(|ui| {
        let views = [
            ("Noisy state x_t, read by threshold", noisy, &frame.noisy_histogram, ui.visuals().weak_text_color()),
            ("The denoiser's guess x̃₀", estimate, &frame.estimate_histogram, Color32::from_rgb(0x2a, 0x8c, 0xd8)),
        ];
        for (name, texture, histogram, colour) in views {
            ui.vertical(|ui| {
                ui.set_width(side);
                ui.label(RichText::new(name).strong());
                ui.add(Image::from_texture(SizedTexture::new(texture.id(), Vec2::splat(side))).alt_text(name));
                histogram_ui(ui, name, histogram, colour, side);
            });
        }
    });
}

/// The shares of analog bits in each bin.
fn histogram_ui(ui: &mut Ui, name: &str, shares: &[f64], colour: Color32, width: f32) {
    let limit = f64::from(HISTOGRAM_LIMIT);
    let bin = 2.0 * limit / BINS as f64;
    let bars = shares
        .iter()
        .enumerate()
        .map(|(i, share)| Bar::new(-limit + (i as f64 + 0.5) * bin, 100.0 * share).width(bin))
        .collect();
    ui.weak("Its analog bits: % at each value");
    Plot::new(name)
        .width(width)
        .height((ui.available_height() - 4.0).clamp(60.0, 150.0))
        .allow_drag(false)
        .allow_zoom(false)
        .allow_scroll(false)
        .allow_boxed_zoom(false)
        .include_y(0.0)
        .include_x(-limit)
        .include_x(limit)
        .show(ui, |plot| plot.bar_chart(BarChart::new("analog bits", bars).color(colour)));
}
