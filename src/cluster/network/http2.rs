//! How HTTP/2 is set up between members, at both ends.

use std::time::Duration;

use hyper::{client, server};
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// Largest message, in bytes. What is sent is cut into pieces below 1 MiB, so 64 MiB is for one instance or service that
/// is itself so large; a message beyond it ends its call.
pub const MAX_MESSAGE: usize = 64 << 20;

/// Bytes that may be under way on one stream: 8 MiB fill 10 Gbit/s over 6 ms.
const STREAM_WINDOW: u32 = 8 << 20;

/// Bytes that may be under way on one connection. More than those of a stream, so that a link in a bulk transfer whose
/// receiver does not keep up leaves room for calls.
const CONNECTION_WINDOW: u32 = 16 << 20;

/// Bytes of one frame. Small enough that a call gets its turn between two frames of a bulk transfer.
const FRAME: u32 = 64 << 10;

/// Calls that may be open at once on one connection: links and forwarded writes. A caller beyond it waits.
const STREAMS: u32 = 4_096;

/// Silence after which an end asks whether the other is there.
const PING_INTERVAL: Duration = Duration::from_secs(2);

/// How long the answer may take before the connection is closed.
const PING_TIMEOUT: Duration = Duration::from_secs(4);

/// The end that dials.
#[must_use]
pub fn client() -> client::conn::http2::Builder<TokioExecutor> {
    let mut http = client::conn::http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME)
        .max_send_buf_size(1 << 20)
        // Every write that is given up leaves one for a while.
        .max_concurrent_reset_streams(STREAMS as usize)
        .max_local_error_reset_streams(None)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .keep_alive_while_idle(true);
    http
}

/// The end that accepts.
#[must_use]
pub fn server() -> server::conn::http2::Builder<TokioExecutor> {
    let mut http = server::conn::http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME)
        .max_send_buf_size(1 << 20)
        .max_concurrent_streams(STREAMS)
        // When this node stands still, writes are given up over there by the thousand. That is no attack: it is a member.
        .max_pending_accept_reset_streams(STREAMS as usize)
        .max_local_error_reset_streams(None)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    http
}
