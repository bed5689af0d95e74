//! Payloads on the wire of tonic: how they are read, and how a single answer is written.

use bytes::BufMut;
use prost::Message as _;
use tonic::{
    Status,
    codec::{BufferSettings, Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

use crate::wire::sdk::{Message, UNARY_PREFIX, pb::Payload};

/// Reads payloads and writes messages.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Envelope;

impl Codec for Envelope {
    type Encode = Message;
    type Decode = Payload;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Envelope {
    type Item = Message;
    type Error = Status;

    fn encode(&mut self, message: Message, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        let [mut head, shared] = message.framed();
        // The frame is tonic's to write here.
        let head = head.split_off(UNARY_PREFIX.min(head.len()));
        buffer.reserve(head.len() + shared.len());
        buffer.put(head);
        buffer.put(shared);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        small_buffer()
    }
}

impl Decoder for Envelope {
    type Item = Payload;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Payload>, Status> {
        match Payload::decode(buffer) {
            Ok(payload) => Ok(Some(payload)),
            Err(error) => Err(Status::invalid_argument(format!("the message is no Payload: {error}"))),
        }
    }

    fn buffer_settings(&self) -> BufferSettings {
        small_buffer()
    }
}

/// Buffers grow to what a message needs. What they begin with is held for as long as a stream lives, so it is no more
/// than an acknowledgement: tonic's own 8 KiB would be a quarter of what an idle connection costs.
fn small_buffer() -> BufferSettings {
    BufferSettings::new(512, 32 * 1024)
}

/// The compression of the messages of a request.
///
/// # Errors
/// UNIMPLEMENTED for one that is not known.
pub(super) fn encoding(headers: &http::HeaderMap) -> Result<Option<CompressionEncoding>, Status> {
    match headers.get("grpc-encoding").map(http::HeaderValue::as_bytes) {
        None | Some(b"identity") => Ok(None),
        Some(b"gzip") => Ok(Some(CompressionEncoding::Gzip)),
        Some(_) => Err(Status::unimplemented("messages may be compressed by gzip only")),
    }
}

/// The type name and the body of a payload; empty if they are missing.
pub(super) fn parts(payload: Payload) -> (crate::wire::sdk::pb::Metadata, Vec<u8>) {
    (payload.metadata.unwrap_or_default(), payload.body.map(|body| body.value).unwrap_or_default())
}
