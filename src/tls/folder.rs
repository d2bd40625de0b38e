//! An authority and a serving certificate in a folder: for tests, and for installations that keep their own authority.
//!
//! What always holds: the authority that is in the folder is used again, so that what trusts it goes on trusting it; keys
//! can be read by this user only; a file is there whole or not at all.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use thiserror::Error;

use super::{
    Summary,
    files::{LoadError, read},
    issue::{Ca, IssueError},
    key_pair::{KeyPair, KeyPairError},
};

/// What is issued into a folder, and for how long.
#[derive(Clone, Debug)]
pub struct Order {
    /// The DNS names and IP addresses of the server.
    pub names: Vec<String>,
    /// How long an authority lives that has to be made first.
    pub ca_lifetime: Duration,
    /// How long the serving certificate lives; never longer than its authority.
    pub leaf_lifetime: Duration,
}

/// What stands in the folder afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Whether the authority was made, rather than found there.
    pub new_authority: bool,
    /// The serving certificate.
    pub leaf: Summary,
    /// The authority's certificate, for a `caBundle`.
    pub ca_cert: PathBuf,
    /// The authority's key. No server needs it.
    pub ca_key: PathBuf,
    /// The serving certificate.
    pub tls_cert: PathBuf,
    /// Its key.
    pub tls_key: PathBuf,
}

/// Why nothing could be issued.
#[derive(Debug, Error)]
pub enum FolderError {
    /// The authority in the folder cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The authority in the folder cannot be used, or a certificate not be made.
    #[error("cannot issue a certificate with {}", .authority.display())]
    Issue {
        /// The authority's certificate.
        authority: PathBuf,
        /// Why.
        source: IssueError,
    },
    /// The authority in the folder is no longer valid.
    #[error("{} expired: move it and its key away to have a new authority made", .0.display())]
    Expired(PathBuf),
    /// What was issued did not pass its own check.
    #[error("cannot use the certificate that was made")]
    KeyPair(#[from] KeyPairError),
    /// A file or the folder cannot be written.
    #[error("cannot write {}", .path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Issues a serving certificate into `folder`, and an authority where there is none in it: `ca.crt`, `ca.key`, `tls.crt` and
/// `tls.key`.
///
/// # Errors
/// Where the authority in the folder cannot be used, a name cannot stand in a certificate, or the folder not be written.
pub fn issue(folder: &Path, order: &Order, now: SystemTime) -> Result<Delivery, FolderError> {
    let file = |name: &str| folder.join(name);
    let (ca_cert, ca_key, tls_cert, tls_key) = (file("ca.crt"), file("ca.key"), file("tls.crt"), file("tls.key"));
    let failed = |source| FolderError::Issue { authority: ca_cert.clone(), source };
    fs::create_dir_all(folder).map_err(|source| FolderError::Write { path: folder.to_owned(), source })?;
    let new_authority = !ca_cert.exists() && !ca_key.exists();
    let ca = if new_authority {
        let ca = Ca::generate("gmsa-webhook CA", now, order.ca_lifetime).map_err(failed)?;
        write(&ca_key, ca.key_pem().as_bytes(), 0o600)?;
        write(&ca_cert, ca.cert_pem().as_bytes(), 0o644)?;
        ca
    } else {
        let [cert, key] = [read(&ca_cert)?, read(&ca_key)?].map(|pem| String::from_utf8_lossy(&pem).into_owned());
        Ca::from_pem(&cert, &key).map_err(failed)?
    };
    if ca.not_after() <= now {
        return Err(FolderError::Expired(ca_cert));
    }
    let leaf = ca.issue(&order.names, now, order.leaf_lifetime).map_err(failed)?;
    let pair = KeyPair::from_pem(leaf.cert.as_bytes(), leaf.key.as_bytes(), now)?;
    write(&tls_key, leaf.key.as_bytes(), 0o600)?;
    write(&tls_cert, leaf.cert.as_bytes(), 0o644)?;
    Ok(Delivery { new_authority, leaf: pair.summary().clone(), ca_cert, ca_key, tls_cert, tls_key })
}

/// Writes beside the file and renames, so that whoever reads it meanwhile reads all of one or all of the other.
fn write(path: &Path, content: &[u8], mode: u32) -> Result<(), FolderError> {
    let failed = |source| FolderError::Write { path: path.to_owned(), source };
    let beside = path.with_extension("new");
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside);
    file.and_then(|mut file| file.write_all(content)).map_err(failed)?;
    fs::rename(&beside, path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::tls::files;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn order() -> Order {
        Order { names: vec!["gmsa-webhook.gmsa.svc".to_owned()], ca_lifetime: 100 * DAY, leaf_lifetime: 10 * DAY }
    }

    #[test]
    fn the_authority_is_made_once_and_leaves_whenever_asked_for() {
        let root = tempfile::TempDir::new().unwrap();
        let folder = root.path().join("new/certs");
        let now = SystemTime::now();
        let first = issue(&folder, &order(), now).unwrap();
        let authority = fs::read(&first.ca_cert).unwrap();
        let second = issue(&folder, &order(), now).unwrap();
        assert_eq!((first.new_authority, second.new_authority), (true, false));
        assert_eq!(fs::read(&second.ca_cert).unwrap(), authority);
        assert_ne!(first.leaf.serial, second.leaf.serial);
        assert_eq!(files::load(&second.tls_cert, &second.tls_key, now).unwrap().summary(), &second.leaf);
        for (path, mode) in
            [(&second.ca_key, 0o600), (&second.tls_key, 0o600), (&second.ca_cert, 0o644), (&second.tls_cert, 0o644)]
        {
            let found = fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(found & !mode, 0, "{} has mode {found:o}", path.display());
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 4);
    }

    #[test]
    fn an_authority_that_cannot_be_used_is_not_replaced() {
        let root = tempfile::TempDir::new().unwrap();
        let now = SystemTime::now();
        let Delivery { ca_cert, ca_key, .. } = issue(root.path(), &order(), now).unwrap();
        let late = issue(root.path(), &order(), now + 100 * DAY).unwrap_err();
        assert_eq!(
            late.to_string(),
            format!("{} expired: move it and its key away to have a new authority made", ca_cert.display())
        );
        fs::remove_file(&ca_key).unwrap();
        let missing = issue(root.path(), &order(), now).unwrap_err();
        assert_eq!(missing.to_string(), format!("cannot read {}", ca_key.display()));
        fs::write(&ca_key, rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
        let other = issue(root.path(), &order(), now).unwrap_err();
        assert!(matches!(other, FolderError::Issue { source: IssueError::CaMismatch, .. }), "{other:?}");
    }

    #[test]
    fn a_name_that_cannot_be_certified_is_refused() {
        let root = tempfile::TempDir::new().unwrap();
        let order = |names: &[&str]| Order { names: names.iter().map(|name| (*name).to_owned()).collect(), ..order() };
        for (names, reason) in [
            (vec![], "a serving certificate needs a name"),
            (vec!["ä"], "a name for the certificate is neither a DNS name nor an IP address"),
        ] {
            let FolderError::Issue { source, .. } = issue(root.path(), &order(&names), SystemTime::now()).unwrap_err()
            else {
                panic!("{names:?}")
            };
            assert_eq!(source.to_string(), reason);
        }
    }
}
