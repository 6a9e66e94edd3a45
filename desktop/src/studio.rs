//! The studio in a window, on an engine of its own thread.
//!
//! Deliberately absent: everything inside the window, which is the `ui` crate's.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context as _, Result, anyhow, bail};
use bit_diffusion::{
    device::{
        DeviceChoice,
        shared::{Handles, window_device},
    },
    engine::Handle,
};
use bit_diffusion_ui::{BindTexture, Panel, Studio, TITLE, WindowSize, kept_window};
use eframe::{
    egui,
    egui_wgpu::{RenderState, WgpuConfiguration, WgpuSetupCreateNew},
    wgpu::{FilterMode, TextureViewDescriptor},
};

use crate::{
    dialogs::{Answer, Dialogs},
    keep,
};

/// What can be done without a window.
const HEADLESS: &str = "without one, use the command line: bit-diffusion train, sample, caption, eval and others \
                        (bit-diffusion help names them all)";

/// The studio as eframe wants it.
struct Window {
    studio: Studio,
    dialogs: Dialogs,
    /// Where its settings are kept between two starts.
    settings: Option<PathBuf>,
}

impl Window {
    fn new(
        creation: &eframe::CreationContext<'_>,
        settings: Option<PathBuf>,
        panel: Option<Panel>,
        device: DeviceChoice,
    ) -> Result<Self> {
        let dialogs = Dialogs::new(creation.egui_ctx.clone());
        let context = creation.egui_ctx.clone();
        let wake = move || context.request_repaint();
        let engine = match &creation.wgpu_render_state {
            Some(RenderState { instance, adapter, device: drawn_with, queue, .. }) => {
                let (instance, adapter) = (instance.clone(), adapter.clone());
                let window = Handles { instance, adapter, device: drawn_with.clone(), queue: queue.clone() };
                Handle::start_beside(device, window, wake)
            }
            None => Handle::start(device, wake),
        };
        let mut studio = Studio::new(Box::new(engine.context("cannot start the engine's thread")?));
        if let Some(drawn_by) = &creation.wgpu_render_state {
            studio.draw_live(bind_texture(drawn_by.clone()));
        }
        let kept = settings.as_deref().and_then(keep::read);
        match (&kept, panel) {
            (Some(text), _) => studio.restore(text),
            (None, None) => studio.start_tour(),
            (None, Some(_)) => {}
        }
        if let Some(panel) = panel {
            studio.show(panel);
        }
        Ok(Self { studio, dialogs, settings })
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

    /// Shows the dialogs that the studio asks for, and hands it what came of those before.
    fn ask(&mut self, frame: &eframe::Frame) {
        if self.studio.take_wants_open() {
            self.dialogs.open(frame);
        }
        self.dialogs.save(self.studio.take_saves(), frame);
        for answer in self.dialogs.answers() {
            match answer {
                Answer::Opened { name, bytes } => self.studio.open(&name, bytes),
                Answer::Note(note) => self.studio.say(note),
                Answer::Error(error) => self.studio.report(error),
            }
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
    fn ui(&mut self, ui: &mut egui::Ui, frame: &mut eframe::Frame) {
        self.take_files(ui);
        self.studio.ui(ui);
        self.ask(frame);
        if let Some(text) = self.studio.changed_settings(ui) {
            self.keep(&text);
        }
    }

    fn on_exit(&mut self) {
        let text = self.studio.save();
        self.keep(&text);
    }
}

/// How egui draws a texture that the engine fills on the card of the window.
fn bind_texture(RenderState { device, renderer, .. }: RenderState) -> BindTexture {
    Box::new(move |picture, before| {
        let view = picture.texture().create_view(&TextureViewDescriptor::default());
        let mut renderer = renderer.write();
        let Some(id) = before else { return renderer.register_native_texture(&device, &view, FilterMode::Nearest) };
        renderer.update_egui_texture_from_wgpu_texture(&device, &view, FilterMode::Nearest, id);
        id
    })
}

/// Opens the window and stays until it is closed.
pub(crate) fn run(panel: Option<Panel>, device: DeviceChoice) -> Result<()> {
    if !has_display() {
        bail!("there is no display to open a window on (neither DISPLAY nor WAYLAND_DISPLAY is set); {HEADLESS}");
    }
    // eframe adds the display by itself.
    let setup = WgpuSetupCreateNew {
        device_descriptor: Arc::new(window_device),
        ..WgpuSetupCreateNew::without_display_handle()
    };
    let settings = keep::file();
    let kept = settings.as_deref().and_then(keep::read).and_then(|text| kept_window(&text));
    let WindowSize { size, is_maximised } =
        kept.unwrap_or(WindowSize { size: egui::vec2(1280.0, 800.0), is_maximised: false });
    let options = eframe::NativeOptions {
        viewport: egui::ViewportBuilder::default()
            .with_inner_size(size)
            .with_maximized(is_maximised)
            .with_min_inner_size([640.0, 480.0])
            .with_drag_and_drop(true),
        wgpu_options: WgpuConfiguration { wgpu_setup: setup.into(), ..WgpuConfiguration::default() },
        ..Default::default()
    };
    let open = eframe::run_native(
        TITLE,
        options,
        Box::new(move |creation| Ok(Box::new(Window::new(creation, settings, panel, device)?))),
    );
    open.map_err(|error| anyhow!("cannot open a window: {error}; a graphical session is needed; {HEADLESS}"))
}

/// Whether a window can be tried; only Linux tells beforehand.
fn has_display() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !cfg!(target_os = "linux") || ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"].into_iter().any(is_set)
}
