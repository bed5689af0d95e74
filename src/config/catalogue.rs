//! All settings that there are: the tables of the sections, put together.

use std::fmt::Write;

use crate::setting::Setting;

/// How every environment variable of ours starts.
pub(super) const ENV_PREFIX: &str = "NOMINA_";

/// One setting with the section that it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Name of the section.
    pub section: &'static str,
    /// The row of the section's table.
    pub setting: &'static Setting,
}

impl Entry {
    /// The dotted key: `server.http`.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}.{}", self.section, self.setting.key)
    }

    /// The environment variable that sets it: `NOMINA_SERVER__HTTP`.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("{ENV_PREFIX}{}", self.key().replace('.', "__").to_ascii_uppercase())
    }
}

/// Every setting, in the order in which they are printed.
pub fn all() -> impl Iterator<Item = Entry> {
    super::SECTIONS
        .iter()
        .flat_map(|&(section, settings)| settings.iter().map(move |setting| Entry { section, setting }))
}

/// The table of all settings in Markdown, one row a setting; ends with a line end.
#[must_use]
pub fn markdown() -> String {
    let mut table = "| Setting | Default | Allowed | Meaning |\n| --- | --- | --- | --- |\n".to_owned();
    for entry in all() {
        let cell = |text: &str| text.replace('|', "\\|");
        let Setting { default, allowed, meaning, .. } = entry.setting;
        // Writing to a String cannot fail.
        let _ = writeln!(table, "| `{}` | `{}` | {} | {} |", entry.key(), cell(default), cell(allowed), cell(meaning));
    }
    table
}

/// The setting with this dotted key.
pub(super) fn find(key: &str) -> Option<Entry> {
    all().find(|entry| entry.key() == key)
}

/// The setting that `path` points at or into: an error in a list names the item.
pub(super) fn find_above(path: &[String]) -> Option<Entry> {
    (1..=path.len()).rev().find_map(|end| find(&path.get(..end)?.join(".")))
}

/// Whether `key` is a section, or a part of one, that holds settings.
pub(super) fn is_group(key: &str) -> bool {
    all().any(|entry| entry.key().strip_prefix(key).is_some_and(|rest| rest.starts_with('.')))
}

/// The key that a variable stands for, whether there is such a setting or not; `None` if it is not in upper case.
pub(super) fn key_of_variable(name: &str) -> Option<String> {
    let key = name.strip_prefix(ENV_PREFIX)?;
    if key.contains(|c: char| c.is_ascii_lowercase()) {
        return None;
    }
    Some(key.to_ascii_lowercase().replace("__", "."))
}

/// What could have been meant by an unknown `key`; completes "there is no setting `key`; ".
pub(super) fn hint(key: &str) -> String {
    let plain = |key: &str| key.replace(['.', '_', '-'], "").to_ascii_lowercase();
    if let Some(meant) = all().find(|entry| plain(&entry.key()) == plain(key)) {
        return format!("did you mean `{}`, or {} in the environment?", meant.key(), meant.variable());
    }
    let group = [key, key.rsplit_once('.').map_or("", |(group, _)| group)].into_iter().find(|group| is_group(group));
    let allowed: Vec<String> = match group {
        Some(group) => all().map(|entry| entry.key()).filter(|known| known.starts_with(&format!("{group}."))).collect(),
        None => super::SECTIONS.iter().map(|(section, _)| format!("{section}.…")).collect(),
    };
    format!("allowed: {}", allowed.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_and_keys_match_both_ways() {
        for entry in all() {
            assert_eq!(key_of_variable(&entry.variable()), Some(entry.key()));
        }
        assert_eq!(key_of_variable("NOMINA_server__http"), None);
    }

    #[test]
    fn hints_lead_to_the_setting() {
        assert!(hint("server_http").contains("did you mean `server.http`, or NOMINA_SERVER__HTTP"));
        assert!(hint("server.data-dir").contains("did you mean `server.data_dir`"));
        assert!(hint("server.htpp").contains("server.http, server.grpc"));
        assert!(hint("server").contains("server.http, server.grpc"));
        assert!(hint("sever.http").contains("server.…, cluster.…"));
    }

    #[test]
    fn markdown_has_a_row_for_each_setting() {
        let table = markdown();
        assert_eq!(table.lines().count(), all().count() + 2);
        for row in table.lines() {
            assert_eq!(row.replace("\\|", "").matches('|').count(), 5, "{row}");
        }
    }
}
