//! Bit Diffusion (Chen, Zhang & Hinton, "Analog Bits", ICLR 2023): discrete data as real-valued bits.
//!
//! Discrete symbols are written as bits, the bits are treated as real numbers (*analog bits*), a continuous diffusion
//! model learns them, and a threshold turns its samples back into symbols. This crate is the engine: it runs on burn
//! tensors, on any device burn has, natively and in a browser.
//!
//! | module | noun |
//! |---|---|
//! | [`bits`] | the encodings: symbols ↔ analog bits |
//! | [`schedule`] | time → noise level γ |
//! | [`objective`] | what a network predicts, and its loss |
//! | [`model`] | the [`model::Denoiser`] trait: the U-Net, the captioner, exact denoisers; networks that look at pictures |
//! | [`kernels`] | layers made fast, for the processor and for graphics cards |
//! | [`self_cond`] | what the network is told of its own last estimate |
//! | [`sampler`] | the reverse chain, step by step |
//! | [`train`] | the training loss and the loop around it |
//! | [`experiment`] | training runs by name |
//! | [`device`] | what the numbers are worked out on |
//! | [`engine`] | all of this behind commands and events |
//! | [`checkpoint`] | a run or a network as one file |
//! | [`metrics`] | how good samples are, as numbers |
//! | [`rng`] | the one source of randomness |
//! | [`demo`] | networks that come with the program |
//! | [`data`] | pictures to learn and to test with |
//! | [`text`] | tokenizers: text ↔ token ids |
//! | [`picture_file`] | pictures as PNG and GIF |
//! | [`saved`] | settings as text |
//! | [`pause`] | where long work may hand a page's thread back |
//!
//! Deliberately absent: windows, files and file dialogs (bytes in, bytes out), and any second source of randomness (but for dropout, which burn draws, from
//! a seed of ours).
//!
//! # Layout of tensors
//! Symbols have shape `[b, c, …]` (pictures `[b, 3, h, w]`, text `[b, 1, tokens]`). Their analog bits have shape
//! `[b, c·n, …]`: the `n` bits of channel `c` stand at `c·n … c·n + n − 1`, lowest bit first.

mod bisect;
pub mod bits;
pub mod checkpoint;
pub mod data;
pub mod demo;
pub mod device;
pub mod engine;
mod error;
pub mod experiment;
pub mod kernels;
pub mod metrics;
pub mod model;
pub mod objective;
pub mod pause;
pub mod picture_file;
pub mod rng;
pub mod sampler;
pub mod saved;
pub mod schedule;
pub mod self_cond;
pub mod text;
pub mod train;

pub use error::Error;

/// The example of the README runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
