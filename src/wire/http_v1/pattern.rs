//! The name filters of `/catalog/services` and `/service/names`.

use regex::{Regex, RegexBuilder};

/// Memory that a compiled pattern may take, in bytes. Enough for any name; a pattern made to be costly is taken as a
/// literal.
const MOST_BYTES: usize = 64 * 1024;

/// A filter of names. A name passes if it holds the text to the letter, or if the text, read as a regular expression,
/// matches in it; a text that is no regular expression (`{{1}}`) counts to the letter only. The case counts, as in Java.
#[derive(Debug, Clone, Default)]
pub struct NamePattern {
    text: String,
    regex: Option<Regex>,
}

impl NamePattern {
    /// The filter that `text` describes; blank lets every name pass.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let text = text.trim();
        // A text without special characters matches where it stands to the letter, and nowhere else.
        let plain = regex::escape(text) == text;
        let compile =
            || RegexBuilder::new(text).size_limit(MOST_BYTES).dfa_size_limit(MOST_BYTES).nest_limit(16).build();
        Self { text: text.to_owned(), regex: if plain { None } else { compile().ok() } }
    }

    /// Whether every name passes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether `name` passes.
    #[must_use]
    pub fn admits(&self, name: &str) -> bool {
        name.contains(&self.text) || self.regex.as_ref().is_some_and(|regex| regex.is_match(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_pass_by_letter_or_by_expression() {
        for (pattern, name, passes) in [
            ("", "anything", true),
            ("  ", "anything", true),
            ("de", "order", true),
            ("de", "ORDER", false),
            ("^or.*r$", "order", true),
            ("^der", "order", false),
            ("a.c", "abc", true),
            ("{{1}}", "x{{1}}", true),
            ("{{1}}", "x1", false),
            ("$Greeter", "io.acme.Greeter$Greeter", true),
            ("(", "a(b", true),
            ("(", "ab", false),
        ] {
            assert_eq!(NamePattern::new(pattern).admits(name), passes, "{pattern} {name}");
        }
    }

    #[test]
    fn a_costly_pattern_is_taken_to_the_letter() {
        let costly = "(a{1000}){1000}";
        assert!(!NamePattern::new(costly).admits(&"a".repeat(512)));
        assert!(NamePattern::new(costly).admits(costly));
    }
}
