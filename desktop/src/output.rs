//! Standard output, for pipes that may be closed early (`bit-diffusion inspect FILE | head`).

use std::io::{ErrorKind, Write as _};

use anyhow::{Context as _, Result};

/// Prints a text. If nobody reads any more, the program has done its work and ends.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        result => result.context("cannot write to standard output"),
    }
}
