//! The desktop program: the studio in a window.

#[cfg_attr(not(test), expect(dead_code, reason = "the command line will open data"))]
mod data;

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use bit_diffusion_ui::{Studio, TITLE};
use eframe::egui;

/// The studio as eframe wants it.
struct Window(Studio);

impl eframe::App for Window {
    fn ui(&mut self, ui: &mut egui::Ui, _frame: &mut eframe::Frame) {
        self.0.ui(ui);
    }
}

fn main() -> ExitCode {
    env_logger::init();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bit-diffusion: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let options = eframe::NativeOptions {
        viewport: egui::ViewportBuilder::default().with_inner_size([1280.0, 800.0]).with_min_inner_size([640.0, 480.0]),
        ..Default::default()
    };
    let open = eframe::run_native(TITLE, options, Box::new(|_| Ok(Box::new(Window(Studio::default())))));
    open.map_err(|error| {
        anyhow!("cannot open a window: {error}; a graphical session is needed (on Linux, DISPLAY or WAYLAND_DISPLAY)")
    })
}
