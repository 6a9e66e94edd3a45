//! The chain panel on an engine that shares a window's card: a step is drawn from its textures before its numbers are here. Without an adapter the
//! test says that it was skipped.

mod common;

use std::{
    cell::Cell,
    io::Write as _,
    pin::pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use bit_diffusion::{
    device::{
        DeviceChoice,
        shared::{Handles, window_device},
    },
    engine::{Command, Event, Handle},
};
use bit_diffusion_ui::{Link, Studio};
use burn::tensor::wgpu::wgpu::{Instance, RequestAdapterOptions};
use common::{finish, shown, slide, wait_for};
use egui::TextureId;
use egui_kittest::Harness;

/// What is there at once outside of a browser.
fn now<T>(future: impl Future<Output = T>) -> T {
    let Poll::Ready(found) = pin!(future).poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("adapters and devices take no time to find")
    };
    found
}

/// What a window would have.
fn window() -> Option<Handles> {
    let instance = Instance::default();
    let Ok(adapter) = now(instance.request_adapter(&RequestAdapterOptions::default())) else {
        writeln!(std::io::stderr(), "live: SKIPPED, there is no graphics driver").expect("standard error is open");
        return None;
    };
    let (device, queue) = now(adapter.request_device(&window_device(&adapter))).unwrap();
    Some(Handles { instance, adapter, device, queue })
}

/// An engine of which nothing is heard after the second step is drawn, until it is let go on.
struct Held {
    engine: Handle,
    is_held: Rc<Cell<bool>>,
}

impl Link for Held {
    fn send(&mut self, command: Command) {
        self.engine.send(command);
    }

    fn try_recv(&mut self) -> Option<Event> {
        let event = if self.is_held.get() { None } else { self.engine.try_recv() };
        if let Some(Event::Live { step, .. }) = &event {
            self.is_held.set(step.step == 1);
        }
        event
    }

    fn n_evaluations(&self) -> u64 {
        self.engine.n_evaluations()
    }
}

#[test]
fn a_step_is_shown_before_its_numbers_are_here() {
    let Some(window) = window() else { return };
    let engine = Handle::start_beside(DeviceChoice::Wgpu(None), window, || {}).unwrap();
    let (is_held, bound) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0)));
    let mut studio = Studio::new(Box::new(Held { engine, is_held: is_held.clone() }));
    studio.restore(
        r#"{"model": {"Perfect": {"n_scenes": 8, "encoding": "Gray", "trust": 0.0}}, "chain": {"n": 4, "settings": {"n_steps": 5}}}"#,
    );
    let counted = bound.clone();
    studio.draw_live(Box::new(move |picture, before| {
        assert_eq!((picture.size(), before), ([33, 33], None));
        counted.set(counted.get() + 1);
        TextureId::User(counted.get())
    }));
    let mut harness =
        Harness::builder().with_size([1280.0, 800.0]).build_ui_state(|ui, studio: &mut Studio| studio.ui(ui), studio);
    harness.run_steps(2);
    // Waits at the end for what comes.
    slide(&mut harness, "step", 5.0);
    wait_for(&mut harness, "the second step is drawn", |_| is_held.get());
    harness.run_steps(2);
    assert_eq!(harness.state().progress(), (1, 5));
    assert_eq!(bound.get(), 2, "the state and the estimate");
    assert_eq!(shown(&harness, "Samples of chain 1: estimate x_pred, step 2").len(), 1);
    is_held.set(false);
    finish(&mut harness);
    harness.run_steps(2);
    assert_eq!(shown(&harness, "Samples of chain 1: estimate x_pred, step 5").len(), 1);
    assert_eq!(bound.get(), 2, "once for each texture");
}
