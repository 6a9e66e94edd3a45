//! Data files that are cut short, changed or made up: an error or a picture, never a panic, never more memory than the file can ask for.

use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};

use bit_diffusion::data::{
    CaptionedPictures as _, DataError, Pictures,
    cifar10::Cifar10,
    coco::Coco,
    folder::{Entry, Folder},
    imagenet64::ImageNet64,
    mnist::Mnist,
};
use image::{ImageFormat, Rgb, RgbImage};
use proptest::prelude::*;
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

/// Bytes that notice a reader who asks for much more than there is: it has allocated as much.
struct Watched(Cursor<Vec<u8>>);

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // The zip reader's own buffers, and a header of NumPy, are at most 64 KiB.
        let most = self.0.get_ref().len().max(1 << 16) + 1;
        assert!(buffer.len() <= most, "{} bytes asked for, of {most}", buffer.len());
        self.0.read(buffer)
    }
}

impl Seek for Watched {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.0.seek(position)
    }
}

fn watched(bytes: &[u8]) -> Watched {
    Watched(Cursor::new(bytes.to_vec()))
}

/// Reads the first and the last picture, if the file opens; says whether it opened.
fn read_ends(opened: Result<impl Pictures, DataError>) -> bool {
    let Ok(mut pictures) = opened else {
        return false;
    };
    let length = pictures.channels() * pictures.size() * pictures.size();
    for index in [0, pictures.n_examples() - 1] {
        if let Ok(picture) = pictures.read(index) {
            assert_eq!(picture.pixels.len(), length);
            assert!(picture.class < pictures.n_classes().max(1));
        }
    }
    assert!(pictures.read(pictures.n_examples()).is_err());
    true
}

fn cifar10(bytes: &[u8]) -> bool {
    read_ends(Cifar10::open(watched(bytes), "cifar10"))
}

fn imagenet(bytes: &[u8]) -> bool {
    read_ends(ImageNet64::open(watched(bytes), "imagenet"))
}

/// The pictures' file and the labels' file, one after the other, so that one number can change either.
fn mnist(bytes: &[u8]) -> bool {
    let (pictures, labels) = bytes.split_at(bytes.len().min(24));
    read_ends(Mnist::open((watched(pictures), "pictures"), (watched(labels), "labels")))
}

fn picture_file(bytes: &[u8]) -> bool {
    let entries = vec![Entry { name: "picture".to_owned(), class: 0 }];
    let mut folder = Folder::new(entries, 0, 3, 4, |_: &str| Ok(bytes.to_vec())).unwrap();
    folder.read(0).inspect(|picture| assert_eq!(picture.pixels.len(), 48)).is_ok()
}

/// Reads every picture, if the archive opens; says whether all could be read.
fn coco(bytes: &[u8]) -> bool {
    let Ok(mut coco) = Coco::open((watched(bytes), "tar"), (TABLE, "table"), 4) else {
        return false;
    };
    (0..coco.n_examples()).all(|index| {
        coco.read(index).inspect(|one| assert!(one.pixels.len() == 48 && !one.captions.is_empty())).is_ok()
    })
}

fn table(bytes: &[u8]) -> bool {
    let archive = valid_coco();
    Coco::open((watched(&archive), "tar"), (bytes, "table"), 4).is_ok()
}

/// Captions of the pictures of [`valid_coco`].
const TABLE: &[u8] = b"image_id\tcaption\n7\tA seven.\n8\tAn eight.\n7\tseven\n";

/// A tar of two pictures.
fn valid_coco() -> Vec<u8> {
    let picture = valid_picture(ImageFormat::Png);
    let mut archive = Vec::new();
    for name in ["7.png", "8.png"] {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", picture.len()).as_bytes());
        header[148..156].fill(b' ');
        header[156] = b'0';
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        archive.extend(header);
        archive.extend(&picture);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}

fn valid_cifar10() -> Vec<u8> {
    (0..3073).map(|i| (i % 10) as u8).collect()
}

fn valid_mnist() -> Vec<u8> {
    let pictures = [0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8];
    [pictures.as_slice(), &[0, 0, 8, 1, 0, 0, 0, 2, 7, 5]].concat()
}

fn valid_imagenet() -> Vec<u8> {
    let npy = |descr: &str, shape: &str, numbers: &[u8]| {
        let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        [b"\x93NUMPY\x01\x00", (text.len() as u16).to_le_bytes().as_slice(), text.as_bytes(), numbers].concat()
    };
    let data = npy("|u1", "(2, 12)", &[9; 24]);
    let labels = npy("<i8", "(2,)", &[1000_i64, 1].map(i64::to_le_bytes).concat());
    let mut writer = ZipWriter::new(Cursor::new(vec![]));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    for (name, bytes) in [("data.npy", data), ("labels.npy", labels)] {
        writer.start_file(name, options).unwrap();
        writer.write_all(&bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn valid_picture(format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(vec![]);
    let image = RgbImage::from_fn(9, 8, |x, y| Rgb([x as u8 * 20, y as u8 * 30, 7]));
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// A format: its name, a valid file, and what reads one and says whether it could.
type Format = (&'static str, Vec<u8>, fn(&[u8]) -> bool);

fn formats() -> [Format; 7] {
    [
        ("cifar10", valid_cifar10(), cifar10),
        ("mnist", valid_mnist(), mnist),
        ("imagenet", valid_imagenet(), imagenet),
        ("png", valid_picture(ImageFormat::Png), picture_file),
        ("jpeg", valid_picture(ImageFormat::Jpeg), picture_file),
        ("coco", valid_coco(), coco),
        ("table", TABLE.to_vec(), table),
    ]
}

#[test]
fn whole_files_are_read_and_cut_ones_are_not() {
    for (name, bytes, read) in formats() {
        assert!(read(&bytes), "{name}");
        for end in 0..bytes.len() {
            // A picture's decoder may make do with a missing end, and a table with fewer lines is a table.
            assert!(!read(&bytes[..end]) || matches!(name, "png" | "jpeg" | "table"), "{end} bytes of {name}");
        }
    }
}

#[test]
fn every_single_byte_turned_over() {
    for (name, bytes, read) in formats() {
        let mut n_refused = 0;
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0xFF;
            n_refused += usize::from(!read(&changed));
        }
        // CIFAR-10's files have nothing but pixels, and a class that is only looked at when it is read.
        assert_eq!(n_refused == 0, name == "cifar10", "{n_refused} of {name}");
    }
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        for (name, valid, read) in formats() {
            read(&bytes);
            // With the beginning of the real thing, to get further.
            let start = &valid[..(valid.len() / 2).min(40)];
            prop_assert!(!read(&[start, &bytes].concat()) || matches!(name, "png" | "jpeg" | "table"), "{}", name);
        }
    }

    #[test]
    fn any_changes(
        which in 0_usize..7,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let (_, mut bytes, read) = formats().into_iter().nth(which).unwrap();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        read(&bytes);
    }
}
