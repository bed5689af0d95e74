//! What a v1 handler gets of a request: parameters, who called, and helpers that read the names common to all paths.

use std::net::SocketAddr;

use axum::{
    body::Body,
    extract::{ConnectInfo, FromRequest, Request},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body::Body as _;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::{Settings, State, refusal::Refusal};
use crate::{
    naming::Page,
    registry::{ClusterName, Endpoint, Kind, Limits, Namespace, ServiceKey, Target, select::Query, selector::Labels},
    wire::http_v1::{ParamError, Params},
};

/// A request whose body has been read.
#[derive(Debug)]
pub struct Call {
    query: Option<String>,
    form: Bytes,
    /// Address of the other end of the connection.
    pub peer: SocketAddr,
    /// The headers.
    pub headers: HeaderMap,
}

impl FromRequest<State> for Call {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &State) -> Result<Self, Refusal> {
        let (head, body) = request.into_parts();
        let body = if body.is_end_stream() { Bytes::new() } else { read_in_time(body, &state.settings).await? };
        let peer = head.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0);
        Ok(Self {
            query: head.uri.query().map(str::to_owned),
            form: if is_form(&head.headers) { body } else { Bytes::new() },
            peer: peer.ok_or_else(|| Refusal::new(500, "the address of the client is not known"))?,
            headers: head.headers,
        })
    }
}

/// How much of a body that is too large is read and thrown away. A client that sends all before it reads would otherwise
/// find its connection reset in place of the answer.
const MOST_DISCARDED: usize = 16 * 1024 * 1024;

/// The whole body, if it comes in time and is not too large.
async fn read_in_time(body: Body, settings: &Settings) -> Result<Bytes, Refusal> {
    let time = settings.header_timeout;
    tokio::time::timeout(time, read(body, settings.max_body_bytes)).await.unwrap_or_else(|_| {
        let seconds = time.as_secs_f64();
        let text = format!("the request body took longer than {seconds} s, the setting http.header_timeout");
        Err(Refusal::new(408, text))
    })
}

/// The whole body, if it has at most `limit` bytes.
async fn read(mut body: Body, limit: usize) -> Result<Bytes, Refusal> {
    let error = match Limited::new(&mut body, limit).collect().await {
        Ok(whole) => return Ok(whole.to_bytes()),
        Err(error) => error,
    };
    if error.downcast_ref::<LengthLimitError>().is_none() {
        return Err(Refusal::bad("the request body could not be read"));
    }
    let mut discarded = 0;
    while let Some(Ok(frame)) = body.frame().await {
        discarded += frame.data_ref().map_or(0, Bytes::len);
        if discarded > MOST_DISCARDED {
            break;
        }
    }
    Err(Refusal::new(413, format!("the request body has more than {limit} bytes, the setting http.max_body_bytes")))
}

/// A body without a type counts as a form; one of another type is not looked at.
fn is_form(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_none_or(|value| {
        let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
        essence.trim_ascii().eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
    })
}

impl Call {
    /// Its parameters.
    ///
    /// # Errors
    /// 400 if they cannot be decoded.
    pub fn params(&self) -> Result<Params<'_>, Refusal> {
        Ok(Params::decode(self.query.as_deref(), &self.form)?)
    }

    /// Who makes a change, as an overlay remembers it.
    #[must_use]
    pub fn origin(&self) -> Box<str> {
        format!("http {}", self.peer.ip()).into()
    }

    /// What the client calls itself: `User-Agent`, else `Client-Version`.
    #[must_use]
    pub fn agent(&self) -> &str {
        let text = |name: &str| self.headers.get(name).and_then(|value| value.to_str().ok());
        text("user-agent").filter(|agent| !agent.is_empty()).or_else(|| text("client-version")).unwrap_or("")
    }
}

/// `ok`, to the letter: SDKs compare.
pub fn ok() -> Response {
    text("ok")
}

/// A success in plain text.
pub fn text(body: impl Into<String>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain;charset=UTF-8")], body.into()).into_response()
}

/// A success in JSON that is encoded already.
pub fn json_bytes(body: impl Into<Bytes>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body.into()).into_response()
}

/// A success in JSON.
pub fn json(value: &serde_json::Value) -> Response {
    json_bytes(value.to_string())
}

/// The parameters that name things.
pub trait Names {
    /// `namespaceId`.
    ///
    /// # Errors
    /// 400 if it is not allowed.
    fn namespace(&self, limits: &Limits) -> Result<Namespace, Refusal>;

    /// `serviceName` with `groupName`; a name that holds `@@` is grouped already, and `groupName` does not count then.
    ///
    /// # Errors
    /// 400 if one of them is missing or not allowed.
    fn service(&self, limits: &Limits) -> Result<ServiceKey, Refusal>;

    /// `clusterName`, or `cluster` if that is blank.
    ///
    /// # Errors
    /// 400 if it is not allowed.
    fn cluster(&self, limits: &Limits) -> Result<Option<ClusterName>, Refusal>;

    /// `ip` and `port`, both required.
    ///
    /// # Errors
    /// 400 if one of them is missing or not allowed.
    fn endpoint(&self, limits: &Limits) -> Result<Endpoint, Refusal>;

    /// The instance that `ip`, `port` and perhaps a cluster name.
    ///
    /// # Errors
    /// 400 if one of them is missing or not allowed.
    fn target(&self, limits: &Limits) -> Result<Target, Refusal>;

    /// `ephemeral`, or `default`.
    ///
    /// # Errors
    /// 400 if it is no truth value.
    fn kind(&self, default: Kind) -> Result<Kind, Refusal>;

    /// What a list asks for: `clusters` and `healthyOnly`.
    ///
    /// # Errors
    /// 400 if there are too many clusters, or `healthyOnly` is no truth value.
    fn list_query(&self, limits: &Limits) -> Result<Query, Refusal>;

    /// `pageNo` and `pageSize`; one that is not sent is taken from `default`, number and size.
    ///
    /// # Errors
    /// 400 if one of them is no whole number, the size is below 1, or one is missing and there is no default.
    fn page(&self, default: Option<(i64, i64)>) -> Result<Page, Refusal>;
}

impl Names for Params<'_> {
    fn namespace(&self, limits: &Limits) -> Result<Namespace, Refusal> {
        Ok(limits.namespace(self.raw("namespaceId").unwrap_or(""))?)
    }

    fn service(&self, limits: &Limits) -> Result<ServiceKey, Refusal> {
        let namespace = self.namespace(limits)?;
        let (group, name) = split_service(self.required("serviceName")?, self.raw("groupName").unwrap_or(""))?;
        Ok(ServiceKey { namespace, group: limits.group(group)?, name: limits.service_name(name)? })
    }

    fn cluster(&self, limits: &Limits) -> Result<Option<ClusterName>, Refusal> {
        let text = self.text("clusterName").or_else(|| self.text("cluster")).unwrap_or("");
        Ok(limits.cluster(text)?)
    }

    fn endpoint(&self, limits: &Limits) -> Result<Endpoint, Refusal> {
        let address = self.required("ip")?;
        let port = self.required_whole("port", 0..=65_535_i64)?;
        Ok(limits.endpoint(address, port)?)
    }

    fn target(&self, limits: &Limits) -> Result<Target, Refusal> {
        Ok(Target { endpoint: self.endpoint(limits)?, cluster: self.cluster(limits)? })
    }

    fn kind(&self, default: Kind) -> Result<Kind, Refusal> {
        Ok(match self.boolean("ephemeral")? {
            Some(true) => Kind::Ephemeral,
            Some(false) => Kind::Persistent,
            None => default,
        })
    }

    fn list_query(&self, limits: &Limits) -> Result<Query, Refusal> {
        let clusters = limits.clusters(self.raw("clusters").unwrap_or(""))?;
        let healthy_only = self.boolean("healthyOnly")?.unwrap_or(false);
        Ok(Query { clusters, healthy_only, labels: Labels::new(), raw: false })
    }

    fn page(&self, default: Option<(i64, i64)>) -> Result<Page, Refusal> {
        let number = self.whole("pageNo", i64::MIN..=i64::MAX)?.or(default.map(|(number, _)| number));
        let number = number.ok_or(ParamError::Missing("pageNo"))?;
        let size = self.whole("pageSize", 1..=i64::MAX)?.or(default.map(|(_, size)| size));
        Ok(Page::new(number, size.ok_or(ParamError::Missing("pageSize"))?)?)
    }
}

/// Group and name of a service that is spelt `group@@name`, or `name` beside a group of its own.
///
/// # Errors
/// 400 if one of the halves is empty (Nacos).
pub fn split_service<'a>(name: &'a str, group: &'a str) -> Result<(&'a str, &'a str), Refusal> {
    match name.split_once("@@") {
        None => Ok((group, name)),
        Some((_, "")) => {
            Err(Refusal::bad("Param 'serviceName' is illegal, it should be format as 'groupName@@serviceName'"))
        }
        Some(("", _)) => Err(Refusal::bad("Param 'serviceName' is illegal, groupName can't be empty")),
        Some((group, name)) => Ok((group, name)),
    }
}
