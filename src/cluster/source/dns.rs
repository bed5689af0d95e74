//! Members from the records of a name in DNS, such as that of a headless service in Kubernetes.

use std::{fmt, net::IpAddr};

use hickory_resolver::{
    ResolverBuilder, TokioResolver,
    config::LookupIpStrategy,
    net::{NetError, runtime::TokioRuntimeProvider},
    proto::rr::RData,
};

use crate::cluster::member::{ListError, MemberError, MemberList, MemberName};

/// Which records are the members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsName {
    /// A records of a host, or AAAA records if it has no A records: each member is `ip:port`.
    Host {
        /// The host name.
        host: String,
        /// The port of all members.
        port: u16,
    },
    /// SRV records: each member is a target with its port. Priority and weight mean nothing here.
    Service(String),
}

impl DnsName {
    /// Reads `host:port`, or the name of SRV records, which starts with an underscore and has no port.
    ///
    /// # Errors
    /// What is wrong, with the value.
    pub fn parse(text: &str) -> Result<Self, String> {
        let member = MemberName::parse(text).map_err(|error| error.to_string())?;
        // A trailing dot says that the search list is not to be used, so the host stays as it was written.
        let (host, port) = text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
        if member.host().parse::<IpAddr>().is_ok() {
            return Err(format!("'{text}' is an address and has no records"));
        }
        match (host.starts_with('_'), port) {
            (true, None) => Ok(Self::Service(text.to_owned())),
            (true, Some(_)) => Err(format!("'{text}' has a port, but that of each member stands in its SRV record")),
            (false, None) => Err(format!("'{text}' has no port, and A records say none")),
            (false, Some(_)) => Ok(Self::Host { host: host.to_owned(), port: member.port() }),
        }
    }
}

impl fmt::Display for DnsName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host { host, port } => write!(f, "{host}:{port}"),
            Self::Service(name) => f.write_str(name),
        }
    }
}

/// Why DNS gave no list.
#[derive(Debug, thiserror::Error)]
pub enum DnsError {
    /// The configuration of the system's resolver cannot be used.
    #[error("cannot use the resolver's configuration (/etc/resolv.conf)")]
    Configuration(#[source] Box<NetError>),
    /// There is no such name, it has no such records, or nobody answers.
    #[error("cannot look up {name}")]
    LookUp {
        /// The name.
        name: DnsName,
        /// What the resolver says.
        source: Box<NetError>,
    },
    /// A record that names no member.
    #[error("a record of {name} names no member")]
    Record {
        /// The name.
        name: DnsName,
        /// What is wrong with it.
        source: MemberError,
    },
    /// No records, or too many.
    #[error("the records of {name} are no list of members")]
    List {
        /// The name.
        name: DnsName,
        /// What is wrong with them.
        source: ListError,
    },
}

/// Asks DNS for members. Nothing is cached: each look asks.
#[derive(Debug)]
pub(super) struct Dns {
    name: DnsName,
    strategy: LookupIpStrategy,
    /// Made anew after a failure, since the system's configuration may have changed.
    resolver: Option<TokioResolver>,
}

impl Dns {
    /// Asks for `name`. Records are of one family, so that no member has two names: IPv6 first where `me` is an IPv6
    /// address, else IPv4 first.
    pub(super) fn new(name: DnsName, me: &MemberName) -> Self {
        let strategy = match me.host().parse() {
            Ok(IpAddr::V6(_)) => LookupIpStrategy::Ipv6thenIpv4,
            Ok(IpAddr::V4(_)) | Err(_) => LookupIpStrategy::Ipv4thenIpv6,
        };
        Self { name, strategy, resolver: None }
    }

    /// The members by their records now.
    pub(super) async fn look_up(&mut self) -> Result<MemberList, DnsError> {
        let resolver = match self.resolver.take() {
            Some(resolver) => resolver,
            None => self
                .build(TokioResolver::builder_tokio().map_err(|error| DnsError::Configuration(Box::new(error)))?)
                .map_err(|error| DnsError::Configuration(Box::new(error)))?,
        };
        let list = self.ask(&resolver).await?;
        self.resolver = Some(resolver);
        Ok(list)
    }

    fn build(&self, mut builder: ResolverBuilder<TokioRuntimeProvider>) -> Result<TokioResolver, NetError> {
        let options = builder.options_mut();
        options.cache_size = 0;
        options.ip_strategy = self.strategy;
        builder.build()
    }

    async fn ask(&self, resolver: &TokioResolver) -> Result<MemberList, DnsError> {
        let failed = |source| DnsError::LookUp { name: self.name.clone(), source: Box::new(source) };
        let names: Vec<MemberName> = match &self.name {
            DnsName::Host { host, port } => {
                let found = resolver.lookup_ip(host.as_str()).await.map_err(failed)?;
                found.iter().filter_map(|ip| MemberName::of_address(ip, *port)).collect()
            }
            DnsName::Service(service) => {
                let found = resolver.srv_lookup(service.as_str()).await.map_err(failed)?;
                let targets = found.answers().iter().filter_map(|record| match &record.data {
                    RData::SRV(srv) => Some(format!("{}:{}", srv.target.to_ascii(), srv.port)),
                    _ => None,
                });
                targets
                    .map(|target| MemberName::parse(&target))
                    .collect::<Result<_, _>>()
                    .map_err(|source| DnsError::Record { name: self.name.clone(), source })?
            }
        };
        MemberList::new(names).map_err(|source| DnsError::List { name: self.name.clone(), source })
    }
}

#[cfg(test)]
mod tests;
