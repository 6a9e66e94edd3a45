//! The engine: what a panel, a command line and a page rely on.

mod drive;

use std::{ops::ControlFlow, sync::Arc};

use bit_diffusion::{
    bits::Encoding,
    checkpoint,
    data::shapes,
    demo::Demo,
    engine::{
        BigStepRequest, ChainRequest, Command, Engine, Event, Frame, ModelId, Perfect, Slot, StartedJob, SweepRequest,
    },
    model::Condition,
    sampler::{Chain, Sampler, Settings, State},
    schedule::Schedule,
    self_cond::{Memory, SelfCond},
};
use burn::tensor::{Device, Tensor};
use drive::{chain, engine, frames, perfect, pieces, rest, round, started, values};
use half::f16;

const A: Slot = Slot(1);
const B: Slot = Slot(2);

fn steps(n_steps: usize) -> Settings {
    Settings { n_steps, ..Settings::default() }
}

#[test]
fn a_seed_gives_the_pictures_of_a_chain_by_hand() {
    let device = Device::flex();
    let settings = Settings { n_steps: 4, td: 1.0, sampler: Sampler::Ddpm, ..Settings::default() };
    let network = checkpoint::load_network(Demo::ShapesUint8.bytes(), &device).unwrap();
    let state = State::from_seed(network.state_shape(3), 9, &device);
    let mut by_hand = Chain::new(settings, Condition::None, state).unwrap();
    let mut expected = Vec::new();
    by_hand
        .run(&network, |step| {
            let bits = values(&step.x_pred);
            let codec = network.config().codec().unwrap();
            let symbols = codec.decode_tensor(step.x_pred.clone()).unwrap();
            expected.push((bits, symbols.into_data().iter::<u32>().collect::<Vec<u32>>()));
            ControlFlow::Continue(())
        })
        .unwrap();

    let model = ModelId::Demo(Demo::ShapesUint8);
    let request = ChainRequest { model, settings, n: 3, seed: 9, ..ChainRequest::default() };
    let mut engine = engine();
    let frames = chain(&mut engine, A, &request);
    assert_eq!(frames.len(), 4);
    for (frame, (bits, symbols)) in frames.iter().zip(&expected) {
        let halves: Vec<f16> = bits.iter().map(|&bit| f16::from_f32(bit)).collect();
        assert_eq!(frame.x_pred.bits[..], halves[..], "step {}", frame.step);
        // [n, 3, size, size] → [n, size, size, 3]
        let plane = shapes::SIZE * shapes::SIZE;
        let pixels = symbols.chunks_exact(3 * plane).flat_map(|picture| {
            (0..plane).flat_map(move |i| [0, 1, 2].map(|channel| picture[channel * plane + i] as u8))
        });
        assert!(pixels.eq(frame.x_pred.pictures.pixels.iter().copied()), "step {}", frame.step);
        let off: usize = symbols.chunks_exact(3 * plane).map(shapes::n_off_palette).sum();
        let score = frame.x_pred.score.unwrap();
        assert!((score.off_palette * (3 * plane) as f64 - off as f64).abs() < 1e-9);
        assert_eq!(frame.x_pred.histogram.counts.iter().sum::<usize>(), bits.len());
    }
    let last = &frames[3];
    assert_eq!((last.step, last.n_evaluations), (3, 4));
    assert_eq!((last.t_now, last.t_next), settings.times(3.0));
}

#[test]
fn the_newest_command_of_a_slot_wins() {
    let mut engine = engine();
    let old = ChainRequest { seed: 1, ..perfect(steps(50)) };
    let new = ChainRequest { seed: 2, ..perfect(steps(5)) };
    engine.handle(Command::Chain { slot: A, request: old });
    pieces(&mut engine, 4);
    let before = engine.n_evaluations();
    engine.handle(Command::Chain { slot: A, request: ChainRequest { seed: 3, ..new.clone() } });
    engine.handle(Command::Chain { slot: A, request: new.clone() });
    let events = rest(&mut engine);
    let requests = started(&events);
    assert_eq!(requests, [new], "what was replaced before its turn never starts");
    assert_eq!(frames(&events, A).len(), 5);
    let finished = events.iter().filter(|event| matches!(event, Event::Finished { .. })).count();
    assert_eq!((finished, engine.n_evaluations() - before), (1, 5));
}

#[test]
fn every_call_runs_the_network_at_most_once_and_cancelling_stops_it() {
    let settings = Settings {
        n_steps: 4,
        sampler: Sampler::DpmSolver3,
        self_cond: SelfCond::SelfGuidance { weight: 2.0 },
        ..Settings::default()
    };
    let mut engine = engine();
    engine.handle(Command::Chain { slot: A, request: perfect(settings) });
    let sweep = SweepRequest { steps: vec![3], td: vec![0.0, 1.0], ..sweep(settings) };
    engine.handle(Command::Sweep { slot: B, request: sweep });
    let big_step = BigStepRequest { model: perfect(settings).model, settings, n: 2, ..BigStepRequest::default() };
    engine.handle(Command::BigStep { slot: Slot(3), request: big_step });
    let mut last = 0;
    for _ in 0..40 {
        pieces(&mut engine, 1);
        let now = engine.n_evaluations();
        assert!(now - last <= 1, "{last} → {now}");
        last = now;
    }
    assert!(last > 20, "{last}");
    for slot in [A, B, Slot(3)] {
        engine.handle(Command::Cancel { slot });
    }
    let events = rest(&mut engine);
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Cancelled { .. })).count(), 3, "{events:?}");
    assert_eq!(engine.n_evaluations(), last, "nothing was run after that");
    // Nothing is under way any more, so there is nothing to cancel.
    engine.handle(Command::Cancel { slot: A });
    assert!(rest(&mut engine).is_empty());
}

#[test]
fn a_cancelled_chain_goes_on_to_the_bit() {
    let request = perfect(Settings { sampler: Sampler::Ddpm, ..steps(8) });
    let whole = chain(&mut engine(), A, &request);
    let mut engine = engine();
    engine.handle(Command::Chain { slot: A, request: request.clone() });
    while engine.n_evaluations() < 3 {
        pieces(&mut engine, 1);
    }
    engine.handle(Command::Cancel { slot: A });
    rest(&mut engine);
    let resumed = chain(&mut engine, B, &request);
    assert_eq!(engine.n_evaluations(), 8, "no step was made twice");
    assert_same(&whole, &resumed);
}

#[test]
fn what_is_kept_is_not_made_again() {
    let mut engine = engine();
    let (a, b) = (perfect(steps(5)), perfect(Settings { td: 2.0, ..steps(5) }));
    let first = chain(&mut engine, A, &a);
    chain(&mut engine, A, &b);
    assert_eq!(engine.n_evaluations(), 10);
    engine.handle(Command::Chain { slot: B, request: a });
    let events = rest(&mut engine);
    let again = frames(&events, B);
    assert!(first.iter().zip(&again).all(|(a, b)| Arc::ptr_eq(a, b)) && again.len() == 5);
    assert!(matches!(&events[0], Event::Started { job: StartedJob::Chain { n_kept: 5, .. }, .. }), "{:?}", events[0]);
    assert!(events.iter().any(|event| matches!(event, Event::Finished { n_evaluations: 0, .. })));
    assert_eq!(engine.n_evaluations(), 10);

    // Sweeps and big steps too; a sweep takes over the cells that it shares with another.
    let wide = SweepRequest { steps: vec![2], td: vec![0.0, 1.0, 2.0], ..sweep(steps(1)) };
    let narrow = SweepRequest { td: vec![1.0, 0.0], ..wide.clone() };
    let big_step = BigStepRequest { model: wide.model, n: 2, ..BigStepRequest::default() };
    engine.handle(Command::Sweep { slot: A, request: wide });
    engine.handle(Command::BigStep { slot: B, request: big_step.clone() });
    rest(&mut engine);
    let before = engine.n_evaluations();
    engine.handle(Command::Sweep { slot: A, request: narrow });
    engine.handle(Command::BigStep { slot: B, request: big_step });
    let events = rest(&mut engine);
    let td: Vec<f64> = events
        .iter()
        .filter_map(|event| if let Event::Cell { cell, .. } = event { Some(cell.td) } else { None })
        .collect();
    assert_eq!(td, [1.0, 0.0]);
    assert_eq!(events.iter().filter(|event| matches!(event, Event::BigStep { .. })).count(), 8);
    assert_eq!(engine.n_evaluations(), before);
}

#[test]
fn the_budget_drops_the_oldest_and_says_so() {
    let mut engine = engine();
    let request = |seed| ChainRequest { seed, ..perfect(steps(4)) };
    let first = chain(&mut engine, A, &request(1));
    engine.handle(Command::SetBudget { bytes: 256 << 20 });
    let used = drive::memory(&rest(&mut engine)).used;
    let frames: usize = first.iter().map(|frame| frame.n_bytes()).sum();
    assert!(used >= frames && used < frames + 10_000, "{used} for {frames}");

    // Room for two and a half.
    engine.handle(Command::SetBudget { bytes: used * 5 / 2 });
    chain(&mut engine, A, &request(2));
    // The first is used again, so that the second is now the oldest.
    chain(&mut engine, A, &request(1));
    engine.handle(Command::Chain { slot: A, request: request(3) });
    let events = rest(&mut engine);
    let dropped: Vec<ChainRequest> = drive::memories(&events).flat_map(|memory| memory.dropped.clone()).collect();
    assert_eq!(dropped, [request(2)]);
    let memory = drive::memory(&events);
    assert!(memory.used <= memory.limit && memory.limit == used * 5 / 2 && memory.n_kept == 2, "{memory:?}");
    let before = engine.n_evaluations();
    assert_same(&chain(&mut engine, A, &request(1)), &first);
    assert_eq!(engine.n_evaluations(), before, "the first is still kept");
    chain(&mut engine, A, &request(2));
    assert_eq!(engine.n_evaluations(), before + 4, "the second is not");

    // Less than one chain: it is shown all the same, and not kept.
    engine.handle(Command::SetBudget { bytes: used / 2 });
    assert_eq!(drive::memory(&rest(&mut engine)).n_kept, 0);
    engine.handle(Command::Chain { slot: A, request: request(1) });
    let events = rest(&mut engine);
    assert_same(&drive::frames(&events, A), &first);
    assert!(drive::memory(&events).used <= used / 2);
    assert_eq!(drive::memory(&events).n_kept, 0);
}

#[test]
fn a_branch_is_the_chain_by_hand_from_the_kept_state() {
    let device = Device::flex();
    let before = Settings { self_cond: SelfCond::Momentum { momentum: 0.6 }, sampler: Sampler::Ddpm, ..steps(6) };
    let after = Settings { td: 1.5, sampler: Sampler::DpmSolverMultistep2, self_cond: before.self_cond, ..steps(9) };
    // A network, because the estimates of a perfect denoiser are soon all the same, whatever it is told.
    let root = ChainRequest { model: ModelId::Demo(Demo::ShapesUint8), ..perfect(before) };
    let branch = root.branched(3, after);
    let twig = branch.branched(5, Settings { self_cond: SelfCond::Off, ..after });

    // By hand: three steps of the first chain, its state in half floats, and on with the other settings.
    let network = checkpoint::load_network(Demo::ShapesUint8.bytes(), &device).unwrap();
    let shape = network.state_shape(root.n);
    let start = |settings, state| Chain::new(settings, Condition::None, state).unwrap();
    let denoiser = &network;
    let mut chain_by_hand = start(before, State::from_seed(shape, root.seed, &device));
    let advance = |chain: &mut Chain<4>, n: usize| {
        for _ in 0..n {
            chain.step(denoiser).unwrap();
        }
        let state = chain.state().clone();
        let Memory { x_pred, x_accu, n_evaluations } = state.memory;
        let memory = Memory { x_pred: round(&x_pred), x_accu: round(&x_accu), n_evaluations };
        State { x_t: round(&state.x_t), memory, ..state }
    };
    let kept = advance(&mut chain_by_hand, 3);
    let mut chain_by_hand = start(after, kept);
    let kept = advance(&mut chain_by_hand, 2);
    let mut twig_by_hand = start(twig.settings, kept);
    let ends = |chain: &mut Chain<4>| -> Vec<f16> {
        let bits: Tensor<4> = chain.run(denoiser, |_| ControlFlow::Continue(())).unwrap();
        values(&bits).into_iter().map(f16::from_f32).collect()
    };

    let mut engine = engine();
    chain(&mut engine, A, &root);
    let n = engine.n_evaluations();
    let frames = chain(&mut engine, B, &branch);
    // Half of 9 steps are left: 4.5, so five.
    assert_eq!(frames.iter().map(|frame| frame.step).collect::<Vec<_>>(), [3, 4, 5, 6, 7]);
    assert_eq!(engine.n_evaluations() - n, 5);
    assert_eq!(frames[4].x_pred.bits[..], ends(&mut chain_by_hand)[..]);
    let twigs = chain(&mut engine, B, &twig);
    assert_eq!(twigs[0].step, 5);
    assert_eq!(twigs.last().unwrap().x_pred.bits[..], ends(&mut twig_by_hand)[..]);

    // Where nothing is kept, the chains before are made again as far as needed, and it comes to the same.
    let mut fresh = drive::engine();
    fresh.handle(Command::Chain { slot: A, request: twig.clone() });
    let events = rest(&mut fresh);
    assert_same(&drive::frames(&events, A), &twigs);
    assert!(events.iter().any(|event| matches!(event, Event::Progress { .. })));
    assert_eq!(started(&events), [twig]);
}

#[test]
fn slots_take_turns_the_one_named_last_first() {
    let mut engine = engine();
    for (slot, seed) in [(A, 1), (B, 2), (Slot(3), 3)] {
        engine.handle(Command::Chain { slot, request: ChainRequest { seed, ..perfect(steps(4)) } });
    }
    let order = |events: &[Event]| -> Vec<u32> {
        let frames = events.iter().filter_map(|event| match event {
            Event::Frames { slot, .. } => Some(slot.0),
            _ => None,
        });
        frames.collect()
    };
    assert_eq!(order(&rest(&mut engine)), [3, 2, 1, 3, 2, 1, 3, 2, 1, 3, 2, 1]);

    // Two slots that ask for the same get the same, and it is made once.
    let before = engine.n_evaluations();
    let request = ChainRequest { seed: 4, ..perfect(steps(6)) };
    for slot in [A, B] {
        engine.handle(Command::Chain { slot, request: request.clone() });
    }
    let events = rest(&mut engine);
    assert_same(&frames(&events, A), &frames(&events, B));
    assert_eq!((frames(&events, A).len(), engine.n_evaluations() - before), (6, 6));
}

#[test]
fn a_sweep_is_the_mean_of_chains() {
    let mut engine = engine();
    let request = SweepRequest { steps: vec![2, 3], td: vec![0.0, 1.0], ..sweep(steps(1)) };
    engine.handle(Command::Sweep { slot: A, request: request.clone() });
    let events = rest(&mut engine);
    let cells: Vec<_> = events
        .iter()
        .filter_map(|event| if let Event::Cell { cell, .. } = event { Some(cell.clone()) } else { None })
        .collect();
    let order: Vec<(usize, f64)> = cells.iter().map(|cell| (cell.n_steps, cell.td)).collect();
    assert_eq!(order, [(2, 0.0), (2, 1.0), (3, 0.0), (3, 1.0)]);
    let (done, total) = events
        .iter()
        .rev()
        .find_map(|event| if let Event::Progress { done, total, .. } = event { Some((*done, *total)) } else { None })
        .unwrap();
    assert_eq!((done, total), (19, 20), "the last step of all is a cell");
    for cell in &cells {
        let settings = Settings { n_steps: cell.n_steps, td: cell.td, ..steps(1) };
        let chains: Vec<Vec<Arc<Frame>>> = request
            .seeds
            .iter()
            .map(|&seed| chain(&mut engine, B, &ChainRequest { n: request.n, seed, ..perfect(settings) }))
            .collect();
        let ends: Vec<&Arc<Frame>> = chains.iter().map(|frames| frames.last().unwrap()).collect();
        let mean = |of: &dyn Fn(&Frame) -> f64| ends.iter().map(|frame| of(frame)).sum::<f64>() / ends.len() as f64;
        let score = cell.score.unwrap();
        assert!((score.off_palette - mean(&|frame| frame.x_pred.score.unwrap().off_palette)).abs() < 1e-12);
        assert!((score.scenes - mean(&|frame| frame.x_pred.score.unwrap().scenes)).abs() < 1e-12);
        assert!((cell.share_near_modes - mean(&|frame| frame.x_pred.share_near_modes)).abs() < 1e-12);
        assert_eq!(cell.pictures, ends[0].x_pred.pictures);
        assert_eq!(cell.n_evaluations, cell.n_steps);
    }
}

#[test]
fn a_big_step_is_the_two_formulas_by_hand() {
    let device = Device::flex();
    let model = perfect(steps(1)).model;
    let request = BigStepRequest {
        model,
        n: 2,
        seed: 3,
        // Further apart than in the paper, so that much of the noise is left.
        t_from: 0.9,
        t_to: 0.6,
        settings: Settings { self_cond: SelfCond::Previous, ..Settings::default() },
        ..BigStepRequest::default()
    };
    let mut engine = engine();
    engine.handle(Command::BigStep { slot: A, request });
    let events = rest(&mut engine);
    let parts: Vec<_> = events
        .iter()
        .filter_map(|event| if let Event::BigStep { part, .. } = event { Some(part.clone()) } else { None })
        .collect();
    let told: Vec<Option<f64>> = parts.iter().map(|part| part.told).collect();
    assert_eq!(told, [None, Some(0.1), Some(0.2), Some(0.3), Some(0.4), Some(0.5), Some(0.6), Some(0.7)]);

    // x_t of clean scenes, one DDIM step from 0.9 to 0.6, then the estimate with another clock.
    let exact = drive::denoiser(model, &device);
    let x_0 = drive::scenes(2, 3, &exact.info.codec, &device);
    let noise = bit_diffusion::rng::Rng::new(3).fork(0).normal_tensor(x_0.dims(), &device);
    let gamma = |t: f64| Schedule::default().gamma(t);
    let (now, next) = (gamma(0.9), gamma(0.6));
    let x_t = x_0.mul_scalar(now.sqrt()) + noise.mul_scalar((1.0 - now).sqrt());
    let first = drive::estimate(&exact, &x_t, &x_t.zeros_like(), now);
    let eps = (x_t - first.clone().mul_scalar(now.sqrt())).div_scalar((1.0 - now).sqrt());
    let after = first.clone().mul_scalar(next.sqrt()) + eps.mul_scalar((1.0 - next).sqrt());
    for part in &parts {
        let expected =
            part.told.map_or_else(|| after.clone(), |told| drive::estimate(&exact, &after, &first, gamma(told)));
        let worst = values(&expected)
            .iter()
            .zip(part.view.bits.iter())
            .map(|(a, b)| (a - b.to_f32()).abs())
            .fold(0.0, f32::max);
        // Half floats near 4 are 0.004 apart, and the times are rounded to a millionth.
        assert!(worst < 5e-3, "t' = {:?}: off by {worst}", part.told);
        assert_eq!((part.n_pixels, part.clean.n), (512, 2));
        let noisy = part.view.score.unwrap().off_palette * 512.0;
        assert!((noisy - part.n_noisy.unwrap() as f64).abs() < 1e-9);
        let differs =
            part.view.pictures.pixels.chunks(3).zip(part.clean.pixels.chunks(3)).filter(|(a, b)| a != b).count();
        assert_eq!(part.n_changed, differs);
    }
    assert!(parts[0].n_noisy.unwrap() > 0, "the state itself is noisy: {}", parts[0].n_noisy.unwrap());
}

#[test]
fn what_cannot_be_used_is_said_and_leaves_the_engine_as_it_was() {
    let mut engine = engine();
    let good = perfect(steps(2));
    let bad = [
        (ChainRequest { settings: Settings { td: f64::NAN, ..steps(3) }, ..good.clone() }, "time difference td"),
        (ChainRequest { n: 0, ..good.clone() }, "number of samples"),
        (ChainRequest { model: ModelId::Opened(7), ..good.clone() }, "open its file again"),
        (ChainRequest { model: ModelId::Training, ..good.clone() }, "start one"),
        (ChainRequest { classes: bit_diffusion::engine::Classes::One(1), ..good.clone() }, "no classes"),
        (good.branched(2, steps(2)), "step of the branch"),
        (
            ChainRequest {
                model: ModelId::Perfect(Perfect { encoding: Encoding::Gray, ..Perfect::default() }),
                ..good.branched(1, steps(2))
            },
            "model of the branch",
        ),
        (
            ChainRequest { model: ModelId::Perfect(Perfect { n_scenes: 0, ..Perfect::default() }), ..good.clone() },
            "number of scenes",
        ),
        // As many as there may be, but each 32 times as long.
        (
            ChainRequest {
                model: ModelId::Perfect(Perfect {
                    n_scenes: Perfect::MAX_SCENES,
                    encoding: Encoding::OneHot,
                    ..Perfect::default()
                }),
                ..good.clone()
            },
            "from 1 to 128",
        ),
    ];
    for (request, said) in bad {
        engine.handle(Command::Chain { slot: A, request });
        let events = rest(&mut engine);
        assert!(drive::failure(&events, Some(A)).contains(said), "{said}: {events:?}");
    }
    let empty = SweepRequest { td: vec![], ..sweep(steps(1)) };
    engine.handle(Command::Sweep { slot: B, request: empty });
    assert!(drive::failure(&rest(&mut engine), Some(B)).contains("number of cells"));
    let backwards = BigStepRequest { t_to: 0.7, ..BigStepRequest::default() };
    engine.handle(Command::BigStep { slot: B, request: backwards });
    assert!(drive::failure(&rest(&mut engine), Some(B)).contains("time of the big step"));
    assert_eq!(chain(&mut engine, A, &good).len(), 2);
}

/// A sweep of the perfect denoiser with two seeds.
fn sweep(settings: Settings) -> SweepRequest {
    SweepRequest {
        model: perfect(settings).model,
        n: 2,
        seeds: vec![5, 6],
        steps: vec![settings.n_steps],
        td: vec![0.0],
        sampler: settings.sampler,
        self_cond: settings.self_cond,
    }
}

#[track_caller]
fn assert_same(a: &[Arc<Frame>], b: &[Arc<Frame>]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert_eq!(a.step, b.step);
        assert_eq!(a.x_t.bits, b.x_t.bits, "x_t of step {}", a.step);
        assert_eq!(a.x_pred.bits, b.x_pred.bits, "x_pred of step {}", a.step);
        assert_eq!(a.n_evaluations, b.n_evaluations);
    }
}

/// The engine is used from its own thread only, but its commands and events travel.
#[test]
fn commands_and_events_can_be_sent_to_other_threads() {
    fn is_send<T: Send>() {}
    is_send::<Command>();
    is_send::<Event>();
    let _: fn(bit_diffusion::device::Opened) -> Engine = Engine::new;
}
