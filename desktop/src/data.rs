//! Finds out what data a folder has, and opens them.
//!
//! Deliberately absent: options that name a format; the names of the files say it. Deliberately absent too: downloads.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use bit_diffusion::data::{
    Concat, Padded, Pictures, cifar10::Cifar10, folder, folder::Folder, imagenet64::ImageNet64, mnist::Mnist, shapes,
    shapes::Shapes,
};

/// The largest picture file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// The size that MNIST's 28 × 28 pixels are padded to, on request: a network halves it several times.
const PADDED_MNIST: [usize; 2] = [28, 32];

/// What the pictures are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// To train on.
    Train,
    /// To test with.
    Test,
}

/// Opens the data of a folder, for a network of `size` × `size` pixels and 1 or 3 channels; no folder means the shapes world.
///
/// The names of the files say what they are: CIFAR-10, MNIST and its relatives, downsampled ImageNet, or else picture files,
/// which are cut and resized. A folder of picture files without `train` and `test` (or `val`) has the same for both splits.
pub fn open(dir: Option<&Path>, split: Split, size: usize, channels: usize) -> Result<Box<dyn Pictures>> {
    let Some(dir) = dir else {
        let shapes = Shapes::new(shapes::SEEDS[split as usize]);
        return fitting(Box::new(shapes), size, channels).context(
            "the shapes do not fit; name a folder of pictures, or use a network of 16 × 16 pixels and 3 channels",
        );
    };
    let name = dir.display();
    let names = file_names(dir).with_context(|| format!("cannot list the folder {name}"))?;
    let has = |wanted: &str| names.contains(wanted);

    let is_cifar10 = |name: &String| name.starts_with("data_batch_") && is_a(name, "bin") || name == "test_batch.bin";
    if names.iter().any(is_cifar10) {
        return fitting(cifar10(dir, split)?, size, channels).with_context(|| format!("CIFAR-10 in {name}"));
    }
    let (separators, prefixes) = (["-", "."], ["train", "t10k"]);
    let is_mnist = |suffix: &str| {
        let mut files = prefixes.iter().flat_map(|prefix| separators.map(|separator| (prefix, separator)));
        files.any(|(prefix, separator)| has(&format!("{prefix}-images{separator}idx3-ubyte{suffix}")))
    };
    if is_mnist("") {
        let mnist = mnist(dir, split, &names)?;
        let pad = [mnist.size(), size] == PADDED_MNIST;
        let pictures: Box<dyn Pictures> = if pad { Box::new(Padded::new(mnist, size)?) } else { Box::new(mnist) };
        return fitting(pictures, size, channels).with_context(|| format!("MNIST in {name}"));
    }
    if is_mnist(".gz") {
        bail!("MNIST's files are compressed; unpack them with `gunzip *.gz`, in {name}");
    }
    let is_imagenet = |name: &String| is_a(name, "npz") && (name.starts_with("train_data") || name == "val_data.npz");
    if names.iter().any(is_imagenet) {
        return fitting(imagenet(dir, split, &names)?, size, channels).with_context(|| format!("ImageNet in {name}"));
    }
    picture_files(dir, split, size, channels)
}

/// The pictures, if they are what the network wants.
fn fitting(pictures: Box<dyn Pictures>, size: usize, channels: usize) -> Result<Box<dyn Pictures>> {
    let (its_size, its_channels) = (pictures.size(), pictures.channels());
    if (its_size, its_channels) != (size, channels) {
        bail!(
            "the pictures have {its_size} × {its_size} pixels and {its_channels} channels, but the network {size} × {size} and \
             {channels}; use a network of the pictures' shape, or a folder of PNG or JPEG files, which are resized"
        );
    }
    Ok(pictures)
}

/// CIFAR-10's binary batches.
fn cifar10(dir: &Path, split: Split) -> Result<Box<dyn Pictures>> {
    let files = match split {
        Split::Train => (1..=5).map(|i| format!("data_batch_{i}.bin")).collect(),
        Split::Test => vec!["test_batch.bin".to_owned()],
    };
    let open = |name: &String| {
        let (file, path) = open_file(&dir.join(name))?;
        Ok(Cifar10::open(file, &path)?)
    };
    let parts = files.iter().map(open).collect::<Result<_>>()?;
    Ok(Box::new(Concat::new(parts)?))
}

/// MNIST's pair of files; some write `.idx` for `-idx`.
fn mnist(dir: &Path, split: Split, names: &BTreeSet<String>) -> Result<Mnist<File>> {
    let prefix = match split {
        Split::Train => "train",
        Split::Test => "t10k",
    };
    let open = |rest: [&str; 2]| {
        let [dash, dot] = ["-", "."].map(|separator| format!("{prefix}-{}{separator}{}", rest[0], rest[1]));
        open_file(&dir.join(if names.contains(&dot) { dot } else { dash }))
    };
    let (pictures, pictures_path) = open(["images", "idx3-ubyte"])?;
    let (labels, labels_path) = open(["labels", "idx1-ubyte"])?;
    Ok(Mnist::open((pictures, &pictures_path), (labels, &labels_path))?)
}

/// ImageNet's archives, all that there are, in the order of their numbers.
fn imagenet(dir: &Path, split: Split, names: &BTreeSet<String>) -> Result<Box<dyn Pictures>> {
    let mut files: Vec<&String> = match split {
        Split::Train => names.iter().filter(|name| name.starts_with("train_data") && is_a(name, "npz")).collect(),
        Split::Test => names.iter().filter(|name| *name == "val_data.npz").collect(),
    };
    if files.is_empty() {
        let wanted = match split {
            Split::Train => "train_data_batch_1.npz to train_data_batch_10.npz",
            Split::Test => "val_data.npz",
        };
        bail!("{wanted} must be there for this split, but is not, in {}", dir.display());
    }
    // By length first, so that 10 comes after 9.
    files.sort_by_key(|name| (name.len(), *name));
    let open = |name: &&String| {
        let (file, path) = open_file(&dir.join(name))?;
        Ok(ImageNet64::open(file, &path)?)
    };
    let parts = files.iter().map(open).collect::<Result<_>>()?;
    Ok(Box::new(Concat::new(parts)?))
}

/// PNG and JPEG files: the class of one is the sub-folder that it is in.
fn picture_files(dir: &Path, split: Split, size: usize, channels: usize) -> Result<Box<dyn Pictures>> {
    let split_dir = |names: &[&str]| names.iter().map(|name| dir.join(name)).find(|path| path.is_dir());
    let splits = [split_dir(&["train"]), split_dir(&["test", "val"])];
    let root = match &splits {
        [None, None] => dir,
        splits => splits[split as usize].as_deref().with_context(|| match split {
            Split::Train => format!("there are pictures to test with, but no folder train, in {}", dir.display()),
            Split::Test => format!("there are pictures to train on, but no folder test or val, in {}", dir.display()),
        })?,
    };
    let (flat, folders) = (pictures_in(root)?, sub_folders(root)?);
    let mut pictures: Vec<(PathBuf, Option<String>)> = flat.iter().map(|path| (path.clone(), None)).collect();
    for folder in &folders {
        let within = pictures_in(&root.join(folder))?;
        pictures.extend(within.into_iter().map(|path| (path, Some(folder.clone()))));
    }
    if pictures.is_empty() {
        bail!(
            "there are no data that this program knows; it looked for CIFAR-10 (data_batch_1.bin … data_batch_5.bin, test_batch.bin), \
             MNIST (train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-…), ImageNet (train_data_batch_1.npz …, val_data.npz) and \
             .png, .jpg or .jpeg files, in it or in its folders, one a class, perhaps within train and test: {}",
            root.display()
        );
    }
    if !flat.is_empty() && pictures.len() > flat.len() {
        bail!(
            "there are pictures both in the folder and in its folders; move them all into folders, one a class, or all out of them: {}",
            root.display()
        );
    }
    // The classes of all splits, so that a class has the same number in each of them.
    let mut classes = BTreeSet::new();
    for root in splits.iter().flatten().map(PathBuf::as_path).chain([root]) {
        for folder in sub_folders(root)? {
            if !pictures_in(&root.join(&folder))?.is_empty() {
                classes.insert(folder);
            }
        }
    }
    // A single class tells nothing.
    let n_classes = if flat.is_empty() && classes.len() > 1 { classes.len() } else { 0 };
    let entry = |(path, class): (PathBuf, Option<String>)| {
        let class = class.and_then(|class| classes.iter().position(|known| *known == class)).unwrap_or(0);
        Ok(folder::Entry { name: text(&path)?, class })
    };
    let entries = pictures.into_iter().map(entry).collect::<Result<_>>()?;
    let read = |name: &str| read_file(Path::new(name));
    Ok(Box::new(Folder::new(entries, n_classes, channels, size, read)?))
}

/// The bytes of a picture file, unless it is far too large for one.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("the file has more than {} MiB", MAX_FILE_BYTES >> 20)));
    }
    Ok(bytes)
}

/// A file, and its name for messages.
pub(crate) fn open_file(path: &Path) -> Result<(File, String)> {
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
    Ok((file, name))
}

/// A path as text.
fn text(path: &Path) -> Result<String> {
    path.to_str().map(ToOwned::to_owned).with_context(|| format!("the name is not UTF-8; rename {}", path.display()))
}

/// Whether a name ends with a dot and this, in any case.
pub(crate) fn is_a(name: &str, extension: &str) -> bool {
    Path::new(name).extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

/// What is in a folder: its path and name, in the order of the names; hidden ones are left out.
fn listing(dir: &Path) -> Result<Vec<(PathBuf, String)>> {
    let list = || {
        let mut all = vec![];
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') {
                all.push((entry.path(), name));
            }
        }
        all.sort();
        io::Result::Ok(all)
    };
    list().with_context(|| format!("cannot list the folder {}", dir.display()))
}

/// The names of the files in a folder.
pub(crate) fn file_names(dir: &Path) -> Result<BTreeSet<String>> {
    Ok(listing(dir)?.into_iter().filter(|(path, _)| path.is_file()).map(|(_, name)| name).collect())
}

/// The names of the folders in a folder.
fn sub_folders(dir: &Path) -> Result<BTreeSet<String>> {
    Ok(listing(dir)?.into_iter().filter(|(path, _)| path.is_dir()).map(|(_, name)| name).collect())
}

/// The picture files that stand directly in a folder, in the order of their names.
fn pictures_in(dir: &Path) -> Result<Vec<PathBuf>> {
    let is_picture = |(path, name): &(PathBuf, String)| {
        ["png", "jpg", "jpeg"].iter().any(|extension| is_a(name, extension)) && path.is_file()
    };
    Ok(listing(dir)?.into_iter().filter(is_picture).map(|(path, _)| path).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{Rgb, RgbImage};
    use tempfile::{TempDir, tempdir};

    /// A folder with files of these names and bytes.
    fn folder(files: &[(&str, Vec<u8>)]) -> TempDir {
        let dir = tempdir().unwrap();
        for (name, bytes) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        dir
    }

    /// A PNG of one colour.
    fn png(red: u8) -> Vec<u8> {
        let mut bytes = io::Cursor::new(vec![]);
        RgbImage::from_pixel(3, 2, Rgb([red, 0, 0])).write_to(&mut bytes, image::ImageFormat::Png).unwrap();
        bytes.into_inner()
    }

    /// The first value and the class of every picture.
    fn read_all(pictures: &mut dyn Pictures) -> Vec<(u8, usize)> {
        let indices = 0..pictures.n_examples();
        let read = |i| pictures.read(i).map(|picture| (picture.pixels[0], picture.class)).unwrap();
        indices.map(read).collect()
    }

    #[track_caller]
    fn assert_fails(dir: Option<&TempDir>, split: Split, shape: [usize; 2], words: &[&str]) {
        let Err(error) = open(dir.map(TempDir::path), split, shape[0], shape[1]) else {
            panic!("opened");
        };
        let message = format!("{error:#}");
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }

    #[test]
    fn no_folder_means_shapes() {
        let mut train = open(None, Split::Train, 16, 3).unwrap();
        let mut test = open(None, Split::Test, 16, 3).unwrap();
        let read = |pictures: &mut dyn Pictures| (0..10).map(|i| pictures.read(i).unwrap().pixels).collect::<Vec<_>>();
        assert_ne!(read(train.as_mut()), read(test.as_mut()));
        assert_fails(None, Split::Train, [32, 3], &["16 × 16 pixels and 3 channels", "name a folder"]);
        assert_fails(None, Split::Train, [16, 1], &["16 × 16 pixels and 3 channels"]);
    }

    #[test]
    fn cifar10_is_all_batches() {
        let batch = |class: u8| [[class; 3073], [class + 1; 3073]].concat();
        let names =
            ["data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"];
        let mut files: Vec<(&str, Vec<u8>)> = names.iter().zip(0..).map(|(name, i)| (*name, batch(i))).collect();
        files.push(("test_batch.bin", batch(8)));
        let dir = folder(&files);
        let mut train = open(Some(dir.path()), Split::Train, 32, 3).unwrap();
        assert_eq!(train.n_classes(), 10);
        let values = [0, 1, 1, 2, 2, 3, 3, 4, 4, 5].map(|class| (class, usize::from(class)));
        assert_eq!(read_all(train.as_mut()), values);
        let mut test = open(Some(dir.path()), Split::Test, 32, 3).unwrap();
        assert_eq!(read_all(test.as_mut()), [(8, 8), (9, 9)]);
        assert_fails(Some(&dir), Split::Train, [64, 3], &["32 × 32 pixels and 3 channels, but the network 64 × 64"]);
        fs::remove_file(dir.path().join("data_batch_4.bin")).unwrap();
        assert_fails(Some(&dir), Split::Train, [32, 3], &["cannot open", "data_batch_4.bin"]);
        assert!(open(Some(dir.path()), Split::Test, 32, 3).is_ok());
    }

    #[test]
    fn mnist_is_padded_for_a_network_of_32_pixels() {
        let pictures = [vec![0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 28], vec![200; 784]].concat();
        let labels = vec![0, 0, 8, 1, 0, 0, 0, 1, 7];
        let dir = folder(&[
            ("train-images-idx3-ubyte", pictures.clone()),
            ("train-labels-idx1-ubyte", labels.clone()),
            ("t10k-images.idx3-ubyte", pictures.clone()),
            ("t10k-labels.idx1-ubyte", labels),
        ]);
        for split in [Split::Train, Split::Test] {
            let mut plain = open(Some(dir.path()), split, 28, 1).unwrap();
            assert_eq!(read_all(plain.as_mut()), [(200, 7)]);
            let mut padded = open(Some(dir.path()), split, 32, 1).unwrap();
            let picture = padded.read(0).unwrap();
            assert_eq!((picture.pixels[0], picture.pixels[2 * 32 + 2], picture.pixels.len()), (0, 200, 1024));
        }
        assert_fails(Some(&dir), Split::Train, [32, 3], &["32 × 32 pixels and 1 channels", "MNIST in"]);
        assert_fails(Some(&dir), Split::Train, [64, 1], &["28 × 28"]);
        let packed = folder(&[("train-images-idx3-ubyte.gz", pictures)]);
        assert_fails(Some(&packed), Split::Train, [28, 1], &["gunzip"]);
    }

    #[test]
    fn imagenet_is_recognised_and_its_errors_name_the_file() {
        let dir = folder(&[("train_data_batch_1.npz", vec![0; 100])]);
        assert_fails(Some(&dir), Split::Train, [64, 3], &["NumPy archive", "train_data_batch_1.npz"]);
        assert_fails(Some(&dir), Split::Test, [64, 3], &["val_data.npz must be there"]);
        // In the order of the numbers, not of the letters.
        let dir = folder(&[("train_data_batch_10.npz", vec![]), ("train_data_batch_2.npz", vec![])]);
        assert_fails(Some(&dir), Split::Train, [64, 3], &["train_data_batch_2.npz"]);
    }

    #[test]
    fn a_flat_folder_has_no_classes_and_is_resized() {
        let dir = folder(&[("b.PNG", png(20)), ("a.png", png(10)), (".hidden.png", png(30)), ("notes.txt", vec![])]);
        for (size, channels) in [(8, 3), (2, 1)] {
            let pictures = open(Some(dir.path()), Split::Test, size, channels).unwrap();
            assert_eq!((pictures.n_examples(), pictures.n_classes()), (2, 0));
            assert_eq!((pictures.size(), pictures.channels()), (size, channels));
        }
        let mut pictures = open(Some(dir.path()), Split::Train, 4, 3).unwrap();
        assert_eq!(read_all(pictures.as_mut()), [(10, 0), (20, 0)]);
    }

    #[test]
    fn folders_are_classes_and_splits_agree_on_them() {
        let dir = folder(&[
            ("train/cat/1.png", png(1)),
            ("train/dog/2.png", png(2)),
            ("train/empty/notes.txt", vec![]),
            ("val/dog/3.png", png(3)),
            ("val/eel/4.png", png(4)),
        ]);
        let mut train = open(Some(dir.path()), Split::Train, 4, 3).unwrap();
        assert_eq!((train.n_classes(), read_all(train.as_mut())), (3, vec![(1, 0), (2, 1)]));
        let mut test = open(Some(dir.path()), Split::Test, 4, 3).unwrap();
        assert_eq!((test.n_classes(), read_all(test.as_mut())), (3, vec![(3, 1), (4, 2)]));
        fs::remove_dir_all(dir.path().join("val")).unwrap();
        assert_fails(Some(&dir), Split::Test, [4, 3], &["no folder test or val"]);
        // Without splits.
        let mut all = open(Some(&dir.path().join("train")), Split::Test, 4, 3).unwrap();
        assert_eq!((all.n_classes(), read_all(all.as_mut())), (2, vec![(1, 0), (2, 1)]));
        // One class is none.
        fs::remove_dir_all(dir.path().join("train/cat")).unwrap();
        let mut dogs = open(Some(dir.path()), Split::Train, 4, 3).unwrap();
        assert_eq!((dogs.n_classes(), read_all(dogs.as_mut())), (0, vec![(2, 0)]));
    }

    #[test]
    fn what_cannot_be_used_is_explained() {
        let empty = folder(&[("readme.txt", vec![])]);
        assert_fails(Some(&empty), Split::Train, [4, 3], &["data_batch_1.bin", "idx3-ubyte", ".npz", ".png"]);
        let mixed = folder(&[("a.png", png(1)), ("cat/b.png", png(2))]);
        assert_fails(Some(&mixed), Split::Train, [4, 3], &["both in the folder and in its folders"]);
        let missing = empty.path().join("nowhere");
        let error = format!("{:#}", open(Some(&missing), Split::Train, 4, 3).err().unwrap());
        assert!(error.contains("cannot list the folder") && error.contains("nowhere"), "{error}");
        let broken = folder(&[("a.png", vec![1, 2, 3])]);
        let error = open(Some(broken.path()), Split::Train, 4, 3).unwrap().read(0).unwrap_err().to_string();
        assert!(error.contains("neither a PNG nor a JPEG") && error.ends_with("a.png"), "{error}");
    }
}
