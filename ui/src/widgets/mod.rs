//! Parts that more than one panel shows.

pub(crate) mod bars;
pub(crate) mod clock;
pub(crate) mod curves;
pub(crate) mod figure2;
pub(crate) mod heat_map;
pub(crate) mod pixel;
pub(crate) mod player;
pub(crate) mod quality;
pub(crate) mod reading;
pub(crate) mod sheet;
pub(crate) mod spread;
pub(crate) mod track;
pub(crate) mod undo;

pub(crate) use player::Player;
pub(crate) use sheet::SheetView;
pub(crate) use track::Track;
pub(crate) use undo::Undo;
