//! Analog bits: how they are spread at each step of a chain, and how numbers become bits in the first place.
//!
//! The encodings are in [`super::codes`], a picture of one's own in [`super::own_picture`], and what is counted in [`Spreads`].

mod kept;

use bit_diffusion::{
    engine::{ChainRequest, Event, ModelId, TrainingEvent},
    sampler::{Sampler, Settings},
};
use egui::{RichText, ScrollArea, Ui};
use egui_plot::{Bar, BarChart, Line};

use super::{codes::Codes, own_picture::OwnPicture};
use crate::{
    controls,
    session::{Pane, Session, slots},
    theme::Ink,
    widgets::{
        Player, Track, Undo,
        heat_map::HeatMap,
        spread::{Plane, Spread, Spreads},
        track::Phase,
    },
};

/// Enough steps to see the bits part, few enough to wait for.
const N_STEPS: usize = 40;

/// Settings on the left, histograms and encodings on the right.
pub(crate) struct Bits {
    settings: Settings,
    seed: u64,
    plane: Plane,
    track: Track,
    player: Player,
    spreads: Spreads,
    heat_maps: [HeatMap; 2],
    codes: Codes,
    own_picture: OwnPicture,
    undo: Undo<(Settings, u64)>,
}

impl Default for Bits {
    fn default() -> Self {
        let (settings, seed) = (Settings { n_steps: N_STEPS, ..Settings::default() }, 0);
        Self {
            settings,
            seed,
            plane: Plane::All,
            track: Track::new(slots::BITS),
            player: Player::default(),
            spreads: Spreads::default(),
            heat_maps: Default::default(),
            codes: Codes::default(),
            own_picture: OwnPicture::default(),
            undo: Undo::new((settings, seed)),
        }
    }
}

impl Bits {
    /// For the tour: the usual chain, from its beginning.
    pub fn set_up(&mut self) {
        let Self { settings, seed, player, .. } = Self::default();
        (self.settings, self.seed, self.player) = (settings, seed, player);
    }
}

impl Pane for Bits {
    fn on_event(&mut self, event: &Event, session: &mut Session) {
        if let Event::Training { event: TrainingEvent::Sheet { .. }, .. } = event
            && session.model == ModelId::Training
        {
            // The network has learned: its new bits are worth a look.
            self.track.ask_again(session);
        }
        self.track.on_event(event);
        self.own_picture.on_event(event);
    }

    fn ui(&mut self, ui: &mut Ui, session: &mut Session) {
        controls::beside(ui, "bits", self, Self::settings_ui, |panel, ui| {
            panel.undo.note(ui, &(panel.settings, panel.seed));
            panel.ask(session);
            let (first, end) = panel.track.span();
            let n_made = panel.track.n_made();
            if n_made > 0 {
                panel.player.advance(ui, n_made, end - first);
            }
            egui::Panel::bottom("bits timeline").show(ui, |ui| panel.player.ui(ui, n_made, end - first));
            egui::CentralPanel::default().show(ui, |ui| {
                ScrollArea::vertical().id_salt("bits").auto_shrink(false).show(ui, |ui| {
                    panel.spread_ui(ui, session);
                    ui.add_space(8.0);
                    ui.separator();
                    panel.codes.ui(ui);
                    ui.add_space(8.0);
                    ui.separator();
                    let newest = panel.track.frames().last().map(|frame| &frame.x_pred.pictures);
                    panel.own_picture.ui(ui, newest);
                });
            });
        });
    }

    fn undo(&mut self) {
        if let Some(before) = self.undo.undo() {
            (self.settings, self.seed) = before;
        }
    }
}

impl Bits {
    fn ask(&mut self, session: &mut Session) {
        if let Some(info) = &session.info {
            self.settings.schedule = info.schedule;
        }
        let request =
            ChainRequest { model: session.model, settings: self.settings, seed: self.seed, ..ChainRequest::default() };
        self.track.ask(&request, session);
    }

    fn settings_ui(&mut self, ui: &mut Ui) {
        ui.add_space(4.0);
        ui.label(
            "An analog bit is a bit written as a number: −1 for 0, 1 for 1. In noise it can be anything. Watch how the numbers part into two \
             heaps as the pictures get clean.",
        );
        ui.add_space(8.0);
        let n_bits = self.track.info().map_or(1, |info| info.codec.bits_per_symbol());
        let planes: Vec<Plane> = Plane::all(n_bits).collect();
        if !planes.contains(&self.plane) {
            self.plane = Plane::All;
        }
        let list = egui::ComboBox::from_label("bits shown").width(150.0).selected_text(self.plane.label(n_bits));
        let list = list.show_ui(ui, |ui| {
            for plane in planes {
                ui.selectable_value(&mut self.plane, plane, plane.label(n_bits));
            }
        });
        list.response.on_hover_text("All bits, or the same bit of the red, green and blue of every pixel");
        ui.add_space(8.0);
        controls::n_steps(ui, &mut self.settings.n_steps);
        controls::sampler(ui, &mut self.settings.sampler, &Sampler::ALL);
        controls::self_cond(ui, &mut self.settings.self_cond);
        controls::seed(ui, &mut self.seed);
        ui.add_space(8.0);
    }

    fn spread_ui(&mut self, ui: &mut Ui, session: &mut Session) {
        if let Some(info) = self.track.info() {
            self.spreads.update(self.track.frames(), self.plane, info);
        }
        ui.horizontal(|ui| {
            ui.heading("Analog bits");
            if self.track.phase() != Phase::Complete {
                self.track.phase_ui(ui, session);
            }
        });
        let at = self.player.shown.min(self.spreads.len().saturating_sub(1));
        let Some(frame) = self.track.frames().get(at) else {
            ui.spinner();
            return;
        };
        ui.label(format!("Step {}: the network is told t = {:.3}", frame.step + 1, frame.t_now));
        let halves = [
            ("Noisy state x_t", Ink::State, self.spreads.states()),
            ("Estimate x_pred", Ink::Estimate, self.spreads.estimates()),
        ];
        let [state_map, estimate_map] = &mut self.heat_maps;
        let limit = self.spreads.limit();
        let chosen = if controls::is_narrow(ui) {
            let width = ui.available_width();
            let [state, estimate] = halves;
            let chosen = half_ui(ui, state, state_map, at, limit, width);
            half_ui(ui, estimate, estimate_map, at, limit, width).or(chosen)
        } else {
            let width = (ui.available_width() - ui.spacing().item_spacing.x) / 2.0;
            let row = ui.horizontal_top(|ui| {
                let [state, estimate] = halves;
                let chosen = ui.vertical(|ui| half_ui(ui, state, state_map, at, limit, width)).inner;
                ui.vertical(|ui| half_ui(ui, estimate, estimate_map, at, limit, width)).inner.or(chosen)
            });
            row.inner
        };
        if let Some(step) = chosen {
            self.player.go_to(step);
        }
        self.decided_ui(ui);
    }

    /// The share of decided bits over all steps.
    fn decided_ui(&self, ui: &mut Ui) {
        ui.add_space(4.0);
        ui.horizontal_wrapped(|ui| {
            ui.label("Decided bits at each step, in %:").on_hover_text("The share of bits nearer than 0.1 to −1 or 1");
            for (name, ink) in [("noisy state x_t", Ink::State), ("estimate x_pred", Ink::Estimate)] {
                ui.label(RichText::new(name).strong().color(ink.colour(ui)));
            }
        });
        let lines = [("x_t", Ink::State, self.spreads.states()), ("x_pred", Ink::Estimate, self.spreads.estimates())];
        let lines = lines.map(|(name, ink, spreads)| {
            let points = spreads.iter().enumerate().map(|(step, spread)| [step as f64 + 1.0, 100.0 * spread.decided]);
            Line::new(name, points.collect::<Vec<_>>()).color(ink.colour(ui)).width(2.0)
        });
        let plot = controls::still_plot("decided bits").height(110.0).include_y(0.0).include_y(100.0);
        let shown = plot.x_axis_label("step").show(ui, |plot| {
            for line in lines {
                plot.line(line);
            }
        });
        controls::name(&shown.response, "Decided bits at each step, of x_t and x_pred");
    }
}

/// One histogram above the heat map of all steps; returns the step that was clicked.
fn half_ui(
    ui: &mut Ui,
    (name, ink, spreads): (&str, Ink, &[Spread]),
    map: &mut HeatMap,
    at: usize,
    limit: f64,
    width: f32,
) -> Option<usize> {
    ui.set_width(width);
    let spread = spreads.get(at)?;
    ui.label(RichText::new(name).strong());
    ui.label(format!("{:.1}% of the bits are decided", 100.0 * spread.decided))
        .on_hover_text("Nearer than 0.1 to −1 or 1, the two values that a clean bit has");
    let bin = 2.0 * limit / spread.shares.len() as f64;
    let bars = spread.shares.iter().enumerate();
    let bars = bars.map(|(i, share)| Bar::new((i as f64 + 0.5) * bin - limit, 100.0 * share).width(bin)).collect();
    let colour = ink.colour(ui);
    let shown = controls::still_plot(name)
        .height(130.0)
        .include_y(0.0)
        .include_x(-limit)
        .include_x(limit)
        .custom_x_axes(vec![controls::tight_x_axis()])
        .custom_y_axes(vec![controls::tight_axis("% of the bits")])
        .show(ui, |plot| plot.bar_chart(BarChart::new("analog bits", bars).color(colour)));
    controls::name(&shown.response, &format!("Histogram of the analog bits: {name}"));
    map.show(ui, &format!("{name} over all steps"), ink, spreads, at, limit)
}
