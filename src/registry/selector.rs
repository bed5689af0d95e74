//! Label selectors: which instances a consumer with certain labels gets.
//!
//! A provider's labels are its metadata. A consumer's labels come with its request; one that sends none gets all.

use std::{collections::BTreeMap, fmt};

use super::{instance::Instance, key::excerpt};
use crate::error::{Classify, Code};

/// The labels of a consumer.
pub type Labels = BTreeMap<String, String>;

/// Which instances a consumer gets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Selector {
    /// All.
    #[default]
    None,
    /// Those whose values of these labels equal the consumer's; all, if none do.
    Label(LabelExpression),
}

/// A parsed `CONSUMER.label.X = PROVIDER.label.X & …`, with the text that it was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelExpression {
    text: Box<str>,
    labels: Vec<Box<str>>,
}

/// An expression that is not of the one form that is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "selector expression '{0}' is not allowed; it must be 'CONSUMER.label.X = PROVIDER.label.X', or several of these \
     joined by '&'"
)]
pub struct ExpressionError(String);

impl Classify for ExpressionError {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }

    fn field(&self) -> Option<&'static str> {
        Some("selector")
    }
}

impl LabelExpression {
    /// Takes an expression apart (Nacos: the same label on both sides, white space does not count).
    ///
    /// # Errors
    /// [`ExpressionError`] if it has another form.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let mut labels = Vec::new();
        for term in compact.split('&') {
            let label = term
                .split_once('=')
                .and_then(|(left, right)| {
                    let left = left.strip_prefix("CONSUMER.label.")?;
                    (Some(left) == right.strip_prefix("PROVIDER.label.")).then_some(left)
                })
                .filter(|label| !label.is_empty())
                .ok_or_else(|| ExpressionError(excerpt(text)))?;
            labels.push(label.into());
        }
        Ok(Self { text: text.trim().into(), labels })
    }

    /// The names of the labels that must be equal.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.labels.iter().map(AsRef::as_ref)
    }

    /// Whether `instance` suits a consumer with `labels`. A label that the consumer lacks imposes nothing.
    #[must_use]
    pub fn admits(&self, instance: &Instance, labels: &Labels) -> bool {
        self.labels().all(|name| labels.get(name).is_none_or(|own| instance.metadata().value(name) == Some(own)))
    }
}

impl fmt::Display for LabelExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_joined_terms_whatever_the_spacing() {
        let expression =
            LabelExpression::parse(" CONSUMER.label.zone=PROVIDER.label.zone  &CONSUMER.label.a = PROVIDER.label.a")
                .unwrap();
        assert_eq!(expression.labels().collect::<Vec<_>>(), ["zone", "a"]);
    }

    #[test]
    fn refuses_other_forms() {
        for text in ["", "zone", "CONSUMER.label.a=PROVIDER.label.b", "CONSUMER.label.=PROVIDER.label.", "a=a&"] {
            assert!(LabelExpression::parse(text).is_err(), "{text}");
        }
    }
}
