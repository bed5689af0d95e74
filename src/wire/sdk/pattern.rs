//! Patterns of service names: `namespace>>group pattern>>service pattern`.

use crate::{
    error::{Classify, Code},
    registry::{
        Limits, Namespace, ServiceKey,
        key::{NameError, excerpt},
    },
};

/// Which services are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Those of this namespace.
    pub namespace: Namespace,
    group: Part,
    service: Part,
}

/// A pattern of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Any,
    Equals(Box<str>),
    Starts(Box<str>),
    Ends(Box<str>),
    Contains(Box<str>),
    /// A star in another place fits nothing.
    Never,
}

/// A text that is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It has not three parts, or is too long.
    #[error("groupKeyPattern '{0}' is not allowed; it must be 'namespace>>group>>service' of at most 1024 bytes")]
    Form(String),
    /// The namespace is not allowed.
    #[error(transparent)]
    Namespace(#[from] NameError),
}

impl Classify for PatternError {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }

    fn field(&self) -> Option<&'static str> {
        Some("groupKeyPattern")
    }
}

impl Pattern {
    /// Takes a pattern apart. `.*` counts as `*`: Java's `fuzzyWatch(group)` sends it for "all services".
    ///
    /// # Errors
    /// [`PatternError`] if it does not have three parts, or the namespace is not allowed.
    pub fn parse(limits: &Limits, text: &str) -> Result<Self, PatternError> {
        let mut parts = text.split(">>");
        let (Some(namespace), Some(group), Some(service), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(PatternError::Form(excerpt(text)));
        };
        if text.len() > 1_024 || service.is_empty() {
            return Err(PatternError::Form(excerpt(text)));
        }
        let group = if group.trim().is_empty() { "DEFAULT_GROUP" } else { group };
        Ok(Self { namespace: limits.namespace(namespace)?, group: Part::of(group), service: Part::of(service) })
    }

    /// Whether the service of `key` is meant.
    #[must_use]
    pub fn fits(&self, key: &ServiceKey) -> bool {
        self.namespace == key.namespace && self.group.fits(key.group.as_str()) && self.service.fits(key.name.as_str())
    }
}

impl Part {
    fn of(text: &str) -> Self {
        if text == "*" || text == ".*" {
            return Self::Any;
        }
        let (after, before) = (text.strip_prefix('*'), text.strip_suffix('*'));
        let part = match (after, before) {
            (None, None) => Self::Equals(text.into()),
            (None, Some(start)) => Self::Starts(start.into()),
            (Some(end), None) => Self::Ends(end.into()),
            (Some(rest), Some(_)) => Self::Contains(rest.strip_suffix('*').unwrap_or(rest).into()),
        };
        match &part {
            Self::Equals(inner) | Self::Starts(inner) | Self::Ends(inner) | Self::Contains(inner)
                if inner.contains('*') =>
            {
                Self::Never
            }
            _ => part,
        }
    }

    fn fits(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Equals(text) => name == text.as_ref(),
            Self::Starts(text) => name.starts_with(text.as_ref()),
            Self::Ends(text) => name.ends_with(text.as_ref()),
            Self::Contains(text) => name.contains(text.as_ref()),
            Self::Never => false,
        }
    }
}

/// A service as fuzzy watches spell it: `namespace@@group@@service`.
#[must_use]
pub fn service_key_text(key: &ServiceKey) -> String {
    format!("{}@@{key}", key.namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, group: &str, name: &str) -> bool {
        let limits = Limits::default();
        Pattern::parse(&limits, pattern).unwrap().fits(&limits.service_key("", group, name).unwrap())
    }

    #[test]
    fn stars_stand_at_the_ends() {
        for (pattern, good, bad) in [
            ("orders", "orders", "orders2"),
            ("ord*", "orders", "xorders"),
            ("*ers", "orders", "ordersx"),
            ("*rde*", "orders", "odres"),
            ("*", "anything", ""),
            (".*", "anything", ""),
            ("**", "anything", ""),
        ] {
            let pattern = format!("public>>DEFAULT_GROUP>>{pattern}");
            assert!(fits(&pattern, "", good), "{pattern} {good}");
            assert!(bad.is_empty() || !fits(&pattern, "", bad), "{pattern} {bad}");
        }
        assert!(!fits("public>>DEFAULT_GROUP>>o*rs", "", "orders"));
        assert!(fits("public>>*>>a", "g", "a"));
        assert!(!fits("public>>DEFAULT_GROUP>>a", "g", "a"));
        assert!(!fits("other>>*>>a", "g", "a"));
    }

    #[test]
    fn other_forms_are_refused() {
        for text in ["", "a", "public>>g", "public>>g>>s>>x", "public>>g>>", "a b>>g>>s"] {
            assert!(Pattern::parse(&Limits::default(), text).is_err(), "{text}");
        }
    }
}
