//! Finds the captioned pictures of a folder, and opens them.
//!
//! Deliberately absent: the shapes, which need no folder.

use std::{
    fs::{self, File},
    path::Path,
};

use anyhow::{Context as _, Result, bail};
use bit_diffusion::data::coco::Coco;

use crate::data::{Split, file_names, is_a, open_file};

/// Opens the archive and the table of a folder, those with `train` in their names, or with `val` or `test`; pictures come out with `size` ×
/// `size` pixels.
pub(crate) fn open_coco(dir: &Path, split: Split, size: usize) -> Result<Coco<File>> {
    let names = file_names(dir).with_context(|| format!("cannot list the folder {}", dir.display()))?;
    let words: &[&str] = match split {
        Split::Train => &["train"],
        Split::Test => &["val", "test"],
    };
    let find = |extension: &str, what: &str| {
        let fits = |name: &&String| is_a(name, extension) && words.iter().any(|word| name.contains(word));
        let found: Vec<&String> = names.iter().filter(fits).collect();
        match found.as_slice() {
            [one] => Ok(dir.join(one)),
            [] => bail!(
                "there is no {what}, a .{extension} file with {} in its name, in {}",
                words.join(" or "),
                dir.display()
            ),
            [first, second, ..] => bail!(
                "there is more than one {what}, {first} and {second}; put each data set into a folder of its own, in {}",
                dir.display()
            ),
        }
    };
    let (archive, archive_name) = open_file(&find("tar", "archive of pictures")?)?;
    let table = find("tsv", "table of captions")?;
    let table_name = table.display().to_string();
    let table = fs::read(&table).with_context(|| format!("cannot read {table_name}"))?;
    Ok(Coco::open((archive, &archive_name), (&table, &table_name), size)?)
}
