//! The panels that explain the method, on a real engine: what is shown is what the engine returned.

mod common;

use std::{thread, time::Duration};

use bit_diffusion::checkpoint;
use bit_diffusion_ui::{Panel, Studio, files::Save};
use common::{click, panel, shown, slide, wait_for, wait_for_text};
use egui_kittest::{
    Harness,
    kittest::{NodeT as _, Queryable as _},
};

/// The first number of the first text that contains another.
fn number(harness: &Harness<'_, Studio>, text: &str) -> f64 {
    let texts = shown(harness, text);
    let text = texts.first().unwrap_or_else(|| panic!("nothing says {text:?}"));
    numbers(text)[0]
}

fn numbers(text: &str) -> Vec<f64> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != '.');
    words.filter_map(|word| word.trim_matches('.').parse().ok()).collect()
}

/// The next file that the studio wants to be written.
fn saved(harness: &mut Harness<'_, Studio>) -> Save {
    for _ in 0..1000 {
        harness.step();
        if let Some(save) = harness.state_mut().take_saves().pop() {
            return save;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("nothing was saved");
}

#[test]
fn without_a_time_difference_both_chains_are_the_same() {
    let mut harness = panel(Panel::TimeDifference);
    let results = |harness: &Harness<'_, Studio>| shown(harness, "are flawless scenes");
    wait_for(&mut harness, "both results", |harness| results(harness).len() == 2);
    // Eight steps, two ahead: at the last the network is told 1/8, and the state is at 0.
    wait_for_text(&mut harness, "step 8: told t = 0.12, the state is at t = 0.00");
    slide(&mut harness, "time difference td", 0.0);
    wait_for(&mut harness, "both results again", |harness| results(harness).len() == 2);
    wait_for_text(&mut harness, "step 8: told t = 0.12, the state is at t = 0.12");
    assert_eq!(results(&harness)[0], results(&harness)[1]);
    assert_eq!(shown(&harness, "With td = 0").len(), 2, "the heading and the name of the pictures");
}

#[test]
fn a_cell_of_the_grid_is_loaded_into_the_slider() {
    let mut harness = panel(Panel::TimeDifference);
    wait_for_text(&mut harness, "are flawless scenes");
    click(&mut harness, "Score the grid");
    wait_for_text(&mut harness, "4 steps, td 4: ");
    click(&mut harness, "Cancel the grid");
    wait_for_text(&mut harness, "Score the grid");
    let cell = shown(&harness, "4 steps, td 4: ")[0].clone();
    harness.get_by_label(&cell).click();
    harness.run_steps(2);
    assert!(!shown(&harness, "With td = 4").is_empty());
    // The same settings and the same noise, so the same score.
    wait_for(&mut harness, "the chain of the cell", |harness| shown(harness, "of 16 are flawless scenes").len() == 2);
    let of_cell = numbers(&cell)[2];
    let n_flawless = number(&harness, "of 16 are flawless scenes");
    assert!((of_cell - 100.0 * n_flawless / 16.0).abs() <= 0.5, "{cell}, and {n_flawless} of 16");
}

#[test]
fn a_big_step_leaves_noise_that_the_network_repairs() {
    let mut harness = panel(Panel::TimeDifference);
    wait_for_text(&mut harness, "told t' = 0.7: ");
    let after = numbers(&shown(&harness, "after the step: ")[0])[0];
    assert!(after > 50.0, "{after} noisy pixels after the step");
    for told in ["0.1", "0.3", "0.5"] {
        let n = numbers(&shown(&harness, &format!("told t' = {told}: "))[0])[1];
        assert!(n < 0.5 * after, "told {told}: {n} of {after}");
    }
}

#[test]
fn analog_bits_part_on_the_way() {
    let mut harness = panel(Panel::Bits);
    wait_for(&mut harness, "the whole chain", |harness| {
        shown(harness, "steps made").is_empty() && !shown(harness, "of the bits are decided").is_empty()
    });
    click(&mut harness, "Rewind");
    assert!(!shown(&harness, "Step 1: the network is told t = 1.000").is_empty());
    let decided = |harness: &Harness<'_, Studio>| -> Vec<f64> {
        shown(harness, "of the bits are decided").iter().map(|text| numbers(text)[0]).collect()
    };
    // Of standard normal numbers 9.68% are nearer than 0.1 to −1 or 1; there are 98,304 of them.
    let noise = decided(&harness);
    assert!((noise[0] - 9.68).abs() < 0.4, "{noise:?}");
    slide(&mut harness, "step", 40.0);
    assert!(!shown(&harness, "Step 40: ").is_empty());
    let end = decided(&harness);
    assert!(end[1] > 99.0 && end[0] > 90.0, "{end:?}");
}

#[test]
fn a_picture_of_ones_own_is_shown_as_bits() {
    let mut harness = panel(Panel::Bits);
    let file = include_bytes!("fixtures/red.png");
    harness.state_mut().open("red.png", (*file).into());
    wait_for_text(&mut harness, "This is red.png");
    // A grid is laid out before it is shown.
    wait_for(&mut harness, "eight planes", |harness| shown(harness, "of red.png in Gray code").len() == 8);
}

#[test]
fn a_network_is_trained_saved_and_trained_on() {
    let mut harness = panel(Panel::Train);
    harness.run_steps(3);
    for (setting, value) in [("steps", 20.0), ("steps between samples", 10.0), ("pictures a step", 4.0)] {
        slide(&mut harness, setting, value);
    }
    click(&mut harness, "Start training");
    wait_for_text(&mut harness, "all steps are made");
    assert!(!shown(&harness, "Samples after 20 steps").is_empty());

    click(&mut harness, "Save checkpoint");
    let save = saved(&mut harness);
    assert_eq!(save.name, "checkpoint-20.safetensors");
    let header = checkpoint::inspect(&save.bytes).unwrap();
    assert_eq!((header.n_steps, header.config.batch_size), (20, 4));
    click(&mut harness, "Save model");
    let model = saved(&mut harness);
    assert_eq!(model.name, "model-20.safetensors");
    assert!(checkpoint::inspect(&model.bytes).is_ok() && model.bytes.len() < save.bytes.len() / 4);

    // The other panels can use it.
    click(&mut harness, "Use in every panel");
    harness.state_mut().show(Panel::TimeDifference);
    wait_for(&mut harness, "pictures of the trained network", |harness| {
        shown(harness, "are flawless scenes").len() == 2
    });
    assert_eq!(
        number(&harness, "are flawless scenes").to_bits(),
        0.0_f64.to_bits(),
        "20 steps are not enough to learn a scene"
    );
    harness.state_mut().show(Panel::Train);
    harness.run_steps(2);

    harness.state_mut().open("mine.safetensors", save.bytes);
    wait_for_text(&mut harness, "Goes on from mine.safetensors, after 20 steps");
    click(&mut harness, "Go on training");
    wait_for_text(&mut harness, "step 40 of 40");
}

#[test]
fn pictures_of_ones_own_are_learned() {
    let mut harness = panel(Panel::Train);
    harness.run_steps(3);
    harness.state_mut().open("red.png", (*include_bytes!("fixtures/red.png")).into());
    wait_for_text(&mut harness, "1 picture");
    for (setting, value) in [("steps", 10.0), ("steps between samples", 10.0), ("pictures a step", 2.0)] {
        slide(&mut harness, setting, value);
    }
    click(&mut harness, "Start training");
    wait_for_text(&mut harness, "all steps are made");
    assert!(!shown(&harness, "Samples after 10 steps").is_empty());
    // There is no exact measure of such pictures.
    assert!(shown(&harness, "flawless scenes").is_empty());
}

#[test]
fn a_run_is_paused_resumed_and_stopped() {
    let mut harness = panel(Panel::Train);
    harness.run_steps(3);
    slide(&mut harness, "pictures a step", 4.0);
    click(&mut harness, "Start training");
    wait_for_text(&mut harness, " left");
    click(&mut harness, "Pause");
    wait_for_text(&mut harness, "paused");
    let step = |harness: &Harness<'_, Studio>| number(harness, "of 1000");
    let at = step(&harness);
    for _ in 0..20 {
        harness.step();
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(step(&harness).to_bits(), at.to_bits(), "no steps while it is paused");
    click(&mut harness, "Resume");
    wait_for(&mut harness, "more steps", |harness| step(harness) > at);
    click(&mut harness, "Stop");
    wait_for_text(&mut harness, "Go on from step");
    assert!(number(&harness, "Go on from step") >= at);
}

#[test]
fn frames_go_on_while_the_engine_is_busy() {
    let mut harness = panel(Panel::Train);
    harness.run_steps(3);
    click(&mut harness, "network");
    click(&mut harness, "medium: wants patience");
    slide(&mut harness, "pictures a step", 64.0);
    click(&mut harness, "Start training");
    wait_for_text(&mut harness, "step 1 of 1000");
    // Now a step takes seconds. If frames waited for the engine, there would be one a step.
    let mut n_frames = 0;
    while shown(&harness, "step 2 of 1000").is_empty() {
        harness.step();
        n_frames += 1;
    }
    assert!(n_frames > 10, "only {n_frames} frames during a step");
    click(&mut harness, "Stop");
    wait_for_text(&mut harness, "Go on from step");
}

#[test]
fn settings_that_do_not_fit_cannot_be_trained() {
    let mut harness = panel(Panel::Train);
    harness.run_steps(3);
    click(&mut harness, "loss");
    click(&mut harness, "softmax cross-entropy");
    assert!(!shown(&harness, "one-hot for the softmax cross-entropy").is_empty());
    assert!(harness.get_by_label("Start training").accesskit_node().is_disabled());
}
