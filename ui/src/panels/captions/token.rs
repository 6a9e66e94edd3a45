//! One token: its analog bits against the threshold, and the words that are one flip of a bit away.

use bit_diffusion::{
    bits::Codec,
    engine::{CaptionerInfo, TokenView},
};
use egui::{Frame, Ui};

use crate::widgets::bars;

/// The most other words that are shown where every word has a number of its own.
const MAX_OTHERS: usize = 8;

/// A word that a token would become.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Neighbour {
    /// The bit to flip.
    bit: usize,
    /// How far that bit is from the threshold, in scales.
    distance: f32,
    /// What the token would be.
    id: u32,
    /// Whether no word has the new code, so that it is read without its highest bit.
    is_outside: bool,
}

/// The words one flip away, the least decided bit first; none where tokens are not binary codes.
fn neighbours(codec: &Codec, bits: &[f32]) -> Vec<Neighbour> {
    let symbols = codec.symbols();
    if symbols.is_empty() {
        return Vec::new();
    }
    let code = bits.iter().rev().fold(0_usize, |code, bit| code << 1 | usize::from(*bit > 0.0));
    let neighbour = |(bit, value): (usize, &f32)| {
        let code = code ^ (1 << bit);
        let id = symbols[code];
        let is_outside = codec.codes()[id as usize] as usize != code;
        Neighbour { bit, distance: value.abs() / codec.scale() as f32, id, is_outside }
    };
    let mut found: Vec<Neighbour> = bits.iter().enumerate().map(neighbour).collect();
    found.sort_by(|a, b| a.distance.total_cmp(&b.distance));
    found
}

/// The words with the highest numbers after the first, where every word has a number of its own.
fn others(bits: &[f32], id: u32) -> Vec<u32> {
    let mut ids: Vec<u32> = (0..bits.len() as u32).filter(|other| *other != id).collect();
    ids.sort_by(|a, b| bits[*b as usize].total_cmp(&bits[*a as usize]));
    ids.truncate(MAX_OTHERS);
    ids
}

/// A token's text, for a person.
pub(super) fn piece(captioner: &CaptionerInfo, id: u32) -> &str {
    captioner.pieces.get(id as usize).map_or("", String::as_str)
}

/// Draws the token.
pub(super) fn ui(ui: &mut Ui, captioner: &CaptionerInfo, token: &TokenView, title: &str) {
    let word = piece(captioner, token.id);
    let percent = 100.0 * token.confidence;
    let bits = &token.bits;
    if bits.is_empty() {
        ui.label(format!("{title}: {word}, {percent:.0}% sure"));
        ui.weak("This captioner has no bits: it chooses each word among all words, after those before it. How sure it is, is the probability of its choice.");
        return;
    }
    let sure =
        "How far its least decided bit is from the threshold: 0% on it, 100% where clean bits are\n\nmin |x_pred| / b";
    if captioner.codec.symbols().is_empty() {
        ui.label(format!("{title}: {word}, {percent:.0}% sure")).on_hover_text(sure);
        let words: Vec<&str> = others(bits, token.id).into_iter().map(|id| piece(captioner, id)).collect();
        ui.label(format!("The word with the highest of {} numbers; next: {}", bits.len(), words.join(", ")));
        return;
    }
    let digits: Vec<&str> = bits.iter().map(|bit| if *bit > 0.0 { "1" } else { "0" }).collect();
    ui.label(format!("{title}: {word}, {percent:.0}% sure, bits {}", digits.join(" "))).on_hover_text(sure);
    ui.horizontal_top(|ui| {
        bars::ui(ui, bits, captioner.codec.scale() as f32);
        ui.add_space(8.0);
        ui.vertical(|ui| neighbours_ui(ui, captioner, bits));
    });
}

/// The words one flip away.
fn neighbours_ui(ui: &mut Ui, captioner: &CaptionerInfo, bits: &[f32]) {
    ui.weak("One flip away, the least decided bit first:").on_hover_text(
        "Bit 0 first. Above the line, the threshold 0, a bit is a 1; the thin lines are the two values that clean bits have. A bit on the \
         wrong side of the line makes another word of it: one of these.",
    );
    ui.horizontal_wrapped(|ui| {
        for Neighbour { bit, distance, id, is_outside } in neighbours(&captioner.codec, bits) {
            Frame::group(ui.style()).inner_margin(3.0).show(ui, |ui| {
                ui.vertical(|ui| {
                    let other = ui.label(piece(captioner, id));
                    ui.small(format!("bit {bit}, {distance:.2}"));
                    let outside =
                        if is_outside { "\n\nNo word has that code: it is read without its highest bit" } else { "" };
                    other.on_hover_text(format!("Bit {bit} is {distance:.2} away from the threshold{outside}"));
                });
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use bit_diffusion::bits::Encoding;

    use super::*;

    #[test]
    fn the_least_decided_bit_leads_to_the_first_neighbour() {
        // Five tokens in three bits: codes 0 to 4.
        let codec = Codec::new(Encoding::Uint8, 5, 0.5).unwrap();
        // 001 with the lowest bit first, so token 4.
        let found = neighbours(&codec, &[-0.1, -0.5, 0.25]);
        let said: Vec<(usize, u32, bool)> = found.iter().map(|other| (other.bit, other.id, other.is_outside)).collect();
        // 101 is no token's code, and read as 001, token 1.
        assert_eq!(said, [(0, 1, true), (2, 0, false), (1, 2, true)]);
        assert!((found[0].distance - 0.2).abs() < 1e-6);
    }

    #[test]
    fn without_codes_the_next_best_words_are_named() {
        let codec = Codec::new(Encoding::OneHot, 4, 1.0).unwrap();
        assert!(neighbours(&codec, &[0.0; 4]).is_empty());
        assert_eq!(others(&[0.1, 0.9, -1.0, 0.5], 1), [3, 0, 2]);
    }
}
