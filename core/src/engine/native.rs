//! The engine on a thread of its own, for programs that have threads.

use std::{
    any::Any,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, TryRecvError, channel},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, JoinHandle, Thread},
};

use super::{Command, Engine, Event};
use crate::device::{DeviceChoice, shared::Handles};

/// As much as a main thread has: gradients of deep networks nest deeply.
const STACK_BYTES: usize = 8 << 20;

/// An engine at work on its own thread, which ends with this.
pub struct Handle {
    /// `None` only while it is dropped.
    commands: Option<Sender<Command>>,
    events: Receiver<Event>,
    evaluations: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Handle {
    /// Starts an engine on a device of choice; `wake` is called after every event, from the engine's thread.
    pub fn start(choice: DeviceChoice, wake: impl Fn() + Send + 'static) -> io::Result<Self> {
        Self::start_with(move || block_on(Engine::open(&choice)), wake)
    }

    /// Starts an engine of a program with a window, whose graphics card it may share.
    pub fn start_beside(choice: DeviceChoice, window: Handles, wake: impl Fn() + Send + 'static) -> io::Result<Self> {
        Self::start_with(move || block_on(Engine::open_beside(&choice, window)), wake)
    }

    /// Starts the engine that `make` returns. It is made on its thread, because tensors must not change threads.
    pub fn start_with(
        make: impl FnOnce() -> Engine + Send + 'static,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let (commands, to_engine) = channel();
        let (from_engine, events) = channel();
        let evaluations = Arc::new(AtomicU64::new(0));
        let counted = evaluations.clone();
        let thread = thread::Builder::new().name("engine".to_owned()).stack_size(STACK_BYTES).spawn(move || {
            let tell = |event| {
                // Nobody listens any more: the next command will not come either.
                let is_heard = from_engine.send(event).is_ok();
                wake();
                is_heard
            };
            let end = catch_unwind(AssertUnwindSafe(|| {
                let mut engine = make();
                engine.desk.evaluations = counted;
                drive(&mut engine, &to_engine, tell);
            }));
            if let Err(panic) = end {
                let reason = reason(panic.as_ref());
                let cure = "start the program again, with the device `cpu` if that does not help";
                tell(Event::Failed { slot: None, message: format!("the engine has stopped ({reason}); {cure}") });
            }
        })?;
        Ok(Self { commands: Some(commands), events, evaluations, thread: Some(thread) })
    }

    /// Sends a command.
    pub fn send(&self, command: Command) {
        // If the thread has ended before this handle, its last event said why.
        if let Some(commands) = &self.commands {
            let _ = commands.send(command);
        }
    }

    /// The next event, if there is one; never waits.
    #[must_use]
    pub fn try_recv(&self) -> Option<Event> {
        self.events.try_recv().ok()
    }

    /// The next event, waited for; `None` if the engine has ended. For command lines and tests; a window uses [`Self::try_recv`].
    #[must_use]
    pub fn recv(&self) -> Option<Event> {
        self.events.recv().ok()
    }

    /// How many times a network was run so far, for chains, sweeps and big steps.
    #[must_use]
    pub fn n_evaluations(&self) -> u64 {
        self.evaluations.load(Ordering::Relaxed)
    }
}

impl Drop for Handle {
    /// Waits for the piece of work under way: a graphics card must not be left in the middle of it.
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Works until there are no more commands to come, or nobody hears the events.
fn drive(engine: &mut Engine, commands: &Receiver<Command>, mut tell: impl FnMut(Event) -> bool) {
    loop {
        // All that has come, before the next piece of work: the newest wins.
        loop {
            match commands.try_recv() {
                Ok(command) => engine.handle(command),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        match catch_unwind(AssertUnwindSafe(|| block_on(engine.work()))) {
            Ok(Some(event)) => {
                if !tell(event) {
                    return;
                }
            }
            Ok(None) => match commands.recv() {
                Ok(command) => engine.handle(command),
                Err(_) => return,
            },
            Err(panic) => {
                let reason = reason(panic.as_ref());
                // A device that is lost may panic when it is asked, too.
                if catch_unwind(AssertUnwindSafe(|| block_on(engine.recover(&reason)))).is_err() {
                    engine.fall_back(&reason);
                }
            }
        }
    }
}

/// What a panic said.
fn reason(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "for no stated reason".to_owned())
}

/// Runs a future on this thread, which sleeps while it waits.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        thread::park();
    }
}
