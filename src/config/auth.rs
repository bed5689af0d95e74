//! `[auth]`: whether callers must sign in.

use serde::{Deserialize, Serialize};

use crate::setting::{Problem, Section, Setting};

/// Whether callers must sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    /// Everybody who reaches a listener may do everything.
    #[default]
    Off,
    /// Callers sign in, and rules say what they may do.
    On,
}

/// Who may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthSettings {
    /// Whether callers must sign in. A listener that others can reach needs it to be written down.
    pub mode: AuthMode,
}

impl Section for AuthSettings {
    const SETTINGS: &'static [Setting] = &[Setting::new(
        "mode",
        r#""off" ("on" is not available in this version)"#,
        r#""off""#,
        "Whether callers must sign in. Has to be written down, even as \"off\", before a listener leaves loopback.",
    )];

    fn check(&self) -> Result<(), Problem> {
        match self.mode {
            AuthMode::Off => Ok(()),
            AuthMode::On => Err(Problem::new(
                "mode",
                "authentication is not available in this version; guard the ports by other means",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_is_refused_clearly() {
        let problem = AuthSettings { mode: AuthMode::On }.check().expect_err("not built");
        assert!(problem.reason.contains("not available in this version"), "{problem}");
    }
}
