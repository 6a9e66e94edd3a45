//! Data to learn and to test with.

pub mod shapes;
