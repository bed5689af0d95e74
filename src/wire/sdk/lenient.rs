//! Fields as SDKs in six languages write them: `null` for absent, numbers as `1`, `1.0` or `"1"`.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};

/// A value that is neither object nor array.
#[derive(Debug, Clone, PartialEq)]
enum Scalar {
    Null,
    Bool(bool),
    Whole(i64),
    Number(f64),
    Text(String),
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number, a boolean or null")
    }

    fn visit_unit<E>(self) -> Result<Scalar, E> {
        Ok(Scalar::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Scalar, E> {
        Ok(Scalar::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Scalar, E> {
        Ok(Scalar::Whole(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Scalar, E> {
        Ok(Scalar::Whole(i64::try_from(value).unwrap_or(i64::MAX)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Scalar, E> {
        Ok(Scalar::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Scalar, E> {
        Ok(Scalar::Text(value))
    }
}

impl Scalar {
    fn text(self) -> Option<String> {
        match self {
            Self::Null => None,
            Self::Text(text) => Some(text),
            Self::Bool(value) => Some(value.to_string()),
            Self::Whole(value) => Some(value.to_string()),
            Self::Number(value) => Some(value.to_string()),
        }
    }
}

/// Text; `null` is the empty one.
pub fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Scalar::deserialize(deserializer)?.text().unwrap_or_default())
}

/// A whole number; `null` and blank text are absent.
pub fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    let wrong = |value: &dyn fmt::Display| serde::de::Error::custom(format_args!("{value} is not a whole number"));
    match Scalar::deserialize(deserializer)? {
        Scalar::Null => Ok(None),
        Scalar::Whole(value) => Ok(Some(value)),
        #[expect(clippy::cast_possible_truncation, reason = "whole and in range")]
        Scalar::Number(value) if value.fract() == 0.0 && value.abs() < 9.0e15 => Ok(Some(value as i64)),
        Scalar::Number(value) => Err(wrong(&value)),
        Scalar::Text(text) if text.trim().is_empty() => Ok(None),
        Scalar::Text(text) => text.trim().parse().map(Some).map_err(|_| wrong(&crate::registry::key::excerpt(&text))),
        Scalar::Bool(value) => Err(wrong(&value)),
    }
}

/// A number; `null` and blank text are absent. Java writes what is no number as the text `"NaN"`.
pub fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    match Scalar::deserialize(deserializer)? {
        Scalar::Null => Ok(None),
        #[expect(clippy::cast_precision_loss, reason = "far beyond what is allowed for any number here")]
        Scalar::Whole(value) => Ok(Some(value as f64)),
        Scalar::Number(value) => Ok(Some(value)),
        Scalar::Text(text) if text.trim().is_empty() => Ok(None),
        Scalar::Text(text) => text.trim().parse().map(Some).map_err(|_| {
            serde::de::Error::custom(format_args!("'{}' is not a number", crate::registry::key::excerpt(&text)))
        }),
        Scalar::Bool(value) => Err(serde::de::Error::custom(format_args!("{value} is not a number"))),
    }
}

/// A truth value; `null` is absent.
pub fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    let wrong = || serde::de::Error::custom("a boolean must be true or false");
    match Scalar::deserialize(deserializer)? {
        Scalar::Null => Ok(None),
        Scalar::Bool(value) => Ok(Some(value)),
        Scalar::Text(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
        Scalar::Text(text) if text.is_empty() || text.eq_ignore_ascii_case("false") => Ok(Some(false)),
        Scalar::Whole(value @ (0 | 1)) => Ok(Some(value == 1)),
        Scalar::Text(_) | Scalar::Whole(_) | Scalar::Number(_) => Err(wrong()),
    }
}

/// An object of text to text, in its order; `null` is the empty one, and so is a pair whose value is `null`.
pub fn pairs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, String)>, D::Error> {
    struct Pairs;

    impl<'de> Visitor<'de> for Pairs {
        type Value = Vec<(String, String)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of strings or null")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut pairs = Vec::new();
            while let Some((key, value)) = map.next_entry::<String, Scalar>()? {
                pairs.extend(value.text().map(|value| (key, value)));
            }
            Ok(pairs)
        }
    }

    deserializer.deserialize_any(Pairs)
}

/// An array; `null` is the empty one, and elements that are `null` are passed over.
pub fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    struct List<T>(std::marker::PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array or null")
        }

        fn visit_unit<E>(self) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(next) = seq.next_element::<Option<T>>()? {
                list.extend(next);
            }
            Ok(list)
        }
    }

    deserializer.deserialize_any(List(std::marker::PhantomData))
}

/// Whether the key is there with any value but `null`.
pub fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<serde::de::IgnoredAny>::deserialize(deserializer)?.is_some())
}
