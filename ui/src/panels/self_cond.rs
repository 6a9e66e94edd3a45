//! To be filled in.

use bit_diffusion::engine::Event;
use egui::Ui;

use crate::session::{Pane, Session};

/// The panel.
#[derive(Default)]
pub(crate) struct SelfCond;

impl Pane for SelfCond {
    fn on_event(&mut self, _event: &Event, _session: &mut Session) {}

    fn ui(&mut self, _ui: &mut Ui, _session: &mut Session) {}
}
