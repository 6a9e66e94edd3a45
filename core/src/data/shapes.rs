//! The shapes world: small pictures of flat-coloured shapes, made from a seed.
//!
//! Every colour is one of a few, so that any wrong bit shows, and can be counted: [`n_off_palette`].

use crate::rng::Rng;

/// The width and height of a scene, in pixels.
pub const SIZE: usize = 16;

/// The width and height of one shape, in pixels; it stands in the middle of one of the four quarters of the scene.
const SHAPE_SIZE: usize = 6;

/// The colours: the first two are backgrounds, the others shapes. Their bits differ widely between neighbours.
pub const PALETTE: [[u8; 3]; 8] = [
    [250, 246, 235],
    [34, 40, 58],
    [220, 50, 47],
    [44, 160, 70],
    [38, 110, 220],
    [240, 190, 30],
    [150, 80, 190],
    [250, 130, 40],
];

const N_BACKGROUNDS: usize = 2;

/// What a shape can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A full square.
    Square,
    /// A disc.
    Disc,
    /// A triangle that stands on its base.
    Triangle,
    /// An upright cross.
    Cross,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Square, Self::Disc, Self::Triangle, Self::Cross];

    /// Whether the shape covers a pixel of its own square.
    fn covers(self, x: usize, y: usize) -> bool {
        // Twice the distance from the middle, so that all numbers are whole.
        let (dx, dy) = ((2 * x + 1).abs_diff(SHAPE_SIZE), (2 * y + 1).abs_diff(SHAPE_SIZE));
        match self {
            Self::Square => true,
            Self::Disc => dx * dx + dy * dy <= SHAPE_SIZE * SHAPE_SIZE,
            Self::Triangle => dx <= y + 1,
            Self::Cross => dx <= 2 || dy <= 2,
        }
    }
}

/// One shape in a scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// What it is.
    pub kind: Kind,
    /// Its colour, an index into [`PALETTE`].
    pub colour: usize,
    /// Which quarter of the scene it stands in: 0 and 1 above, 2 and 3 below, left to right.
    pub quarter: usize,
}

/// A scene: a background and one to three shapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scene {
    /// The background's colour, an index into [`PALETTE`].
    pub background: usize,
    /// The shapes, each in its own quarter.
    pub shapes: Vec<Shape>,
}

impl Scene {
    /// A random scene.
    pub fn random(rng: &mut Rng) -> Self {
        let mut quarters = [0, 1, 2, 3];
        let n_shapes = 1 + rng.below(3);
        let shapes = (0..n_shapes)
            .map(|i| {
                let rest = quarters.len() - i;
                quarters.swap(i, i + rng.below(rest));
                Shape {
                    kind: Kind::ALL[rng.below(Kind::ALL.len())],
                    colour: N_BACKGROUNDS + rng.below(PALETTE.len() - N_BACKGROUNDS),
                    quarter: quarters[i],
                }
            })
            .collect();
        Self { background: rng.below(N_BACKGROUNDS), shapes }
    }

    /// The picture: values of 0 to 255, all red ones first, then green, then blue; each row by row.
    #[must_use]
    pub fn render(&self) -> Vec<u32> {
        let mut colours = vec![self.background; SIZE * SIZE];
        for shape in &self.shapes {
            let half = SIZE / 2;
            let margin = (half - SHAPE_SIZE) / 2;
            let (left, top) = (shape.quarter % 2 * half + margin, shape.quarter / 2 * half + margin);
            for y in 0..SHAPE_SIZE {
                for x in 0..SHAPE_SIZE {
                    if shape.kind.covers(x, y) {
                        colours[(top + y) * SIZE + left + x] = shape.colour;
                    }
                }
            }
        }
        (0..3).flat_map(|channel| colours.iter().map(move |&colour| u32::from(PALETTE[colour][channel]))).collect()
    }
}

/// How many pixels of a picture, laid out as [`Scene::render`] does, have a colour that is not of the palette.
#[must_use]
pub fn n_off_palette(picture: &[u32]) -> usize {
    let n = picture.len() / 3;
    (0..n)
        .filter(|&i| {
            let colour = [picture[i], picture[n + i], picture[2 * n + i]];
            !PALETTE.iter().any(|known| known.map(u32::from) == colour)
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scene_has_only_colours_of_the_palette_and_one_wrong_bit_shows() {
        let mut rng = Rng::new(1);
        for _ in 0..50 {
            let scene = Scene::random(&mut rng);
            let mut quarters: Vec<usize> = scene.shapes.iter().map(|shape| shape.quarter).collect();
            quarters.sort_unstable();
            quarters.dedup();
            assert_eq!(quarters.len(), scene.shapes.len());
            let mut picture = scene.render();
            assert_eq!(picture.len(), 3 * SIZE * SIZE);
            assert_eq!(n_off_palette(&picture), 0);
            picture[100] ^= 1;
            assert_eq!(n_off_palette(&picture), 1);
        }
    }

    #[test]
    fn kinds_look_different() {
        let area =
            |kind: Kind| (0..SHAPE_SIZE * SHAPE_SIZE).filter(|i| kind.covers(i % SHAPE_SIZE, i / SHAPE_SIZE)).count();
        assert_eq!(Kind::ALL.map(area), [36, 32, 24, 20]);
    }
}
