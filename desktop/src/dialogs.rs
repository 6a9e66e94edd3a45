//! The system's file dialogs: what to open, and where to save.
//!
//! A dialog is waited for on a thread of its own, which reads and writes the files too: no frame waits. What came of it is asked for once a
//! frame. A machine without dialogs saves into the current folder, and says how to open a file without one.

use std::{
    fs,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use bit_diffusion_ui::files::Save;
use eframe::egui;
use rfd::{AsyncFileDialog, FileHandle};

use crate::{keep, save::write_atomically};

/// What a machine without dialogs is told.
const NO_DIALOG: &str = "this machine shows no file dialogs (on Linux, xdg-desktop-portal or zenity does): drop the file on the window \
                         to open it";

/// What came of a dialog.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A file that was chosen.
    Opened {
        /// Its name, without a folder.
        name: String,
        /// What is in it.
        bytes: Arc<[u8]>,
    },
    /// Something to tell the person.
    Note(String),
    /// Something that could not be done.
    Error(String),
}

/// A dialog that is, or is about to be, on the screen.
type Showing<T> = Pin<Box<dyn Future<Output = Option<T>> + Send>>;

/// The dialogs on the screen.
pub(crate) struct Dialogs {
    context: egui::Context,
    answers: Receiver<Option<Answer>>,
    /// Every thread sends its answers through one of these, and `None` when it has no more.
    sender: Sender<Option<Answer>>,
    n_open: usize,
}

impl Dialogs {
    /// No dialogs; `context` is drawn anew when one has an answer.
    pub fn new(context: egui::Context) -> Self {
        let (sender, answers) = channel();
        Self { context, answers, sender, n_open: 0 }
    }

    /// What came of dialogs since the last call; never waits.
    pub fn answers(&mut self) -> Vec<Answer> {
        let all: Vec<Option<Answer>> = self.answers.try_iter().collect();
        self.n_open -= all.iter().filter(|answer| answer.is_none()).count();
        all.into_iter().flatten().collect()
    }

    /// Asks which files to open, unless a dialog is on the screen already.
    pub fn open(&mut self, frame: &eframe::Frame) {
        if self.n_open > 0 {
            return;
        }
        // Made here and waited for there: macOS wants it so.
        let dialog = AsyncFileDialog::new()
            .set_title("Open a model, a checkpoint or pictures")
            .add_filter("Models and pictures", &["safetensors", "png", "jpg", "jpeg"])
            .set_parent(frame);
        let showing: Showing<Vec<FileHandle>> = Box::pin(dialog.pick_files());
        self.spawn(move |tell| {
            let chosen = if can_ask() { pollster::block_on(showing) } else { None };
            match chosen {
                Some(files) => files.iter().map(|file| read(file.path())).for_each(tell),
                // Elsewhere, nothing was chosen.
                None if cfg!(target_os = "linux") => tell(Answer::Error(NO_DIALOG.to_owned())),
                None => {}
            }
        });
    }

    /// Asks where to save: for one file its place, for more a folder.
    pub fn save(&mut self, saves: Vec<Save>, frame: &eframe::Frame) {
        let dialog = AsyncFileDialog::new().set_parent(frame);
        let showing: Showing<FileHandle> = match &saves[..] {
            [] => return,
            [save] => Box::pin(dialog.set_title("Save as").set_file_name(&save.name).save_file()),
            more => Box::pin(dialog.set_title(format!("Save {} files in a folder", more.len())).pick_folder()),
        };
        self.spawn(move |tell| {
            let place = if can_ask() {
                pollster::block_on(showing).map(|file| file.path().to_owned())
            } else {
                Some(std::env::current_dir().unwrap_or_default())
            };
            match place {
                Some(place) => tell(write(&saves, &place)),
                None => tell(Answer::Note("Not saved: no place was chosen".to_owned())),
            }
        });
    }

    fn spawn(&mut self, work: impl FnOnce(&mut dyn FnMut(Answer)) + Send + 'static) {
        let (sender, context) = (self.sender.clone(), self.context.clone());
        self.n_open += 1;
        thread::spawn(move || {
            let send = |answer| {
                // Nobody listens any more: the window is closed.
                let _ = sender.send(answer);
                context.request_repaint();
            };
            work(&mut |answer| send(Some(answer)));
            send(None);
        });
    }
}

fn read(path: &Path) -> Answer {
    match fs::read(path) {
        Ok(bytes) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Answer::Opened { name, bytes: bytes.into() }
        }
        Err(error) => Answer::Error(format!("cannot read the file: {error}: {}", path.display())),
    }
}

/// Writes files into a folder, over nothing that is there, or one file to its place.
fn write(saves: &[Save], place: &Path) -> Answer {
    let mut written = Vec::new();
    for save in saves {
        let path: PathBuf = if place.is_dir() { keep::unused(place, &save.name) } else { place.to_owned() };
        if let Err(error) = write_atomically(&path, &save.bytes) {
            return Answer::Error(format!("{error:#}"));
        }
        written.push(path.display().to_string());
    }
    Answer::Note(format!("Saved: {}", written.join(", ")))
}

/// Whether this machine has dialogs; it takes a moment to say.
#[cfg(target_os = "linux")]
fn can_ask() -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join("zenity").is_file())
        || pollster::block_on(has_portal()).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn can_ask() -> bool {
    true
}

/// Fails where no portal runs or can be started.
#[cfg(target_os = "linux")]
async fn has_portal() -> zbus::Result<()> {
    let bus = zbus::Connection::session().await?;
    let portal = zbus::names::WellKnownName::try_from("org.freedesktop.portal.Desktop")?;
    zbus::fdo::DBusProxy::new(&bus).await?.start_service_by_name(portal, 0).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, bytes: &[u8]) -> Save {
        Save { name: name.to_owned(), bytes: bytes.into() }
    }

    #[test]
    fn one_file_goes_to_its_place_and_more_into_a_folder_over_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("mine.png");
        let note = write(&[file("chain.png", b"new")], &place);
        assert_eq!(note, Answer::Note(format!("Saved: {}", place.display())));
        assert_eq!(read(&place), Answer::Opened { name: "mine.png".to_owned(), bytes: b"new".as_slice().into() });
        write(&[file("mine.png", b"other"), file("b.csv", b"b")], folder.path());
        assert_eq!(fs::read(&place).unwrap(), b"new");
        assert_eq!(fs::read(folder.path().join("mine-2.png")).unwrap(), b"other");
        assert_eq!(fs::read(folder.path().join("b.csv")).unwrap(), b"b");
    }

    #[test]
    fn what_cannot_be_read_or_written_is_said_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("missing").join("a.png");
        for answer in [read(&place), write(&[file("a.png", b"a")], &place)] {
            let Answer::Error(error) = answer else { panic!("{answer:?}") };
            assert!(error.ends_with("a.png") || error.contains("a.png: "), "{error}");
        }
    }

    #[test]
    fn answers_come_without_waiting_and_one_dialog_at_a_time_is_open() {
        let mut dialogs = Dialogs::new(egui::Context::default());
        let (go, wait) = channel::<()>();
        dialogs.spawn(move |tell| {
            let _ = wait.recv();
            tell(Answer::Note("done".to_owned()));
        });
        assert_eq!((dialogs.answers(), dialogs.n_open), (Vec::new(), 1));
        go.send(()).unwrap();
        let mut answers = Vec::new();
        while dialogs.n_open > 0 {
            answers.extend(dialogs.answers());
            thread::yield_now();
        }
        assert_eq!(answers, [Answer::Note("done".to_owned())]);
    }
}
