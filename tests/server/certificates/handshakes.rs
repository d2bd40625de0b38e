//! Handshakes that must fail, and their effect on handshakes that must succeed.

use std::{
    fs,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use gmsa_edge::{
    clock::Moment,
    tls::{
        CaBundle,
        client_auth::ClientAuth,
        issue::{Ca, Issued},
    },
};
use rustls::HandshakeKind;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::webhook;
use crate::{
    https::{DAY, Server, Setup, authority, key_pair, leaf, served},
    support::{
        PATIENCE,
        control_plane::{client_certificate, until},
        https::{Client, NAME},
    },
};

/// A `ClientHello` in the layout of RFC 5246 section 7.4.1.2, with the signature algorithms as its only extension.
fn client_hello(version: [u8; 2]) -> Vec<u8> {
    const SUITES: [u8; 4] = [0xc0, 0x2b, 0xc0, 0x2f];
    let random = [7; 32];
    let extensions = [0, 8, 0, 13, 0, 4, 0, 2, 4, 3];
    let body = [&version[..], &random, &[0], &[0, 4], &SUITES, &[1, 0], &extensions].concat();
    let length = |part: &[u8]| u8::try_from(part.len()).unwrap();
    let message = [&[1, 0, 0, length(&body)], &body[..]].concat();
    [&[22, 3, 1, 0, length(&message)], &message[..]].concat()
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
async fn versions_before_tls_1_2_and_garbage_are_refused() {
    let server = Setup::examples().start();
    let mut kept = server.client.keep_alive(server.address).await.unwrap();
    // Alert, TLS 1.2, two bytes: fatal, protocol_version.
    let refusal = [21, 3, 3, 0, 2, 2, 70];
    for version in [[3, 0], [3, 1], [3, 2]] {
        assert_eq!(answer_to(server.address, &client_hello(version)).await, refusal, "{version:?}");
    }
    for bytes in [
        b"GET /mutate HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(),
        vec![0; 4096],
        (0..=255).cycle().take(8192).collect(),
        [22, 3, 1, 0xff, 0xff].into_iter().chain(std::iter::repeat_n(1, 70_000)).collect(),
    ] {
        // A fatal alert, or nothing at all: never the beginning of a session.
        let answer = answer_to(server.address, &bytes).await;
        assert!(answer.is_empty() || answer[0] == 21, "{answer:?}");
    }
    kept.review().await.unwrap();
    server.client.review(server.address).await.unwrap();
}

#[tokio::test]
async fn sessions_resume_over_a_change_of_certificates() {
    let ca = authority();
    let slot = served(&ca, NAME);
    let server = webhook(&slot);
    let client = Client::trusting(ca.cert_pem()).resuming();
    assert_eq!(client.review(server.address).await.unwrap(), HandshakeKind::Full);
    slot.publish(key_pair(&leaf(&ca, NAME)));
    assert_eq!(client.review(server.address).await.unwrap(), HandshakeKind::Resumed);
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
        tokio::spawn(Arc::clone(&auth).keep_loaded(Duration::from_secs(3600)));
        let client = Client::trusting(serving.cert_pem());
        let server = Setup { clients: Some(auth), ..Setup::examples() }.serve(&served(&serving, NAME), client);
        Self { folder, trusted, serving, server }
    }

    fn client(&self, certificate: &Issued) -> Client {
        let bundle = CaBundle::salvage(self.serving.cert_pem().as_bytes());
        Client::new(&bundle, Arc::new(Moment::now), Some(certificate))
    }

    /// A client of the trusted authority.
    fn named(&self, common_name: &str, dns_names: &[&str]) -> Client {
        self.client(&client_certificate(&self.trusted, common_name, dns_names))
    }

    async fn admits(&self, client: &Client) {
        client.review(self.server.address).await.unwrap();
    }

    async fn refuses(&self, client: &Client, alert: &str) {
        let error = anyhow::Error::from(client.review(self.server.address).await.unwrap_err());
        assert!(format!("{error:#}").contains(alert), "{alert}: {error:#}");
    }
}

#[tokio::test]
async fn only_clients_of_the_authority_get_in() {
    let guarded = Guarded::start(&[]);
    let stranger = Ca::generate("another CA", SystemTime::now(), DAY).unwrap();
    let client = guarded.named("anybody", &[]).resuming();
    guarded.admits(&client).await;
    for (client, alert) in [
        (&guarded.server.client, "CertificateRequired"),
        (&guarded.client(&client_certificate(&stranger, "anybody", &[])), "UnknownCA"),
        // A serving certificate is no client certificate.
        (&guarded.client(&leaf(&guarded.trusted, NAME)), "UnsupportedCertificate"),
    ] {
        guarded.refuses(client, alert).await;
    }
    // Who shows a certificate shows it every time.
    assert_eq!(client.review(guarded.server.address).await.unwrap(), HandshakeKind::Full);
}

/// A DNS name counts only where it is asked for.
#[tokio::test]
async fn only_clients_with_one_of_the_names_get_in() {
    const DNS: &str = "apiserver.example.com";
    let guarded = Guarded::start(&["kube-apiserver", "dns:apiserver.example.com"]);
    for (common_name, dns_names) in [("kube-apiserver", &[][..]), ("anybody", &["other.example.com", DNS])] {
        guarded.admits(&guarded.named(common_name, dns_names)).await;
    }
    let dns = format!("dns:{DNS}");
    for (common_name, dns_names) in [("kubelet", &[][..]), ("workload", &["kube-apiserver"]), (DNS, &[]), (&dns, &[])] {
        guarded.refuses(&guarded.named(common_name, dns_names).resuming(), "AccessDenied").await;
    }
}

#[tokio::test]
async fn the_authority_of_clients_is_read_again_when_it_changes() {
    let guarded = Guarded::start(&[]);
    let (address, file) = (guarded.server.address, guarded.folder.path().join("client-ca.crt"));
    let new = authority();
    let old_client = guarded.named("kube-apiserver", &[]);
    let new_client = guarded.client(&client_certificate(&new, "kube-apiserver", &[]));
    fs::write(&file, "-----BEGIN CERTIFICATE-----\nAAAA").unwrap();
    guarded.admits(&old_client).await;
    let mut old_connection = old_client.keep_alive(address).await.unwrap();
    // One more authority closes no connection.
    fs::write(&file, [guarded.trusted.cert_pem(), new.cert_pem()].concat()).unwrap();
    until("the new client is admitted", async || new_client.review(address).await.ok()).await;
    old_connection.review().await.unwrap();
    let mut new_connection = new_client.keep_alive(address).await.unwrap();
    fs::write(&file, new.cert_pem()).unwrap();
    until("the old client is refused", async || old_client.review(address).await.err()).await;
    // The connection was open before.
    old_connection.review().await.unwrap_err();
    new_connection.review().await.unwrap();
}

#[test]
fn a_file_without_authorities_is_refused_at_the_start() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("client-ca.crt");
    let error = || ClientAuth::load(file.clone(), Vec::new()).unwrap_err().to_string();
    assert_eq!(error(), format!("cannot read {}", file.display()));
    fs::write(&file, "nothing").unwrap();
    assert_eq!(error(), format!("{} does not hold certificate authorities", file.display()));
}
