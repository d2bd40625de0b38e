//! The built program, as a kubelet starts it, and a client of it.

use std::{
    collections::HashMap,
    fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process::{Child, ChildStderr, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use gmsa_edge::tls::issue::Ca;
use gmsa_test_support::https::{self, Client, exchange};
use serde_json::{Value, json};

use crate::world::World;

pub const NAME: &str = "gmsa-tickets.gmsa-tickets.svc";

pub fn program(world: &World) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gmsa-tickets"));
    let path = |name: &str| world.path(name).display().to_string();
    fs::write(path("kubeconfig"), world.api.kubeconfig()).unwrap();
    command.env_clear().env("KUBECONFIG", path("kubeconfig")).args(["serve", "--log-format", "json"]);
    command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--shutdown-delay", "0s"]);
    command.args(["--config", &path("tickets.yaml"), "--tls-cert", &path("tls.crt"), "--tls-key", &path("tls.key")]);
    command
}

/// The next line of a log.
pub fn next(log: &mut BufReader<ChildStderr>) -> Value {
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"))
}

/// What the admin port answers.
pub fn probe(address: &SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: l\r\nconnection: close\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A process that ends with this.
pub struct Ended(pub Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

/// The program, and a client of it.
pub struct Started {
    pub child: Ended,
    pub log: BufReader<ChildStderr>,
    client: Client,
    tokens: Arc<Mutex<HashMap<String, String>>>,
    pub broker: SocketAddr,
    pub admin: SocketAddr,
}

impl Started {
    pub fn new(world: &World) -> Self {
        let (now, hour) = (SystemTime::now(), Duration::from_secs(3600));
        let ca = Ca::generate("test", now, hour).unwrap();
        let issued = ca.issue("broker", &[NAME.to_owned()], now, hour).unwrap().0;
        fs::write(world.path("broker-ca.crt"), ca.cert_pem()).unwrap();
        fs::write(world.path("tls.crt"), &issued.cert).unwrap();
        fs::write(world.path("tls.key"), &issued.key).unwrap();
        let mut child = Ended(program(world).stderr(Stdio::piped()).spawn().unwrap());
        let mut log = BufReader::new(child.0.stderr.take().unwrap());
        let serving = next(&mut log);
        assert_eq!((&serving["message"], &serving["domains"]), (&json!("serving"), &json!("contoso.com")));
        let address = |key: &str| -> SocketAddr { serving[key].as_str().unwrap().parse().unwrap() };
        let client = Client { name: NAME.try_into().unwrap(), ..Client::trusting(ca.cert_pem()) };
        let tokens = Arc::clone(&world.tokens);
        Self { child, log, client, tokens, broker: address("address"), admin: address("admin") }
    }

    /// What the holder of a token gets.
    pub async fn ask(&self, token: &str) -> https::Answer {
        self.ask_for(token, "webapp1").await
    }

    pub async fn ask_for(&self, token: &str, name: &str) -> https::Answer {
        self.asked(token, name).await.unwrap()
    }

    /// The same; an error where the connection ends without an answer.
    pub async fn asked(&self, token: &str, name: &str) -> io::Result<https::Answer> {
        let body = format!(r#"{{"credentialSpec": "{name}"}}"#);
        let token = self.tokens.lock().unwrap().get(token).cloned().unwrap_or(token.to_owned());
        let head = "POST /v1/tickets HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\n";
        let request = format!("{head}authorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        exchange(&mut self.client.connect(self.broker).await?, request.as_bytes()).await
    }
}
