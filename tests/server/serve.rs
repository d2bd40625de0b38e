//! The server's binary, as a person or a kubelet runs it: flags, environment, log, signals, exit codes.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread::yield_now,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use socket2::SockRef;

use crate::{
    https::{authority, leaf},
    reviews::{created, slot},
    support::{SimulatedApi, https::NAME, run},
};

mod commands;
mod curl;
mod traces;

const BINARY: &str = env!("CARGO_BIN_EXE_gmsa-webhook");

const JSON: &str = "content-type: application/json\r\n";

/// The binary without a word of this machine's environment.
fn binary(args: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(args).env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("LOG_FORMAT", "json");
    command
}

/// A server that has said that it serves.
pub struct Serving {
    child: Child,
    /// Where it puts its CA.
    _folder: tempfile::TempDir,
    lines: Vec<Value>,
    log: std::io::Lines<BufReader<std::process::ChildStderr>>,
}

impl Serving {
    pub fn start(args: &[&str]) -> Self {
        Self::spawn(&mut binary(args))
    }

    /// On free ports, unless the environment says otherwise.
    fn spawn(command: &mut Command) -> Self {
        let folder = tempfile::tempdir().unwrap();
        command.env("TMPDIR", folder.path()).args(["--admin-listen", "127.0.0.1:0"]);
        if command.get_envs().all(|(name, _)| name != "HTTPS_PORT") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut serving = Self { child, _folder: folder, lines: Vec::new(), log };
        serving.until("serving");
        serving
    }

    /// Reads the log until a line with this message, and gives it back.
    fn until(&mut self, message: &str) -> Value {
        loop {
            let line = self.log.next().expect("the server ended").unwrap();
            let line: Value = serde_json::from_str(&line).unwrap();
            self.lines.push(line.clone());
            if line["message"].as_str().unwrap().starts_with(message) {
                return line;
            }
        }
    }

    /// The command that posts an example review, as it is logged.
    fn curl(&mut self) -> String {
        self.until("try it: ")["message"].as_str().unwrap().strip_prefix("try it: ").unwrap().to_owned()
    }

    /// A field of a line that was logged until it served.
    fn logged(&self, field: &str) -> &str {
        self.lines.iter().find_map(|line| line[field].as_str()).unwrap()
    }

    fn address(&self, field: &str) -> SocketAddr {
        self.logged(field).parse().unwrap()
    }

    /// Posts a review; gives back what is answered.
    pub fn post(&self, path: &str, review: &[u8]) -> String {
        curl::post(self.logged("ca"), "localhost", self.address("address"), path, JSON, review)
    }

    /// What the admin port answers: the status code and the body.
    fn admin(&self, path: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.address("admin")).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: l\r\nconnection: close\r\n\r\n").unwrap();
        let (head, body) = curl::message(&mut BufReader::new(stream));
        (head.split(' ').nth(1).unwrap().to_owned(), String::from_utf8(body).unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Ends it; gives back all that it logged.
    fn end(mut self) -> Vec<Value> {
        self.signal(Signal::TERM);
        self.last_words()
    }

    /// All that it logged until it has ended, which is no failure.
    fn last_words(&mut self) -> Vec<Value> {
        // A full pipe would keep it from ending.
        let rest = self.log.by_ref().map(|line| serde_json::from_str(&line.unwrap()).unwrap());
        self.lines.extend(rest);
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        std::mem::take(&mut self.lines)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Already gone in the usual case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs it with a kubeconfig for a simulated API server or without any.
async fn server_program(api: Option<&SimulatedApi>, arguments: &[&str]) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let mut command = binary(arguments);
    command.env("HOME", folder.path()).env("KUBECONFIG", &kubeconfig);
    if let Some(api) = api {
        fs::write(&kubeconfig, api.kubeconfig()).unwrap();
    }
    tokio::task::spawn_blocking(move || run(&mut command)).await.unwrap()
}

fn allowed(curl: &str) -> Value {
    let answer: Value = serde_json::from_str(&curl::run(curl)).unwrap();
    assert_eq!(answer["response"]["allowed"], true, "{answer}");
    answer
}

#[test]
fn the_logged_curl_line_works_when_pasted() {
    let mut serving = Serving::start(&["serve", "--standalone", "examples"]);
    let line = serving.curl();
    assert_eq!(allowed(&line)["response"]["patchType"], "JSONPatch");
    allowed(&line.replace("mutate", "validate"));
    let ca = serving.logged("ca").to_owned();
    assert!(Path::new(&ca).is_file());
    serving.signal(Signal::TERM);
    serving.last_words();
    assert!(!Path::new(&ca).exists(), "the CA's file goes with the process");
}

#[test]
fn no_subcommand_means_serve() {
    let serving = Serving::start(&["--standalone", "examples"]);
    assert_eq!(serving.admin("/livez"), ("200".to_owned(), "ok\n".to_owned()));
    let (status, metrics) = serving.admin("/metrics");
    assert_eq!(status, "200");
    assert!(metrics.contains(&format!(
        "gmsa_webhook_build_info{{version=\"{}\",enforcement=\"enforce\"}} 1\n",
        env!("CARGO_PKG_VERSION")
    )));
    assert!(metrics.contains("# TYPE gmsa_webhook_build_info gauge\n"), "in the text format, which `curl` accepts");
}

#[test]
fn after_a_signal_it_is_unready_and_still_serves_until_a_second_one() {
    let mut serving = Serving::start(&["--standalone", "examples", "--shutdown-delay", "1h"]);
    serving.signal(Signal::TERM);
    serving.until("ending");
    // The log line comes just before readiness goes.
    let unready = ("503".to_owned(), "not ready: the process is ending\n".to_owned());
    let mut answers = std::iter::repeat_with(|| serving.admin("/readyz")).take(1000);
    assert!(answers.any(|answer| answer == unready));
    assert_eq!(serving.admin("/livez").0, "200");
    assert!(TcpStream::connect(serving.address("address")).is_ok());
    serving.signal(Signal::INT);
    let line = serving.until("ended at once by a second signal");
    assert_eq!(line["signal"], "SIGINT");
    serving.last_words();
}

/// A preStop hook that ends, or an impatient person: the delay is over, and no request in flight is lost.
#[test]
fn a_second_sigterm_ends_the_delay_and_requests_in_flight_are_answered() {
    let mut serving = Serving::start(&["--standalone", "examples", "--shutdown-delay", "1h"]);
    let mut request = curl::connect(serving.logged("ca"), "localhost", serving.address("address"));
    let body = fs::read("examples/review-mutate.json").unwrap();
    let head = format!("POST /mutate HTTP/1.1\r\nhost: l\r\n{JSON}content-length: {}\r\n\r\n", body.len());
    request.write_all(&[head.as_bytes(), &body[..100]].concat()).unwrap();
    serving.signal(Signal::TERM);
    serving.until("ending");
    serving.signal(Signal::TERM);
    serving.until("ending without further delay");
    request.write_all(&body[100..]).unwrap();
    let (head, answer) = curl::message(&mut BufReader::new(request));
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(serde_json::from_slice::<Value>(&answer).unwrap()["response"]["allowed"], true);
    assert_eq!(serving.until("ended")["dropped_connections"], 0);
    serving.last_words();
}

#[test]
fn silent_connections_to_the_admin_port_keep_no_probe_out() {
    let serving = Serving::start(&["--standalone", "examples"]);
    let silent: Vec<TcpStream> = (0..400).map(|_| TcpStream::connect(serving.address("admin")).unwrap()).collect();
    for _ in 0..10 {
        assert_eq!(serving.admin("/readyz"), ("200".to_owned(), "ok\n".to_owned()));
    }
    // They hold no place, and are closed when their time to send something is over.
    let mut first = &silent[0];
    assert_eq!(first.read(&mut [0]).unwrap(), 0);
}

#[test]
fn few_open_files_leave_fewer_connections_and_one_for_each_client() {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "ulimit -n 256 && exec \"$@\"", "sh", BINARY, "--standalone", "examples"]);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("LOG_FORMAT", "json");
    let mut serving = Serving::spawn(&mut command);
    let line = serving.curl();
    let ports = [["address"; 300], ["admin"; 300]].concat();
    let _silent: Vec<_> = ports.iter().map(|port| TcpStream::connect(serving.address(port)).unwrap()).collect();
    allowed(&line);
    assert_eq!(serving.admin("/readyz"), ("200".to_owned(), "ok\n".to_owned()));
    let lines = serving.end();
    let about = |message: &str| lines.iter().filter(|line| line["message"] == message).collect::<Vec<_>>();
    let [fewer] = about("fewer connections than memory has room for: few files may be open")[..] else {
        panic!("{lines:?}")
    };
    assert_eq!([&fewer["files"], &fewer["connections"], &fewer["waiting"]], [256, 84, 84]);
    assert!(about("cannot accept a connection").is_empty(), "{lines:?}");
}

/// Each new connection costs a signature.
#[test]
fn a_long_rsa_key_is_warned_of_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let warned = |key: &str| {
        let key = fs::read_to_string(format!("tests/server/certificates/pairs/{key}.pem")).unwrap();
        let key = rcgen::KeyPair::from_pem(&key).unwrap();
        let cert = rcgen::CertificateParams::new([NAME.to_owned()]).unwrap().self_signed(&key).unwrap();
        let file = folder.path().join("pair.pem");
        fs::write(&file, key.serialize_pem() + &cert.pem()).unwrap();
        let file = file.to_str().unwrap();
        let serving = Serving::start(&["--standalone", "examples", "--tls-cert", file, "--tls-key", file]);
        serving.lines.iter().find_map(|line| line["bits"].as_u64())
    };
    assert_eq!(["rsa-4096-pkcs8", "rsa-2048-pkcs8", "p256-pkcs8"].map(warned), [Some(4096), None, None]);
}

#[test]
fn what_clients_send_cannot_fill_the_log() {
    let mut serving = Serving::start(&["--standalone", "examples"]);
    let missing = serving.curl().replace("/mutate", &format!("/{}", "x".repeat(8_000)));
    for _ in 0..20 {
        curl::run(&missing);
    }
    let name = "x".repeat(900_000);
    let pod = json!({"metadata": {"name": name}, "spec": {"securityContext": slot(Some(&name), None)}});
    serving.post("/mutate", created(&name, &pod).to_string().as_bytes());
    let lines = serving.end();
    let of = |message: &str| lines.iter().filter(|line| line["message"] == message).collect::<Vec<_>>();
    assert_eq!(of("request refused").len(), 5);
    let [denied] = of("denied")[..] else { panic!("{lines:?}") };
    assert_eq!((&denied["code"], &denied["pod"]), (&json!(422), &json!("x".repeat(253))));
    assert_eq!(denied["namespace"], "x".repeat(253));
    let longest = lines.iter().map(|line| line.to_string().len()).max().unwrap();
    assert!(longest < 2048, "{longest}");
}

#[test]
fn the_log_names_a_credential_spec_that_is_refused() {
    let mut serving = Serving::start(&["--standalone", "examples", "--strict-credential-specs"]);
    let mut review = created("", &json!({"metadata": {"name": "webapp1"}}));
    review["request"]["kind"] = json!({"group": "windows.k8s.io", "version": "v1", "kind": "GMSACredentialSpec"});
    serving.post("/validate-credspec", review.to_string().as_bytes());
    let denied = serving.until("denied");
    assert_eq!((&denied["code"], &denied["path"]), (&json!(422), &json!("validate-credspec")));
    assert_eq!(denied["specs"], "webapp1");
}

#[test]
fn the_environment_of_the_go_webhook_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let ca = authority();
    let leaf = leaf(&ca, NAME);
    // With its authority behind it: the command that is logged trusts the certificates of this file.
    fs::write(file("tls.crt"), leaf.cert + ca.cert_pem()).unwrap();
    fs::write(file("tls.key"), leaf.key).unwrap();
    let mut command = binary(&["--cert-reload=true", "--standalone", "examples"]);
    command.envs([("TLS_CRT", file("tls.crt")), ("TLS_KEY", file("tls.key"))]);
    command.envs([("HTTPS_PORT", "0"), ("QPS", "30"), ("BURST", "50"), ("RANDOM_HOSTNAME", "true")]);
    let mut serving = Serving::spawn(&mut command);
    assert_eq!(serving.address("address").ip(), std::net::Ipv4Addr::LOCALHOST);
    for name in ["--cert-reload", "QPS", "BURST"] {
        let message = format!("{name} is accepted for compatibility and is no longer needed");
        assert!(serving.lines.iter().any(|line| line["message"] == json!(message)), "{name}");
    }
    let line = serving.curl();
    let words = curl::words(&line);
    assert_eq!(words[..4], ["curl", "--cacert", &file("tls.crt"), "--resolve"]);
    assert!(words[4].starts_with(&format!("{NAME}:")), "{line}");
    allowed(&line);
}

/// A load balancer connects and closes, in one of these ways, every few seconds: that is no failed handshake, and no line of the log. Bytes of another protocol are one.
#[test]
fn health_checks_by_tcp_are_no_failed_handshakes() {
    let serving = Serving::start(&["--standalone", "examples"]);
    let connect = || TcpStream::connect(serving.address("address")).unwrap();
    for _ in 0..10 {
        drop(connect());
        let reset = connect();
        SockRef::from(&reset).set_linger(Some(Duration::ZERO)).unwrap();
        drop(reset);
        connect().shutdown(Shutdown::Write).unwrap();
    }
    let until = |line: &str| {
        while !serving.admin("/metrics").1.lines().any(|shown| shown == line) {
            yield_now();
        }
    };
    until("gmsa_webhook_connections_unserved_total{reason=\"closed-by-client\"} 30");
    until("gmsa_webhook_tls_handshake_failures_total 0");
    // Open until it is answered: one that closes first has given up.
    let mut stray = connect();
    stray.write_all(b"hello").unwrap();
    until("gmsa_webhook_tls_handshake_failures_total 1");
    until("gmsa_webhook_connections_unserved_total{reason=\"closed-by-client\"} 30");
    let lines = serving.end();
    let of_connections = lines.iter().filter(|line| line["peer"].is_string());
    assert_eq!(of_connections.map(|line| line["message"].clone()).collect::<Vec<_>>(), ["TLS handshake failed"]);
}

/// `refused` has the arguments of a command on a line, and below them, indented, how its complaint begins.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_started_says_why_and_exits_with_2() {
    let mut cases: Vec<(Vec<&str>, String)> = Vec::new();
    for line in include_str!("serve/refused").lines() {
        match (line.strip_prefix("    "), cases.last_mut()) {
            (Some(said), Some((_, expected))) => expected.extend([said, "\n"]),
            _ => cases.push((line.split_whitespace().collect(), String::new())),
        }
    }
    for (arguments, expected) in cases {
        let (code, printed, complaint) = server_program(None, &arguments).await;
        assert_eq!((code, &*printed), (2, ""), "{arguments:?}");
        assert!(complaint.starts_with(expected.trim_end()), "{arguments:?}: {complaint}");
    }
}

#[test]
fn a_folder_with_a_fault_is_not_half_loaded() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("good.yaml"), fs::read("examples/credspec.yaml").unwrap()).unwrap();
    fs::write(folder.path().join("bad.yaml"), "kind: [\n").unwrap();
    let path = folder.path().to_str().unwrap();
    let (code, _, complaint) = run(&mut binary(&["--standalone", path]));
    assert_eq!(code, 2);
    let line: Value = serde_json::from_str(complaint.trim()).unwrap();
    let bad = format!("{path}/bad.yaml, document 1, line 1: unclosed bracket '['");
    assert_eq!(line["message"], format!("cannot load the manifests: {bad}"));
}

/// The operator reads the log before anybody asks for tickets.
#[test]
fn why_pods_get_no_tickets_is_logged_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.crt").to_str().unwrap().to_owned();
    let broker = ["--tickets-broker=broker.example", "--tickets-broker-address=192.0.2.1:443", "--tickets-image=a"];
    let mut serving =
        Serving::start(&[&["--standalone", "examples", "--tickets-broker-ca", &ca], &broker[..]].concat());
    let message = "pods that ask for tickets are refused";
    let known = serving.lines.iter().find(|line| line["message"] == message).cloned();
    let line = known.unwrap_or_else(|| serving.until(message));
    let reason = format!("cannot read {ca}: No such file or directory (os error 2)");
    assert_eq!([&line["level"], &line["reason"]], [&json!("ERROR"), &json!(reason)]);
}

#[test]
fn the_version_is_the_packages() {
    let version = format!("gmsa-webhook {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(&mut binary(&["--version"])), (0, version, String::new()));
}
