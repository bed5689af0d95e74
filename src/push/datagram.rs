//! The form of a push and of its ack.
//!
//! Source: Nacos 1.4 `PushService.prepareAckEntry` and `AckPacket`; the v1 specification, 8.3 and 8.4.

use std::{
    io::{self, BufWriter, Write},
    sync::atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use serde::{Deserialize, Serialize};

/// The most that one datagram carries over IPv4.
pub(super) const MOST_BYTES: usize = 65_507;
/// From this length on a datagram is compressed.
const GZIP_BYTES: usize = 1_024;
/// Numbers stay below: the npm client reads them as doubles.
const NUMBER_BOUND: u64 = 1 << 53;

/// A list does not fit into one datagram even when it is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the list does not fit into a datagram of {MOST_BYTES} bytes")]
pub(super) struct TooLarge;

/// A push, ready to be sent to any number of subscribers.
#[derive(Debug, Clone)]
pub(super) struct Datagram {
    /// What its acks name.
    pub(super) number: u64,
    /// What is sent.
    pub(super) bytes: Bytes,
}

/// Gives each datagram of a process a number of its own.
#[derive(Debug)]
pub(super) struct Numbers(AtomicU64);

impl Numbers {
    /// Begins at a place that follows from the time of the start, so that a late ack to an earlier process on the same
    /// port matches nothing.
    pub(super) fn new(wall_millis: u64) -> Self {
        Self(AtomicU64::new(wall_millis.wrapping_mul(1_000)))
    }

    /// A number that was not given before.
    pub(super) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) % NUMBER_BOUND
    }
}

#[derive(Serialize)]
struct Outer<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    data: &'a str,
    #[serde(rename = "lastRefTime")]
    number: u64,
}

impl Datagram {
    /// Wraps the JSON text of a list; the whole is compressed if it is 1,024 bytes or more.
    ///
    /// # Errors
    /// [`TooLarge`], without compressing more than was needed to see it.
    pub(super) fn encode(data: &str, number: u64) -> Result<Self, TooLarge> {
        let outer = Outer { kind: "dom", data, number };
        if data.len() < GZIP_BYTES {
            let plain = serde_json::to_vec(&outer).map_err(|_| TooLarge)?;
            if plain.len() < GZIP_BYTES {
                return Ok(Self { number, bytes: plain.into() });
            }
        }
        let bytes = compress(&outer).map_err(|_| TooLarge)?;
        Ok(Self { number, bytes: bytes.into() })
    }
}

/// Fails only where [`Capped`] does.
fn compress(outer: &Outer<'_>) -> io::Result<Vec<u8>> {
    let gzip = GzEncoder::new(Capped(Vec::new()), Compression::default());
    let mut buffered = BufWriter::with_capacity(16 * 1_024, gzip);
    serde_json::to_writer(&mut buffered, outer)?;
    let gzip = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(gzip.finish()?.0)
}

/// Takes as much as a datagram carries.
struct Capped(Vec<u8>);

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Deserialize)]
struct Ack {
    #[serde(rename = "lastRefTime")]
    number: AckNumber,
}

/// Java and Go send a text, npm a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum AckNumber {
    Number(u64),
    Text(String),
}

/// The number that an ack names; `None` if it is no ack. Its `type` does not matter.
pub(super) fn ack_number(datagram: &[u8]) -> Option<u64> {
    match serde_json::from_slice::<Ack>(datagram).ok()?.number {
        AckNumber::Number(number) => Some(number),
        AckNumber::Text(text) => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    fn unpacked(bytes: &[u8]) -> String {
        let mut text = String::new();
        GzDecoder::new(bytes).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_small_one_is_plain_with_the_list_as_text() {
        let datagram = Datagram::encode(r#"{"hosts":[]}"#, 8_123_456_789_012).unwrap();
        let expected = r#"{"type":"dom","data":"{\"hosts\":[]}","lastRefTime":8123456789012}"#;
        assert_eq!(datagram.bytes, expected);
    }

    #[test]
    fn the_whole_is_compressed_from_1024_bytes_on() {
        let around = Datagram::encode("", 1).unwrap().bytes.len();
        let below = Datagram::encode(&"x".repeat(1_023 - around), 1).unwrap().bytes;
        assert_eq!(below.len(), 1_023);
        assert!(below.starts_with(b"{"));
        let from = Datagram::encode(&"x".repeat(1_024 - around), 1).unwrap().bytes;
        assert!(from.starts_with(&[0x1f, 0x8b]));
        assert_eq!(unpacked(&from).len(), 1_024);
        let escaped = Datagram::encode(&"\"".repeat(600), 1).unwrap().bytes;
        assert_eq!(unpacked(&escaped).len(), around + 1_200);
    }

    #[test]
    fn what_fits_only_compressed_is_sent_and_more_is_not() {
        let repeated = "0123456789".repeat(100_000);
        let bytes = Datagram::encode(&repeated, 1).unwrap().bytes;
        assert!(bytes.len() < MOST_BYTES);
        let json: serde_json::Value = serde_json::from_str(&unpacked(&bytes)).unwrap();
        assert_eq!(json["data"], repeated);
        let mut state = 1_u64;
        let random: String = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b' ' + u8::try_from(state >> 58).unwrap())
        })
        .take(200_000)
        .collect();
        assert!(matches!(Datagram::encode(&random, 1), Err(TooLarge)));
    }

    #[test]
    fn numbers_are_distinct_and_exact_as_doubles() {
        for wall in [0, 1_709_258_405_000, NUMBER_BOUND / 1_000, u64::MAX] {
            let numbers = Numbers::new(wall);
            let given: std::collections::BTreeSet<u64> = (0..2_000).map(|_| numbers.next()).collect();
            assert_eq!(given.len(), 2_000);
            assert!(given.iter().all(|number| *number < NUMBER_BOUND));
        }
    }

    #[test]
    fn acks_name_their_number_as_text_or_number() {
        for ack in [
            r#"{"type": "push-ack", "lastRefTime":"8123456789012", "data":""}"#,
            r#"{"type":"push-ack","lastRefTime":8123456789012,"data":""}"#,
            r#"{"lastRefTime":8123456789012}"#,
        ] {
            assert_eq!(ack_number(ack.as_bytes()), Some(8_123_456_789_012), "{ack}");
        }
        for ack in ["", "{", "[]", "null", "{}", r#"{"lastRefTime":-1}"#, r#"{"lastRefTime":"x"}"#, "\u{0}\u{ff}"] {
            assert_eq!(ack_number(ack.as_bytes()), None, "{ack}");
        }
        assert_eq!(ack_number("[".repeat(2_000).as_bytes()), None);
    }
}
