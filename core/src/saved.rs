//! Settings as text: named values in JSON, each read by itself.
//!
//! A text from an older program, or one that somebody has changed, gives what it can: a value that is missing or makes no sense leaves
//! the setting as it was. Deliberately absent: what the values are, and where the text is kept.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// Named values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Saved(Map<String, Value>);

impl Saved {
    /// The values in a text; none if it is not one of ours.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// The values as text.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{:#}\n", Value::Object(self.0.clone()))
    }

    /// Puts a value in. One that JSON cannot say is left out.
    pub fn put<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        if let Ok(value) = serde_json::to_value(value) {
            self.0.insert(name.to_owned(), value);
        }
    }

    /// Puts a value in, if there is one.
    pub fn put_some<T: Serialize>(&mut self, name: &str, value: Option<T>) {
        if let Some(value) = value {
            self.put(name, &value);
        }
    }

    /// The value of this name, if it is there and of this type.
    #[must_use]
    pub fn value<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        T::deserialize(self.0.get(name)?).ok()
    }

    /// Changes a setting to the value of this name, if that is there, of its type, and allowed.
    pub fn restore<T: DeserializeOwned>(&self, name: &str, setting: &mut T, is_allowed: impl FnOnce(&T) -> bool) {
        if let Some(value) = self.value(name).filter(is_allowed) {
            *setting = value;
        }
    }

    /// The values that were put in under this name as a whole; none if there are none.
    #[must_use]
    pub fn part(&self, name: &str) -> Self {
        self.value(name).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::{Sampler, Settings};

    #[test]
    fn values_come_back() {
        let settings = Settings { n_steps: 7, td: 0.1, sampler: Sampler::Ddpm, ..Settings::default() };
        let (mut saved, mut part) = (Saved::default(), Saved::default());
        part.put("settings", &settings);
        part.put("seed", &u64::MAX);
        saved.put("chain", &part);
        let part = Saved::from_text(&saved.to_text()).part("chain");
        assert_eq!(part.value::<Settings>("settings"), Some(settings));
        assert_eq!(part.value::<u64>("seed"), Some(u64::MAX));
    }

    #[test]
    fn what_makes_no_sense_is_ignored_value_by_value() {
        for text in ["", "roses are red", "[1]", "{\"seed\": ", "null"] {
            assert_eq!(Saved::from_text(text), Saved::default(), "{text:?}");
        }
        let saved = Saved::from_text(r#"{"seed": -1, "n": 5, "p": 2.0, "other": "?"}"#);
        let (mut seed, mut n, mut p, mut missing) = (3_u64, 4_usize, 0.5_f64, 1_u8);
        saved.restore("seed", &mut seed, |_| true);
        saved.restore("n", &mut n, |_| true);
        saved.restore("p", &mut p, |p| *p < 1.0);
        saved.restore("missing", &mut missing, |_| true);
        assert_eq!((seed, n, p, missing), (3, 5, 0.5, 1));
        assert_eq!(saved.part("other"), Saved::default());
    }
}
