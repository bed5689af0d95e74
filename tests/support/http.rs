//! A client of HTTP/1.1 that sends exactly the bytes that it is told to, well formed or not.

use std::{
    fmt,
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// What a server answered.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers, names in lower case, in the order of the answer.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as text.
    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body in UTF-8")
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// That it is `ok`, to the letter.
    #[track_caller]
    pub fn ok(&self) {
        assert_eq!((self.status, self.text()), (200, "ok"), "{self:?}");
    }

    /// That it is 400 and says each of `parts`.
    #[track_caller]
    pub fn refused(&self, parts: &[&str]) {
        assert_eq!(self.status, 400, "{self:?}");
        for part in parts {
            assert!(self.text().contains(part), "{part:?} is not in {self:?}");
        }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = String::from_utf8_lossy(&self.body);
        let shown: String = body.chars().take(2_000).collect();
        write!(f, "{} {:?} {shown:?}", self.status, self.headers)
    }
}

/// A TCP connection to the server.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    /// Connects. No read or write on it takes longer than a minute.
    #[track_caller]
    pub fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, read: Vec::new() }
    }

    /// Connects; neither that nor a read or write on it takes longer than `bound`.
    ///
    /// # Errors
    /// What the system says.
    pub fn try_open(address: SocketAddr, bound: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, bound)?;
        stream.set_read_timeout(Some(bound))?;
        stream.set_write_timeout(Some(bound))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, read: Vec::new() })
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// What the system says.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Reads one answer. One without a body (to HEAD) is announced by `bodiless`.
    ///
    /// # Errors
    /// What the system says; `UnexpectedEof` if the server closed the connection before the end of the answer.
    pub fn receive(&mut self, bodiless: bool) -> io::Result<Answer> {
        let head = loop {
            if let Some(end) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                let rest = self.read.split_off(end + 4);
                break String::from_utf8_lossy(&std::mem::replace(&mut self.read, rest)).into_owned();
            }
            self.more()?;
        };
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status line in {head:?}")))?;
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let mut answer = Answer { status, headers, body: Vec::new() };
        if status == 100 {
            return self.receive(bodiless);
        }
        if bodiless || status == 204 || status == 304 {
            return Ok(answer);
        }
        match answer.header("content-length") {
            Some(length) => {
                let length: usize = length.parse().map_err(io::Error::other)?;
                while self.read.len() < length {
                    self.more()?;
                }
                let rest = self.read.split_off(length);
                answer.body = std::mem::replace(&mut self.read, rest);
            }
            None if answer.header("transfer-encoding").is_some() => answer.body = self.chunks()?,
            None => {
                self.stream.read_to_end(&mut self.read)?;
                answer.body = std::mem::take(&mut self.read);
            }
        }
        Ok(answer)
    }

    /// Says that nothing more will be sent.
    pub fn finish(&mut self) {
        // The server may have closed it already.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Waits until the server asks for the body of a request that expects `100-continue`: its handler has begun.
    ///
    /// # Errors
    /// What the system says; another answer than `100`.
    pub fn continued(&mut self) -> io::Result<()> {
        while !self.read.ends_with(b"\r\n\r\n") {
            self.more()?;
        }
        let head = std::mem::take(&mut self.read);
        if head.starts_with(b"HTTP/1.1 100 ") { Ok(()) } else { Err(io::Error::other(format!("{head:?}"))) }
    }

    /// Sends a request and reads the answer.
    #[track_caller]
    pub fn call(&mut self, call: &Call) -> Answer {
        self.send(&call.bytes()).unwrap();
        self.receive(call.method == "HEAD").unwrap_or_else(|error| panic!("{error}: {call:?}"))
    }

    /// Sends a request and reads the answer.
    ///
    /// # Errors
    /// What the system says.
    pub fn try_call(&mut self, call: &Call) -> io::Result<Answer> {
        self.send(&call.bytes())?;
        self.receive(call.method == "HEAD")
    }

    /// Whether the server closes the connection within the read timeout; what it still sent before is lost.
    pub fn is_closed(&mut self, within: Duration) -> bool {
        self.stream.set_read_timeout(Some(within)).unwrap();
        loop {
            match self.stream.read(&mut [0; 1024]) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == io::ErrorKind::ConnectionReset,
            }
        }
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let size = usize::from_str_radix(line.split(';').next().unwrap_or("").trim(), 16);
            let size = size.map_err(io::Error::other)?;
            while self.read.len() < size + 2 {
                self.more()?;
            }
            body.extend(self.read.drain(..size));
            self.read.drain(..2);
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.read.windows(2).position(|two| two == b"\r\n") {
                let line: Vec<_> = self.read.drain(..end + 2).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            self.more()?;
        }
    }

    fn more(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.read.extend_from_slice(&buffer[..read]);
                Ok(())
            }
        }
    }
}

/// A request.
#[derive(Debug, Clone)]
pub struct Call {
    address: SocketAddr,
    method: String,
    path: String,
    query: Vec<String>,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Call {
    /// A request without parameters.
    pub fn new(address: SocketAddr, method: &str, path: &str) -> Self {
        Self {
            address,
            method: method.to_owned(),
            path: path.to_owned(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
        }
    }

    /// With a parameter in the query, encoded.
    pub fn param(mut self, name: &str, value: &str) -> Self {
        self.query.push(format!("{}={}", encoded(name), encoded(value)));
        self
    }

    /// With several parameters in the query, encoded.
    pub fn params(self, params: &[(&str, &str)]) -> Self {
        params.iter().fold(self, |call, (name, value)| call.param(name, value))
    }

    /// With this text in the query as it is.
    pub fn raw_query(mut self, text: &str) -> Self {
        self.query.push(text.to_owned());
        self
    }

    /// With a form of these parameters as body, encoded.
    pub fn form(self, params: &[(&str, &str)]) -> Self {
        let pairs: Vec<_> = params.iter().map(|(n, v)| format!("{}={}", encoded(n), encoded(v))).collect();
        self.raw_form(pairs.join("&").as_bytes())
    }

    /// With this form as body, as it is.
    pub fn raw_form(self, body: &[u8]) -> Self {
        self.header("Content-Type", "application/x-www-form-urlencoded;charset=UTF-8").body(body)
    }

    /// With this body and no word on its type.
    pub fn body(mut self, body: &[u8]) -> Self {
        self.body = Some(body.to_vec());
        self
    }

    /// With a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The request as it goes over the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let query = if self.query.is_empty() { String::new() } else { format!("?{}", self.query.join("&")) };
        let mut bytes =
            format!("{} {}{query} HTTP/1.1\r\nHost: {}\r\n", self.method, self.path, self.address).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        if let Some(body) = &self.body {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        bytes
    }

    /// Sends it on a connection of its own.
    #[track_caller]
    pub fn send(&self) -> Answer {
        Connection::open(self.address).call(self)
    }
}

/// `text` with everything but letters and digits percent-encoded.
pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
