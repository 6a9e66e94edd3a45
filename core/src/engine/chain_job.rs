//! A chain as a job: the chains it branches from as far as they are not kept, then its own steps.

use std::sync::Arc;

use super::{
    ChainRequest, EngineError, Event, Slot, StartedJob,
    cache::{Id, Item, Key},
    desk::{Desk, Status},
    kept::{Advance, KeptChain, Span},
};
use crate::Error;

/// The most chains that branch from each other.
const MAX_BRANCHES: usize = 256;

/// A chain under way.
pub(super) struct ChainJob {
    request: Arc<ChainRequest>,
    under_way: Option<UnderWay>,
    n_evaluations: usize,
}

struct UnderWay {
    /// The chains from the noise to the one asked for, each a branch of the one before.
    legs: Vec<Arc<ChainRequest>>,
    /// The one that is worked on.
    leg: usize,
    /// Where it is kept.
    id: Id,
    /// How many of its frames were sent.
    n_sent: usize,
}

impl ChainJob {
    pub fn new(request: ChainRequest) -> Self {
        Self { request: Arc::new(request), under_way: None, n_evaluations: 0 }
    }

    /// The same from the beginning, for another device; what is kept is not made again.
    pub fn afresh(&self) -> Self {
        Self { request: self.request.clone(), under_way: None, n_evaluations: self.n_evaluations }
    }

    /// What must not be dropped.
    pub fn in_use(&self) -> Option<Id> {
        self.under_way.as_ref().map(|under_way| under_way.id)
    }

    /// Makes at most one evaluation, or reads one step back.
    pub async fn advance(&mut self, slot: Slot, desk: &mut Desk) -> Result<Status, EngineError> {
        if self.under_way.is_none() {
            self.under_way = Some(begin(&self.request, slot, desk)?);
        }
        let under_way = self.under_way.as_mut().expect("it was just begun");
        while under_way.branch_off(desk)? {}
        let UnderWay { legs, leg, id, n_sent } = under_way;
        let is_last_leg = *leg + 1 == legs.len();
        let chain = desk.cache.chain(*id).expect("what is in use is not dropped");
        if is_last_leg {
            let frames = chain.frames_after(*n_sent);
            let is_complete = chain.is_complete();
            let has_news = !frames.is_empty();
            *n_sent = chain.n_made().max(*n_sent);
            if has_news {
                desk.events.push_back(Event::Frames { slot, frames });
            }
            if is_complete {
                desk.events.push_back(Event::Finished { slot, n_evaluations: self.n_evaluations });
                return Ok(Status::Done);
            }
            if has_news {
                return Ok(Status::Going);
            }
        }

        if chain.is_asleep() {
            let model = chain.request.model;
            let model = desk.model(model)?;
            let n_at_once = desk.n_at_once(&model.info);
            desk.cache.chain(*id).expect("it is in use").wake(model, n_at_once, &desk.device)?;
        }
        let chain = desk.cache.chain(*id).expect("it is in use");
        let (n_made, total) = (chain.n_made(), chain.span.end_step - chain.span.first_step);
        if !chain.has_made() {
            let advance = chain.advance();
            if !matches!(advance, Ok(Advance::Part)) {
                self.n_evaluations += 1;
                desk.count_evaluation();
            }
            if !matches!(advance?, Advance::Step) {
                desk.events.push_back(Event::Progress { slot, done: n_made, total });
                return Ok(Status::Going);
            }
            let chain = desk.cache.chain(*id).expect("it is in use");
            let canvas = desk.canvas.as_mut().filter(|_| is_last_leg);
            if let Some(step) = canvas.and_then(|canvas| chain.draw(slot, canvas)) {
                // Seen while it is read back, at the next turn.
                desk.events.push_back(Event::Live { slot, step: Arc::new(step) });
                return Ok(Status::Going);
            }
        }
        let frame = desk.cache.chain(*id).expect("it is in use").read_back().await?;
        let done = n_made + 1;
        // A step that was lost with its device, and is made again, was sent before.
        if !is_last_leg || done <= *n_sent {
            desk.events.push_back(Event::Progress { slot, done, total });
            return Ok(Status::Going);
        }
        *n_sent = done;
        desk.events.push_back(Event::Frames { slot, frames: vec![frame] });
        if done < total {
            return Ok(Status::Going);
        }
        desk.events.push_back(Event::Finished { slot, n_evaluations: self.n_evaluations });
        Ok(Status::Done)
    }
}

impl UnderWay {
    /// Goes over to the next chain, if the step that it starts from is made.
    fn branch_off(&mut self, desk: &mut Desk) -> Result<bool, EngineError> {
        let chain = desk.cache.chain(self.id).expect("what is in use is not dropped");
        let Some(next) = self.legs.get(self.leg + 1) else { return Ok(false) };
        let Some(start) = next.branch.as_ref().and_then(|branch| chain.start_at(branch.step)) else {
            return Ok(false);
        };
        let before = chain.info.clone();
        let model = desk.model(next.model)?;
        if !model.info.fits(&before) {
            let allowed = "one for the pictures and the encoding of the chain that it continues";
            return Err(Error::argument("model of the branch", &model.info.name, allowed).into());
        }
        let kept = KeptChain::new(next.clone(), model.info.clone(), Some(start))?;
        let version = desk.version(next.model)?;
        self.id = desk.cache.insert(Key::Chain(next.clone()), version, Item::Chain(Box::new(kept)));
        self.leg += 1;
        Ok(true)
    }
}

/// Finds what is kept of a chain, and says that it begins.
fn begin(request: &Arc<ChainRequest>, slot: Slot, desk: &mut Desk) -> Result<UnderWay, EngineError> {
    let mut legs = vec![request.clone()];
    while let Some(branch) = &legs[legs.len() - 1].branch {
        if legs.len() > MAX_BRANCHES {
            let allowed = format!("at most {MAX_BRANCHES}; start a new chain");
            return Err(Error::argument("branches one after the other", legs.len(), allowed).into());
        }
        let from = branch.from.clone();
        legs.push(from);
    }
    legs.reverse();
    let last = legs.len() - 1;
    let span = Span::of(request)?;

    let version = desk.version(request.model)?;
    let found = desk.cache.find(&Key::Chain(request.clone()), Some(version));
    let kept = found.and_then(|id| desk.cache.chain(id));
    let (info, n_kept) = match kept {
        Some(chain) => (chain.info.clone(), chain.n_made()),
        None => (desk.model(request.model)?.info.clone(), 0),
    };
    let Span { first_step, end_step, .. } = span;
    let job = StartedJob::Chain { request: request.clone(), first_step, end_step, n_kept };
    desk.events.push_back(Event::Started { slot, job, model: info });
    if let Some(id) = found {
        return Ok(UnderWay { legs, leg: last, id, n_sent: 0 });
    }

    // The nearest chain that is kept; its steps up to the branch may still have to be made.
    for leg in (0..last).rev() {
        if let Some(id) = desk.cache.find(&Key::Chain(legs[leg].clone()), None) {
            return Ok(UnderWay { legs, leg, id, n_sent: 0 });
        }
    }
    let root = legs[0].clone();
    let model = desk.model(root.model)?;
    let version_of_root = desk.version(root.model)?;
    let kept = KeptChain::new(root.clone(), model.info.clone(), None)?;
    let id = desk.cache.insert(Key::Chain(root), version_of_root, Item::Chain(Box::new(kept)));
    Ok(UnderWay { legs, leg: 0, id, n_sent: 0 })
}
