//! A caption on its way: steps downwards, tokens across, each shaded by how sure it is.
//!
//! One widget, not one for each token: the pointer or the arrow keys lead to a token.

use bit_diffusion::engine::{CaptionView, CaptionerInfo, TokenView};
use egui::{
    Align2, EventFilter, FontId, Key, Rect, Response, Role, Sense, Stroke, StrokeKind, Ui, Vec2, WidgetInfo, pos2, vec2,
};

use super::token::{self, piece};
use crate::theme;

/// The height of a step.
const ROW: f32 = 19.0;
/// Between tokens.
const GAP: f32 = 2.0;
/// Beside the text of a token, on both sides together.
const PADDING: f32 = 8.0;
/// Letters of what stands before a step.
const LABEL: usize = 8;

/// The token that was last pointed at.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tokens {
    at: Option<Place>,
}

/// A token of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    step: usize,
    token: usize,
}

/// Where the columns are.
struct Columns {
    /// The left edges, and after the last the right edge.
    edges: Vec<f32>,
}

impl Columns {
    fn new(captioner: &CaptionerInfo, steps: &[&CaptionView], letter: f32) -> Self {
        let n = steps.iter().map(|caption| caption.tokens.len()).max().unwrap_or(0);
        let mut edges = vec![LABEL as f32 * letter];
        for token in 0..n {
            let shown = steps.iter().filter_map(|caption| caption.tokens.get(token));
            let letters = shown.map(|token| text(captioner, token).chars().count()).max().unwrap_or(0).max(2);
            edges.push(edges[token] + letters as f32 * letter + PADDING + GAP);
        }
        Self { edges }
    }

    fn n(&self) -> usize {
        self.edges.len() - 1
    }

    fn width(&self) -> f32 {
        self.edges[self.n()]
    }

    /// The token at a place from the left.
    fn at(&self, x: f32) -> Option<usize> {
        self.edges.windows(2).position(|edges| (edges[0]..edges[1]).contains(&x))
    }
}

impl Tokens {
    /// The token to look at: the one last pointed at, else the least sure of the first step.
    fn place(self, steps: &[&CaptionView]) -> Option<Place> {
        let fits = |place: &Place| steps.get(place.step).is_some_and(|caption| place.token < caption.tokens.len());
        self.at.filter(fits).or_else(|| {
            let tokens = steps.first()?.tokens.iter().enumerate();
            let (token, _) = tokens.min_by(|(_, a), (_, b)| a.confidence.total_cmp(&b.confidence))?;
            Some(Place { step: 0, token })
        })
    }

    /// Draws the token that is looked at.
    pub fn token_ui(self, ui: &mut Ui, captioner: &CaptionerInfo, steps: &[&CaptionView]) {
        let Some(place @ Place { step, token }) = self.place(steps) else { return };
        token::ui(ui, captioner, &steps[step].tokens[token], &title(place));
    }

    /// Draws the grid.
    pub fn ui(&mut self, ui: &mut Ui, captioner: &CaptionerInfo, steps: &[&CaptionView]) {
        let font = FontId::monospace(12.0);
        let letter = ui.fonts_mut(|fonts| fonts.glyph_width(&font, 'm'));
        let columns = Columns::new(captioner, steps, letter);
        let size = vec2(columns.width(), ROW * steps.len() as f32);
        let (rect, response) = ui.allocate_exact_size(size, Sense::click());
        self.point(ui, &response, &columns, steps);
        let shown = self.place(steps);
        let painter = ui.painter_at(rect.expand(1.0));
        let clip = ui.clip_rect();
        let (ink, weak) = (ui.visuals().text_color(), ui.visuals().weak_text_color());
        for (step, caption) in steps.iter().enumerate() {
            let top = rect.top() + ROW * step as f32;
            if top > clip.bottom() || top + ROW < clip.top() {
                continue;
            }
            let middle = top + 0.5 * ROW;
            painter.text(
                pos2(rect.left(), middle),
                Align2::LEFT_CENTER,
                format!("step {}", step + 1),
                font.clone(),
                weak,
            );
            let end = end(captioner, caption);
            for (token, view) in caption.tokens.iter().enumerate() {
                let [left, right] = [token, token + 1].map(|edge| rect.left() + columns.edges[edge]);
                let cell = Rect::from_min_max(pos2(left, top), pos2(right - GAP, top + ROW - GAP));
                let is_said = token <= end;
                if is_said {
                    painter.rect_filled(cell, 2.0, theme::confidence(ui, view.confidence));
                }
                let text_ink = if is_said { ink } else { weak.gamma_multiply(0.6) };
                painter.text(cell.center(), Align2::CENTER_CENTER, text(captioner, view), font.clone(), text_ink);
                if shown == Some(Place { step, token }) {
                    let stroke = Stroke::new(2.0, ui.visuals().strong_text_color());
                    painter.rect_stroke(cell, 2.0, stroke, StrokeKind::Inside);
                }
            }
        }
        if response.has_focus() {
            let stroke = ui.visuals().selection.stroke;
            painter.rect_stroke(rect, 2.0, stroke, StrokeKind::Outside);
        }
        response.widget_info(|| {
            let at = shown.map(|place @ Place { step, token }| {
                let view = &steps[step].tokens[token];
                format!(": {}, {}, {:.0}% sure", title(place), piece(captioner, view.id), 100.0 * view.confidence)
            });
            let name = format!("The words at every step{}", at.unwrap_or_default());
            WidgetInfo::labeled(Role::Image, true, name)
        });
    }

    /// Follows the pointer and the arrow keys.
    fn point(&mut self, ui: &Ui, response: &Response, columns: &Columns, steps: &[&CaptionView]) {
        let Some(last_step) = steps.len().checked_sub(1) else { return };
        if response.clicked() {
            response.request_focus();
        }
        if let Some(at) = response.hover_pos() {
            let Vec2 { x, y } = at - response.rect.min;
            let step = ((y / ROW).max(0.0) as usize).min(last_step);
            if let Some(token) = columns.at(x).filter(|token| *token < steps[step].tokens.len()) {
                self.at = Some(Place { step, token });
            }
        }
        if !response.has_focus() {
            return;
        }
        let filter = EventFilter { horizontal_arrows: true, vertical_arrows: true, ..EventFilter::default() };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
        let pressed = |key: Key| usize::from(ui.input(|input| input.key_pressed(key)));
        if let Some(Place { step, token }) = self.place(steps) {
            let step = (step + pressed(Key::ArrowDown)).saturating_sub(pressed(Key::ArrowUp)).min(last_step);
            let last_token = steps[step].tokens.len().saturating_sub(1);
            let token = (token + pressed(Key::ArrowRight)).saturating_sub(pressed(Key::ArrowLeft)).min(last_token);
            self.at = Some(Place { step, token });
        }
    }
}

fn title(Place { step, token }: Place) -> String {
    format!("Step {}, token {}", step + 1, token + 1)
}

/// The token that ends a caption; past the last where none does.
fn end(captioner: &CaptionerInfo, caption: &CaptionView) -> usize {
    let ends = |token: &TokenView| token.id == captioner.eos || piece(captioner, token.id) == "<pad>";
    caption.tokens.iter().position(ends).unwrap_or(caption.tokens.len())
}

/// A token in the grid, in few letters.
fn text<'a>(captioner: &'a CaptionerInfo, token: &TokenView) -> &'a str {
    match piece(captioner, token.id) {
        "<end>" => "end",
        "<pad>" => "-",
        word => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caption(confidences: &[f32]) -> CaptionView {
        let token = |confidence: &f32| TokenView { id: 0, bits: Vec::new(), confidence: *confidence };
        CaptionView { text: String::new(), tokens: confidences.iter().map(token).collect(), is_true: None }
    }

    #[test]
    fn the_least_sure_token_is_looked_at_until_another_is() {
        let (first, second) = (caption(&[0.5, 0.2, 0.9]), caption(&[0.1]));
        let steps = [&first, &second];
        assert_eq!(Tokens::default().place(&steps), Some(Place { step: 0, token: 1 }));
        let at = Some(Place { step: 1, token: 0 });
        assert_eq!(Tokens { at }.place(&steps), at);
        // One that is no longer there, as after choosing a shorter chain.
        assert_eq!(Tokens { at }.place(&steps[..1]), Some(Place { step: 0, token: 1 }));
        assert_eq!(Tokens::default().place(&[]), None);
    }

    #[test]
    fn a_place_from_the_left_is_a_token() {
        let columns = Columns { edges: vec![10.0, 20.0, 40.0] };
        assert_eq!([5.0, 10.0, 39.0, 40.0].map(|x| columns.at(x)), [None, Some(0), Some(1), None]);
        assert_eq!(columns.n(), 2);
    }
}
