//! The captions panel on a real engine. How good its captioners are is not asked here.

mod common;

use bit_diffusion::demo::Demo;
use bit_diffusion_ui::{Panel, Studio};
use common::{click, fact, finish, slide, studio, undo, wait_for};
use egui::Key;
use egui_kittest::{
    Harness,
    kittest::{NodeT as _, Queryable as _},
};

const RED: &[u8] = include_bytes!("fixtures/red.png");

/// The rows of the table, as screen readers are told of them.
const ROWS: [&str; 7] =
    ["1 step: ", "2 steps: ", "5 steps: ", "10 steps: ", "20 steps: ", "40 steps: ", "word by word: "];

fn captions() -> Harness<'static, Studio> {
    let mut harness = studio([1280.0, 1600.0]);
    harness.state_mut().show(Panel::Captions);
    wait_for_all(&mut harness);
    harness
}

/// Draws frames until every row is complete, of the newest settings.
fn wait_for_all(harness: &mut Harness<'_, Studio>) {
    // What was just changed is asked for in the next frame.
    harness.run_steps(3);
    wait_for(harness, "all captions are here", |harness| {
        fact(harness, "captions") == "7/7" && harness.query_by_label("idle").is_some()
    });
}

/// The text of the first node whose name or value begins so.
fn text(harness: &Harness<'_, Studio>, begins: &str) -> String {
    let nodes = harness.query_all_by_label_contains(begins);
    let mut texts = nodes.filter_map(|node| node.accesskit_node().label().or(node.accesskit_node().value()));
    texts.find(|text| text.starts_with(begins)).unwrap_or_else(|| panic!("nothing begins with {begins:?}"))
}

fn rows(harness: &Harness<'_, Studio>) -> [String; 7] {
    ROWS.map(|row| text(harness, row))
}

/// Chooses a row.
fn choose(harness: &mut Harness<'_, Studio>, row: &str) {
    let label = text(harness, row);
    click(harness, &label);
}

#[test]
fn every_number_of_steps_has_its_caption_and_its_cost() {
    let mut harness = captions();
    for row in rows(&harness) {
        assert!(row.ends_with("true"), "of a scene it can be said: {row}");
    }
    // One network run for each step.
    for n_steps in ["1", "2", "5", "10", "20", "40"] {
        assert!(harness.query_all_by_label(n_steps).next().is_some(), "{n_steps} runs");
    }
    assert_eq!(harness.query_all_by_label_contains(" of 16").count(), 7);
    // Another scene is looked at without asking anybody.
    let (before, counted) = (rows(&harness), harness.state().facts());
    click(&mut harness, "Next");
    assert_ne!(rows(&harness), before);
    assert_eq!(harness.state().facts(), counted);
    // Other scenes have to be captioned first.
    click(&mut harness, "Other scenes");
    wait_for_all(&mut harness);
    assert!(harness.query_by_label("Scene 1").is_some());
    assert_ne!(rows(&harness), before);
}

#[test]
fn the_newest_time_difference_wins() {
    let mut harness = captions();
    slide(&mut harness, "time difference (td)", 0.0);
    wait_for_all(&mut harness);
    let without = rows(&harness);
    for td in [1.0, 9.0, 3.0, 6.0] {
        slide(&mut harness, "time difference (td)", td);
        harness.step();
    }
    slide(&mut harness, "time difference (td)", 0.0);
    wait_for_all(&mut harness);
    assert_eq!(rows(&harness), without, "the same settings, the same words");

    // Undone, it is another one again.
    undo(&mut harness);
    wait_for_all(&mut harness);
    let link = harness.state().link();
    assert!(link.contains("panel=captions") && link.contains("td=6"), "{link}");
    // Whatever is chosen is asked for first; with one step there is nothing to run ahead of.
    assert_eq!(rows(&harness)[0], without[0]);
}

#[test]
fn a_token_that_is_pointed_at_shows_its_bits_and_neighbours() {
    let mut harness = captions();
    choose(&mut harness, "5 steps: ");
    let name = "The words at every step";
    let rect = harness.get_by_label_contains(name).rect();
    // The last step, at its left: the first token. The label before it takes eight letters.
    let at = egui::pos2(rect.left() + 68.0, rect.bottom() - 8.0);
    harness.hover_at(at);
    harness.run_steps(3);
    let token = text(&harness, "Step 5, token 1: ");
    let caption = text(&harness, "5 steps: ").replace("5 steps: ", "");
    let word = token.replace("Step 5, token 1: ", "").split(',').next().unwrap().to_owned();
    assert!(caption.starts_with(&word), "{token} of {caption:?}");
    let bits: Vec<&str> = token.split("bits ").nth(1).unwrap().split(' ').collect();
    assert_eq!(bits.len(), 5, "26 words take five bits: {token}");
    // A neighbour for each bit.
    for bit in 0..5 {
        assert_eq!(harness.query_all_by_label_contains(&format!("bit {bit}, ")).count(), 1, "bit {bit}");
    }

    // It stays in view without the pointer; the keys lead on.
    harness.remove_cursor();
    harness.run_steps(2);
    harness.get_by_label_contains(name).focus();
    harness.run_steps(2);
    for (key, at) in [(Key::ArrowRight, "Step 5, token 2: "), (Key::ArrowUp, "Step 4, token 2: ")] {
        harness.key_press(key);
        harness.run_steps(2);
        assert!(text(&harness, name).contains(at.trim_end_matches(": ")), "{}", text(&harness, name));
        text(&harness, at);
    }
}

#[test]
fn a_picture_of_ones_own_is_captioned_and_has_a_command_line() {
    let mut harness = captions();
    harness.state_mut().open("red.png", RED.into());
    wait_for_all(&mut harness);
    assert!(harness.query_by_label("Your picture red.png, as the captioner sees it").is_some());
    // Nobody knows what is true of it.
    for row in rows(&harness) {
        assert!(!row.ends_with("true"), "{row}");
    }
    assert_eq!(harness.query_all_by_label_contains(" of 16").count(), 0);
    click(&mut harness, "Export");
    harness.get_by_label("Copy as command line").click();
    harness.step();
    let copied = harness.output().platform_output.commands.iter().find_map(|command| match command {
        egui::OutputCommand::CopyText(text) => Some(text.clone()),
        _ => None,
    });
    assert_eq!(
        copied.unwrap(),
        "bit-diffusion caption shapes-captions red.png --steps 10 --td 2 --sampler ddim --self-cond previous --seed 0"
    );
    // Back to the scenes, which it left as they were.
    click(&mut harness, "Next");
    wait_for_all(&mut harness);
    assert!(harness.query_by_label("Scene 1").is_some() && rows(&harness)[0].ends_with("true"));
}

#[test]
fn a_captioner_of_photographs_has_photographs_to_choose_from() {
    let mut harness = captions();
    harness.state_mut().follow("panel=captions&captioner=coco-small&picture=2");
    let wait_for_six = |harness: &mut Harness<'static, Studio>| {
        wait_for(harness, "all captions by bit diffusion are here", |harness| {
            fact(harness, "captions") == "6/6" && harness.query_by_label("idle").is_some()
        });
    };
    wait_for_six(&mut harness);
    assert!(harness.query_by_label("The photograph coffee.jpg, as the captioner sees it").is_some());
    assert!(harness.query_by_label("Other scenes").is_none(), "there are no other photographs");
    assert!(
        harness.query_by_label_contains("word-by-word captioner was trained on scenes, not on photographs").is_some()
    );
    let of_coffee: Vec<String> = ROWS[..6].iter().map(|row| text(&harness, row)).collect();
    assert!(of_coffee.iter().all(|row| !row.ends_with("true")), "nobody knows what is true: {of_coffee:?}");
    click(&mut harness, "Next");
    assert!(harness.query_by_label("The photograph astronaut.jpg, as the captioner sees it").is_some());
    let link = harness.state().link();
    assert!(link.contains("captioner=coco-small") && link.contains("picture=3"), "{link}");
    // A picture of one's own is for both.
    harness.state_mut().open("red.png", RED.into());
    wait_for_all(&mut harness);
    // And back to the scenes.
    harness.state_mut().follow("panel=captions&captioner=shapes-captions&picture=3");
    wait_for_all(&mut harness);
    assert!(harness.query_by_label("Scene 3").is_some());
}

#[test]
fn what_cannot_be_read_is_refused_and_the_scenes_stay() {
    let mut harness = captions();
    let before = rows(&harness);
    harness.state_mut().open("broken.png", RED[..RED.len() / 2].into());
    wait_for(&mut harness, "the error is shown", |harness| fact(harness, "errors").contains("broken.png"));
    wait_for_all(&mut harness);
    assert_eq!(rows(&harness), before);
    click(&mut harness, "Dismiss");

    // A captioner that breaks off.
    let bytes = Demo::ShapesCaptions.bytes();
    harness.state_mut().open("broken.safetensors", bytes[..bytes.len() / 2].into());
    wait_for(&mut harness, "the error is shown", |harness| !fact(harness, "errors").is_empty());
    harness.run_steps(2);
    assert_eq!(rows(&harness), before);
}

#[test]
fn an_opened_captioner_comes_into_use() {
    let mut harness = studio([1280.0, 1600.0]);
    harness.state_mut().open("mine.safetensors", Demo::ShapesCaptions.bytes().into());
    // Its panel comes to the front.
    wait_for(&mut harness, "it is chosen", |harness| {
        let chosen = harness.query_by_label("captioner").and_then(|list| list.accesskit_node().value());
        chosen.is_some_and(|value| value.contains("mine"))
    });
    wait_for_all(&mut harness);
    // The other panels go on with their own.
    assert!(harness.get_by_label("model").accesskit_node().value().is_some_and(|value| value.contains("uint8")));
}

#[test]
fn settings_are_kept_and_links_followed() {
    let mut harness = captions();
    harness.state_mut().follow("panel=captions&td=3.5&steps=20&gallery=4&picture=7&seed=2");
    wait_for_all(&mut harness);
    assert!(harness.query_by_label("Scene 7").is_some());
    let (link, before) = (harness.state().link(), rows(&harness));
    assert!(link.contains("gallery=4&picture=7&steps=20&td=3.5"), "{link}");
    let kept = harness.state().save();

    let mut harness = captions();
    harness.state_mut().restore(&kept);
    wait_for_all(&mut harness);
    assert_eq!(harness.state().link(), link);
    assert_eq!(rows(&harness), before);
    // What no control allows stays as it is, or as near as can be.
    harness.state_mut().follow("panel=captions&td=99&steps=3&gallery=-1&picture=17");
    harness.run_steps(2);
    assert!(harness.state().link().contains("gallery=4&picture=7&steps=20&td=10"), "{}", harness.state().link());
}

#[test]
fn work_that_is_cancelled_goes_on_when_asked() {
    let mut harness = studio([1280.0, 1600.0]);
    finish(&mut harness);
    harness.state_mut().show(Panel::Captions);
    let is_stopped = |harness: &Harness<'_, Studio>| harness.query_by_label("Go on").is_some();
    let is_complete = |harness: &Harness<'_, Studio>| fact(harness, "captions") == "7/7";
    // A row may be complete before the button is pressed: then with other scenes.
    for _ in 0..100 {
        wait_for(&mut harness, "a row is under way, or all are complete", |harness| {
            harness.query_by_label("Cancel").is_some() || is_complete(harness)
        });
        if harness.query_by_label("Cancel").is_some() {
            click(&mut harness, "Cancel");
        }
        wait_for(&mut harness, "it has stopped, or was too quick", |harness| {
            is_stopped(harness) || is_complete(harness)
        });
        if is_stopped(&harness) {
            break;
        }
        click(&mut harness, "Other scenes");
        harness.run_steps(2);
    }
    assert!(is_stopped(&harness));
    click(&mut harness, "Go on");
    wait_for_all(&mut harness);
    assert!(harness.query_by_label("Go on").is_none());
}
