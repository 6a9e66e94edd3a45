//! The training run: one more job that takes turns with the others, and a model that can be sampled from while it learns.

use std::sync::Arc;

use burn::tensor::Device;

use super::{
    ChainRequest, EngineError, Event, Model, ModelInfo, Slot, TrainData, TrainRequest, TrainingCommand, TrainingEvent,
    desk::Desk,
    view::{score, sheet},
};
use crate::{
    Error, checkpoint,
    data::{
        DataError, Picture, Pictures,
        folder::{Entry, Folder},
        shapes::{self, Shapes},
    },
    sampler::n_at_once,
    train::{self, Plan, Run, TrainConfig, Trainer},
};

/// How many times as long an example takes in training as in sampling: an estimate for it, the network again, and the way back.
const TRAINING_COST: usize = 4;

/// What was asked about training and is not done yet.
pub(super) enum Order {
    Start(Slot, Box<TrainRequest>),
    Command(TrainingCommand),
}

/// Carries an order out.
pub(super) async fn carry_out(order: Order, number: u32, desk: &mut Desk) -> Result<(), EngineError> {
    let command = match order {
        Order::Start(slot, request) => {
            let (training, started) = Training::start(slot, *request, number, &desk.device)?;
            desk.training = Some(training);
            desk.events.push_back(Event::Training { slot, event: started });
            return Ok(());
        }
        Order::Command(command) => command,
    };
    let training = desk.training.as_mut().ok_or(EngineError::NoTraining)?;
    let slot = training.slot;
    let mut events = Vec::new();
    match command {
        TrainingCommand::Pause if training.pause() => events.push(TrainingEvent::Paused),
        TrainingCommand::Resume if training.change(Pace::Paused, Pace::Running) => events.push(TrainingEvent::Resumed),
        TrainingCommand::Pause | TrainingCommand::Resume => {}
        TrainingCommand::Save => events.push(training.save().await?),
        TrainingCommand::Export(precision) => {
            let bytes = checkpoint::export(training.run.trainer(), precision).await?.into();
            events.push(TrainingEvent::Exported { n_steps: training.run.trainer().n_steps(), bytes });
        }
        TrainingCommand::Stop => {
            events.extend([training.save().await?, TrainingEvent::Stopped]);
            desk.training = None;
        }
    }
    desk.events.extend(events.into_iter().map(|event| Event::Training { slot, event }));
    Ok(())
}

/// Does one piece of the run, at most one step.
pub(super) async fn go_on(desk: &mut Desk) -> Result<(), EngineError> {
    if let Some(training) = desk.training.as_mut().filter(|training| training.is_running()) {
        let (slot, event) = (training.slot, training.step().await?);
        desk.events.push_back(Event::Training { slot, event });
    }
    Ok(())
}

/// The training run there is.
pub(super) struct Training {
    pub slot: Slot,
    /// Tells this run from those before it.
    number: u32,
    run: Run,
    plan: Plan,
    pictures: Box<dyn Pictures>,
    info: ModelInfo,
    pace: Pace,
    /// What the run can go back to if its device fails.
    last: Option<Arc<[u8]>>,
    config: TrainConfig,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    Running,
    Paused,
    Ended,
}

impl Training {
    /// Starts a run.
    pub fn start(
        slot: Slot,
        request: TrainRequest,
        number: u32,
        device: &Device,
    ) -> Result<(Self, TrainingEvent), EngineError> {
        let TrainRequest { mut config, plan, data, from } = request;
        config.validate()?;
        let at_once = n_at_once(config.network.n_parameters(), config.network.size, device) / TRAINING_COST;
        config.micro_batch_size = config.micro_batch_size.min(at_once.max(1));
        let n = ChainRequest::MAX_SAMPLES;
        if plan.sheet_every > 0 && !(1..=n).contains(&plan.sheet_size) {
            return Err(Error::argument("samples of a sheet", plan.sheet_size, format!("from 1 to {n}")).into());
        }
        let pictures = pictures(data, &config)?;
        check(pictures.as_ref(), &config)?;
        pictures.name().clone_into(&mut config.data);
        let run = make(&config, plan, from.as_deref(), device)?;
        let network = run.trainer().averaged();
        let info = Model::of_network("the network in training".to_owned(), network, &config)?.info;
        let n_steps = run.trainer().n_steps();
        let started =
            TrainingEvent::Started { config: Box::new(config.clone()), info: info.clone(), n_steps, end: plan.n_steps };
        let training = Self { slot, number, run, plan, pictures, info, pace: Pace::Running, last: from, config };
        Ok((training, started))
    }

    /// The averaged network as it is now.
    pub fn model(&self) -> Result<Model, EngineError> {
        let model = Model::of_network(self.info.name.clone(), self.run.trainer().averaged(), &self.config)?;
        Ok(model)
    }

    /// Changes with every step and every run.
    pub fn version(&self) -> u64 {
        u64::from(self.number) << 40 | self.run.trainer().n_steps() as u64
    }

    /// Whether there are steps to make.
    pub fn is_running(&self) -> bool {
        self.pace == Pace::Running
    }

    async fn save(&mut self) -> Result<TrainingEvent, EngineError> {
        let bytes: Arc<[u8]> = checkpoint::save_trainer(self.run.trainer()).await?.into();
        self.last = Some(bytes.clone());
        Ok(TrainingEvent::Checkpoint { n_steps: self.run.trainer().n_steps(), bytes })
    }

    /// Does one piece of the run, at most one step.
    async fn step(&mut self) -> Result<TrainingEvent, EngineError> {
        let event = self.run.next(self.pictures.as_mut()).await?;
        let n_steps = self.run.trainer().n_steps();
        Ok(match event {
            None => {
                self.pace = Pace::Ended;
                TrainingEvent::Ended
            }
            Some(train::Event::Step(progress)) => TrainingEvent::Step(progress),
            Some(train::Event::Sampling { step, n_steps }) => TrainingEvent::Sampling { step, n_steps },
            Some(train::Event::Checkpoint(bytes)) => {
                let bytes: Arc<[u8]> = bytes.into();
                self.last = Some(bytes.clone());
                TrainingEvent::Checkpoint { n_steps, bytes }
            }
            Some(train::Event::Sheet(symbols)) => {
                let pictures = sheet(&symbols, &self.info);
                TrainingEvent::Sheet { n_steps, pictures, score: score(&symbols, &self.info) }
            }
        })
    }

    /// Makes no more steps for now; `true` if it was making some.
    pub fn pause(&mut self) -> bool {
        self.change(Pace::Running, Pace::Paused)
    }

    /// Goes from one pace to another; `false` if it had a third.
    fn change(&mut self, from: Pace, to: Pace) -> bool {
        let has_changed = self.pace == from;
        if has_changed {
            self.pace = to;
        }
        has_changed
    }

    /// Whether no step was broken off in its middle: see [`Trainer::is_whole`].
    pub fn is_whole(&self) -> bool {
        self.run.trainer().is_whole()
    }

    /// Goes back to the last checkpoint, on another device, and waits there; says to which step.
    pub fn move_to(&mut self, device: &Device) -> Result<usize, EngineError> {
        self.run = make(&self.config, self.plan, self.last.as_deref(), device)?;
        self.pause();
        Ok(self.run.trainer().n_steps())
    }
}

fn make(config: &TrainConfig, plan: Plan, from: Option<&[u8]>, device: &Device) -> Result<Run, EngineError> {
    let trainer = match from {
        None => Trainer::new(config.clone(), device)?,
        Some(bytes) => {
            let mut trainer = checkpoint::load_trainer(bytes, device)?;
            trainer.retune(config.clone())?;
            trainer
        }
    };
    Ok(Run::new(trainer, plan, device)?)
}

fn pictures(data: TrainData, config: &TrainConfig) -> Result<Box<dyn Pictures>, EngineError> {
    Ok(match data {
        TrainData::Shapes => Box::new(Shapes::new(shapes::SEEDS[0])),
        TrainData::Set(set) => set,
        TrainData::Files(files) => {
            // Two files may have the same name: they are told apart by their number, which comes first.
            let entries = files.iter().enumerate();
            let entries = entries.map(|(i, (name, _))| Entry { name: format!("{i} {name}"), class: 0 }).collect();
            let network = &config.network;
            let folder = Folder::new(entries, 0, network.channels, network.size, move |name| {
                let index = name.split(' ').next().and_then(|number| number.parse::<usize>().ok());
                let file = index.and_then(|index| files.get(index));
                file.map(|(_, bytes)| bytes.to_vec()).ok_or_else(|| std::io::ErrorKind::NotFound.into())
            })?;
            Box::new(Remembered { read: vec![None; folder.n_examples()], pictures: folder })
        }
    })
}

fn check(pictures: &dyn Pictures, config: &TrainConfig) -> Result<(), EngineError> {
    let network = &config.network;
    let fits = (pictures.size(), pictures.channels()) == (network.size, network.channels)
        && (network.n_classes == 0 || pictures.n_classes() == network.n_classes);
    if fits {
        return Ok(());
    }
    let kind = |size: usize, channels: usize, n_classes: usize| {
        format!("pictures of {size} × {size} pixels, {channels} channels and {n_classes} classes")
    };
    Err(EngineError::Pictures {
        found: kind(pictures.size(), pictures.channels(), pictures.n_classes()),
        expected: kind(network.size, network.channels, network.n_classes),
    })
}

/// Pictures that are decoded once.
struct Remembered<P> {
    pictures: P,
    read: Vec<Option<Picture>>,
}

impl<P: Pictures> Pictures for Remembered<P> {
    fn name(&self) -> &'static str {
        self.pictures.name()
    }

    fn n_examples(&self) -> usize {
        self.pictures.n_examples()
    }

    fn channels(&self) -> usize {
        self.pictures.channels()
    }

    fn size(&self) -> usize {
        self.pictures.size()
    }

    fn n_classes(&self) -> usize {
        self.pictures.n_classes()
    }

    fn read(&mut self, index: usize) -> Result<Picture, DataError> {
        if let Some(Some(picture)) = self.read.get(index) {
            return Ok(picture.clone());
        }
        let picture = self.pictures.read(index)?;
        if let Some(place) = self.read.get_mut(index) {
            *place = Some(picture.clone());
        }
        Ok(picture)
    }
}
