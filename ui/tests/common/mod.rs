//! The studio without a window, on a real engine.
#![allow(dead_code, reason = "each test program uses some of them")]

use std::{thread, time::Duration};

use bit_diffusion::{device::DeviceChoice, engine::Handle};
use bit_diffusion_ui::Studio;
use egui_kittest::Harness;

/// A studio of a size, on an engine that uses the processor.
pub fn studio(size: [f32; 2]) -> Harness<'static, Studio> {
    let engine = Handle::start(DeviceChoice::Cpu, || {}).unwrap();
    Harness::builder()
        .with_size(size)
        .build_ui_state(|ui, studio: &mut Studio| studio.ui(ui), Studio::new(Box::new(engine)))
}

/// Draws frames until something is true; the engine works meanwhile.
pub fn wait_for(harness: &mut Harness<'_, Studio>, what: &str, is_true: impl Fn(&Harness<'_, Studio>) -> bool) {
    for _ in 0..6000 {
        harness.step();
        if is_true(harness) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("waited in vain until {what}; progress {:?}", harness.state().progress());
}

/// Draws frames until the picture chain is done.
pub fn finish(harness: &mut Harness<'_, Studio>) {
    wait_for(harness, "the chain is done", |harness| {
        let (done, total) = harness.state().progress();
        done == total
    });
}
