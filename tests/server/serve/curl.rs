//! Does what a logged `curl` command says, without curl: `cargo test` needs nothing but Rust and a C compiler.
//!
//! Invariants: an option that the server does not print is refused, so that the line stays one that can be pasted.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpStream, ToSocketAddrs},
    time::Duration,
};

use rustls::{ClientConnection, StreamOwned, pki_types::ServerName};

use crate::support::https::Client;

/// How long an answer may take: less than an export of traces takes to give up.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// What the command prints: the body of the answer.
pub fn run(line: &str) -> String {
    let words = words(line);
    let mut words = words.iter().map(String::as_str);
    assert_eq!(words.next(), Some("curl"), "{line}");
    let (mut ca, mut address, mut headers, mut body, mut url) = ("", "", String::new(), Vec::new(), "");
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| panic!("{word} has no value: {line}"));
        match word {
            "--cacert" => ca = value(),
            "--resolve" => address = value().splitn(3, ':').nth(2).unwrap(),
            "-H" => headers.extend([value(), "\r\n"]),
            "--data-binary" => {
                let data = value();
                body = data.strip_prefix('@').map_or_else(|| data.into(), |file| fs::read(file).unwrap());
            }
            _ if word.starts_with("https://") && url.is_empty() => url = word,
            _ => panic!("unexpected {word}: {line}"),
        }
    }
    let (authority, path) = url.strip_prefix("https://").unwrap().split_once('/').unwrap();
    let (host, port) = authority.rsplit_once(':').unwrap();
    let address = if address.is_empty() { host } else { address };
    post(ca, host, format!("{address}:{port}"), &format!("/{path}"), &headers, &body)
}

/// Posts to a server that has this name; gives back the body of the answer.
pub fn post(ca: &str, host: &str, address: impl ToSocketAddrs, path: &str, headers: &str, body: &[u8]) -> String {
    let mut stream = connect(ca, host, address);
    let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    String::from_utf8(message(&mut BufReader::new(stream)).1).unwrap()
}

/// A TLS connection to a server that has this name.
pub fn connect(ca: &str, host: &str, address: impl ToSocketAddrs) -> StreamOwned<ClientConnection, TcpStream> {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
    let client = Client::trusting(&fs::read_to_string(ca).unwrap());
    let connection = ClientConnection::new(client.config, ServerName::try_from(host.to_owned()).unwrap()).unwrap();
    StreamOwned::new(connection, stream)
}

/// The head and the body of the next request or answer.
pub fn message(stream: &mut impl BufRead) -> (String, Vec<u8>) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "it ends within its head: {head}");
    }
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).unwrap();
    (head, body)
}

/// The words of a shell's line, in which single quotes hold a word together.
pub fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.last_mut().unwrap().push_str(part);
            continue;
        }
        let mut plain = part.split(' ');
        words.last_mut().unwrap().push_str(plain.next().unwrap());
        words.extend(plain.map(str::to_owned));
    }
    words.retain(|word| !word.is_empty());
    words
}
