//! What one setting is: the vocabulary in which every layer describes its own section of the configuration.
//!
//! A layer keeps a plain `Settings` struct and implements [`Section`] beside it: a table that says what each setting
//! means, and a check of the values. Nothing here reads a file or the environment; `config.rs` does, and composes the
//! sections.
//!
//! Rules for a section, which a test of `config.rs` holds it to: every field has a row in the table and every row a
//! field; the default in the table is the field's default as TOML; no field is an `Option` (TOML has no word for
//! "absent"), a field is a string, a number, a boolean, a list of these, or a struct of such fields (dotted keys).

pub mod duration;
mod secret;

pub use secret::{MASK, Secret};

/// One setting, as the operator sees it. Lives in the table of its section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Name inside the section: the field's name; `outer.inner` for a field of a nested struct.
    pub key: &'static str,
    /// The values that are allowed, in words that complete "allowed: ".
    pub allowed: &'static str,
    /// The built-in default, written as TOML.
    pub default: &'static str,
    /// One line: what it is and, for a number, its unit.
    pub meaning: &'static str,
    /// Whether the value is never shown, neither in errors nor by `nomina config`.
    pub secret: bool,
}

impl Setting {
    /// A setting whose value may be shown.
    #[must_use]
    pub const fn new(key: &'static str, allowed: &'static str, default: &'static str, meaning: &'static str) -> Self {
        Self { key, allowed, default, meaning, secret: false }
    }

    /// The same setting, but its value is never shown.
    #[must_use]
    pub const fn hidden(self) -> Self {
        Self { secret: true, ..self }
    }
}

/// A section of the configuration: implemented by the `Settings` struct of a layer.
pub trait Section {
    /// One row for each setting, in the order in which they are printed.
    const SETTINGS: &'static [Setting];

    /// Checks what the types cannot: ranges, and how settings of this section go together.
    ///
    /// # Errors
    /// The first setting that is wrong, and why.
    fn check(&self) -> Result<(), Problem>;
}

/// A setting whose value has the right type but cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct Problem {
    /// The setting's [`Setting::key`].
    pub key: &'static str,
    /// What is wrong with the value. The value itself and what is allowed are added by the reader of this error.
    pub reason: String,
}

impl Problem {
    /// Says that the value of `key` is wrong because of `reason`.
    pub fn new(key: &'static str, reason: impl Into<String>) -> Self {
        Self { key, reason: reason.into() }
    }

    /// `Ok` if `holds`, else a problem with `key`. For checks of one line.
    ///
    /// # Errors
    /// If `holds` is false.
    pub fn unless(holds: bool, key: &'static str, reason: &str) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self::new(key, reason)) }
    }
}
