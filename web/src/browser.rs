//! What is asked of the browser: the functions of `page/browser.js`.

use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use web_sys::{
    HtmlCanvasElement,
    js_sys::{Function, Promise},
};

#[wasm_bindgen(module = "/page/browser.js")]
extern "C" {
    /// The graphics card that WebGPU has to offer.
    #[wasm_bindgen(js_name = findAdapter)]
    pub async fn find_adapter() -> JsValue;

    /// Whether WebGL 2 draws.
    #[wasm_bindgen(js_name = hasWebgl)]
    pub fn has_webgl() -> bool;

    /// Puts an unused canvas in the place of one that has been drawn on.
    #[wasm_bindgen(js_name = freshCanvas)]
    pub fn fresh_canvas(canvas: &HtmlCanvasElement) -> HtmlCanvasElement;

    /// Is kept after the browser has drawn and listened.
    #[wasm_bindgen(js_name = handBack)]
    pub fn hand_back() -> Promise;

    /// Hands a file to the browser, which saves it or asks where to.
    pub fn download(name: &str, bytes: &[u8]);

    /// Lets a person choose files; `take` is given the name, the bytes or `undefined`, and the reason why there are none.
    #[wasm_bindgen(js_name = chooseFiles)]
    pub fn choose_files(take: &Function);

    /// Fetches a file beside the page; `tell` hears how many bytes are here, and how many there are if that is known.
    #[wasm_bindgen(js_name = fetchFile, catch)]
    pub async fn fetch_file(path: &str, tell: &Function) -> Result<JsValue, JsValue>;

    /// What the address says after its question mark.
    pub fn query() -> String;

    /// Changes what the address says after its question mark.
    #[wasm_bindgen(js_name = setQuery)]
    pub fn set_query(query: &str);

    /// The address without settings.
    pub fn address() -> String;
}

/// The words of a JavaScript error.
pub fn words(error: &JsValue) -> String {
    let message = web_sys::js_sys::Reflect::get(error, &"message".into()).ok().and_then(|message| message.as_string());
    message.or_else(|| error.as_string()).unwrap_or_else(|| format!("{error:?}"))
}
