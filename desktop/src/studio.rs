//! The studio in a window, on an engine of its own thread.
//!
//! Deliberately absent: everything inside the window, which is the `ui` crate's.

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow, bail};
use bit_diffusion::{device::DeviceChoice, engine::Handle};
use bit_diffusion_ui::{Panel, Studio, TITLE};
use eframe::egui;

use crate::{keep, save::write_atomically};

/// What can be done without a window.
const HEADLESS: &str = "without one, use the command line: bit-diffusion train, sample, eval, inspect, presets, export, import \
                        (bit-diffusion help says more)";

/// The studio as eframe wants it.
struct Window {
    studio: Studio,
    /// Where its settings are kept between two starts.
    settings: Option<PathBuf>,
}

impl Window {
    fn new(context: &egui::Context, panel: Option<Panel>) -> Result<Self> {
        let context = context.clone();
        let engine = Handle::start(DeviceChoice::Auto, move || context.request_repaint());
        let mut studio = Studio::new(Box::new(engine.context("cannot start the engine's thread")?));
        let settings = keep::file();
        let kept = settings.as_deref().and_then(keep::read);
        match (&kept, panel) {
            (Some(text), _) => studio.restore(text),
            (None, None) => studio.start_tour(),
            (None, Some(_)) => {}
        }
        if let Some(panel) = panel {
            studio.show(panel);
        }
        Ok(Self { studio, settings })
    }

    /// Opens the files that were dropped on the window.
    fn take_files(&mut self, ui: &egui::Ui) {
        for file in ui.input(|input| input.raw.dropped_files.clone()) {
            let path = file.path();
            match file.bytes() {
                Ok(bytes) => {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    self.studio.open(&name, bytes.into());
                }
                Err(error) => self.studio.report(format!("cannot read the file: {error}: {}", path.display())),
            }
        }
    }

    /// Writes what the studio wants to be saved, into the current folder, over nothing that is there, and says where.
    fn save_files(&mut self) {
        let mut written = Vec::new();
        for save in self.studio.take_saves() {
            let path = keep::unused(&std::env::current_dir().unwrap_or_default(), &save.name);
            match write_atomically(&path, &save.bytes) {
                Ok(()) => written.push(path.display().to_string()),
                Err(error) => self.studio.report(format!("{error:#}")),
            }
        }
        if !written.is_empty() {
            self.studio.say(format!("Saved: {}", written.join(", ")));
        }
    }

    /// Keeps settings for the next start.
    fn keep(&mut self, text: &str) {
        if let Some(file) = &self.settings
            && let Err(error) = keep::write(file, text)
        {
            self.studio.report(format!("the settings will not be there at the next start: {error:#}"));
            // Once is enough.
            self.settings = None;
        }
    }
}

impl eframe::App for Window {
    fn ui(&mut self, ui: &mut egui::Ui, _frame: &mut eframe::Frame) {
        self.take_files(ui);
        self.studio.ui(ui);
        self.save_files();
        if let Some(text) = self.studio.changed_settings(ui) {
            self.keep(&text);
        }
    }

    fn on_exit(&mut self) {
        let text = self.studio.save();
        self.keep(&text);
    }
}

/// Opens the window and stays until it is closed.
pub(crate) fn run(panel: Option<Panel>) -> Result<()> {
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
