//! The whole studio without a window: it works, at any size, and shows what the engine returned.

use bit_diffusion_ui::{Panel, Studio};
use egui_kittest::{
    Harness,
    kittest::{NodeT as _, Queryable as _},
};

fn studio(size: [f32; 2]) -> Harness<'static, Studio> {
    Harness::builder().with_size(size).build_ui_state(|ui, studio: &mut Studio| studio.ui(ui), Studio::default())
}

/// Frames until the picture chain is done; it makes at least one step a frame.
fn finish(harness: &mut Harness<'_, Studio>) {
    for _ in 0..1000 {
        harness.step();
        let (done, total) = harness.state().progress();
        if done == total {
            return;
        }
    }
    panic!("the chain stopped at {:?}", harness.state().progress());
}

#[test]
fn the_first_chain_runs_without_a_click_and_plays() {
    let mut harness = studio([1280.0, 800.0]);
    finish(&mut harness);
    assert_eq!(harness.state().progress(), (60, 60));
    // Playing shows 20 steps a second; the harness's clock advances a quarter of a second a frame.
    harness.run_steps(80);
    assert!(harness.query_by_label_contains("Step 60").is_some());
    // At the end every sample is one of the scenes.
    assert!(harness.query_by_label_contains("0.0% of the guessed pixels").is_some());
}

#[test]
fn a_new_seed_restarts_the_chain() {
    let mut harness = studio([1280.0, 800.0]);
    finish(&mut harness);
    harness.get_by_label("New noise").click();
    harness.step();
    let (done, total) = harness.state().progress();
    assert!(done < total, "{done} of {total}");
    finish(&mut harness);
}

#[test]
fn stepping_stops_the_playing() {
    let mut harness = studio([1280.0, 800.0]);
    // Playing has only begun.
    harness.run_steps(3);
    assert!(harness.query_by_label("Pause").is_some());
    harness.get_by_label("Next").click();
    harness.run_steps(3);
    assert!(harness.query_by_label("Play").is_some());
}

#[test]
fn every_panel_draws_at_every_size() {
    for size in [[1280.0, 800.0], [480.0, 320.0], [1.0, 1.0]] {
        let mut harness = studio(size);
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
    harness.get_by_label(Panel::Codes.label()).click();
    harness.run_steps(3);
    // 100 is 0010 0110 with the lowest bit first; flipping each in turn.
    assert!(harness.query_by_label("101, 102, 96, 108, 116, 68, 36, 228").is_some());
    // The first button is bit 0 of UINT8: 100 becomes 101, whose bits are those of 100 but for that one.
    harness.get_all_by_label("0").next().unwrap().click();
    harness.run_steps(3);
    assert!(harness.query_by_label("100, 103, 97, 109, 117, 69, 37, 229").is_some());
}
