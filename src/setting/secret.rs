//! A text that is never shown.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Unexpected, Visitor},
};

/// What stands for a secret wherever one would be printed.
pub const MASK: &str = "********";

/// A secret text; empty means unset. `Debug`, `Display` and `Serialize` give [`MASK`] in its place (nothing if it is
/// unset), and an error about it never holds it. [`Secret::reveal`] is the only way to the text.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text`; an empty one is an unset secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Whether there is a secret at all.
    #[must_use]
    pub fn is_set(&self) -> bool {
        !self.0.is_empty()
    }

    /// The text itself, for the code that signs or compares. Never log it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    fn masked(&self) -> &'static str {
        if self.is_set() { MASK } else { "" }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", if self.is_set() { MASK } else { "unset" })
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.masked())
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.masked())
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Not deserialize_string: a format may then refuse another type by itself, with the value in its error.
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl TextVisitor {
    /// The error that serde would give for a value of the wrong type, without the value.
    fn refuse<E: de::Error>(self, kind: &str) -> Result<Secret, E> {
        Err(E::invalid_type(Unexpected::Other(kind), &self))
    }
}

impl Visitor<'_> for TextVisitor {
    type Value = Secret;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text in quotes")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Secret, E> {
        Ok(Secret::new(text))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Secret, E> {
        Ok(Secret(text))
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Secret, E> {
        self.refuse("a boolean")
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Secret, E> {
        self.refuse("a number")
    }

    fn visit_i128<E: de::Error>(self, _: i128) -> Result<Secret, E> {
        self.refuse("a number")
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Secret, E> {
        self.refuse("a number")
    }

    fn visit_u128<E: de::Error>(self, _: u128) -> Result<Secret, E> {
        self.refuse("a number")
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Secret, E> {
        self.refuse("a number")
    }

    fn visit_bytes<E: de::Error>(self, _: &[u8]) -> Result<Secret, E> {
        self.refuse("bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_never_shown() {
        let secret = Secret::new("open sesame");
        for shown in [format!("{secret:?}"), format!("{secret}"), serde_json::to_string(&secret).expect("a string")] {
            assert!(shown.contains(MASK) && !shown.contains("sesame"), "{shown}");
        }
        assert_eq!(secret.reveal(), "open sesame");
    }

    #[test]
    fn unset_is_told_apart_from_set() {
        assert_eq!(format!("{:?} {}.", Secret::default(), Secret::default()), "Secret(unset) .");
        assert!(!Secret::default().is_set());
    }

    #[test]
    fn a_value_of_the_wrong_type_is_not_in_the_error() {
        for (json, leak) in [("4711", "4711"), ("-4711", "4711"), ("47.11", "47.11"), ("true", "true")] {
            let error = serde_json::from_str::<Secret>(json).expect_err("not a string").to_string();
            assert!(!error.contains(leak), "{error}");
        }
    }
}
