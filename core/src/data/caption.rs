//! Captions of the shapes world: what a scene shows, in words of a small grammar, and whether a caption is true of a scene.
//!
//! ```text
//! caption    = noun place background | noun relation noun [ "and" relation noun ] background
//! noun       = "a" colour kind
//! place      = "at the" ( "top" | "bottom" ) ( "left" | "right" )
//! relation   = "left of" | "right of" | "above" | "below" | "above left of" | …
//! background = "on" ( "white" | "black" )
//! ```
//!
//! Deliberately absent: tokens. Words are separated by single spaces, and [`WORDS`] has them all.

use std::{fmt, str::FromStr};

use super::shapes::{Kind, Scene, Shape};
use crate::{Error, rng::Rng};

/// Every word of the grammar.
pub const WORDS: [&str; 24] = [
    "a", "red", "green", "blue", "yellow", "purple", "orange", "square", "disc", "triangle", "cross", "left", "right",
    "above", "below", "of", "and", "at", "the", "top", "bottom", "on", "white", "black",
];

/// The colours of [`super::shapes::PALETTE`], in its order: first the backgrounds.
const COLOURS: [&str; 8] = ["white", "black", "red", "green", "blue", "yellow", "purple", "orange"];

const PLACES: [&str; 4] = ["top left", "top right", "bottom left", "bottom right"];

/// A shape in words: its colour, an index into the palette, and its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noun {
    /// The colour, an index into [`super::shapes::PALETTE`].
    pub colour: usize,
    /// What it is.
    pub kind: Kind,
}

/// Where one shape stands as seen from another: columns to the right and rows down, each −1, 0 or 1, and not both 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relation {
    right: i8,
    down: i8,
}

/// A caption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caption {
    /// The shape it begins with.
    pub subject: Noun,
    /// Where that is: for a shape alone its quarter, else as seen from each of the others.
    pub rest: Rest,
    /// The colour of the background, an index into [`super::shapes::PALETTE`].
    pub background: usize,
}

/// What a caption says of its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rest {
    /// It is alone, in this quarter.
    Alone(usize),
    /// It stands so, as seen from each of the others: one or two.
    Beside(Vec<(Relation, Noun)>),
}

impl Relation {
    const ALL: [Self; 8] = [
        Self { right: -1, down: 0 },
        Self { right: 1, down: 0 },
        Self { right: 0, down: -1 },
        Self { right: 0, down: 1 },
        Self { right: -1, down: -1 },
        Self { right: 1, down: -1 },
        Self { right: -1, down: 1 },
        Self { right: 1, down: 1 },
    ];

    fn words(self) -> &'static str {
        match (self.right, self.down) {
            (-1, 0) => "left of",
            (1, 0) => "right of",
            (0, -1) => "above",
            (0, 1) => "below",
            (-1, -1) => "above left of",
            (1, -1) => "above right of",
            (-1, 1) => "below left of",
            _ => "below right of",
        }
    }

    /// Where `shape` stands as seen from `other`.
    fn between(shape: &Shape, other: &Shape) -> Self {
        let place = |quarter: usize| ((quarter % 2) as i8, (quarter / 2) as i8);
        let ((x, y), (other_x, other_y)) = (place(shape.quarter), place(other.quarter));
        Self { right: x - other_x, down: y - other_y }
    }
}

impl From<&Shape> for Noun {
    fn from(shape: &Shape) -> Self {
        Self { colour: shape.colour, kind: shape.kind }
    }
}

impl Caption {
    /// A caption of a scene; which shape it begins with is drawn from `rng`.
    ///
    /// # Panics
    /// If the scene has no shape, or more than three: no scene of the world has.
    pub fn of(scene: &Scene, rng: &mut Rng) -> Self {
        assert!((1..=3).contains(&scene.shapes.len()), "a scene has one to three shapes");
        let mut others: Vec<&Shape> = scene.shapes.iter().collect();
        let subject = others.swap_remove(rng.below(others.len()));
        if others.len() == 2 && rng.below(2) == 1 {
            others.swap(0, 1);
        }
        let rest = if others.is_empty() {
            Rest::Alone(subject.quarter)
        } else {
            Rest::Beside(others.iter().map(|other| (Relation::between(subject, other), Noun::from(*other))).collect())
        };
        Self { subject: subject.into(), rest, background: scene.background }
    }

    /// Whether the scene is as the caption says: these shapes, no others, placed so, on that background.
    #[must_use]
    pub fn is_true_of(&self, scene: &Scene) -> bool {
        if self.background != scene.background {
            return false;
        }
        scene.shapes.iter().enumerate().any(|(i, subject)| {
            if Noun::from(subject) != self.subject {
                return false;
            }
            let others: Vec<&Shape> =
                scene.shapes.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, s)| s).collect();
            let fits = |said: &(Relation, Noun), other: &Shape| {
                said.1 == Noun::from(other) && said.0 == Relation::between(subject, other)
            };
            match &self.rest {
                Rest::Alone(quarter) => others.is_empty() && subject.quarter == *quarter,
                Rest::Beside(said) => match (said.as_slice(), others.as_slice()) {
                    ([a], [x]) => fits(a, x),
                    ([a, b], [x, y]) => fits(a, x) && fits(b, y) || fits(a, y) && fits(b, x),
                    _ => false,
                },
            }
        })
    }
}

impl fmt::Display for Noun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {} {}", COLOURS[self.colour], self.kind.label())
    }
}

impl fmt::Display for Caption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.subject)?;
        match &self.rest {
            Rest::Alone(quarter) => write!(f, " at the {}", PLACES[*quarter])?,
            Rest::Beside(said) => {
                for (i, (relation, noun)) in said.iter().enumerate() {
                    write!(f, "{} {} {noun}", if i == 0 { "" } else { " and" }, relation.words())?;
                }
            }
        }
        write!(f, " on {}", COLOURS[self.background])
    }
}

impl FromStr for Caption {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).ok_or_else(|| {
            Error::argument("caption", text, "of the shapes' grammar, like \"a red square above a blue disc on white\"")
        })
    }
}

fn parse(text: &str) -> Option<Caption> {
    let (subject, mut rest) = noun(text)?;
    let said = if let Some(place) = rest.strip_prefix(" at the ") {
        let (quarter, after) = one_of(place, &PLACES)?;
        rest = after;
        Rest::Alone(quarter)
    } else {
        let mut said = Vec::new();
        loop {
            rest = rest.strip_prefix(' ')?;
            // The longer relations first: "above left of" begins like "above".
            let relation = Relation::ALL.into_iter().rev().find(|relation| rest.starts_with(relation.words()))?;
            let (other, after) = noun(rest.strip_prefix(relation.words())?.strip_prefix(' ')?)?;
            said.push((relation, other));
            match after.strip_prefix(" and") {
                Some(after) if said.len() < 2 => rest = after,
                _ => {
                    rest = after;
                    break;
                }
            }
        }
        Rest::Beside(said)
    };
    let (background, end) = one_of(rest.strip_prefix(" on ")?, &COLOURS[..2])?;
    end.is_empty().then_some(Caption { subject, rest: said, background })
}

fn noun(text: &str) -> Option<(Noun, &str)> {
    let (colour, rest) = one_of(text.strip_prefix("a ")?, &COLOURS[2..])?;
    let (kind, rest) = one_of(rest.strip_prefix(' ')?, &Kind::ALL.map(Kind::label))?;
    Some((Noun { colour: colour + 2, kind: Kind::ALL[kind] }, rest))
}

/// Which of the options a text begins with, and what follows it.
fn one_of<'a>(text: &'a str, options: &[&str]) -> Option<(usize, &'a str)> {
    options.iter().enumerate().find_map(|(i, option)| Some((i, text.strip_prefix(option)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captions_are_true_of_their_scene_and_read_back() {
        let mut rng = Rng::new(3);
        let mut relations = std::collections::HashSet::new();
        for _ in 0..500 {
            let scene = Scene::random(&mut rng);
            let caption = Caption::of(&scene, &mut rng);
            let text = caption.to_string();
            assert!(text.split(' ').all(|word| WORDS.contains(&word)), "{text}");
            assert_eq!(text.parse::<Caption>().unwrap(), caption, "{text}");
            assert!(caption.is_true_of(&scene), "{text}: {scene:?}");
            if let Rest::Beside(said) = &caption.rest {
                relations.extend(said.iter().map(|(relation, _)| relation.words()));
            }
            // Another background, another colour, one shape fewer: no longer true.
            let other = Scene { background: 1 - scene.background, ..scene.clone() };
            assert!(!caption.is_true_of(&other), "{text}");
            let mut other = scene.clone();
            other.shapes[0].colour = 2 + (other.shapes[0].colour - 1) % 6;
            assert!(!caption.is_true_of(&other), "{text}: {other:?}");
            let mut other = scene.clone();
            other.shapes.pop();
            assert!(!caption.is_true_of(&other), "{text}: {other:?}");
        }
        assert_eq!(relations.len(), 8, "{relations:?}");
    }

    #[test]
    fn a_caption_by_hand() {
        let disc = Shape { kind: Kind::Disc, colour: 4, quarter: 0 };
        let cross = Shape { kind: Kind::Cross, colour: 2, quarter: 3 };
        let scene = Scene { background: 1, shapes: vec![disc, cross] };
        let says = |text: &str| text.parse::<Caption>().unwrap().is_true_of(&scene);
        assert!(says("a blue disc above left of a red cross on black"));
        assert!(says("a red cross below right of a blue disc on black"));
        assert!(!says("a red cross above left of a blue disc on black"));
        assert!(!says("a blue disc above a red cross on black"));
        assert!(!says("a blue disc at the top left on black"));
    }

    #[test]
    fn what_is_no_caption_is_an_error() {
        for text in [
            "",
            "a red square",
            "a red square on white",
            "a white square at the top left on white",
            "a red square above a blue disc and below a green cross and above a red disc on white",
            "a red square above a blue disc on white ",
            "a  red square at the top left on white",
        ] {
            assert!(text.parse::<Caption>().is_err(), "{text:?}");
        }
    }
}
