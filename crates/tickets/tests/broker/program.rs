//! The program as a kubelet runs it: certificate files, probes, metrics, the log, signals, and errors at the start.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process::{Child, ChildStderr, Command, Stdio},
    time::{Duration, SystemTime},
};

use gmsa_edge::tls::issue::Ca;
use gmsa_test_support::{
    https::{Client, exchange},
    run,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::world::World;

const NAME: &str = "gmsa-tickets.gmsa-tickets.svc";

fn program(world: &World, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gmsa-tickets"));
    let path = |name: &str| world.path(name).display().to_string();
    fs::write(path("kubeconfig"), world.api.kubeconfig()).unwrap();
    command.env_clear().env("KUBECONFIG", path("kubeconfig")).args(["serve", "--log-format", "json"]);
    command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--shutdown-delay", "0s"]);
    command.args(["--config", &path("tickets.yaml"), "--tls-cert", &path("tls.crt"), "--tls-key", &path("tls.key")]);
    command.args(more);
    command
}

/// The next line of a log.
fn next(log: &mut BufReader<ChildStderr>) -> Value {
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"))
}

/// What the admin port answers.
fn probe(address: &SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: l\r\nconnection: close\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_program_serves_and_leaves_a_line_for_each_answer() {
    let world = World::start().await;
    let now = SystemTime::now();
    let ca = Ca::generate("test", now, Duration::from_secs(3600)).unwrap();
    let issued = ca.issue("broker", &[NAME.to_owned()], now, Duration::from_secs(3600)).unwrap();
    fs::write(world.path("tls.crt"), &issued.cert).unwrap();
    fs::write(world.path("tls.key"), &issued.key).unwrap();
    let mut child = Ended(program(&world, &[]).stderr(Stdio::piped()).spawn().unwrap());
    let mut log = BufReader::new(child.0.stderr.take().unwrap());
    let serving = next(&mut log);
    assert_eq!((&serving["message"], &serving["domains"]), (&json!("serving"), &json!("contoso.com")));
    let address = |key: &str| -> SocketAddr { serving[key].as_str().unwrap().parse().unwrap() };
    let (broker, admin) = (address("address"), address("admin"));
    assert!(probe(&admin, "/readyz").ends_with("\r\n\r\nok\n"));

    let client = Client { name: NAME.try_into().unwrap(), ..Client::trusting(ca.cert_pem()) };
    let ask = async |token: &str| {
        let body = r#"{"credentialSpec": "webapp1"}"#;
        let head = "POST /v1/tickets HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\n";
        let request = format!("{head}authorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let mut stream = client.connect(broker).await.unwrap();
        exchange(&mut stream, request.as_bytes()).await.unwrap()
    };
    let given = ask("token-1").await;
    assert_eq!(given.status, 200);
    let mut line = next(&mut log);
    for varies in ["timestamp", "target", "level", "duration_seconds", "time"] {
        line.as_object_mut().unwrap().remove(varies);
    }
    let expires = given.json()["expires"].clone();
    let who = json!({
        "credential_spec": "webapp1", "namespace": "shop", "service_account": "web", "pod": "web-1", "pod_uid": "u1",
        "token_id": "JTI=7c2f", "account": "webapp1@contoso.com",
    });
    let mut expected = who.clone();
    expected["message"] = json!("tickets given");
    expected["services"] = json!("HTTP/app.contoso.com, MSSQLSvc/sql1.contoso.com:1433");
    expected["expires"] = expires;
    assert_eq!(line, expected);

    world.api.grant_only(&[]);
    // What was allowed is remembered for a while.
    assert_eq!(ask("token-1").await.status, 200);
    next(&mut log);
    world.api.delete("pods", "shop", "web-1");
    assert_eq!(ask("token-1").await.status, 403);
    let line = next(&mut log);
    assert_eq!(
        [&line["message"], &line["code"], &line["reason"], &line["cause"], &line["pod"]],
        [
            &json!("tickets refused"),
            &json!(403),
            &json!("ticket-pod"),
            &json!("the pod \"web-1\" does not exist any more"),
            &json!("web-1")
        ]
    );
    // Of requests that no token authenticates, a few leave a line, without what was sent.
    for _ in 0..8 {
        assert_eq!(ask("a.forged.token").await.status, 401);
    }
    let metrics = probe(&admin, "/metrics");
    for series in
        ["gmsa_tickets_requests_total{outcome=\"given\"} 2", "gmsa_tickets_requests_total{outcome=\"ticket-token\"} 8"]
    {
        assert!(metrics.contains(series), "{metrics}");
    }
    let pid = Pid::from_child(&child.0);
    kill_process(pid, Signal::TERM).unwrap();
    let mut rest = String::new();
    log.read_to_string(&mut rest).unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(0), "{rest}");
    assert_eq!(rest.matches("tickets refused\"").count(), 5, "{rest}");
    assert!(!rest.contains("forged"), "{rest}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_at_the_start_is_named() {
    let world = World::start().await;
    let config = world.path("tickets.yaml").display().to_string();
    let ended = |change: &dyn Fn()| {
        change();
        let (code, out, said) = run(&mut program(&world, &[]));
        assert_eq!((code, out.as_str()), (2, ""));
        said
    };
    let said = ended(&|| fs::write(&config, "domains: []\n").unwrap());
    let empty = "domains: is empty: name at least one domain, with name, user and passwordFile";
    assert_eq!(said, format!("error: {config}: {empty}\n"));
    let said = ended(&|| fs::write(&config, "domains:\n- name: contoso.com\n  usr: x\n").unwrap());
    assert!(said.starts_with(&format!("error: {config}: ")) && said.contains("usr"), "{said}");
    let said = ended(&|| fs::remove_file(&config).unwrap());
    assert_eq!(
        said,
        format!(
            "error: cannot read {config}: --config names a YAML file with domains: No such file or directory (os error 2)\n"
        )
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_gmsa-tickets"));
    let (code, _, said) = run(command.args(["serve", "--config", &config]));
    assert_eq!(code, 2);
    assert!(said.contains("--tls-cert <FILE>"), "{said}");
}
