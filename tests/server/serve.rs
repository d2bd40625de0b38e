//! The server's binary, as a person or a kubelet runs it: flags, environment, log, signals, exit codes.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Child, Command, ExitStatus, Output, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::SimulatedApi;

mod certs;
mod curl;
mod dry_run;
mod log;
mod traces;

const BINARY: &str = env!("CARGO_BIN_EXE_gmsa-webhook");

/// The binary without a word of this machine's environment.
fn binary(args: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(args).env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("LOG_FORMAT", "json");
    command
}

/// A server that has said that it serves.
struct Serving {
    child: Child,
    lines: Vec<Value>,
    log: std::io::Lines<BufReader<std::process::ChildStderr>>,
}

impl Serving {
    fn start(args: &[&str]) -> Self {
        Self::spawn(binary(args).args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut serving = Self { child, lines: Vec::new(), log };
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

    /// A field of the line that says that it serves.
    fn address(&self, field: &str) -> SocketAddr {
        let line = self.lines.iter().find(|line| line["message"] == "serving").unwrap();
        line[field].as_str().unwrap().parse().unwrap()
    }

    /// What the admin port answers: the status code and the body.
    fn admin(&self, path: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.address("admin")).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: l\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().to_owned(), body.to_owned())
    }

    fn signal(&self, name: &str) {
        let signal = match name {
            "INT" => Signal::INT,
            "TERM" => Signal::TERM,
            _ => panic!("no signal {name}"),
        };
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn wait(self) -> ExitStatus {
        self.last_words().0
    }

    /// How it ends, and all that it logs.
    fn last_words(mut self) -> (ExitStatus, Vec<Value>) {
        // A full pipe would keep it from ending.
        let rest = self.log.by_ref().map(|line| serde_json::from_str(&line.unwrap()).unwrap());
        self.lines.extend(rest);
        (self.child.wait().unwrap(), std::mem::take(&mut self.lines))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Already gone in the usual case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// The server's program, with a kubeconfig for a simulated API server or without any; gives back its exit code, what it
/// printed and what it complained of.
async fn server_program(api: Option<&SimulatedApi>, arguments: &[&str]) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let mut command = Command::new(BINARY);
    command.env_clear().env("HOME", folder.path()).env("KUBECONFIG", &kubeconfig).args(arguments);
    if let Some(api) = api {
        fs::write(&kubeconfig, api.kubeconfig()).unwrap();
    }
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let complaints = stderr(&output).to_owned();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap(), complaints)
}

#[test]
fn the_logged_curl_line_works_when_pasted() {
    let mut serving = Serving::start(&["serve", "--standalone", "examples"]);
    let line = serving.curl();
    let answer: Value = serde_json::from_str(&curl::run(&line)).unwrap();
    assert_eq!(answer["response"]["allowed"], true);
    assert_eq!(answer["response"]["patchType"], "JSONPatch");
    let validate = line.replace("mutate", "validate");
    let answer: Value = serde_json::from_str(&curl::run(&validate)).unwrap();
    assert_eq!(answer["response"]["allowed"], true, "{answer}");

    let ca = serving.lines.iter().find_map(|line| line["ca"].as_str()).unwrap().to_owned();
    assert!(Path::new(&ca).is_file());
    serving.signal("TERM");
    assert_eq!(serving.wait().code(), Some(0));
    assert!(!Path::new(&ca).exists(), "the CA's file goes with the process");
}

#[test]
fn no_subcommand_means_serve() {
    let serving = Serving::start(&["--standalone", "examples"]);
    assert_eq!(serving.admin("/livez"), ("200".to_owned(), "ok\n".to_owned()));
    assert_eq!(serving.admin("/readyz"), ("200".to_owned(), "ok\n".to_owned()));
    let (status, metrics) = serving.admin("/metrics");
    assert_eq!(status, "200");
    assert!(metrics.contains(&format!("gmsa_webhook_build_info{{version=\"{}\"}} 1\n", env!("CARGO_PKG_VERSION"))));
    assert!(metrics.contains("# TYPE gmsa_webhook_build_info gauge\n"), "in the text format, which `curl` accepts");
}

#[test]
fn after_a_signal_it_is_unready_and_still_serves_until_a_second_one() {
    let mut serving = Serving::start(&["--standalone", "examples", "--shutdown-delay", "1h"]);
    serving.signal("TERM");
    serving.until("ending");
    // The log line comes just before readiness goes.
    let unready = ("503".to_owned(), "not ready: the process is ending\n".to_owned());
    let answers = std::iter::repeat_with(|| serving.admin("/readyz")).take(1000);
    assert!(answers.into_iter().any(|answer| answer == unready));
    assert_eq!(serving.admin("/livez").0, "200");
    assert!(TcpStream::connect(serving.address("address")).is_ok());
    serving.signal("INT");
    let line = serving.until("ended at once by a second signal");
    assert_eq!(line["signal"], "SIGINT");
    assert_eq!(serving.wait().code(), Some(0));
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

/// Posts a review by the logged command instead of its example, and returns the answer.
fn answered(curl: &str, review: &Value) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("review.json");
    fs::write(&file, review.to_string()).unwrap();
    serde_json::from_str(&curl::run(&curl.replace("examples/review-mutate.json", file.to_str().unwrap()))).unwrap()
}

#[test]
fn what_clients_send_cannot_fill_the_log() {
    let mut serving = Serving::start(&["--standalone", "examples"]);
    let curl = serving.curl();
    let missing = curl.replace("/mutate", &format!("/{}", "x".repeat(8_000)));
    for _ in 0..20 {
        curl::run(&missing);
    }

    let name = "x".repeat(900_000);
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "namespace": name,
            "operation": "CREATE",
            "object": {"metadata": {"name": name}, "spec": {"securityContext": {"windowsOptions": {
                "gmsaCredentialSpecName": name
            }}}},
        }
    });
    let answer = answered(&curl, &review);
    assert_eq!(answer["response"]["status"]["code"], 422, "{answer}");
    serving.signal("TERM");
    let (_, lines) = serving.last_words();
    let of = |message: &str| lines.iter().filter(|line| line["message"] == message).collect::<Vec<_>>();
    assert_eq!(of("request refused").len(), 5);
    let [denied] = of("denied")[..] else { panic!("{lines:?}") };
    assert_eq!(denied["pod"], "x".repeat(253));
    assert_eq!(denied["namespace"], "x".repeat(253));
    let longest = lines.iter().map(|line| line.to_string().len()).max().unwrap();
    assert!(longest < 2048, "{longest}");
}

#[test]
fn the_log_names_a_credential_spec_that_is_refused() {
    let mut serving = Serving::start(&["--standalone", "examples", "--strict-credential-specs"]);
    let curl = serving.curl().replace("/mutate", "/validate-credspec");
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "windows.k8s.io", "version": "v1", "kind": "GMSACredentialSpec"},
            "operation": "CREATE",
            "object": {"metadata": {"name": "webapp1"}},
        }
    });
    let answer = answered(&curl, &review);
    assert_eq!(answer["response"]["status"]["code"], 422, "{answer}");
    let denied = serving.until("denied");
    assert_eq!(denied["path"], "validate-credspec");
    assert_eq!(denied["specs"], "webapp1");
}

#[test]
fn the_environment_of_the_go_webhook_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let now = std::time::SystemTime::now();
    let day = std::time::Duration::from_secs(86_400);
    let ca = gmsa_webhook::tls::issue::Ca::generate("test", now, day).unwrap();
    let leaf = ca.issue(&["gmsa-webhook.gmsa.svc".to_owned()], now, day).unwrap();
    // With its authority behind it: the command that is logged trusts the certificates of this file.
    fs::write(file("tls.crt"), leaf.cert + ca.cert_pem()).unwrap();
    fs::write(file("tls.key"), leaf.key).unwrap();
    let mut command = binary(&["--cert-reload=true", "--admin-listen", "127.0.0.1:0", "--standalone", "examples"]);
    command.envs([("TLS_CRT", file("tls.crt")), ("TLS_KEY", file("tls.key"))]);
    command.envs([("HTTPS_PORT", "0"), ("QPS", "30"), ("BURST", "50"), ("RANDOM_HOSTNAME", "true")]);
    let mut serving = Serving::spawn(&mut command);
    assert_eq!(serving.address("address").ip(), std::net::Ipv4Addr::LOCALHOST);
    for name in ["--cert-reload", "QPS", "BURST"] {
        let message = format!("{name} is accepted for compatibility and is no longer needed");
        assert!(serving.lines.iter().any(|line| line["message"] == json!(message)), "{name}");
    }
    let line = serving.curl();
    assert!(line.starts_with(&format!("curl --cacert {} --resolve gmsa-webhook.gmsa.svc:", file("tls.crt"))), "{line}");
    let answer: Value = serde_json::from_str(&curl::run(&line)).unwrap();
    assert_eq!(answer["response"]["allowed"], true);
}

#[test]
fn what_cannot_be_started_says_why_and_exits_with_2() {
    let output = run(&mut binary(&[]));
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        stderr(&output),
        "error: no serving certificate: set --tls-cert and --tls-key (or TLS_CRT and TLS_KEY) to PEM files, or --self-managed-secret and --self-managed-service, or run with --standalone DIR\n"
    );
    for (flag, value, reason) in [
        ("--listen <ADDR:PORT>", "nowhere", "invalid socket address syntax"),
        ("--https-port <PORT>", "70000", "expected a port: a number from 0 to 65535"),
        ("--log-level <LEVEL>", "loud", "expected error, warn, info, debug or trace"),
        (
            "--otlp-endpoint <URL>",
            "collector:4317",
            "expected the URL of an OTLP collector, such as http://collector:4318",
        ),
        ("--shutdown-delay <DURATION>", "5", "expected a duration with units, such as 10s, 1m30s or 500ms"),
        ("--random-hostname[=<BOOL>]", "maybe", "expected true or false"),
        ("--max-reviews <N>", "0", "expected a number from 1 to 1000000"),
    ] {
        let name = flag.split([' ', '[']).next().unwrap();
        let output = run(&mut binary(&[&format!("{name}={value}")]));
        assert_eq!(output.status.code(), Some(2));
        let expected = format!("error: invalid value '{value}' for '{flag}': {reason}");
        assert_eq!(stderr(&output).lines().next(), Some(&*expected));
    }
}

#[test]
fn a_folder_with_a_fault_is_not_half_loaded() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("good.yaml"), fs::read("examples/credspec.yaml").unwrap()).unwrap();
    fs::write(folder.path().join("bad.yaml"), "kind: Role\n---\nkind: [\n").unwrap();
    let path = folder.path().to_str().unwrap();
    let output = run(&mut binary(&["--standalone", path]));
    assert_eq!(output.status.code(), Some(2));
    let line: Value = serde_json::from_str(stderr(&output).trim()).unwrap();
    let message = line["message"].as_str().unwrap();
    let expected = format!(
        "cannot load the manifests\n  {path}/bad.yaml, document 1, line 1: expected a Kubernetes object with `apiVersion` \
         and `kind`, found no `apiVersion`\n  {path}/bad.yaml, document 2, line 3: unclosed bracket '['"
    );
    assert_eq!(message, expected);
}

#[test]
fn the_version_is_the_packages() {
    let output = run(&mut binary(&["--version"]));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("gmsa-webhook {}\n", env!("CARGO_PKG_VERSION")));
}
