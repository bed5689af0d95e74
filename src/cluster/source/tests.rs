use std::fs;

use tempfile::TempDir;

use super::*;

fn name(text: &str) -> MemberName {
    MemberName::parse(text).expect(text)
}

fn list(text: &str) -> MemberList {
    MemberList::parse_lines(text).expect("a list")
}

/// A file of members that is looked at every 5 ms, and the node `a`.
struct Place {
    dir: TempDir,
    shutdown: Shutdown,
}

impl Place {
    fn new(text: &str) -> Self {
        let place = Self { dir: TempDir::new().expect("a directory"), shutdown: Shutdown::new() };
        place.write(text);
        place
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("cluster.conf")
    }

    /// Puts a whole file in its place, as editors and mounts do.
    fn write(&self, text: &str) {
        fs::write(self.dir.path().join("new"), text).expect("written");
        fs::rename(self.dir.path().join("new"), self.path()).expect("renamed");
    }

    async fn start(&self) -> Result<Members, Error> {
        let settings = Settings {
            advertise: "A.".to_owned(),
            members_file: self.path(),
            members_poll: Duration::from_millis(5),
            ..Settings::default()
        };
        Members::start(&settings, Clock::start(), &self.shutdown).await.map(|members| members.expect("clustered"))
    }
}

async fn becomes(members: &Members, wanted: &MemberList) {
    let mut watch = members.watch();
    let change = watch.wait_for(|list| **list == *wanted);
    tokio::time::timeout(Duration::from_secs(10), change).await.expect("in time").expect("open");
}

#[tokio::test]
async fn without_a_list_the_node_runs_alone() {
    let alone = Members::start(&Settings::default(), Clock::start(), &Shutdown::new()).await;
    assert!(alone.expect("alone").is_none());
}

#[tokio::test]
async fn a_fixed_list_is_normalised_and_stays() {
    let members = ["B.:8848", "a", "b"].map(str::to_owned).to_vec();
    let settings = Settings { advertise: "a:8848".to_owned(), members, ..Settings::default() };
    let shutdown = Shutdown::new();
    let members = Members::start(&settings, Clock::start(), &shutdown).await.expect("listed").expect("clustered");
    assert_eq!(*members.list(), list("a,b"));
    assert!(members.is_listed());
    assert_eq!(shutdown.drained(Duration::ZERO).await, 0);
}

#[tokio::test]
async fn a_changed_file_is_a_changed_list() {
    let place = Place::new("a\nb");
    let members = place.start().await.expect("listed");
    let mut watch = members.watch();
    watch.mark_unchanged();
    place.write("# a comment more\nb\na");
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!watch.has_changed().expect("open"));
    place.write("a\nc");
    becomes(&members, &list("a,c")).await;
    place.write("c");
    becomes(&members, &list("c")).await;
    assert!(!members.is_listed());
    place.write("c,a");
    becomes(&members, &list("a,c")).await;
    assert!(members.is_listed());
}

#[tokio::test]
async fn a_file_that_vanishes_or_is_broken_keeps_the_last_list() {
    let place = Place::new("a\nb");
    let members = place.start().await.expect("listed");
    for broken in ["a\nb:x", "", "# nobody"] {
        place.write(broken);
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(*members.list(), list("a,b"));
    }
    fs::remove_file(place.path()).expect("removed");
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(*members.list(), list("a,b"));
    place.write("a,b,c");
    becomes(&members, &list("a,b,c")).await;
}

#[tokio::test]
async fn the_drain_ends_the_looks() {
    let place = Place::new("a");
    let _members = place.start().await.expect("listed");
    place.shutdown.drain();
    assert_eq!(place.shutdown.drained(Duration::from_secs(10)).await, 0);
}

#[tokio::test]
async fn at_the_start_a_list_without_this_node_is_an_error_that_names_both() {
    let place = Place::new("aa\na:88\nb.a");
    let error = place.start().await.expect_err("not listed").to_string();
    for part in ["a:8848 (cluster.advertise)", "cluster.members_file", "a:88, aa:8848, b.a:8848"] {
        assert!(error.contains(part), "{part:?} is not in: {error}");
    }
}

#[tokio::test]
async fn at_the_start_an_unreadable_file_is_an_error_that_says_why() {
    let place = Place::new("a\nb:x");
    let error = whole(&place.start().await.expect_err("broken"));
    for part in ["cluster.members_file", "cluster.conf", "line 2", "'b:x'"] {
        assert!(error.contains(part), "{part:?} is not in: {error}");
    }
    fs::remove_file(place.path()).expect("removed");
    let error = whole(&place.start().await.expect_err("missing"));
    assert!(error.contains("cannot read") && error.contains("No such file"), "{error}");
    let long = format!("a\n{}", "#".repeat(300 * 1024));
    place.write(&long);
    assert!(whole(&place.start().await.expect_err("long")).contains("longer than"));
}

/// A file stands for DNS: what matters is when the own name comes.
#[tokio::test]
async fn a_node_waits_for_its_own_name_as_long_as_it_may() {
    let place = Place::new("b");
    let mut reader = Reader::new(Source::File(place.path()), &name("a"));
    let (clock, me) = (Clock::start(), name("a"));
    let writer = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        place.write("a,b");
    };
    let (found, ()) =
        tokio::join!(first(&mut reader, &me, "cluster.members_dns", Duration::from_secs(30), clock), writer);
    assert_eq!(found.expect("in time"), list("a,b"));
    place.write("b");
    let begun = clock.now();
    let error = first(&mut reader, &me, "cluster.members_dns", Duration::from_millis(200), clock).await;
    assert!(matches!(error, Err(Error::NotListed { .. })), "{error:?}");
    assert!(clock.now().since(begun) >= Duration::from_millis(200));
}
