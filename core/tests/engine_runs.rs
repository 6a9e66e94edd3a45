//! The engine with training, with files, and on a thread of its own.

mod drive;

use std::{
    io::Cursor,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
};

use bit_diffusion::{
    Error,
    checkpoint::{self, Precision},
    demo::Demo,
    device::Opened,
    engine::{
        ChainRequest, Command, Contents, Engine, Event, Handle, Model, ModelId, Slot, TrainData, TrainRequest,
        TrainingCommand, TrainingEvent,
    },
    model::{Condition, Denoiser, Input, UNetConfig},
    sampler::{Sampler, Settings},
    train::{Plan, TrainConfig},
};
use burn::tensor::{Device, Tensor};
use drive::{chain, denoiser, engine, failure, frames, perfect, pieces, rest};

const A: Slot = Slot(1);
const TRAIN: Slot = Slot(9);

fn steps(n_steps: usize) -> Settings {
    Settings { n_steps, ..Settings::default() }
}

/// A very small network for scenes, and a run of so many steps.
fn run(n_steps: usize) -> TrainRequest {
    let network = UNetConfig { size: 16, width: 4, multipliers: vec![1], n_blocks: 1, ..UNetConfig::cifar10() };
    let config = TrainConfig { batch_size: 2, n_warmup_steps: 1, ..TrainConfig::new(network) };
    let plan = Plan { n_steps, save_every: 0, sheet_every: 0, sheet_size: 2, sheet: steps(2) };
    TrainRequest { config, plan, data: TrainData::Shapes, from: None }
}

fn train(engine: &mut Engine, request: TrainRequest) {
    engine.handle(Command::Train { slot: TRAIN, request: Box::new(request) });
}

/// The names of what training said.
fn news(events: &[Event]) -> Vec<String> {
    let names = events.iter().filter_map(|event| {
        let Event::Training { slot: TRAIN, event } = event else { return None };
        Some(match event {
            TrainingEvent::Started { n_steps, end, .. } => format!("started at {n_steps} of {end}"),
            TrainingEvent::Step(progress) => format!("step {}", progress.n_steps),
            TrainingEvent::Sampling { step, n_steps } => format!("sample {step}/{n_steps}"),
            TrainingEvent::Sheet { n_steps, pictures, score } => {
                format!("sheet of {} at {n_steps}, scored: {}", pictures.n, score.is_some())
            }
            TrainingEvent::Checkpoint { n_steps, .. } => format!("checkpoint {n_steps}"),
            TrainingEvent::Exported { n_steps, .. } => format!("exported {n_steps}"),
            TrainingEvent::Paused => "paused".to_owned(),
            TrainingEvent::Resumed => "resumed".to_owned(),
            TrainingEvent::Ended => "ended".to_owned(),
            TrainingEvent::Stopped => "stopped".to_owned(),
        })
    });
    names.collect()
}

#[track_caller]
fn file(events: &[Event]) -> Arc<[u8]> {
    let bytes = events.iter().find_map(|event| match event {
        Event::Training {
            event: TrainingEvent::Checkpoint { bytes, .. } | TrainingEvent::Exported { bytes, .. },
            ..
        } => Some(bytes.clone()),
        _ => None,
    });
    bytes.expect("there is a file")
}

#[test]
fn training_takes_turns_with_sampling() {
    let mut engine = engine();
    train(&mut engine, run(4));
    engine.handle(Command::Chain { slot: A, request: perfect(steps(4)) });
    let mut turns = Vec::new();
    for event in rest(&mut engine) {
        match event {
            Event::Training { event: TrainingEvent::Step(_), .. } => turns.push('t'),
            Event::Frames { .. } => turns.push('c'),
            _ => {}
        }
    }
    // The chain was named last; the first turn of the run is its start.
    assert_eq!(turns.iter().collect::<String>(), "cctctctt");
}

#[test]
fn a_run_can_be_used_while_it_learns() {
    let mut engine = engine();
    train(&mut engine, run(1000));
    let request = ChainRequest { model: ModelId::Training, ..perfect(steps(3)) };
    engine.handle(Command::Chain { slot: A, request: request.clone() });
    // The chain has the first turn, and there is no run yet: the run has to be started first.
    assert!(failure(&pieces(&mut engine, 1), Some(A)).contains("there is no training run"));
    pieces(&mut engine, 10);
    engine.handle(Command::Chain { slot: A, request: request.clone() });
    let events = pieces(&mut engine, 20);
    assert_eq!(frames(&events, A).len(), 3);
    assert!(news(&events).len() > 5, "training goes on: {:?}", news(&events));

    // The same request later is another network; while the run rests, it is the same one.
    engine.handle(Command::Training(TrainingCommand::Pause));
    let events = rest(&mut engine);
    assert_eq!(news(&events).last().unwrap(), "paused");
    let later = chain(&mut engine, A, &request);
    let n = engine.n_evaluations();
    let again = chain(&mut engine, A, &request);
    assert_eq!(engine.n_evaluations(), n);
    assert!(Arc::ptr_eq(&later[0], &again[0]));
    assert_ne!(frames(&events, A).first().map(|frame| frame.x_pred.bits.clone()), Some(later[0].x_pred.bits.clone()));

    // Its samples are those of the file that it is saved as.
    engine.handle(Command::Training(TrainingCommand::Export(Precision::F32)));
    let bytes = file(&rest(&mut engine));
    engine.handle(Command::Open { slot: A, name: "mine".to_owned(), bytes });
    let events = rest(&mut engine);
    let Event::Opened { model, contents: Contents::Network, info, name, .. } = &events[0] else { panic!("{events:?}") };
    assert_eq!((name.as_str(), info.size, info.channels), ("mine", 16, 3));
    let opened = chain(&mut engine, A, &ChainRequest { model: *model, ..request });
    assert_eq!(opened[2].x_pred.bits, later[2].x_pred.bits);
}

#[test]
fn a_run_pauses_resumes_saves_stops_and_goes_on() {
    let mut engine = engine();
    train(&mut engine, run(1000));
    let events = pieces(&mut engine, 3);
    assert_eq!(news(&events), ["started at 0 of 1000", "step 1", "step 2"]);
    for command in [TrainingCommand::Pause, TrainingCommand::Pause, TrainingCommand::Save] {
        engine.handle(Command::Training(command));
    }
    let events = rest(&mut engine);
    assert_eq!(news(&events), ["paused", "checkpoint 2"]);
    assert_eq!(checkpoint::inspect(&file(&events)).unwrap().n_steps, 2);
    engine.handle(Command::Training(TrainingCommand::Resume));
    assert_eq!(news(&pieces(&mut engine, 2)), ["resumed", "step 3"]);
    engine.handle(Command::Training(TrainingCommand::Stop));
    let events = rest(&mut engine);
    assert_eq!(news(&events), ["checkpoint 3", "stopped"]);
    engine.handle(Command::Training(TrainingCommand::Save));
    assert!(failure(&rest(&mut engine), None).contains("there is no training run"));

    // From the file it goes on, with a sheet of samples at the end.
    let bytes = file(&events);
    let request = run(5);
    let plan = Plan { sheet_every: 5, ..request.plan };
    train(&mut engine, TrainRequest { from: Some(bytes.clone()), plan, ..request });
    let said = [
        "started at 3 of 5",
        "step 4",
        "step 5",
        "checkpoint 5",
        "sample 1/2",
        "sheet of 2 at 5, scored: true",
        "ended",
    ];
    assert_eq!(news(&rest(&mut engine)), said);

    // A run that cannot start leaves the one there is.
    let mut other = run(5);
    other.config.network.width = 8;
    train(&mut engine, TrainRequest { from: Some(bytes), ..other });
    assert!(failure(&rest(&mut engine), Some(TRAIN)).contains("what the run began with"));
    let request = run(5);
    let plan = Plan { sheet_every: 1, sheet_size: 0, ..request.plan };
    train(&mut engine, TrainRequest { plan, ..request });
    assert!(failure(&rest(&mut engine), Some(TRAIN)).contains("samples of a sheet"));
    let mut grey = run(5);
    grey.config.network.channels = 1;
    train(&mut engine, grey);
    assert!(failure(&rest(&mut engine), Some(TRAIN)).contains("3 channels"));
    engine.handle(Command::Training(TrainingCommand::Save));
    assert_eq!(news(&rest(&mut engine)), ["checkpoint 5"]);
}

fn png(colour: [u8; 3]) -> Arc<[u8]> {
    let mut bytes = Cursor::new(Vec::new());
    image::RgbImage::from_pixel(40, 30, image::Rgb(colour)).write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner().into()
}

#[test]
fn pictures_of_ones_own_are_shown_and_learned() {
    let mut engine = engine();
    let model = perfect(steps(1)).model;
    let open = |bytes| Command::OpenPicture { slot: A, name: "mine.png".to_owned(), bytes, model };
    engine.handle(open(png([1, 2, 3])));
    let events = rest(&mut engine);
    let Event::Picture { slot: A, name, picture } = &events[0] else { panic!("{events:?}") };
    assert_eq!((name.as_str(), picture.n, picture.size, picture.channels), ("mine.png", 1, 16, 3));
    assert!(picture.picture(0).chunks(3).all(|pixel| pixel == [1, 2, 3]) && picture.pixels.len() == 768);
    for broken in [&b""[..], b"no picture", &png([0; 3])[..60]] {
        engine.handle(open(broken.into()));
        assert!(failure(&rest(&mut engine), Some(A)).contains("mine.png"));
    }

    let files = vec![("a".to_owned(), png([9; 3])), ("a".to_owned(), png([200; 3]))];
    let request = TrainRequest { data: TrainData::Files(files), ..run(2) };
    let plan = Plan { sheet_every: 2, ..request.plan };
    train(&mut engine, TrainRequest { plan, ..request });
    let events = rest(&mut engine);
    // They have the size of scenes and are none.
    let expected = ["started at 0 of 2", "step 1", "step 2", "checkpoint 2", "sample 1/2"];
    assert_eq!(news(&events), [&expected[..], &["sheet of 2 at 2, scored: false", "ended"]].concat());
    assert_eq!(checkpoint::inspect(&file(&events)).unwrap().config.data, "pictures");
    // A broken one stops the run when it is read; what was learned is still there.
    let files = vec![("broken".to_owned(), b"no picture".as_slice().into())];
    train(&mut engine, TrainRequest { data: TrainData::Files(files), ..run(2) });
    let events = rest(&mut engine);
    assert_eq!(news(&events), ["started at 0 of 2", "paused"]);
    assert!(failure(&events, Some(TRAIN)).contains("neither a PNG nor a JPEG"));
}

#[test]
fn bytes_that_are_no_model_fail_with_a_cure() {
    let mut engine = engine();
    let good = Demo::ShapesUint8.bytes();
    let mut flipped = good.to_vec();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    let huge = [&[0xFF; 8][..], good].concat();
    let bad: [&[u8]; 6] = [b"", b"not a model", &good[..good.len() / 2], &flipped, &huge, &png([0; 3])];
    for bytes in bad {
        engine.handle(Command::Open { slot: A, name: "x".to_owned(), bytes: bytes.into() });
        let message = failure(&rest(&mut engine), Some(A));
        assert!(message.contains("again"), "{message}");
    }
    engine.handle(Command::Open { slot: A, name: "x".to_owned(), bytes: good.into() });
    let events = rest(&mut engine);
    let Event::Opened { model, header, .. } = &events[0] else { panic!("{events:?}") };
    assert_eq!(header.config.network, checkpoint::inspect(good).unwrap().config.network);
    let request = ChainRequest { model: *model, ..perfect(steps(2)) };
    let by_name = ChainRequest { model: ModelId::Demo(Demo::ShapesUint8), ..request.clone() };
    let opened = chain(&mut engine, A, &request);
    assert_eq!(opened[1].x_pred.bits, chain(&mut engine, A, &by_name)[1].x_pred.bits);
    // Closed, its chains are still there, and nothing new can be made with it.
    engine.handle(Command::Close { model: *model });
    assert!(Arc::ptr_eq(&chain(&mut engine, A, &request)[0], &opened[0]));
    engine.handle(Command::Chain { slot: A, request: ChainRequest { seed: 99, ..request } });
    assert!(failure(&rest(&mut engine), Some(A)).contains("not open"));
}

/// A denoiser that says when it is run, and then waits until it is let go on.
struct Gate {
    inner: Model,
    entered: Sender<()>,
    permits: Mutex<Receiver<()>>,
}

impl Denoiser<4> for Gate {
    fn forward(&self, input: Input<'_, 4>) -> Tensor<4> {
        self.entered.send(()).unwrap();
        // When the test is over, it lets everything pass.
        let _ = self.permits.lock().unwrap().recv();
        self.inner.denoiser.forward(input)
    }

    fn accepts(&self, shape: [usize; 4], condition: &Condition) -> Result<(), Error> {
        self.inner.denoiser.accepts(shape, condition)
    }
}

/// An engine on the processor with one more model.
fn engine_with(make: impl FnOnce(Model) -> Box<dyn Denoiser<4>> + Send + 'static) -> Handle {
    let make = move || {
        let device = Device::flex();
        let mut engine = Engine::new(Opened { device: device.clone(), description: "CPU".to_owned(), shared: None });
        let inner = denoiser(perfect(steps(1)).model, &device);
        let info = inner.info.clone();
        let id = engine.insert_model(Model { info, denoiser: make(inner) });
        assert_eq!(id, ModelId::Opened(0));
        engine
    };
    Handle::start_with(make, || {}).unwrap()
}

fn recv_until(handle: &Handle, mut is_it: impl FnMut(&Event) -> bool) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = handle.recv() {
        let is_last = is_it(&event);
        events.push(event);
        if is_last {
            return events;
        }
    }
    panic!("the engine ended: {events:?}");
}

#[test]
fn a_slow_denoiser_can_be_cancelled_after_one_evaluation() {
    let (entered, runs) = channel();
    let (permit, permits) = channel();
    let handle = engine_with(move |inner| Box::new(Gate { inner, entered, permits: Mutex::new(permits) }));
    // Three evaluations a step: the cancel comes in the middle of the first.
    let settings = Settings { sampler: Sampler::DpmSolver3, ..steps(50) };
    let request = ChainRequest { model: ModelId::Opened(0), ..perfect(settings) };
    handle.send(Command::Chain { slot: A, request });
    runs.recv().unwrap();
    permit.send(()).unwrap();
    recv_until(&handle, |event| matches!(event, Event::Progress { .. }));
    runs.recv().unwrap();
    // The denoiser holds the engine, but nobody who asks for events waits.
    assert!(handle.try_recv().is_none());
    handle.send(Command::Cancel { slot: A });
    let other = ChainRequest { seed: 8, ..perfect(steps(2)) };
    handle.send(Command::Chain { slot: Slot(2), request: other });
    assert!(handle.try_recv().is_none());
    permit.send(()).unwrap();
    let events = recv_until(&handle, |event| matches!(event, Event::Finished { slot: Slot(2), .. }));
    assert!(events.iter().any(|event| matches!(event, Event::Cancelled { slot: A })), "{events:?}");
    assert!(runs.try_recv().is_err(), "no third run");
    assert_eq!(handle.n_evaluations(), 4, "two of the slow one, two of the other");
}

struct Panics;

impl Denoiser<4> for Panics {
    fn forward(&self, _: Input<'_, 4>) -> Tensor<4> {
        panic!("on purpose")
    }

    fn accepts(&self, _: [usize; 4], _: &Condition) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn a_panic_ends_one_job_only() {
    let handle = engine_with(|_| Box::new(Panics));
    let request = ChainRequest { model: ModelId::Opened(0), ..perfect(steps(3)) };
    handle.send(Command::Chain { slot: Slot(2), request: perfect(steps(30)) });
    handle.send(Command::Chain { slot: A, request });
    let events = recv_until(&handle, |event| matches!(event, Event::Finished { slot: Slot(2), .. }));
    assert!(failure(&events, Some(A)).contains("on purpose"));
    assert_eq!(frames(&events, Slot(2)).len(), 30);
}

#[test]
fn an_engine_that_cannot_start_says_so() {
    let (woken, wakes) = channel();
    let handle = Handle::start_with(|| panic!("no engine today"), move || woken.send(()).unwrap_or_default()).unwrap();
    wakes.recv().unwrap();
    let events: Vec<Event> = std::iter::from_fn(|| handle.recv()).collect();
    let message = failure(&events, None);
    assert!(message.contains("no engine today") && message.contains("start the program again"), "{message}");
    handle.send(Command::Chain { slot: A, request: perfect(steps(1)) });
    assert!(handle.try_recv().is_none());
}

#[test]
fn a_handle_wakes_its_owner_and_ends_with_it() {
    let (woken, wakes) = channel();
    let handle =
        Handle::start(bit_diffusion::device::DeviceChoice::Cpu, move || woken.send(()).unwrap_or_default()).unwrap();
    wakes.recv().unwrap();
    assert!(matches!(handle.try_recv(), Some(Event::Device { .. })));
    // In the middle of a long chain.
    handle.send(Command::Chain { slot: A, request: perfect(steps(1_000_000)) });
    wakes.recv().unwrap();
    drop(handle);
    while wakes.try_recv().is_ok() {}
    assert!(wakes.recv().is_err(), "the thread has ended");
}
