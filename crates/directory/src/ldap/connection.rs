//! A connection to a domain controller.
//!
//! Invariants: nothing but `StartTLS` is sent without TLS, whose certificate is verified; an operation has a time limit, and an answer one of
//! its bytes, of the bytes of all messages, and of entries; what is read is wiped before it is given back.

use std::{io, path::Path, sync::Arc, time::Duration};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use zeroize::{Zeroize as _, Zeroizing};

use super::{
    ber,
    message::{self, Answer, Control, Ending, Found},
};
use crate::{
    Entry, Error, Resolver,
    address::{Controller, Transport},
    error::{bind_refused, refused},
    filter::{Scope, Search},
};

/// For one operation: a connection, a bind, or a whole search.
const LIMIT: Duration = Duration::from_secs(30);
/// The largest message, in bytes: an object with tens of thousands of values.
const MAX_MESSAGE: usize = 8 << 20;
/// All messages of one search, in bytes.
const MAX_SEARCH: usize = 64 << 20;
/// The most entries of one search.
const MAX_ENTRIES: usize = 100_000;
/// What domain controllers give at most in one page (`MaxPageSize`).
const PAGE: u32 = 1000;

const SUCCESS: u32 = 0;

/// A user of the domain, and the password.
pub struct Credentials {
    pub user: String,
    pub password: Zeroizing<String>,
}

/// TLS that trusts the authorities in a file, or those of the system.
///
/// # Errors
/// Where there are none.
pub fn trust(authority: Option<&Path>) -> Result<Arc<ClientConfig>, Error> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = authority {
        let name = file.display().to_string();
        let unreadable = |error| Error::Authority(name.clone(), io::Error::other(error));
        for certificate in CertificateDer::pem_file_iter(file).map_err(unreadable)? {
            let added = certificate.map(|certificate| roots.add(certificate)).map_err(unreadable)?;
            added.map_err(|error| Error::Authority(name.clone(), io::Error::other(error)))?;
        }
        if roots.is_empty() {
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
pub struct Connection<S = TlsStream<TcpStream>> {
    stream: S,
    /// The server, for messages.
    address: String,
    /// Of the last request.
    number: u32,
    /// What was received, and not yet read.
    received: Zeroizing<Vec<u8>>,
}

impl Connection {
    /// Connects to the controller, with TLS from the start or by `StartTLS`.
    ///
    /// # Errors
    /// Where it cannot be reached within the time limit, or its certificate is not for its name or not trusted.
    pub async fn open(
        controller: &Controller,
        resolver: Option<&Resolver>,
        tls: &Arc<ClientConfig>,
    ) -> Result<Self, Error> {
        let address = controller.to_string();
        within(&address, async {
            let unreachable = |error| Error::Unreachable(address.clone(), error);
            let endpoints = controller.endpoints(resolver).await?;
            let socket = TcpStream::connect(endpoints.as_slice()).await.map_err(unreachable)?;
            socket.set_nodelay(true).map_err(unreachable)?;
            let socket = match controller.transport {
                Transport::Tls => socket,
                Transport::StartTls => Connection::new(socket, &address).start_tls().await?,
            };
            let name = ServerName::try_from(controller.host.clone());
            let name = name.map_err(|error| Error::Tls(address.clone(), io::Error::other(error)))?;
            let stream =
                TlsConnector::from(Arc::clone(tls)).connect(name, socket).await.map_err(|error| {
                    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
                        Some(rustls::Error::InvalidCertificate(_)) => Error::Certificate(address.clone(), error),
                        _ => Error::Tls(address.clone(), error),
                    }
                })?;
            Ok(Connection::new(stream, &address))
        })
        .await
    }
}

impl Connection<TcpStream> {
    async fn start_tls(mut self) -> Result<TcpStream, Error> {
        let number = self.send(&message::start_tls(), &[]).await?;
        let ending = self.ending(number).await?;
        if ending.code != SUCCESS {
            return Err(Error::NoTls(self.address, ending.message));
        }
        // What came after the answer was not protected by TLS.
        if self.received.is_empty() { Ok(self.stream) } else { Err(Error::Malformed(self.address)) }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(crate) fn new(stream: S, address: &str) -> Self {
        Self { stream, address: address.to_owned(), number: 0, received: Zeroizing::default() }
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
        let address = self.address.clone();
        within(&address, async {
            const INVALID_CREDENTIALS: u32 = 49;
            self.number += 1;
            let message = message::bind(self.number, user, password);
            self.write(&message).await?;
            let Ending { code, message } = self.ending(self.number).await?;
            match code {
                SUCCESS => Ok(()),
                INVALID_CREDENTIALS => Err(Error::Credentials(address.clone(), user.clone(), bind_refused(&message))),
                code => Err(refused(&address, code, &message)),
            }
        })
        .await
    }

    /// All entries that fit. Where more is at other servers, that is left out.
    ///
    /// # Errors
    /// Where the server refuses, or the answer is larger than any honest one.
    pub async fn search(&mut self, search: &Search<'_>) -> Result<Vec<Entry>, Error> {
        self.search_with(search, false).await
    }

    /// All entries that fit, with names that hold the GUID and the SID of their object: `<GUID=…>;<SID=…>;DC=…`.
    ///
    /// # Errors
    /// As [`Self::search`].
    pub async fn search_extended(&mut self, search: &Search<'_>) -> Result<Vec<Entry>, Error> {
        self.search_with(search, true).await
    }

    async fn search_with(&mut self, search: &Search<'_>, extended_names: bool) -> Result<Vec<Entry>, Error> {
        let address = self.address.clone();
        within(&address, async {
            let operation = search.encode();
            let (mut entries, mut size, mut cookie) = (Vec::new(), 0, Vec::new());
            loop {
                // One object is no list.
                let paged = (search.scope == Scope::Subtree).then_some(Control::Page(PAGE, &cookie));
                let controls: Vec<_> =
                    paged.into_iter().chain(extended_names.then_some(Control::ExtendedNames)).collect();
                let number = self.send(&operation, &controls).await?;
                let before = entries.len();
                let mut broken = false;
                let (ending, next) = self
                    .answers(number, &mut size, |found| match found.entry() {
                        Some(entry) => entries.push(entry),
                        None => broken = true,
                    })
                    .await?;
                if broken {
                    return Err(Error::Malformed(address.clone()));
                }
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

    /// Whether an object has a value of this attribute, of which nothing is kept; `None` where there is no such object.
    ///
    /// # Errors
    /// As [`Self::search`].
    pub async fn holds(&mut self, search: &Search<'_>, attribute: &str) -> Result<Option<bool>, Error> {
        let address = self.address.clone();
        within(&address, async {
            let number = self.send(&search.encode(), &[]).await?;
            let mut held = None;
            let (ending, _) = self.answers(number, &mut 0, |found| held = Some(found.holds(attribute))).await?;
            match (ending.code, held) {
                (SUCCESS, Some(None)) => Err(Error::Malformed(address.clone())),
                (SUCCESS, held) => Ok(held.flatten()),
                (code, _) => Err(refused(&address, code, &ending.message)),
            }
        })
        .await
    }

    /// Adds an object.
    ///
    /// # Errors
    /// Where the server refuses it.
    pub async fn add(&mut self, entry: &Entry) -> Result<(), Error> {
        let address = self.address.clone();
        within(&address, async {
            let number = self.send(&message::add(entry), &[]).await?;
            let Ending { code, message } = self.ending(number).await?;
            if code == SUCCESS { Ok(()) } else { Err(refused(&address, code, &message)) }
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
        let (ending, _) = self.answers(number, &mut 0, |_| {}).await?;
        Ok(ending)
    }

    /// Reads answers to a request until its end, and gives that and where the next page begins. `size` counts bytes.
    async fn answers(
        &mut self,
        number: u32,
        size: &mut usize,
        mut found: impl FnMut(Found<'_>),
    ) -> Result<(Ending, Vec<u8>), Error> {
        loop {
            let length = self.receive().await?;
            *size += length;
            if *size > MAX_SEARCH {
                return Err(Error::TooMuch(self.address.clone(), "64 MiB"));
            }
            let ended = match self.received.get(..length).and_then(message::read) {
                // Of itself it says only that it ends the connection (RFC 4511, 4.4.1).
                Some((0, _)) => return Err(Error::Ended(self.address.clone())),
                Some((of, _)) if of != number => return Err(Error::Malformed(self.address.clone())),
                Some((_, Answer::Entry(entry))) => {
                    found(entry);
                    None
                }
                Some((_, Answer::Reference)) => None,
                Some((_, Answer::Done(ending, next))) => Some((ending, next.to_vec())),
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
            match ber::header(&self.received) {
                Ok(Some((ber::SEQUENCE, header, length))) if header + length <= MAX_MESSAGE => {
                    if self.received.len() >= header + length {
                        return Ok(header + length);
                    }
                }
                Ok(Some((ber::SEQUENCE, ..))) => return Err(Error::TooMuch(self.address.clone(), "8 MiB at once")),
                Ok(None) => {}
                Ok(Some(_)) | Err(()) => return Err(Error::Malformed(self.address.clone())),
            }
            let unreadable = |error| Error::Unreachable(self.address.clone(), error);
            if self.stream.read_buf(&mut *self.received).await.map_err(unreadable)? == 0 {
                return Err(Error::Ended(self.address.clone()));
            }
        }
    }
}

async fn within<T>(address: &str, operation: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    timeout(LIMIT, operation).await.unwrap_or_else(|_| Err(Error::TimedOut(address.to_owned(), LIMIT)))
}
