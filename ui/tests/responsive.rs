//! The studio on an engine that is deliberately slow: no frame waits for it, and its work can be cancelled.

use std::{
    sync::Arc,
    thread,
    time::{Duration, SystemTime},
};

use bit_diffusion::{
    Error,
    device::Opened,
    engine::{ChainRequest, Command, Engine, Event, Handle, Model, ModelId, Perfect, StartedJob},
    model::{Condition, Denoiser, Input},
};
use bit_diffusion_ui::{Link, Studio};
use burn::tensor::{Device, Tensor};
use egui_kittest::{Harness, kittest::Queryable as _};

/// How long the slow denoiser takes.
const SLOW: Duration = Duration::from_millis(500);

/// The perfect denoiser, asleep most of the time.
struct Sleepy(Box<dyn Denoiser<4>>);

impl Denoiser<4> for Sleepy {
    fn forward(&self, input: Input<'_, 4>) -> Tensor<4> {
        thread::sleep(SLOW);
        self.0.forward(input)
    }

    fn accepts(&self, shape: [usize; 4], condition: &Condition) -> Result<(), Error> {
        self.0.accepts(shape, condition)
    }
}

/// Puts the slow denoiser in the place of whatever the studio asks for.
struct SlowLink(Handle);

/// The first model that an engine is given.
const SLEEPY: ModelId = ModelId::Opened(0);

impl Link for SlowLink {
    fn send(&mut self, mut command: Command) {
        if let Command::Chain { request, .. } = &mut command {
            request.model = SLEEPY;
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

#[test]
fn frames_go_on_while_the_engine_is_busy_and_cancelling_works() {
    let make = || {
        let device = Device::flex();
        let model = Model::perfect(Perfect::default(), &device).unwrap();
        let mut engine = Engine::new(Opened { device, description: "slow".to_owned() });
        let sleepy = engine.insert_model(Model { denoiser: Box::new(Sleepy(model.denoiser)), info: model.info });
        assert_eq!(sleepy, SLEEPY);
        engine
    };
    let engine = Handle::start_with(make, || {}).unwrap();
    let mut harness: Harness<'_, Studio> = Harness::builder()
        .with_size([1280.0, 800.0])
        .build_ui_state(|ui, studio: &mut Studio| studio.ui(ui), Studio::new(Box::new(SlowLink(engine))));
    // Two steps take a second at least; frames are drawn all the while.
    let start = SystemTime::now();
    let mut n_frames = 0;
    while harness.state().progress().0 < 2 {
        harness.step();
        n_frames += 1;
        assert!(start.elapsed().unwrap() < Duration::from_mins(1), "{:?}", harness.state().progress());
        thread::sleep(Duration::from_millis(5));
    }
    assert!(start.elapsed().unwrap() >= 2 * SLOW, "the denoiser was not slow");
    // Frames that waited for the engine would be as few as its steps.
    assert!(n_frames > 10, "only {n_frames} frames");
    harness.get_by_label("Cancel").click();
    for _ in 0..2000 {
        harness.step();
        if harness.query_by_label("Go on").is_some() {
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    assert!(harness.query_by_label("stopped").is_some());
    assert!(harness.query_by_label("idle").is_some());
    // At most the step under way was made after the click.
    assert!(harness.state().progress().0 <= 4, "{:?}", harness.state().progress());
}
