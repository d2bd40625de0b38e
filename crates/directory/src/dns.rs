//! Questions to a DNS server: the system's functions know no SRV records.
//!
//! Invariants: an answer is bounded, and waited for only so long; a controller that it names is one of the domain that was asked about.

use std::{
    cmp::Reverse,
    hash::{BuildHasher as _, RandomState},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use futures::future::join_all;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, TYPE, header_buffer, rdata::RData};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpStream, UdpSocket},
    time::timeout,
};

use crate::Error;

const PORT: u16 = 53;
const OTHER_SERVER: &str = "; --directory-dns IP names another DNS server";
/// For one question to one server.
const LIMIT: Duration = Duration::from_secs(8);
/// For its answer over UDP, which can be lost.
const DATAGRAM_LIMIT: Duration = Duration::from_secs(3);
/// The most controllers that are tried.
const MAX_HOSTS: usize = 8;

#[derive(Clone, Debug)]
pub struct NameServers {
    servers: Vec<SocketAddr>,
}

impl NameServers {
    /// One server, with its port or without.
    ///
    /// # Errors
    /// If it is not an IP address.
    pub fn at(text: &str) -> Result<Self, String> {
        let server = text.parse().or_else(|_| text.parse().map(|address| SocketAddr::new(address, PORT)));
        let server = server.map_err(|_| "expected IP[:PORT] of a DNS server".to_owned())?;
        Ok(Self { servers: vec![server] })
    }

    /// The servers that this system asks.
    ///
    /// # Errors
    /// Where its configuration cannot be read.
    pub fn of_system() -> io::Result<Self> {
        system_servers().map(|servers| Self { servers })
    }

    /// The controllers of a domain ([MS-ADTS] 6.3.2.3), by their priority and weight.
    pub(crate) async fn controllers(&self, domain: &str) -> Result<Vec<String>, Error> {
        Ok(self.hosts("_ldap", domain).await?.into_iter().map(|(host, _)| host).collect())
    }

    /// The KDCs of a domain ([MS-ADTS] 6.3.2.3), by their priority and weight: at most two addresses of each. A host without an address is left out.
    ///
    /// # Errors
    /// Where the DNS names none, or a host outside the domain.
    pub async fn kdcs(&self, domain: &str) -> Result<Vec<SocketAddr>, Error> {
        let hosts = self.hosts("_kerberos", domain).await?;
        let found = join_all(hosts.iter().map(|(host, _)| self.addresses(host))).await;
        let kdcs = hosts.iter().zip(found).flat_map(|((_, port), found)| {
            let addresses = found.unwrap_or_default().into_iter().take(2);
            addresses.map(|address| SocketAddr::new(address, *port)).collect::<Vec<_>>()
        });
        Ok(kdcs.collect())
    }

    async fn hosts(&self, service: &str, domain: &str) -> Result<Vec<(String, u16)>, Error> {
        let answer = self.ask(&record_of(service, domain), TYPE::SRV).await;
        hosts(&answer.map_err(|why| Error::NotLocated { domain: domain.to_owned(), why })?, domain, service)
    }

    /// The addresses of a host.
    pub(crate) async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        let address = |data: &RData<'_>| match data {
            RData::A(a) => Some(IpAddr::from(a.address.to_be_bytes())),
            RData::AAAA(aaaa) => Some(IpAddr::from(aaaa.address.to_be_bytes())),
            _ => None,
        };
        let (mut addresses, mut failed) = (Vec::new(), None);
        // Some servers answer only one of the two questions: its addresses are enough.
        let (ipv4, ipv6) = tokio::join!(self.ask(host, TYPE::A), self.ask(host, TYPE::AAAA));
        for answer in [ipv4, ipv6] {
            match answer.and_then(|answer| read(&answer, address)) {
                Ok(found) => addresses.extend(found),
                Err(why) => failed = failed.or(Some(why)),
            }
        }
        if addresses.is_empty() {
            Err(failed.unwrap_or(format!("the DNS has no address of {host}")))
        } else {
            Ok(addresses)
        }
    }

    /// The answer of the first server that gives one. A server that answers with a failure, such as SERVFAIL or REFUSED, knows
    /// nothing of the name; that there is no such name is an answer.
    async fn ask(&self, name: &str, kind: TYPE) -> Result<Vec<u8>, String> {
        let mut failed = "the system names no DNS server: --directory-dns IP names one".to_owned();
        for server in &self.servers {
            let answer = timeout(LIMIT, exchange(*server, name, kind)).await;
            match answer {
                Ok(Ok(answer)) => match read(&answer, |_| None::<()>) {
                    Ok(_) => return Ok(answer),
                    Err(why) => failed = why,
                },
                Ok(Err(error)) => failed = format!("DNS server {server}: {error}{OTHER_SERVER}"),
                Err(_) => {
                    failed = format!("DNS server {server} did not answer within {} s{OTHER_SERVER}", LIMIT.as_secs());
                }
            }
        }
        Err(failed)
    }
}

fn record_of(service: &str, domain: &str) -> String {
    format!("{service}._tcp.dc._msdcs.{domain}")
}

/// The hosts of a service of a domain in an answer of a DNS server, and their ports.
///
/// # Errors
/// If it is not DNS, empty, or names a host outside the domain.
pub fn hosts(answer: &[u8], domain: &str, service: &str) -> Result<Vec<(String, u16)>, Error> {
    let not_located = |why| Error::NotLocated { domain: domain.to_owned(), why };
    let offer = |data: &RData<'_>| match data {
        RData::SRV(srv) => {
            let host = srv.target.to_string().trim_end_matches('.').to_ascii_lowercase();
            // The lowest priority first, and of one priority the largest weight.
            Some((srv.priority, Reverse(srv.weight), host, srv.port))
        }
        _ => None,
    };
    let mut offers = read(answer, offer).map_err(not_located)?;
    offers.sort();
    let hosts: Vec<_> = offers.into_iter().map(|(_, _, host, port)| (host, port)).take(MAX_HOSTS).collect();
    // A forged DNS answer must not choose which host gets the password: any host can have a certificate for its own name.
    if let Some(host) = hosts.iter().map(|(host, _)| host).find(|host| !is_in(host, domain)) {
        return Err(Error::OtherDomain { domain: domain.to_owned(), host: host.clone() });
    }
    if hosts.is_empty() {
        return Err(not_located(format!(
            "the DNS has no record {}; if {domain} is a domain controller, use --directory ldaps://{domain}; if it is a domain, \
             --directory-dns IP names a DNS server that knows it",
            record_of(service, domain)
        )));
    }
    Ok(hosts)
}

/// Whether a host is in a domain; names of the DNS have no case (RFC 4343).
fn is_in(host: &str, domain: &str) -> bool {
    let (host, domain) = (host.to_ascii_lowercase(), domain.trim_end_matches('.').to_ascii_lowercase());
    host.strip_suffix(&domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// The answer of a server: over UDP, and where it does not fit there, or does not come, over TCP (RFC 7766).
async fn exchange(server: SocketAddr, name: &str, kind: TYPE) -> io::Result<Vec<u8>> {
    let number = RandomState::new().hash_one(name).to_le_bytes();
    let [low, high, ..] = number;
    let mut query = Packet::new_query(u16::from_le_bytes([low, high]));
    query.set_flags(PacketFlag::RECURSION_DESIRED);
    let name = Name::new(name).map_err(io::Error::other)?;
    query.questions.push(Question::new(name, QTYPE::TYPE(kind), QCLASS::CLASS(CLASS::IN), false));
    let bytes = query.build_bytes_vec().map_err(io::Error::other)?;
    match timeout(DATAGRAM_LIMIT, by_datagram(server, &bytes, query.id())).await {
        Ok(Ok(Some(answer))) => Ok(answer),
        _ => by_stream(server, &bytes).await,
    }
}

/// `None` where the answer is cut.
async fn by_datagram(server: SocketAddr, query: &[u8], number: u16) -> io::Result<Option<Vec<u8>>> {
    let any: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(query).await?;
    let mut answer = vec![0; usize::from(u16::MAX)];
    loop {
        let length = socket.recv(&mut answer).await?;
        let bytes = answer.get(..length).unwrap_or_default();
        // A datagram with another ID does not answer this query.
        if header_buffer::id(bytes).is_ok_and(|found| found == number) {
            let is_cut = header_buffer::has_flags(bytes, PacketFlag::TRUNCATION).unwrap_or(true);
            return Ok((!is_cut).then(|| bytes.to_vec()));
        }
    }
}

async fn by_stream(server: SocketAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let length = u16::try_from(query.len()).map_err(io::Error::other)?;
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(&[length.to_be_bytes().as_slice(), query].concat()).await?;
    let mut answer = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

/// The wanted records of an answer; empty if the name does not exist.
fn read<T>(answer: &[u8], wanted: impl Fn(&RData<'_>) -> Option<T>) -> Result<Vec<T>, String> {
    let packet = Packet::parse(answer)
        .map_err(|_| "the DNS server sends an answer that is not DNS".to_owned() + OTHER_SERVER)?;
    match packet.rcode() {
        RCODE::NoError | RCODE::NameError => {
            Ok(packet.answers.iter().filter_map(|record| wanted(&record.rdata)).collect())
        }
        code => Err(format!("the DNS server answers {code:?}{OTHER_SERVER}")),
    }
}

#[cfg(unix)]
fn system_servers() -> io::Result<Vec<SocketAddr>> {
    Ok(name_servers(&String::from_utf8_lossy(&std::fs::read("/etc/resolv.conf")?)))
}

/// The servers of a resolv.conf. Other lines, and what is not an address, are skipped.
#[cfg(unix)]
fn name_servers(config: &str) -> Vec<SocketAddr> {
    let words = config.lines().map(str::split_whitespace);
    let named = words.filter_map(|mut words| words.next().filter(|word| *word == "nameserver").and(words.next()));
    named.filter_map(name_server).collect()
}

/// An address, which in IPv6 can have a scope: `fe80::1%eth0`, or `fe80::1%2`.
#[cfg(unix)]
fn name_server(text: &str) -> Option<SocketAddr> {
    use std::path::Path;

    let Some((address, scope)) = text.split_once('%') else { return Some(SocketAddr::new(text.parse().ok()?, PORT)) };
    let of_interface = || {
        let name = Path::new(scope).file_name()?;
        std::fs::read_to_string(Path::new("/sys/class/net").join(name).join("ifindex")).ok()?.trim().parse().ok()
    };
    let scope = scope.parse().ok().or_else(of_interface)?;
    Some(std::net::SocketAddrV6::new(address.parse().ok()?, PORT, 0, scope).into())
}

#[cfg(windows)]
fn system_servers() -> io::Result<Vec<SocketAddr>> {
    let adapters = ipconfig::get_adapters().map_err(io::Error::other)?;
    let up = adapters.iter().filter(|adapter| adapter.oper_status() == ipconfig::OperStatus::IfOperStatusUp);
    Ok(up.flat_map(|adapter| adapter.dns_servers()).map(|address| SocketAddr::new(*address, PORT)).collect())
}

#[cfg(test)]
mod tests {
    use simple_dns::{ResourceRecord, rdata::SRV};

    use super::*;

    /// An answer with these hosts, each with its priority and weight.
    fn answer(hosts: &[(u16, u16, &'static str)]) -> Vec<u8> {
        let mut packet = Packet::new_reply(1);
        for (priority, weight, host) in hosts {
            let srv = SRV { priority: *priority, weight: *weight, port: 389, target: Name::new_unchecked(host) };
            packet.answers.push(ResourceRecord::new(Name::new_unchecked("x"), CLASS::IN, 1, RData::SRV(srv)));
        }
        packet.build_bytes_vec().unwrap()
    }

    fn controllers(answer: &[u8], domain: &str) -> Result<Vec<String>, Error> {
        Ok(hosts(answer, domain, "_ldap")?.into_iter().map(|(host, _)| host).collect())
    }

    #[test]
    fn the_nearest_controller_comes_first() {
        let hosts = [(10, 5, "dc3.contoso.com"), (0, 5, "DC2.Contoso.com"), (0, 100, "dc1.contoso.com")];
        assert_eq!(
            controllers(&answer(&hosts), "contoso.com").unwrap(),
            ["dc1.contoso.com", "dc2.contoso.com", "dc3.contoso.com"]
        );
    }

    #[test]
    fn a_domain_is_compared_without_case() {
        for domain in ["Contoso.com", "CONTOSO.COM."] {
            assert_eq!(controllers(&answer(&[(0, 0, "dc1.contoso.com")]), domain).unwrap(), ["dc1.contoso.com"]);
        }
    }

    /// A server that answers each question for addresses: by its kind, with an address, or with this code.
    async fn server(addresses: &'static [(TYPE, RData<'static>)], otherwise: RCODE) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut query = vec![0; 512];
            while let Ok((length, client)) = socket.recv_from(&mut query).await {
                let asked = Packet::parse(&query[..length]).unwrap();
                let mut answer = Packet::new_reply(asked.id());
                let kind = asked.questions[0].qtype;
                match addresses.iter().find(|(of, _)| QTYPE::TYPE(*of) == kind) {
                    Some((_, data)) => {
                        let name = Name::new_unchecked("x");
                        answer.answers.push(ResourceRecord::new(name, CLASS::IN, 1, data.clone()));
                    }
                    None => *answer.rcode_mut() = otherwise,
                }
                socket.send_to(&answer.build_bytes_vec().unwrap(), client).await.unwrap();
            }
        });
        address
    }

    const IPV4: &[(TYPE, RData<'static>)] = &[(TYPE::A, RData::A(simple_dns::rdata::A { address: 0x0a00_0001 }))];

    #[tokio::test]
    async fn a_failed_question_for_one_kind_of_address_leaves_the_other() {
        let servers = vec![server(IPV4, RCODE::ServerFailure).await];
        let found = NameServers { servers }.addresses("dc1.contoso.com").await;
        assert_eq!(found, Ok(vec![IpAddr::from([10, 0, 0, 1])]));
    }

    /// A pause in which each of both questions would wait alone: they are asked at once.
    #[tokio::test(start_paused = true)]
    async fn both_kinds_of_address_are_asked_for_at_once() {
        let (silent, _unread) = loop {
            let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            // Another program may have the port for TCP.
            if let Ok(unread) = tokio::net::TcpListener::bind(silent.local_addr().unwrap()).await {
                break (silent, unread);
            }
        };
        let servers = vec![silent.local_addr().unwrap()];
        let asked = tokio::time::Instant::now();
        let found = NameServers { servers: servers.clone() }.addresses("dc1.contoso.com").await;
        let expected =
            format!("DNS server {} did not answer within 8 s; --directory-dns IP names another DNS server", servers[0]);
        assert_eq!(found, Err(expected));
        assert_eq!(asked.elapsed().as_secs(), 8);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_server_in_a_resolv_conf_is_skipped() {
        let config = "# nameserver 10.0.0.1\nsearch contoso.com\nnameserver 10.0.0.2\n\tnameserver\tfe80::1%2 # a\nnameserver\n\
                      nameserver fe80::1%no-such\nnameserver 10.0.0.3%1\nnameserver dc1\noptions edns0 new-option\n\
                      nameserver 2001:db8::1\nnameservers 10.0.0.4\n";
        let found: Vec<String> = name_servers(config).iter().map(ToString::to_string).collect();
        let of_loopback = name_server("fe80::1%lo").map(|server| server.to_string());
        assert_eq!(found, ["10.0.0.2:53", "[fe80::1%2]:53", "[2001:db8::1]:53"]);
        assert_eq!(of_loopback.as_deref(), cfg!(target_os = "linux").then_some("[fe80::1%1]:53"));
    }

    #[tokio::test]
    async fn a_server_that_fails_is_followed_by_the_next_one_and_one_that_knows_no_such_name_is_not() {
        for code in [RCODE::ServerFailure, RCODE::Refused, RCODE::NotImplemented] {
            let servers = vec![server(&[], code).await, server(IPV4, RCODE::NoError).await];
            let found = NameServers { servers }.addresses("dc1.contoso.com").await;
            assert_eq!(found, Ok(vec![IpAddr::from([10, 0, 0, 1])]), "{code:?}");
        }
        let servers = vec![server(&[], RCODE::NameError).await, server(IPV4, RCODE::NoError).await];
        let found = NameServers { servers }.addresses("dc1.contoso.com").await;
        assert_eq!(found, Err("the DNS has no address of dc1.contoso.com".to_owned()));
        let servers = vec![server(&[], RCODE::Refused).await];
        let found = NameServers { servers }.addresses("dc1.contoso.com").await;
        assert_eq!(
            found,
            Err("the DNS server answers Refused; --directory-dns IP names another DNS server".to_owned())
        );
    }

    #[test]
    fn a_host_of_another_domain_gets_no_password() {
        for host in ["dc1.evilcontoso.com", "dc1.contoso.com.evil.org", "contoso.org"] {
            let error = controllers(&answer(&[(0, 0, "dc1.contoso.com"), (1, 0, host)]), "contoso.com").unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "the DNS names {host} as a domain controller of contoso.com, which is of another domain: name it with \
                     --directory ldaps://{host} if that is right"
                )
            );
        }
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        let error = |bytes: &[u8]| controllers(bytes, "contoso.com").unwrap_err().to_string();
        assert_eq!(
            error(&[0; 3]),
            "cannot find the domain controllers of contoso.com: the DNS server sends an answer that is not DNS; \
             --directory-dns IP names another DNS server"
        );
        assert_eq!(
            error(&answer(&[])),
            "cannot find the domain controllers of contoso.com: the DNS has no record _ldap._tcp.dc._msdcs.contoso.com; if contoso.com is a \
             domain controller, use --directory ldaps://contoso.com; if it is a domain, --directory-dns IP names a DNS server that knows it"
        );
    }
}
