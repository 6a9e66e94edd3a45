//! The page: the studio on a canvas. On any other platform than a browser this crate is empty.
//!
//! `ladder` finds what computes and draws, `link` runs the engine, and here is what goes in and out: files, settings, the address.
//! Deliberately absent: panels, which are the desktop's too.
#![cfg(target_arch = "wasm32")]

mod browser;
mod constructors;
mod ladder;
mod link;
mod widgets;

use std::{cell::RefCell, panic, rc::Rc};

use bit_diffusion::device::Opened;
use bit_diffusion_ui::{BindTexture, Studio};
use eframe::{
    egui,
    egui_wgpu::RenderState,
    wgpu::{FilterMode, TextureViewDescriptor},
};
use ladder::Start;
use wasm_bindgen::{JsCast as _, JsValue, prelude::*};
use wasm_bindgen_futures::spawn_local;
use web_sys::{HtmlCanvasElement, js_sys::Function};

/// The id of the canvas in index.html.
const CANVAS: &str = "studio";

/// The name that the settings are kept under in the browser.
const SETTINGS: &str = "bit-diffusion-studio";

/// The word in the address that chooses the device.
const DEVICE: &str = "device";

/// Files that a person brought, each read or with the reason why not.
type Files = Rc<RefCell<Vec<(String, Result<Vec<u8>, String>)>>>;

/// Takes a chosen file: its name, its bytes, and the reason why there are none.
type Take = Closure<dyn FnMut(String, Option<Vec<u8>>, String)>;

/// The studio as eframe wants it.
struct Page {
    studio: Studio,
    canvas: HtmlCanvasElement,
    /// What the canvas has been told, by name.
    told: Vec<(&'static str, String)>,
    /// Files that were dropped on the page or chosen.
    files: Files,
    /// Takes chosen files; lives as long as the page.
    take: Take,
    /// The address's word for the device, which stays in it.
    device: Option<String>,
    /// Called after the first frame.
    on_first_frame: Option<Function>,
}

impl Page {
    fn new(
        creation: &eframe::CreationContext<'_>,
        canvas: HtmlCanvasElement,
        start: &Begun,
        on_first_frame: Function,
    ) -> Self {
        let context = &creation.egui_ctx;
        widgets::Collector::install(context);
        let drawn_by = creation.wgpu_render_state.as_ref();
        let mut opened = start.opened.clone();
        // Where the canvas did not take the card that computes, it has no use for its textures.
        opened.shared = opened.shared.filter(|shared| drawn_by.is_some_and(|state| state.device == shared.device));
        let mut studio = Studio::new(Box::new(link::Task::start(opened, context.clone())));
        if let Some(drawn_by) = drawn_by {
            studio.draw_live(bind_texture(drawn_by.clone()));
        }
        let query = browser::query();
        match storage().and_then(|storage| storage.get_item(SETTINGS).ok().flatten()) {
            Some(text) => studio.restore(&text),
            // Who follows a link wants to see what it shows.
            None if !query.contains("panel=") => studio.start_tour(),
            None => {}
        }
        studio.follow(&query);
        studio.set_address(browser::address());
        start.error.iter().for_each(|error| studio.report(error.clone()));
        let files = Files::default();
        let (taken, drawn) = (files.clone(), context.clone());
        let take = Take::new(move |name, bytes: Option<Vec<u8>>, reason| {
            taken.borrow_mut().push((name, bytes.ok_or(reason)));
            drawn.request_repaint();
        });
        let on_first_frame = Some(on_first_frame);
        Self { studio, canvas, told: Vec::new(), files, take, device: start.device.clone(), on_first_frame }
    }

    /// Opens the files that were dropped on the page or chosen, as soon as the browser has read them.
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

    /// Keeps settings in the browser, and in the address.
    fn keep(&mut self, ui: &egui::Ui) {
        let Some(text) = self.studio.changed_settings(ui) else { return };
        if let Some(storage) = storage() {
            // A browser may refuse; the page works without.
            let _ = storage.set_item(SETTINGS, &text);
        }
        let device = self.device.as_ref().map(|device| format!("{DEVICE}={device}&"));
        browser::set_query(&(device.unwrap_or_default() + &self.studio.link()));
    }

    /// Says what is going on, for scripts and tests that cannot read a canvas.
    fn tell(&mut self, frame: &eframe::Frame) {
        let mut facts = self.studio.facts();
        if let Some(state) = frame.wgpu_render_state() {
            facts.push(("drawing", format!("{:?}", state.adapter.get_info().backend)));
        }
        for (name, fact) in &facts {
            if !self.told.iter().any(|told| told == &(*name, fact.clone())) {
                let _ = self.canvas.set_attribute(&format!("data-{name}"), fact);
            }
        }
        self.told = facts;
    }
}

impl eframe::App for Page {
    fn ui(&mut self, ui: &mut egui::Ui, frame: &mut eframe::Frame) {
        self.take_files(ui);
        self.studio.ui(ui);
        for save in self.studio.take_saves() {
            browser::download(&save.name, &save.bytes);
        }
        if self.studio.take_wants_open() {
            browser::choose_files(self.take.as_ref().unchecked_ref());
        }
        self.keep(ui);
        self.tell(frame);
        if let Some(called) = self.on_first_frame.take() {
            let _ = called.call0(&JsValue::NULL);
        }
    }
}

/// How egui draws a texture that the engine fills on the card of the canvas.
fn bind_texture(RenderState { device, renderer, .. }: RenderState) -> BindTexture {
    Box::new(move |picture, before| {
        let view = picture.texture().create_view(&TextureViewDescriptor::default());
        let mut renderer = renderer.write();
        let Some(id) = before else { return renderer.register_native_texture(&device, &view, FilterMode::Nearest) };
        renderer.update_egui_texture_from_wgpu_texture(&device, &view, FilterMode::Nearest, id);
        id
    })
}

/// What a page begins with, however it draws.
struct Begun {
    opened: Opened,
    error: Option<String>,
    device: Option<String>,
}

/// Starts the studio; `on_first_frame` is called when it is there to be seen. Fails with a reason for people.
#[wasm_bindgen]
pub async fn run(on_first_frame: Function) -> Result<(), JsValue> {
    let _ = eframe::WebLogger::init(log::LevelFilter::Warn);
    let document = web_sys::window().and_then(|window| window.document()).ok_or("there is no document")?;
    let canvas = document.get_element_by_id(CANVAS).ok_or("index.html has no canvas with the id \"studio\"")?;
    let mut canvas = canvas.dyn_into::<HtmlCanvasElement>()?;
    keep_last_words();
    let device = parameter(&browser::query(), DEVICE).filter(|device| ["cpu", "webgpu"].contains(&device.as_str()));
    let Start { opened, error, drawings } = ladder::start(device.as_deref()).await;
    if drawings.is_empty() {
        return Err("this browser draws neither with WebGPU nor with WebGL 2".into());
    }
    let begun = Rc::new(Begun { opened, error, device });
    let mut reasons = Vec::new();
    for drawing in drawings {
        let (on, begun, called) = (canvas.clone(), begun.clone(), on_first_frame.clone());
        let make: eframe::AppCreator<'static> =
            Box::new(move |creation| Ok(Box::new(Page::new(creation, on, &begun, called))));
        match eframe::WebRunner::new().start(canvas.clone(), drawing.options(), make).await {
            Ok(()) => return Ok(()),
            Err(error) => {
                reasons.push(browser::words(&error));
                canvas = browser::fresh_canvas(&canvas);
            }
        }
    }
    Err(reasons.join("; ").into())
}

/// Notes on the canvas why the program stops, if it ever does: the page shows it.
fn keep_last_words() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let document = web_sys::window().and_then(|window| window.document());
        if let Some(canvas) = document.and_then(|document| document.get_element_by_id(CANVAS)) {
            let _ = canvas.set_attribute("data-stopped", &panic.to_string());
        }
        before(panic);
    }));
}

/// A value of a query.
fn parameter(query: &str, name: &str) -> Option<String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(other, _)| *other == name).map(|(_, value)| value.to_owned())
}

/// Where the browser keeps settings, unless it does not.
fn storage() -> Option<web_sys::Storage> {
    web_sys::window()?.local_storage().ok().flatten()
}

/// `n` numbers of standard normal noise of a seed: the same as everywhere else.
#[wasm_bindgen(js_name = normalNoise)]
#[must_use]
pub fn normal_noise(seed: u64, n: usize) -> Vec<f32> {
    bit_diffusion::rng::Rng::new(seed).normals(n)
}
