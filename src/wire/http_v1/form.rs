//! Parameters of a request: URL query and form body, merged. Each is decoded exactly once.

use std::borrow::Cow;

use percent_encoding::percent_decode;

/// The decoded parameters of one request, in the order in which they were sent: query first.
#[derive(Debug, Clone, Default)]
pub struct Params<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

/// A query or a form that cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// A `%` in the query is not followed by two hexadecimal digits.
    #[error("the query string has a '%' that is not followed by two hexadecimal digits, at byte {0}")]
    Percent(usize),
    /// What was decoded is not UTF-8.
    #[error("the {0} is not valid UTF-8 once decoded")]
    Utf8(&'static str),
    /// There are too many parameters.
    #[error("there are more than {0} parameters")]
    TooMany(usize),
}

/// The most parameters of one request. The API knows fewer than 40 names.
const MOST: usize = 256;

impl<'a> Params<'a> {
    /// Decodes a query and a form body. The first of equal names counts, so the query wins.
    ///
    /// A form may be sent without any encoding (the Go SDK's PUT is): a `%` that begins no escape stands for itself there.
    ///
    /// # Errors
    /// [`FormError`] if the query has a malformed escape, if a name or value is not UTF-8, or if there are over 256.
    pub fn decode(query: Option<&'a str>, form: &'a [u8]) -> Result<Self, FormError> {
        let query = query.unwrap_or("");
        if let Some(at) = malformed_escape(query.as_bytes()) {
            return Err(FormError::Percent(at));
        }
        let mut params = Self::default();
        params.add(query.as_bytes(), "query string")?;
        params.add(form, "form")?;
        Ok(params)
    }

    fn add(&mut self, encoded: &'a [u8], source: &'static str) -> Result<(), FormError> {
        for pair in encoded.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
            let mut halves = pair.splitn(2, |byte| *byte == b'=');
            let (name, value) = (halves.next().unwrap_or_default(), halves.next().unwrap_or_default());
            if self.0.len() == MOST {
                return Err(FormError::TooMany(MOST));
            }
            let decode = |text| decode(text).ok_or(FormError::Utf8(source));
            self.0.push((decode(name)?, decode(value)?));
        }
        Ok(())
    }

    /// The value of `name`, without surrounding white space; `None` if it is absent or blank.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.raw(name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// The value of `name` to the letter; `None` if it is absent.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_ref())
    }
}

fn malformed_escape(text: &[u8]) -> Option<usize> {
    text.iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'%')
        .map(|(at, _)| at)
        .find(|at| !text.get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)))
}

fn decode(text: &[u8]) -> Option<Cow<'_, str>> {
    if !text.contains(&b'+') {
        return percent_decode(text).decode_utf8().ok();
    }
    let spaced: Vec<u8> = text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    percent_decode(&spaced).decode_utf8().ok().map(|text| Cow::Owned(text.into_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_query_wins_over_the_form_and_blank_is_absent() {
        let params = Params::decode(Some("a=1&b=+&c"), b"a=2&d=3&").unwrap();
        assert_eq!(params.text("a"), Some("1"));
        assert_eq!(params.text("b"), None);
        assert_eq!(params.raw("c"), Some(""));
        assert_eq!(params.text("d"), Some("3"));
        assert_eq!(params.text("e"), None);
    }

    #[test]
    fn values_are_decoded_exactly_once() {
        let params = Params::decode(Some("m=1%2B%2C2+100%25+a%252Fb"), b"").unwrap();
        assert_eq!(params.text("m"), Some("1+,2 100% a%2Fb"));
    }

    #[test]
    fn an_unencoded_form_is_read_as_it_stands() {
        let params = Params::decode(None, br#"beat={"ip":"10.0.0.7","m":{"p":"100%"}}&namespaceId=public"#).unwrap();
        assert_eq!(params.text("beat"), Some(r#"{"ip":"10.0.0.7","m":{"p":"100%"}}"#));
        assert_eq!(params.text("namespaceId"), Some("public"));
    }

    #[test]
    fn broken_encodings_are_refused() {
        assert_eq!(Params::decode(Some("a=%zz"), b"").unwrap_err(), FormError::Percent(2));
        assert_eq!(Params::decode(Some("a=%2"), b"").unwrap_err(), FormError::Percent(2));
        assert_eq!(Params::decode(Some("a=%ff"), b"").unwrap_err(), FormError::Utf8("query string"));
        assert_eq!(Params::decode(None, b"a=\xff").unwrap_err(), FormError::Utf8("form"));
        let many = "a=1&".repeat(257);
        assert_eq!(Params::decode(Some(&many), b"").unwrap_err(), FormError::TooMany(256));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_are_refused(query: String, form: Vec<u8>) {
            let _ = Params::decode(Some(&query), &form);
        }

        #[test]
        fn what_was_encoded_is_what_is_read(value: String) {
            let encoded: String = percent_encoding::utf8_percent_encode(&value, percent_encoding::NON_ALPHANUMERIC).collect();
            let query = format!("v={encoded}");
            let (as_query, as_form) = (Params::decode(Some(&query), b""), Params::decode(None, query.as_bytes()));
            for params in [as_query, as_form] {
                let params = params.unwrap();
                prop_assert_eq!(params.raw("v"), Some(value.as_str()));
            }
        }
    }
}
