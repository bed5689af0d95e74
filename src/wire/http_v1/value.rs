//! Parameters as typed values.

use std::{fmt::Display, ops::RangeInclusive, str::FromStr};

use super::Params;
use crate::{
    error::{Classify, Code},
    registry::key::excerpt,
};

/// A parameter that is missing or cannot be read as what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// It is required and was not sent, or was sent blank.
    #[error("Param '{0}' is required.")]
    Missing(&'static str),
    /// It is required and was not sent, in the words of the paths that declare their parameters.
    #[error("Parameter '{0}' is missing")]
    Absent(&'static str),
    /// It is no number in range. The middle part is what Java servers say.
    #[error("Param '{name}' is illegal, For input string: \"{value}\"; it must be {allowed}")]
    Number {
        /// The parameter.
        name: &'static str,
        /// What was sent, cut to 128 bytes.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// It is no truth value.
    #[error("Param '{name}' is illegal, '{value}' is neither true nor false")]
    Boolean {
        /// The parameter.
        name: &'static str,
        /// What was sent, cut to 128 bytes.
        value: String,
    },
    /// It is no JSON of the form that is needed.
    #[error("Param '{name}' is illegal, it must be {allowed}: {problem}")]
    Json {
        /// The parameter.
        name: &'static str,
        /// What is allowed.
        allowed: &'static str,
        /// What is wrong with it.
        problem: String,
    },
}

impl Classify for ParamError {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }

    fn field(&self) -> Option<&'static str> {
        Some(match self {
            Self::Missing(name)
            | Self::Absent(name)
            | Self::Number { name, .. }
            | Self::Boolean { name, .. }
            | Self::Json { name, .. } => name,
        })
    }
}

impl Params<'_> {
    /// The value of `name`, which must not be blank.
    ///
    /// # Errors
    /// [`ParamError::Missing`].
    pub fn required(&self, name: &'static str) -> Result<&str, ParamError> {
        self.text(name).ok_or(ParamError::Missing(name))
    }

    /// The value of `name` without surrounding white space, which may be blank but must have been sent.
    ///
    /// # Errors
    /// [`ParamError::Absent`].
    pub fn declared(&self, name: &'static str) -> Result<&str, ParamError> {
        self.raw(name).map(str::trim).ok_or(ParamError::Absent(name))
    }

    /// The whole number `name` in `range`; `None` if it is absent or blank.
    ///
    /// # Errors
    /// [`ParamError::Number`].
    pub fn whole<T>(&self, name: &'static str, range: RangeInclusive<T>) -> Result<Option<T>, ParamError>
    where
        T: FromStr + PartialOrd + Display,
    {
        self.text(name)
            .map(|text| {
                text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| ParamError::Number {
                    name,
                    value: excerpt(text),
                    allowed: format!("a whole number from {} to {}", range.start(), range.end()),
                })
            })
            .transpose()
    }

    /// The whole number `name` in `range`, which must not be blank.
    ///
    /// # Errors
    /// [`ParamError::Missing`], [`ParamError::Number`].
    pub fn required_whole<T>(&self, name: &'static str, range: RangeInclusive<T>) -> Result<T, ParamError>
    where
        T: FromStr + PartialOrd + Display,
    {
        self.whole(name, range)?.ok_or(ParamError::Missing(name))
    }

    /// The number `name`, which may be anything that a float can hold; `None` if it is absent or blank.
    ///
    /// # Errors
    /// [`ParamError::Number`] if it is no number at all.
    pub fn float(&self, name: &'static str) -> Result<Option<f64>, ParamError> {
        self.text(name)
            .map(|text| {
                text.parse().map_err(|_| ParamError::Number {
                    name,
                    value: excerpt(text),
                    allowed: "a number".to_owned(),
                })
            })
            .transpose()
    }

    /// The truth value `name`; `None` if it is absent or blank. Any case, and every word that Java servers know.
    ///
    /// # Errors
    /// [`ParamError::Boolean`] for any other word: a mistyped `enabled=ture` must not switch an instance off.
    pub fn boolean(&self, name: &'static str) -> Result<Option<bool>, ParamError> {
        self.text(name)
            .map(|text| truth(text).ok_or_else(|| ParamError::Boolean { name, value: excerpt(text) }))
            .transpose()
    }
}

/// The truth value that a word stands for; `None` if for none.
pub(super) fn truth(word: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|known| word.eq_ignore_ascii_case(known));
    if is(&["true", "on", "yes", "y", "t", "1"]) {
        Some(true)
    } else if is(&["false", "off", "no", "n", "f", "0"]) {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(query: &str) -> Params<'_> {
        Params::decode(Some(query), b"").unwrap()
    }

    #[test]
    fn numbers_keep_to_their_range_and_say_so() {
        assert_eq!(params("port=80").whole("port", 0..=65_535_i64), Ok(Some(80)));
        assert_eq!(params("port=").whole("port", 0..=65_535_i64), Ok(None));
        for bad in ["-1", "65536", "abc", "1.5", "99999999999999999999"] {
            let error = params(&format!("port={bad}")).whole("port", 0..=65_535_i64).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "Param 'port' is illegal, For input string: \"{bad}\"; it must be a whole number from 0 to 65535"
                )
            );
        }
    }

    #[test]
    fn truth_has_many_words_but_not_any() {
        for yes in ["true", "True", "on", "YES", "y", "t"] {
            assert_eq!(params(&format!("e={yes}")).boolean("e"), Ok(Some(true)));
        }
        for no in ["false", "False", "off", "no"] {
            assert_eq!(params(&format!("e={no}")).boolean("e"), Ok(Some(false)));
        }
        assert!(params("e=ture").boolean("e").is_err());
        assert_eq!(params("").boolean("e"), Ok(None));
    }
}
