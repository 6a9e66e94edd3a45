//! The log of a training run: a line for each step, in a file that spreadsheets read.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{BufWriter, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context as _, Result, bail};
use bit_diffusion::train::Progress;

const HEADER: &str = "step,loss,gradient_norm,learning_rate,seconds\n";

/// A log that is being written. It is locked: a second program cannot train into the same folder.
pub(crate) struct Log {
    path: PathBuf,
    file: BufWriter<File>,
    /// What earlier parts of the run took.
    seconds_before: f64,
    started: Instant,
}

impl Log {
    /// Opens the log of a run that has made `n_steps` steps; lines of later steps, which were never saved, are cut off.
    pub fn open(path: &Path, n_steps: usize) -> Result<Self> {
        let failed = || format!("cannot write the log {}", path.display());
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = options.with_context(failed)?;
        // Any other error is let pass: some network file systems have no locks.
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            bail!(
                "another program is training in this folder; wait for it, or use another one with --out: {}",
                path.display()
            )
        }
        let mut text = String::new();
        file.read_to_string(&mut text).with_context(failed)?;
        let (kept, seconds_before) = keep(&text, n_steps);
        file.set_len(kept as u64).with_context(failed)?;
        file.seek(SeekFrom::End(0)).with_context(failed)?;
        if kept == 0 {
            file.write_all(HEADER.as_bytes()).with_context(failed)?;
        }
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), seconds_before, started: Instant::now() })
    }

    /// Adds a line.
    pub fn row(&mut self, progress: &Progress) -> Result<()> {
        let Progress { n_steps, loss, gradient_norm, learning_rate } = progress;
        let seconds = self.seconds_before + self.started.elapsed().as_secs_f64();
        writeln!(self.file, "{n_steps},{loss},{gradient_norm},{learning_rate},{seconds:.3}")
            .with_context(|| format!("cannot write the log {}", self.path.display()))
    }

    /// Brings all lines to the file.
    pub fn flush(&mut self) -> Result<()> {
        self.file.flush().with_context(|| format!("cannot write the log {}", self.path.display()))
    }
}

/// How many bytes of a log belong to the first `n_steps` steps, and how many seconds those took.
fn keep(text: &str, n_steps: usize) -> (usize, f64) {
    let (mut kept, mut seconds) = (0, 0.0);
    for line in text.split_inclusive('\n') {
        let is_header = line == HEADER;
        let mut fields = line.trim_end().split(',');
        let step = fields.next().and_then(|step| step.parse::<usize>().ok());
        let is_kept = line.ends_with('\n') && (is_header || step.is_some_and(|step| step <= n_steps));
        if !is_kept {
            break;
        }
        kept += line.len();
        seconds = fields.next_back().and_then(|seconds| seconds.parse().ok()).unwrap_or(seconds);
    }
    (kept, seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn progress(n_steps: usize) -> Progress {
        Progress { n_steps, loss: 0.5, gradient_norm: 1.0, learning_rate: 1e-3 }
    }

    #[test]
    fn lines_that_were_never_saved_are_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        let mut log = Log::open(&path, 0).unwrap();
        for step in 1..=3 {
            log.row(&progress(step)).unwrap();
        }
        log.flush().unwrap();
        drop(log);
        // The last line was cut off by a crash.
        let text = fs::read_to_string(&path).unwrap() + "4,0.1";
        fs::write(&path, text).unwrap();
        let mut log = Log::open(&path, 2).unwrap();
        log.row(&progress(3)).unwrap();
        log.flush().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let steps: Vec<&str> = text.lines().map(|line| line.split(',').next().unwrap()).collect();
        assert_eq!(steps, ["step", "1", "2", "3"]);
    }

    #[test]
    fn one_program_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        let _first = Log::open(&path, 0).unwrap();
        let error = Log::open(&path, 0).err().unwrap().to_string();
        assert!(error.contains("another program"), "{error}");
    }

    #[test]
    fn the_seconds_go_on() {
        let text = format!("{HEADER}1,0.5,1,0.1,2.5\n2,0.5,1,0.1,4.5\n");
        assert_eq!(keep(&text, 1), (HEADER.len() + "1,0.5,1,0.1,2.5\n".len(), 2.5));
        assert_eq!(keep("", 5), (0, 0.0));
        assert_eq!(keep("something else", 5), (0, 0.0));
    }
}
