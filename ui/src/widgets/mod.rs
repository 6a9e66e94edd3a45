//! Parts that more than one panel shows.

pub(crate) mod sheet;

pub(crate) use sheet::SheetView;
