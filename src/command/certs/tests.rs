//! What `certs issue` leaves in a folder.

use std::time::Duration;

use tempfile::TempDir;

use super::*;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn args(folder: &Path) -> IssueArgs {
    IssueArgs {
        folder: folder.to_owned(),
        service: None,
        name: vec!["gmsa-webhook.gmsa.svc".to_owned()],
        ca_lifetime: 100 * DAY,
        leaf_lifetime: 10 * DAY,
    }
}

#[test]
fn an_authority_that_cannot_be_used_is_not_replaced() {
    let root = TempDir::new().unwrap();
    let [ca_cert, ca_key] = ["ca.crt", "ca.key"].map(|name| root.path().join(name));
    let now = SystemTime::now();
    let error = |now| format!("{:#}", issue(&args(root.path()), now).unwrap_err());
    issue(&args(root.path()), now).unwrap();
    assert_eq!(
        error(now + 100 * DAY),
        format!("{} expired: move it and its key away to have a new certificate authority created", ca_cert.display())
    );
    fs::remove_file(&ca_key).unwrap();
    assert_eq!(error(now), format!("cannot read {}: No such file or directory (os error 2)", ca_key.display()));
    fs::write(&ca_key, rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let failed = format!("cannot issue a certificate with {}", ca_cert.display());
    assert_eq!(error(now), format!("{failed}: the private key is not the key of the certificate authority"));
}

#[test]
fn a_name_that_cannot_be_certified_is_refused() {
    let root = TempDir::new().unwrap();
    let args = IssueArgs { name: vec!["ä".to_owned()], ..args(root.path()) };
    let error = issue(&args, SystemTime::now()).unwrap_err();
    let reason = "a name for the certificate is neither a DNS name nor an IP address";
    assert_eq!(error.chain().nth(1).unwrap().to_string(), reason);
}
