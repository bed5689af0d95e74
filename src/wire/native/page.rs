//! Paging: sizes and tokens.
//!
//! A token is the key of the last row of a page, so that rows that come and go between two pages shift nothing.

use prost::Message;

use super::DecodeError;
use crate::registry::{
    key::{InstanceKey, ServiceKey},
    limits::Limits,
};

/// An answer is cut at about this many bytes: half of what gRPC clients accept by default, so that the last row and the
/// envelope always fit.
pub const ANSWER_BYTES: usize = 2 * 1024 * 1024;

/// How many rows a page may have: what `asked` says, at most `most`; `default` if it says nothing.
///
/// # Errors
/// [`DecodeError::Range`] for a negative size.
pub fn size(asked: i32, default: usize, most: usize) -> Result<usize, DecodeError> {
    let refused = DecodeError::Range { field: "page_size", value: asked.into(), allowed: "0 and more" };
    let asked = usize::try_from(asked).map_err(|_| refused)?;
    Ok(if asked == 0 { default } else { asked.min(most) })
}

/// The token of an instance.
#[must_use]
pub fn instance_token(key: &InstanceKey) -> String {
    format!("{}/{}/{}", key.endpoint.address, key.endpoint.port, key.cluster)
}

/// The instance of a token; `None` for the empty token.
///
/// # Errors
/// [`DecodeError::Token`] if it was not made by [`instance_token`].
pub fn instance_key(limits: &Limits, token: &str) -> Result<Option<InstanceKey>, DecodeError> {
    if token.is_empty() {
        return Ok(None);
    }
    // An address may hold a slash; the other two parts may not.
    let mut parts = token.rsplitn(3, '/');
    let (cluster, port, address) = (parts.next(), parts.next(), parts.next());
    let read = || {
        let endpoint = limits.endpoint(address?, port?.parse().ok()?).ok()?;
        Some(InstanceKey { endpoint, cluster: limits.cluster(cluster?).ok()?? })
    };
    read().map(Some).ok_or(DecodeError::Token)
}

/// The token of a service.
#[must_use]
pub fn service_token(key: &ServiceKey) -> String {
    format!("{}/{}", key.group, key.name)
}

/// The service of a token in `namespace`; `None` for the empty token.
///
/// # Errors
/// [`DecodeError::Token`] if it was not made by [`service_token`].
pub fn service_key(limits: &Limits, namespace: &str, token: &str) -> Result<Option<ServiceKey>, DecodeError> {
    if token.is_empty() {
        return Ok(None);
    }
    // A service name may hold a slash; a group may not.
    token
        .split_once('/')
        .and_then(|(group, name)| limits.service_key(namespace, group, name).ok())
        .map(Some)
        .ok_or(DecodeError::Token)
}

/// The token of a subscriber: its address, and the number by which it is told from its like.
#[must_use]
pub fn subscriber_token(address: &str, number: u64) -> String {
    format!("{address}/{number}")
}

/// The address and the number of a token; `None` for the empty token.
///
/// # Errors
/// [`DecodeError::Token`] if it was not made by [`subscriber_token`].
pub fn subscriber(token: &str) -> Result<Option<(&str, u64)>, DecodeError> {
    if token.is_empty() {
        return Ok(None);
    }
    let read = || {
        let (address, number) = token.rsplit_once('/')?;
        Some((address, number.parse().ok()?))
    };
    read().map(Some).ok_or(DecodeError::Token)
}

/// The rows of one answer, cut at a count and at [`ANSWER_BYTES`].
#[derive(Debug)]
pub struct Page<T> {
    rows: Vec<T>,
    room: usize,
    bytes: usize,
}

impl<T: Message> Page<T> {
    /// An empty page for at most `most` rows.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { rows: Vec::new(), room: most, bytes: 0 }
    }

    /// This page, but with the bytes of `other` already taken, for two lists in one answer.
    #[must_use]
    pub fn after<U>(self, other: &Page<U>) -> Self {
        Self { bytes: self.bytes + other.bytes, ..self }
    }

    /// Adds a row; gives it back if the page is full. The first row always fits.
    ///
    /// # Errors
    /// The row.
    pub fn add(&mut self, row: T) -> Result<(), T> {
        // 8: the tag and the length of a row below 256 MiB.
        let bytes = self.bytes + row.encoded_len() + 8;
        if self.room == 0 || (bytes > ANSWER_BYTES && self.bytes > 0) {
            return Err(row);
        }
        self.room -= 1;
        self.bytes = bytes;
        self.rows.push(row);
        Ok(())
    }

    /// The rows.
    #[must_use]
    pub fn into_rows(self) -> Vec<T> {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::pb;

    #[test]
    fn tokens_name_their_row() {
        let limits = Limits::default();
        for (address, port, cluster) in [("10.0.0.1", 80, "a"), ("::1", 0, "b"), ("a/b", 65_535, "DEFAULT")] {
            let key = InstanceKey {
                endpoint: limits.endpoint(address, port).unwrap(),
                cluster: limits.cluster(cluster).unwrap().unwrap(),
            };
            assert_eq!(instance_key(&limits, &instance_token(&key)), Ok(Some(key)));
        }
        assert_eq!(subscriber(&subscriber_token("[::1]:9", 7)), Ok(Some(("[::1]:9", 7))));
        assert_eq!(subscriber("[::1]:9"), Err(DecodeError::Token));
        let key = limits.service_key("ns", "g", "a/b:c").unwrap();
        assert_eq!(service_key(&limits, "ns", &service_token(&key)), Ok(Some(key)));
    }

    #[test]
    fn foreign_tokens_are_refused() {
        let limits = Limits::default();
        for token in ["x", "/", "10.0.0.1/80/", "10.0.0.1/99999/a", "1.2.3/80/a", "a b/1/c"] {
            assert_eq!(instance_key(&limits, token), Err(DecodeError::Token), "{token}");
        }
        for token in ["x", "g/", "g/a@@b"] {
            assert_eq!(service_key(&limits, "", token), Err(DecodeError::Token), "{token}");
        }
    }

    #[test]
    fn a_page_ends_at_its_count_and_at_its_bytes() {
        let row = |size: usize| pb::InstanceAddress { ip: "x".repeat(size), ..Default::default() };
        let mut page = Page::new(2);
        assert!(page.add(row(1)).is_ok() && page.add(row(1)).is_ok() && page.add(row(1)).is_err());
        let mut page = Page::new(9);
        assert!(page.add(row(ANSWER_BYTES * 2)).is_ok(), "the first row always fits");
        assert!(page.add(row(1)).is_err());
        assert_eq!(page.into_rows().len(), 1);
        assert!(size(-1, 5, 10).is_err());
        assert_eq!((size(0, 5, 10), size(7, 5, 10), size(i32::MAX, 5, 10)), (Ok(5), Ok(7), Ok(10)));
    }
}
