//! How every panel looks, in light and dark, against pictures of it in `looks/`, half as large as the screen.
//!
//!     LOOKS=new cargo test --release --workspace --test looks     takes new pictures, after a change that is meant; look at them
//!     LOOKS=DIR cargo test --release --workspace --test looks     puts whole screens of many sizes into a folder, for eyes and the README
//!
//! What egui draws is the same everywhere: [`common::painter`] needs no graphics card. What the engine makes is the same but for the last
//! bits of its numbers, which depend on the processor; so pictures that it made may differ more than what is around them.

mod common;

use std::{
    env, fs,
    io::BufWriter,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use bit_diffusion_ui::{Panel, Studio};
use common::{
    click, painted,
    painter::{MARGIN, Painter},
    shown, slide, wait_for_text, wait_until_idle,
};
use egui::{Rect, Theme, Vec2, accesskit::Role};
use egui_kittest::{
    Harness,
    kittest::{NodeT as _, Queryable as _},
};
use image::{
    ImageEncoder as _, Rgb, RgbImage,
    codecs::png::{CompressionType, FilterType, PngEncoder},
};

/// The screen, in points and pixels.
const SIZE: [f32; 2] = [1280.0, 800.0];

/// The same with the harness's margin.
const WITH_MARGIN: [f32; 2] = [SIZE[0] + 2.0 * MARGIN, SIZE[1] + 2.0 * MARGIN];

/// From here on the colours of two pixels are another: a channel differs by so much.
const DIFFERENT: u8 = 40;

/// How many pixels may be another around the pictures that the engine made: some digits.
const MOST_AROUND: usize = 60;

/// The share of pixels that may be another within those: a sample or two.
const MOST_WITHIN: f64 = 0.03;

/// Half as large, each pixel the mean of four.
fn halved(picture: &RgbImage) -> RgbImage {
    RgbImage::from_fn(picture.width() / 2, picture.height() / 2, |x, y| {
        let four = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(dx, dy)| picture.get_pixel(2 * x + dx, 2 * y + dy));
        Rgb(std::array::from_fn(|i| (four.iter().map(|pixel| u16::from(pixel[i])).sum::<u16>() / 4) as u8))
    })
}

/// Where the engine's pictures are, and plots of its numbers, in pixels of half the size.
fn made_by_the_engine(harness: &Harness<'_, Studio>) -> Vec<Rect> {
    let nodes = harness.query_all_by_role(Role::Image);
    nodes
        .filter(|node| node.accesskit_node().label().is_some())
        .map(|node| node.rect().translate(Vec2::splat(-MARGIN)) * 0.5)
        .collect()
}

/// Says what of two pictures is another, if it is too much.
fn difference(found: &RgbImage, expected: &RgbImage, made: &[Rect]) -> Option<String> {
    if found.dimensions() != expected.dimensions() {
        return Some(format!("the size is {:?}, not {:?}", found.dimensions(), expected.dimensions()));
    }
    let (mut around, mut within, mut n_within) = (0, 0, 0_usize);
    for ((x, y, a), b) in found.enumerate_pixels().zip(expected.pixels()) {
        let is_other = a.0.iter().zip(b.0).any(|(a, b)| a.abs_diff(b) >= DIFFERENT);
        let at = egui::pos2(x as f32 + 0.5, y as f32 + 0.5);
        let is_made = made.iter().any(|rect| rect.contains(at));
        n_within += usize::from(is_made);
        *(if is_made { &mut within } else { &mut around }) += usize::from(is_other);
    }
    let share = within as f64 / n_within.max(1) as f64;
    (around > MOST_AROUND || share > MOST_WITHIN).then(|| {
        format!("{around} pixels are another around the pictures, {:.1}% of the pixels within them", 100.0 * share)
    })
}

fn write(file: &Path, picture: &RgbImage) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let out = BufWriter::new(fs::File::create(file).unwrap());
    let encoder = PngEncoder::new_with_quality(out, CompressionType::Best, FilterType::Adaptive);
    encoder.write_image(picture, picture.width(), picture.height(), image::ExtendedColorType::Rgb8).unwrap();
}

/// The folder for whole screens, if they are asked for.
fn folder() -> Option<PathBuf> {
    env::var_os("LOOKS").filter(|value| value != "new").map(PathBuf::from)
}

/// Compares what is shown with the picture of that name, or takes a new one.
#[track_caller]
fn compare(name: &str, harness: &Harness<'_, Studio>, painter: &Painter) {
    let screen = painter.paint(harness);
    let picture = halved(&screen);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/looks").join(format!("{name}.png"));
    match (folder(), env::var_os("LOOKS")) {
        (Some(folder), _) => write(&folder.join(format!("{name}.png")), &screen),
        (None, Some(_)) => write(&file, &picture),
        (None, None) => {
            let expected = image::open(&file).unwrap_or_else(|error| panic!("{error}: {}", file.display())).to_rgb8();
            if let Some(difference) = difference(&picture, &expected, &made_by_the_engine(harness)) {
                let seen = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.png"));
                write(&seen, &picture);
                panic!(
                    "{name} looks another: {difference}. If that is meant, run with LOOKS=new; it looks like {}",
                    seen.display()
                );
            }
        }
    }
}

/// The same on smaller and larger screens, and larger itself.
fn other_screens(name: &str, harness: &mut Harness<'static, Studio>, painter: &Painter) {
    let margin = Vec2::splat(2.0 * MARGIN);
    for (width, height, scale) in
        [(1024.0, 640.0, 1.0), (1920.0, 1080.0, 1.0), (1920.0, 1080.0, 2.0), (1024.0, 640.0, 2.0), (390.0, 844.0, 1.0)]
    {
        // The harness takes its size in points.
        harness.ctx.set_zoom_factor(scale);
        harness.run_steps(2);
        harness.set_size(egui::vec2(width, height) / scale + margin);
        harness.run_steps(8);
        compare(&format!("{name}-{width}x{height}-{scale}"), harness, painter);
    }
    harness.ctx.set_zoom_factor(1.0);
    harness.run_steps(2);
    harness.set_size(Vec2::from(SIZE) + margin);
    harness.run_steps(8);
}

/// Shows a panel in light and dark once the engine is done and everything has been played.
fn looks(panel: Panel, prepare: impl Fn(&mut Harness<'static, Studio>)) {
    let (mut harness, painter) = painted(WITH_MARGIN, Theme::Light);
    harness.state_mut().show(panel);
    prepare(&mut harness);
    wait_until_idle(&mut harness);
    // Until all steps are played, and no evaluations are counted any more.
    harness.run_steps(60);
    for theme in [Theme::Light, Theme::Dark] {
        harness.ctx.set_theme(theme);
        harness.run_steps(3);
        let name = format!("{}-{theme:?}", panel.name()).to_lowercase();
        compare(&name, &harness, &painter);
        if folder().is_some() {
            other_screens(&name, &mut harness, &painter);
        }
    }
}

/// Waits, for minutes if need be: not for a test, but for whole screens.
fn patiently(harness: &mut Harness<'static, Studio>, is_done: impl Fn(&Harness<'static, Studio>) -> bool) {
    while !is_done(harness) {
        harness.step();
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn the_chain() {
    looks(Panel::Chain, |_| {});
}

#[test]
fn the_time_difference() {
    looks(Panel::TimeDifference, |harness| {
        // The grid takes its time.
        if folder().is_some() {
            wait_until_idle(harness);
            click(harness, "Score the grid");
            patiently(harness, |harness| shown(harness, "Cancel the grid").is_empty());
        }
    });
}

#[test]
fn the_bits() {
    looks(Panel::Bits, |_| {});
}

#[test]
fn self_conditioning() {
    looks(Panel::SelfCond, |_| {});
}

#[test]
fn one_bit() {
    looks(Panel::Toy, |_| {});
}

#[test]
fn captions() {
    looks(Panel::Captions, |harness| {
        common::wait_for(harness, "all captions are here", |harness| common::fact(harness, "captions") == "7/7");
    });
}

#[test]
fn training() {
    looks(Panel::Train, |harness| {
        harness.run_steps(3);
        let n_steps = if folder().is_some() { 400.0 } else { 20.0 };
        for (setting, value) in [("steps", n_steps), ("steps between samples", 0.5 * n_steps), ("pictures a step", 4.0)]
        {
            slide(harness, setting, value);
        }
        click(harness, "Start training");
        if folder().is_some() {
            patiently(harness, |harness| !shown(harness, "all steps are made").is_empty());
        }
        wait_for_text(harness, "all steps are made");
    });
}

#[test]
fn a_small_change_is_seen() {
    let (mut harness, painter) = painted(WITH_MARGIN, Theme::Light);
    harness.state_mut().show(Panel::Toy);
    harness.run_steps(10);
    let before = halved(&painter.paint(&harness));
    assert_eq!(difference(&halved(&painter.paint(&harness)), &before, &[]), None);
    // One word, or one line.
    slide(&mut harness, "starting point", 0.9);
    let after = halved(&painter.paint(&harness));
    assert!(difference(&after, &before, &[]).is_some());
    // Within what the engine made, a third is too much.
    let whole = Rect::from_min_size(egui::Pos2::ZERO, egui::vec2(640.0, 400.0));
    assert_eq!(difference(&after, &before, &[whole]), None);
    harness.ctx.set_theme(Theme::Dark);
    harness.run_steps(3);
    assert!(difference(&halved(&painter.paint(&harness)), &before, &[whole]).is_some());
}
