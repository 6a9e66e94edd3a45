//! One evaluation at a time, of steps that need several.
//!
//! A step of a chain with DPM-Solver, self-guidance or class guidance runs the network two to twelve times. To be able to stop after each,
//! the step is tried again and again from its start: estimates that an earlier try made are taken from a list, the next one is made, and
//! the rest of the try is for nothing. Steps are deterministic, so that each try asks for the same estimates in the same order; what is
//! done twice is a few sums.

use std::cell::{Cell, RefCell};

use burn::tensor::Tensor;

use crate::{
    Error,
    model::{Condition, Denoiser, Input},
    objective::Objective,
    sampler::{Chain, Step},
};

/// A denoiser that runs once, and remembers the estimates of earlier tries.
struct Single<'a> {
    denoiser: &'a dyn Denoiser<4>,
    estimates: RefCell<&'a mut Vec<Tensor<4>>>,
    /// The estimate that is asked for next.
    next: Cell<usize>,
    has_run: Cell<bool>,
    is_cut_short: Cell<bool>,
}

impl Denoiser<4> for Single<'_> {
    fn forward(&self, input: Input<'_, 4>) -> Tensor<4> {
        self.denoiser.forward(input)
    }

    fn objective(&self) -> Objective {
        self.denoiser.objective()
    }

    fn accepts(&self, shape: [usize; 4], condition: &Condition) -> Result<(), Error> {
        self.denoiser.accepts(shape, condition)
    }

    fn estimate(&self, input: Input<'_, 4>) -> Tensor<4> {
        let index = self.next.replace(self.next.get() + 1);
        if let Some(made) = self.estimates.borrow().get(index) {
            return made.clone();
        }
        if self.has_run.replace(true) {
            self.is_cut_short.set(true);
            return input.x_t.zeros_like();
        }
        let made = self.denoiser.estimate(input);
        self.estimates.borrow_mut().push(made.clone());
        made
    }
}

/// A chain that can be stopped after each evaluation.
pub(super) struct SingleChain {
    chain: Chain<4>,
    /// The estimates of the step under way.
    estimates: Vec<Tensor<4>>,
}

/// What one evaluation gave.
pub(super) enum Piece {
    /// The step needs more.
    Evaluation,
    /// A step is made.
    Step(Box<Step<4>>),
    /// There was nothing left to do.
    End,
}

impl SingleChain {
    pub fn new(chain: Chain<4>) -> Self {
        Self { chain, estimates: Vec::new() }
    }

    /// The chain, at the start of the step under way.
    pub fn chain(&self) -> &Chain<4> {
        &self.chain
    }

    /// Runs the denoiser at most once.
    pub fn advance(&mut self, denoiser: &dyn Denoiser<4>) -> Result<Piece, Error> {
        let mut attempt = self.chain.clone();
        let single = Single {
            denoiser,
            estimates: RefCell::new(&mut self.estimates),
            next: Cell::new(0),
            has_run: Cell::new(false),
            is_cut_short: Cell::new(false),
        };
        let step = attempt.step(&single)?;
        if single.is_cut_short.get() {
            return Ok(Piece::Evaluation);
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

    /// 3 stages × 2 for the class × 2 for self-guidance is as many as a step can have.
    #[test]
    fn a_step_in_twelve_pieces_is_the_same_step() {
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
        let mut pieces = SingleChain::new(whole.clone());

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
            assert_eq!(step.next.memory.n_evaluations, count.get());
            assert_eq!(step.x_pred.to_data(), expected.x_pred.to_data());
            assert_eq!(step.next.x_t.to_data(), expected.next.x_t.to_data());
        }
        assert_eq!(count.get(), 36);
        assert!(matches!(pieces.advance(&counted).unwrap(), Piece::End));
        assert_eq!(count.get(), 36);
    }
}
