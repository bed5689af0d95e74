//! One message on its way out: the envelope around a JSON body, of which the large part may be shared.

use bytes::{BufMut, Bytes, BytesMut};
use prost::encoding::{encode_varint, encoded_len_varint};

/// How many bytes of [`Message::framed`] are not the message itself but the frame that gRPC puts around it: a flag for
/// compression and four bytes of length.
pub const UNARY_PREFIX: usize = 5;

/// The keys of the envelope's fields, as on the wire: number and type.
const PAYLOAD_METADATA: u8 = 0x12;
const PAYLOAD_BODY: u8 = 0x1a;
const METADATA_TYPE: u8 = 0x1a;
const ANY_VALUE: u8 = 0x12;

/// An encoded message. Its second part is shared by all messages that hold the same list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    head: Bytes,
    shared: Bytes,
}

impl Message {
    /// A message of type `kind` with this body.
    #[must_use]
    pub fn new(kind: &str, json: &str) -> Self {
        Self::sharing(kind, json, Bytes::new())
    }

    /// A message of type `kind` whose body is `before` and `shared`, which is not copied.
    #[must_use]
    pub fn sharing(kind: &str, before: &str, shared: Bytes) -> Self {
        let json = before.len() + shared.len();
        let metadata = field_len(kind.len());
        let any = field_len(json);
        let payload = field_len(metadata) + field_len(any);
        let own = payload - shared.len();
        let mut head = BytesMut::with_capacity(UNARY_PREFIX + own);
        head.put_u8(0);
        // gRPC's own bound: a message is shorter than 4 GiB, and settings keep it far below.
        head.put_u32(u32::try_from(payload).unwrap_or(u32::MAX));
        put_key(&mut head, PAYLOAD_METADATA, metadata);
        put_key(&mut head, METADATA_TYPE, kind.len());
        head.put_slice(kind.as_bytes());
        put_key(&mut head, PAYLOAD_BODY, any);
        put_key(&mut head, ANY_VALUE, json);
        head.put_slice(before.as_bytes());
        Self { head: head.freeze(), shared }
    }

    /// The message in its gRPC frame, in two parts that follow each other; the second may be empty.
    #[must_use]
    pub fn framed(self) -> [Bytes; 2] {
        [self.head, self.shared]
    }

    /// How long the message is, without the frame.
    #[must_use]
    pub fn len(&self) -> usize {
        self.head.len() + self.shared.len() - UNARY_PREFIX
    }

    /// Whether the message has no bytes, which is never so: its type is always in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Length of a field with a key of one byte and `len` bytes of content.
fn field_len(len: usize) -> usize {
    1 + encoded_len_varint(len as u64) + len
}

fn put_key(buffer: &mut BytesMut, key: u8, len: usize) {
    buffer.put_u8(key);
    encode_varint(len as u64, buffer);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;
    use crate::wire::sdk::pb::Payload;

    proptest! {
        #[test]
        fn any_decoder_reads_what_is_written(kind: String, before: String, shared: String) {
            let message = Message::sharing(&kind, &before, Bytes::from(shared.clone()));
            let length = message.len();
            let whole = message.framed().concat();
            prop_assert_eq!(&whole[..1], &[0][..]);
            prop_assert_eq!(u32::from_be_bytes(whole[1..5].try_into().unwrap()) as usize, length);
            let payload = Payload::decode(&whole[5..]).unwrap();
            prop_assert_eq!(payload.metadata.unwrap().r#type, kind);
            prop_assert_eq!(payload.body.unwrap().value, format!("{before}{shared}").into_bytes());
        }
    }
}
