//! Settings and layout: taken back, kept, and there again.

mod common;

use bit_diffusion_ui::{Panel, Studio};
use common::{click, short, slide, studio, undo};
use egui::{Key, Modifiers, pos2};
use egui_kittest::{Harness, kittest::Queryable as _};

/// A slider of every panel, and a value that it does not start with.
const SLIDERS: [(Panel, &str, f64); 8] = [
    (Panel::Chain, "samples", 4.0),
    (Panel::TimeDifference, "time difference td", 3.0),
    (Panel::TimeDifference, "noised to t", 0.7),
    (Panel::Bits, "steps", 12.0),
    (Panel::SelfCond, "momentum", 0.9),
    (Panel::Toy, "probability p", 0.4),
    (Panel::Captions, "time difference (td)", 4.0),
    (Panel::Train, "pictures a step", 5.0),
];

#[test]
fn every_panel_takes_back_its_last_change() {
    for (panel, slider, value) in SLIDERS {
        let mut harness = common::panel(panel);
        harness.run_steps(3);
        let before = harness.state().save();
        slide(&mut harness, slider, value);
        let after = harness.state().save();
        assert_ne!(after, before, "{slider} of {panel:?}");
        undo(&mut harness);
        assert_eq!(harness.state().save(), before, "{slider} of {panel:?}");
        // There is nothing before the beginning.
        undo(&mut harness);
        assert_eq!(harness.state().save(), before, "{slider} of {panel:?}");
    }
}

#[test]
fn every_panel_and_the_layout_are_there_again() {
    let mut harness = studio([1280.0, 2400.0]);
    for (panel, slider, value) in SLIDERS {
        harness.state_mut().show(panel);
        harness.run_steps(3);
        slide(&mut harness, slider, value);
    }
    let width = |harness: &Harness<'_, Studio>| {
        let text = harness.state().save();
        let width = text.split("\"settings_width\": ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
        width.trim().parse::<f32>().unwrap()
    };
    let at = width(&harness);
    let edge = pos2(common::painter::MARGIN + at, 1000.0);
    harness.hover_at(edge);
    harness.run_steps(2);
    harness.drag_at(edge);
    harness.run_steps(2);
    harness.hover_at(edge + egui::vec2(80.0, 0.0));
    harness.run_steps(2);
    harness.drop_at(edge + egui::vec2(80.0, 0.0));
    harness.run_steps(3);
    assert!(width(&harness) > at + 50.0, "from {at} to {}", width(&harness));

    let text = harness.state().save();
    // As a shell does: before the first frame.
    let mut next = studio_alone();
    next.restore(&text);
    let app = |ui: &mut egui::Ui, studio: &mut Studio| studio.ui(ui);
    let mut other = Harness::builder().with_size([1280.0, 2400.0]).build_ui_state(app, next);
    other.run_steps(3);
    assert_eq!(other.state().save(), text);
}

#[test]
fn settings_are_there_again() {
    let mut harness = short();
    click(&mut harness, "New noise");
    harness.state_mut().show(Panel::SelfCond);
    harness.run_steps(2);
    click(&mut harness, "New noise");
    harness.ctx.set_theme(egui::Theme::Light);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::Plus);
    harness.run_steps(3);
    let text = harness.state().save();
    for part in ["\"scale\": 1.1", "\"theme\": \"Light\"", "\"panel\": \"self-conditioning\"", "\"n_steps\": 5"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let mut other = studio([1280.0, 800.0]);
    other.state_mut().restore(&text);
    other.run_steps(3);
    assert_eq!(other.state().save(), text);
    assert!(other.query_by_label_contains("Four chains start").is_some());
    assert!((other.ctx.zoom_factor() - 1.1).abs() < 1e-3);
}

#[test]
fn what_makes_no_sense_is_ignored() {
    let mut harness = studio([1280.0, 800.0]);
    harness.run_steps(2);
    let before = harness.state().save();
    for text in [
        "",
        "roses are red",
        "{\"chain\": 3, \"panel\": \"Kitchen\", \"scale\": 900, \"theme\": 1, \"model\": {\"Opened\": 4}}",
        r#"{"chain": {"n": 0, "seed": -1, "settings": {"n_steps": 0}, "sources": ["?"], "reading": 1, "branch": [1]},
            "bits": {"seed": "x", "plane": "y"}, "model": {"Perfect": {"n_scenes": 0, "encoding": "Gray", "trust": 0.0}},
            "time-difference": {"big_step": [0.1, 7.0]}, "train": {"batch_size": 1e9, "network": "Vast"}, "one-bit": {"p": 3}}"#,
    ] {
        harness.state_mut().restore(text);
        harness.run_steps(2);
        assert_eq!(harness.state().save(), before, "{text}");
    }
    // The rest of a text counts though a part of it makes no sense.
    harness.state_mut().restore(r#"{"chain": {"n": 0, "seed": 5}, "panel": "one-bit"}"#);
    harness.run_steps(2);
    let text = harness.state().save();
    assert!(
        text.contains("\"seed\": 5") && text.contains("\"panel\": \"one-bit\"") && text.contains("\"n\": 16"),
        "{text}"
    );
}

#[test]
fn the_scale_stays_between_one_and_two() {
    // At scale 2 the second is as narrow as a phone.
    for width in [1920.0, 1280.0] {
        let mut harness = studio([width, 800.0]);
        for (key, limit) in [(Key::Plus, 2.0), (Key::Minus, 1.0)] {
            for _ in 0..15 {
                harness.key_press_modifiers(Modifiers::COMMAND, key);
                harness.step();
                let scale = harness.ctx.zoom_factor();
                assert!((1.0..=2.0).contains(&scale), "{key:?}: {scale}");
            }
            harness.run_steps(2);
            assert!((harness.ctx.zoom_factor() - limit).abs() < 1e-3, "{key:?}: {}", harness.ctx.zoom_factor());
        }
        // Whatever else sets it is put right.
        harness.ctx.set_zoom_factor(3.0);
        harness.run_steps(3);
        assert!((harness.ctx.zoom_factor() - 2.0).abs() < 1e-3);
        assert!(harness.state().save().contains("\"scale\": 2.0"));
    }
}

#[test]
fn theme_and_scale_are_in_a_menu_on_every_screen() {
    for size in [[1280.0, 800.0], [400.0, 800.0]] {
        let mut harness = studio(size);
        for (choice, kept) in [("150%", "\"scale\": 1.5"), ("Light", "\"theme\": \"Light\"")] {
            harness.run_steps(2);
            click(&mut harness, "View");
            click(&mut harness, choice);
            harness.step();
            assert!(harness.state().save().contains(kept), "{choice} on {size:?}");
        }
        assert!((harness.ctx.zoom_factor() - 1.5).abs() < 1e-3 && harness.ctx.theme() == egui::Theme::Light);
    }
}

#[test]
fn a_change_is_handed_to_the_shell_once() {
    let mut harness = Harness::builder().with_size([1280.0, 800.0]).build_ui_state(
        |ui, (studio, texts): &mut (Studio, Vec<String>)| {
            studio.ui(ui);
            texts.extend(studio.changed_settings(ui));
        },
        (studio_alone(), Vec::new()),
    );
    harness.run_steps(20);
    assert_eq!(harness.state().1.len(), 0);
    harness.state_mut().0.show(Panel::Toy);
    harness.run_steps(20);
    assert_eq!(harness.state().1.len(), 1);
    assert!(harness.state().1[0].contains("\"panel\": \"one-bit\""));
}

fn studio_alone() -> Studio {
    let engine = bit_diffusion::engine::Handle::start(bit_diffusion::device::DeviceChoice::Cpu, || {}).unwrap();
    Studio::new(Box::new(engine))
}
