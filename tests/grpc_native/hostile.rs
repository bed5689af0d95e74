//! Bytes that no client should send.

use nomina::wire::pb;
use prost::Message;
use tonic::{
    Code, Request, Status,
    client::Grpc,
    codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder},
    transport::Channel,
};

use crate::{Native, assert_refused, instance, list_of, map};

/// Sends bytes as they are.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        bytes::BufMut::put_slice(buffer, &item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut bytes = vec![0; bytes::Buf::remaining(buffer)];
        bytes::Buf::copy_to_slice(buffer, &mut bytes);
        Ok(Some(bytes))
    }
}

async fn send(channel: &Channel, path: &'static str, bytes: Vec<u8>) -> Result<Vec<u8>, Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.unwrap();
    let path = http::uri::PathAndQuery::from_static(path);
    grpc.unary(Request::new(bytes), path, Raw).await.map(tonic::Response::into_inner)
}

const REGISTER: &str = "/nomina.registry.v1.RegistryService/RegisterInstance";

#[tokio::test]
async fn broken_messages_are_the_clients_fault_and_the_connection_lives_on() {
    let mut native = Native::start().await;
    let good = pb::RegisterInstanceRequest { key: Some(instance("s", 1)), spec: None }.encode_to_vec();
    let mut cases = vec![
        vec![0xff],
        vec![0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f],
        vec![0x07; 100],
        // A service name that is not UTF-8.
        vec![0x0a, 0x04, 0x1a, 0x02, 0xc3, 0x28],
        good[..good.len() - 1].to_vec(),
    ];
    // A message nested deeper than any real one, in a group that is unknown.
    cases.push(vec![0x0b; 5_000]);
    for bytes in cases {
        let answer = send(&native.channel, REGISTER, bytes.clone()).await;
        assert_refused(answer, Code::InvalidArgument, "");
    }
    let mut state = 88_172_645_463_325_252_u64;
    for _ in 0..500 {
        let mut bytes = good.clone();
        for _ in 0..3 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = (state >> 8) as usize % bytes.len();
            bytes[at] = state as u8;
        }
        if let Err(status) = send(&native.channel, REGISTER, bytes).await {
            assert!(matches!(status.code(), Code::InvalidArgument | Code::Unimplemented), "{status:?}");
        }
    }
    native.register(instance("alive", 1), Default::default()).await;
}

#[tokio::test]
async fn unknown_services_and_methods_are_unimplemented() {
    let native = Native::start().await;
    for path in ["/nomina.registry.v1.RegistryService/Nothing", "/no.such.Service/Get", "/"] {
        assert_refused(send(&native.channel, path, vec![]).await, Code::Unimplemented, "");
    }
}

#[tokio::test]
async fn unknown_fields_are_passed_over() {
    let mut native = Native::start().await;
    let mut bytes = pb::RegisterInstanceRequest { key: Some(instance("s", 1)), spec: None }.encode_to_vec();
    // Field 1000, of four bytes.
    bytes.extend([0xc2, 0x3e, 0x04, 1, 2, 3, 4]);
    send(&native.channel, REGISTER, bytes).await.unwrap();
    assert_eq!(native.list(list_of("s")).await.total_size, 1);
}

#[tokio::test]
async fn an_oversized_message_is_refused_by_its_size() {
    let mut native = Native::with(&["grpc.max_message_bytes=65536"]).await;
    let spec = |size| pb::InstanceSpec { metadata: map(&[("k", &"v".repeat(size))]), ..Default::default() };
    let request = |size| pb::RegisterInstanceRequest { key: Some(instance("s", 1)), spec: Some(spec(size)) };
    let answer = native.registry.register_instance(request(70_000)).await;
    let status = assert_refused(answer, Code::ResourceExhausted, "");
    assert!(status.message().contains("65536"), "{}", status.message());
    // Small on the wire, large behind it.
    let mut gzip = native.registry.clone().send_compressed(CompressionEncoding::Gzip);
    assert_refused(gzip.register_instance(request(10_000_000)).await, Code::ResourceExhausted, "");
    gzip.register_instance(request(60_000)).await.unwrap();
    native.register(instance("alive", 1), Default::default()).await;
}

#[tokio::test]
async fn a_broken_message_in_a_stream_ends_that_stream_only() {
    let mut native = Native::start().await;
    let mut grpc = Grpc::new(native.channel.clone());
    grpc.ready().await.unwrap();
    let path = http::uri::PathAndQuery::from_static("/nomina.registry.v1.RegistryService/StreamBeats");
    let good = pb::StreamBeatsRequest { sequence: 7, ..Default::default() }.encode_to_vec();
    let requests = tokio_stream::iter([good.clone(), vec![0xff], good]);
    let mut answers = grpc.streaming(Request::new(requests), path, Raw).await.unwrap().into_inner();
    let first = pb::StreamBeatsResponse::decode(answers.message().await.unwrap().unwrap().as_slice()).unwrap();
    assert_eq!(first.sequence, 7);
    assert_refused(answers.message().await, Code::InvalidArgument, "");
    native.register(instance("alive", 1), Default::default()).await;
}
