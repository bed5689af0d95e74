//! How many requests there were, by type and code.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::wire::sdk::{Kind, error_codes};

const KINDS: usize = Kind::ALL.len() + 1;
const CODES: usize = error_codes::ALL.len();

/// One cell for each type of request, and one more for types that are not known, by each code.
#[derive(Debug, Default)]
pub(super) struct Counters([[AtomicU64; CODES]; KINDS]);

/// How often a type of request had a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestFigures {
    /// The type of the request; `unknown` for those without a handler.
    pub request: &'static str,
    /// The `errorCode` of the answer; 0 for success.
    pub code: u16,
    /// How often.
    pub count: u64,
}

impl Counters {
    pub(super) fn note(&self, kind: Option<Kind>, code: u16) {
        let row = kind.map_or(Kind::ALL.len(), Kind::index);
        let column = error_codes::ALL.iter().position(|known| *known == code);
        if let Some(cell) = self.0.get(row).zip(column).and_then(|(row, column)| row.get(column)) {
            cell.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn figures(&self) -> Vec<RequestFigures> {
        let names = Kind::ALL.into_iter().map(Kind::request).chain(["unknown"]);
        let cells = names.zip(&self.0).flat_map(|(request, row)| {
            error_codes::ALL.iter().zip(row).map(move |(code, cell)| RequestFigures {
                request,
                code: *code,
                count: cell.load(Relaxed),
            })
        });
        cells.filter(|figures| figures.count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_type_and_code() {
        let counters = Counters::default();
        counters.note(Some(Kind::ConfigRemove), error_codes::UNSUPPORTED);
        counters.note(None, error_codes::NO_HANDLER);
        counters.note(None, error_codes::NO_HANDLER);
        counters.note(Some(Kind::Instance), 7);
        let figures: Vec<_> = counters.figures().iter().map(|f| (f.request, f.code, f.count)).collect();
        assert_eq!(figures, [("ConfigRemoveRequest", 501, 1), ("unknown", 302, 2)]);
    }
}
