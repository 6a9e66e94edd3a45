//! NumPy's `.npy` arrays inside a larger file: what is in them, and where.
//!
//! An array starts with `\x93NUMPY`, a version (1.0 or 2.0), the length of its header (16 or 32 bits), and the header: a Python
//! dictionary in text. Deliberately absent: anything but plain numbers in C order.

use std::{
    io::{Read, Seek},
    ops::Range,
};

use super::{DataError, records::read_at};

const MAGIC: &[u8] = b"\x93NUMPY";

/// The longest header that is taken for one; NumPy's are below 200 bytes.
const MAX_HEADER: u64 = 1 << 16;

/// An array of numbers.
#[derive(Debug)]
pub(super) struct Array {
    /// The type of a number, as NumPy writes it, without the byte order: `u1`, `i8`.
    pub kind: String,
    /// Whether the highest byte of a number comes first.
    order: Order,
    /// The dimensions, outermost first.
    pub shape: Vec<u64>,
    /// Where in the file the header starts, and where the numbers are.
    header: u64,
    pub numbers: Range<u64>,
    file: String,
}

/// Which byte of a number comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    LowestFirst,
    HighestFirst,
}

impl Array {
    /// Reads the header of the array that fills a part of a file.
    pub fn open<R: Read + Seek>(source: &mut R, part: Range<u64>, file: &str) -> Result<Self, DataError> {
        let error =
            |reason: &str, offset| DataError::Format { reason: reason.to_owned(), offset, file: file.to_owned() };
        let available = part.end.saturating_sub(part.start);
        let start = read_at(source, part.start, available.min(12) as usize, file)?;
        let (preamble, length) = match start.strip_prefix(MAGIC) {
            Some([1, 0, a, b, ..]) => (10, u64::from(u16::from_le_bytes([*a, *b]))),
            Some([2, 0, a, b, c, d]) => (12, u64::from(u32::from_le_bytes([*a, *b, *c, *d]))),
            Some([1 | 2, 0, ..]) => return Err(error("the array ends inside its header", part.end)),
            Some(_) => return Err(error("the array must be in version 1.0 or 2.0 of NumPy's format", part.start + 6)),
            None => return Err(error("a NumPy array must start here, with \\x93NUMPY", part.start)),
        };
        if length > MAX_HEADER || preamble + length > available {
            let reason = format!("the array's header cannot have {length} bytes, in an entry of {available}");
            return Err(error(&reason, part.start + 8));
        }
        let header = part.start + preamble;
        let text = read_at(source, header, length as usize, file)?;
        let (kind, order, shape) =
            Parser { text: &text, at: 0 }.header().map_err(|(reason, at)| error(&reason, header + at as u64))?;
        Ok(Self { kind, order, shape, header, numbers: header + length..part.end, file: file.to_owned() })
    }

    /// An error about what the header says.
    pub fn error(&self, reason: String) -> DataError {
        DataError::Format { reason, offset: self.header, file: self.file.clone() }
    }

    /// An error about one of the numbers.
    pub fn error_at(&self, index: usize, reason: String) -> DataError {
        let n_numbers = self.shape.iter().product::<u64>().max(1);
        let width = (self.numbers.end - self.numbers.start) / n_numbers;
        DataError::Format { reason, offset: self.numbers.start + index as u64 * width, file: self.file.clone() }
    }

    /// Checks that the numbers are as many as the shape says, each of `width` bytes.
    pub fn check_length(&self, width: u64) -> Result<(), DataError> {
        let expected = self.shape.iter().try_fold(width, |product, &n| product.checked_mul(n));
        let found = self.numbers.end - self.numbers.start;
        if expected == Some(found) {
            return Ok(());
        }
        Err(self
            .error(format!("{found} bytes of numbers follow, but the shape {:?} needs {width} for each", self.shape)))
    }

    /// All numbers of an array of integers, of any width and sign.
    pub fn integers<R: Read + Seek>(&self, source: &mut R) -> Result<Vec<i128>, DataError> {
        let (signed, width) = match self.kind.as_str() {
            "i1" => (true, 1),
            "i2" => (true, 2),
            "i4" => (true, 4),
            "i8" => (true, 8),
            "u1" => (false, 1),
            "u2" => (false, 2),
            "u4" => (false, 4),
            "u8" => (false, 8),
            other => return Err(self.error(format!("the numbers are of type {other:?}, but must be integers"))),
        };
        self.check_length(width)?;
        // No more than the file has: its length was just checked.
        let length = (self.numbers.end - self.numbers.start) as usize;
        let bytes = read_at(source, self.numbers.start, length, &self.file)?;
        let number = |bytes: &[u8]| {
            let append = |number: i128, byte: &u8| number << 8 | i128::from(*byte);
            let number = match self.order {
                Order::LowestFirst => bytes.iter().rev().fold(0, append),
                Order::HighestFirst => bytes.iter().fold(0, append),
            };
            let bits = 8 * bytes.len();
            if signed && number >> (bits - 1) == 1 { number - (1 << bits) } else { number }
        };
        Ok(bytes.chunks_exact(width as usize).map(number).collect())
    }
}

/// Reads the one Python dictionary that NumPy writes.
struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

/// What is wrong with a header, and at which of its bytes.
type Wrong = (String, usize);

impl Parser<'_> {
    /// The kind of numbers, their byte order and the shape.
    fn header(mut self) -> Result<(String, Order, Vec<u64>), Wrong> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect(b'{')?;
        while !self.take(b'}') {
            let key_at = self.at;
            let key = self.string()?;
            self.expect(b':')?;
            let is_new = match key.as_str() {
                "descr" => descr.replace((self.string()?, self.at)).is_none(),
                "fortran_order" => fortran_order.replace((self.word(), self.at)).is_none(),
                "shape" => shape.replace(self.tuple()?).is_none(),
                _ => false,
            };
            if !is_new {
                return Err((
                    format!("the header must have descr, fortran_order and shape once each, not {key:?}"),
                    key_at,
                ));
            }
            if !self.take(b',') {
                self.expect(b'}')?;
                break;
            }
        }
        self.skip_space();
        if self.at < self.text.len() {
            return Err(("the header must end after its dictionary".to_owned(), self.at));
        }
        let (Some((descr, descr_at)), Some((fortran_order, order_at)), Some(shape)) = (descr, fortran_order, shape)
        else {
            return Err(("the header must have descr, fortran_order and shape".to_owned(), self.at));
        };
        if fortran_order != "False" {
            let reason =
                format!("fortran_order is {fortran_order:?}, but must be False; save numpy.ascontiguousarray of it");
            return Err((reason, order_at));
        }
        let (order, kind) = match descr.split_at_checked(1) {
            Some(("<" | "|", kind)) => (Order::LowestFirst, kind),
            Some((">", kind)) => (Order::HighestFirst, kind),
            _ => return Err((format!("descr is {descr:?}, but must be one type of number"), descr_at)),
        };
        Ok((kind.to_owned(), order, shape))
    }

    fn skip_space(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    /// Steps over a character, if it comes next.
    fn take(&mut self, wanted: u8) -> bool {
        self.skip_space();
        let found = self.text.get(self.at) == Some(&wanted);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, wanted: u8) -> Result<(), Wrong> {
        if self.take(wanted) {
            return Ok(());
        }
        Err((format!("the array's header must have {:?} here", char::from(wanted)), self.at))
    }

    /// Text in single or double quotes, without escapes.
    fn string(&mut self) -> Result<String, Wrong> {
        let quote = if self.take(b'"') { b'"' } else { b'\'' };
        if quote == b'\'' {
            self.expect(quote)?;
        }
        let rest = &self.text[self.at..];
        let Some(length) = rest.iter().position(|&byte| byte == quote) else {
            return Err(("the array's header has a quote that does not end".to_owned(), self.at));
        };
        self.at += length + 1;
        Ok(String::from_utf8_lossy(&rest[..length]).into_owned())
    }

    /// A word of letters and digits; perhaps none.
    fn word(&mut self) -> String {
        self.skip_space();
        let rest = &self.text[self.at..];
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        self.at += length;
        String::from_utf8_lossy(&rest[..length]).into_owned()
    }

    /// A tuple of whole numbers.
    fn tuple(&mut self) -> Result<Vec<u64>, Wrong> {
        let mut numbers = vec![];
        self.expect(b'(')?;
        while !self.take(b')') {
            let at = self.at;
            let word = self.word();
            // Python 2 wrote 5L for a long 5.
            let digits = word.strip_suffix('L').unwrap_or(&word);
            let Ok(number) = digits.parse() else {
                return Err((format!("the shape has {word:?}, but must have whole numbers"), at));
            };
            numbers.push(number);
            if !self.take(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(numbers)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::io::Cursor;

    /// An array as NumPy writes it, padded to 64 bytes.
    pub fn npy(descr: &str, shape: &str, numbers: &[u8]) -> Vec<u8> {
        with_header(&format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"), numbers)
    }

    fn with_header(text: &str, numbers: &[u8]) -> Vec<u8> {
        let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
        let mut bytes = [MAGIC, &[1, 0], &(length as u16).to_le_bytes()].concat();
        bytes.extend(format!("{text:<width$}\n", width = length - 1).bytes());
        bytes.extend(numbers);
        bytes
    }

    fn open(bytes: &[u8]) -> Result<Array, DataError> {
        Array::open(&mut Cursor::new(bytes), 0..bytes.len() as u64, "x.npz")
    }

    #[test]
    fn integers_of_every_kind() {
        let check = |descr: &str, bytes: &[u8], expected: &[i128]| {
            let bytes = npy(descr, &format!("({},)", expected.len()), bytes);
            let array = open(&bytes).unwrap();
            assert_eq!(array.integers(&mut Cursor::new(&bytes)).unwrap(), expected, "{descr}");
        };
        check("|u1", &[7, 255], &[7, 255]);
        check("|i1", &[7, 255], &[7, -1]);
        check("<i2", &[1, 2, 0, 128], &[513, -32768]);
        check(">u2", &[1, 2, 255, 255], &[258, 65535]);
        check("<i4", &[232, 3, 0, 0], &[1000]);
        check("<i8", &[232, 3, 0, 0, 0, 0, 0, 0], &[1000]);
        check("<i8", &[255; 8], &[-1]);
        check(">i8", &[0, 0, 0, 0, 0, 0, 3, 232], &[1000]);
        check("<u8", &[255; 8], &[i128::from(u64::MAX)]);
    }

    #[test]
    fn headers_in_other_words() {
        let array = open(&with_header("{\"shape\":(2L, 3),'fortran_order':False,'descr':'|u1'}", &[0; 6])).unwrap();
        assert_eq!((array.shape.as_slice(), array.kind.as_str()), ([2, 3].as_slice(), "u1"));
        assert!(array.check_length(1).is_ok() && array.check_length(2).is_err());
        // Version 2: a longer length.
        let one = npy("|u1", "()", &[5]);
        let two = [&one[..6], &[2, 0], &one[8..10], &[0, 0], &one[10..]].concat();
        let array = open(&two).unwrap();
        assert_eq!((array.numbers.clone(), array.shape.len()), (130..131, 0), "{array:?}");
    }

    #[test]
    fn wrong_headers_say_where() {
        let error = |text: &str| open(&with_header(text, &[])).unwrap_err().to_string();
        let fortran = error("{'descr': '|u1', 'fortran_order': True, 'shape': (1,)}");
        assert!(fortran.contains("fortran_order is \"True\"") && fortran.contains("ascontiguousarray"), "{fortran}");
        let list = error("{'descr': [('a', '|u1')], 'fortran_order': False, 'shape': (1,)}");
        assert_eq!(list, "the array's header must have '\\'' here, at byte 20 of x.npz");
        for text in [
            "",
            "{}",
            "{'descr': '|u1', 'fortran_order': False}",
            "{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (1,)}",
            "{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}",
            "{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999,)}",
            "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'more': 'x'}",
            "{'descr': '|u1', 'fortran_order': False, 'shape': (1 2)}",
            "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)} {}",
            "{'descr': '', 'fortran_order': False, 'shape': (1,)}",
            "{'descr': 'ü1', 'fortran_order': False, 'shape': (1,)}",
            "{'descr': '|u1",
        ] {
            assert!(error(text).ends_with("of x.npz"), "{text}");
        }
        let floats = npy("<f4", "(1,)", &[0; 4]);
        let error = open(&floats).unwrap().integers(&mut Cursor::new(&floats)).unwrap_err().to_string();
        assert!(error.contains("\"f4\", but must be integers"), "{error}");
        let mut long = [MAGIC, &[2, 0], &[255; 4]].concat();
        long.extend([b' '; 100]);
        let error = open(&long).unwrap_err().to_string();
        assert_eq!(error, "the array's header cannot have 4294967295 bytes, in an entry of 112, at byte 8 of x.npz");
        let many = npy("|u1", "(9223372036854775807, 4)", &[0; 4]);
        assert!(open(&many).unwrap().integers(&mut Cursor::new(&many)).is_err());
    }

    #[test]
    fn every_truncation_is_an_error() {
        let bytes = npy("|u1", "(3,)", &[1, 2, 3]);
        for end in 0..bytes.len() {
            let mut source = Cursor::new(&bytes[..end]);
            let result = Array::open(&mut source, 0..end as u64, "x.npz").and_then(|array| array.integers(&mut source));
            assert!(result.is_err(), "{end} bytes");
        }
    }
}
