//! A simulated KDC on loopback: it verifies pre-authentication, gives TGTs and service tickets, and refuses or lies on request.
//!
//! It is of the domain that [`Kdc::start`] names. Its keys come from the same crate that is tested: vectors, picky-krb and Samba prove those.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ::time::{Duration, UtcDateTime};
use gmsa_kerberos::{
    EncryptionType, EtypeInfo2Entry, Key, Password, Realm,
    der::{DerReader, STRING, application, field, flags, integer, octets, sequence, string, time, value},
    usage,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

const AS_REQ: u8 = 10;
const AS_REP: u8 = 11;
const TGS_REQ: u8 = 12;
const TGS_REP: u8 = 13;
const PVNO: i64 = 5;
/// Where a KDC refers to that lies.
const REFERRAL: &str = "krbtgt/OTHER.COM";

/// What a KDC does with each request.
#[derive(Clone, Debug, Default)]
pub enum Conduct {
    #[default]
    Honest,
    /// Refuses with this code, and a status of Windows.
    Refuse(i64, Option<u32>),
    /// Refuses tickets for services with this code.
    RefuseServices(i64),
    /// Refuses with this code once the password is proven.
    RefuseProven(i64, Option<u32>),
    /// Reads, and never answers.
    Silent,
    /// Answers properly, but so much later.
    Slow(std::time::Duration),
    /// Never answers a logon with the password of this account.
    SilentTo(&'static str),
    /// Ends the connection.
    Close,
    /// Sends these bytes, the length in front of them included, and keeps the connection.
    Raw(Vec<u8>),
    /// Sends these bytes as an answer.
    Answer(Vec<u8>),
    /// Asks for so many iterations.
    Iterations(u32),
    /// Offers only RC4.
    Rc4,
    /// Answers with another nonce, another realm, client or service outside or inside, a key of another type, or encrypts with another key.
    Lie(Lie),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    Nonce,
    Realm,
    Client,
    Service,
    TicketRealm,
    InnerRealm,
    InnerService,
    SessionType,
    EncryptionType,
    OtherKey,
    OtherUsage,
    /// A ticket for the service, which is a referral by what is encrypted, and the other way round.
    InnerReferral,
    OuterReferral,
}

/// A KDC that ends with the test.
pub struct Kdc {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: tokio::task::JoinHandle<()>,
}

struct State {
    realm: Realm,
    conduct: Conduct,
    clock: Duration,
    accounts: BTreeMap<String, Salted>,
    services: Vec<String>,
    /// Other realms that a service is in, and the keys of the trusts with realms.
    referrals: BTreeMap<String, String>,
    trusts: BTreeMap<String, Key>,
    sealed: BTreeMap<String, Seal>,
    own: Key,
    most: Duration,
    /// What was asked for, by whom.
    asked: Vec<String>,
    preauthentication: bool,
}

/// How tickets for a service are encrypted.
struct Seal {
    key: Key,
    etype: i64,
    kvno: Option<i64>,
}

struct Salted {
    key: Key,
    salt: EtypeInfo2Entry,
}

impl Drop for Kdc {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Kdc {
    /// A KDC of a domain, without accounts.
    pub async fn start(domain: &str) -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into(), domain).await
    }

    /// The same, at this address.
    pub async fn start_at(address: SocketAddr, domain: &str) -> Self {
        let own = Key::random(EncryptionType::Aes256).unwrap();
        Self::serve(address, State::new(Realm::from_domain(domain).unwrap(), own)).await
    }

    /// Another honest KDC of the same domain, at this address: it has these accounts and services, and takes the same tickets.
    pub async fn another(&self, address: SocketAddr) -> Self {
        let state = {
            let this = self.state();
            let accounts = this.accounts.iter().map(|(name, Salted { key, salt })| {
                (name.clone(), Salted { key: copied(key), salt: EtypeInfo2Entry { salt: salt.salt.clone(), ..*salt } })
            });
            State {
                accounts: accounts.collect(),
                services: this.services.clone(),
                ..State::new(this.realm.clone(), copied(&this.own))
            }
        };
        Self::serve(address, state).await
    }

    async fn serve(address: SocketAddr, state: State) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let (address, state) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(state)));
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { address, state, task }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives an account this password, with the salt that Active Directory makes for computers.
    pub fn account(&self, name: &str, password: &Password, etype: EncryptionType) {
        let mut state = self.state();
        let realm = state.realm.as_str();
        let host = name.trim_end_matches('$').to_lowercase();
        let salt = format!("{realm}host{host}.{}", realm.to_lowercase()).into_bytes();
        let salt = EtypeInfo2Entry { etype, salt, iterations: 4096 };
        let key = password.key(&salt).unwrap();
        state.accounts.insert(name.to_owned(), Salted { key, salt });
    }

    pub fn service(&self, name: &str) {
        self.state().services.push(name.to_owned());
    }

    /// Makes a trust with another realm, in both directions.
    pub fn trust(&self, other: &Self) {
        let key = Key::random(EncryptionType::Aes256).unwrap();
        let (own, others) = (self.state().realm.to_string(), other.state().realm.to_string());
        other.state().trusts.insert(own, copied(&key));
        self.state().trusts.insert(others, key);
    }

    /// Refers a service to another realm.
    pub fn refer(&self, service: &str, realm: &str) {
        let mut state = self.state();
        state.referrals.insert(service.to_owned(), realm.to_owned());
        state.trusts.entry(realm.to_owned()).or_insert_with(|| Key::random(EncryptionType::Aes256).unwrap());
    }

    /// Encrypts tickets for a service with a key that has this number, said to be of this type. Other services have the KDC's own key.
    pub fn seal(&self, service: &str, key: Key, etype: i64, kvno: Option<i64>) {
        self.state().sealed.insert(service.to_owned(), Seal { key, etype, kvno });
    }

    pub fn conduct(&self, conduct: Conduct) {
        self.state().conduct = conduct;
    }

    /// Puts its clock ahead.
    pub fn clock(&self, ahead: Duration) {
        self.state().clock = ahead;
    }

    /// The longest life of a ticket.
    pub fn most(&self, life: Duration) {
        self.state().most = life;
    }

    /// Gives TGTs without a padata of the password, as to an account with `DONT_REQ_PREAUTH`.
    pub fn without_preauthentication(&self) {
        self.state().preauthentication = false;
    }

    /// What was asked for since the last call: `AS WebApp1$`, `AS+ WebApp1$` with a padata, `TGS ldap/dc1.contoso.com`, with
    /// `canonicalize` `TGS+ ldap/dc1.contoso.com`.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.state().asked)
    }

    /// The answer to a request, without a network.
    pub fn answer(&self, request: &[u8]) -> Vec<u8> {
        self.state().answer(request).unwrap_or_default()
    }
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    while let Ok(length) = stream.read_u32().await {
        let mut request = vec![0; length as usize];
        if stream.read_exact(&mut request).await.is_err() {
            return;
        }
        let conduct = state.lock().unwrap_or_else(PoisonError::into_inner).conduct.clone();
        let bytes = match conduct {
            Conduct::Close => return,
            Conduct::Silent => std::future::pending().await,
            Conduct::Raw(bytes) => bytes,
            conduct => {
                if let Conduct::Slow(time) = conduct {
                    tokio::time::sleep(time).await;
                }
                let answer = match conduct {
                    Conduct::Answer(bytes) => Some(bytes),
                    _ => state.lock().unwrap_or_else(PoisonError::into_inner).answer(&request),
                };
                let Some(answer) = answer else { return std::future::pending().await };
                [&u32::try_from(answer.len()).unwrap().to_be_bytes(), answer.as_slice()].concat()
            }
        };
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

/// What a request says.
struct Asked<'r> {
    body: &'r [u8],
    padata: Option<(i64, &'r [u8])>,
    client: Option<String>,
    realm: String,
    service: String,
    until: UtcDateTime,
    nonce: i64,
    etypes: Vec<i64>,
    canonicalize: bool,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn name(encoded: DerReader<'_>) -> String {
    let mut parts = encoded.sequence().unwrap().field(1).unwrap().sequence().unwrap();
    let parts: Vec<String> = std::iter::from_fn(|| parts.read(STRING).map(text)).collect();
    parts.join("/")
}

fn encoded(name: &str) -> Vec<u8> {
    let parts: Vec<Vec<u8>> = name.split('/').map(string).collect();
    sequence(&[field(0, &integer(2)), field(1, &sequence(&parts))])
}

fn asked(mut request: DerReader<'_>) -> Asked<'_> {
    assert_eq!(request.field(1).unwrap().integer(), Some(PVNO));
    let padata = request.field(3).map(|proofs| {
        let mut padata = proofs.sequence().unwrap().sequences().next().unwrap().unwrap();
        (padata.field(1).unwrap().integer().unwrap(), padata.field(2).unwrap().octets().unwrap())
    });
    let body = request.field(4).unwrap();
    let mut fields = body.sequence().unwrap();
    let options = fields.field(0).unwrap().flags().unwrap();
    assert_eq!(options & !0x0001_0000, 0, "no other option is asked for");
    let client = fields.field(1).map(name);
    let (realm, service) = (text(fields.field(2).unwrap().string().unwrap()), name(fields.field(3).unwrap()));
    let (until, nonce) = (fields.field(5).unwrap().time().unwrap(), fields.field(7).unwrap().integer().unwrap());
    let mut listed = fields.field(8).unwrap().sequence().unwrap();
    let etypes = std::iter::from_fn(|| DerReader(&value(2, listed.read(2)?)).integer()).collect();
    Asked { body: body.0, padata, client, realm, service, until, nonce, etypes, canonicalize: options != 0 }
}

/// `EncryptedData`, decrypted.
fn opened(data: DerReader<'_>, key: &Key, usage: u32) -> Option<Vec<u8>> {
    let mut data = data.sequence().unwrap();
    assert_eq!(data.field(0).unwrap().integer(), Some(key.etype().number().into()));
    key.decrypt(usage, data.field(2).unwrap().octets().unwrap()).ok().map(|text| text.to_vec())
}

fn closed(key: &Key, usage: u32, text: &[u8]) -> Vec<u8> {
    closed_as(key.etype().number().into(), Some(1), key, usage, text)
}

fn closed_as(etype: i64, kvno: Option<i64>, key: &Key, usage: u32, text: &[u8]) -> Vec<u8> {
    let bytes = key.encrypt(usage, text).unwrap();
    let kvno = kvno.map(|kvno| field(1, &integer(kvno))).unwrap_or_default();
    sequence(&[field(0, &integer(etype)), kvno, field(2, &octets(&bytes))])
}

fn copied(key: &Key) -> Key {
    Key::new(key.etype(), key.as_bytes()).unwrap()
}

/// `EncryptionKey`
fn key(of: &Key) -> Vec<u8> {
    sequence(&[field(0, &integer(of.etype().number().into())), field(1, &octets(of.as_bytes()))])
}

impl State {
    fn new(realm: Realm, own: Key) -> Self {
        Self {
            realm,
            conduct: Conduct::Honest,
            clock: Duration::ZERO,
            accounts: BTreeMap::new(),
            services: Vec::new(),
            referrals: BTreeMap::new(),
            trusts: BTreeMap::new(),
            sealed: BTreeMap::new(),
            own,
            most: Duration::hours(10),
            asked: Vec::new(),
            preauthentication: true,
        }
    }

    fn now(&self) -> UtcDateTime {
        UtcDateTime::now() + self.clock
    }

    /// `None` where it stays silent.
    fn answer(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let reader = DerReader(request);
        if let Some(request) = reader.application(AS_REQ) {
            let asked = asked(request);
            let is_silent = matches!(self.conduct, Conduct::SilentTo(name) if asked.client.as_deref() == Some(name));
            let answer = self.initial(&asked);
            (!is_silent || asked.padata.is_none()).then_some(answer)
        } else if let Some(request) = reader.application(TGS_REQ) {
            Some(self.for_service(&asked(request)))
        } else {
            Some(self.error(60, Vec::new()))
        }
    }

    fn lies(&self, of: Lie) -> bool {
        matches!(self.conduct, Conduct::Lie(lie) if lie == of)
    }

    /// Whether a time is too far from that of this KDC.
    fn is_far(&self, at: UtcDateTime) -> bool {
        (self.now() - at).abs() > Duration::minutes(5)
    }

    fn initial(&mut self, asked: &Asked<'_>) -> Vec<u8> {
        let client = asked.client.clone().unwrap();
        let with = if asked.padata.is_some() { "AS+" } else { "AS" };
        self.asked.push(format!("{with} {client}"));
        assert_eq!((&asked.service, asked.canonicalize), (&format!("krbtgt/{}", asked.realm), false));
        if let Conduct::Refuse(code, status) = self.conduct {
            return self.error(code, extended(status));
        }
        if asked.realm != self.realm.as_str() {
            return self.error(68, Vec::new());
        }
        let Some(Salted { key, salt }) = self.accounts.get(&client) else { return self.error(6, Vec::new()) };
        let (key, methods) = (copied(key), self.methods(salt));
        if !asked.etypes.contains(&key.etype().number().into()) {
            return self.error(14, Vec::new());
        }
        match asked.padata {
            None if self.preauthentication => return self.error(25, methods),
            None => {}
            Some((2, padata)) => {
                let Some(text) = opened(DerReader(padata), &key, usage::AS_REQ_PA_ENC_TS) else {
                    return self.error(24, methods);
                };
                let sent = DerReader(&text).sequence().unwrap().field(0).unwrap().time().unwrap();
                if self.is_far(sent) {
                    return self.error(37, Vec::new());
                }
            }
            Some((other, _)) => panic!("{other} is no PA-ENC-TIMESTAMP"),
        }
        if let Conduct::RefuseProven(code, status) = self.conduct {
            return self.error(code, extended(status));
        }
        let padata = field(2, &methods);
        let realm = self.realm.as_str();
        self.reply(AS_REP, asked, (realm, &client), (&asked.service, &self.own), (&key, usage::AS_REP_ENCPART), padata)
    }

    fn for_service(&mut self, asked: &Asked<'_>) -> Vec<u8> {
        let with = if asked.canonicalize { "TGS+" } else { "TGS" };
        self.asked.push(format!("{with} {}", asked.service));
        assert_eq!(asked.realm, self.realm.as_str());
        if let Conduct::Refuse(code, status) = self.conduct {
            return self.error(code, extended(status));
        }
        if let Conduct::RefuseServices(code) = self.conduct {
            return self.error(code, Vec::new());
        }
        let (etype, padata) = asked.padata.unwrap();
        assert_eq!(etype, 1, "PA-TGS-REQ");
        let mut padata = DerReader(padata).application(14).unwrap();
        assert_eq!((padata.field(1).unwrap().integer(), padata.field(2).unwrap().flags()), (Some(14), Some(0)));
        let mut ticket = padata.field(3).unwrap().application(1).unwrap();
        let issuer = text(ticket.field(1).unwrap().string().unwrap());
        let key = if issuer == self.realm.as_str() { Some(&self.own) } else { self.trusts.get(&issuer) };
        let Some(key) = key else { return self.error(35, Vec::new()) };
        let Some(inside) = opened(ticket.field(3).unwrap(), key, usage::KDC_REP_TICKET) else {
            return self.error(31, Vec::new());
        };
        let mut inside = DerReader(&inside).application(3).unwrap();
        let mut session = inside.field(1).unwrap().sequence().unwrap();
        let etype = EncryptionType::from_number(session.field(0).unwrap().integer().unwrap()).unwrap();
        let session = Key::new(etype, session.field(1).unwrap().octets().unwrap()).unwrap();
        let realm = text(inside.field(2).unwrap().string().unwrap());
        let client = name(inside.field(3).unwrap());
        let ends = inside.field(7).unwrap().time().unwrap();
        let authenticator = opened(padata.field(4).unwrap(), &session, usage::TGS_REQ_AUTH).unwrap();
        let mut authenticator = DerReader(&authenticator).application(2).unwrap();
        assert_eq!(text(authenticator.field(1).unwrap().string().unwrap()), realm);
        assert_eq!(name(authenticator.field(2).unwrap()), client);
        let mut checksum = authenticator.field(3).unwrap().sequence().unwrap();
        assert_eq!(checksum.field(0).unwrap().integer(), Some(session.etype().checksum().into()));
        let expected = session.checksum(usage::TGS_REQ_AUTH_CKSUM, asked.body).unwrap();
        assert_eq!(checksum.field(1).unwrap().octets(), Some(expected.as_slice()));
        if self.is_far(authenticator.field(5).unwrap().time().unwrap()) {
            return self.error(37, Vec::new());
        }
        if self.now() >= ends {
            return self.error(32, Vec::new());
        }
        let direct = asked.service.strip_prefix("krbtgt/");
        let other = self.referrals.get(&asked.service).map(String::as_str).or(direct);
        let granted = match other.map(|realm| (format!("krbtgt/{realm}"), self.trusts.get(realm))) {
            _ if self.services.contains(&asked.service) => (asked.service.clone(), &self.own),
            Some((krbtgt, Some(key))) => (krbtgt, key),
            _ => return self.error(7, Vec::new()),
        };
        let with = (&session, usage::TGS_REP_ENCPART_SESSKEY);
        self.reply(TGS_REP, asked, (&realm, &client), (&granted.0, granted.1), with, Vec::new())
    }

    /// `METHOD-DATA` as Samba sends it: `ETYPE-INFO2`, and the empty offer of a timestamp.
    fn methods(&self, salt: &EtypeInfo2Entry) -> Vec<u8> {
        let iterations = if let Conduct::Iterations(of) = self.conduct { of } else { salt.iterations };
        let rc4 = sequence(&[field(0, &integer(23))]);
        let aes = sequence(&[
            field(0, &integer(salt.etype.number().into())),
            field(1, &value(STRING, &salt.salt)),
            field(2, &octets(&iterations.to_be_bytes())),
        ]);
        let offered = if matches!(self.conduct, Conduct::Rc4) { sequence(&[rc4]) } else { sequence(&[aes, rc4]) };
        let method = |etype: i64, content: &[u8]| sequence(&[field(1, &integer(etype)), field(2, &octets(content))]);
        sequence(&[method(16, b""), method(2, b""), method(136, b""), method(19, &offered)])
    }

    fn error(&self, code: i64, data: Vec<u8>) -> Vec<u8> {
        let now = self.now();
        // As Samba, which has not read the names of the request where it answers these.
        let names = match code {
            31 | 35 | 37 | 44 => field(9, &string("<unspecified realm>")),
            _ => [field(9, &string(self.realm.as_str())), field(10, &encoded("krbtgt"))].concat(),
        };
        let fields = [
            field(0, &integer(PVNO)),
            field(1, &integer(30)),
            field(2, &time(now)),
            field(3, &integer(1)),
            field(4, &time(now)),
            field(5, &integer(now.microsecond().into())),
            field(6, &integer(code)),
            names,
            if data.is_empty() { Vec::new() } else { field(12, &octets(&data)) },
        ];
        application(30, &sequence(&fields))
    }

    fn reply(
        &self,
        number: u8,
        asked: &Asked<'_>,
        (crealm, client): (&str, &str),
        (service, ticket_key): (&str, &Key),
        (reply_key, usage): (&Key, u32),
        padata: Vec<u8>,
    ) -> Vec<u8> {
        let etypes = asked.etypes.iter().filter_map(|etype| EncryptionType::from_number(*etype));
        let session = Key::random(etypes.clone().next().unwrap()).unwrap();
        let now = self.now();
        let ends = asked.until.min(now + self.most);
        let realm = self.realm.as_str();
        let says =
            |lie: Lie, honest: &str, other: &str| if self.lies(lie) { other.to_owned() } else { honest.to_owned() };
        let times = |end: u8| [field(5, &time(now)), field(end, &time(ends))];
        let [authenticated, ending] = times(7);
        let inside = sequence(&[
            field(0, &flags(0x0040_0000)),
            field(1, &key(&session)),
            field(2, &string(crealm)),
            field(3, &encoded(client)),
            field(4, &sequence(&[field(0, &integer(0)), field(1, &octets(b""))])),
            authenticated,
            ending,
        ]);
        let outside = if self.lies(Lie::OuterReferral) { REFERRAL } else { service };
        let within = if self.lies(Lie::InnerReferral) { REFERRAL } else { service };
        let inside = application(3, &inside);
        let enc_part = match self.sealed.get(service) {
            Some(Seal { key, etype, kvno }) => closed_as(*etype, *kvno, key, usage::KDC_REP_TICKET, &inside),
            None => closed(ticket_key, usage::KDC_REP_TICKET, &inside),
        };
        let ticket = application(
            1,
            &sequence(&[
                field(0, &integer(PVNO)),
                field(1, &string(&says(Lie::TicketRealm, realm, "OTHER.COM"))),
                field(2, &encoded(&says(Lie::Service, outside, "ldap/other"))),
                field(3, &enc_part),
            ]),
        );
        let announced = if self.lies(Lie::SessionType) {
            sequence(&[field(0, &integer(23)), field(1, &octets(&[0; 16]))])
        } else {
            key(&session)
        };
        let nonce = asked.nonce ^ i64::from(self.lies(Lie::Nonce));
        let part = sequence(&[
            field(0, &announced),
            field(1, &sequence(&[sequence(&[field(0, &integer(0)), field(1, &time(now))])])),
            field(2, &integer(nonce)),
            field(4, &flags(0x0040_0000)),
            field(5, &time(now)),
            field(7, &time(ends)),
            field(9, &string(&says(Lie::InnerRealm, realm, "OTHER.COM"))),
            field(10, &encoded(&says(Lie::InnerService, within, "ldap/other"))),
        ]);
        let other = Key::random(reply_key.etype()).unwrap();
        let another_etype =
            Key::random(EncryptionType::ALL.into_iter().find(|etype| *etype != reply_key.etype()).unwrap()).unwrap();
        let with = match self.conduct {
            Conduct::Lie(Lie::OtherKey) => &other,
            Conduct::Lie(Lie::EncryptionType) => &another_etype,
            _ => reply_key,
        };
        let usage = if self.lies(Lie::OtherUsage) { usage + 1 } else { usage };
        let part = closed(with, usage, &application(if number == AS_REP { 25 } else { 26 }, &part));
        application(
            number,
            &sequence(&[
                field(0, &integer(PVNO)),
                field(1, &integer(number.into())),
                padata,
                field(3, &string(&says(Lie::Realm, crealm, "OTHER.COM"))),
                field(4, &encoded(&says(Lie::Client, client, "Other$"))),
                field(5, &ticket),
                field(6, &part),
            ]),
        )
    }
}

/// `KERB-ERROR-DATA` as Windows and Samba send it.
fn extended(status: Option<u32>) -> Vec<u8> {
    let Some(status) = status else { return Vec::new() };
    let error = [status.to_le_bytes(), [0; 4], [1, 0, 0, 0]].concat();
    sequence(&[field(1, &integer(3)), field(2, &octets(&error))])
}

/// An `AS-REP` for an account, with any text encrypted inside it.
pub(crate) fn reply_with(realm: &str, client: &str, reply_key: &Key, text: &[u8]) -> Vec<u8> {
    let data = closed(reply_key, usage::AS_REP_ENCPART, text);
    let ticket = sequence(&[
        field(0, &integer(PVNO)),
        field(1, &string(realm)),
        field(2, &encoded(&format!("krbtgt/{realm}"))),
        field(3, &data),
    ]);
    let fields = [
        field(0, &integer(PVNO)),
        field(1, &integer(AS_REP.into())),
        field(3, &string(realm)),
        field(4, &encoded(client)),
        field(5, &application(1, &ticket)),
        field(6, &data),
    ];
    application(AS_REP, &sequence(&fields))
}
