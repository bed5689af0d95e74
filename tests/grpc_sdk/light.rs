//! A client that costs the machine it shares with the server as little as may be: HTTP/2 by hand, without a library.
//!
//! The stream of the protocol is stream 1, each request a stream after it. Of a message only the beginning is kept: what it
//! is, and its number, to acknowledge it.

use std::{
    cell::RefCell,
    collections::{HashMap, VecDeque},
    io,
    net::SocketAddr,
    sync::Arc,
};

use nomina::wire::sdk::pb::Payload;
use prost::Message as _;
use tokio::{io::AsyncWriteExt, net::TcpStream, task::JoinHandle};

use super::{
    client::{go, payload, raw_payload},
    load::Pushes,
};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// As SDKs in Java have them.
const WINDOW: u32 = 1024 * 1024;
/// How much of a message is kept.
const BEGINNING: usize = 512;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;

/// A connection that is set up; it ends when this is dropped.
pub struct Light {
    reader: JoinHandle<()>,
}

impl Light {
    /// Connects, asks `requests` one after the other, and fails if one is refused. Notes all pushes from then on.
    pub async fn connect(address: SocketAddr, pushes: Arc<Pushes>, requests: Vec<Payload>) -> Self {
        let mut wire = Wire::new(TcpStream::connect(address).await.unwrap(), pushes);
        wire.out.extend(PREFACE);
        let window = [&[0, 4][..], &WINDOW.to_be_bytes()].concat();
        wire.frame(SETTINGS, 0, 0, &window);
        wire.frame(WINDOW_UPDATE, 0, 0, &WINDOW.to_be_bytes());
        wire.open(1, "/BiRequestStream/requestBiStream");
        wire.send(1, 0, &payload("ConnectionSetupRequest", &go()));
        for (number, request) in requests.iter().enumerate() {
            let stream = u32::try_from(number).unwrap() * 2 + 3;
            wire.open(stream, "/Request/request");
            wire.send(stream, 1, request);
            let answer = wire.answer(stream).await.expect("an answer");
            let beginning = String::from_utf8_lossy(&answer);
            assert!(beginning.contains("\"errorCode\":0,"), "{beginning}");
        }
        let reader = tokio::spawn(async move { while wire.turn().await.is_ok() {} });
        Self { reader }
    }

    /// Whether the other end is gone.
    pub fn has_ended(&self) -> bool {
        self.reader.is_finished()
    }
}

impl Drop for Light {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// One TCP connection: what is to be written, and how far the reading of frames and messages is.
struct Wire {
    tcp: TcpStream,
    pushes: Arc<Pushes>,
    out: Vec<u8>,
    frame: Vec<u8>,
    messages: HashMap<u32, Incoming>,
    answers: VecDeque<(u32, Vec<u8>)>,
    /// Bytes for which no window was given back.
    used: u32,
}

/// A message that comes in.
#[derive(Default)]
struct Incoming {
    beginning: Vec<u8>,
    seen: usize,
}

impl Wire {
    fn new(tcp: TcpStream, pushes: Arc<Pushes>) -> Self {
        tcp.set_nodelay(true).unwrap();
        let (out, frame, messages) = (Vec::new(), Vec::new(), HashMap::new());
        Self { tcp, pushes, out, frame, messages, answers: VecDeque::new(), used: 0 }
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        self.out.extend(&length[1..]);
        self.out.extend([kind, flags]);
        self.out.extend(stream.to_be_bytes());
        self.out.extend(payload);
    }

    /// The headers of a call, of which none is put into the table of the other end.
    fn open(&mut self, stream: u32, path: &str) {
        let mut block = vec![0x83, 0x86];
        for (name, value) in [(&[0x04][..], path), (&[0x01], "nomina"), (&[0x0f, 0x10], "application/grpc")] {
            block.extend(name);
            block.push(u8::try_from(value.len()).unwrap());
            block.extend(value.as_bytes());
        }
        block.extend(b"\x00\x02te\x08trailers");
        self.frame(HEADERS, 4, stream, &block);
    }

    fn send(&mut self, stream: u32, flags: u8, message: &Payload) {
        let message = message.encode_to_vec();
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        self.frame(DATA, flags, stream, &[&[0], &length[..], &message].concat());
    }

    async fn answer(&mut self, stream: u32) -> io::Result<Vec<u8>> {
        loop {
            match self.answers.pop_front() {
                Some((of, answer)) if of == stream => return Ok(answer),
                Some(_) => {}
                None => self.turn().await?,
            }
        }
    }

    /// Writes what is to be written, and reads once.
    async fn turn(&mut self) -> io::Result<()> {
        thread_local!(static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; 256 * 1024]));
        if !self.out.is_empty() {
            self.tcp.write_all(&self.out).await?;
            self.out.clear();
        }
        self.tcp.readable().await?;
        BUFFER.with_borrow_mut(|buffer| match self.tcp.try_read(buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                self.read(&buffer[..read]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        })
    }

    fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let wanted = match self.frame.get(..3) {
                Some(length) if self.frame.len() >= 9 => {
                    9 + u32::from_be_bytes([0, length[0], length[1], length[2]]) as usize
                }
                _ => 9,
            };
            let (part, rest) = bytes.split_at(bytes.len().min(wanted - self.frame.len()));
            self.frame.extend(part);
            bytes = rest;
            let whole = self.frame.len() >= 9
                && self.frame[..3] == u32::try_from(self.frame.len() - 9).unwrap().to_be_bytes()[1..];
            if whole {
                let frame = std::mem::take(&mut self.frame);
                let (head, payload) = frame.split_at(9);
                self.take(head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload);
                self.frame = frame;
                self.frame.clear();
            }
        }
    }

    fn take(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        match kind {
            DATA => {
                self.used += u32::try_from(payload.len()).unwrap();
                self.take_data(stream, payload);
                if self.used > WINDOW / 4 {
                    let used = std::mem::take(&mut self.used).to_be_bytes();
                    self.frame(WINDOW_UPDATE, 0, 0, &used);
                    self.frame(WINDOW_UPDATE, 0, 1, &used);
                }
            }
            SETTINGS if flags & 1 == 0 => self.frame(SETTINGS, 1, 0, &[]),
            PING if flags & 1 == 0 => self.frame(PING, 1, 0, payload),
            _ => {}
        }
    }

    fn take_data(&mut self, stream: u32, mut payload: &[u8]) {
        while !payload.is_empty() {
            let message = self.messages.entry(stream).or_default();
            let length =
                message.beginning.get(1..5).map(|length| 5 + u32::from_be_bytes(length.try_into().unwrap()) as usize);
            let (part, rest) = payload.split_at(payload.len().min(length.unwrap_or(5) - message.seen));
            message.seen += part.len();
            message.beginning.extend(&part[..part.len().min(BEGINNING - message.beginning.len())]);
            payload = rest;
            let length =
                message.beginning.get(1..5).map(|length| 5 + u32::from_be_bytes(length.try_into().unwrap()) as usize);
            if length == Some(message.seen) {
                let message = std::mem::take(message);
                if stream == 1 {
                    self.told(&message.beginning)
                } else {
                    self.answers.push_back((stream, message.beginning))
                }
            }
        }
    }

    /// The server asked or told something: acknowledges it.
    fn told(&mut self, beginning: &[u8]) {
        let text = String::from_utf8_lossy(beginning);
        let between = |before: &str, after| text.split_once(before).and_then(|(_, rest)| rest.split_once(after));
        let Some((id, _)) = between("\"requestId\":\"", "\"") else { return };
        let push = text.contains("NotifySubscriberRequest");
        let kind = if push { "NotifySubscriberResponse" } else { "ClientDetectionResponse" };
        let ack = raw_payload(kind, format!("{{\"resultCode\":200,\"requestId\":\"{id}\"}}").into_bytes());
        if push {
            self.pushes.note();
        }
        self.send(1, 0, &ack);
    }
}
