//! Handshakes that must not succeed, and what they do to those that must.

use std::{
    fs,
    net::SocketAddr,
    time::{Duration, SystemTime},
};

use futures::future::join_all;
use gmsa_webhook::tls::{
    KeyPair, Served,
    client_auth::{ClientAuth, ClientAuthError},
    files::FileError,
    issue::{Ca, Issued},
};
use rustls::HandshakeKind;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::{DAY, authority, client::Client, leaf, nothing_served, webhook};
use crate::{https::Server, support::PATIENCE};

fn served(ca: &Ca) -> Served {
    let (served, _) = nothing_served();
    publish(&served, ca);
    served
}

fn publish(served: &Served, ca: &Ca) {
    let Issued { cert, key } = leaf(ca);
    served.publish(KeyPair::from_pem(cert.as_bytes(), key.as_bytes(), SystemTime::now()).unwrap());
}

/// A `ClientHello` in the layout of RFC 5246 section 7.4.1.2, with the signature algorithms as its only extension.
fn client_hello(version: [u8; 2]) -> Vec<u8> {
    const SUITES: [u8; 4] = [0xc0, 0x2b, 0xc0, 0x2f];
    let mut body = version.to_vec();
    body.extend([7; 32]);
    body.push(0);
    body.extend([0, 4]);
    body.extend(SUITES);
    body.extend([1, 0]);
    body.extend([0, 8, 0, 13, 0, 4, 0, 2, 4, 3]);
    let mut message = vec![1, 0, 0, u8::try_from(body.len()).unwrap()];
    message.extend(body);
    let mut record = vec![22, 3, 1, 0, u8::try_from(message.len()).unwrap()];
    record.extend(message);
    record
}

/// What the server says to these bytes before it closes the connection.
async fn answer_to(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    // A server that closes with bytes unread resets the connection.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
    answer
}

#[tokio::test]
async fn versions_before_tls_1_2_are_refused() {
    let ca = authority();
    let slot = served(&ca);
    let server = webhook(&slot, None);
    // Alert, TLS 1.2, two bytes: fatal, protocol_version.
    let refusal = [21, 3, 3, 0, 2, 2, 70];
    for version in [[3, 0], [3, 1], [3, 2]] {
        assert_eq!(answer_to(server.address, &client_hello(version)).await, refusal, "{version:?}");
    }
    Client::trusting(ca.cert_pem()).review(server.address).await.unwrap();
}

#[tokio::test]
async fn sessions_resume_over_a_change_of_certificates() {
    let ca = authority();
    let slot = served(&ca);
    let server = webhook(&slot, None);
    let client = Client::trusting(ca.cert_pem()).resuming();
    assert_eq!(client.handshake(server.address).await.unwrap(), HandshakeKind::Full);
    publish(&slot, &ca);
    assert_eq!(client.handshake(server.address).await.unwrap(), HandshakeKind::Resumed);
}

/// A server that asks for certificates of clients, and the authority that they need.
struct Guarded {
    folder: TempDir,
    trusted: Ca,
    serving: Ca,
    server: Server,
}

impl Guarded {
    fn start(names: &[&str]) -> Self {
        let (trusted, serving) = (authority(), authority());
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("client-ca.crt");
        fs::write(&file, trusted.cert_pem()).unwrap();
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let auth = ClientAuth::load(file, names).unwrap();
        let kept = std::sync::Arc::clone(&auth).keep_loaded(Duration::from_secs(3600));
        tokio::spawn(async move { match kept.await {} });
        let server = webhook(&served(&serving), Some(auth));
        Self { folder, trusted, serving, server }
    }

    fn client(&self, certificate: &Issued) -> Client {
        Client::showing(self.serving.cert_pem(), certificate)
    }
}

/// A client's certificate, as `openssl` would sign one.
fn client_certificate(ca: &Ca, common_name: &str) -> Issued {
    client_certificate_for(ca, common_name, &[])
}

/// A client's certificate with DNS names.
fn client_certificate_for(ca: &Ca, common_name: &str, dns_names: &[&str]) -> Issued {
    let key = rcgen::KeyPair::generate().unwrap();
    let dns_names: Vec<String> = dns_names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = rcgen::CertificateParams::new(dns_names).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, common_name);
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let signing = rcgen::KeyPair::from_pem(&ca.key_pem()).unwrap();
    let issuer = rcgen::Issuer::from_ca_cert_pem(ca.cert_pem(), signing).unwrap();
    Issued { cert: params.signed_by(&key, &issuer).unwrap().pem(), key: key.serialize_pem() }
}

/// An error and what it comes from.
fn whole(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(error.source(), |error| error.source());
    sources.fold(error.to_string(), |text, error| format!("{text}: {error}"))
}

#[tokio::test]
async fn only_clients_of_the_authority_get_in() {
    let guarded = Guarded::start(&[]);
    let address = guarded.server.address;
    let stranger = Ca::generate("another CA", SystemTime::now(), DAY).unwrap();
    guarded.client(&client_certificate(&guarded.trusted, "anybody")).review(address).await.unwrap();
    for (client, alert) in [
        (Client::trusting(guarded.serving.cert_pem()), "CertificateRequired"),
        (guarded.client(&client_certificate(&stranger, "anybody")), "UnknownCA"),
        // A serving certificate is no client certificate.
        (guarded.client(&leaf(&guarded.trusted)), "UnsupportedCertificate"),
    ] {
        let error = whole(&client.review(address).await.unwrap_err());
        assert!(error.contains(alert), "{alert}: {error}");
    }
    guarded.client(&client_certificate(&guarded.trusted, "anybody")).review(address).await.unwrap();
}

#[tokio::test]
async fn only_clients_with_one_of_the_names_get_in() {
    let guarded = Guarded::start(&["kube-apiserver", "kube-apiserver-2"]);
    let address = guarded.server.address;
    for name in ["kube-apiserver", "kube-apiserver-2"] {
        guarded.client(&client_certificate(&guarded.trusted, name)).review(address).await.unwrap();
    }
    let other = guarded.client(&client_certificate(&guarded.trusted, "kubelet")).resuming();
    let error = whole(&other.review(address).await.unwrap_err());
    assert!(error.contains("AccessDenied"), "{error}");
}

#[tokio::test]
async fn a_dns_name_counts_only_where_it_is_asked_for() {
    let common = Guarded::start(&["kube-apiserver"]);
    let impostor = client_certificate_for(&common.trusted, "workload", &["kube-apiserver"]);
    let error = whole(&common.client(&impostor).review(common.server.address).await.unwrap_err());
    assert!(error.contains("AccessDenied"), "{error}");

    let dns = Guarded::start(&["dns:apiserver.example.com"]);
    let address = dns.server.address;
    let named = client_certificate_for(&dns.trusted, "anybody", &["other.example.com", "apiserver.example.com"]);
    dns.client(&named).review(address).await.unwrap();
    for common_name in ["apiserver.example.com", "dns:apiserver.example.com"] {
        let error =
            whole(&dns.client(&client_certificate(&dns.trusted, common_name)).review(address).await.unwrap_err());
        assert!(error.contains("AccessDenied"), "{common_name}: {error}");
    }
}

#[tokio::test]
async fn who_shows_a_certificate_shows_it_every_time() {
    let guarded = Guarded::start(&[]);
    let client = guarded.client(&client_certificate(&guarded.trusted, "kube-apiserver")).resuming();
    for _ in 0..2 {
        assert_eq!(client.handshake(guarded.server.address).await.unwrap(), HandshakeKind::Full);
    }
}

#[tokio::test]
async fn the_authority_of_clients_is_read_again_when_it_changes() {
    let guarded = Guarded::start(&[]);
    let (address, file) = (guarded.server.address, guarded.folder.path().join("client-ca.crt"));
    let new = authority();
    let old_client = guarded.client(&client_certificate(&guarded.trusted, "kube-apiserver"));
    let new_client = guarded.client(&client_certificate(&new, "kube-apiserver"));
    fs::write(&file, "-----BEGIN CERTIFICATE-----\nAAAA").unwrap();
    old_client.review(address).await.unwrap();
    let mut old_connection = old_client.keep_alive(address).await.unwrap();
    // One more authority closes no connection.
    fs::write(&file, [guarded.trusted.cert_pem(), new.cert_pem()].concat()).unwrap();
    let trusted = async {
        while new_client.review(address).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, trusted).await.unwrap();
    old_connection.review().await.unwrap();
    let mut new_connection = new_client.keep_alive(address).await.unwrap();
    fs::write(&file, new.cert_pem()).unwrap();
    let removed = async {
        while old_client.review(address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, removed).await.unwrap();
    // The connection was open before.
    old_connection.review().await.unwrap_err();
    new_connection.review().await.unwrap();
}

#[test]
fn a_file_without_authorities_is_refused_at_the_start() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("client-ca.crt");
    let error = ClientAuth::load(file.clone(), Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot read {}", file.display()));
    fs::write(&file, "nothing").unwrap();
    let error = ClientAuth::load(file.clone(), Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), format!("{} does not hold certificate authorities", file.display()));
    assert!(matches!(error, ClientAuthError::File(FileError::InvalidCas { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_and_a_thousand_half_open_connections_delay_no_good_review() {
    let ca = authority();
    let slot = served(&ca);
    let server = webhook(&slot, None);
    let address = server.address;
    let hello = client_hello([3, 3]);
    let half_open = join_all((0..1000_usize).map(|number| {
        let part = hello[..number % hello.len()].to_owned();
        async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(&part).await.unwrap();
            stream
        }
    }))
    .await;
    let noise: Vec<Vec<u8>> = vec![
        b"GET /mutate HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(),
        vec![0; 4096],
        (0..=255).cycle().take(8192).collect(),
        [22, 3, 1, 0xff, 0xff].into_iter().chain([1; 70_000]).collect(),
    ];
    for bytes in &noise {
        // A fatal alert, or nothing at all: never the beginning of a session.
        let answer = answer_to(address, bytes).await;
        assert!(answer.is_empty() || answer[0] == 21, "{answer:?}");
    }
    let client = Client::trusting(ca.cert_pem());
    let mut kept = client.keep_alive(address).await.unwrap();
    // Half-open connections end after 5 s: a review that had to wait for that would take as long.
    let delay = Duration::from_secs(2);
    for _ in 0..20 {
        timeout(delay, client.review(address)).await.expect("a new connection was delayed").unwrap();
        timeout(delay, kept.review()).await.expect("a connection was delayed").unwrap();
    }
    drop(half_open);
}
