//! What a look at the source means: whether the list changed, and what is worth a line in the log.

use std::sync::Arc;

use super::read::ReadError;
use crate::cluster::member::{Difference, MemberList, MemberName};

/// What is new after a look.
#[derive(Debug)]
pub(super) enum News {
    /// Another list than before.
    List {
        /// The list from now on.
        list: Arc<MemberList>,
        /// Who joined and who left.
        difference: Difference,
    },
    /// It cannot be read since this look; the last list stands. Said once for each row of failures.
    Failing(ReadError),
    /// It can be read again.
    Readable,
    /// This node is no longer in the list.
    Unlisted(MemberName),
    /// This node is in the list again.
    Listed(MemberName),
}

/// The last good list, and whether looks fail. Owned by the task that looks.
#[derive(Debug)]
pub(super) struct Follow {
    me: MemberName,
    list: Arc<MemberList>,
    failing: bool,
}

impl Follow {
    /// From a first list that was read.
    pub(super) fn new(me: MemberName, list: Arc<MemberList>) -> Self {
        Self { me, list, failing: false }
    }

    /// Takes what a look gave. Returns what is new, in the order in which it is to be told.
    pub(super) fn take(&mut self, read: Result<MemberList, ReadError>) -> Vec<News> {
        let failed_before = std::mem::replace(&mut self.failing, read.is_err());
        let list = match read {
            Err(_) if failed_before => return Vec::new(),
            Err(error) => return vec![News::Failing(error)],
            Ok(list) => list,
        };
        let mut news = Vec::new();
        if failed_before {
            news.push(News::Readable);
        }
        if list != *self.list {
            let difference = self.list.difference(&list);
            let (was, is) = (self.list.contains(&self.me), list.contains(&self.me));
            self.list = Arc::new(list);
            news.push(News::List { list: self.list.clone(), difference });
            match (was, is) {
                (true, false) => news.push(News::Unlisted(self.me.clone())),
                (false, true) => news.push(News::Listed(self.me.clone())),
                (true, true) | (false, false) => {}
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::member::ListError;

    fn list(text: &str) -> MemberList {
        MemberList::parse_lines(text).expect("a list")
    }

    fn failed() -> Result<MemberList, ReadError> {
        Err(ReadError::File { path: "f".into(), source: ListError::Empty })
    }

    fn follow() -> Follow {
        Follow::new(MemberName::parse("a").expect("a name"), Arc::new(list("a,b")))
    }

    #[test]
    fn the_same_list_is_no_news() {
        assert!(follow().take(Ok(list("B\na # again\na"))).is_empty());
    }

    #[test]
    fn failures_keep_the_list_and_are_told_once() {
        let mut follow = follow();
        assert!(matches!(follow.take(failed())[..], [News::Failing(_)]));
        assert!(follow.take(failed()).is_empty());
        assert_eq!(*follow.list, list("a,b"));
        assert!(matches!(follow.take(Ok(list("a,b")))[..], [News::Readable]));
        assert!(matches!(follow.take(failed())[..], [News::Failing(_)]));
    }

    #[test]
    fn a_change_says_who_and_whether_this_node_is_in() {
        let mut follow = follow();
        let news = follow.take(Ok(list("b,c")));
        let [News::List { list: newer, difference }, News::Unlisted(me)] = &news[..] else { panic!("{news:?}") };
        assert_eq!(**newer, list("b,c"));
        assert_eq!(difference.joined.iter().map(MemberName::host).collect::<Vec<_>>(), ["c"]);
        assert_eq!(difference.left.iter().map(MemberName::host).collect::<Vec<_>>(), ["a"]);
        assert_eq!(me.host(), "a");
        assert!(matches!(follow.take(Ok(list("c")))[..], [News::List { .. }]));
        assert!(matches!(follow.take(Ok(list("a,c")))[..], [News::List { .. }, News::Listed(_)]));
    }
}
