//! What every panel can do besides showing: say what is on the screen, and keep its settings for the next time.
//!
//! Each panel's part is in the folder of its name, under `panels/`.

use bit_diffusion::{sampler::Settings, saved::Saved};

use crate::export::Shown;

/// The most steps that a slider offers.
const MAX_STEPS: usize = 200;

/// The strongest guidance towards a class that a slider offers.
const MAX_GUIDANCE: f64 = 8.0;

/// What can be exported of a panel, and kept.
pub(crate) trait Kept {
    /// What is on the screen.
    fn shown(&self) -> Shown;

    /// Its settings.
    fn saved(&self) -> Saved;

    /// Takes over settings; what makes no sense is left as it is.
    fn restore(&mut self, saved: &Saved);
}

/// Takes over what of some sampler's settings makes sense. The schedule is the model's.
pub(crate) fn restore_settings(saved: &Saved, settings: &mut Settings) {
    let (saved, plain) = (saved.part("settings"), Settings::default());
    saved.restore("n_steps", &mut settings.n_steps, |n_steps| (1..=MAX_STEPS).contains(n_steps));
    saved.restore("td", &mut settings.td, |td| (0.0..=MAX_STEPS as f64).contains(td));
    saved.restore("sampler", &mut settings.sampler, |_| true);
    saved.restore("self_cond", &mut settings.self_cond, |self_cond| {
        is_usable(&Settings { self_cond: *self_cond, ..plain })
    });
    saved.restore("guidance", &mut settings.guidance, |guidance| (0.0..=MAX_GUIDANCE).contains(guidance));
}

/// Whether settings are such as the controls allow.
pub(crate) fn is_usable(settings: &Settings) -> bool {
    settings.n_steps <= MAX_STEPS && settings.validate().is_ok()
}
