//! Screen readers: whatever can be used or looked at has a name, in every panel, on large screens and small.

mod common;

use bit_diffusion_ui::{Panel, Studio};
use common::{click, slide, studio, wait_for_text, wait_until_idle};
use egui::accesskit::{Action, Role};
use egui_kittest::{
    Harness,
    kittest::{AccessKitNode, NodeT as _, Queryable as _},
};

/// A wide screen, one as narrow as a phone; both so high that nothing is scrolled away.
const SIZES: [[f32; 2]; 2] = [[1280.0, 2400.0], [420.0, 4000.0]];

/// What a screen reader would say of a thing, if anything.
fn name(node: &AccessKitNode<'_>) -> Option<String> {
    node.label().filter(|name| !name.trim().is_empty())
}

/// Everything that can be used or looked at but has no name.
fn nameless(harness: &Harness<'_, Studio>) -> Vec<String> {
    let mut found = harness.unnamed_widgets();
    for node in harness.root().children_recursive() {
        let node = node.accesskit_node();
        let is_used = [Action::Click, Action::SetValue, Action::Increment]
            .iter()
            .any(|action| node.data().supports_action(*action));
        // Text is its own name; egui's bars around a scrolled part and along a window have the names of those.
        let is_named_by_other = match node.role() {
            Role::Label | Role::TextRun | Role::ScrollBar => true,
            Role::Unknown => std::iter::successors(node.parent(), AccessKitNode::parent)
                .any(|around| around.role() == Role::Window && name(&around).is_some()),
            _ => false,
        };
        if (is_used || node.role() == Role::Image) && !is_named_by_other && name(&node).is_none() {
            found.push(format!("{:?} at {:?}", node.role(), node.raw_bounds()));
        }
    }
    found
}

#[track_caller]
fn check(harness: &Harness<'_, Studio>, what: &str) {
    let found = nameless(harness);
    assert!(found.is_empty(), "{what}: without a name are\n{}", found.join("\n"));
    // The walk saw the panel: its tabs at least.
    for panel in Panel::ALL {
        assert!(harness.query_by_role_and_label(Role::Button, panel.label()).is_some(), "{what}: {panel:?}");
    }
}

#[test]
fn everything_in_every_panel_has_a_name() {
    for size in SIZES {
        let mut harness = studio(size);
        for panel in Panel::ALL {
            harness.state_mut().show(panel);
            wait_until_idle(&mut harness);
            // Where there is little room the settings are folded away.
            if harness.query_by_label("Settings").is_some() {
                click(&mut harness, "Settings");
                harness.run_steps(10);
            }
            check(&harness, &format!("{panel:?} at {size:?}"));
        }
    }
}

#[test]
fn everything_around_the_panels_has_a_name() {
    let mut harness = studio(SIZES[0]);
    wait_until_idle(&mut harness);
    for menu in ["View", "Export", "model", "sampler", "self-conditioning"] {
        click(&mut harness, menu);
        check(&harness, menu);
        harness.key_press(egui::Key::Escape);
        harness.run_steps(2);
    }
    for window in ["Tour", "?"] {
        click(&mut harness, window);
        check(&harness, window);
    }
    harness.state_mut().open("poem.safetensors", b"roses are red".as_slice().into());
    harness.state_mut().say("Saved: here".to_owned());
    wait_for_text(&mut harness, "safetensors file");
    check(&harness, "an error and a note");
}

#[test]
fn everything_of_a_second_chain_a_grid_and_a_run_has_a_name() {
    let mut harness = studio(SIZES[0]);
    wait_until_idle(&mut harness);
    click(&mut harness, "one bit plane");
    let branch = common::shown(&harness, "with other settings…").remove(0);
    click(&mut harness, &branch);
    wait_until_idle(&mut harness);
    check(&harness, "a second chain");

    harness.state_mut().show(Panel::TimeDifference);
    wait_until_idle(&mut harness);
    click(&mut harness, "Score the grid");
    wait_for_text(&mut harness, "2 steps, td 4: ");
    check(&harness, "a grid under way");
    click(&mut harness, "Cancel the grid");

    harness.state_mut().show(Panel::Train);
    harness.run_steps(2);
    for (setting, value) in [("steps", 20.0), ("steps between samples", 5.0), ("pictures a step", 2.0)] {
        slide(&mut harness, setting, value);
    }
    click(&mut harness, "Start training");
    wait_for_text(&mut harness, "Samples after 5 steps");
    check(&harness, "a run");
    wait_for_text(&mut harness, "all steps are made");
    check(&harness, "a run that is over");
}
