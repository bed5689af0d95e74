//! Why a member stands as it does, in words for people.

use super::Evidence;
use crate::cluster::detector::Standing;

impl Evidence {
    /// The words; none for a member that is up.
    pub(super) fn reason(&self) -> String {
        let seen = match self.standing {
            Standing::Up => return String::new(),
            Standing::Departed => return "it said goodbye".to_owned(),
            Standing::Suspect | Standing::Unreachable | Standing::Dead => self.seen(),
        };
        match self.standing {
            Standing::Unreachable => format!("{seen}; another member has it up"),
            Standing::Dead => format!("{seen}; no member that is up has it up"),
            Standing::Suspect | Standing::Up | Standing::Departed => seen,
        }
    }

    /// What this node itself has seen.
    fn seen(&self) -> String {
        let (answers, own) = (self.silence.answers, self.silence.own_link);
        let mut text = match (answers > self.suspect_after, own > self.suspect_after) {
            _ if !self.met => format!("it has not been met for {} ms", answers.max(own).as_millis()),
            (true, true) => format!("it neither answers nor is heard for {} ms", answers.min(own).as_millis()),
            (true, false) => format!("it does not answer on the link to it for {} ms", answers.as_millis()),
            (false, true) => format!("it is not heard on its own link for {} ms", own.as_millis()),
            (false, false) => "it has not shown life in both directions yet".to_owned(),
        };
        if let Some(refused) = self.refused {
            text.push_str(&format!("; it refuses connections for {} ms", refused.as_millis()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cluster::detector::Silence;

    fn reason(standing: Standing, answers: u64, own_link: u64, met: bool, refused: Option<u64>) -> String {
        let silence = Silence { answers: Duration::from_millis(answers), own_link: Duration::from_millis(own_link) };
        let refused = refused.map(Duration::from_millis);
        Evidence { standing, silence, suspect_after: Duration::from_secs(2), met, refused }.reason()
    }

    #[test]
    fn a_reason_names_the_direction_and_the_time() {
        for (standing, answers, own_link, met, refused, words) in [
            (Standing::Up, 100, 100, true, None, ""),
            (Standing::Departed, 9_000, 9_000, true, None, "it said goodbye"),
            (Standing::Suspect, 2_300, 10, true, None, "it does not answer on the link to it for 2300 ms"),
            (Standing::Suspect, 10, 2_400, true, None, "it is not heard on its own link for 2400 ms"),
            (Standing::Suspect, 10, 20, true, None, "it has not shown life in both directions yet"),
            (Standing::Suspect, 700, 700, false, None, "it has not been met for 700 ms"),
            (
                Standing::Unreachable,
                6_000,
                7_000,
                true,
                None,
                "it neither answers nor is heard for 6000 ms; another member has it up",
            ),
            (
                Standing::Dead,
                6_000,
                6_000,
                true,
                Some(5_900),
                "it neither answers nor is heard for 6000 ms; it refuses connections for 5900 ms; no member that is up has it up",
            ),
        ] {
            assert_eq!(reason(standing, answers, own_link, met, refused), words);
        }
    }
}
