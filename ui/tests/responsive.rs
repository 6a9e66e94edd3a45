//! The studio on an engine that is stuck in the middle of a network: frames go on all the same, and its work can be cancelled.

mod common;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use bit_diffusion::{
    Error,
    device::Opened,
    engine::{ChainRequest, Command, Engine, Event, Handle, Model, ModelId, Perfect, StartedJob},
    model::{Condition, Denoiser, Input},
};
use bit_diffusion_ui::{Link, Panel, Studio};
use burn::tensor::{Device, Tensor};
use common::{click, fact, slide, wait_for};
use egui_kittest::{Harness, kittest::Queryable as _};

/// The perfect denoiser behind a gate: it works only when it is let through.
struct Gated {
    denoiser: Box<dyn Denoiser<4>>,
    gate: Mutex<Receiver<()>>,
    n_begun: Arc<AtomicUsize>,
}

impl Denoiser<4> for Gated {
    fn forward(&self, input: Input<'_, 4>) -> Tensor<4> {
        self.n_begun.fetch_add(1, Ordering::SeqCst);
        // A studio that waited for the engine would stand still until this gives up; the counts would then tell.
        let _ = self.gate.lock().unwrap().recv_timeout(Duration::from_secs(20));
        self.denoiser.forward(input)
    }

    fn accepts(&self, shape: [usize; 4], condition: &Condition) -> Result<(), Error> {
        self.denoiser.accepts(shape, condition)
    }
}

/// Puts the gated denoiser in the place of whatever chains the studio asks for.
struct GatedLink(Handle);

/// The first model that an engine is given.
const GATED: ModelId = ModelId::Opened(0);

impl Link for GatedLink {
    fn send(&mut self, mut command: Command) {
        if let Command::Chain { request, .. } = &mut command {
            request.model = GATED;
        }
        self.0.send(command);
    }

    fn try_recv(&mut self) -> Option<Event> {
        let mut event = self.0.try_recv();
        if let Some(Event::Started { job: StartedJob::Chain { request, .. }, .. }) = &mut event {
            *request = Arc::new(ChainRequest { model: ModelId::default(), ..(**request).clone() });
        }
        event
    }

    fn n_evaluations(&self) -> u64 {
        self.0.n_evaluations()
    }
}

/// The studio, what lets a network through, and how many have begun.
fn gated() -> (Harness<'static, Studio>, Sender<()>, Arc<AtomicUsize>) {
    let (open, gate) = channel();
    let n_begun = Arc::new(AtomicUsize::new(0));
    let counted = n_begun.clone();
    let make = move || {
        let device = Device::flex();
        let Model { denoiser, info } = Model::perfect(Perfect::default(), &device).unwrap();
        let mut engine = Engine::new(Opened { device, description: "behind a gate".to_owned(), shared: None });
        let denoiser = Box::new(Gated { denoiser, gate: Mutex::new(gate), n_begun: counted });
        assert_eq!(engine.insert_model(Model { denoiser, info }), GATED);
        engine
    };
    let engine = Handle::start_with(make, || {}).unwrap();
    let harness = Harness::builder()
        .with_size([1280.0, 800.0])
        .build_ui_state(|ui, studio: &mut Studio| studio.ui(ui), Studio::new(Box::new(GatedLink(engine))));
    (harness, open, n_begun)
}

/// How many steps of a run have been seen.
fn n_trained(harness: &Harness<'_, Studio>) -> usize {
    fact(harness, "losses").split_whitespace().count()
}

#[test]
fn frames_go_on_while_a_chain_and_a_run_are_busy_and_cancelling_works() {
    let (mut harness, open, n_begun) = gated();
    let begun = || n_begun.load(Ordering::SeqCst);
    // A run beside the chain, which waits at its first step.
    harness.state_mut().show(Panel::Train);
    harness.run_steps(2);
    slide(&mut harness, "pictures a step", 2.0);
    click(&mut harness, "Start training");
    harness.state_mut().show(Panel::Chain);
    wait_for(&mut harness, "the chain has begun", |_| begun() == 1);
    // Let it through now and then: both go on in turns.
    for n in 1..=3 {
        open.send(()).unwrap();
        wait_for(&mut harness, "the next step has begun", |_| begun() == n + 1);
    }
    wait_for(&mut harness, "both are under way", |harness| harness.state().progress().0 == 3 && n_trained(harness) > 0);

    // The engine is stuck now. Frames are drawn, and what a person does has its effect.
    let (made, trained) = (harness.state().progress().0, n_trained(&harness));
    for panel in [Panel::Train, Panel::Chain, Panel::Toy] {
        harness.state_mut().show(panel);
        harness.run_steps(30);
    }
    click(&mut harness, Panel::Toy.label());
    slide(&mut harness, "probability p", 0.4);
    assert!(harness.state().link().contains("p=0.4"), "{}", harness.state().link());
    assert_eq!(
        (begun(), harness.state().progress().0, n_trained(&harness)),
        (4, made, trained),
        "the engine was not stuck"
    );

    // Cancelled, not one network more is run than the one that is under way.
    click(&mut harness, "Cancel");
    harness.run_steps(5);
    assert!(harness.query_by_label("idle").is_none(), "the network is still under way");
    open.send(()).unwrap();
    wait_for(&mut harness, "all jobs have stopped", |harness| harness.query_by_label("idle").is_some());
    // The run goes on, and stops too.
    wait_for(&mut harness, "the run goes on", |harness| n_trained(harness) > trained);
    assert_eq!(begun(), 4);
    harness.state_mut().show(Panel::Train);
    harness.run_steps(2);
    click(&mut harness, "Stop");
    wait_for(&mut harness, "it has stopped", |harness| harness.query_by_label("stopped").is_some());
}
