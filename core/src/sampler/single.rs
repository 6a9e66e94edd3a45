//! One evaluation at a time, of steps that need several.
//!
//! A step of a chain with DPM-Solver or self-guidance runs the network two to six times. To be able to stop after each,
//! the step is tried again and again from its start: estimates that an earlier try made are taken from a list, the next one is made, and
//! the rest of the try is for nothing. Steps are deterministic, so that each try asks for the same estimates in the same order; what is
//! done twice is a few sums.
//!
//! Where one evaluation of a whole batch takes too long to wait for, which is in a browser, it is made in parts: some examples at a time.
//! Examples do not know of each other, so that this changes nothing.

use std::cell::{Cell, RefCell};

use burn::tensor::{Device, Tensor};

use super::{Chain, Step};
use crate::{
    Error,
    model::{Condition, Denoiser, Input},
    objective::Objective,
};

/// Weights times pixels that the processor gets through in some 40 ms, on one thread of a browser.
const PRODUCTS_AT_ONCE: u64 = 500_000_000;

/// How many examples a network may be given at a time. In a browser, on the page's own thread, the processor has to hand it back before
/// a person notices; everywhere else all of them.
///
/// It follows from the network and the size of its pictures alone, so that a chain is the same every time to the last bit.
pub(crate) fn n_at_once(n_parameters: u64, size: usize, device: &Device) -> usize {
    if cfg!(not(target_arch = "wasm32")) || *device != Device::flex() {
        return usize::MAX;
    }
    (PRODUCTS_AT_ONCE / (n_parameters * (size * size) as u64).max(1)).max(1) as usize
}

/// A denoiser that runs once, and remembers the estimates of earlier tries.
struct Single<'a, const D: usize> {
    denoiser: &'a dyn Denoiser<D>,
    estimates: RefCell<&'a mut Vec<Tensor<D>>>,
    /// The parts that are made of the estimate under way.
    parts: RefCell<&'a mut Vec<Tensor<D>>>,
    /// The most examples at a time.
    n_at_once: usize,
    /// The estimate that is asked for next.
    next: Cell<usize>,
    has_run: Cell<bool>,
    is_cut_short: Cell<bool>,
    /// Whether the estimate that was worked on is not whole yet.
    is_in_parts: Cell<bool>,
}

impl<const D: usize> Denoiser<D> for Single<'_, D> {
    fn forward(&self, input: Input<'_, D>) -> Tensor<D> {
        self.denoiser.forward(input)
    }

    fn objective(&self) -> Objective {
        self.denoiser.objective()
    }

    fn prepare(&self, condition: Condition) -> Condition {
        self.denoiser.prepare(condition)
    }

    fn accepts(&self, shape: [usize; D], condition: &Condition) -> Result<(), Error> {
        self.denoiser.accepts(shape, condition)
    }

    fn estimate(&self, input: Input<'_, D>) -> Tensor<D> {
        let index = self.next.replace(self.next.get() + 1);
        if let Some(made) = self.estimates.borrow().get(index) {
            return made.clone();
        }
        if self.has_run.replace(true) {
            self.is_cut_short.set(true);
            return input.x_t.zeros_like();
        }
        let n = input.x_t.dims()[0];
        if n <= self.n_at_once {
            let made = self.denoiser.estimate(input);
            self.estimates.borrow_mut().push(made.clone());
            return made;
        }
        let mut parts = self.parts.borrow_mut();
        let from: usize = parts.iter().map(|part| part.dims()[0]).sum();
        let n_now = self.n_at_once.min(n - from);
        let of = |tensor: &Tensor<D>| tensor.clone().narrow(0, from, n_now);
        parts.push(self.denoiser.estimate(Input {
            x_t: of(&input.x_t),
            x_pred: of(&input.x_pred),
            gamma: &input.gamma[from..from + n_now],
            condition: &input.condition.narrow(from, n_now),
        }));
        if from + n_now < n {
            self.is_cut_short.set(true);
            self.is_in_parts.set(true);
            return input.x_t.zeros_like();
        }
        let made = Tensor::cat(parts.drain(..).collect(), 0);
        self.estimates.borrow_mut().push(made.clone());
        made
    }
}

/// A chain that can be stopped after each evaluation.
pub(crate) struct SingleChain<const D: usize> {
    chain: Chain<D>,
    /// The estimates of the step under way.
    estimates: Vec<Tensor<D>>,
    /// The parts of the estimate under way.
    parts: Vec<Tensor<D>>,
    /// The most examples at a time.
    n_at_once: usize,
}

/// What one evaluation gave.
pub(crate) enum Piece<const D: usize> {
    /// The evaluation is not whole yet.
    Part,
    /// The step needs more.
    Evaluation,
    /// A step is made.
    Step(Box<Step<D>>),
    /// There was nothing left to do.
    End,
}

impl<const D: usize> SingleChain<D> {
    /// A chain whose evaluations have at most `n_at_once` examples at a time.
    pub fn new(chain: Chain<D>, n_at_once: usize) -> Self {
        Self { chain, estimates: Vec::new(), parts: Vec::new(), n_at_once }
    }

    /// The chain, at the start of the step under way.
    pub fn chain(&self) -> &Chain<D> {
        &self.chain
    }

    /// Runs the denoiser at most once, on at most so many examples.
    pub fn advance(&mut self, denoiser: &dyn Denoiser<D>) -> Result<Piece<D>, Error> {
        self.chain.prepare(denoiser)?;
        let mut attempt = self.chain.clone();
        let single = Single {
            denoiser,
            estimates: RefCell::new(&mut self.estimates),
            parts: RefCell::new(&mut self.parts),
            n_at_once: self.n_at_once,
            next: Cell::new(0),
            has_run: Cell::new(false),
            is_cut_short: Cell::new(false),
            is_in_parts: Cell::new(false),
        };
        let step = attempt.step(&single)?;
        if single.is_cut_short.get() {
            return Ok(if single.is_in_parts.get() { Piece::Part } else { Piece::Evaluation });
        }
        self.estimates.clear();
        self.chain = attempt;
        Ok(step.map_or(Piece::End, |step| Piece::Step(Box::new(step))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::ExactDenoiser,
        sampler::{Sampler, Settings, State},
        self_cond::SelfCond,
    };
    use burn::tensor::Device;

    struct Counted<'a>(ExactDenoiser<4>, &'a Cell<usize>);

    impl Denoiser<4> for Counted<'_> {
        fn forward(&self, input: Input<'_, 4>) -> Tensor<4> {
            self.1.set(self.1.get() + 1);
            self.0.forward(input)
        }

        fn objective(&self) -> Objective {
            self.0.objective()
        }

        fn accepts(&self, shape: [usize; 4], condition: &Condition) -> Result<(), Error> {
            self.0.accepts(shape, condition)
        }
    }

    /// 3 stages × 2 for self-guidance is as many as a step can have. Those with and without the class are in one batch.
    #[test]
    fn a_step_in_six_pieces_is_the_same_step() {
        let device = Device::flex();
        let points = Tensor::<4>::from_floats([[[[1.0]], [[-1.0]]], [[[-1.0]], [[-1.0]]]], &device);
        let exact = ExactDenoiser::new(points, 1.0).unwrap().with_trust(1.0).unwrap();
        let exact = exact.with_classes(vec![0, 1]).unwrap();
        let settings = Settings {
            n_steps: 3,
            sampler: Sampler::DpmSolver3,
            self_cond: SelfCond::SelfGuidance { weight: 2.0 },
            guidance: 1.5,
            ..Settings::default()
        };
        let condition = Condition::Classes(vec![Some(1), None]);
        let state = State::from_seed([2, 2, 1, 1], 4, &device);
        let mut whole = Chain::new(settings, condition, state).unwrap();
        let mut pieces = SingleChain::new(whole.clone(), usize::MAX);
        let mut halves = SingleChain::new(whole.clone(), 1);

        let mut n_parts = 0;
        let count = Cell::new(0);
        let counted = Counted(exact.clone(), &count);
        while let Some(expected) = whole.step(&exact).unwrap() {
            let step = loop {
                let before = count.get();
                let piece = pieces.advance(&counted).unwrap();
                assert_eq!(count.get(), before + 1, "one evaluation a call");
                if let Piece::Step(step) = piece {
                    break step;
                }
            };
            let in_halves = loop {
                match halves.advance(&exact).unwrap() {
                    Piece::Step(step) => break step,
                    Piece::Part => n_parts += 1,
                    Piece::Evaluation | Piece::End => {}
                }
            };
            assert_eq!(in_halves.next.x_t.to_data(), expected.next.x_t.to_data());
            assert_eq!(step.next.memory.n_evaluations, 2 * count.get());
            assert_eq!(step.x_pred.to_data(), expected.x_pred.to_data());
            assert_eq!(step.next.x_t.to_data(), expected.next.x_t.to_data());
        }
        // Of a batch of four, three parts are not the last.
        assert_eq!((count.get(), n_parts), (18, 54));
        assert!(matches!(pieces.advance(&counted).unwrap(), Piece::End));
        assert_eq!(count.get(), 18);
    }
}
