//! A simulated domain controller on loopback: LDAP over TLS, with the root of a directory, its domains, accounts and their passwords. It
//! refuses, lies or stays silent on request.
//!
//! It knows the searches that `gmsa-directory` makes, and what each of them asks for is recorded.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gmsa_kerberos::der::{DerReader, ENUMERATED, SET, header, octets, sequence, value};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::Tls;

const BIND: u8 = 0x60;
const BIND_DONE: u8 = 0x61;
const SEARCH: u8 = 0x63;
const FOUND: u8 = 0x64;
const SEARCH_DONE: u8 = 0x65;

/// What a directory does with each request.
#[derive(Clone, Debug, Default)]
pub enum DirectoryConduct {
    #[default]
    Honest,
    /// Reads, and never answers.
    Silent,
    /// Ends the connection.
    Close,
    /// Sends these bytes as an answer.
    Raw(Vec<u8>),
    /// Refuses every search with this result code.
    Refuse(u8),
    /// Refuses every logon with this status of Windows.
    RefuseUser(&'static str),
}

/// An account of the directory.
#[derive(Clone, Debug)]
pub struct DirectoryAccount {
    pub class: &'static str,
    /// Its SAM name without `$`, where that is not the one that it is asked for by.
    pub sam: Option<&'static str>,
    /// The SID of its domain.
    pub domain_sid: [u32; 3],
    /// Its passwords, in bytes of UTF-16; without one it is not given to the user.
    pub current: Option<Vec<u8>>,
    pub previous: Option<Vec<u8>>,
    /// How long the password is worth no other read.
    pub query: Duration,
    /// The number of the key in force.
    pub kvno: u32,
    /// The account after a read of the password, which makes the change of one that is due.
    pub changed: Option<Box<Self>>,
}

impl DirectoryAccount {
    /// A group Managed Service Account of the domain `S-1-5-21-1-2-3` with this password, all of whose bytes are the same.
    pub fn with_password(byte: u8) -> Self {
        Self {
            class: "msDS-GroupManagedServiceAccount",
            sam: None,
            domain_sid: [1, 2, 3],
            current: Some(password(byte)),
            previous: None,
            query: Duration::from_secs(86_400),
            kvno: 1,
            changed: None,
        }
    }
}

/// A password of 256 bytes, all of which are this one.
pub fn password(byte: u8) -> Vec<u8> {
    vec![byte; 256]
}

/// A directory that ends with the test.
pub struct SimulatedDirectory {
    pub address: SocketAddr,
    pub tls: Tls,
    state: Arc<Mutex<State>>,
    task: tokio::task::JoinHandle<()>,
}

struct State {
    /// `DC=contoso,DC=com`
    name: String,
    domain: String,
    user: (String, String),
    accounts: BTreeMap<String, DirectoryAccount>,
    conduct: DirectoryConduct,
    asked: Vec<String>,
}

impl Drop for SimulatedDirectory {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl SimulatedDirectory {
    /// A directory of a domain, with this user and no account.
    pub async fn start(domain: &str, user: &str, password: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, tls) = (listener.local_addr().unwrap(), Tls::new());
        let state = Arc::new(Mutex::new(State {
            name: domain.split('.').map(|part| format!("DC={part}")).collect::<Vec<_>>().join(","),
            domain: domain.to_owned(),
            user: (user.to_owned(), password.to_owned()),
            accounts: BTreeMap::new(),
            conduct: DirectoryConduct::Honest,
            asked: Vec::new(),
        }));
        let (shared, acceptor) = (Arc::clone(&state), tls.acceptor());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (state, acceptor) = (Arc::clone(&shared), acceptor.clone());
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    while let Some(message) = read(&mut stream).await {
                        let answer = state.lock().unwrap_or_else(PoisonError::into_inner).answer(&message);
                        match answer {
                            Some(bytes) if bytes.is_empty() => std::future::pending().await,
                            Some(bytes) if stream.write_all(&bytes).await.is_ok() && stream.flush().await.is_ok() => {}
                            _ => return,
                        }
                    }
                });
            }
        });
        Self { address, tls, state, task }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates an account, or replaces it. `sam` has no `$`.
    pub fn account(&self, sam: &str, account: DirectoryAccount) {
        self.state().accounts.insert(sam.to_owned(), account);
    }

    pub fn conduct(&self, conduct: DirectoryConduct) {
        self.state().conduct = conduct;
    }

    /// Gives the user another password.
    pub fn password_of_user(&self, password: &str) {
        password.clone_into(&mut self.state().user.1);
    }

    /// What was asked for since the last call: `bind USER`, `root`, `domains`, `account`, `password WebApp1`, `number WebApp1`; `unanswered` while it is silent.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.state().asked)
    }
}

/// A whole message; `None` at the end. A client sends the next one after the answer.
async fn read(from: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut message = Vec::new();
    loop {
        match header(&message).ok()? {
            Some((_, header, length)) if message.len() >= header + length => return Some(message),
            _ if from.read_buf(&mut message).await.ok()? == 0 => return None,
            _ => {}
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn done(tag: u8, code: u8, said: &str) -> Vec<u8> {
    value(tag, &[value(ENUMERATED, &[code]), octets(b""), octets(said.as_bytes())].concat())
}

fn found(name: &str, attributes: &[(&str, Vec<Vec<u8>>)]) -> Vec<u8> {
    let attributes: Vec<Vec<u8>> = attributes
        .iter()
        .map(|(name, values)| {
            let values: Vec<u8> = values.iter().flat_map(|value| octets(value)).collect();
            sequence(&[octets(name.as_bytes()), value(SET, &values)])
        })
        .collect();
    value(FOUND, &[octets(name.as_bytes()), sequence(&attributes)].concat())
}

/// The bytes of `S-1-5-21-A-B-C-R`.
fn sid([a, b, c]: [u32; 3], relative: u32) -> Vec<u8> {
    let parts = [21, a, b, c, relative].into_iter().flat_map(u32::to_le_bytes);
    [1, 5, 0, 0, 0, 0, 0, 5].into_iter().chain(parts).collect()
}

/// `MSDS-MANAGEDPASSWORD_BLOB`, as Samba makes it.
fn blob(current: &[u8], previous: Option<&Vec<u8>>, query: Duration) -> Vec<u8> {
    let (first, second) = (16, if previous.is_some() { 16 + 258 } else { 0 });
    let end = 16 + if previous.is_some() { 516 } else { 258 };
    let aligned = u16::div_ceil(end, 8) * 8;
    let mut blob = [1u16, 0].map(u16::to_le_bytes).concat();
    blob.extend(u32::from(aligned + 16).to_le_bytes());
    for offset in [first, second, aligned, aligned + 8] {
        blob.extend(u16::to_le_bytes(offset));
    }
    for password in std::iter::once(current).chain(previous.map(Vec::as_slice)) {
        blob.extend([password, &[0, 0]].concat());
    }
    blob.resize(aligned.into(), 0);
    let unchanged = query.saturating_sub(Duration::from_secs(300));
    let ticks = [query, unchanged].map(|interval| u64::try_from(interval.as_nanos() / 100).unwrap());
    blob.extend(ticks.into_iter().flat_map(u64::to_le_bytes));
    blob
}

impl State {
    /// Empty where it stays silent, `None` where the connection ends.
    fn answer(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        let mut message = DerReader(message).sequence().unwrap();
        let number = message.read(2).unwrap().to_vec();
        let answer = |operation: Vec<u8>| Some(sequence(&[value(2, &number), operation]));
        let operations = match &self.conduct {
            DirectoryConduct::Silent => {
                self.asked.push("unanswered".to_owned());
                return Some(Vec::new());
            }
            DirectoryConduct::Close => return None,
            DirectoryConduct::Raw(bytes) => return Some(bytes.clone()),
            _ => match *message.0.first()? {
                BIND => vec![self.bind(DerReader(message.read(BIND).unwrap()))],
                SEARCH => self.search(DerReader(message.read(SEARCH).unwrap())),
                _ => return None,
            },
        };
        Some(operations.into_iter().filter_map(answer).flatten().collect())
    }

    fn bind(&mut self, mut request: DerReader<'_>) -> Vec<u8> {
        const PASSWORD: u8 = 0x80;
        request.read(2).unwrap();
        let (user, password) = (text(request.read(4).unwrap()), text(request.read(PASSWORD).unwrap()));
        self.asked.push(format!("bind {user}"));
        let status = match self.conduct {
            DirectoryConduct::RefuseUser(status) => status,
            _ if (user, password) == self.user => return done(BIND_DONE, 0, ""),
            _ => "52e",
        };
        let said =
            format!("80090308: LdapErr: DSID-0C0903A9, comment: AcceptSecurityContext error, data {status}, v1db1");
        done(BIND_DONE, 49, &said)
    }

    fn search(&mut self, mut request: DerReader<'_>) -> Vec<Vec<u8>> {
        if let DirectoryConduct::Refuse(code) = self.conduct {
            return vec![done(SEARCH_DONE, code, "not now")];
        }
        let base = text(request.read(4).unwrap());
        let rest = text(request.0);
        let entry = if base.is_empty() {
            self.asked.push("root".to_owned());
            Some(self.root())
        } else if base.starts_with("CN=Partitions") {
            self.asked.push("domains".to_owned());
            Some(self.reference())
        } else if base == self.name {
            self.asked.push("account".to_owned());
            let asked_for = |sam: &&String| rest.to_lowercase().contains(&format!("{}$", sam.to_lowercase()));
            let sam = self.accounts.keys().find(asked_for).cloned();
            sam.map(|sam| self.found_account(&sam))
        } else {
            let sam = base.split(',').next().unwrap().trim_start_matches("CN=").to_owned();
            let is_number = rest.contains("msDS-KeyVersionNumber");
            self.asked.push(format!("{} {sam}", if is_number { "number" } else { "password" }));
            Some(if is_number { self.number(&base, &sam) } else { self.secret(&base, &sam) })
        };
        entry.into_iter().chain([done(SEARCH_DONE, 0, "")]).collect()
    }

    fn root(&self) -> Vec<u8> {
        let name = self.name.as_bytes().to_vec();
        let configuration = format!("CN=Configuration,{}", self.name).into_bytes();
        found("", &[("defaultNamingContext", vec![name]), ("configurationNamingContext", vec![configuration])])
    }

    fn reference(&self) -> Vec<u8> {
        let name = &self.name;
        let context = format!("<GUID=8259123b-591e-479d-9189-2a80af4d8de2>;<SID=S-1-5-21-1-2-3>;{name}").into_bytes();
        let netbios = self.domain.split('.').next().unwrap().to_uppercase();
        found(
            &format!("CN={netbios},CN=Partitions,CN=Configuration,{name}"),
            &[
                ("nCName", vec![context]),
                ("dnsRoot", vec![self.domain.clone().into_bytes()]),
                ("nETBIOSName", vec![netbios.into_bytes()]),
                ("objectClass", vec![b"crossRef".to_vec()]),
            ],
        )
    }

    fn found_account(&self, sam: &str) -> Vec<u8> {
        let account = &self.accounts[sam];
        let classes = ["top", "user", "computer", account.class].map(|class| class.as_bytes().to_vec());
        found(
            &format!("CN={sam},CN=Managed Service Accounts,{}", self.name),
            &[
                ("sAMAccountName", vec![format!("{}$", account.sam.unwrap_or(sam)).into_bytes()]),
                ("objectClass", classes.to_vec()),
                ("objectSid", vec![sid(account.domain_sid, 1103)]),
                ("userAccountControl", vec![b"4096".to_vec()]),
            ],
        )
    }

    fn number(&self, name: &str, sam: &str) -> Vec<u8> {
        found(name, &[("msDS-KeyVersionNumber", vec![self.accounts[sam].kvno.to_string().into_bytes()])])
    }

    fn secret(&mut self, name: &str, sam: &str) -> Vec<u8> {
        let account = self.accounts.get_mut(sam).unwrap();
        // What is shown is right already, but for the number.
        let before = account.clone();
        if let Some(changed) = account.changed.take() {
            *account = *changed;
        }
        let DirectoryAccount { current, previous, query, .. } = &before;
        match current {
            Some(current) => found(name, &[("msDS-ManagedPassword", vec![blob(current, previous.as_ref(), *query)])]),
            None => found(name, &[]),
        }
    }
}
