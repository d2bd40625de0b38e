//! The agent as a kubelet runs it: its probe, its test of a broker, its end.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::{
    fs::{self, File},
    io::pipe,
    path::Path,
    process::{Child, Command, Stdio},
};

use gmsa_test_support::{
    PATIENCE, eventually, run,
    scripted::{Scripted, answer},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::{net::TcpListener, time::timeout};

const BROKER: &str = "gmsa-tickets.gmsa-tickets.svc";

fn agent() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gmsa-tickets"));
    // The environment of a container is that of its probe too.
    command.arg("agent").env_clear().env("LOG_LEVEL", "info").env("LOG_FORMAT", "json");
    command
}

fn broker<'a>(command: &'a mut Command, server: &Scripted) -> &'a mut Command {
    command.args(["--broker", BROKER, "--broker-ca", &server.ca, "--broker-address", &server.address.to_string()])
}

fn start(server: &Scripted, folder: &Path) -> Child {
    let mut command = agent();
    broker(&mut command, server).args(["--credential-spec", "webapp1", "--log-format", "json"]);
    command.arg("--token-file").arg(folder.join("token")).arg("--folder").arg(folder);
    command.stderr(Stdio::piped()).spawn().unwrap()
}

fn ready(folder: &Path) -> (i32, String, String) {
    run(agent().arg("ready").arg("--folder").arg(folder))
}

fn tickets() -> String {
    let body = json!({
        "credentialSpec": "webapp1",
        "principal": "WebApp1$@CONTOSO.COM",
        "services": ["HTTP/app.contoso.com"],
        "expires": "2126-11-26T01:00:00Z",
        "renewAfter": "2126-11-26T00:30:00Z",
        "ccache": "b25l",
        "krb5Conf": "[libdefaults]\n",
    });
    answer(200, "", &body.to_string())
}

/// Ends an agent, and returns its log.
fn ended(child: Child) -> String {
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_probe_waits_for_tickets_and_the_agent_ends_on_sigterm() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    fs::write(folder.join("token"), "secret-token").unwrap();
    let said = format!("no tickets in {}: the broker has not answered yet\n", folder.display());
    assert_eq!(ready(folder), (1, String::new(), said));
    let server = Scripted::start(BROKER, [answer(503, "", ""), tickets()]).await;
    let child = start(&server, folder);
    eventually("the first answer is known", || folder.join("status").exists() || folder.join("krb5cc").exists()).await;
    eventually("the second answer is known", || ready(folder) == (0, String::new(), String::new())).await;
    let log = ended(child);
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let messages: Vec<_> = lines.iter().map(|line| line["message"].as_str().unwrap()).collect();
    assert_eq!(
        messages,
        ["no tickets: the broker refused: 503 Service Unavailable", "tickets written", "ending"],
        "{log}"
    );
    assert!(!log.contains("secret-token") && !log.contains("b25l"), "{log}");
    // The tickets outlive the agent, which a kubelet starts again.
    assert_eq!(ready(folder).0, 0);
    let state = || run(agent().args(["ready", "--json", "--folder"]).arg(folder));
    let tickets = r#"{"lastFailure":null,"tickets":{"expires":"2126-11-26T01:00:00Z","principal":"WebApp1$@CONTOSO.COM","services":["HTTP/app.contoso.com"]}}"#;
    assert_eq!(state(), (0, format!("{tickets}\n"), String::new()));
    fs::remove_dir_all(folder).unwrap();
    fs::create_dir(folder).unwrap();
    fs::write(folder.join("status"), "the broker refused: 403 Forbidden\n").unwrap();
    let said = format!("no tickets in {}: the broker refused: 403 Forbidden\n", folder.display());
    let none = "{\"lastFailure\":\"the broker refused: 403 Forbidden\",\"tickets\":null}\n";
    assert_eq!(state(), (1, none.to_owned(), said));
}

/// A probe that waits passes at once when the tickets are there, and otherwise says why not at the end of its wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_probe_that_waits_ends_with_the_tickets() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let waiting = |wait: &str| {
        let mut command = agent();
        command.args(["ready", "--wait", wait, "--folder"]).arg(folder);
        command
    };
    let said = format!("no tickets in {}: the broker has not answered yet\n", folder.display());
    assert_eq!(run(&mut waiting("200ms")), (1, String::new(), said));
    fs::write(folder.join("token"), "token").unwrap();
    let mut probe = waiting("24h").spawn().unwrap();
    let server = Scripted::start(BROKER, [tickets()]).await;
    let child = start(&server, folder);
    eventually("the probe has ended", || probe.try_wait().unwrap().is_some_and(|status| status.success())).await;
    ended(child);
}

#[test]
fn a_report_that_cannot_be_written_is_an_error_and_one_that_nobody_reads_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let to = |out: Stdio| run(agent().args(["ready", "--json", "--folder"]).arg(folder.path()).stdout(out));
    let said = format!("no tickets in {}: the broker has not answered yet\n", folder.path().display());
    assert_eq!(to(pipe().unwrap().1.into()), (1, String::new(), said));
    let full = "error: cannot write the report: No space left on device (os error 28)\n".to_owned();
    assert_eq!(to(File::create("/dev/full").unwrap().into()), (2, String::new(), full));
}

/// The container of docs/linux-pods.md, with a certificate where the page has an ellipsis, and no broker at its address.
#[tokio::test(flavor = "multi_thread")]
async fn the_arguments_of_the_page_start_an_agent() {
    let page = fs::read_to_string(gmsa_test_support::repository().join("docs/linux-pods.md")).unwrap();
    let pod = page.split("```yaml\n").nth(2).unwrap().split("```").next().unwrap();
    let pod: Value = serde_saphyr::from_str(pod).unwrap();
    let container = &pod["spec"]["initContainers"][0];
    let server = Scripted::start(BROKER, []).await;
    let args = container["args"].as_array().unwrap().iter().map(|arg| {
        let arg = arg.as_str().unwrap();
        arg.replace("-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----", server.ca.trim_end())
    });
    let temporary = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gmsa-tickets"));
    command.args(args).arg("--folder").arg(temporary.path()).arg("--token-file").arg(temporary.path().join("none"));
    let child = command.env_clear().stderr(Stdio::piped()).spawn().unwrap();
    eventually("it has looked for its token", || temporary.path().join("status").exists()).await;
    ended(child);
    let probe = container["startupProbe"]["exec"]["command"].as_array().unwrap();
    assert_eq!(*probe, ["/gmsa-tickets", "agent", "ready", "--wait=10s"]);
    let (code, _, said) = ready(temporary.path());
    assert!(code == 1 && said.contains("cannot read the token"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_broker_does_not_hold_up_the_end() {
    let temporary = tempfile::tempdir().unwrap();
    fs::write(temporary.path().join("token"), "token").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut server = Scripted::start(BROKER, []).await;
    server.address = listener.local_addr().unwrap();
    let child = start(&server, temporary.path());
    let (_stream, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    assert!(ended(child).contains("\"message\":\"ending\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_is_tested_without_a_token() {
    let refusal = json!({"code": 401, "reason": "ticket-token", "message": "no token"}).to_string();
    let server =
        Scripted::start(BROKER, [answer(401, "", &refusal), tickets(), answer(503, "", ""), answer(404, "", "")]).await;
    let test = || run(broker(agent().arg("test"), &server));
    let said = |error: &str| (1, String::new(), format!("error: {error}\n"));
    let passed = "the broker answers, and refuses a request without a token\n";
    let tests = [test(), test(), test(), test()];
    assert_eq!(
        tests,
        [
            (0, passed.to_owned(), String::new()),
            said("the broker gives tickets without a token"),
            said("the broker refused: 503 Service Unavailable"),
            said("the broker refused: 404 Not Found"),
        ]
    );
    assert!(server.requests().iter().all(|request| request.contains("authorization: Bearer \r\n")));
    let (code, _, said) = run(agent().args(["test", "--broker", BROKER, "--broker-ca", "no PEM"]));
    assert_eq!(
        (code, &*said),
        (2, "error: --broker-ca is not a list of CA certificates in PEM: there is no PEM section CERTIFICATE\n")
    );
}
