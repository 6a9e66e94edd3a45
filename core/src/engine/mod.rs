//! The engine: the one thing between the computing and everything that shows it.
//!
//! [`Command`]s go in, [`Event`]s come out: plain pictures, numbers and textures to draw, never tensors. All tensors belong to whoever drives the
//! [`Engine`], which must be one thread, or one task in a browser: cubecl's streams are bound to threads. Each call of
//! [`Engine::work`] runs a network at most once, or makes at most one training step, so that any job can be dropped that soon.
//!
//! A job lives in a [`Slot`], and the newest command of a slot wins. Jobs take turns, the one asked for last first, and training is one more
//! of them. Results are kept by their settings within a budget of memory.
//!
//! Deliberately absent: windows, files and clocks. Outside of a browser a [`Handle`] brings a thread; in one, the page brings a task that
//! calls `work` and hands the page back in between.

mod big_step_job;
mod cache;
mod caption_job;
mod captions;
mod chain_job;
mod command;
mod desk;
mod error;
mod event;
mod kept;
mod live;
mod model;
#[cfg(not(target_arch = "wasm32"))]
mod native;
mod sweep_job;
mod training;
mod view;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use burn::tensor::{Device, Tensor};

use self::{
    big_step_job::BigStepJob,
    cache::{Cache, Id},
    caption_job::CaptionJob,
    chain_job::ChainJob,
    desk::{Desk, Status},
    live::Canvas,
    model::Models,
    sweep_job::SweepJob,
    training::{Order, Training},
    view::sheet,
};
pub use self::{
    cache::DEFAULT_BUDGET,
    captions::{CaptionPictures, CaptionRequest, CaptionStep, CaptionView, CaptionerInfo, TokenView},
    command::{
        BigStepRequest, Branch, ChainRequest, Classes, Command, ModelId, Perfect, Slot, SweepRequest, TrainData,
        TrainRequest, TrainingCommand,
    },
    error::EngineError,
    event::{
        BigStepPart, Cell, Contents, Event, Frame, Measure, Memory, ModelInfo, PictureSheet, StartedJob, TrainingEvent,
        View,
    },
    live::{LivePicture, LiveStep},
    model::{Model, built_in},
};
pub use crate::data::shapes::ShapesScore;
#[cfg(not(target_arch = "wasm32"))]
pub use native::Handle;

use crate::{
    checkpoint,
    data::{
        Pictures as _,
        folder::{Entry, Folder},
    },
    demo::Demo,
    device::{self, DeviceChoice, DeviceError, Opened},
    model::features::ImageEncoder,
    train::Kind,
};

/// What a slot is doing.
enum Job {
    Chain(ChainJob),
    Sweep(Box<SweepJob>),
    BigStep(Box<BigStepJob>),
    Captions(CaptionJob),
    Open { name: String, bytes: Arc<[u8]> },
    OpenPicture { name: String, bytes: Arc<[u8]>, model: ModelId },
}

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Slot(Slot),
    Training,
}

/// All jobs and what they share.
pub struct Engine {
    desk: Desk,
    jobs: BTreeMap<Slot, Job>,
    /// The jobs in the order of their turns.
    turns: VecDeque<Turn>,
    /// The jobs without turns, and the demo models that they wait for.
    waiting: BTreeMap<Slot, Demo>,
    /// Who is at work, for those who have to clear up after a failure.
    current: Option<Turn>,
    /// The job at work from its beginning, in case its device is lost in the middle of it.
    spare: Option<(Slot, Job)>,
    /// What was asked about training, in order.
    orders: VecDeque<Order>,
    n_runs: u32,
}

impl Engine {
    /// An engine on a device that is open.
    #[must_use]
    pub fn new(opened: Opened) -> Self {
        let Opened { device, description, shared } = opened;
        let desk = Desk {
            device,
            canvas: shared.map(Canvas::new),
            models: Models::default(),
            cache: Cache::new(DEFAULT_BUDGET),
            training: None,
            events: VecDeque::from([Event::Device { description }]),
            evaluations: Arc::default(),
        };
        Self {
            desk,
            jobs: BTreeMap::new(),
            turns: VecDeque::new(),
            waiting: BTreeMap::new(),
            current: None,
            spare: None,
            orders: VecDeque::new(),
            n_runs: 0,
        }
    }

    /// An engine on the device of choice or, where that cannot be used, on the processor, with a message.
    pub async fn open(choice: &DeviceChoice) -> Self {
        Self::of(choice, device::open(choice).await)
    }

    /// The same for a program with a window, whose graphics card it may share.
    #[cfg(not(target_arch = "wasm32"))]
    pub async fn open_beside(choice: &DeviceChoice, window: device::shared::Handles) -> Self {
        Self::of(choice, device::shared::open_beside(choice, window).await)
    }

    fn of(choice: &DeviceChoice, opened: Result<Opened, DeviceError>) -> Self {
        match opened {
            Ok(opened) => Self::new(opened),
            Err(error) => {
                let description = format!("CPU: {choice} cannot be used");
                let mut engine = Self::new(Opened { device: Device::flex(), description, shared: None });
                engine.desk.events.push_back(Event::Failed { slot: None, message: error.to_string() });
                engine
            }
        }
    }

    /// Lets demo models be asked for with [`Event::Wanted`], also where they are part of the program. In a browser they always are.
    pub fn fetch_demos(&mut self) {
        self.desk.models.has_demos = false;
    }

    /// Adds a denoiser that comes from no file, and says how to ask for it.
    pub fn insert_model(&mut self, model: Model) -> ModelId {
        self.desk.models.insert(model)
    }

    /// How many times a network was run for chains, sweeps and big steps; the count goes on while the engine works.
    #[must_use]
    pub fn evaluations(&self) -> Arc<AtomicU64> {
        self.desk.evaluations.clone()
    }

    /// How many times that was until now.
    #[must_use]
    pub fn n_evaluations(&self) -> u64 {
        self.desk.evaluations.load(Ordering::Relaxed)
    }

    /// Takes a command. This is quick: the work itself is for [`Self::work`].
    pub fn handle(&mut self, command: Command) {
        match command {
            Command::Chain { slot, request } => self.begin(slot, Job::Chain(ChainJob::new(request))),
            Command::Sweep { slot, request } => self.begin(slot, Job::Sweep(Box::new(SweepJob::new(request)))),
            Command::BigStep { slot, request } => self.begin(slot, Job::BigStep(Box::new(BigStepJob::new(request)))),
            Command::Captions { slot, request } => self.begin(slot, Job::Captions(CaptionJob::new(request))),
            Command::Open { slot, name, bytes } => self.begin(slot, Job::Open { name, bytes }),
            Command::OpenPicture { slot, name, bytes, model } => {
                self.begin(slot, Job::OpenPicture { name, bytes, model });
            }
            Command::Cancel { slot } => {
                if self.jobs.remove(&slot).is_some() {
                    self.waiting.remove(&slot);
                    self.turns.retain(|turn| *turn != Turn::Slot(slot));
                    self.desk.events.push_back(Event::Cancelled { slot });
                }
            }
            Command::Bring { demo, file } => self.bring(demo, file),
            Command::Close { model } => self.desk.models.close(model),
            Command::Train { slot, request } => self.order(Order::Start(slot, request)),
            Command::Training(command) => self.order(Order::Command(command)),
            Command::SetBudget { bytes } => {
                self.desk.cache.set_limit(bytes);
                self.tell_memory(Status::Done);
            }
        }
    }

    /// Gives a slot a job, and its first turn at once.
    fn begin(&mut self, slot: Slot, job: Job) {
        self.waiting.remove(&slot);
        self.jobs.insert(slot, job);
        self.put_first(Turn::Slot(slot));
    }

    /// Gives the jobs that wait for a demo model their turns again or, where it cannot be had, an end.
    fn bring(&mut self, demo: Demo, file: Result<Arc<[u8]>, String>) {
        let brought = match file {
            Ok(bytes) => self.desk.models.bring(demo, bytes).map_err(|error| error.to_string()),
            Err(reason) => Err(reason),
        };
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let (served, others) = waiting.partition::<BTreeMap<_, _>, _>(|(_, other)| *other == demo);
        self.waiting = others;
        for slot in served.into_keys() {
            match &brought {
                Ok(()) => self.turns.push_back(Turn::Slot(slot)),
                Err(reason) => {
                    self.jobs.remove(&slot);
                    let message = EngineError::Fetch { demo, reason: reason.clone() }.to_string();
                    self.desk.events.push_back(Event::Failed { slot: Some(slot), message });
                }
            }
        }
    }

    fn order(&mut self, order: Order) {
        self.orders.push_back(order);
        self.put_first(Turn::Training);
    }

    fn put_first(&mut self, turn: Turn) {
        self.turns.retain(|other| *other != turn);
        self.turns.push_front(turn);
    }

    /// Does the next piece of work and says what came of it; `None` if there is nothing to do.
    ///
    /// Runs a network at most once, or makes at most one training step. Call it until it gives `None`, and again after the next command.
    pub async fn work(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.desk.events.pop_front() {
                return Some(event);
            }
            let turn = self.turns.pop_front()?;
            self.current = Some(turn);
            match turn {
                Turn::Slot(slot) => self.work_for(slot).await,
                Turn::Training => self.train().await,
            }
            self.current = None;
        }
    }

    async fn work_for(&mut self, slot: Slot) {
        // Taken out: if it panics, it is gone, and the others go on.
        let Some(mut job) = self.jobs.remove(&slot) else { return };
        self.spare = Some((slot, job.afresh()));
        let status = match job.advance(slot, &mut self.desk).await {
            Ok(Status::Done) => Status::Done,
            Ok(Status::Going) => {
                self.jobs.insert(slot, job);
                self.turns.push_back(Turn::Slot(slot));
                Status::Going
            }
            Err(EngineError::Absent(demo)) => {
                self.jobs.insert(slot, job);
                let is_wanted = self.waiting.values().any(|other| *other == demo);
                self.waiting.insert(slot, demo);
                if !is_wanted {
                    self.desk.events.push_back(Event::Wanted { demo });
                }
                Status::Going
            }
            Err(error) if self.has_lost_device().await => {
                self.fall_back(&error.to_string());
                Status::Going
            }
            Err(error) => {
                self.desk.events.push_back(Event::Failed { slot: Some(slot), message: error.to_string() });
                Status::Done
            }
        };
        self.spare = None;
        self.tell_memory(status);
    }

    async fn train(&mut self) {
        let mut slot = self.desk.training.as_ref().map(|training| training.slot);
        let result = if let Some(order) = self.orders.pop_front() {
            if let Order::Start(started_by, _) = &order {
                slot = Some(*started_by);
                self.n_runs += 1;
            }
            training::carry_out(order, self.n_runs, &mut self.desk).await
        } else {
            let result = training::go_on(&mut self.desk).await;
            if result.is_err() {
                self.pause_training();
            }
            result
        };
        if let Err(error) = result {
            if self.has_lost_device().await {
                self.fall_back(&error.to_string());
            } else {
                self.desk.events.push_back(Event::Failed { slot, message: error.to_string() });
            }
        }
        let is_running = self.desk.training.as_ref().is_some_and(Training::is_running);
        if (is_running || !self.orders.is_empty()) && !self.turns.contains(&Turn::Training) {
            self.turns.push_back(Turn::Training);
        }
    }

    fn pause_training(&mut self) {
        if let Some(training) = &mut self.desk.training
            && training.pause()
        {
            self.desk.events.push_back(Event::Training { slot: training.slot, event: TrainingEvent::Paused });
        }
    }

    /// Keeps the budget, and says what is kept when a job is done or something had to go.
    fn tell_memory(&mut self, status: Status) {
        let in_use: Vec<Id> = self.jobs.values().filter_map(Job::in_use).collect();
        let dropped = self.desk.cache.trim(&in_use);
        if status == Status::Done || !dropped.is_empty() {
            self.desk.events.push_back(Event::Memory(self.desk.cache.memory(dropped)));
        }
    }

    /// Whether the device, if it is not the processor, no longer answers.
    async fn has_lost_device(&self) -> bool {
        if self.desk.device == Device::flex() {
            return false;
        }
        let answer = Tensor::<1>::ones([1], &self.desk.device).into_data_async().await;
        !answer.is_ok_and(|data| data.iter::<f32>().eq([1.0]))
    }

    /// Goes on with the processor. The job at work begins again; kept chains go on from their last kept step, training from its last
    /// checkpoint, when it is resumed.
    fn fall_back(&mut self, reason: &str) {
        if let Some((slot, job)) = self.spare.take() {
            self.jobs.insert(slot, job);
            self.turns.push_back(Turn::Slot(slot));
        }
        self.desk.device = Device::flex();
        self.desk.canvas = None;
        self.desk.models.forget_ready();
        self.desk.cache.put_to_sleep();
        self.jobs.values_mut().for_each(|job| *job = job.afresh());
        let mut training_waits = String::new();
        if let Some(training) = &mut self.desk.training {
            let slot = training.slot;
            training_waits = back_to_checkpoint(training, &self.desk.device);
            self.desk.events.push_back(Event::Training { slot, event: TrainingEvent::Paused });
        }
        self.current = None;
        if !self.orders.is_empty() {
            self.put_first(Turn::Training);
        }
        self.desk.events.push_back(Event::Device { description: "CPU: the device before it failed".to_owned() });
        let message = format!("the device failed ({reason}); going on with the processor{training_waits}");
        self.desk.events.push_back(Event::Failed { slot: None, message });
    }

    /// Clears up after a panic inside of [`Self::work`], for those who catch one: the job that it happened in is gone, everything else
    /// goes on. Where the device was lost, the job goes on too, with the processor.
    pub async fn recover(&mut self, reason: &str) {
        // Asked first, because a device that is lost may panic once more.
        if self.has_lost_device().await {
            self.fall_back(reason);
            return;
        }
        self.spare = None;
        let mut message =
            format!("this job failed ({reason}); all others go on. Try it with other settings, or report it");
        let slot = match self.current.take() {
            Some(Turn::Slot(slot)) => Some(slot),
            Some(Turn::Training) => {
                self.pause_training();
                let device = self.desk.device.clone();
                self.desk.training.as_mut().map(|training| {
                    if !training.is_whole() {
                        message += &back_to_checkpoint(training, &device);
                    }
                    training.slot
                })
            }
            None => None,
        };
        self.desk.events.push_back(Event::Failed { slot, message });
        if !self.orders.is_empty() {
            self.put_first(Turn::Training);
        }
    }
}

/// Lets a run wait at its last checkpoint, on a device, and says so.
fn back_to_checkpoint(training: &mut Training, device: &Device) -> String {
    match training.move_to(device) {
        Ok(step) => format!("; training waits at its last checkpoint, step {step}: resume it there"),
        Err(error) => format!("; training cannot go on: {error}"),
    }
}

impl Job {
    async fn advance(&mut self, slot: Slot, desk: &mut Desk) -> Result<Status, EngineError> {
        match self {
            Self::Chain(job) => job.advance(slot, desk).await,
            Self::Sweep(job) => job.advance(slot, desk).await,
            Self::BigStep(job) => job.advance(slot, desk).await,
            Self::Captions(job) => job.advance(slot, desk).await,
            Self::Open { name, bytes } if ImageEncoder::is_in(bytes) => {
                desk.models.open_encoder(bytes.clone(), &desk.device)?;
                desk.events.push_back(Event::OpenedEncoder { slot, name: name.clone() });
                Ok(Status::Done)
            }
            Self::Open { name, bytes } if checkpoint::kind(bytes)? == Kind::Captions => {
                let (model, info) = desk.models.open_captioner(name.clone(), bytes.clone(), &desk.device)?;
                desk.events.push_back(Event::OpenedCaptioner { slot, model, name: name.clone(), info });
                Ok(Status::Done)
            }
            Self::Open { name, bytes } => {
                let (model, info, header, contents) = desk.models.open(name.clone(), bytes.clone(), &desk.device)?;
                let (name, header) = (name.clone(), Box::new(header));
                desk.events.push_back(Event::Opened { slot, model, name, info, header, contents });
                Ok(Status::Done)
            }
            Self::OpenPicture { name, bytes, model } => {
                let info = desk.model(*model)?.info.clone();
                let entries = vec![Entry { name: name.clone(), class: 0 }];
                let read = |_: &str| Ok(bytes.to_vec());
                let picture = Folder::new(entries, 0, info.channels, info.size, read)?.read(0)?;
                let alphabet = info.codec.alphabet() as u32;
                let values: Vec<u32> = picture.pixels.iter().map(|&value| u32::from(value) * alphabet / 256).collect();
                let picture = sheet(&values, &info);
                desk.events.push_back(Event::Picture { slot, name: name.clone(), picture });
                Ok(Status::Done)
            }
        }
    }

    /// The same from the beginning, for another device.
    fn afresh(&self) -> Self {
        match self {
            Self::Chain(job) => Self::Chain(job.afresh()),
            Self::Sweep(job) => Self::Sweep(Box::new(job.afresh())),
            Self::BigStep(job) => Self::BigStep(Box::new(job.afresh())),
            Self::Captions(job) => Self::Captions(job.afresh()),
            Self::Open { name, bytes } => Self::Open { name: name.clone(), bytes: bytes.clone() },
            Self::OpenPicture { name, bytes, model } => {
                Self::OpenPicture { name: name.clone(), bytes: bytes.clone(), model: *model }
            }
        }
    }

    /// What must not be dropped.
    fn in_use(&self) -> Option<Id> {
        match self {
            Self::Chain(job) => job.in_use(),
            Self::Sweep(_) | Self::BigStep(_) | Self::Captions(_) | Self::Open { .. } | Self::OpenPicture { .. } => {
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::Settings;

    fn engine() -> Engine {
        Engine::new(Opened { device: Device::flex(), description: "CPU".to_owned(), shared: None })
    }

    /// Works to the end; the steps of all frames, and every message.
    fn finish(engine: &mut Engine) -> (Vec<usize>, Vec<String>) {
        let (mut steps, mut messages) = (Vec::new(), Vec::new());
        while let Some(event) = pollster::block_on(engine.work()) {
            match event {
                Event::Started { .. } => steps.clear(),
                Event::Frames { frames, .. } => steps.extend(frames.iter().map(|frame| frame.step)),
                Event::Failed { message, .. } => messages.push(message),
                Event::Device { description } => messages.push(description),
                _ => {}
            }
        }
        (steps, messages)
    }

    #[test]
    fn a_lost_device_costs_one_step() {
        let settings = Settings { n_steps: 6, ..Settings::default() };
        let model = ModelId::Perfect(Perfect { n_scenes: 4, ..Perfect::default() });
        let request = ChainRequest { model, settings, n: 2, ..ChainRequest::default() };
        let mut engine = engine();
        engine.handle(Command::Chain { slot: Slot(0), request });
        // The device, the start, and then three steps.
        for _ in 0..5 {
            pollster::block_on(engine.work());
        }
        assert_eq!(engine.n_evaluations(), 3);
        engine.fall_back("pulled out");
        let (steps, messages) = finish(&mut engine);
        assert_eq!(steps, [0, 1, 2, 3, 4, 5]);
        // The tensors of the fourth step were lost; the third is made again, from what is kept of it.
        assert_eq!(engine.n_evaluations(), 7);
        assert!(messages.iter().any(|message| message.contains("pulled out") && message.contains("processor")));
        assert!(messages.iter().any(|message| message.starts_with("CPU")), "{messages:?}");
    }

    #[test]
    fn a_demo_model_is_asked_for_once_and_waited_for() {
        let demo = Demo::ShapesUint8;
        let settings = Settings { n_steps: 1, ..Settings::default() };
        let request = ChainRequest { settings, n: 1, ..ChainRequest::default() };
        let ask = |engine: &mut Engine, slot| {
            engine.handle(Command::Chain { slot: Slot(slot), request: ChainRequest { seed: 1, ..request.clone() } });
        };
        let events =
            |engine: &mut Engine| -> Vec<Event> { std::iter::from_fn(|| pollster::block_on(engine.work())).collect() };
        let mut engine = engine();
        engine.fetch_demos();
        ask(&mut engine, 0);
        ask(&mut engine, 1);
        let wanted = events(&mut engine).iter().filter(|event| matches!(event, Event::Wanted { .. })).count();
        assert_eq!(wanted, 1);

        // No connection, and then something else than a model: both jobs end, with the reason and a cure.
        for (file, said) in [(Err("no answer".to_owned()), "no answer"), (Ok(Arc::from(*b"<html>")), "safetensors")] {
            engine.handle(Command::Bring { demo, file });
            let failed = events(&mut engine);
            let is_said = |event: &Event| matches!(event, Event::Failed { message, .. } if message.contains(said) && message.contains("connection"));
            assert_eq!(failed.iter().filter(|event| is_said(event)).count(), 2, "{failed:?}");
            ask(&mut engine, 0);
            ask(&mut engine, 1);
            events(&mut engine);
        }

        engine.handle(Command::Cancel { slot: Slot(1) });
        engine.handle(Command::Bring { demo, file: Ok(demo.bytes().into()) });
        let (steps, messages) = finish(&mut engine);
        assert_eq!((steps, messages), (vec![0], Vec::new()));
    }

    #[test]
    fn a_device_that_cannot_be_opened_is_replaced_with_a_message() {
        let mut engine = pollster::block_on(Engine::open(&DeviceChoice::Wgpu(Some(99))));
        let (_, messages) = finish(&mut engine);
        assert_eq!(messages[0], "CPU: wgpu:99 cannot be used");
        assert!(messages[1].contains("no graphics card 99"), "{messages:?}");
    }
}
