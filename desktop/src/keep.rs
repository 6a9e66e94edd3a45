//! The settings of the studio between two starts: a file in the user's configuration folder.
//!
//! Deliberately absent: what is in it, which is the `ui` crate's. A file that cannot be read or written is no reason to stop: the studio
//! then starts as it does the first time.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::save::write_atomically;

/// The file, if the user has a configuration folder.
pub(crate) fn file() -> Option<PathBuf> {
    let folder = |name: &str| env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let folder = if cfg!(windows) {
        folder("APPDATA")
    } else if cfg!(target_os = "macos") {
        folder("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")))
    };
    Some(folder?.join("bit-diffusion").join("studio.json"))
}

/// What was kept, if anything.
pub(crate) fn read(file: &Path) -> Option<String> {
    fs::read_to_string(file).ok()
}

/// Keeps a text.
pub(crate) fn write(file: &Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    write_atomically(file, text.as_bytes())
}

/// The first of `name`, `name-2`, `name-3` … (before the ending) that is not there yet.
pub(crate) fn unused(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) => (stem, format!(".{ending}")),
        None => (name, String::new()),
    };
    let others = (2..).map(|number: u64| folder.join(format!("{stem}-{number}{ending}")));
    let mut paths = [path.clone()].into_iter().chain(others);
    paths.find(|path| !path.exists()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_nothing_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a/b/studio.json");
        assert_eq!(read(&file), None);
        write(&file, "one").unwrap();
        write(&file, "two").unwrap();
        assert_eq!(read(&file).as_deref(), Some("two"));
        // A file stands where the folder should be.
        assert!(write(&file.join("studio.json"), "three").is_err());
    }

    #[test]
    fn no_file_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let mut names = Vec::new();
        for _ in 0..3 {
            let path = unused(folder.path(), "chain.png");
            fs::write(&path, "x").unwrap();
            names.push(path.file_name().unwrap().to_owned());
        }
        assert_eq!(names, ["chain.png", "chain-2.png", "chain-3.png"]);
        fs::write(folder.path().join("plain"), "x").unwrap();
        assert_eq!(unused(folder.path(), "plain"), folder.path().join("plain-2"));
    }
}
