//! Analog bits: how numbers are written as bits.

use bit_diffusion::engine::Event;
use egui::Ui;

use crate::{
    codes_panel::CodesPanel,
    session::{Pane, Session},
};

/// The panel.
pub(crate) struct Bits {
    codes: CodesPanel,
}

impl Default for Bits {
    fn default() -> Self {
        Self { codes: CodesPanel::new() }
    }
}

impl Pane for Bits {
    fn on_event(&mut self, _event: &Event, _session: &mut Session) {}

    fn ui(&mut self, ui: &mut Ui, _session: &mut Session) {
        self.codes.ui(ui);
    }
}
