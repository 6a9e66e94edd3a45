//! A training run as a stream of events.

mod tiny;

use bit_diffusion::{
    checkpoint,
    data::{DataError, Picture, Pictures},
    sampler::Settings,
    train::{Event, Plan, Run, RunError, TrainConfig, Trainer},
};
use burn::tensor::Device;

const SIZE: usize = 4;

/// Pictures of one colour each; reading them can be made to fail.
struct Flat {
    is_broken: bool,
}

impl Pictures for Flat {
    fn n_examples(&self) -> usize {
        256
    }

    fn channels(&self) -> usize {
        1
    }

    fn size(&self) -> usize {
        SIZE
    }

    fn n_classes(&self) -> usize {
        3
    }

    fn read(&mut self, index: usize) -> Result<Picture, DataError> {
        if self.is_broken {
            return Err(DataError::Index { index, n_examples: 0 });
        }
        Ok(Picture { pixels: vec![index as u8; SIZE * SIZE], class: index % 3 })
    }
}

fn trainer() -> Trainer {
    let config = TrainConfig { batch_size: 2, ..TrainConfig::new(tiny::unet(SIZE)) };
    Trainer::new(config, &Device::flex()).unwrap()
}

fn plan(n_steps: usize) -> Plan {
    let sheet = Settings { n_steps: 3, ..Settings::default() };
    Plan { n_steps, save_every: 2, sheet_every: 4, sheet_size: 5, sheet }
}

/// All events of a run, to its end.
fn events(trainer: Trainer, plan: Plan) -> Vec<Event> {
    let mut run = Run::new(trainer, plan, &Device::flex()).unwrap();
    let mut events = Vec::new();
    while let Some(event) = pollster::block_on(run.next(&mut Flat { is_broken: false })).unwrap() {
        events.push(event);
    }
    assert_eq!(run.trainer().n_steps(), plan.n_steps);
    events
}

fn last_checkpoint(events: &[Event]) -> &[u8] {
    let bytes = events.iter().rev().find_map(|event| match event {
        Event::Checkpoint(bytes) => Some(bytes),
        _ => None,
    });
    bytes.expect("a run ends with a checkpoint")
}

#[test]
fn what_is_due_comes_in_order() {
    let events = events(trainer(), plan(5));
    let names: Vec<String> = events
        .iter()
        .map(|event| match event {
            Event::Step(progress) => format!("step {}", progress.n_steps),
            Event::Checkpoint(bytes) => format!("save {}", checkpoint::inspect(bytes).unwrap().n_steps),
            Event::Sampling { step, n_steps } => format!("sample {step}/{n_steps}"),
            Event::Sheet(values) => {
                format!("sheet of {} values below 4: {}", values.len(), values.iter().all(|v| *v < 4))
            }
        })
        .collect();
    let sheet = ["sample 1/3", "sample 2/3", "sheet of 80 values below 4: true"];
    let expected =
        [&["step 1", "step 2", "save 2", "step 3", "step 4", "save 4"][..], &sheet, &["step 5", "save 5"], &sheet];
    assert_eq!(names, expected.concat());
}

#[test]
fn a_run_in_two_parts_is_the_same_run() {
    let whole = events(trainer(), plan(4));
    let half = events(trainer(), plan(2));
    let resumed = checkpoint::load_trainer(last_checkpoint(&half), &Device::flex()).unwrap();
    let rest = events(resumed, plan(4));
    assert!(last_checkpoint(&whole) == last_checkpoint(&rest), "the checkpoints differ");
}

#[test]
fn broken_data_stop_the_run_and_lose_nothing() {
    let mut run = Run::new(trainer(), plan(5), &Device::flex()).unwrap();
    pollster::block_on(run.next(&mut Flat { is_broken: false })).unwrap();
    let error = pollster::block_on(run.next(&mut Flat { is_broken: true })).unwrap_err();
    assert!(matches!(error, RunError::Data(_)), "{error}");
    let event = pollster::block_on(run.next(&mut Flat { is_broken: false })).unwrap();
    assert!(matches!(event, Some(Event::Step(progress)) if progress.n_steps == 2), "{event:?}");
}
