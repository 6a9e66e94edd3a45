//! What crates want done before anything else: burn's engine for graphics cards lists what it knows there.

use wasm_bindgen::prelude::wasm_bindgen;

#[expect(unsafe_code, reason = "there is no other way to name a function that the linker makes")]
unsafe extern "C" {
    safe fn __wasm_call_ctors();
}

/// Does it, once, as soon as a page has loaded the program.
///
/// It has to be called by name. Otherwise the linker puts a call in front of every function that JavaScript can call, and each of them, were it only to hand over an object, takes a
/// millisecond longer.
#[wasm_bindgen(start)]
pub fn construct() {
    __wasm_call_ctors();
}
