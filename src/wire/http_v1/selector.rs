//! Selectors as JSON: which instances a consumer gets (`/service`), and which services are listed (`/service/list`).

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use crate::{
    error::{Classify, Code},
    registry::{
        Metadata, Snapshot,
        key::excerpt,
        selector::{ExpressionError, LabelExpression, Selector},
    },
};

/// A `selector` that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// It is no JSON object.
    #[error("Param 'selector' is illegal, it must be a JSON object with the key type: {0}")]
    Json(String),
    /// Its type is not known. The beginning is what Java servers say.
    #[error("not match any type of selector! (the type is '{0}'; the selector must be of type none or label)")]
    Type(String),
    /// Its expression is of another form. The beginning is what Java servers say.
    #[error("parse expression failed! ({0})")]
    Expression(#[from] ExpressionError),
    /// The expression of a list is of another form.
    #[error(
        "parse expression failed! (selector expression '{0}' is not allowed; it must be INSTANCE.metadata.K = 'V' or \
         SERVICE.metadata.K = 'V', or several of these joined by '&')"
    )]
    List(String),
}

impl Classify for SelectorError {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }

    fn field(&self) -> Option<&'static str> {
        Some("selector")
    }
}

/// Reads the selector of a service. Blank, `null` and type `none` are no selector. Some clients encode it twice; a text
/// that begins with an encoded brace is decoded once more.
///
/// # Errors
/// [`SelectorError`].
pub fn selector(text: &str) -> Result<Selector, SelectorError> {
    match expression(text)? {
        None => Ok(Selector::None),
        Some(expression) => Ok(Selector::Label(LabelExpression::parse(&expression)?)),
    }
}

/// A selector as `/service` shows it: what Nacos 1.4 and 2.5 say of it.
#[must_use]
pub fn selector_json(selector: &Selector) -> Value {
    match selector {
        Selector::None => json!({"type": "none", "contextType": "NONE"}),
        Selector::Label(expression) => json!({
            "type": "label",
            "contextType": "CMDB",
            "expression": expression.to_string(),
            "labels": expression.labels().collect::<Vec<_>>(),
        }),
    }
}

/// What a service must have to be listed: all of these pairs. Without any, all services pass.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListSelector(Vec<Term>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    of: Holder,
    key: String,
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    Instance,
    Service,
}

impl ListSelector {
    /// Reads the selector of a list (Nacos 1.4): `INSTANCE.metadata.K = 'V'`, which one of the instances must fit, or
    /// `SERVICE.metadata.K = 'V'`; several are joined by `&`.
    ///
    /// # Errors
    /// [`SelectorError`].
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let Some(expression) = expression(text)? else { return Ok(Self::default()) };
        let terms = expression.split('&').map(Term::parse).collect::<Option<_>>();
        terms.map(Self).ok_or_else(|| SelectorError::List(excerpt(&expression)))
    }

    /// Whether every service passes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the service in this state is listed.
    #[must_use]
    pub fn admits(&self, snapshot: &Snapshot) -> bool {
        self.0.iter().all(|term| {
            let fits = |metadata: &Metadata| metadata.value(&term.key) == Some(term.value.as_str());
            match term.of {
                Holder::Instance => snapshot.instances().iter().any(|instance| fits(instance.metadata())),
                Holder::Service => snapshot.settings().is_some_and(|settings| fits(&settings.metadata)),
            }
        })
    }
}

impl Term {
    fn parse(text: &str) -> Option<Self> {
        let (left, right) = text.split_once('=')?;
        let (of, key) = match left.trim().split_once(".metadata.")? {
            ("INSTANCE", key) => (Holder::Instance, key),
            ("SERVICE", key) => (Holder::Service, key),
            _ => return None,
        };
        let right = right.trim();
        let value = right.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).unwrap_or(right);
        (!key.is_empty() && !value.contains('\'')).then(|| Self { of, key: key.to_owned(), value: value.to_owned() })
    }
}

/// The expression of a selector of type `label`; `None` if it selects nothing.
fn expression(text: &str) -> Result<Option<String>, SelectorError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let again = text.starts_with('%').then(|| percent_decode_str(text).decode_utf8().ok()).flatten();
    let text = again.as_deref().unwrap_or(text);
    let object: Option<Map<String, Value>> =
        serde_json::from_str(text).map_err(|error| SelectorError::Json(error.to_string()))?;
    let Some(object) = object else { return Ok(None) };
    match object.get("type") {
        Some(Value::String(kind)) if kind == "none" => Ok(None),
        Some(Value::String(kind)) if kind == "label" => match object.get("expression") {
            Some(Value::String(expression)) => Ok(Some(expression.clone())),
            None | Some(_) => Err(SelectorError::Json("a selector of type label needs an expression".to_owned())),
        },
        None => Err(SelectorError::Type(String::new())),
        Some(Value::String(other)) => Err(SelectorError::Type(excerpt(other))),
        Some(other) => Err(SelectorError::Type(excerpt(&other.to_string()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_read_and_shown() {
        for none in ["", "null", r#"{"type":"none"}"#, "%7B%22type%22%3A%22none%22%7D"] {
            assert_eq!(selector(none), Ok(Selector::None), "{none}");
        }
        let label = selector(r#"{"type":"label","expression":"CONSUMER.label.a = PROVIDER.label.a"}"#).unwrap();
        assert_eq!(
            selector_json(&label),
            json!({
                "type": "label", "contextType": "CMDB", "expression": "CONSUMER.label.a = PROVIDER.label.a",
                "labels": ["a"]
            })
        );
        assert_eq!(selector_json(&Selector::None), json!({"type": "none", "contextType": "NONE"}));
    }

    #[test]
    fn what_is_no_selector_is_told_apart() {
        for text in ["{", "[]", "1", r#"{"type":"label"}"#, "%7B%ff"] {
            assert!(matches!(selector(text), Err(SelectorError::Json(_))), "{text}");
        }
        for text in ["{}", r#"{"type":"other"}"#, r#"{"type":1}"#] {
            let text = selector(text).unwrap_err().to_string();
            assert!(text.starts_with("not match any type of selector!"), "{text}");
        }
        let text = selector(r#"{"type":"label","expression":"a=b"}"#).unwrap_err().to_string();
        assert!(text.starts_with("parse expression failed!"), "{text}");
    }

    #[test]
    fn list_selectors_name_instances_or_services() {
        let of =
            |expression: &str| ListSelector::parse(&json!({"type": "label", "expression": expression}).to_string());
        assert_eq!(ListSelector::parse(r#"{"type":"none"}"#), Ok(ListSelector::default()));
        assert_eq!(
            of("INSTANCE.metadata.zone = 'a b' & SERVICE.metadata.x.y=1").unwrap(),
            ListSelector(vec![
                Term { of: Holder::Instance, key: "zone".into(), value: "a b".into() },
                Term { of: Holder::Service, key: "x.y".into(), value: "1".into() },
            ])
        );
        for bad in ["", "zone = 'a'", "INSTANCE.metadata. = 'a'", "OTHER.metadata.a = 'b'", "INSTANCE.metadata.a"] {
            assert!(matches!(of(bad), Err(SelectorError::List(_))), "{bad}");
        }
    }
}
