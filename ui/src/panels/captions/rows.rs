//! The rows of the table: the same pictures captioned with more and more steps, and one word after the other.
//!
//! Each row has a slot of its own. They run one after the other, the chosen one first, so that the first captions are there soon; what was
//! asked for with other settings is dropped.

use std::sync::Arc;

use bit_diffusion::engine::{CaptionRequest, CaptionStep, CaptionView, CaptionerInfo, Command, Event, Slot};

use crate::session::Session;

/// The numbers of steps that are compared, as in the paper's Table 5, and a few below.
pub(super) const STEPS: [usize; 6] = [1, 2, 5, 10, 20, 40];

/// The row of the autoregressive captioner, below the others.
pub(super) const AUTOREGRESSIVE: usize = STEPS.len();

/// How many rows there are.
pub(super) const N_ROWS: usize = STEPS.len() + 1;

/// What is going on with the newest request of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing was asked for, or it is outdated.
    Idle,
    /// It was asked for; what is shown is still from before.
    Waiting,
    /// Its first step is here.
    Coming,
    /// All steps are here.
    Complete,
    /// It is outdated and about to end.
    Dropping,
    /// A person cancelled it.
    Stopped,
    /// It cannot be done.
    Failed,
}

/// What a row shows.
pub(super) struct Made {
    /// What was asked.
    pub request: Arc<CaptionRequest>,
    /// Who wrote it.
    pub captioner: CaptionerInfo,
    /// The steps that are here.
    pub steps: Vec<Arc<CaptionStep>>,
}

impl Made {
    /// The newest caption of a picture.
    pub fn caption(&self, picture: usize) -> Option<&CaptionView> {
        self.steps.last()?.captions.get(picture)
    }

    /// How many captions are true of their pictures, and of how many that can be said.
    pub fn n_true(&self) -> (usize, usize) {
        let captions = self.steps.last().map_or(&[][..], |step| &step.captions);
        let known = captions.iter().filter_map(|caption| caption.is_true);
        known.fold((0, 0), |(n_true, n), is_true| (n_true + usize::from(is_true), n + 1))
    }
}

/// One row.
pub(super) struct Row {
    slot: Slot,
    asked: Option<CaptionRequest>,
    pub phase: Phase,
    /// What has begun and has no step yet.
    begun: Option<Made>,
    /// What is shown: of the newest request, or still of the one before.
    pub made: Option<Made>,
}

impl Row {
    fn new(slot: Slot) -> Self {
        Self { slot, asked: None, phase: Phase::Idle, begun: None, made: None }
    }

    fn is_under_way(&self) -> bool {
        matches!(self.phase, Phase::Waiting | Phase::Coming)
    }

    /// Whether what is shown belongs to this request.
    pub fn is_of(&self, request: Option<&CaptionRequest>) -> bool {
        self.made.as_ref().is_some_and(|made| request == Some(&made.request))
    }

    fn ask(&mut self, request: CaptionRequest, session: &mut Session) {
        self.asked = Some(request.clone());
        self.phase = Phase::Waiting;
        self.begun = None;
        session.send(Command::Captions { slot: self.slot, request });
    }

    fn drop_it(&mut self, session: &mut Session) {
        self.asked = None;
        self.phase = Phase::Dropping;
        session.send(Command::Cancel { slot: self.slot });
    }

    fn on_event(&mut self, event: &Event) {
        match event {
            Event::CaptionsStarted { slot, request, captioner, .. }
                if *slot == self.slot && self.asked.as_ref() == Some(&**request) =>
            {
                let (request, captioner) = (request.clone(), captioner.clone());
                self.begun = Some(Made { request, captioner, steps: Vec::new() });
                self.phase = Phase::Waiting;
            }
            Event::Captions { slot, step } if *slot == self.slot => {
                if let Some(begun) = self.begun.take() {
                    self.made = Some(begun);
                    self.phase = Phase::Coming;
                }
                if let (Phase::Coming, Some(made)) = (self.phase, &mut self.made) {
                    made.steps.push(step.clone());
                }
            }
            Event::Finished { slot, .. } if *slot == self.slot && self.phase == Phase::Coming => {
                self.phase = Phase::Complete;
            }
            // Whichever way it ends, it has ended.
            Event::Finished { slot, .. } | Event::Cancelled { slot } | Event::Failed { slot: Some(slot), .. }
                if *slot == self.slot && self.phase == Phase::Dropping =>
            {
                self.phase = Phase::Idle;
            }
            Event::Cancelled { slot } if *slot == self.slot => self.phase = Phase::Stopped,
            Event::Failed { slot: Some(slot), .. } if *slot == self.slot => self.phase = Phase::Failed,
            _ => {}
        }
    }
}

/// All rows.
pub(super) struct Rows {
    rows: [Row; N_ROWS],
    /// Whether a person has cancelled something that is still wanted; nothing new begins until they say so.
    pub is_halted: bool,
}

impl Rows {
    pub fn new(first: Slot) -> Self {
        Self { rows: std::array::from_fn(|row| Row::new(Slot(first.0 + row as u32))), is_halted: false }
    }

    pub fn on_event(&mut self, event: &Event) {
        for row in &mut self.rows {
            row.on_event(event);
        }
    }

    pub fn get(&self, row: usize) -> &Row {
        &self.rows[row]
    }

    pub fn iter(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    /// Goes on after something was cancelled.
    pub fn go_on(&mut self) {
        for row in self.rows.iter_mut().filter(|row| row.phase == Phase::Stopped) {
            row.asked = None;
            row.phase = Phase::Idle;
        }
    }

    /// Asks for what is wanted, one row at a time and the chosen one first; drops what no longer is. Call it once a frame.
    pub fn sync(&mut self, wanted: &[Option<CaptionRequest>; N_ROWS], chosen: usize, session: &mut Session) {
        let is_current = |rows: &[Row; N_ROWS], row: usize| rows[row].asked == wanted[row];
        let order = std::iter::once(chosen).chain(0..N_ROWS);
        let next = order.into_iter().find(|row| {
            wanted[*row].is_some() && !is_current(&self.rows, *row) && self.rows[*row].phase != Phase::Dropping
        });
        for row in 0..N_ROWS {
            // A newer command drops the old one by itself.
            if Some(row) != next && self.rows[row].is_under_way() && !is_current(&self.rows, row) {
                self.rows[row].drop_it(session);
            }
        }
        let is_busy = (0..N_ROWS).any(|row| self.rows[row].is_under_way() && is_current(&self.rows, row));
        self.is_halted = (0..N_ROWS).any(|row| self.rows[row].phase == Phase::Stopped && is_current(&self.rows, row));
        if let Some(row) = next.filter(|_| !is_busy && !self.is_halted)
            && let Some(request) = wanted[row].clone()
        {
            self.rows[row].ask(request, session);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, rc::Rc};

    use bit_diffusion::{
        demo::Demo,
        engine::{CaptionPictures, ModelId},
        sampler::Settings,
    };

    use super::*;
    use crate::session::Link;

    /// Writes down what is sent.
    #[derive(Default, Clone)]
    struct Diary(Rc<RefCell<Vec<String>>>);

    impl Link for Diary {
        fn send(&mut self, command: Command) {
            self.0.borrow_mut().push(match command {
                Command::Captions { slot, request } => format!("{} at {}", slot.0, request.settings.td),
                Command::Cancel { slot } => format!("drop {}", slot.0),
                other => format!("{other:?}"),
            });
        }

        fn try_recv(&mut self) -> Option<Event> {
            None
        }

        fn n_evaluations(&self) -> u64 {
            0
        }
    }

    fn wanted(td: f64) -> [Option<CaptionRequest>; N_ROWS] {
        std::array::from_fn(|_| {
            Some(CaptionRequest {
                model: ModelId::Demo(Demo::ShapesCaptions),
                pictures: CaptionPictures::Shapes { n: 1, seed: 0 },
                seed: 0,
                settings: Settings { td, ..Settings::default() },
                beam: 1,
            })
        })
    }

    #[test]
    fn rows_run_one_after_the_other_and_the_newest_settings_win() {
        let diary = Diary::default();
        let mut session = Session::new(Box::new(diary.clone()));
        let mut rows = Rows::new(Slot(0));
        let said = || std::mem::take(&mut *diary.0.borrow_mut());
        let end = |rows: &mut Rows, slot: u32| {
            rows.rows[slot as usize].phase = Phase::Coming;
            rows.on_event(&Event::Finished { slot: Slot(slot), n_evaluations: 1 });
        };
        rows.sync(&wanted(0.0), 3, &mut session);
        rows.sync(&wanted(0.0), 3, &mut session);
        assert_eq!(said(), ["3 at 0"], "the chosen one, once");
        rows.sync(&wanted(1.0), 3, &mut session);
        assert_eq!(said(), ["3 at 1"], "in its place");
        end(&mut rows, 3);
        rows.sync(&wanted(1.0), 3, &mut session);
        assert_eq!(said(), ["0 at 1"]);
        rows.sync(&wanted(2.0), 3, &mut session);
        assert_eq!(said(), ["drop 0", "3 at 2"]);
        // The dropped one is asked again once it has ended, not before.
        end(&mut rows, 3);
        rows.sync(&wanted(2.0), 3, &mut session);
        assert_eq!(said(), ["1 at 2"]);
        rows.on_event(&Event::Cancelled { slot: Slot(0) });
        end(&mut rows, 1);
        rows.sync(&wanted(2.0), 3, &mut session);
        assert_eq!(said(), ["0 at 2"]);
        // A person cancels: nothing more, until they want to go on.
        rows.on_event(&Event::Cancelled { slot: Slot(0) });
        rows.sync(&wanted(2.0), 3, &mut session);
        assert!(rows.is_halted && said().is_empty());
        rows.go_on();
        rows.sync(&wanted(2.0), 3, &mut session);
        assert_eq!(said(), ["0 at 2"]);
        // What failed is not tried again, and the others go on.
        rows.on_event(&Event::Failed { slot: Some(Slot(0)), message: String::new() });
        rows.sync(&wanted(2.0), 3, &mut session);
        assert_eq!(said(), ["2 at 2"]);
    }
}
