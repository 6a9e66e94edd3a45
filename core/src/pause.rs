//! Pauses in the middle of long work. A page has one thread, for the work and for drawing: it installs a pause that hands the thread back.
//! Everywhere else there is none, and work goes on at once.
//!
//! Deliberately absent: the browser. What a pause is, is for the page to say.

use std::{cell::Cell, pin::Pin};

/// Begins a pause.
pub type Pause = fn() -> Pin<Box<dyn Future<Output = ()>>>;

thread_local! {
    static PAUSE: Cell<Option<Pause>> = const { Cell::new(None) };
}

/// Lets long work on this thread make such pauses.
pub fn install(pause: Pause) {
    PAUSE.set(Some(pause));
}

/// Pauses, if this thread does that.
pub(crate) async fn pause() {
    if let Some(pause) = PAUSE.get() {
        pause().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_pauses_only_where_that_was_installed() {
        thread_local! {
            static COUNT: Cell<usize> = const { Cell::new(0) };
        }
        pollster::block_on(pause());
        install(|| Box::pin(async { COUNT.set(COUNT.get() + 1) }));
        pollster::block_on(pause());
        assert_eq!(COUNT.get(), 1);
    }
}
