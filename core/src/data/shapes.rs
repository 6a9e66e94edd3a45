//! The shapes world: small pictures of flat-coloured shapes, made from a seed.
//!
//! Every colour is one of a few, so that any wrong bit shows, and can be counted: [`n_off_palette`]. Whether a picture is a scene
//! at all is exact too: [`Scene::parse`].

use super::{DataError, Picture, Pictures};
use serde::Serialize;

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

    /// The kind's name.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Square => "square",
            Self::Disc => "disc",
            Self::Triangle => "triangle",
            Self::Cross => "cross",
        }
    }

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
            for (i, covers) in shape_pixels(shape.kind, shape.quarter) {
                if covers {
                    colours[i] = shape.colour;
                }
            }
        }
        (0..3).flat_map(|channel| colours.iter().map(move |&colour| u32::from(PALETTE[colour][channel]))).collect()
    }

    /// The scene that a picture shows, if it shows one to the last pixel; shapes in the order of their quarters.
    #[must_use]
    pub fn parse(picture: &[u32]) -> Option<Self> {
        if picture.len() != 3 * SIZE * SIZE {
            return None;
        }
        // The corner is always background.
        let background = colour_at(picture, 0).filter(|&colour| colour < N_BACKGROUNDS)?;
        let shape_in = |quarter: usize| {
            let matches = |kind: Kind| {
                let mut pixels = shape_pixels(kind, quarter);
                let colour = pixels.clone().find(|(_, covers)| *covers).and_then(|(i, _)| colour_at(picture, i))?;
                let is_shape = colour >= N_BACKGROUNDS
                    && pixels
                        .all(|(i, covers)| colour_at(picture, i) == Some(if covers { colour } else { background }));
                is_shape.then_some(Shape { kind, colour, quarter })
            };
            Kind::ALL.into_iter().find_map(matches)
        };
        let shapes: Vec<Shape> = (0..4).filter_map(shape_in).collect();
        let scene = Self { background, shapes };
        // What lies outside the shapes, or is no shape, shows here.
        ((1..=3).contains(&scene.shapes.len()) && scene.render() == picture).then_some(scene)
    }
}

/// How many examples [`Shapes`] has: about nine for each of the 117,696 different scenes.
pub const N_EXAMPLES: usize = 1 << 20;

/// The name of this data set.
pub const NAME: &str = "shapes";

/// Whether pictures of a model are meant to be scenes, so that they have an exact measure: it was trained on `data`, and its pictures have
/// this shape. An older model does not name its data, and is taken at the shape.
#[must_use]
pub fn are_scenes(data: &str, channels: usize, size: usize, alphabet: usize) -> bool {
    (data == NAME || data.is_empty()) && (channels, size, alphabet) == (3, SIZE, 256)
}

/// Random scenes as a data set; they have no classes.
#[derive(Debug, Clone)]
pub struct Shapes {
    rng: Rng,
}

/// The seeds of the scenes that networks learn from, and of those that they are tested on.
pub const SEEDS: [u64; 2] = [0, 1];

impl Shapes {
    /// The data set of a seed: example `i` is the scene of stream `i` of the seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { rng: Rng::new(seed) }
    }
}

impl Pictures for Shapes {
    fn name(&self) -> &'static str {
        NAME
    }

    fn n_examples(&self) -> usize {
        N_EXAMPLES
    }

    fn channels(&self) -> usize {
        3
    }

    fn size(&self) -> usize {
        SIZE
    }

    fn n_classes(&self) -> usize {
        0
    }

    fn read(&mut self, index: usize) -> Result<Picture, DataError> {
        if index >= N_EXAMPLES {
            return Err(DataError::Index { index, n_examples: N_EXAMPLES });
        }
        let scene = Scene::random(&mut self.rng.fork(index as u64));
        Ok(Picture { pixels: scene.render().into_iter().map(|value| value as u8).collect(), class: 0 })
    }
}

/// The pixels of the square that a shape stands in, and whether the shape covers them.
fn shape_pixels(kind: Kind, quarter: usize) -> impl Iterator<Item = (usize, bool)> + Clone {
    let half = SIZE / 2;
    let margin = (half - SHAPE_SIZE) / 2;
    let (left, top) = (quarter % 2 * half + margin, quarter / 2 * half + margin);
    (0..SHAPE_SIZE * SHAPE_SIZE).map(move |i| {
        let (x, y) = (i % SHAPE_SIZE, i / SHAPE_SIZE);
        ((top + y) * SIZE + left + x, kind.covers(x, y))
    })
}

/// The colour of a pixel, as an index into [`PALETTE`].
fn colour_at(picture: &[u32], pixel: usize) -> Option<usize> {
    let n = picture.len() / 3;
    let colour = [0, 1, 2].map(|channel| picture[channel * n + pixel]);
    PALETTE.iter().position(|known| known.map(u32::from) == colour)
}

/// How many pixels of a picture, laid out as [`Scene::render`] does, have a colour that is not of the palette.
#[must_use]
pub fn n_off_palette(picture: &[u32]) -> usize {
    (0..picture.len() / 3).filter(|&pixel| colour_at(picture, pixel).is_none()).count()
}

/// How exact pictures of shapes are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ShapesScore {
    /// The share of pixels whose colour is not of the palette.
    pub off_palette: f64,
    /// The share of pictures that are a scene, to the last pixel.
    pub scenes: f64,
}

impl ShapesScore {
    /// The score of pictures, one after the other, each laid out as [`Scene::render`] does.
    #[must_use]
    pub fn of(pictures: &[u32]) -> Self {
        let pictures = pictures.chunks_exact(3 * SIZE * SIZE);
        let n = pictures.len() as f64;
        let off: usize = pictures.clone().map(n_off_palette).sum();
        let scenes = pictures.filter(|picture| Scene::parse(picture).is_some()).count();
        Self { off_palette: off as f64 / (n * (SIZE * SIZE) as f64), scenes: scenes as f64 / n }
    }
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
            let mut sorted = scene.clone();
            sorted.shapes.sort_by_key(|shape| shape.quarter);
            assert_eq!(Scene::parse(&picture), Some(sorted));
            picture[100] ^= 1;
            assert_eq!(n_off_palette(&picture), 1);
            assert_eq!(Scene::parse(&picture), None);
        }
    }

    #[test]
    fn the_score_counts_pixels_and_scenes() {
        let scene = Scene::random(&mut Rng::new(1)).render();
        let mut broken = scene.clone();
        broken[0] ^= 1;
        assert_eq!(ShapesScore::of(&[scene, broken].concat()), ShapesScore { off_palette: 1.0 / 512.0, scenes: 0.5 });
    }

    #[test]
    fn what_is_no_scene_does_not_parse() {
        let empty = Scene { background: 1, shapes: vec![] };
        assert_eq!(Scene::parse(&empty.render()), None, "a scene has a shape");
        assert_eq!(Scene::parse(&[]), None);
        // A shape with one pixel of another shape's colour.
        let shape = Shape { kind: Kind::Square, colour: 3, quarter: 2 };
        let mut picture = Scene { background: 0, shapes: vec![shape] }.render();
        let inside = (SIZE / 2 + 3) * SIZE + 3;
        for channel in 0..3 {
            picture[channel * SIZE * SIZE + inside] = u32::from(PALETTE[4][channel]);
        }
        assert_eq!(n_off_palette(&picture), 0);
        assert_eq!(Scene::parse(&picture), None);
    }

    #[test]
    fn an_example_is_the_scene_of_its_stream() {
        let mut shapes = Shapes::new(5);
        let scene = Scene::random(&mut Rng::new(5).fork(3));
        let read = |shapes: &mut Shapes, index| {
            let picture = shapes.read(index).unwrap();
            assert_eq!(picture.class, 0);
            picture.pixels.into_iter().map(u32::from).collect::<Vec<u32>>()
        };
        let third = read(&mut shapes, 3);
        assert_eq!(third, scene.render());
        assert_ne!(third, read(&mut shapes, 4));
        assert_eq!(third, read(&mut shapes, 3), "reading leaves nothing behind");
        assert_ne!(third, read(&mut Shapes::new(6), 3));
        assert!(shapes.read(N_EXAMPLES - 1).is_ok());
        assert!(shapes.read(N_EXAMPLES).is_err());
        // Backgrounds × (choices of quarters × (kinds × colours) ^ shapes), for one to three shapes.
        let n_scenes = 2 * (4 * 24 + 6 * 24_usize.pow(2) + 4 * 24_usize.pow(3));
        assert_eq!(n_scenes, 117_696);
    }

    #[test]
    fn kinds_look_different() {
        let area =
            |kind: Kind| (0..SHAPE_SIZE * SHAPE_SIZE).filter(|i| kind.covers(i % SHAPE_SIZE, i / SHAPE_SIZE)).count();
        assert_eq!(Kind::ALL.map(area), [36, 32, 24, 20]);
    }
}
