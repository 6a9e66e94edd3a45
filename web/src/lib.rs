//! The page: the studio on a canvas. On any other platform than a browser this crate is empty.
#![cfg(target_arch = "wasm32")]

mod link;

use bit_diffusion_ui::Studio;
use eframe::egui;
use wasm_bindgen::{JsCast as _, JsValue, prelude::wasm_bindgen};

/// The id of the canvas in index.html.
const CANVAS: &str = "studio";

/// The studio as eframe wants it.
struct Page {
    studio: Studio,
    canvas: web_sys::HtmlCanvasElement,
    /// The progress that the canvas has been told of.
    shown: Option<(usize, usize)>,
}

impl eframe::App for Page {
    fn ui(&mut self, ui: &mut egui::Ui, _frame: &mut eframe::Frame) {
        for file in ui.input(|input| input.raw.dropped_files.clone()) {
            if let Some(bytes) = file.bytes {
                self.studio.open(&file.name, bytes);
            }
        }
        self.studio.ui(ui);
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
        let studio = Studio::new(Box::new(link::Task::start(creation.egui_ctx.clone())));
        Page { studio, canvas: on, shown: None }
    };
    let make: eframe::AppCreator<'static> = Box::new(|creation| Ok(Box::new(page(creation))));
    eframe::WebRunner::new().start(canvas, eframe::WebOptions::default(), make).await
}

/// `n` numbers of standard normal noise of a seed: the same as everywhere else.
#[wasm_bindgen(js_name = normalNoise)]
#[must_use]
pub fn normal_noise(seed: u64, n: usize) -> Vec<f32> {
    bit_diffusion::rng::Rng::new(seed).normals(n)
}
