//! The two wire forms of metadata: a JSON object, or `k=v,k2=v2`.

use serde_json::Value;

use crate::{
    error::{Classify, Code},
    registry::key::excerpt,
};

/// Metadata in neither of the two forms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// Neither JSON nor pairs. The beginning is what Java servers say.
    #[error("metadata format incorrect:{0}; it must be a JSON object of strings, or k=v,k2=v2")]
    Form(String),
    /// A JSON value that is no text, number or truth value.
    #[error("metadata format incorrect: the value of '{0}' must be a string, a number, true or false")]
    Value(String),
}

impl Classify for MetadataError {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }

    fn field(&self) -> Option<&'static str> {
        Some("metadata")
    }
}

/// Takes metadata apart. Numbers and truth values become text; a pair whose value is `null` is left out; `null` is no
/// metadata. A pair is split at its first `=`, so a value may hold more of them.
///
/// # Errors
/// [`MetadataError`].
pub fn metadata_pairs(text: &str) -> Result<Vec<(String, String)>, MetadataError> {
    match serde_json::from_str(text) {
        Ok(Value::Null) => Ok(Vec::new()),
        Ok(Value::Object(object)) => object.into_iter().filter_map(|(key, value)| scalar(key, value)).collect(),
        Ok(_) => Err(MetadataError::Form(excerpt(text))),
        Err(_) => text
            .split(',')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (key, value) = pair
                    .split_once('=')
                    .filter(|(key, _)| !key.is_empty() && !key.starts_with(['{', '[', '"']))
                    .ok_or_else(|| MetadataError::Form(excerpt(text)))?;
                Ok((key.to_owned(), value.to_owned()))
            })
            .collect(),
    }
}

fn scalar(key: String, value: Value) -> Option<Result<(String, String), MetadataError>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(Ok((key, text))),
        Value::Number(number) => Some(Ok((key, number.to_string()))),
        Value::Bool(truth) => Some(Ok((key, truth.to_string()))),
        Value::Array(_) | Value::Object(_) => Some(Err(MetadataError::Value(excerpt(&key)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        metadata_pairs(text).unwrap()
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn both_forms_are_read_to_the_letter() {
        assert_eq!(pairs("a=1,b=2"), [pair("a", "1"), pair("b", "2")]);
        assert_eq!(
            pairs(r#"{"a":"x, \"q\" y","n":1,"t":true,"z":null}"#),
            [pair("a", r#"x, "q" y"#), pair("n", "1"), pair("t", "true")]
        );
        assert_eq!(pairs("token=YWJj=="), [pair("token", "YWJj==")]);
        assert_eq!(pairs("null"), []);
        assert_eq!(pairs("{}"), []);
    }

    #[test]
    fn what_is_neither_form_is_refused() {
        for text in [
            r#"{"version", "stable"}"#,
            "abc",
            "a=1,b",
            "=1",
            "[1]",
            r#"{"a":{}}"#,
            r#"{"a":"b=c""#,
            r#""a=b""#,
            r#"["a=b"]"#,
            r#"["a=b""#,
            r#""a":"b=c""#,
        ] {
            assert!(metadata_pairs(text).is_err(), "{text}");
        }
    }
}
