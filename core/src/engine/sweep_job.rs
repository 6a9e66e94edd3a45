//! A sweep as a job: one cell after the other, each the mean over its seeds.

use std::{rc::Rc, sync::Arc};

use super::{
    Cell, Classes, EngineError, Event, PictureSheet, ShapesScore, Slot, StartedJob, SweepRequest,
    cache::{Item, Key},
    desk::{Desk, Status},
    kept::condition,
    model::Model,
    view::view,
};
use crate::{
    Error,
    sampler::{Chain, Piece, Settings, SingleChain, State},
};

/// A sweep under way.
pub(super) struct SweepJob {
    request: Arc<SweepRequest>,
    under_way: Option<UnderWay>,
    n_evaluations: usize,
}

struct UnderWay {
    model: Rc<Model>,
    version: u64,
    /// The settings of every cell, row by row.
    cells: Vec<Settings>,
    /// The cell that is worked on.
    cell: usize,
    /// What the seeds of this cell gave so far.
    results: Vec<SeedResult>,
    /// The chain of the next seed.
    chain: Option<SingleChain<4>>,
}

/// What one chain of a cell gave.
struct SeedResult {
    score: Option<ShapesScore>,
    share_near_modes: f64,
    n_evaluations: usize,
    pictures: PictureSheet,
}

impl SweepJob {
    pub fn new(request: SweepRequest) -> Self {
        Self { request: Arc::new(request), under_way: None, n_evaluations: 0 }
    }

    /// The same from the beginning, for another device; cells that are kept are not made again.
    pub fn afresh(&self) -> Self {
        Self { request: self.request.clone(), under_way: None, n_evaluations: self.n_evaluations }
    }

    /// Makes at most one evaluation.
    pub async fn advance(&mut self, slot: Slot, desk: &mut Desk) -> Result<Status, EngineError> {
        let request = self.request.clone();
        if self.under_way.is_none() {
            self.under_way = Some(begin(&request, slot, desk)?);
        }
        let UnderWay { model, version, cells, cell, results, chain } =
            self.under_way.as_mut().expect("it was just begun");
        // Cells that are kept come at once.
        let key = |settings: Settings| Key::Cell {
            model: request.model,
            n: request.n,
            seeds: request.seeds.clone(),
            settings,
        };
        while let Some(&settings) = cells.get(*cell) {
            let Some(id) = desk.cache.find(&key(settings), Some(*version)) else { break };
            let Some(Item::Cell(kept)) = desk.cache.item(id) else { break };
            desk.events.push_back(Event::Cell { slot, cell: kept.clone() });
            *cell += 1;
        }
        let Some(&settings) = cells.get(*cell) else {
            desk.events.push_back(Event::Finished { slot, n_evaluations: self.n_evaluations });
            return Ok(Status::Done);
        };

        let seed = request.seeds[results.len()];
        let under_way = match chain {
            Some(chain) => chain,
            None => chain.insert(start(&request, settings, seed, model, desk)?),
        };
        let piece = under_way.advance(model.denoiser.as_ref())?;
        if !matches!(piece, Piece::Part) {
            self.n_evaluations += 1;
            desk.count_evaluation();
        }
        let steps_made = under_way.chain().state().step;
        if let Piece::Step(step) = piece
            && under_way.chain().is_finished()
        {
            *chain = None;
            let n_evaluations = step.next.memory.n_evaluations;
            let (view, _) = view(step.x_pred, &model.info).await?;
            let share_near_modes = view.share_near_modes;
            results.push(SeedResult { score: view.score, share_near_modes, n_evaluations, pictures: view.pictures });
            if results.len() == request.seeds.len() {
                let made = Arc::new(mean(settings, results));
                results.clear();
                *cell += 1;
                desk.cache.insert(key(settings), *version, Item::Cell(made.clone()));
                desk.events.push_back(Event::Cell { slot, cell: made });
                return Ok(Status::Going);
            }
        }
        // In steps: those of whole cells, of whole chains of this one, and of the chain under way.
        let n_seeds = request.seeds.len();
        let of = |cells: &[Settings]| cells.iter().map(|settings| settings.n_steps * n_seeds).sum::<usize>();
        let in_chain = if chain.is_some() { steps_made } else { 0 };
        let done = of(&cells[..*cell]) + results.len() * settings.n_steps + in_chain;
        desk.events.push_back(Event::Progress { slot, done, total: of(cells) });
        Ok(Status::Going)
    }
}

fn begin(request: &Arc<SweepRequest>, slot: Slot, desk: &mut Desk) -> Result<UnderWay, EngineError> {
    let n_cells = request.steps.len().saturating_mul(request.td.len());
    if !(1..=SweepRequest::MAX_CELLS).contains(&n_cells) {
        let allowed = format!("from 1 to {}", SweepRequest::MAX_CELLS);
        return Err(Error::argument("number of cells", n_cells, allowed).into());
    }
    for (name, n) in [("number of samples", request.n), ("number of seeds", request.seeds.len())] {
        if !(1..=1024).contains(&n) {
            return Err(Error::argument(name, n, "from 1 to 1024").into());
        }
    }
    let model = desk.model(request.model)?;
    model.info.check_room(request.n)?;
    let version = desk.version(request.model)?;
    let settings = |n_steps: usize, td: f64| Settings {
        n_steps,
        td,
        sampler: request.sampler,
        self_cond: request.self_cond,
        guidance: 1.0,
        schedule: model.info.schedule,
    };
    let rows = request.steps.iter();
    let cells: Vec<Settings> = rows
        .flat_map(|&n_steps| request.td.iter().map(move |&td| (n_steps, td)))
        .map(|(n, td)| settings(n, td))
        .collect();
    cells.iter().try_for_each(Settings::validate)?;
    let job = StartedJob::Sweep(request.clone());
    desk.events.push_back(Event::Started { slot, job, model: model.info.clone() });
    Ok(UnderWay { model, version, cells, cell: 0, results: Vec::new(), chain: None })
}

fn start(
    request: &SweepRequest,
    settings: Settings,
    seed: u64,
    model: &Model,
    desk: &Desk,
) -> Result<SingleChain<4>, EngineError> {
    let condition = condition(Classes::Each, request.n, model.info.n_classes);
    let state = State::from_seed(model.info.state_shape(request.n), seed, &desk.device);
    Ok(SingleChain::new(Chain::new(settings, condition, state)?, desk.n_at_once(&model.info)))
}

fn mean(settings: Settings, results: &[SeedResult]) -> Cell {
    let n = results.len() as f64;
    let mean = |of: &dyn Fn(&SeedResult) -> f64| results.iter().map(of).sum::<f64>() / n;
    let has_score = results.iter().all(|result| result.score.is_some());
    let score = has_score.then(|| ShapesScore {
        off_palette: mean(&|result| result.score.map_or(0.0, |score| score.off_palette)),
        scenes: mean(&|result| result.score.map_or(0.0, |score| score.scenes)),
    });
    Cell {
        n_steps: settings.n_steps,
        td: settings.td,
        score,
        share_near_modes: mean(&|result| result.share_near_modes),
        n_evaluations: results[0].n_evaluations,
        pictures: results[0].pictures.clone(),
    }
}
