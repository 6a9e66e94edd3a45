//! The whole studio without a window: it works, at any size, and shows what the engine returned.

mod common;

use bit_diffusion_ui::Panel;
use common::{fact, finish, studio, undo, wait_for, wait_until_idle};
use egui::{Key, Modifiers};
use egui_kittest::kittest::{NodeT as _, Queryable as _};

#[test]
fn the_first_chain_runs_without_a_click_and_plays() {
    let mut harness = studio([1280.0, 800.0]);
    finish(&mut harness);
    assert_eq!(harness.state().progress(), (60, 60));
    // It plays 12 steps a second; the harness's clock advances a quarter of a second a frame.
    harness.run_steps(80);
    assert!(harness.query_by_label("Step 60:").is_some());
    assert!(harness.query_by_label_contains("60 evaluations").is_some());
    assert!(harness.query_by_label("Play").is_some());
    assert!(harness.query_by_label_contains("the processor").or(harness.query_by_label_contains("CPU")).is_some());
}

#[test]
fn a_new_seed_restarts_the_chain_and_undo_brings_the_old_one_back() {
    let mut harness = studio([1280.0, 800.0]);
    finish(&mut harness);
    harness.get_by_label("New noise").click();
    harness.run_steps(2);
    let (done, total) = harness.state().progress();
    assert!(done < total, "{done} of {total}");
    finish(&mut harness);
    wait_until_idle(&mut harness);
    // How many are kept, what they take and the limit can be seen.
    assert!(harness.query_by_label_contains("results kept: 2").is_some());
    assert!(harness.query_by_label_contains(" of 256 MB").is_some());
    let before = fact(&harness, "evaluations");
    assert_eq!(before, "120");
    undo(&mut harness);
    finish(&mut harness);
    wait_until_idle(&mut harness);
    // It was kept: no network was run.
    assert_eq!(fact(&harness, "evaluations"), before);
    assert!(harness.query_by_label_contains("results kept: 2").is_some());
}

#[test]
fn stepping_stops_the_playing_and_keys_do_the_same() {
    let mut harness = studio([1280.0, 800.0]);
    // Playing has only begun.
    harness.run_steps(3);
    assert!(harness.query_by_label("Pause").is_some());
    harness.get_by_label("Next").click();
    harness.run_steps(3);
    assert!(harness.query_by_label("Play").is_some());
    finish(&mut harness);
    harness.get_by_label("Rewind").click();
    harness.run_steps(2);
    assert!(harness.query_by_label("Step 1:").is_some());
    harness.key_press(Key::ArrowRight);
    harness.run_steps(2);
    assert!(harness.query_by_label("Step 2:").is_some());
    harness.key_press(Key::Space);
    harness.run_steps(2);
    assert!(harness.query_by_label("Pause").is_some());
}

#[test]
fn another_chain_leaves_the_first_at_the_step_that_is_shown() {
    let mut harness = studio([1280.0, 800.0]);
    finish(&mut harness);
    harness.get_by_label("Rewind").click();
    for _ in 0..4 {
        harness.key_press(Key::ArrowRight);
        harness.run_steps(2);
    }
    harness.get_by_label("Continue from step 5 with other settings…").click();
    harness.run_steps(2);
    wait_for(&mut harness, "the second chain is done", |harness| {
        harness.query_all_by_label("Step 5:").count() == 2 && harness.query_by_label("idle").is_some()
    });
    assert!(harness.query_by_label("Second chain, from step 5 on").is_some());
    assert!(harness.query_by_label_contains("results kept: 2").is_some());
    harness.get_by_label("Close the second chain").click();
    harness.run_steps(3);
    assert_eq!(harness.query_all_by_label("Step 5:").count(), 1);
}

#[test]
fn a_pixel_that_is_clicked_shows_its_bits_and_their_value() {
    let mut harness = studio([1280.0, 800.0]);
    finish(&mut harness);
    harness.run_steps(80);
    harness.get_by_label("one bit plane").click();
    harness.run_steps(3);
    assert!(harness.query_by_label("Estimate x_pred, bit 7").is_some());
    let name = "Samples of chain 1: estimate x_pred, step 60";
    // The middle of the first sample, a quarter of the way to the middle of the grid.
    let rect = harness.get_by_label(name).rect();
    let at = rect.min + (rect.center() - rect.min) * 0.25;
    harness.hover_at(at);
    harness.run_steps(2);
    harness.drag_at(at);
    harness.drop_at(at);
    harness.run_steps(2);
    harness.remove_cursor();
    harness.run_steps(3);
    assert!(harness.query_by_label("Kept in view: estimate x_pred").is_some());
    let text = harness.get_by_label_contains("red: value").accesskit_node().value().unwrap_or_default();
    let (value, bits) = text.split_once(", bits ").expect("the value, then the bits");
    let value: u32 = value.trim_start_matches("red: value ").parse().unwrap();
    let digits: Vec<u32> = bits.split(' ').map(|digit| digit.parse().unwrap()).collect();
    assert_eq!(digits.len(), 8);
    // In base 2, bit 0 first.
    assert_eq!(digits.iter().rev().fold(0, |sum, digit| 2 * sum + digit), value, "{text}");
}

#[test]
fn a_job_can_be_cancelled_and_goes_on() {
    let mut harness = studio([1280.0, 800.0]);
    wait_for(&mut harness, "the first step is here", |harness| harness.state().progress().0 > 0);
    harness.get_by_label("Cancel").click();
    wait_for(&mut harness, "it has stopped", |harness| harness.query_by_label("Go on").is_some());
    let (done, total) = harness.state().progress();
    assert!(done < total, "{done} of {total}");
    harness.get_by_label("Go on").click();
    harness.run_steps(2);
    finish(&mut harness);
}

#[test]
fn four_ways_of_self_conditioning_run_in_step() {
    let mut harness = studio([1280.0, 800.0]);
    harness.get_by_label(Panel::SelfCond.label()).click();
    harness.run_steps(2);
    wait_for(&mut harness, "the last step is shown", |harness| {
        harness.query_by_label_contains("Step 20 of 20").is_some() && harness.query_by_label("idle").is_some()
    });
    // Self-guidance looks twice a step.
    assert_eq!(harness.query_all_by_label("network evaluations: 20").count(), 3);
    assert_eq!(harness.query_all_by_label("network evaluations: 40").count(), 1);
    assert_eq!(harness.query_all_by_label_contains("flawless scenes").count(), 4);
}

#[test]
fn a_file_that_is_no_model_is_refused_once_and_can_be_dismissed() {
    let mut harness = studio([1280.0, 800.0]);
    harness.state_mut().open("poem.safetensors", b"roses are red".as_slice().into());
    wait_for(&mut harness, "the error is shown", |harness| harness.query_by_label("Dismiss").is_some());
    harness.get_by_label("Dismiss").click();
    harness.run_steps(3);
    assert!(harness.query_by_label("Dismiss").is_none());
}

#[test]
fn the_shell_is_asked_for_files_once() {
    let mut harness = studio([1280.0, 800.0]);
    harness.run_steps(2);
    assert!(!harness.state_mut().take_wants_open());
    harness.get_by_label("Open…").click();
    harness.run_steps(2);
    assert!(harness.state_mut().take_wants_open());
    assert!(!harness.state_mut().take_wants_open());
    harness.key_press_modifiers(Modifiers::COMMAND, Key::O);
    harness.run_steps(2);
    assert!(harness.state_mut().take_wants_open());
}

#[test]
fn an_opened_model_comes_into_use() {
    let mut harness = studio([1280.0, 800.0]);
    harness.state_mut().open("mine.safetensors", bit_diffusion::demo::Demo::ShapesGray.bytes().into());
    wait_for(&mut harness, "it is chosen", |harness| {
        harness.get_by_label("model").accesskit_node().value().is_some_and(|value| value.contains("mine"))
    });
    finish(&mut harness);
}

#[test]
fn keys_lead_to_panels_and_to_the_list_of_keys() {
    let mut harness = studio([1280.0, 800.0]);
    harness.key_press(Key::Num4);
    harness.run_steps(3);
    assert!(harness.query_by_label_contains("Four chains start").is_some());
    harness.key_press(Key::Questionmark);
    harness.run_steps(3);
    assert!(harness.query_by_label("Play or pause").is_some());
}

#[test]
fn every_panel_draws_at_every_size_in_light_and_dark() {
    for (size, theme) in [
        ([1280.0, 800.0], egui::Theme::Dark),
        ([1024.0, 640.0], egui::Theme::Light),
        ([480.0, 320.0], egui::Theme::Dark),
        ([1.0, 1.0], egui::Theme::Light),
    ] {
        let mut harness = studio(size);
        harness.step();
        harness.input_mut().system_theme = Some(theme);
        for panel in Panel::ALL {
            harness.state_mut().show(panel);
            harness.run_steps(3);
        }
    }
}

#[test]
fn one_bit_comes_out_with_its_probability() {
    let mut harness = studio([1280.0, 800.0]);
    harness.get_by_label(Panel::Toy.label()).click();
    harness.run_steps(3);
    let text = harness.get_by_label_contains("became 1").accesskit_node().value().unwrap_or_default();
    let share: f64 =
        text.split('%').next().and_then(|share| share.parse().ok()).expect("the text starts with the share");
    // Four standard errors of 70% among 2000.
    assert!((share - 70.0).abs() < 4.2, "{text}");
}

#[test]
fn flipping_a_bit_leads_to_another_value() {
    let mut harness = studio([1280.0, 800.0]);
    harness.get_by_label(Panel::Bits.label()).click();
    harness.run_steps(3);
    // 100 is 0010 0110 with the lowest bit first; flipping each in turn.
    assert!(harness.query_by_label("101, 102, 96, 108, 116, 68, 36, 228").is_some());
    // The first button is bit 0 of UINT8: 100 becomes 101, whose bits are those of 100 but for that one.
    harness.get_all_by_label("0").next().unwrap().click();
    harness.run_steps(3);
    assert!(harness.query_by_label("100, 103, 97, 109, 117, 69, 37, 229").is_some());
}

#[test]
fn a_link_leads_to_the_same_settings_and_nonsense_to_none() {
    let link = "panel=chain&model=shapes-gray&seed=5&samples=3&steps=4&td=1.5&sampler=ddpm&strategy=momentum=0.25";
    let mut harness = studio([1280.0, 800.0]);
    harness.state_mut().follow(&format!("?device=cpu&{link}"));
    finish(&mut harness);
    assert_eq!(harness.state().progress(), (4, 4));
    assert_eq!(harness.state().link(), link);
    // What no control allows stays as it is.
    harness
        .state_mut()
        .follow("?panel=chain&steps=100000&td=-1&samples=0&model=perfect&scenes=0&strategy=guide=1e9&seed=");
    harness.run_steps(2);
    assert_eq!(harness.state().link(), link);
    harness.state_mut().follow("panel=one-bit&p=0.25&seed=9");
    assert!(harness.state().link().contains("panel=one-bit"));
    assert!(harness.state().link().contains("p=0.25"), "{}", harness.state().link());
}
