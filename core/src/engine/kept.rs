//! A kept chain: its steps so far, and what it needs to go on or to be branched.
//!
//! While a chain is under way its tensors stay on the device in full precision, so that stopping and going on changes nothing. What
//! branches start from is kept in half floats, as it is shown. A step is made, may then be drawn where it lies, and is read back.

use std::{collections::VecDeque, rc::Rc, sync::Arc};

use burn::tensor::{Device, Tensor};
use half::f16;

use super::{
    ChainRequest, Classes, EngineError, Frame, LiveStep, ModelInfo, Slot,
    live::Canvas,
    model::Model,
    view::{halves, tensor, view},
};
use crate::{
    Error,
    model::Condition,
    sampler::{Chain, Piece, Settings, SingleChain, State, Step},
    self_cond::{Memory, SelfCond},
};

/// Analog bits in half floats; `None` stands for zeros.
type Halves = Option<Arc<[f16]>>;

/// Everything of a state but `x_t`: with the `x_t` of a frame it is the state that the frame started from.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    x_pred: Halves,
    x_accu: Halves,
    n_evaluations: usize,
    t_pred: Option<f64>,
    position: f64,
    n_steps: usize,
    step: usize,
}

/// Where a branch starts.
#[derive(Debug, Clone)]
pub(super) struct Start {
    x_t: Arc<[f16]>,
    mark: Mark,
}

/// What running the denoiser gave.
pub(super) enum Advance {
    /// Some samples of an evaluation.
    Part,
    /// An evaluation of a step that needs more.
    Evaluation,
    /// A step, to be read back before the next.
    Step,
}

/// A chain under way, on its device.
struct Live {
    single: SingleChain<4>,
    model: Rc<Model>,
    x_pred: Halves,
    x_accu: Halves,
    /// The step that is not read back yet.
    made: Option<(Box<Step<4>>, Mark)>,
}

/// The steps of a chain: the first, where on the clock it is, and the one after the last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span {
    pub first_step: usize,
    position: f64,
    pub end_step: usize,
}

impl Span {
    /// The steps that a request asks for, which follow from the settings alone.
    pub fn of(request: &ChainRequest) -> Result<Self, Error> {
        request.settings.validate()?;
        let n = ChainRequest::MAX_SAMPLES;
        if !(1..=n).contains(&request.n) {
            return Err(Error::argument("number of samples", request.n, format!("from 1 to {n}")));
        }
        let (first_step, position) = match &request.branch {
            None => (0, 0.0),
            Some(branch) => {
                let from = &branch.from;
                let span = Self::of(from)?;
                if !(span.first_step..span.end_step).contains(&branch.step) {
                    let allowed = format!("from {} to {}", span.first_step, span.end_step - 1);
                    return Err(Error::argument("step of the branch", branch.step, allowed));
                }
                if from.n != request.n {
                    return Err(Error::argument(
                        "number of samples of the branch",
                        request.n,
                        format!("{}, as in the chain that it continues", from.n),
                    ));
                }
                let before = span.position + (branch.step - span.first_step) as f64;
                (branch.step, rescaled(before, from.settings.n_steps, &request.settings))
            }
        };
        // The same tolerance as `Chain::is_finished`.
        let rest = (request.settings.n_steps as f64 - position - 1e-9).ceil().max(0.0) as usize;
        if rest == 0 {
            return Err(Error::argument("step of the branch", first_step, "one before the end"));
        }
        Ok(Self { first_step, position, end_step: first_step + rest })
    }
}

/// A position in another number of steps, as [`Chain::new`] has it.
fn rescaled(position: f64, n_steps: usize, settings: &Settings) -> f64 {
    if n_steps == settings.n_steps { position } else { position * settings.n_steps as f64 / n_steps as f64 }
}

/// A chain and all of its steps so far.
pub(super) struct KeptChain {
    pub request: Arc<ChainRequest>,
    pub info: ModelInfo,
    pub span: Span,
    /// `None` starts from noise.
    start: Option<Start>,
    steps: VecDeque<(Arc<Frame>, Mark)>,
    /// Steps at the beginning that had to be dropped.
    pub n_dropped: usize,
    live: Option<Live>,
}

impl KeptChain {
    /// A chain without steps yet.
    pub fn new(request: Arc<ChainRequest>, info: ModelInfo, start: Option<Start>) -> Result<Self, Error> {
        let span = Span::of(&request)?;
        info.check_room(request.n)?;
        Ok(Self { request, info, span, start, steps: VecDeque::new(), n_dropped: 0, live: None })
    }

    /// How many steps have been made.
    pub fn n_made(&self) -> usize {
        self.n_dropped + self.steps.len()
    }

    /// Whether all steps have been made.
    pub fn is_complete(&self) -> bool {
        self.span.first_step + self.n_made() >= self.span.end_step
    }

    /// Whether the chain needs a model to go on.
    pub fn is_asleep(&self) -> bool {
        self.live.is_none() && !self.is_complete()
    }

    /// The kept frames after the first `n`.
    pub fn frames_after(&self, n: usize) -> Vec<Arc<Frame>> {
        self.steps.iter().skip(n.saturating_sub(self.n_dropped)).map(|(frame, _)| frame.clone()).collect()
    }

    /// Where a branch that makes `step` anew starts, if that is kept.
    pub fn start_at(&self, step: usize) -> Option<Start> {
        let index = step.checked_sub(self.span.first_step + self.n_dropped)?;
        self.steps.get(index).map(|(frame, mark)| Start { x_t: frame.x_t.bits.clone(), mark: mark.clone() })
    }

    /// Gets ready to go on: from noise, from the start of the branch, or from the start of the last step.
    pub fn wake(&mut self, model: Rc<Model>, n_at_once: usize, device: &Device) -> Result<(), EngineError> {
        if !model.info.fits(&self.info) {
            let allowed = "the one that the chain was begun with; start the chain anew";
            return Err(Error::argument("model", &model.info.name, allowed).into());
        }
        let request = &self.request;
        let shape = model.info.state_shape(request.n);
        let last = self.steps.back().map(|(frame, mark)| Start { x_t: frame.x_t.bits.clone(), mark: mark.clone() });
        let start = last.or_else(|| self.start.clone());
        let (x_pred, x_accu) =
            start.as_ref().map_or((None, None), |start| (start.mark.x_pred.clone(), start.mark.x_accu.clone()));
        let state = match start {
            None => State::from_seed(shape, request.seed, device),
            Some(start) => state(&start, shape, request.seed, device),
        };
        let condition = condition(request.classes, request.n, model.info.n_classes);
        let chain = Chain::new(request.settings, condition, state)?;
        // That step is made again.
        self.steps.pop_back();
        self.live = Some(Live { single: SingleChain::new(chain, n_at_once), model, x_pred, x_accu, made: None });
        Ok(())
    }

    /// Runs the denoiser once, or on a part of the samples. The chain must be awake, and its last step read back.
    pub fn advance(&mut self) -> Result<Advance, EngineError> {
        // Taken out, so that a failure leaves no half-made step: the chain is then asleep.
        let mut live = self.live.take().expect("a chain is woken before it goes on");
        let state = live.single.chain().state();
        let mark = Mark {
            x_pred: live.x_pred.clone(),
            x_accu: live.x_accu.clone(),
            n_evaluations: state.memory.n_evaluations,
            t_pred: state.t_pred,
            position: state.position,
            n_steps: state.n_steps,
            step: state.step,
        };
        let advance = match live.single.advance(live.model.denoiser.as_ref())? {
            Piece::Step(step) => {
                live.made = Some((step, mark));
                Advance::Step
            }
            Piece::Part => Advance::Part,
            Piece::Evaluation | Piece::End => Advance::Evaluation,
        };
        self.live = Some(live);
        Ok(advance)
    }

    /// Whether a step is made that is not read back yet.
    pub fn has_made(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.made.is_some())
    }

    /// Draws the step that is made, where it lies; `None` if that cannot be.
    pub fn draw(&self, slot: Slot, canvas: &mut Canvas) -> Option<LiveStep> {
        let (step, _) = self.live.as_ref()?.made.as_ref()?;
        canvas.draw(slot, step, &self.info.codec)
    }

    /// Reads back the step that is made.
    pub async fn read_back(&mut self) -> Result<Arc<Frame>, EngineError> {
        // Taken out for the same reason.
        let mut live = self.live.take().expect("a step is made before it is read back");
        let (step, mark) = live.made.take().expect("a step is made before it is read back");
        let (x_t, _) = view(step.x_t, &self.info).await?;
        let (x_pred, _) = view(step.x_pred, &self.info).await?;
        live.x_pred = Some(x_pred.bits.clone());
        if let SelfCond::Momentum { .. } = self.request.settings.self_cond {
            live.x_accu = Some(halves(step.next.memory.x_accu.clone()).await?);
        }
        let n_evaluations = step.next.memory.n_evaluations;
        let frame = Frame { step: step.step, t_now: step.t_now, t_next: step.t_next, n_evaluations, x_t, x_pred };
        let frame = Arc::new(frame);
        self.steps.push_back((frame.clone(), mark));
        if !self.is_complete() {
            self.live = Some(live);
        }
        Ok(frame)
    }

    /// Forgets what lives on a device that has failed.
    pub fn put_to_sleep(&mut self) {
        self.live = None;
    }

    /// Drops the first kept step but never the last, from which the chain can go on; `false` if there is nothing to drop.
    pub fn drop_first(&mut self) -> bool {
        let can_drop = self.steps.len() > 1;
        if can_drop {
            self.steps.pop_front();
            self.n_dropped += 1;
        }
        can_drop
    }

    /// The memory that it takes, in bytes.
    pub fn n_bytes(&self) -> usize {
        let accu = |mark: &Mark| mark.x_accu.as_ref().map_or(0, |bits| size_of_val(&**bits));
        let steps: usize = self.steps.iter().map(|(frame, mark)| frame.n_bytes() + accu(mark)).sum();
        let values: usize = self.info.state_shape(self.request.n).iter().product();
        // Of a chain under way: x_t, the last estimate and its average, on the device.
        let live = if self.live.is_some() { 3 * values * size_of::<f32>() } else { 0 };
        let start = self.start.as_ref().map_or(0, |start| size_of_val(&*start.x_t));
        steps + live + start + size_of::<Self>()
    }
}

/// What the samples of a request are asked to show.
pub(super) fn condition(classes: Classes, n: usize, n_classes: usize) -> Condition {
    match classes {
        Classes::One(class) => Condition::Classes(vec![Some(class); n]),
        _ if n_classes == 0 => Condition::None,
        Classes::Each => Condition::Classes((0..n).map(|i| Some(i % n_classes)).collect()),
        Classes::Any => Condition::Classes(vec![None; n]),
    }
}

fn state(start: &Start, shape: [usize; 4], seed: u64, device: &Device) -> State<4> {
    let mark = &start.mark;
    let or_zeros =
        |bits: &Halves| bits.as_ref().map_or_else(|| Tensor::zeros(shape, device), |bits| tensor(bits, shape, device));
    State {
        x_t: tensor(&start.x_t, shape, device),
        memory: Memory {
            x_pred: or_zeros(&mark.x_pred),
            x_accu: or_zeros(&mark.x_accu),
            n_evaluations: mark.n_evaluations,
        },
        t_pred: mark.t_pred,
        position: mark.position,
        n_steps: mark.n_steps,
        step: mark.step,
        seed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_a_branch_follow_from_the_settings() {
        let of = |n_steps| Settings { n_steps, ..Settings::default() };
        let root = ChainRequest { settings: of(10), ..ChainRequest::default() };
        assert_eq!(Span::of(&root), Ok(Span { first_step: 0, position: 0.0, end_step: 10 }));
        // From the middle on, twice as fine: ten more steps.
        let finer = root.branched(5, of(20));
        assert_eq!(Span::of(&finer), Ok(Span { first_step: 5, position: 10.0, end_step: 15 }));
        // Two of those are one of ten; 4 are left, and in 7 steps that is 2.8, so 3.
        let third = finer.branched(7, of(7));
        let span = Span::of(&third).unwrap();
        assert_eq!((span.first_step, span.end_step), (7, 10));
        assert!((span.position - 4.2).abs() < 1e-12);
        for (branch, said) in [
            (root.branched(10, of(10)), "from 0 to 9"),
            (finer.branched(4, of(10)), "from 5 to 14"),
            (ChainRequest { n: 3, ..root.branched(1, of(10)) }, "as in the chain"),
            (ChainRequest { n: 0, ..root.clone() }, "from 1 to"),
            (root.branched(1, of(0)), "steps is 0"),
        ] {
            let error = Span::of(&branch).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
