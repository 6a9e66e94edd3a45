//! The studio in a window.
//!
//! Deliberately absent: everything inside the window, which is the `ui` crate's.

use anyhow::{Result, anyhow, bail};
use bit_diffusion_ui::{Studio, TITLE};
use eframe::egui;

/// What can be done without a window.
const HEADLESS: &str = "without one, use the command line: bit-diffusion train, sample, inspect, presets, export, import \
                        (bit-diffusion help says more)";

/// The studio as eframe wants it.
struct Window(Studio);

impl eframe::App for Window {
    fn ui(&mut self, ui: &mut egui::Ui, _frame: &mut eframe::Frame) {
        self.0.ui(ui);
    }
}

/// Opens the window and stays until it is closed.
pub(crate) fn run() -> Result<()> {
    if !has_display() {
        bail!("there is no display to open a window on (neither DISPLAY nor WAYLAND_DISPLAY is set); {HEADLESS}");
    }
    let options = eframe::NativeOptions {
        viewport: egui::ViewportBuilder::default().with_inner_size([1280.0, 800.0]).with_min_inner_size([640.0, 480.0]),
        ..Default::default()
    };
    let open = eframe::run_native(TITLE, options, Box::new(|_| Ok(Box::new(Window(Studio::default())))));
    open.map_err(|error| anyhow!("cannot open a window: {error}; a graphical session is needed; {HEADLESS}"))
}

/// Whether a window can be tried; only Linux tells beforehand.
fn has_display() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !cfg!(target_os = "linux") || ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"].into_iter().any(is_set)
}
