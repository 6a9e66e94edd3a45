//! Image tokens worked out once: a safetensors file, written and read one picture at a time.
//!
//! An encoder that is not trained gives a picture the same tokens every time, and takes longer for them than a small captioner takes for its
//! step. The file has one tensor, `tokens` of shape `[pictures, tokens, channels]` in f16, so that Python reads it as well; its metadata
//! say what made it.
//!
//! Deliberately absent: paths, and the captions.

use std::{
    collections::BTreeMap,
    io::{Read, Seek, SeekFrom},
};

use half::f16;
use serde::{Deserialize, Serialize};

use super::{EncoderConfig, FeatureError};
use crate::data::{DataError, Records, read_at};

/// The entry of the metadata that is ours.
const KEY: &str = "bit-diffusion-tokens";

/// The longest header that is read, in bytes; ours have some 300.
const MAX_HEADER_BYTES: u64 = 1 << 16;

/// What a file of tokens holds, and what made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheInfo {
    /// How many pictures there are.
    pub n_examples: usize,
    /// The width and height that they were brought to before the encoder saw them.
    pub picture_size: usize,
    /// How the encoder looked at them.
    pub encoder: EncoderConfig,
    /// The checksum (CRC-32) of the encoder's file.
    pub weights: u32,
    /// The fingerprint of the data set.
    pub data: u32,
}

/// A safetensors header with our tensor.
#[derive(Serialize, Deserialize)]
struct Header {
    #[serde(rename = "__metadata__")]
    metadata: BTreeMap<String, String>,
    tokens: Tensor,
}

#[derive(Serialize, Deserialize)]
struct Tensor {
    dtype: String,
    shape: [usize; 3],
    data_offsets: [u64; 2],
}

impl CacheInfo {
    /// The length of a picture's tokens in the file, in bytes.
    fn record(&self) -> usize {
        2 * self.encoder.n_tokens() * self.encoder.channels()
    }

    fn header(&self, text: String) -> Header {
        let shape = [self.n_examples, self.encoder.n_tokens(), self.encoder.channels()];
        let data_offsets = [0, self.n_examples as u64 * self.record() as u64];
        let metadata = BTreeMap::from([(KEY.to_owned(), text)]);
        Header { metadata, tokens: Tensor { dtype: "F16".to_owned(), shape, data_offsets } }
    }

    /// What a file begins with; after it come the bytes of each picture's tokens, in order.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let json = |text: serde_json::Result<String>| text.expect("numbers and names can be written as JSON");
        let mut header = json(serde_json::to_string(&self.header(json(serde_json::to_string(self)))));
        // So that the numbers begin at a multiple of eight.
        header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
        [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat()
    }

    /// A picture's tokens as the file has them.
    ///
    /// # Shapes
    /// - `tokens`: `[n_tokens, channels]`
    pub fn encode(&self, tokens: &[f32]) -> Result<Vec<u8>, FeatureError> {
        assert_eq!(2 * tokens.len(), self.record(), "a picture has as many tokens as the encoder makes");
        let values: Vec<f16> = tokens.iter().map(|&value| f16::from_f32(value)).collect();
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            let problem = format!("have {} as their number {index}, which no f16 can be", tokens[index]);
            return Err(FeatureError::Values { name: "the image tokens".to_owned(), problem });
        }
        Ok(values.into_iter().flat_map(f16::to_le_bytes).collect())
    }
}

/// A file of tokens.
#[derive(Debug)]
pub struct TokenCache<R> {
    info: CacheInfo,
    records: Records<R>,
}

impl<R: Read + Seek> TokenCache<R> {
    /// Opens a file; its header and its length must fit each other.
    pub fn open(mut source: R, file: &str) -> Result<Self, DataError> {
        let wrong = |reason: String, offset| DataError::Format { reason, offset, file: file.to_owned() };
        let end = source.seek(SeekFrom::End(0));
        let end = end.map_err(|source| DataError::Io { source, offset: 0, file: file.to_owned() })?;
        let foreign = |why: &str| {
            wrong(format!("this is no file of image tokens ({why}); make one with `bit-diffusion features`"), 0)
        };
        if end < 8 {
            return Err(foreign("it is too short"));
        }
        let length = read_at(&mut source, 0, 8, file)?;
        let length = length.try_into().map_or(u64::MAX, u64::from_le_bytes);
        if length > MAX_HEADER_BYTES || length > end - 8 {
            return Err(foreign("it has no header"));
        }
        let header = read_at(&mut source, 8, length as usize, file)?;
        let header: Header = serde_json::from_slice(&header).map_err(|error| foreign(&error.to_string()))?;
        let text = header.metadata.get(KEY).ok_or_else(|| foreign("its metadata are of another program"))?;
        let info: CacheInfo = serde_json::from_str(text).map_err(|error| foreign(&error.to_string()))?;
        if !(1..=EncoderConfig::MAX_SIZE).contains(&info.encoder.size) || info.n_examples == 0 {
            return Err(foreign("its metadata make no sense"));
        }
        let expected = info.n_examples.checked_mul(info.record()).and_then(|n| (n as u64).checked_add(8 + length));
        if header.tokens.dtype != "F16"
            || header.tokens.shape != [info.n_examples, info.encoder.n_tokens(), info.encoder.channels()]
        {
            return Err(foreign("its tensor is not as its metadata say"));
        }
        if expected != Some(end) {
            let reason = format!(
                "the file has {end} bytes, where the tokens of {} pictures take {}; it was cut off, make it again",
                info.n_examples,
                expected.unwrap_or(u64::MAX)
            );
            return Err(wrong(reason, end));
        }
        let records = Records::at(source, file, 8 + length, info.record(), info.n_examples);
        Ok(Self { info, records })
    }

    /// What it holds.
    #[must_use]
    pub fn info(&self) -> &CacheInfo {
        &self.info
    }

    /// The tokens of a picture.
    ///
    /// # Shapes
    /// - result: `[n_tokens, channels]`
    pub fn read(&mut self, index: usize) -> Result<Vec<f32>, DataError> {
        let bytes = self.records.read(index)?;
        Ok(bytes.as_chunks().0.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::features::EncoderLayer, rng::Rng};
    use safetensors::SafeTensors;
    use std::io::Cursor;

    const INFO: CacheInfo = CacheInfo {
        n_examples: 2,
        picture_size: 96,
        encoder: EncoderConfig { size: 20, layer: EncoderLayer::Sixteenth },
        weights: 7,
        data: u32::MAX,
    };

    fn file() -> Vec<u8> {
        let mut bytes = INFO.to_bytes();
        for i in 0..2 {
            bytes.extend(INFO.encode(&tokens(i)).unwrap());
        }
        bytes
    }

    /// Four tokens of 112 channels.
    fn tokens(i: u64) -> Vec<f32> {
        Rng::new(i).normals(448).into_iter().map(|value| f16::from_f32(value).to_f32()).collect()
    }

    fn open(bytes: &[u8]) -> Result<TokenCache<Cursor<Vec<u8>>>, DataError> {
        TokenCache::open(Cursor::new(bytes.to_vec()), "tokens")
    }

    #[test]
    fn tokens_come_back() {
        let mut cache = open(&file()).unwrap();
        assert_eq!(*cache.info(), INFO);
        assert_eq!(cache.read(1).unwrap(), tokens(1));
        assert_eq!(cache.read(0).unwrap(), tokens(0));
        assert!(matches!(cache.read(2), Err(DataError::Index { index: 2, n_examples: 2 })));
    }

    #[test]
    fn others_can_read_the_file() {
        let file = file();
        let tensors = SafeTensors::deserialize(&file).unwrap();
        let view = tensors.tensor("tokens").unwrap();
        assert_eq!((view.dtype(), view.shape()), (safetensors::Dtype::F16, &[2, 4, 112][..]));
        assert_eq!(view.data(), [INFO.encode(&tokens(0)).unwrap(), INFO.encode(&tokens(1)).unwrap()].concat());
    }

    #[test]
    fn what_no_f16_can_be_is_an_error() {
        let mut values = tokens(0);
        values[5] = 1e5;
        let error = INFO.encode(&values).unwrap_err().to_string();
        assert!(error.contains("100000 as their number 5"), "{error}");
    }

    #[test]
    fn cut_changed_and_foreign_files_are_errors() {
        let whole = file();
        for end in 0..whole.len() {
            assert!(open(&whole[..end]).is_err(), "{end} bytes");
        }
        let error = open(&whole[..whole.len() - 1]).unwrap_err().to_string();
        assert!(error.contains("cut off, make it again"), "{error}");
        let header = whole.len() - 2 * 896;
        for at in 0..header {
            let mut changed = whole.clone();
            changed[at] ^= 0x15;
            // A number may have become another, but the file's length no longer fits then.
            if let Ok(mut cache) = open(&changed) {
                assert_eq!(cache.read(1).unwrap().len(), 448);
            }
        }
        let text = String::from_utf8(whole[8..header].to_vec()).unwrap();
        let with = |from: &str, to: &str| {
            let header = text.replace(from, to);
            let bytes =
                [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &whole[whole.len() - 2 * 896..]].concat();
            open(&bytes).unwrap_err().to_string()
        };
        assert!(with(KEY, "another").contains("of another program"));
        assert!(with("F16", "F32").contains("not as its metadata say"));
        assert!(with("\\\"size\\\":20", "\\\"size\\\":18446744073709551615").contains("make no sense"));
        assert!(with("\\\"n_examples\\\":2", "\\\"n_examples\\\":18446744073709551615").contains("not as its"));
        assert!(with("[2,4,112]", "[2,4,113]").contains("not as its metadata say"));
        assert!(with("{", "x").contains("no file of image tokens"));
    }
}
