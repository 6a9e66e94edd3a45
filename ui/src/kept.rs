//! What every panel can do besides showing: say what is on the screen, and keep its settings for the next time.
//!
//! Each panel's part is in the folder of its name, under `panels/`.

use bit_diffusion::{sampler::Settings, saved::Saved};

use crate::export::Shown;

/// The most steps that a slider offers.
const MAX_STEPS: usize = 200;

/// What can be exported of a panel, and kept.
pub(crate) trait Kept {
    /// The name of its settings in the text.
    const NAME: &str;

    /// What is on the screen.
    fn shown(&self) -> Shown;

    /// Its settings.
    fn saved(&self) -> Saved;

    /// Takes over settings; what makes no sense is left as it is.
    fn restore(&mut self, saved: &Saved);
}

/// Whether settings are such as the controls allow.
pub(crate) fn is_usable(settings: &Settings) -> bool {
    settings.n_steps <= MAX_STEPS && settings.validate().is_ok()
}
