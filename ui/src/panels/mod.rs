//! The panels, one file each. A panel sends commands and shows what came; it never waits for the engine.

mod big_step;
mod bits;
mod captions;
mod chain;
mod codes;
mod own_picture;
mod self_cond;
mod sweep;
mod time_difference;
mod toy;
mod train;
mod train_form;

use crate::{Panel, session::Pane};

/// Every panel.
#[derive(Default)]
pub(crate) struct Panes {
    pub chain: chain::Chain,
    pub time_difference: time_difference::TimeDifference,
    pub bits: bits::Bits,
    pub self_cond: self_cond::SelfCond,
    pub toy: toy::Toy,
    pub captions: captions::Captions,
    pub train: train::Train,
}

impl Panes {
    /// A panel.
    pub fn of(&self, panel: Panel) -> &dyn Pane {
        match panel {
            Panel::Chain => &self.chain,
            Panel::TimeDifference => &self.time_difference,
            Panel::Bits => &self.bits,
            Panel::SelfCond => &self.self_cond,
            Panel::Toy => &self.toy,
            Panel::Captions => &self.captions,
            Panel::Train => &self.train,
        }
    }

    /// A panel, to be changed.
    pub fn of_mut(&mut self, panel: Panel) -> &mut dyn Pane {
        match panel {
            Panel::Chain => &mut self.chain,
            Panel::TimeDifference => &mut self.time_difference,
            Panel::Bits => &mut self.bits,
            Panel::SelfCond => &mut self.self_cond,
            Panel::Toy => &mut self.toy,
            Panel::Captions => &mut self.captions,
            Panel::Train => &mut self.train,
        }
    }
}
