//! `nomina.registry.v1`: what a request says, as values of the registry, and the registry's values as answers.
//!
//! Names and metadata are checked by [`Limits`](crate::registry::limits::Limits) alone; here stands only what the
//! message form adds: missing parts, enums, durations, masks, tokens.

pub mod instance;
pub mod namespace;
pub mod operator;
pub mod page;
pub mod service;
pub mod watch;

use std::{fmt, time::Duration};

use prost_types::FieldMask;

use crate::error::{Classify, Code};

/// A part of a request that cannot be used, whatever the registry holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A message that is required is absent.
    #[error("{field} is required")]
    Missing {
        /// Which one.
        field: &'static str,
    },
    /// A number that stands for no value of its enum.
    #[error("{field} has no value {value}")]
    Enum {
        /// Which field.
        field: &'static str,
        /// The number.
        value: i32,
    },
    /// A number outside of its range.
    #[error("{field} is {value}; allowed are {allowed}")]
    Range {
        /// Which field.
        field: &'static str,
        /// What was given.
        value: i64,
        /// What is allowed, in words.
        allowed: &'static str,
    },
    /// A duration that is negative, malformed, or no whole number of milliseconds.
    #[error("{field} is no duration of whole milliseconds: {seconds} s and {nanos} ns")]
    Duration {
        /// Which field.
        field: &'static str,
        /// Its seconds.
        seconds: i64,
        /// Its nanoseconds.
        nanos: i32,
    },
    /// A text that is too long.
    #[error("{field} is {length} characters long; at most {limit} are allowed")]
    TooLong {
        /// Which field.
        field: &'static str,
        /// Its length in characters.
        length: usize,
        /// The bound.
        limit: usize,
    },
    /// A mask that names what cannot be changed.
    #[error("update_mask names '{path}'; allowed are {allowed} and '*'")]
    Mask {
        /// The path, cut to 128 bytes.
        path: String,
        /// What is allowed, in words.
        allowed: String,
    },
    /// A request that changes nothing.
    #[error("nothing to change: update_mask is empty and no field is set; allowed are {allowed}")]
    NoChange {
        /// What could be changed, in words.
        allowed: String,
    },
    /// A page token that this server did not make.
    #[error("page_token is not one that this server gave out")]
    Token,
}

impl Classify for DecodeError {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }

    fn field(&self) -> Option<&'static str> {
        Some(match self {
            Self::Missing { field }
            | Self::Enum { field, .. }
            | Self::Range { field, .. }
            | Self::TooLong { field, .. }
            | Self::Duration { field, .. } => field,
            Self::Mask { .. } | Self::NoChange { .. } => "update_mask",
            Self::Token => "page_token",
        })
    }
}

/// The shape of a request: tells where in it a word of the domain stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A key, and a `spec` of what is published.
    Registration,
    /// A key, and all else beside it.
    Keyed,
    /// A key, and `settings`.
    Settings,
    /// No key: all fields beside each other.
    Flat,
    /// A `namespace` message.
    Namespace,
    /// The `id` of a namespace.
    Id,
}

/// An error, with its field as a path in a request of a known shape: `port` of a [`Shape::Keyed`] is `key.port`.
#[derive(Debug)]
pub struct At<E>(pub Shape, pub E);

impl<E: Classify> fmt::Display for At<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.1.fmt(f)
    }
}

impl<E: Classify> Classify for At<E> {
    fn code(&self) -> Code {
        self.1.code()
    }

    fn field(&self) -> Option<&'static str> {
        self.1.field().map(|word| path(self.0, word))
    }
}

fn path(shape: Shape, word: &'static str) -> &'static str {
    match (shape, word) {
        (Shape::Flat, _) => word,
        (Shape::Namespace, "namespace") => "namespace.id",
        (Shape::Id, "namespace") => "id",
        (Shape::Registration | Shape::Keyed | Shape::Settings, "namespace") => "key.namespace",
        (Shape::Registration | Shape::Keyed | Shape::Settings, "group") => "key.group",
        (Shape::Registration | Shape::Keyed | Shape::Settings, "service") => "key.service",
        (Shape::Registration | Shape::Keyed, "cluster") => "key.cluster",
        (Shape::Registration | Shape::Keyed, "ip") => "key.ip",
        (Shape::Registration | Shape::Keyed, "port") => "key.port",
        (Shape::Registration, "weight") => "spec.weight",
        (Shape::Registration, "metadata") => "spec.metadata",
        (Shape::Registration, "kind" | "ephemeral") => "spec.kind",
        _ => word,
    }
}

/// Which of the `allowed` fields a request changes, in their order.
///
/// * `set`: whether each of them is set in the request; decides when the mask is absent or empty.
///
/// # Errors
/// [`DecodeError::Mask`] for a path that is not allowed, [`DecodeError::NoChange`] if nothing is to change.
pub fn changed<const N: usize>(
    mask: Option<&FieldMask>,
    allowed: [&'static str; N],
    set: [bool; N],
) -> Result<[bool; N], DecodeError> {
    let words = || allowed.map(|name| format!("'{name}'")).join(", ");
    let paths = mask.map_or(&[][..], |mask| mask.paths.as_slice());
    let mut changed = if paths.is_empty() { set } else { [false; N] };
    for path in paths {
        if path == "*" {
            changed = [true; N];
            continue;
        }
        let field = allowed.iter().position(|name| name == path).and_then(|at| changed.get_mut(at));
        *field.ok_or_else(|| DecodeError::Mask { path: crate::registry::key::excerpt(path), allowed: words() })? = true;
    }
    if changed.contains(&true) { Ok(changed) } else { Err(DecodeError::NoChange { allowed: words() }) }
}

/// Whole milliseconds of a duration.
///
/// # Errors
/// [`DecodeError::Duration`] if it is negative, malformed, or finer than a millisecond.
pub fn millis(field: &'static str, duration: prost_types::Duration) -> Result<u64, DecodeError> {
    let prost_types::Duration { seconds, nanos } = duration;
    let refused = DecodeError::Duration { field, seconds, nanos };
    match (u64::try_from(seconds), u64::try_from(nanos)) {
        (Ok(whole), Ok(part)) if part < 1_000_000_000 && part % 1_000_000 == 0 => {
            whole.checked_mul(1_000).and_then(|ms| ms.checked_add(part / 1_000_000)).ok_or(refused)
        }
        _ => Err(refused),
    }
}

/// A duration, down to the millisecond.
#[must_use]
pub fn duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_millis()).unwrap_or(0) * 1_000_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(paths: &[&str]) -> FieldMask {
        FieldMask { paths: paths.iter().map(|&path| path.to_owned()).collect() }
    }

    #[test]
    fn a_mask_decides_and_without_one_what_is_set() {
        let allowed = ["weight", "metadata"];
        assert_eq!(changed(None, allowed, [true, false]), Ok([true, false]));
        assert_eq!(changed(Some(&mask(&["metadata"])), allowed, [true, false]), Ok([false, true]));
        assert_eq!(changed(Some(&mask(&["*"])), allowed, [false, false]), Ok([true, true]));
        for empty in [None, Some(&mask(&[]))] {
            assert!(matches!(changed(empty, allowed, [false, false]), Err(DecodeError::NoChange { .. })));
        }
        let error = changed(Some(&mask(&["ip"])), allowed, [true, true]).unwrap_err();
        assert_eq!(error.field(), Some("update_mask"));
        assert_eq!(error.to_string(), "update_mask names 'ip'; allowed are 'weight', 'metadata' and '*'");
    }

    #[test]
    fn durations_are_whole_milliseconds() {
        let of = |seconds, nanos| millis("d", prost_types::Duration { seconds, nanos });
        assert_eq!(of(2, 5_000_000), Ok(2_005));
        for (seconds, nanos) in [(-1, 0), (0, -1), (0, 1), (0, 1_000_000_000), (i64::MAX, 0)] {
            assert!(of(seconds, nanos).is_err(), "{seconds} {nanos}");
        }
        assert_eq!(duration(Duration::from_micros(1_500)), prost_types::Duration { seconds: 0, nanos: 1_000_000 });
    }

    #[test]
    fn fields_are_paths_in_the_request() {
        let error = DecodeError::Missing { field: "port" };
        assert_eq!(At(Shape::Keyed, error.clone()).field(), Some("key.port"));
        assert_eq!(At(Shape::Flat, error).field(), Some("port"));
    }
}
