//! What a long task says while it runs: a bar on a terminal, a line now and then elsewhere.

use std::{
    io::IsTerminal as _,
    time::{Duration, Instant},
};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

/// How often a line is written where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// Progress on standard error, in steps.
pub(crate) struct Reporter {
    bar: Option<ProgressBar>,
    first: usize,
    total: usize,
    started: Instant,
    last_line: Option<Instant>,
}

impl Reporter {
    /// A task of `total` steps, of which `done` have been made before.
    pub fn new(total: usize, done: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{wide_bar} {pos}/{len}  {msg}  {eta} left")
                .expect("the template is a good one");
            let bar = ProgressBar::new(total as u64).with_style(style).with_position(done as u64);
            // The time left is worked out from this program's own steps.
            bar.reset_eta();
            bar
        });
        Self { bar, first: done, total, started: Instant::now(), last_line: None }
    }

    /// `done` steps have been made; `message` says how it is going.
    pub fn step(&mut self, done: usize, message: &str) {
        let seconds = self.started.elapsed().as_secs_f64();
        let rate = (done - self.first) as f64 / seconds.max(1e-9);
        let rate_text = if rate >= 1.0 { format!("{rate:.1} steps/s") } else { format!("{:.1} s/step", 1.0 / rate) };
        if let Some(bar) = &self.bar {
            bar.set_position(done as u64);
            bar.set_message(format!("{rate_text}  {message}"));
            return;
        }
        if done == self.total || self.last_line.is_none_or(|last| last.elapsed() >= LINE_EVERY) {
            self.last_line = Some(Instant::now());
            let left = self.total.saturating_sub(done) as f64 / rate.max(1e-9);
            let left = HumanDuration(Duration::try_from_secs_f64(left).unwrap_or(Duration::MAX));
            eprintln!("step {done} of {}, {message}, {rate_text}, {left} left", self.total);
        }
    }

    /// A line that stays.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }

    /// The bar stays as it is.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.abandon();
        }
    }
}
