//! The engine of the page: a task of the browser's one thread, that hands the thread back after every piece of work. It fetches the demo models
//! that the engine asks for.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::poll_fn,
    rc::Rc,
    task::{Poll, Waker},
};

use bit_diffusion::{
    demo::Demo,
    device::Opened,
    engine::{Command, Engine, Event},
    pause,
};
use bit_diffusion_ui::Link;
use eframe::egui;
use wasm_bindgen::{JsCast, prelude::Closure};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::js_sys::Uint8Array;

use crate::browser;

/// The folder of the demo models, beside the page.
const MODELS: &str = "models";

/// What the task and the studio hand each other.
struct Shared {
    commands: RefCell<VecDeque<Command>>,
    events: RefCell<VecDeque<Event>>,
    n_evaluations: Cell<u64>,
    /// The task, while it waits for a command.
    sleeper: RefCell<Option<Waker>>,
    /// The demo models that are on their way.
    fetched: RefCell<Vec<Demo>>,
    context: egui::Context,
}

impl Shared {
    fn send(&self, command: Command) {
        self.commands.borrow_mut().push_back(command);
        if let Some(sleeper) = self.sleeper.take() {
            sleeper.wake();
        }
    }

    fn tell(&self, event: Event) {
        self.events.borrow_mut().push_back(event);
        self.context.request_repaint();
    }
}

/// The studio's end of the task.
pub(crate) struct Task(Rc<Shared>);

impl Task {
    /// Starts the engine on a device; `context` is asked to draw after every event.
    pub fn start(opened: Opened, context: egui::Context) -> Self {
        pause::install(|| Box::pin(hand_back()));
        let shared = Rc::new(Shared {
            commands: RefCell::default(),
            events: RefCell::default(),
            n_evaluations: Cell::new(0),
            sleeper: RefCell::default(),
            fetched: RefCell::default(),
            context,
        });
        spawn_local(drive(shared.clone(), opened));
        Self(shared)
    }
}

impl Link for Task {
    fn send(&mut self, command: Command) {
        self.0.send(command);
    }

    fn try_recv(&mut self) -> Option<Event> {
        self.0.events.borrow_mut().pop_front()
    }

    fn n_evaluations(&self) -> u64 {
        self.0.n_evaluations.get()
    }
}

/// Works for as long as the page is open.
async fn drive(shared: Rc<Shared>, opened: Opened) {
    let mut engine = Engine::new(opened);
    loop {
        // All that has come, before the next piece of work: the newest wins.
        let commands = shared.commands.take();
        for command in commands {
            engine.handle(command);
        }
        let event = engine.work().await;
        shared.n_evaluations.set(engine.n_evaluations());
        match event {
            Some(Event::Wanted { demo }) => spawn_local(fetch(demo, shared.clone())),
            Some(event) => {
                shared.tell(event);
                hand_back().await;
            }
            None => next_command(&shared).await,
        }
    }
}

/// Lets the browser draw and listen.
async fn hand_back() {
    // Never fails: nobody breaks this promise.
    let _ = JsFuture::from(browser::hand_back()).await;
}

/// Fetches a demo model for the engine, unless that is under way.
async fn fetch(demo: Demo, shared: Rc<Shared>) {
    if shared.fetched.borrow().contains(&demo) {
        return;
    }
    shared.fetched.borrow_mut().push(demo);
    let told = shared.clone();
    let tell = Closure::<dyn FnMut(f64, Option<f64>)>::new(move |received: f64, total: Option<f64>| {
        told.tell(Event::Fetching { demo, received: received as usize, total: total.map(|total| total as usize) });
    });
    let path = format!("{MODELS}/{}", demo.file_name());
    let answer = browser::fetch_file(&path, tell.as_ref().unchecked_ref()).await;
    let file = match answer.and_then(JsCast::dyn_into::<Uint8Array>) {
        Ok(bytes) => {
            let n = bytes.length() as usize;
            shared.tell(Event::Fetching { demo, received: n, total: Some(n) });
            Ok(bytes.to_vec().into())
        }
        Err(error) => Err(browser::words(&error)),
    };
    shared.fetched.borrow_mut().retain(|other| *other != demo);
    shared.send(Command::Bring { demo, file });
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
