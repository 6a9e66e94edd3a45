//! What is on the canvas and where, for scripts and tests: what a screen reader would be told, if canvases could tell it.

use std::cell::{Cell, RefCell};

use eframe::egui::{self, accesskit};
use wasm_bindgen::prelude::wasm_bindgen;

thread_local! {
    /// Whether anybody has asked; nothing is collected before.
    static IS_WANTED: Cell<bool> = const { Cell::new(false) };
    static CONTEXT: RefCell<Option<egui::Context>> = const { RefCell::new(None) };
    static SEEN: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Everything on the canvas, as of the last frame; empty at first. One line each, with tabs between the role, the label, the value, whether it
/// can be used, and where it is: left, top, width and height.
#[wasm_bindgen]
#[must_use]
pub fn widgets() -> String {
    IS_WANTED.set(true);
    CONTEXT.with_borrow(|context| context.as_ref().map(egui::Context::request_repaint));
    SEEN.with_borrow(Clone::clone)
}

/// Collects the widgets of each frame.
pub(crate) struct Collector;

impl Collector {
    /// Collects what this context shows.
    pub fn install(context: &egui::Context) {
        context.add_plugin(Self);
        CONTEXT.set(Some(context.clone()));
    }
}

impl egui::Plugin for Collector {
    fn debug_name(&self) -> &'static str {
        "widgets for scripts"
    }

    fn input_hook(&mut self, context: &egui::Context, _input: &mut egui::RawInput) {
        if IS_WANTED.get() {
            context.enable_accesskit();
        }
    }

    fn output_hook(&mut self, _context: &egui::Context, output: &mut egui::FullOutput) {
        if let Some(update) = &output.platform_output.accesskit_update {
            let lines: Vec<String> = update.nodes.iter().filter_map(|(_, node)| line(node, &update.nodes)).collect();
            SEEN.set(lines.join("\n"));
        }
    }
}

fn line(node: &accesskit::Node, all: &[(accesskit::NodeId, accesskit::Node)]) -> Option<String> {
    let plain = |text: Option<&str>| text.unwrap_or_default().replace(['\t', '\n'], " ");
    let bounds = node.bounds()?;
    let value = node.numeric_value().map_or_else(|| plain(node.value()), |number| number.to_string());
    let use_of = if node.is_disabled() { "disabled" } else { "enabled" };
    // Some have their name beside them, as a text of its own.
    let beside = || {
        let (_, text) = all.iter().find(|(id, _)| node.labelled_by().contains(id))?;
        text.label().or(text.value())
    };
    let (role, label) = (node.role(), plain(node.label().or_else(beside)));
    let accesskit::Rect { x0, y0, x1, y1 } = bounds;
    Some(format!("{role:?}\t{label}\t{value}\t{use_of}\t{x0}\t{y0}\t{}\t{}", x1 - x0, y1 - y0))
}
