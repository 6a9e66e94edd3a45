//! The panels, one file each. A panel sends commands and shows what came; it never waits for the engine.

mod big_step;
pub(crate) mod bits;
pub(crate) mod captions;
pub(crate) mod chain;
mod codes;
mod own_picture;
pub(crate) mod self_cond;
mod sweep;
pub(crate) mod time_difference;
pub(crate) mod toy;
pub(crate) mod train;
mod train_form;
