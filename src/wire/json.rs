//! JSON written by hand, where a tree of values would cost more than what is written.

use std::fmt::Write;

/// Appends `text` as a JSON string.
pub fn push_string(json: &mut String, text: &str) {
    json.push('"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        json.push_str(text.get(plain..at).unwrap_or_default());
        match byte {
            b'"' => json.push_str("\\\""),
            b'\\' => json.push_str("\\\\"),
            b'\n' => json.push_str("\\n"),
            b'\r' => json.push_str("\\r"),
            b'\t' => json.push_str("\\t"),
            control => {
                // Writing to a String cannot fail.
                let _ = write!(json, "\\u{control:04x}");
            }
        }
        plain = at + 1;
    }
    json.push_str(text.get(plain..).unwrap_or_default());
    json.push('"');
}

/// Appends pairs of text as a JSON object.
pub fn push_pairs<'a>(json: &mut String, pairs: impl Iterator<Item = (&'a str, &'a str)>) {
    json.push('{');
    for (position, (key, value)) in pairs.enumerate() {
        if position > 0 {
            json.push(',');
        }
        push_string(json, key);
        json.push(':');
        push_string(json, value);
    }
    json.push('}');
}

/// A truth value.
pub const fn truth(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn strings_are_escaped_as_json_wants(text: String) {
            let mut json = String::new();
            push_string(&mut json, &text);
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }

        #[test]
        fn weights_are_json_numbers(weight in 0.0_f64..=10_000.0) {
            prop_assert_eq!(serde_json::from_str::<f64>(&format!("{weight:?}")).unwrap(), weight);
        }
    }
}
