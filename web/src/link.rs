//! The engine of the page: a task of the browser's one thread, that hands the thread back after every piece of work.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::poll_fn,
    rc::Rc,
    task::{Poll, Waker},
};

use bit_diffusion::{
    device::{self, DeviceChoice, Opened},
    engine::{Command, Engine, Event},
};
use bit_diffusion_ui::Link;
use eframe::egui;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::js_sys::Promise;

/// The device, and why it is this one.
const WHY: &str = "CPU: pages compute on one thread of the processor";

/// What the task and the studio hand each other.
#[derive(Default)]
struct Shared {
    commands: RefCell<VecDeque<Command>>,
    events: RefCell<VecDeque<Event>>,
    n_evaluations: Cell<u64>,
    /// The task, while it waits for a command.
    sleeper: RefCell<Option<Waker>>,
}

/// The studio's end of the task.
pub(crate) struct Task(Rc<Shared>);

impl Task {
    /// Starts the engine on the processor; `context` is asked to draw after every event.
    pub fn start(context: egui::Context) -> Self {
        let shared = Rc::new(Shared::default());
        spawn_local(drive(shared.clone(), context));
        Self(shared)
    }
}

impl Link for Task {
    fn send(&mut self, command: Command) {
        self.0.commands.borrow_mut().push_back(command);
        if let Some(sleeper) = self.0.sleeper.take() {
            sleeper.wake();
        }
    }

    fn try_recv(&mut self) -> Option<Event> {
        self.0.events.borrow_mut().pop_front()
    }

    fn n_evaluations(&self) -> u64 {
        self.0.n_evaluations.get()
    }
}

/// Works for as long as the page is open.
async fn drive(shared: Rc<Shared>, context: egui::Context) {
    let mut engine = match device::open(&DeviceChoice::Cpu).await {
        Ok(opened) => Engine::new(Opened { description: WHY.to_owned(), ..opened }),
        // Says itself what failed.
        Err(_) => Engine::open(&DeviceChoice::Cpu).await,
    };
    loop {
        // All that has come, before the next piece of work: the newest wins.
        let commands = shared.commands.take();
        commands.into_iter().for_each(|command| engine.handle(command));
        let event = engine.work().await;
        shared.n_evaluations.set(engine.n_evaluations());
        match event {
            Some(event) => {
                shared.events.borrow_mut().push_back(event);
                context.request_repaint();
                hand_back().await;
            }
            None => next_command(&shared).await,
        }
    }
}

/// Waits until there is a command.
async fn next_command(shared: &Shared) {
    poll_fn(|task| {
        if shared.commands.borrow().is_empty() {
            shared.sleeper.replace(Some(task.waker().clone()));
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
}

/// Lets the browser draw and listen before the next piece of work. A promise that is already kept would not: it goes before both.
async fn hand_back() {
    let promise = Promise::new(&mut |resolve, _| {
        if let Some(window) = web_sys::window() {
            let _ = window.set_timeout_with_callback(&resolve);
        }
    });
    let _ = JsFuture::from(promise).await;
}
