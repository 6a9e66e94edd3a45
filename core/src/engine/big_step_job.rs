//! The paper's Figure 3 as a job: clean pictures noised to one time, taken to another in one step, denoised with several clocks.
//!
//! A step from any time to any other is a step of a chain that has very many steps and the time difference to match: so all of it is done
//! by [`Chain`], with every sampler and every self-conditioning.

use std::{rc::Rc, sync::Arc};

use burn::tensor::Tensor;

use super::{
    BigStepPart, BigStepRequest, ChainRequest, Classes, EngineError, Event, Measure, PictureSheet, Slot, StartedJob,
    View,
    cache::{Item, Key},
    desk::{Desk, Status},
    kept::condition,
    model::Model,
    view::{sheet, symbols, view},
};
use crate::{
    Error,
    data::{
        Pictures as _,
        shapes::{self, Shapes},
    },
    error::check_number,
    objective::corrupt,
    rng::Rng,
    sampler::{Chain, Piece, Settings, SingleChain, State},
    self_cond::Memory,
};

/// Fine enough for any time that a person asks for.
const N_STEPS: usize = Settings::MAX_STEPS;

/// A big step under way.
pub(super) struct BigStepJob {
    request: Arc<BigStepRequest>,
    under_way: Option<UnderWay>,
    n_evaluations: usize,
}

struct UnderWay {
    model: Rc<Model>,
    version: u64,
    /// The colour values of the clean pictures.
    clean: Vec<u32>,
    /// The step that is being made.
    chain: SingleChain<4>,
    /// The state after the big step, once it is made.
    after: Option<State<4>>,
    parts: Vec<Arc<BigStepPart>>,
}

impl BigStepJob {
    pub fn new(request: BigStepRequest) -> Self {
        Self { request: Arc::new(request), under_way: None, n_evaluations: 0 }
    }

    /// The same from the beginning, for another device.
    pub fn afresh(&self) -> Self {
        Self { request: self.request.clone(), under_way: None, n_evaluations: self.n_evaluations }
    }

    /// Makes at most one evaluation.
    pub async fn advance(&mut self, slot: Slot, desk: &mut Desk) -> Result<Status, EngineError> {
        let request = self.request.clone();
        let key = Key::BigStep(request.clone());
        if self.under_way.is_none() {
            let (under_way, kept) = begin(&request, slot, desk)?;
            if let Some(parts) = kept {
                let events = parts.into_iter().map(|part| Event::BigStep { slot, part });
                desk.events.extend(events);
                desk.events.push_back(Event::Finished { slot, n_evaluations: 0 });
                return Ok(Status::Done);
            }
            self.under_way = under_way;
        }
        let under_way = self.under_way.as_mut().expect("it was just begun");
        let model = under_way.model.clone();
        let piece = under_way.chain.advance(model.denoiser.as_ref())?;
        if !matches!(piece, Piece::Part) {
            self.n_evaluations += 1;
            desk.count_evaluation();
        }
        let total = 1 + request.told.len();
        let Piece::Step(step) = piece else {
            desk.events.push_back(Event::Progress { slot, done: under_way.parts.len(), total });
            return Ok(Status::Going);
        };

        let (told, bits) = match under_way.parts.len() {
            0 => {
                let bits = step.next.x_t.clone();
                under_way.after = Some(step.next);
                (None, bits)
            }
            n => (Some(request.told[n - 1]), step.x_pred),
        };
        let (view, values) = view(bits, &model.info).await?;
        let part = Arc::new(part(told, view, &values, &under_way.clean, &model));
        under_way.parts.push(part.clone());
        desk.events.push_back(Event::BigStep { slot, part });
        let Some(&told) = request.told.get(under_way.parts.len() - 1) else {
            let parts = std::mem::take(&mut under_way.parts);
            desk.cache.insert(key, under_way.version, Item::BigStep(parts));
            desk.events.push_back(Event::Finished { slot, n_evaluations: self.n_evaluations });
            return Ok(Status::Done);
        };
        // To the next clock, always from the state after the big step. Where that step goes does not matter: only its estimate does.
        let mut state = under_way.after.clone().expect("the big step comes first");
        state.position = position(told);
        under_way.chain = chain(&request, state, 0.0, &model, desk)?;
        Ok(Status::Going)
    }
}

/// Where on the clock of a chain of [`N_STEPS`] a time is.
fn position(t: f64) -> f64 {
    (1.0 - t) * N_STEPS as f64
}

/// The chain whose next step starts at `state` and goes `t_length` further.
fn chain(
    request: &BigStepRequest,
    state: State<4>,
    t_length: f64,
    model: &Model,
    desk: &Desk,
) -> Result<SingleChain<4>, Error> {
    let td = (t_length * N_STEPS as f64 - 1.0).max(0.0);
    let settings = Settings { n_steps: N_STEPS, td, ..request.settings };
    let condition = condition(Classes::Any, state.x_t.dims()[0], model.info.n_classes);
    Ok(SingleChain::new(Chain::new(settings, condition, state)?, desk.n_at_once(&model.info)))
}

type Begun = (Option<UnderWay>, Option<Vec<Arc<BigStepPart>>>);

/// What is to be done, or what is kept.
fn begin(request: &Arc<BigStepRequest>, slot: Slot, desk: &mut Desk) -> Result<Begun, EngineError> {
    validate(request)?;
    let model = desk.model(request.model)?;
    let version = desk.version(request.model)?;
    model.info.check_room(request.clean.as_ref().map_or(request.n, |sheet| sheet.n))?;
    let clean = clean(request, &model)?;
    let job = StartedJob::BigStep(request.clone());
    desk.events.push_back(Event::Started { slot, job, model: model.info.clone() });
    if let Some(id) = desk.cache.find(&Key::BigStep(request.clone()), Some(version))
        && let Some(Item::BigStep(parts)) = desk.cache.item(id)
    {
        return Ok((None, Some(parts.clone())));
    }

    let info = &model.info;
    let n = clean.len() / (info.channels * info.size * info.size);
    let x_0: Tensor<4> = info.codec.encode_tensor(&clean, [n, info.channels, info.size, info.size], &desk.device)?;
    let eps = Rng::new(request.seed).fork(0).normal_tensor(x_0.dims(), &desk.device);
    let gamma = request.settings.schedule.gamma(request.t_from);
    let x_t = corrupt(x_0, eps, &vec![gamma; n]);
    let memory = Memory::new(&x_t);
    let state = State {
        x_t,
        memory,
        t_pred: None,
        position: position(request.t_from),
        n_steps: N_STEPS,
        step: 0,
        seed: request.seed,
    };
    let chain = chain(request, state, request.t_from - request.t_to, &model, desk)?;
    Ok((Some(UnderWay { model, version, clean, chain, after: None, parts: Vec::new() }), None))
}

fn validate(request: &BigStepRequest) -> Result<(), Error> {
    // A time of 0 has nothing left to denoise.
    let is_time = |t: f64| (1e-3..=1.0).contains(&t);
    check_number("time of the noise", request.t_from, is_time, "from 0.001 to 1")?;
    check_number("time of the big step", request.t_to, |t| t >= 0.0 && t < request.t_from, "0 or more and before it")?;
    if !(1..=1024).contains(&request.told.len()) {
        return Err(Error::argument("number of clock times", request.told.len(), "from 1 to 1024"));
    }
    request.told.iter().try_for_each(|&t| check_number("clock time t′", t, is_time, "from 0.001 to 1"))?;
    if !(1..=ChainRequest::MAX_SAMPLES).contains(&request.n) {
        let allowed = format!("from 1 to {}", ChainRequest::MAX_SAMPLES);
        return Err(Error::argument("number of pictures", request.n, allowed));
    }
    request.settings.validate()
}

/// The colour values of the clean pictures.
fn clean(request: &BigStepRequest, model: &Model) -> Result<Vec<u32>, EngineError> {
    let info = &model.info;
    match &request.clean {
        Some(sheet) if sheet.n <= ChainRequest::MAX_SAMPLES => symbols(sheet, info),
        Some(sheet) => {
            let allowed = format!("at most {}", ChainRequest::MAX_SAMPLES);
            Err(Error::argument("number of pictures", sheet.n, allowed).into())
        }
        None if info.measure == Measure::Shapes => {
            let mut scenes = Shapes::new(request.seed);
            let pictures = (0..request.n).map(|i| Ok(scenes.read(i)?.pixels.into_iter().map(u32::from)));
            let pictures = pictures.collect::<Result<Vec<_>, EngineError>>()?;
            Ok(pictures.into_iter().flatten().collect())
        }
        None => Err(EngineError::Pictures {
            found: "scenes of the shapes world".to_owned(),
            expected: format!("other pictures, as “{}” is", info.name),
        }),
    }
}

fn part(told: Option<f64>, view: View, values: &[u32], clean: &[u32], model: &Model) -> BigStepPart {
    let info = &model.info;
    let plane = info.size * info.size;
    let one = info.channels * plane;
    let differs = |(a, b): (&[u32], &[u32]), i: usize| (0..info.channels).any(|c| a[c * plane + i] != b[c * plane + i]);
    let pictures = values.chunks_exact(one).zip(clean.chunks_exact(one));
    let n_changed = pictures.map(|pair| (0..plane).filter(|&i| differs(pair, i)).count()).sum();
    let noisy = || values.chunks_exact(one).map(shapes::n_off_palette).sum();
    let clean: PictureSheet = sheet(clean, info);
    BigStepPart {
        told,
        view,
        n_noisy: (info.measure == Measure::Shapes).then(noisy),
        n_changed,
        n_pixels: clean.n * plane,
        clean,
    }
}
