//! A CA and a serving certificate in a folder: for tests, and for installations that keep their own CA.
//!
//! What always holds: a CA that is in the folder is used again, so that clients that trust it go on trusting it; only this
//! user can read the keys; a file is complete or does not exist.

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
    files::{FileError, read},
    issue::{Ca, IssueError},
};

#[derive(Clone, Debug)]
pub struct IssueRequest {
    /// The DNS names and IP addresses of the server.
    pub names: Vec<String>,
    /// The lifetime of a CA, where one must be created.
    pub ca_lifetime: Duration,
    /// The lifetime of the serving certificate, which never exceeds that of the CA.
    pub leaf_lifetime: Duration,
}

/// What is in the folder afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedFiles {
    pub new_ca: bool,
    pub leaf: Summary,
    /// For a `caBundle`.
    pub ca_cert: PathBuf,
    /// No server needs it.
    pub ca_key: PathBuf,
    pub tls_cert: PathBuf,
    pub tls_key: PathBuf,
}

#[derive(Debug, Error)]
pub enum FolderError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("cannot issue a certificate with {}", .ca_cert.display())]
    Issue { ca_cert: PathBuf, source: IssueError },
    #[error("{} expired: move it and its key away to have a new certificate authority created", .0.display())]
    Expired(PathBuf),
    #[error("cannot write {}", .path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// Issues `tls.crt` and `tls.key` into `folder`, by the CA in `ca.crt` and `ca.key`, which is created where there is none.
///
/// # Errors
/// Where the CA in the folder cannot be used, a name is not valid in a certificate, or the folder cannot be written.
pub fn issue(folder: &Path, request: &IssueRequest, now: SystemTime) -> Result<IssuedFiles, FolderError> {
    let [ca_cert, ca_key, tls_cert, tls_key] = ["ca.crt", "ca.key", "tls.crt", "tls.key"].map(|name| folder.join(name));
    let failed = |source| FolderError::Issue { ca_cert: ca_cert.clone(), source };
    fs::create_dir_all(folder).map_err(|source| FolderError::Write { path: folder.to_owned(), source })?;
    let new_ca = !ca_cert.exists() && !ca_key.exists();
    let ca = if new_ca {
        let ca = Ca::generate("gmsa-webhook CA", now, request.ca_lifetime).map_err(failed)?;
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
    let (leaf, pair) = ca.issue_pair(&request.names, now, request.leaf_lifetime).map_err(failed)?;
    write(&tls_key, leaf.key.as_bytes(), 0o600)?;
    write(&tls_cert, leaf.cert.as_bytes(), 0o644)?;
    Ok(IssuedFiles { new_ca, leaf: pair.summary().clone(), ca_cert, ca_key, tls_cert, tls_key })
}

/// Writes a new file and renames it, so that a reader gets all of the old file or all of the new one.
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

    fn request() -> IssueRequest {
        IssueRequest {
            names: vec!["gmsa-webhook.gmsa.svc".to_owned()],
            ca_lifetime: 100 * DAY,
            leaf_lifetime: 10 * DAY,
        }
    }

    #[test]
    fn the_authority_is_made_once_and_leaves_whenever_asked_for() {
        let root = tempfile::TempDir::new().unwrap();
        let folder = root.path().join("new/certs");
        let now = SystemTime::now();
        let first = issue(&folder, &request(), now).unwrap();
        let authority = fs::read(&first.ca_cert).unwrap();
        let second = issue(&folder, &request(), now).unwrap();
        assert_eq!((first.new_ca, second.new_ca), (true, false));
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
        let IssuedFiles { ca_cert, ca_key, .. } = issue(root.path(), &request(), now).unwrap();
        let late = issue(root.path(), &request(), now + 100 * DAY).unwrap_err();
        assert_eq!(
            late.to_string(),
            format!(
                "{} expired: move it and its key away to have a new certificate authority created",
                ca_cert.display()
            )
        );
        fs::remove_file(&ca_key).unwrap();
        let missing = issue(root.path(), &request(), now).unwrap_err();
        assert_eq!(missing.to_string(), format!("cannot read {}", ca_key.display()));
        fs::write(&ca_key, rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
        let other = issue(root.path(), &request(), now).unwrap_err();
        assert!(matches!(other, FolderError::Issue { source: IssueError::CaMismatch, .. }), "{other:?}");
    }

    #[test]
    fn a_name_that_cannot_be_certified_is_refused() {
        let root = tempfile::TempDir::new().unwrap();
        let named =
            |names: &[&str]| IssueRequest { names: names.iter().map(|name| (*name).to_owned()).collect(), ..request() };
        for (names, reason) in [
            (vec![], "a serving certificate needs a name"),
            (vec!["ä"], "a name for the certificate is neither a DNS name nor an IP address"),
        ] {
            let FolderError::Issue { source, .. } = issue(root.path(), &named(&names), SystemTime::now()).unwrap_err()
            else {
                panic!("{names:?}")
            };
            assert_eq!(source.to_string(), reason);
        }
    }
}
