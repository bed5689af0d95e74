//! Durations in settings: a whole number with a unit (`500ms`, `15s`, `1m`, `2h`), never a bare number.
//!
//! Use as `#[serde(with = "crate::setting::duration")]` on a `Duration` field. What is printed reads back as exactly the
//! same duration, in the largest unit that divides it (`60s` is printed as `1m`).

use std::{fmt, time::Duration};

use serde::{
    Deserializer, Serializer,
    de::{self, Visitor},
    ser,
};

/// What a duration may look like; for [`Setting::allowed`](super::Setting::allowed) and for errors.
pub const ALLOWED: &str = r#"a whole number with a unit, ms, s, m or h: "500ms", "15s", "1m", "2h""#;

/// Units and their length in milliseconds, the longest first.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Why a text is no duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A number and nothing else.
    #[error("a duration needs a unit")]
    NoUnit,
    /// Neither a number nor a known unit in the right place.
    #[error("not a duration")]
    Malformed,
    /// More milliseconds than 64 bits hold.
    #[error("a duration this long cannot be held")]
    TooLong,
}

/// Reads `500ms`, `15s`, `1m`, `2h`.
///
/// # Errors
/// [`Error`] for anything else: no unit, a sign, a fraction, blanks, two units.
pub fn parse(text: &str) -> Result<Duration, Error> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(Error::Malformed);
    }
    if unit.is_empty() {
        return Err(Error::NoUnit);
    }
    let (_, unit_ms) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or(Error::Malformed)?;
    let number: u64 = number.parse().map_err(|_| Error::TooLong)?;
    number.checked_mul(unit_ms).map(Duration::from_millis).ok_or(Error::TooLong)
}

/// Writes a duration as [`parse`] reads it; `None` if it is not a whole number of milliseconds, or too long.
#[must_use]
pub fn text(duration: Duration) -> Option<String> {
    let ms = u64::try_from(duration.as_millis()).ok()?;
    if Duration::from_millis(ms) != duration {
        return None;
    }
    if ms == 0 {
        return Some("0s".to_owned());
    }
    UNITS.into_iter().find(|(_, unit_ms)| ms % unit_ms == 0).map(|(name, unit_ms)| format!("{}{name}", ms / unit_ms))
}

/// The `serialize` half of `#[serde(with = …)]`.
///
/// # Errors
/// If the duration is not a whole number of milliseconds.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    let text = text(*duration)
        .ok_or_else(|| ser::Error::custom(format_args!("{duration:?} is not a whole number of milliseconds")))?;
    serializer.serialize_str(&text)
}

/// The `deserialize` half of `#[serde(with = …)]`.
///
/// # Errors
/// As [`parse`]; a number is refused, since its unit would be a guess.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    deserializer.deserialize_any(TextVisitor)
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ALLOWED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
        parse(text).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Duration, E> {
        Err(E::custom(Error::NoUnit))
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Duration, E> {
        Err(E::custom(Error::NoUnit))
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Duration, E> {
        Err(E::custom(Error::NoUnit))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_every_unit() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(parse("1m"), Ok(Duration::from_secs(60)));
        assert_eq!(parse("2h"), Ok(Duration::from_secs(7_200)));
        assert_eq!(parse("0s"), Ok(Duration::ZERO));
    }

    #[test]
    fn refuses_everything_else() {
        for (text, error) in [
            ("15", Error::NoUnit),
            ("", Error::Malformed),
            ("s", Error::Malformed),
            ("-1s", Error::Malformed),
            ("+1s", Error::Malformed),
            ("1.5s", Error::Malformed),
            ("1 s", Error::Malformed),
            ("1m30s", Error::Malformed),
            ("1d", Error::Malformed),
            ("1S", Error::Malformed),
            ("١s", Error::Malformed),
            ("99999999999999999999s", Error::TooLong),
            ("18446744073709551615h", Error::TooLong),
        ] {
            assert_eq!(parse(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn prints_in_the_largest_unit_that_divides() {
        for (ms, expected) in
            [(0, "0s"), (1, "1ms"), (1_500, "1500ms"), (60_000, "1m"), (90_000, "90s"), (7_200_000, "2h")]
        {
            assert_eq!(text(Duration::from_millis(ms)).as_deref(), Some(expected));
        }
        assert_eq!(text(Duration::from_micros(1)), None);
        assert_eq!(text(Duration::MAX), None);
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back_the_same(ms: u64) {
            let duration = Duration::from_millis(ms);
            prop_assert_eq!(text(duration).map(|text| parse(&text)), Some(Ok(duration)));
        }
    }
}
