//! Helpers for the tests of the engine.
#![allow(dead_code, reason = "each test program uses some of them")]

use std::sync::Arc;

use bit_diffusion::{
    bits::Codec,
    data::{Pictures as _, shapes::Shapes},
    device::Opened,
    engine::{ChainRequest, Command, Engine, Event, Frame, Memory, Model, ModelId, Perfect, Slot, StartedJob},
    model::{Condition, Input},
    sampler::Settings,
};
use burn::tensor::{Device, Tensor, TensorData};
use half::f16;

/// An engine on the processor that has said so.
pub fn engine() -> Engine {
    let mut engine = Engine::new(Opened { device: Device::flex(), description: "CPU".to_owned(), shared: None });
    let events = rest(&mut engine);
    assert!(matches!(&events[..], [Event::Device { description }] if description == "CPU"), "{events:?}");
    engine
}

/// A small, quick chain: two samples of a perfect denoiser that listens to itself.
pub fn perfect(settings: Settings) -> ChainRequest {
    let model = ModelId::Perfect(Perfect { n_scenes: 6, trust: 0.02, ..Perfect::default() });
    ChainRequest { model, settings, n: 2, seed: 7, ..ChainRequest::default() }
}

/// The denoiser of [`perfect`].
pub fn denoiser(model: ModelId, device: &Device) -> Model {
    let ModelId::Perfect(perfect) = model else { panic!("{model:?}") };
    Model::perfect(perfect, device).unwrap()
}

/// Calls `work` so many times.
pub fn pieces(engine: &mut Engine, n: usize) -> Vec<Event> {
    (0..n).map_while(|_| pollster::block_on(engine.work())).collect()
}

/// Works until there is nothing left to do.
pub fn rest(engine: &mut Engine) -> Vec<Event> {
    pieces(engine, usize::MAX)
}

/// Makes a chain to its end.
#[track_caller]
pub fn chain(engine: &mut Engine, slot: Slot, request: &ChainRequest) -> Vec<Arc<Frame>> {
    engine.handle(Command::Chain { slot, request: request.clone() });
    let events = rest(engine);
    assert!(events.iter().any(|event| matches!(event, Event::Finished { .. })), "{events:?}");
    frames(&events, slot)
}

/// All frames of a slot.
pub fn frames(events: &[Event], of: Slot) -> Vec<Arc<Frame>> {
    let frames = events.iter().filter_map(|event| match event {
        Event::Frames { slot, frames } if *slot == of => Some(frames.clone()),
        _ => None,
    });
    frames.flatten().collect()
}

/// The chains that started.
pub fn started(events: &[Event]) -> Vec<ChainRequest> {
    let requests = events.iter().filter_map(|event| match event {
        Event::Started { job: StartedJob::Chain { request, .. }, .. } => Some(ChainRequest::clone(request)),
        _ => None,
    });
    requests.collect()
}

/// All that was said of memory.
pub fn memories(events: &[Event]) -> impl Iterator<Item = &Memory> {
    events.iter().filter_map(|event| if let Event::Memory(memory) = event { Some(memory) } else { None })
}

/// What was last said of memory.
#[track_caller]
pub fn memory(events: &[Event]) -> Memory {
    memories(events).last().expect("memory is told after every job").clone()
}

/// The one message of failure, for this slot.
#[track_caller]
pub fn failure(events: &[Event], of: Option<Slot>) -> String {
    let failures: Vec<&Event> = events.iter().filter(|event| matches!(event, Event::Failed { .. })).collect();
    let [Event::Failed { slot, message }] = failures[..] else { panic!("{events:?}") };
    assert_eq!(*slot, of, "{message}");
    message.clone()
}

/// The numbers of a tensor.
pub fn values(tensor: &Tensor<4>) -> Vec<f32> {
    tensor.to_data().try_to_vec().unwrap()
}

/// A tensor in half precision and back.
pub fn round(tensor: &Tensor<4>) -> Tensor<4> {
    let rounded: Vec<f32> = values(tensor).into_iter().map(|value| f16::from_f32(value).to_f32()).collect();
    Tensor::from_data(TensorData::new(rounded, tensor.dims()), &tensor.device())
}

/// The clipped estimate of a denoiser.
pub fn estimate(model: &Model, x_t: &Tensor<4>, x_pred: &Tensor<4>, gamma: f64) -> Tensor<4> {
    let gamma = vec![gamma; x_t.dims()[0]];
    let input = Input { x_t: x_t.clone(), x_pred: x_pred.clone(), gamma: &gamma, condition: &Condition::None };
    model.denoiser.estimate(input).clamp(-1.0, 1.0)
}

/// The analog bits of the first scenes of a seed.
pub fn scenes(n: usize, seed: u64, codec: &Codec, device: &Device) -> Tensor<4> {
    let mut shapes = Shapes::new(seed);
    let pixels: Vec<u32> = (0..n).flat_map(|i| shapes.read(i).unwrap().pixels).map(u32::from).collect();
    codec.encode_tensor(&pixels, [n, 3, 16, 16], device).unwrap()
}
