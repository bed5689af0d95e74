//! Metadata: an immutable map of text to text, packed into one shared allocation.
//!
//! A registry holds millions of these, mostly equal inside a service; packing costs 8 bytes a pair beside the text, and
//! sharing makes the second one free.

use std::{collections::BTreeMap, fmt, sync::Arc};

use super::limits::Limits;
use crate::error::{Classify, Code};

/// Sorted pairs of text. Cloning shares the memory; the empty map has none.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Metadata(Option<Arc<str>>);

/// The metadata is larger than the setting allows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("metadata has {size} bytes of keys and values; at most {limit} are allowed")]
pub struct TooLarge {
    /// Keys and values together, in bytes.
    pub size: usize,
    /// The bound, the setting `limits.metadata_bytes`.
    pub limit: usize,
}

impl Classify for TooLarge {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }

    fn field(&self) -> Option<&'static str> {
        Some("metadata")
    }
}

impl Limits {
    /// Checks the size of `pairs` and packs them; of equal keys the last one wins.
    ///
    /// # Errors
    /// [`TooLarge`] if keys and values together exceed `metadata_bytes`.
    pub fn metadata<K, V>(&self, pairs: impl IntoIterator<Item = (K, V)>) -> Result<Metadata, TooLarge>
    where
        K: Into<String>,
        V: Into<String>,
    {
        let sorted: BTreeMap<String, String> = pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        let size = sorted.iter().map(|(k, v)| k.len() + v.len()).sum();
        self.check_size(size)?;
        Ok(pack(&sorted))
    }

    /// Checks metadata that has been put together from several sources.
    ///
    /// # Errors
    /// [`TooLarge`] if keys and values together exceed `metadata_bytes`.
    pub fn check_metadata_size(&self, metadata: &Metadata) -> Result<(), TooLarge> {
        self.check_size(metadata.iter().map(|(k, v)| k.len() + v.len()).sum())
    }

    fn check_size(&self, size: usize) -> Result<(), TooLarge> {
        if size > self.metadata_bytes { Err(TooLarge { size, limit: self.metadata_bytes }) } else { Ok(()) }
    }
}

/// Each text is preceded by its length as four digits to the base of 64; the bound of [`Limits::metadata_bytes`] keeps
/// every length below 64⁴.
fn pack(sorted: &BTreeMap<String, String>) -> Metadata {
    if sorted.is_empty() {
        return Metadata(None);
    }
    let mut packed = String::with_capacity(sorted.iter().map(|(k, v)| k.len() + v.len() + 8).sum());
    for text in sorted.iter().flat_map(|(k, v)| [k, v]) {
        for shift in [18, 12, 6, 0] {
            packed.push(char::from(b'0' + ((text.len() >> shift) & 63) as u8));
        }
        packed.push_str(text);
    }
    Metadata(Some(packed.into()))
}

impl Metadata {
    /// Whether there is no pair.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// All pairs, by ascending key.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter { rest: self.0.as_deref().unwrap_or("") }
    }

    /// The value of `key`.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        self.iter().find(|(k, _)| *k == key).map(|(_, v)| v)
    }

    /// This metadata with the pairs of `over` laid over it: a pair of `over` wins.
    #[must_use]
    pub fn merged_with(&self, over: &BTreeMap<String, String>) -> Self {
        if over.is_empty() {
            return self.clone();
        }
        let mut all: BTreeMap<String, String> = self.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        all.extend(over.iter().map(|(k, v)| (k.clone(), v.clone())));
        pack(&all)
    }

    /// This metadata, but sharing the memory of `other` if both are equal.
    #[must_use]
    pub fn shared_with(self, other: &Self) -> Self {
        if self == *other { other.clone() } else { self }
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Walks over the pairs of a [`Metadata`].
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    rest: &'a str,
}

impl<'a> Iter<'a> {
    fn text(&mut self) -> Option<&'a str> {
        let (digits, rest) = self.rest.split_at_checked(4)?;
        let length = digits.bytes().fold(0, |sum, digit| (sum << 6) | usize::from(digit - b'0'));
        let (text, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        Some(text)
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.text()?, self.text()?))
    }
}

impl<'a> IntoIterator for &'a Metadata {
    type Item = (&'a str, &'a str);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keeps_every_pair(pairs: BTreeMap<String, String>) {
            let metadata = Limits::default().metadata(pairs.clone()).unwrap();
            let back: BTreeMap<String, String> =
                metadata.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
            prop_assert_eq!(back, pairs);
        }

        #[test]
        fn merge_lets_the_upper_one_win(below: BTreeMap<String, String>, over: BTreeMap<String, String>) {
            let merged = Limits::default().metadata(below.clone()).unwrap().merged_with(&over);
            let mut expected = below;
            expected.extend(over);
            prop_assert_eq!(merged, Limits::default().metadata(expected).unwrap());
        }
    }

    #[test]
    fn size_is_bounded_and_told() {
        let limits = Limits { metadata_bytes: 10, ..Limits::default() };
        assert!(limits.metadata([("12345", "67890")]).is_ok());
        assert_eq!(limits.metadata([("12345", "678901")]).unwrap_err(), TooLarge { size: 11, limit: 10 });
    }

    #[test]
    fn long_values_keep_their_length() {
        let long = "v".repeat(70_000);
        let limits = Limits { metadata_bytes: 16_777_215, ..Limits::default() };
        let metadata = limits.metadata([("k", long.as_str())]).unwrap();
        assert_eq!(metadata.value("k"), Some(long.as_str()));
    }

    #[test]
    fn equal_metadata_can_share_memory() {
        let a = Limits::default().metadata([("k", "v")]).unwrap();
        let b = Limits::default().metadata([("k", "v")]).unwrap().shared_with(&a);
        assert_eq!(a.0.as_ref().unwrap().as_ptr(), b.0.as_ref().unwrap().as_ptr());
    }
}
