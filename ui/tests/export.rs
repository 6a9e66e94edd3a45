//! Files of what is shown, and the command line.

mod common;

use bit_diffusion_ui::{Panel, Studio, files::Save};
use common::{short, wait_for};
use egui::OutputCommand;
use egui_kittest::{Harness, kittest::Queryable as _};

/// Chooses something from the menu, and waits for the files.
fn export(harness: &mut Harness<'_, Studio>, what: &str) -> Vec<Save> {
    harness.get_by_label("Export").click();
    harness.run_steps(3);
    harness.get_by_label(what).click();
    for _ in 0..500 {
        harness.step();
        let saves = harness.state_mut().take_saves();
        if !saves.is_empty() {
            return saves;
        }
    }
    panic!("no file came of {what:?}");
}

#[test]
fn pictures_become_a_png() {
    let mut harness = short();
    let saves = export(&mut harness, "Pictures as PNG");
    assert_eq!(saves.iter().map(|save| save.name.as_str()).collect::<Vec<_>>(), ["chain.png"]);
    let bytes = &saves[0].bytes;
    assert_eq!(bytes[..8], *b"\x89PNG\r\n\x1a\n");
    // Two grids of 2 × 2 pictures, each 64 pixels wide, with gaps of 4.
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!((number(16), number(20)), (2 * 140, 140));
    // The engine reads it.
    harness.state_mut().open("chain.png", bytes.clone());
    wait_for(&mut harness, "the picture is shown", |harness| {
        harness.query_all_by_label_contains("chain.png").count() > 0
    });
}

#[test]
fn all_steps_become_a_gif() {
    let mut harness = short();
    let saves = export(&mut harness, "All steps as GIF");
    let (name, bytes) = (&saves[0].name, &saves[0].bytes);
    assert_eq!((name.as_str(), &bytes[..6], bytes.last()), ("chain.gif", b"GIF89a".as_slice(), Some(&b';')));
    // The size, and a control block for each of the five steps.
    assert_eq!(bytes[6..10], [280_u16.to_le_bytes(), 140_u16.to_le_bytes()].concat());
    assert_eq!(bytes.windows(4).filter(|window| window[..3] == *b"\x21\xf9\x04").count(), 5);
}

#[test]
fn numbers_and_settings_are_those_of_the_engine() {
    let mut harness = short();
    let saves = export(&mut harness, "Numbers as CSV");
    let text = std::str::from_utf8(&saves[0].bytes).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((saves[0].name.as_str(), rows.len(), rows[0].len()), ("chain-steps.csv", 6, 11));
    assert_eq!(rows[0][..4], ["chain", "step", "t_now", "t_next"]);
    // t_next = max(1 − (step + 1 + td)/steps, 0) with five steps and td 0.5.
    let t_next: Vec<f64> = rows[1..].iter().map(|row| row[3].parse().unwrap()).collect();
    for (found, expected) in t_next.iter().zip([0.7, 0.5, 0.3, 0.1, 0.0]) {
        assert!((found - expected).abs() < 1e-9, "{t_next:?}");
    }
    let text = export(&mut harness, "Settings and scores as JSON").remove(0).bytes;
    let text = std::str::from_utf8(&text).unwrap();
    for part in
        ["\"seed\": 7", "\"momentum\": 0.25", "\"scenes\": ", "\"model\": \"shapes-uint8\"", "\"evaluations\": 5"]
    {
        assert!(text.contains(part), "no {part} in {text}");
    }
    // The last share of scenes is the same in both.
    let scenes: f64 = rows[5][10].parse().unwrap();
    let said = text.split("\"scenes\": ").nth(1).and_then(|rest| rest.split(['\n', ',', '}']).next()).unwrap();
    assert!((said.parse::<f64>().unwrap() - scenes).abs() < 1e-12, "{said} {scenes}");
}

#[test]
fn every_panel_can_export_its_settings() {
    let mut harness = short();
    for panel in Panel::ALL {
        harness.state_mut().show(panel);
        harness.run_steps(3);
        let saves = export(&mut harness, "Settings and scores as JSON");
        assert!(saves[0].bytes.starts_with(b"{") && saves[0].name.split('.').next_back() == Some("json"), "{panel:?}");
    }
    harness.state_mut().show(Panel::Toy);
    harness.run_steps(3);
    let saves = export(&mut harness, "Numbers as CSV");
    // 80 paths of 101 points, below the names of the columns.
    assert_eq!(std::str::from_utf8(&saves[0].bytes).unwrap().lines().count(), 80 * 101 + 1);
}

#[test]
fn the_command_line_is_copied() {
    let mut harness = short();
    harness.get_by_label("Export").click();
    harness.run_steps(3);
    harness.get_by_label("Copy as command line").click();
    let mut copied = None;
    for _ in 0..4 {
        harness.step();
        for command in &harness.output().platform_output.commands {
            if let OutputCommand::CopyText(text) = command {
                copied = Some(text.clone());
            }
        }
    }
    assert_eq!(
        copied.as_deref(),
        Some(
            "bit-diffusion sample shapes-uint8 --steps 5 --sampler ddpm --td 0.5 --self-cond momentum=0.25 --n 4 --seed 7 --out sheet.png"
        )
    );
}
