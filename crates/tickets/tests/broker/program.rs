//! The program as a kubelet runs it: certificate files, probes, metrics, the log, signals, and errors at the start.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    net::{SocketAddr, TcpStream},
    process::{Child, ChildStderr, Command, Stdio},
    time::{Duration, SystemTime},
};

use gmsa_edge::tls::issue::Ca;
use gmsa_kerberos::{EncryptionType, Password};
use gmsa_test_support::{
    directory::DirectoryAccount,
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

/// The program, and a client of it.
struct Started {
    child: Ended,
    log: BufReader<ChildStderr>,
    client: Client,
    broker: SocketAddr,
    admin: SocketAddr,
}

impl Started {
    fn new(world: &World) -> Self {
        let (now, hour) = (SystemTime::now(), Duration::from_secs(3600));
        let ca = Ca::generate("test", now, hour).unwrap();
        let issued = ca.issue("broker", &[NAME.to_owned()], now, hour).unwrap();
        fs::write(world.path("tls.crt"), &issued.cert).unwrap();
        fs::write(world.path("tls.key"), &issued.key).unwrap();
        let mut child = Ended(program(world, &[]).stderr(Stdio::piped()).spawn().unwrap());
        let mut log = BufReader::new(child.0.stderr.take().unwrap());
        let serving = next(&mut log);
        assert_eq!((&serving["message"], &serving["domains"]), (&json!("serving"), &json!("contoso.com")));
        let address = |key: &str| -> SocketAddr { serving[key].as_str().unwrap().parse().unwrap() };
        let client = Client { name: NAME.try_into().unwrap(), ..Client::trusting(ca.cert_pem()) };
        Self { child, log, client, broker: address("address"), admin: address("admin") }
    }

    async fn ask(&self, token: &str) -> gmsa_test_support::https::Answer {
        let body = r#"{"credentialSpec": "webapp1"}"#;
        let head = "POST /v1/tickets HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\n";
        let request = format!("{head}authorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let mut stream = self.client.connect(self.broker).await.unwrap();
        exchange(&mut stream, request.as_bytes()).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_program_serves_and_leaves_a_line_for_each_answer() {
    let world = World::start().await;
    let mut program = Started::new(&world);
    assert!(probe(&program.admin, "/readyz").ends_with("\r\n\r\nok\n"));
    let given = program.ask("token-1").await;
    assert_eq!(given.status, 200);
    let mut line = next(&mut program.log);
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
    assert_eq!(program.ask("token-1").await.status, 200);
    next(&mut program.log);
    world.api.delete("pods", "shop", "web-1");
    assert_eq!(program.ask("token-1").await.status, 403);
    let line = next(&mut program.log);
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
        assert_eq!(program.ask("a.forged.token").await.status, 401);
    }
    let metrics = probe(&program.admin, "/metrics");
    for series in
        ["gmsa_tickets_requests_total{outcome=\"given\"} 2", "gmsa_tickets_requests_total{outcome=\"ticket-token\"} 8"]
    {
        assert!(metrics.contains(series), "{metrics}");
    }
    let pid = Pid::from_child(&program.child.0);
    kill_process(pid, Signal::TERM).unwrap();
    let mut rest = String::new();
    program.log.read_to_string(&mut rest).unwrap();
    assert_eq!(program.child.0.wait().unwrap().code(), Some(0), "{rest}");
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

/// The parts of a process's memory that can be written, one after the other.
fn memory(pid: u32) -> Vec<Vec<u8>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut all = fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let parts = maps.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let [start, end] = [start, end].map(|at| u64::from_str_radix(at, 16).unwrap());
        let mut part = vec![0; usize::try_from(end - start).unwrap()];
        all.seek(SeekFrom::Start(start)).ok()?;
        (rest.starts_with("rw") && all.read_exact(&mut part).is_ok()).then_some(part)
    });
    parts.flat_map(|part| used(&part)).collect()
}

/// Pages that follow each other and are in use.
fn used(part: &[u8]) -> Vec<Vec<u8>> {
    let mut runs = vec![Vec::new()];
    for page in part.chunks(4096) {
        match runs.last_mut() {
            _ if page == &[0; 4096][..page.len()] => runs.push(Vec::new()),
            Some(run) => run.extend_from_slice(page),
            None => {}
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

/// How often these bytes are in there.
fn count(memory: &[Vec<u8>], bytes: &[u8]) -> usize {
    let first = |part: &[u8]| part.windows(bytes.len()).filter(|window| *window == bytes).count();
    memory.iter().map(|part| first(part)).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_password_is_left_in_the_memory_of_the_broker() {
    let world = World::start().await;
    // Characters of one, two and three bytes, none of them twice.
    let units: Vec<u16> = (0..128).map(|number| 0x61 + number * 37).collect();
    let password: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
    let text: String = char::decode_utf16(units).map(Result::unwrap).collect();
    let account = DirectoryAccount { current: Some(password.clone()), ..DirectoryAccount::with_password(1) };
    world.directory.account("WebApp1", account);
    world.kdc.account("WebApp1$", &Password::managed(&password), EncryptionType::Aes256);
    let secret = "The password of the user, which nothing else says";
    world.directory.password_of_user(secret);
    world.write_password(secret);
    let program = Started::new(&world);
    assert_eq!(program.ask("token-1").await.status, 200);
    let memory = memory(program.child.0.id());
    // What is looked for can be found.
    assert!(count(&memory, b"WebApp1") > 0);
    for part in 0..8 {
        assert_eq!(count(&memory, &password[part * 32..][..32]), 0, "part {part} of the password");
    }
    for part in [&text.as_bytes()[..32], &text.as_bytes()[text.len() - 32..]] {
        assert_eq!(count(&memory, part), 0, "the password in UTF-8");
    }
    for part in [&secret[..20], &secret[20..]] {
        assert_eq!(count(&memory, part.as_bytes()), 0, "the password of the user");
    }
}
