//! Files that are either the old one or the new one, whatever happens in between.
//!
//! Deliberately absent: what is in them.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

/// Writes a file so that a crash, a full disk or a power cut leaves the old contents or the new, never a part.
///
/// The bytes go to a file beside it, reach the disk, and then take the old one's place. If anything fails, the file beside it is
/// removed; if the program is killed, the next write uses it again.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    write_atomically_with(path, |file| file.write_all(bytes).with_context(|| cannot_write(path)))
}

/// The same for what does not fit into the memory: `write` is given the file.
pub(crate) fn write_atomically_with(path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let part = part_of(path);
    let written = write_and_rename(&part, path, write);
    if written.is_err() {
        // It may not even be there; the first error is the one to tell.
        let _ = fs::remove_file(&part);
    }
    written
}

/// Context for an error of the file system.
pub(crate) fn cannot_write(path: &Path) -> String {
    format!("cannot write (check the free space and the permissions): {}", path.display())
}

/// The file beside `path` that is written first.
fn part_of(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".part");
    path.with_file_name(name)
}

fn write_and_rename(part: &Path, path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let mut file = File::create(part).with_context(|| cannot_write(path))?;
    write(&mut file)?;
    let synced = file.sync_all();
    drop(file);
    synced.and_then(|()| fs::rename(part, path)).and_then(|()| sync_folder(path)).with_context(|| cannot_write(path))
}

/// Makes a rename last: until its folder reaches the disk, a power cut could undo it.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Folders cannot be synced here.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same as on unix")]
fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn the_new_takes_the_place_of_the_old() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        write_atomically(&path, b"old").unwrap();
        write_atomically(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["a.bin"]);
    }

    #[test]
    fn a_failure_leaves_the_old_and_no_litter() {
        let folder = tempfile::tempdir().unwrap();
        // A folder stands where the file should go: the rename fails after everything has been written.
        let path = folder.path().join("a.bin");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("old"), b"old").unwrap();
        let error = format!("{:#}", write_atomically(&path, b"new").unwrap_err());
        assert!(error.contains("a.bin") && error.contains("free space"), "{error}");
        assert_eq!(fs::read(path.join("old")).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a.bin"]);
        assert!(write_atomically(&folder.path().join("missing/a.bin"), b"new").is_err());
    }

    /// `/dev/full` is a disk without space.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_leaves_the_old_and_no_litter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        fs::write(&path, b"old").unwrap();
        std::os::unix::fs::symlink("/dev/full", part_of(&path)).unwrap();
        let error = format!("{:#}", write_atomically(&path, b"new").unwrap_err());
        assert!(error.contains("No space left"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a.bin"]);
    }
}
