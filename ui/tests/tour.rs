//! The tour: every lesson sets its panel up and can be left and found again.

mod common;

use common::{finish, studio, wait_for};
use egui_kittest::kittest::Queryable as _;

#[test]
fn the_lessons_lead_through_the_panels() {
    let mut harness = studio([1280.0, 800.0]);
    finish(&mut harness);
    harness.get_by_label("Tour").click();
    // What only the panel of each lesson shows, once the engine has answered.
    let lessons = [
        ("Pictures are bits", "Another way from here"),
        ("Adding noise is easy", "Numbers as bits"),
        ("The way back", "Another way from here"),
        ("Looking at one's last guess", "Off: told nothing"),
        ("Telling the network a later time", "Without, the same noise"),
        ("Which bits?", "Numbers as bits"),
        ("Words as bits", "What is in this picture?"),
    ];
    for (i, (title, shown)) in lessons.iter().enumerate() {
        wait_for(&mut harness, title, |harness| {
            harness.query_by_label(title).is_some() && harness.query_by_label(shown).is_some()
        });
        harness.get_by_label(if i + 1 < lessons.len() { "Next lesson" } else { "End the tour" }).click();
        harness.step();
    }
    harness.step();
    assert!(harness.query_by_label("Next lesson").is_none() && harness.query_by_label("End the tour").is_none());

    // It can be left at any time, and found again.
    harness.state_mut().start_tour();
    harness.run_steps(2);
    harness.get_by_label("Leave").click();
    harness.run_steps(2);
    assert!(harness.query_by_label("Leave").is_none());
    harness.get_by_label("Tour").click();
    harness.run_steps(2);
    assert!(harness.query_by_label("Pictures are bits").is_some());
}

#[test]
fn the_tour_draws_on_small_screens() {
    for size in [[1024.0, 640.0], [480.0, 800.0], [1.0, 1.0]] {
        let mut harness = studio(size);
        harness.state_mut().start_tour();
        harness.run_steps(3);
    }
}
