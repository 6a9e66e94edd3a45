//! Captioned photographs in the manner of MS-COCO (Lin et al. 2014): an archive of picture files, and a table of captions.
//!
//! The archive is a plain tar of PNG or JPEG files; the table has a line for each caption, `image_id<TAB>caption`, where the id is the file's
//! name without folder and ending. A picture may have several captions.
//!
//! Deliberately absent: the annotations' own JSON, downloads, and pictures without a caption, which are passed over.

use std::{
    collections::HashMap,
    io::{Read, Seek},
};

use super::{
    Captioned, CaptionedPictures, DataError,
    folder::{MAX_SIDE, read_square},
    records::read_at,
    tar::{Member, members},
};

/// The title of the first line, which may be left out.
const TITLE: &str = "image_id\tcaption";

/// The pictures of an archive that have captions, in the archive's order.
#[derive(Debug)]
pub struct Coco<R> {
    source: R,
    /// For messages.
    file: String,
    size: usize,
    examples: Vec<(Member, Vec<String>)>,
}

impl<R: Read + Seek> Coco<R> {
    /// Opens an archive and its table, each with its name for messages; pictures come out with `size` × `size` pixels.
    ///
    /// Only the archive's headers are read here.
    pub fn open(
        (mut source, file): (R, &str),
        (table, table_file): (&[u8], &str),
        size: usize,
    ) -> Result<Self, DataError> {
        let mismatch = |reason: String| Err(DataError::Mismatch { reason });
        if !(1..=MAX_SIDE as usize).contains(&size) {
            let allowed = format!("must have 1 to {MAX_SIDE} each way");
            return mismatch(format!("the pictures would have {size} × {size} pixels, but {allowed}"));
        }
        let mut captions = read_table(table, table_file)?;
        let mut examples = Vec::new();
        for member in members(&mut source, file)? {
            if let Some((_, texts)) = captions.remove(id(&member)) {
                examples.push((member, texts));
            }
        }
        // The first line that is left, so that the message does not depend on the map.
        if let Some((id, (line, _))) = captions.iter().min_by_key(|(_, (line, _))| *line) {
            return mismatch(format!(
                "line {line} is the caption of picture {id}, which is not in the archive; use a table and an archive that belong \
                 together, {table_file} and {file}"
            ));
        }
        if examples.is_empty() {
            return mismatch(format!("there are no captions, but there must be at least one, in {table_file}"));
        }
        Ok(Self { source, file: file.to_owned(), size, examples })
    }

    /// The captions of a picture, which need not be read for that.
    pub fn captions(&self, index: usize) -> Result<&[String], DataError> {
        let n_examples = self.examples.len();
        self.examples.get(index).map(|(_, captions)| captions.as_slice()).ok_or(DataError::Index { index, n_examples })
    }

    /// A table that gives each picture one caption, in order: what the same archive can be opened with.
    #[must_use]
    pub fn table(&self, captions: &[String]) -> String {
        assert_eq!(captions.len(), self.examples.len(), "a caption for each picture");
        let lines =
            self.examples.iter().zip(captions).map(|((member, _), caption)| format!("{}\t{caption}\n", id(member)));
        format!("{TITLE}\n{}", lines.collect::<String>())
    }

    /// A checksum of which pictures there are, in which order. Their contents are not read for it.
    #[must_use]
    pub fn fingerprint(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        for (member, _) in &self.examples {
            for text in [&member.name, &member.length.to_string()] {
                hasher.update(text.as_bytes());
                // No text has this byte, so that it is clear where each ends.
                hasher.update(&[0xFF]);
            }
        }
        hasher.finalize()
    }
}

/// What the table calls a picture: its file's name without folder and ending.
fn id(member: &Member) -> &str {
    let name = member.name.rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').map_or(name, |(id, _)| id)
}

impl<R: Read + Seek> CaptionedPictures for Coco<R> {
    fn name(&self) -> &'static str {
        "coco"
    }

    fn n_examples(&self) -> usize {
        self.examples.len()
    }

    fn size(&self) -> usize {
        self.size
    }

    fn read(&mut self, index: usize) -> Result<Captioned, DataError> {
        let n_examples = self.examples.len();
        let (member, captions) = self.examples.get(index).ok_or(DataError::Index { index, n_examples })?;
        let bytes = read_at(&mut self.source, member.offset, member.length, &self.file)?;
        let pixels = read_square(&bytes, self.size, &format!("{} of {}", member.name, self.file))?;
        Ok(Captioned { pixels, captions: captions.clone() })
    }
}

/// The captions of each picture, in the order of the lines, and the number of the first line of each.
fn read_table(bytes: &[u8], file: &str) -> Result<HashMap<String, (usize, Vec<String>)>, DataError> {
    let wrong =
        |reason: String, offset: usize| DataError::Format { reason, offset: offset as u64, file: file.to_owned() };
    let text = str::from_utf8(bytes).map_err(|error| wrong("the table is no UTF-8".to_owned(), error.valid_up_to()))?;
    let mut captions = HashMap::<String, (usize, Vec<String>)>::new();
    for (line, text_of_line) in (1..).zip(text.lines()) {
        if text_of_line.is_empty() || line == 1 && text_of_line == TITLE {
            continue;
        }
        let parts = text_of_line.split_once('\t').map(|(id, caption)| (id, caption.trim()));
        let Some((id, caption)) = parts.filter(|(id, caption)| !id.is_empty() && !caption.is_empty()) else {
            let offset = text_of_line.as_ptr() as usize - text.as_ptr() as usize;
            return Err(wrong(format!("line {line} has no id, a tab and a caption"), offset));
        };
        captions.entry(id.to_owned()).or_insert((line, Vec::new())).1.push(caption.to_owned());
    }
    Ok(captions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{ImageFormat, Rgb, RgbImage};
    use std::io::Cursor;

    /// A member: its header, its contents, and what fills up the last block.
    fn member(name: &str, kind: u8, contents: &[u8]) -> Vec<u8> {
        let mut header = vec![0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", contents.len()).as_bytes());
        header[148..156].fill(b' ');
        header[156] = kind;
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        header.extend(contents);
        header.resize(header.len().next_multiple_of(512), 0);
        header
    }

    fn archive(members: &[Vec<u8>]) -> Cursor<Vec<u8>> {
        Cursor::new([members.concat(), vec![0; 1024]].concat())
    }

    fn png(value: u8) -> Vec<u8> {
        let mut bytes = Cursor::new(vec![]);
        RgbImage::from_pixel(5, 3, Rgb([value, 0, 1])).write_to(&mut bytes, ImageFormat::Png).unwrap();
        bytes.into_inner()
    }

    fn open(archive: Cursor<Vec<u8>>, table: &str) -> Result<Coco<Cursor<Vec<u8>>>, DataError> {
        Coco::open((archive, "a.tar"), (table.as_bytes(), "a.tsv"), 2)
    }

    #[track_caller]
    fn assert_error(archive: Cursor<Vec<u8>>, table: &str, message: &str) {
        let error = open(archive, table).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }

    #[test]
    fn pictures_have_their_captions() {
        let members = [
            member("photos/", b'5', b""),
            member("photos/07.png", b'0', &png(7)),
            member("08.png", b'0', &png(8)),
            member("09.png", 0, &png(9)),
        ];
        let table = "image_id\tcaption\n09\tA nine.\n07\tA seven.\r\n09\tnine \n";
        let mut coco = open(archive(&members), table).unwrap();
        assert_eq!((coco.n_examples(), coco.size()), (2, 2));
        let seven = coco.read(0).unwrap();
        assert_eq!(seven.pixels, [7, 7, 7, 7, 0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(seven.captions, ["A seven."]);
        assert_eq!(coco.read(1).unwrap().captions, ["A nine.", "nine"]);
        assert!(matches!(coco.read(2), Err(DataError::Index { index: 2, n_examples: 2 })));
        assert_eq!(coco.captions(1).unwrap(), ["A nine.", "nine"]);
        assert!(coco.captions(2).is_err());
        // Without the title all the same.
        assert_eq!(open(archive(&members), &table[17..]).unwrap().fingerprint(), coco.fingerprint());
        assert_ne!(open(archive(&members), "09\tA nine.").unwrap().fingerprint(), coco.fingerprint());
        // With other captions the pictures are the same.
        let others = coco.table(&["a".to_owned(), "b".to_owned()]);
        let other = open(archive(&members), &others).unwrap();
        assert_eq!(other.fingerprint(), coco.fingerprint());
        assert_eq!(other.captions(1).unwrap(), ["b"]);
    }

    #[test]
    fn what_does_not_belong_together_is_named() {
        let members = [member("07.png", b'0', &png(7)), member("08.png", b'0', b"GIF")];
        assert_error(archive(&members), "07\ta\n5\tb\n4\tc", "line 2 is the caption of picture 5");
        assert_error(archive(&members), "image_id\tcaption\n", "no captions");
        assert_error(archive(&members), "07\ta\n08 b", "line 2 has no id, a tab and a caption, at byte 5 of a.tsv");
        assert_error(archive(&members), "07\t ", "line 1 has no id");
        assert_error(archive(&members), "\ta", "line 1 has no id");
        let bad = Coco::open((archive(&members), "a.tar"), (b"07\t\xFF", "a.tsv"), 2).unwrap_err().to_string();
        assert_eq!(bad, "the table is no UTF-8, at byte 3 of a.tsv");
        assert!(Coco::open((archive(&members), "a.tar"), (b"07\ta", "a.tsv"), 0).is_err());
        let error = open(archive(&members), "08\ta").unwrap().read(0).unwrap_err().to_string();
        assert!(error.ends_with("in 08.png of a.tar"), "{error}");
    }

    #[test]
    fn archives_that_are_none_are_named() {
        let one = member("07.png", b'0', &png(7));
        assert_error(Cursor::new(vec![]), "07\ta", "cut off, or is no tar");
        assert_error(Cursor::new(one.clone()), "07\ta", "two empty blocks must end it");
        assert_error(Cursor::new(vec![b'x'; 2048]), "07\ta", "its checksum is wrong, at byte 0 of a.tar");
        let mut huge = one.clone();
        huge[124..135].copy_from_slice(b"77777777777");
        // The sum of the digits that were there: the length was below 512, so that all but three were 0.
        let sum = |header: &[u8]| header.iter().map(|&byte| u32::from(byte)).sum::<u32>();
        huge[148..156].fill(b' ');
        let sum = sum(&huge[..512]);
        huge[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        assert_error(archive(&[huge]), "07\ta", "longer than what is left");
        let after = [vec![0; 512], one].concat();
        assert_error(archive(&[after]), "07\ta", "checksum is wrong");
    }
}
