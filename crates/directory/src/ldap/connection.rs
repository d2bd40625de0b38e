//! A connection to a domain controller.
//!
//! Invariants: nothing but `StartTLS` is sent without TLS, whose certificate is verified; an operation has a time limit, a message a limit of
//! its bytes, a search of all its bytes and of its entries, and all together have the budget of the command; a message is wiped once it is
//! read.

use std::{io, net::IpAddr, path::Path, sync::Arc};

use gmsa_kerberos::der::{SEQUENCE, header};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use webpki::EndEntityCert;
use zeroize::{Zeroize as _, Zeroizing};

use super::message::{self, Control, Ending, FoundEntry, LdapAnswer};
use crate::{
    Budget, Credentials, Entry, Error, NameServers,
    address::{Controller, Transport},
    error::{bind_refused, refused},
    filter::{LdapSearch, SearchScope},
};

/// The largest message, in bytes: an object with tens of thousands of values.
pub const MAX_MESSAGE: usize = 8 << 20;
/// All messages of one search, in bytes.
pub const MAX_SEARCH: usize = 64 << 20;
/// The most entries of one search.
pub const MAX_ENTRIES: usize = 100_000;
/// The largest page of a domain controller (`MaxPageSize`).
const PAGE: u32 = 1000;

const SUCCESS: u32 = 0;

/// TLS that trusts the authorities in a file, or those of the system.
///
/// # Errors
/// Where the file cannot be read or holds no authority, or the system has none.
pub fn trust(authority: Option<&Path>) -> Result<Arc<ClientConfig>, Error> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = authority {
        let name = file.display().to_string();
        let unreadable = |error| Error::Authority(name.clone(), error);
        let bytes = std::fs::read(file).map_err(unreadable)?;
        for certificate in CertificateDer::pem_slice_iter(&bytes) {
            let certificate = certificate.map_err(io::Error::other).map_err(unreadable)?;
            roots.add(certificate).map_err(io::Error::other).map_err(unreadable)?;
        }
        // Windows exports a certificate as DER.
        if roots.is_empty() && roots.add(CertificateDer::from(bytes)).is_err() {
            return Err(Error::NoAuthority(name));
        }
    } else {
        // A system may hold one that is broken, among others that are not.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err(Error::NoRoots);
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Tls("here".to_owned(), io::Error::other(error)))?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// A connection, one operation at a time.
pub struct LdapConnection<S = TlsStream<TcpStream>> {
    stream: S,
    /// The server, for messages.
    address: String,
    /// Budget of the command, for all its connections.
    budget: Arc<Budget>,
    /// Number of the last request.
    number: u32,
    /// Received bytes that are not parsed yet.
    received: Zeroizing<Vec<u8>>,
}

impl LdapConnection {
    /// Connects to the controller, with TLS from the start or by `StartTLS`.
    ///
    /// # Errors
    /// If it cannot be reached within the time limit, or its certificate is not for its name or not trusted.
    pub async fn open(
        controller: &Controller,
        resolver: Option<&NameServers>,
        tls: &Arc<ClientConfig>,
        budget: &Arc<Budget>,
    ) -> Result<Self, Error> {
        let address = controller.to_string();
        budget
            .within(&address, async {
                let unreachable = |error| Error::Unreachable(address.clone(), error);
                let endpoints = controller.endpoints(resolver).await?;
                let socket = TcpStream::connect(endpoints.as_slice()).await.map_err(unreachable)?;
                socket.set_nodelay(true).map_err(unreachable)?;
                let socket = match controller.transport {
                    Transport::Tls => socket,
                    Transport::StartTls => {
                        LdapConnection::new(socket, &address, Arc::clone(budget)).start_tls().await?
                    }
                };
                let name = ServerName::try_from(controller.host.clone());
                let name = name.map_err(|error| Error::Tls(address.clone(), io::Error::other(error)))?;
                let stream = TlsConnector::from(Arc::clone(tls)).connect(name, socket).await;
                let stream = stream.map_err(|error| no_tls(&error)(address.clone(), error))?;
                Ok(LdapConnection::new(stream, &address, Arc::clone(budget)))
            })
            .await
    }

    /// The address of the domain controller.
    ///
    /// # Errors
    /// Where the connection has ended.
    pub fn peer(&self) -> Result<IpAddr, Error> {
        let peer = self.stream.get_ref().0.peer_addr();
        Ok(peer.map_err(|error| Error::Unreachable(self.address.clone(), error))?.ip())
    }

    /// Whether the certificate has this name, and not only one for its host or a pattern.
    pub(crate) fn is_for(&self, name: &str) -> bool {
        let certificates = self.stream.get_ref().1.peer_certificates().unwrap_or_default();
        certificates.first().is_some_and(|certificate| has_name(certificate, name))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> LdapConnection<S> {
    pub(crate) fn new(stream: S, address: &str, budget: Arc<Budget>) -> Self {
        Self { stream, address: address.to_owned(), budget, number: 0, received: Zeroizing::default() }
    }

    /// The stream, on which TLS may begin.
    async fn start_tls(mut self) -> Result<S, Error> {
        let number = self.send(&message::start_tls(), &[]).await?;
        let ending = self.ending(number).await?;
        if ending.code != SUCCESS {
            return Err(Error::NoTls(self.address, ending.message));
        }
        // Bytes after the answer were sent without TLS.
        if self.received.is_empty() { Ok(self.stream) } else { Err(Error::Malformed(self.address)) }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Logs on.
    ///
    /// # Errors
    /// Where the server does not let the user in, and why.
    pub async fn bind(&mut self, credentials: &Credentials) -> Result<(), Error> {
        let Credentials { user, password } = credentials;
        // RFC 4513, 5.1.2: without a password it would be an anonymous bind that succeeds.
        if password.is_empty() || user.is_empty() {
            return Err(Error::Credentials(self.address.clone(), user.clone(), "the user or the password is empty"));
        }
        let (address, budget) = (self.address.clone(), Arc::clone(&self.budget));
        budget
            .within(&address, async {
                const INVALID_CREDENTIALS: u32 = 49;
                self.number += 1;
                let message = message::bind(self.number, user, password);
                self.write(&message).await?;
                let Ending { code, message } = self.ending(self.number).await?;
                match code {
                    SUCCESS => Ok(()),
                    INVALID_CREDENTIALS => {
                        Err(Error::Credentials(address.clone(), user.clone(), bind_refused(&message)))
                    }
                    code => Err(refused(&address, code, &message)),
                }
            })
            .await
    }

    /// All entries that fit. Referrals to other servers are not followed.
    ///
    /// # Errors
    /// Where the server refuses, or the answer is larger than any honest one.
    pub async fn search(&mut self, search: &LdapSearch<'_>) -> Result<Vec<Entry>, Error> {
        self.search_with(search, false).await
    }

    /// The same, with names that hold the GUID and the SID of their object where they are to be extended: `<GUID=…>;<SID=…>;DC=…`.
    ///
    /// # Errors
    /// As [`Self::search`].
    pub(crate) async fn search_with(
        &mut self,
        search: &LdapSearch<'_>,
        extended_names: bool,
    ) -> Result<Vec<Entry>, Error> {
        let (address, budget) = (self.address.clone(), Arc::clone(&self.budget));
        budget
            .within(&address, async {
                budget.search(&address)?;
                let operation = search.encode();
                let (mut entries, mut size, mut cookie) = (Vec::new(), 0, Vec::new());
                loop {
                    // A single object instead of a list.
                    let paged = (search.scope == SearchScope::Subtree).then_some(Control::Page(PAGE, &cookie));
                    let controls: Vec<_> =
                        paged.into_iter().chain(extended_names.then_some(Control::ExtendedNames)).collect();
                    let number = self.send(&operation, &controls).await?;
                    let before = entries.len();
                    let entry = |found: FoundEntry<'_>| {
                        let malformed = || Error::Malformed(address.clone());
                        budget.bytes(&address, found.cost().ok_or_else(malformed)?)?;
                        entries.push(found.entry().ok_or_else(malformed)?);
                        Ok(())
                    };
                    let (ending, next) = self.answers(number, &mut size, entry).await?;
                    if ending.code != SUCCESS {
                        return Err(refused(&address, ending.code, &ending.message));
                    }
                    if entries.len() > MAX_ENTRIES {
                        return Err(Error::TooMuch(address.clone(), "100,000 entries"));
                    }
                    // A page without an entry may have a next one, but not without an end.
                    size += usize::from(entries.len() == before) << 20;
                    if next.is_empty() {
                        return Ok(entries);
                    }
                    cookie = next;
                }
            })
            .await
    }

    /// The value of an attribute of an object, in memory that is wiped; empty without a value, `None` if the object does not exist.
    ///
    /// # Errors
    /// As [`Self::search`].
    pub async fn secret(
        &mut self,
        search: &LdapSearch<'_>,
        attribute: &str,
    ) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
        let (address, budget) = (self.address.clone(), Arc::clone(&self.budget));
        budget
            .within(&address, async {
                budget.search(&address)?;
                let number = self.send(&search.encode(), &[]).await?;
                let mut seen = None;
                let entry = |found: FoundEntry<'_>| {
                    seen = Some(found.value(attribute).map(|value| Zeroizing::new(value.to_vec())));
                    Ok(())
                };
                let (ending, _) = self.answers(number, &mut 0, entry).await?;
                match (ending.code, seen) {
                    (SUCCESS, Some(None)) => Err(Error::Malformed(address.clone())),
                    (SUCCESS, seen) => Ok(seen.flatten()),
                    (code, _) => Err(refused(&address, code, &ending.message)),
                }
            })
            .await
    }

    async fn send(&mut self, operation: &[u8], controls: &[Control<'_>]) -> Result<u32, Error> {
        self.number += 1;
        let request = message::request(self.number, operation, controls);
        self.write(&request).await?;
        Ok(self.number)
    }

    async fn write(&mut self, message: &[u8]) -> Result<(), Error> {
        let ended = |error| Error::Unreachable(self.address.clone(), error);
        self.stream.write_all(message).await.map_err(ended)?;
        self.stream.flush().await.map_err(ended)
    }

    /// The end of an operation that finds nothing.
    async fn ending(&mut self, number: u32) -> Result<Ending, Error> {
        let (ending, _) = self.answers(number, &mut 0, |_| Ok(())).await?;
        Ok(ending)
    }

    /// Reads answers to a request until its end, and gives that and where the next page begins. `size` counts bytes.
    async fn answers(
        &mut self,
        number: u32,
        size: &mut usize,
        mut found: impl FnMut(FoundEntry<'_>) -> Result<(), Error>,
    ) -> Result<(Ending, Vec<u8>), Error> {
        loop {
            let length = self.receive().await?;
            *size += length;
            if *size > MAX_SEARCH {
                return Err(Error::TooMuch(self.address.clone(), "64 MiB"));
            }
            self.budget.bytes(&self.address, length)?;
            let ended = match self.received.get(..length).and_then(message::read) {
                // Its name says only that it ends the connection (RFC 4511, 4.4.1).
                Some((0, _)) => return Err(Error::Ended(self.address.clone())),
                Some((answered, _)) if answered != number => return Err(Error::Malformed(self.address.clone())),
                Some((_, LdapAnswer::Entry(entry))) => {
                    found(entry)?;
                    None
                }
                Some((_, LdapAnswer::Reference)) => None,
                Some((_, LdapAnswer::Done(ending, next))) => Some((ending, next.to_vec())),
                None => return Err(Error::Malformed(self.address.clone())),
            };
            if let Some(read) = self.received.get_mut(..length) {
                read.zeroize();
            }
            self.received.drain(..length);
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }

    /// Receives until there is a whole message, and gives its length.
    async fn receive(&mut self) -> Result<usize, Error> {
        // Small messages, such as the one with a password, never move in memory while they grow.
        self.received.reserve(16 << 10);
        loop {
            match header(&self.received) {
                Ok(Some((SEQUENCE, header, length))) if header + length <= MAX_MESSAGE => {
                    self.budget.fits(&self.address, header + length)?;
                    if self.received.len() >= header + length {
                        return Ok(header + length);
                    }
                }
                Ok(Some((SEQUENCE, ..))) => return Err(Error::TooMuch(self.address.clone(), "8 MiB at once")),
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => return Err(Error::Malformed(self.address.clone())),
            }
            match self.stream.read_buf(&mut *self.received).await {
                Ok(0) => return Err(Error::Ended(self.address.clone())),
                Ok(_) => {}
                // rustls' text for a missing close_notify points to its manual.
                Err(error) if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) => {
                    return Err(Error::Ended(self.address.clone()));
                }
                Err(error) => return Err(Error::Unreachable(self.address.clone(), error)),
            }
        }
    }
}

/// The error for a failed handshake.
fn no_tls(error: &io::Error) -> fn(String, io::Error) -> Error {
    use rustls::{CertificateError as Reason, Error::InvalidCertificate};
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(InvalidCertificate(reason)) => match reason {
            Reason::NotValidForName | Reason::NotValidForNameContext { .. } => Error::CertificateName,
            Reason::Expired
            | Reason::ExpiredContext { .. }
            | Reason::NotValidYet
            | Reason::NotValidYetContext { .. } => Error::CertificateTime,
            _ => Error::Certificate,
        },
        _ => Error::Tls,
    }
}

/// Whether a certificate has exactly this name as one of its DNS names.
fn has_name(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let certificate = EndEntityCert::try_from(certificate);
    certificate.is_ok_and(|certificate| certificate.valid_dns_names().any(|own| own.eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use std::{
        pin::Pin,
        task::{Context, Poll},
    };

    use tokio::io::{DuplexStream, ReadBuf, duplex};

    use super::*;
    use gmsa_kerberos::der::{ENUMERATED, SET, application, field, integer, octets, value};

    use crate::LdapFilter;

    fn sequence(content: &[u8]) -> Vec<u8> {
        value(SEQUENCE, content)
    }

    /// A server that sends this, over and over where `endless`, and then nothing. What it was sent comes back.
    fn server(sends: Vec<u8>, endless: bool) -> (LdapConnection<DuplexStream>, tokio::task::JoinHandle<Vec<u8>>) {
        let (client, mut server) = duplex(1 << 16);
        let task = tokio::spawn(async move {
            while server.write_all(&sends).await.is_ok() && endless {}
            let mut sent = Vec::new();
            let _ = server.read_to_end(&mut sent).await;
            sent
        });
        (LdapConnection::new(client, "ldaps://dc1", Arc::default()), task)
    }

    fn message(number: u32, operation: &[u8]) -> Vec<u8> {
        sequence(&[integer(number.into()).as_slice(), operation].concat())
    }

    /// The end of an operation, with this tag.
    fn ending(tag: u8, code: u8, text: &str) -> Vec<u8> {
        application(tag, &[value(ENUMERATED, &[code]), octets(b""), octets(text.as_bytes())].concat())
    }

    fn entry(name: &str, content: &[u8]) -> Vec<u8> {
        let attribute = sequence(&[octets(b"cn"), value(SET, &octets(content))].concat());
        application(4, &[octets(name.as_bytes()), sequence(&attribute)].concat())
    }

    const DONE: u8 = 5;

    const EXHAUSTED: &str = "one command takes at most 128 MiB of answers, which ldaps://dc1 exceeds: name single accounts, or another domain \
                             controller with --directory ldaps://HOST";

    fn search() -> LdapSearch<'static> {
        LdapSearch { base: "DC=x", scope: SearchScope::Subtree, filter: LdapFilter::Present("cn"), attributes: &["cn"] }
    }

    /// The outcome of a search to which the server sends this.
    async fn searched(sends: Vec<u8>, endless: bool) -> Result<Vec<Entry>, String> {
        let (mut connection, _server) = server(sends, endless);
        connection.search(&search()).await.map_err(|error| error.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn entries_are_read_to_the_end_and_references_left_out() {
        let reference = application(19, &octets(b"ldap://elsewhere/"));
        let sends = [
            message(1, &entry("CN=a", b"1")),
            message(1, &reference),
            message(1, &entry("CN=\u{1b}[31m\"", &[0, 255])),
            message(1, &ending(DONE, 0, "")),
        ];
        let found = searched(sends.concat(), false).await.unwrap();
        let values: Vec<(&str, Option<&[u8]>)> = found.iter().map(|one| (one.name.as_str(), one.value("CN"))).collect();
        assert_eq!(values, [("CN=a", Some(&b"1"[..])), ("CN=\u{1b}[31m\"", Some(&[0, 255][..]))]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_larger_than_any_honest_answer_is_an_error() {
        let huge = [&[0x30, 0x84, 0x7F, 0xFF, 0xFF, 0xFF][..], &[0; 1000]].concat();
        assert_eq!(searched(huge, false).await, Err("ldaps://dc1 answers with more than 8 MiB at once".to_owned()));
        let large = message(1, &entry("CN=a", &vec![b'x'; 1 << 20]));
        assert_eq!(searched(large, true).await, Err("ldaps://dc1 answers with more than 64 MiB".to_owned()));
        // Small ones without an end take more memory than bytes.
        let small = message(1, &entry("CN=a", b""));
        assert_eq!(searched(small, true).await, Err(EXHAUSTED.to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_more_memory_than_bytes_costs_more() {
        // Values without a byte of their own.
        let attribute = sequence(&[octets(b"cn"), value(SET, &octets(b"").repeat(1 << 20))].concat());
        let large = message(1, &application(4, &[octets(b"CN=a"), sequence(&attribute)].concat()));
        assert_eq!(searched(large, true).await, Err(EXHAUSTED.to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_is_cut_as_it_is_read() {
        let sends = [message(1, &entry(&"é".repeat(1 << 20), &vec![b'x'; 1 << 20])), message(1, &ending(DONE, 0, ""))];
        let found = searched(sends.concat(), false).await.unwrap();
        assert_eq!((found[0].name.as_str(), found[0].text("cn").unwrap().len()), ("é".repeat(2048).as_str(), 2048));
    }

    #[test]
    fn only_the_exact_name_proves_a_controller() {
        let has = |names: &[&str], name: &str| {
            let key = rcgen::KeyPair::generate().unwrap();
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let certificate = rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
            has_name(certificate.der(), name)
        };
        assert!(has(&["dc1.contoso.com", "Contoso.com"], "contoso.com"));
        assert!(!has(&["ws42.contoso.com"], "contoso.com"));
        assert!(!has(&["*.contoso.com", "*.com"], "emea.contoso.com"));
        assert!(!has(&["contoso.com.evil.org", "evilcontoso.com"], "contoso.com"));
        assert!(!has_name(&CertificateDer::from(b"x".to_vec()), "contoso.com"));
    }

    #[tokio::test(start_paused = true)]
    async fn pages_without_an_end_are_an_error() {
        let cookie = sequence(&[integer(0), octets(b"more")].concat());
        let control = sequence(&[octets(b"1.2.840.113556.1.4.319"), octets(&cookie)].concat());
        let page = |number| message(number, &[ending(DONE, 0, ""), field(0, &control)].concat());
        let pages: Vec<u8> = (1..200).flat_map(page).collect();
        assert_eq!(searched(pages, false).await, Err("ldaps://dc1 answers with more than 64 MiB".to_owned()));
    }

    /// A stream that ends without a TLS close. The library's error has a link that users do not need.
    struct Cut;

    impl AsyncRead for Cut {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, "see https://docs.rs/")))
        }
    }

    impl AsyncWrite for Cut {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_cut_has_a_next_step_and_no_manual() {
        let cut = async |address: &str| {
            let mut connection = LdapConnection::new(Cut, address, Arc::default());
            gmsa_core::causes::chain(&connection.search(&search()).await.unwrap_err())
        };
        assert_eq!(
            cut("ldaps://dc1").await,
            "ldaps://dc1 ended the connection; try again, or another domain controller, with --directory ldaps://HOST"
        );
        assert_eq!(
            cut("ldap://dc1:636").await,
            "ldap://dc1:636 ended the connection; on this port TLS begins at once: use --directory ldaps://dc1"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_ldap_is_an_error() {
        let malformed = Err("ldaps://dc1 sends an answer that is not LDAP".to_owned());
        let extended = application(24, &[value(ENUMERATED, &[0]), octets(b""), octets(b"")].concat());
        for sends in [
            b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
            vec![0x30, 0x80, 0, 0],
            vec![0x30, 0x85, 0, 0, 0, 0, 1],
            sequence(b""),
            sequence(&octets(b"1")),
            message(2, &ending(DONE, 0, "")),
            message(1, &octets(b"")),
            message(1, &application(DONE, b"")),
            message(1, &application(4, &octets(b"CN=a"))),
            [
                message(1, &application(4, &[octets(b"CN=a"), sequence(b"\x30\x05ab")].concat())),
                message(1, &ending(DONE, 0, "")),
            ]
            .concat(),
            [
                message(1, &entry("CN=a", b"")),
                message(1, &application(4, &[octets(&[0xFF]), sequence(b"")].concat())),
                message(1, &ending(DONE, 0, "")),
            ]
            .concat(),
        ] {
            assert_eq!(searched(sends.clone(), false).await, malformed, "{sends:?}");
        }
        // The notice of disconnection has no number of a request.
        assert_eq!(searched(message(0, &extended), false).await, Err("ldaps://dc1 ended the connection; try again, or another domain controller, with --directory ldaps://HOST".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_server_is_waited_for_only_so_long() {
        let late = Err("ldaps://dc1 did not answer within 30 s".to_owned());
        assert_eq!(searched(Vec::new(), false).await, late);
        assert_eq!(searched(message(1, &entry("CN=a", b"")), false).await, late);
        assert_eq!(searched(vec![0x30, 0x10, 0x02], false).await, late);
        let (mut connection, _server) = server(Vec::new(), false);
        let credentials = Credentials { user: "a@x".to_owned(), password: Zeroizing::new("b".to_owned()) };
        let error = connection.bind(&credentials).await.unwrap_err();
        assert_eq!(error.to_string(), "ldaps://dc1 did not answer within 30 s");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_said_in_words_and_without_control_characters() {
        for (code, said, text) in [
            (32, "0000208D: NameErr\u{1b}[2J\0", "ldaps://dc1 refuses: there is no such object (0000208D: NameErr[2J)"),
            (10, "ldap://evil.org/", "ldaps://dc1 refuses: it refers to another domain controller (ldap://evil.org/)"),
            (80, "", "ldaps://dc1 refuses: LDAP result code 80"),
        ] {
            assert_eq!(searched(message(1, &ending(DONE, code, said)), false).await, Err(text.to_owned()));
        }
        let long = searched(message(1, &ending(DONE, 1, &"x".repeat(100_000))), false).await.unwrap_err();
        assert_eq!(long.len(), "ldaps://dc1 refuses: operations error ()".len() + 300);
    }

    #[tokio::test(start_paused = true)]
    async fn the_reason_of_a_refused_bind_is_that_of_its_status() {
        const INVALID_CREDENTIALS: u8 = 49;
        for (status, reason) in [
            ("525", "the domain does not know the user"),
            ("52e", "the password is wrong, or the domain does not know the user"),
            ("530", "the account may not log on at this time"),
            ("532", "the password has expired"),
            ("533", "the account is disabled"),
            ("701", "the account has expired"),
            ("773", "the password must be changed first"),
            ("775", "the account is locked out"),
            ("1", "the user or the password is wrong"),
        ] {
            let said =
                format!("80090308: LdapErr: DSID-0C090447, comment: AcceptSecurityContext error, data {status}, v3839");
            let (mut connection, _server) = server(message(1, &ending(1, INVALID_CREDENTIALS, &said)), false);
            let credentials = Credentials { user: "a@x".to_owned(), password: Zeroizing::new("b".to_owned()) };
            let error = connection.bind(&credentials).await.unwrap_err();
            assert_eq!(error.to_string(), format!("ldaps://dc1 does not let a@x in: {reason}"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_sent_where_the_password_is_empty() {
        let (mut connection, server) = server(message(1, &ending(1, 0, "")), false);
        let credentials = Credentials { user: "a@x".to_owned(), password: Zeroizing::default() };
        let error = connection.bind(&credentials).await.unwrap_err();
        assert_eq!(error.to_string(), "ldaps://dc1 does not let a@x in: the user or the password is empty");
        drop(connection);
        assert_eq!(server.await.unwrap(), b"");
    }

    #[tokio::test(start_paused = true)]
    async fn tls_begins_right_after_the_answer_or_not_at_all() {
        const EXTENDED: u8 = 24;
        let asked = message(1, &application(23, &value(0x80, b"1.3.6.1.4.1.1466.20037")));
        let started = |sends: Vec<u8>| async move {
            let (connection, server) = server(sends, false);
            let error = connection.start_tls().await.map(drop).map_err(|error| error.to_string());
            // Nothing else was sent, above all no password.
            (error, server.await.unwrap())
        };
        let accepted = message(1, &ending(EXTENDED, 0, ""));
        assert_eq!(started(accepted.clone()).await, (Ok(()), asked.clone()));
        let injected = [accepted, message(2, &ending(1, 0, ""))].concat();
        let malformed = Err("ldaps://dc1 sends an answer that is not LDAP".to_owned());
        assert_eq!(started(injected).await, (malformed, asked.clone()));
        let refused = message(1, &ending(EXTENDED, 52, "no certificate"));
        let no_tls = Err("ldaps://dc1 does not take StartTLS: no certificate; a domain controller without a certificate takes no TLS: try another one, \
                 with --directory ldaps://HOST".to_owned());
        assert_eq!(started(refused).await, (no_tls, asked));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_of_a_secret_stays_with_the_connection() {
        let held = |sends: Vec<u8>| async move {
            let (mut connection, _server) = server(sends, false);
            let held = connection.secret(&search(), "cn").await.map_err(|error| error.to_string());
            (held.map(|value| value.map(|value| value.to_vec())), connection.received.to_vec())
        };
        let done = message(1, &ending(DONE, 0, ""));
        let with = |value: &[u8]| [message(1, &entry("CN=a", value)), done.clone()].concat();
        assert_eq!(held(with(b"secret")).await, (Ok(Some(b"secret".to_vec())), Vec::new()));
        assert_eq!(held(with(b"")).await, (Ok(Some(Vec::new())), Vec::new()));
        assert_eq!(held(done.clone()).await, (Ok(None), Vec::new()));
    }
}
