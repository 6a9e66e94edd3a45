//! The page: the studio on a canvas. On any other platform than a browser this crate is empty.
#![cfg(target_arch = "wasm32")]

mod link;

use std::{cell::RefCell, rc::Rc};

use bit_diffusion_ui::Studio;
use eframe::egui;
use wasm_bindgen::{JsCast as _, JsValue, prelude::wasm_bindgen};
use wasm_bindgen_futures::spawn_local;

/// The id of the canvas in index.html.
const CANVAS: &str = "studio";

/// The name that the settings are kept under in the browser.
const SETTINGS: &str = "bit-diffusion-studio";

/// The studio as eframe wants it.
struct Page {
    studio: Studio,
    canvas: web_sys::HtmlCanvasElement,
    /// The progress that the canvas has been told of.
    shown: Option<(usize, usize)>,
    /// Files that were dropped on the page, each read or with the reason why not.
    files: Rc<RefCell<Vec<(String, Result<Vec<u8>, String>)>>>,
}

impl Page {
    /// Opens the files that were dropped on the page, as soon as the browser has read them.
    fn take_files(&mut self, ui: &egui::Ui) {
        for file in ui.input(|input| input.raw.dropped_files.clone()) {
            let (files, context) = (self.files.clone(), ui.ctx().clone());
            spawn_local(async move {
                let name = file.path().to_string_lossy().into_owned();
                let bytes = file.bytes_async().await;
                files.borrow_mut().push((name, bytes));
                context.request_repaint();
            });
        }
        for (name, bytes) in self.files.take() {
            match bytes {
                Ok(bytes) => self.studio.open(&name, bytes.into()),
                Err(error) => self.studio.report(format!("cannot read the file: {error}: {name}")),
            }
        }
    }
}

impl eframe::App for Page {
    fn ui(&mut self, ui: &mut egui::Ui, _frame: &mut eframe::Frame) {
        self.take_files(ui);
        self.studio.ui(ui);
        for save in self.studio.take_saves() {
            download(&save.name, &save.bytes);
        }
        if let (Some(storage), Some(text)) = (storage(), self.studio.changed_settings(ui)) {
            // A browser may refuse; the page works without.
            let _ = storage.set_item(SETTINGS, &text);
        }
        // What the page has done so far, for scripts and tests that cannot read a canvas.
        let progress = self.studio.progress();
        if self.shown != Some(progress) {
            self.shown = Some(progress);
            let _ = self.canvas.set_attribute("data-progress", &format!("{}/{}", progress.0, progress.1));
        }
    }
}

/// Starts the studio; called by the page once the module is loaded.
#[wasm_bindgen(start)]
pub async fn start() -> Result<(), JsValue> {
    let _ = eframe::WebLogger::init(log::LevelFilter::Warn);
    let document = web_sys::window().and_then(|window| window.document()).ok_or("there is no document")?;
    let canvas = document.get_element_by_id(CANVAS).ok_or("index.html has no canvas with the id \"studio\"")?;
    let canvas = canvas.dyn_into::<web_sys::HtmlCanvasElement>()?;
    let on = canvas.clone();
    let page = |creation: &eframe::CreationContext<'_>| {
        let mut studio = Studio::new(Box::new(link::Task::start(creation.egui_ctx.clone())));
        match storage().and_then(|storage| storage.get_item(SETTINGS).ok().flatten()) {
            Some(text) => studio.restore(&text),
            None => studio.start_tour(),
        }
        Page { studio, canvas: on, shown: None, files: Rc::default() }
    };
    let make: eframe::AppCreator<'static> = Box::new(|creation| Ok(Box::new(page(creation))));
    eframe::WebRunner::new().start(canvas, eframe::WebOptions::default(), make).await
}

/// Where the browser keeps settings, unless it does not.
fn storage() -> Option<web_sys::Storage> {
    web_sys::window()?.local_storage().ok().flatten()
}

#[wasm_bindgen(inline_js = r#"
export function download(name, bytes) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
    link.download = name;
    link.click();
    // The browser has to have begun before the address may go.
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
"#)]
extern "C" {
    /// Hands a file to the browser, which saves it or asks where to.
    fn download(name: &str, bytes: &[u8]);
}

/// `n` numbers of standard normal noise of a seed: the same as everywhere else.
#[wasm_bindgen(js_name = normalNoise)]
#[must_use]
pub fn normal_noise(seed: u64, n: usize) -> Vec<f32> {
    bit_diffusion::rng::Rng::new(seed).normals(n)
}
