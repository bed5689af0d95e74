//! Durations as people write them in settings: `500ms`, `15s`, `1m`, `2h`.

use std::time::Duration;

use serde::{Deserializer, Serializer, de};

const UNITS: [(&str, u64); 4] = [("ms", 1), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];

/// Reads a duration.
///
/// # Errors
/// A sentence with the text and what is allowed, if it is no whole number with one of the units `ms`, `s`, `m`, `h`.
pub fn parse(text: &str) -> Result<Duration, String> {
    UNITS
        .iter()
        .find_map(|(unit, millis)| text.trim().strip_suffix(unit).map(|number| (number, *millis)))
        .and_then(|(number, millis)| number.trim_end().parse::<u64>().ok()?.checked_mul(millis))
        .map(Duration::from_millis)
        .ok_or_else(|| format!("'{text}' is not a duration; write a whole number with a unit: 500ms, 15s, 1m or 2h"))
}

/// Writes a duration with the largest unit that needs no fraction. Parts below a millisecond are dropped.
#[must_use]
pub fn print(duration: Duration) -> String {
    let millis = duration.as_millis();
    for (unit, size) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000)] {
        if millis >= size && millis.is_multiple_of(size) {
            return format!("{}{unit}", millis / size);
        }
    }
    format!("{millis}ms")
}

/// For `#[serde(with = "crate::duration_text")]`.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&print(*duration))
}

/// For `#[serde(with = "crate::duration_text")]`.
///
/// # Errors
/// As [`parse`]; and whatever is no text.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    struct Visitor;
    impl de::Visitor<'_> for Visitor {
        type Value = Duration;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a duration with a unit, such as \"500ms\", \"15s\", \"1m\" or \"2h\"")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
            parse(text).map_err(E::custom)
        }
    }
    deserializer.deserialize_any(Visitor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        for text in ["500ms", "15s", "1m", "2h", "0ms", "90s", "1500ms"] {
            assert_eq!(print(parse(text).unwrap()), text);
        }
    }

    #[test]
    fn refuses_what_has_no_unit_or_no_number() {
        for text in ["", "15", "s", "-1s", "1.5s", "15 parsecs", "99999999999999999999h"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
