use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use super::*;

/// An authority for tests.
pub(in crate::cluster) struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(in crate::cluster) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Writes a certificate for `host` with all that belongs to it.
    pub(in crate::cluster) fn issue(&self, dir: &Path, host: &str) -> Files {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        let files = Files { cert: dir.join("cert.pem"), key: dir.join("key.pem"), ca: dir.join("ca.pem") };
        fs::write(&files.cert, cert.pem()).unwrap();
        fs::write(&files.key, key.serialize_pem()).unwrap();
        fs::write(&files.ca, &self.pem).unwrap();
        files
    }
}

fn current(tls: &Tls) -> Arc<Configs> {
    tls.configs.load_full()
}

#[test]
fn new_files_are_taken_up_and_broken_ones_are_not() {
    let dir = TempDir::new().unwrap();
    let authority = Authority::new();
    let files = authority.issue(dir.path(), "a");
    let tls = Tls::load(files.clone()).unwrap();
    let first = current(&tls);
    tls.refresh();
    assert!(Arc::ptr_eq(&first, &current(&tls)));

    // A new certificate whose key has not come yet.
    let key = fs::read(&files.key).unwrap();
    authority.issue(dir.path(), "a");
    let new = fs::read(&files.key).unwrap();
    fs::write(&files.key, key).unwrap();
    tls.refresh();
    assert!(Arc::ptr_eq(&first, &current(&tls)));
    fs::write(&files.key, new).unwrap();
    tls.refresh();
    let second = current(&tls);
    assert!(!Arc::ptr_eq(&first, &second));

    for broken in [&b""[..], b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", b"\xff\xfe"] {
        fs::write(&files.cert, broken).unwrap();
        tls.refresh();
        assert!(Arc::ptr_eq(&second, &current(&tls)), "{broken:?}");
    }
    fs::remove_file(&files.ca).unwrap();
    tls.refresh();
    assert!(Arc::ptr_eq(&second, &current(&tls)));
    authority.issue(dir.path(), "a");
    tls.refresh();
    assert!(!Arc::ptr_eq(&second, &current(&tls)));
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_name() {
    let dir = TempDir::new().unwrap();
    let files = Authority::new().issue(dir.path(), "a");
    fs::write(&files.key, "nothing").unwrap();
    let error = Tls::load(files.clone()).unwrap_err().to_string();
    assert!(error.contains("key.pem") && error.contains("private key"), "{error}");
    fs::remove_file(&files.cert).unwrap();
    let error = Tls::load(files).unwrap_err().to_string();
    assert!(error.contains("cert.pem"), "{error}");
}

#[test]
fn a_certificate_is_for_the_host_that_it_names() {
    let dir = TempDir::new().unwrap();
    let authority = Authority::new();
    for (host, good, bad) in [
        ("node-0.example", "node-0.example:8848", "node-1.example:8848"),
        ("127.0.0.1", "127.0.0.1:1", "127.0.0.2:1"),
        ("::1", "[::1]:1", "[::2]:1"),
    ] {
        let files = authority.issue(dir.path(), host);
        let chain = certificates(&fs::read(&files.cert).unwrap(), &files.cert).unwrap();
        assert!(is_for(Some(&chain), &MemberName::parse(good).unwrap()), "{host}");
        assert!(!is_for(Some(&chain), &MemberName::parse(bad).unwrap()), "{host}");
        assert!(!is_for(None, &MemberName::parse(good).unwrap()));
    }
}
