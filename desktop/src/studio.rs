//! The studio in a window, on an engine of its own thread.
//!
//! Deliberately absent: everything inside the window, which is the `ui` crate's.

use anyhow::{Context as _, Result, anyhow, bail};
use bit_diffusion::{device::DeviceChoice, engine::Handle};
use bit_diffusion_ui::{Panel, Studio, TITLE};
use eframe::egui;

/// What can be done without a window.
const HEADLESS: &str = "without one, use the command line: bit-diffusion train, sample, eval, inspect, presets, export, import \
                        (bit-diffusion help says more)";

/// The studio as eframe wants it.
struct Window(Studio);

impl Window {
    fn new(context: &egui::Context, panel: Panel) -> Result<Self> {
        let context = context.clone();
        let engine = Handle::start(DeviceChoice::Auto, move || context.request_repaint());
        let mut studio = Studio::new(Box::new(engine.context("cannot start the engine's thread")?));
        studio.show(panel);
        Ok(Self(studio))
    }

    /// Opens the files that were dropped on the window.
    fn take_files(&mut self, ui: &egui::Ui) {
        for file in ui.input(|input| input.raw.dropped_files.clone()) {
            let path = file.path();
            match file.bytes() {
                Ok(bytes) => {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    self.0.open(&name, bytes.into());
                }
                Err(error) => self.0.report(format!("cannot read the file: {error}: {}", path.display())),
            }
        }
    }

    /// Writes what the studio wants to be saved, into the current folder.
    fn save_files(&mut self) {
        for save in self.0.take_saves() {
            if let Err(error) = std::fs::write(&save.name, &save.bytes) {
                self.0.report(format!("cannot write the file: {error}: {}", save.name));
            }
        }
    }
}

impl eframe::App for Window {
    fn ui(&mut self, ui: &mut egui::Ui, _frame: &mut eframe::Frame) {
        self.take_files(ui);
        self.0.ui(ui);
        self.save_files();
    }
}

/// Opens the window and stays until it is closed.
pub(crate) fn run(panel: Panel) -> Result<()> {
    if !has_display() {
        bail!("there is no display to open a window on (neither DISPLAY nor WAYLAND_DISPLAY is set); {HEADLESS}");
    }
    let options = eframe::NativeOptions {
        viewport: egui::ViewportBuilder::default()
            .with_inner_size([1280.0, 800.0])
            .with_min_inner_size([640.0, 480.0])
            .with_drag_and_drop(true),
        ..Default::default()
    };
    let open = eframe::run_native(
        TITLE,
        options,
        Box::new(move |creation| Ok(Box::new(Window::new(&creation.egui_ctx, panel)?))),
    );
    open.map_err(|error| anyhow!("cannot open a window: {error}; a graphical session is needed; {HEADLESS}"))
}

/// Whether a window can be tried; only Linux tells beforehand.
fn has_display() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !cfg!(target_os = "linux") || ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"].into_iter().any(is_set)
}
