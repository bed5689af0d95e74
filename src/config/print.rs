//! Values as TOML, and the effective settings as a TOML document that says where each line comes from.

use std::fmt::Write;

use figment::value::{Num, Value};

use super::Loaded;

/// The effective settings as TOML, each line with its origin as a trailing comment; secrets are masked.
pub(super) fn document(loaded: &Loaded) -> String {
    let mut text = String::new();
    let mut section = "";
    for line in &loaded.lines {
        if line.entry.section != section {
            let gap = if section.is_empty() { "" } else { "\n" };
            section = line.entry.section;
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{gap}[{section}]");
        }
        let origin = line.origin.to_string().replace(char::is_control, "?");
        let _ = writeln!(text, "{} = {}  # {origin}", line.entry.setting.key, line.value);
    }
    text
}

/// One value as TOML; `None` for what TOML cannot say.
pub(super) fn toml(value: &Value) -> Option<String> {
    Some(match value {
        Value::String(_, text) => quoted(text),
        Value::Char(_, c) => quoted(&c.to_string()),
        Value::Bool(_, truth) => truth.to_string(),
        Value::Num(_, number) => number_text(number),
        Value::Empty(..) => return None,
        Value::Dict(_, values) => {
            let pairs: Option<Vec<String>> =
                values.iter().map(|(key, value)| Some(format!("{} = {}", quoted(key), toml(value)?))).collect();
            format!("{{ {} }}", pairs?.join(", "))
        }
        Value::Array(_, items) => format!("[{}]", items.iter().map(toml).collect::<Option<Vec<_>>>()?.join(", ")),
    })
}

fn number_text(number: &Num) -> String {
    match (number.to_u128(), number.to_i128(), number.to_f64()) {
        (Some(number), ..) => number.to_string(),
        (_, Some(number), _) => number.to_string(),
        (.., Some(number)) if number.is_nan() => "nan".to_owned(),
        // Debug writes the point or exponent that makes it a float in TOML.
        (.., number) => format!("{:?}", number.unwrap_or_default()),
    }
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => {
                // Writing to a String cannot fail.
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_back(value: &Value) -> toml::Value {
        let text = format!("value = {}", toml(value).expect("TOML can say it"));
        toml::from_str::<toml::Table>(&text).expect(&text).remove("value").expect("the value")
    }

    #[test]
    fn numbers_keep_their_kind() {
        for (value, expected) in [
            (Value::from(3_u64), toml::Value::Integer(3)),
            (Value::from(-3_i64), toml::Value::Integer(-3)),
            (Value::from(1.0_f64), toml::Value::Float(1.0)),
            (Value::from(0.85_f64), toml::Value::Float(0.85)),
            (Value::from(1e300_f64), toml::Value::Float(1e300)),
            (Value::from(true), toml::Value::Boolean(true)),
        ] {
            assert_eq!(read_back(&value), expected);
        }
    }

    proptest! {
        #[test]
        fn every_text_reads_back_the_same(items in prop::collection::vec(any::<String>(), 0..4)) {
            let expected = toml::Value::Array(items.iter().cloned().map(toml::Value::String).collect());
            prop_assert_eq!(read_back(&Value::from(items)), expected);
        }
    }
}
