//! A forged DNS names a workstation as the controller of the domain. The authority of the domain made its certificate, for its own name alone.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket},
    process::{Child, Command, Stdio},
    thread,
};

use simple_dns::{
    CLASS, Name, Packet, QTYPE, ResourceRecord, TYPE,
    rdata::{A, RData, SRV},
};

use crate::domain::{ADMIN, Ended, at_terminal, directory, gmsa_in, tls};

const HOST: &str = "ws42.contoso.com";

/// A DNS server that names the workstation, at an address of its own.
fn forged_dns(address: Ipv4Addr) -> SocketAddr {
    let socket = UdpSocket::bind((address, 0)).unwrap();
    let at = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut query = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut query) {
            let asked = Packet::parse(&query[..length]).unwrap();
            let mut answer = Packet::new_reply(asked.id());
            let data = match asked.questions[0].qtype {
                QTYPE::TYPE(TYPE::SRV) => {
                    Some(RData::SRV(SRV { priority: 0, weight: 0, port: 389, target: Name::new_unchecked(HOST) }))
                }
                QTYPE::TYPE(TYPE::A) => Some(RData::A(A { address: address.into() })),
                _ => None,
            };
            let record = |data| ResourceRecord::new(Name::new_unchecked("x"), CLASS::IN, 1, data);
            answer.answers.extend(data.map(record));
            socket.send_to(&answer.build_bytes_vec().unwrap(), from).unwrap();
        }
    });
    at
}

/// The workstation, which takes this many connections with TLS and prints what they send.
fn workstation(address: Ipv4Addr, connections: usize) -> Child {
    let mut command = Command::new("openssl");
    command.args(["s_server", "-quiet", "-accept", &format!("{address}:636"), "-cert", "ws42-cert.pem"]);
    // One more, for the one that shows that it listens.
    command.args(["-key", "ws42-key.pem", "-naccept", &(connections + 1).to_string()]).current_dir(tls());
    let server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    while TcpStream::connect((address, 636)).is_err() {
        thread::yield_now();
    }
    server
}

/// Everything that the workstation was sent.
fn sent(mut server: Child) -> Vec<u8> {
    let mut bytes = Vec::new();
    server.stdout.take().unwrap().read_to_end(&mut bytes).unwrap();
    server.wait().unwrap();
    bytes
}

fn lint(dns: SocketAddr) -> String {
    format!("account lint Forged {}", directory(&dns.to_string(), ADMIN.0))
}

const UNPROVEN: &str = "error: the DNS names ldaps://ws42.contoso.com as a domain controller of contoso.com, and its certificate does not have the \
                        name contoso.com, which proves it: nothing was sent; use --directory ldaps://ws42.contoso.com if it is one, or give it \
                        a certificate with that name (template Kerberos Authentication)\n";

#[test]
fn without_a_person_a_workstation_gets_no_password() {
    let address = Ipv4Addr::new(127, 0, 0, 2);
    let (dns, folder) = (forged_dns(address), tempfile::tempdir().unwrap());
    for (more, password, stdin) in [("", Some(ADMIN.1), ""), (" --directory-password-file -", None, ADMIN.1)] {
        let server = workstation(address, 1);
        let ended = gmsa_in(folder.path(), &(lint(dns) + more), password, stdin);
        assert_eq!(ended, Ended { stdout: String::new(), stderr: UNPROVEN.to_owned(), code: Some(2) });
        assert_eq!(sent(server), b"");
    }
}

/// Runs the command at a terminal, and answers the question; what is shown.
fn answered(dns: SocketAddr, answer: &str, then: impl FnOnce()) -> String {
    let (shown, code) = at_terminal(&lint(dns), Some(ADMIN.1), "never", "[y/N] ", |script| {
        writeln!(script.stdin.take().unwrap(), "{answer}").unwrap();
        then();
    });
    assert_eq!(code, Some(2));
    shown
}

#[test]
fn a_person_is_asked_and_told_which_host_it_is() {
    let address = Ipv4Addr::new(127, 0, 0, 3);
    let dns = forged_dns(address);
    let question = "The DNS names ldaps://ws42.contoso.com as a domain controller of contoso.com. Its certificate does not have the name \
                    contoso.com, and any host of the domain can have such a one. Send the password of administrator@contoso.com to \
                    ldaps://ws42.contoso.com? [y/N] ";
    let server = workstation(address, 1);
    assert_eq!(answered(dns, "n", || {}), format!("{question}{UNPROVEN}"));
    assert_eq!(sent(server), b"");

    let mut server = workstation(address, 2);
    let mut output = server.stdout.take().unwrap();
    let ended = answered(dns, "y", || {
        let (mut bytes, mut byte) = (Vec::new(), [0]);
        while !bytes.ends_with(ADMIN.1.as_bytes()) {
            output.read_exact(&mut byte).unwrap();
            bytes.extend(byte);
        }
        server.kill().unwrap();
    });
    server.wait().unwrap();
    assert!(ended.starts_with(&format!("{question}error: ")), "{ended}");
}
