//! The studio without a window, on a real engine.
#![allow(dead_code, reason = "each test program uses some of them")]

pub mod painter;

use std::{thread, time::Duration};

use bit_diffusion::{device::DeviceChoice, engine::Handle};
use bit_diffusion_ui::{Panel, Studio};
use egui::accesskit::Role;
use egui_kittest::{
    Harness,
    kittest::{NodeT as _, Queryable as _},
};
use painter::Painter;

/// A studio of a size, on an engine that uses the processor.
pub fn studio(size: [f32; 2]) -> Harness<'static, Studio> {
    painted(size, egui::Theme::Dark).0
}

/// The same, and somebody who draws what it shows.
pub fn painted(size: [f32; 2], theme: egui::Theme) -> (Harness<'static, Studio>, Painter) {
    let engine = Handle::start(DeviceChoice::Cpu, || {}).unwrap();
    let painter = Painter::default();
    let builder = Harness::builder().with_size(size).renderer(painter.clone());
    let app = |ui: &mut egui::Ui, studio: &mut Studio| studio.ui(ui);
    let mut harness = builder.build_ui_state(app, Studio::new(Box::new(engine)));
    harness.input_mut().system_theme = Some(theme);
    (harness, painter)
}

/// A studio so high that all of a panel is in sight.
pub fn panel(panel: Panel) -> Harness<'static, Studio> {
    let mut harness = studio([1280.0, 2400.0]);
    harness.state_mut().show(panel);
    harness
}

/// Draws frames until something is true; the engine works meanwhile.
#[track_caller]
pub fn wait_for(harness: &mut Harness<'_, Studio>, what: &str, is_true: impl Fn(&Harness<'_, Studio>) -> bool) {
    for _ in 0..9000 {
        harness.step();
        if is_true(harness) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("waited in vain until {what}; {:?}", harness.state().facts());
}

/// Draws frames until the picture chain is done.
#[track_caller]
pub fn finish(harness: &mut Harness<'_, Studio>) {
    wait_for(harness, "the chain is done", |harness| {
        let (done, total) = harness.state().progress();
        done == total
    });
}

/// Draws frames until the engine has nothing more to do.
#[track_caller]
pub fn wait_until_idle(harness: &mut Harness<'_, Studio>) {
    // What was just changed is asked for in the next frame.
    harness.run_steps(3);
    wait_for(harness, "the engine is idle", |harness| harness.query_by_label("idle").is_some());
}

/// Draws frames until something can be seen.
#[track_caller]
pub fn wait_for_text(harness: &mut Harness<'_, Studio>, text: &str) {
    wait_for(harness, text, |harness| !shown(harness, text).is_empty());
}

/// A fact about what is going on.
pub fn fact(harness: &Harness<'_, Studio>, name: &str) -> String {
    let facts = harness.state().facts();
    facts.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value).unwrap()
}

/// Everything that is shown or said to a screen reader, and contains a text.
pub fn shown(harness: &Harness<'_, Studio>, text: &str) -> Vec<String> {
    let nodes = harness.query_all_by_label_contains(text);
    nodes.filter_map(|node| node.accesskit_node().label().or(node.accesskit_node().value())).collect()
}

#[track_caller]
pub fn click(harness: &mut Harness<'_, Studio>, label: &str) {
    harness.get_by_label(label).click();
    harness.run_steps(2);
}

/// Moves a slider.
#[track_caller]
pub fn slide(harness: &mut Harness<'_, Studio>, label: &str, value: f64) {
    harness.get_by_role_and_label(Role::Slider, label).set_value_accesskit(value);
    harness.run_steps(2);
}

/// Presses the keys that take back the last change.
pub fn undo(harness: &mut Harness<'_, Studio>) {
    harness.key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::Z);
    harness.run_steps(2);
}

/// A studio with a short chain, which is done.
pub fn short() -> Harness<'static, Studio> {
    let mut harness = studio([1280.0, 800.0]);
    harness.state_mut().restore(SHORT);
    harness.run_steps(2);
    finish(&mut harness);
    assert_eq!(harness.state().progress(), (5, 5));
    harness
}

/// Settings of a short chain, as an older program might have kept them.
const SHORT: &str = r#"{"chain": {"n": 4, "seed": 7, "settings": {"n_steps": 5, "td": 0.5, "sampler": "Ddpm",
    "self_cond": {"Momentum": {"momentum": 0.25}}, "guidance": 1.0, "schedule": "of old"}}}"#;
