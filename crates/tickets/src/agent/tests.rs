//! An agent with a scripted broker: what it asks, the files and the status that it leaves, how long it waits.

use std::{fs, os::unix::fs::PermissionsExt as _};

use clap::Parser as _;
use gmsa_test_support::scripted::{Scripted, answer};
use serde_json::json;

use super::*;

const BROKER: &str = "gmsa-tickets.gmsa-tickets.svc";

fn now() -> OffsetDateTime {
    OffsetDateTime::parse("2026-11-26T00:00:00Z", &Rfc3339).unwrap()
}

/// What the kubelet mounts, in a folder that the agent may write.
struct Pod {
    temporary: tempfile::TempDir,
}

impl Pod {
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        fs::create_dir(temporary.path().join("gmsa")).unwrap();
        fs::write(temporary.path().join("token"), "token-1\n").unwrap();
        Self { temporary }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    fn agent(&self, server: &Scripted) -> Agent {
        self.agent_that_trusts(&server.ca, server)
    }

    fn agent_that_trusts(&self, ca: &str, server: &Scripted) -> Agent {
        let broker = BrokerArgs {
            broker: BROKER.to_owned(),
            broker_address: Some(server.address.to_string()),
            broker_ca: ca.to_owned(),
        };
        Agent {
            verb: Verb::Use,
            broker: Arc::new(BrokerClient::new(broker).unwrap()),
            folder: Folder(self.path("gmsa")),
            mode: 0o444,
            credential_spec: "webapp1".to_owned(),
            token_file: self.path("token"),
            schedule: Schedule::new(Duration::from_secs(3600), || 0.5),
            now,
            last: None,
        }
    }

    fn keytab_agent(&self, server: &Scripted) -> Agent {
        Agent { verb: Verb::Export, ..self.agent(server) }
    }

    /// The name, mode and contents of each file in the folder.
    fn files(&self) -> Vec<(String, u32, String)> {
        let mut files: Vec<_> = fs::read_dir(self.path("gmsa"))
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                (name, mode, fs::read_to_string(path).unwrap())
            })
            .collect();
        files.sort();
        files
    }
}

/// The files after an answer of [`tickets`], and after a failure.
fn written(ccache: &str, status: Option<&str>) -> Vec<(String, u32, String)> {
    let file = |name: &str, contents: &str| (name.to_owned(), 0o444, contents.to_owned());
    let summary =
        r#"{"expires":"2026-11-26T01:00:00Z","principal":"WebApp1$@CONTOSO.COM","services":["HTTP/app.contoso.com"]}"#;
    let mut files = vec![file("krb5.conf", "[libdefaults]\n"), file("krb5cc", ccache)];
    files.extend(status.map(|status| file("status", status)));
    files.push(file("tickets.json", summary));
    files
}

fn tickets(ccache: &str) -> String {
    let body = json!({
        "credentialSpec": "webapp1",
        "principal": "WebApp1$@CONTOSO.COM",
        "services": ["HTTP/app.contoso.com"],
        "expires": "2026-11-26T01:00:00Z",
        "renewAfter": "2026-11-26T00:30:00Z",
        "ccache": base64::Engine::encode(&base64::prelude::BASE64_STANDARD, ccache),
        "krb5Conf": "[libdefaults]\n",
    });
    answer(200, "", &body.to_string())
}

fn refused(status: u16, head: &str, reason: &str) -> String {
    answer(status, head, &json!({"code": status, "reason": reason, "message": "some words"}).to_string())
}

fn refusal(status: u16, head: &str) -> String {
    refused(status, head, "why")
}

#[tokio::test]
async fn tickets_are_asked_for_with_the_token_and_replace_the_files() {
    let pod = Pod::new();
    let server = Scripted::start(BROKER, [tickets("one"), tickets("two")]).await;
    let mut agent = pod.agent(&server);
    // What an agent that was killed has left.
    fs::write(pod.path("gmsa/.krb5cc.new"), "half").unwrap();
    assert_eq!(agent.step().await, Duration::from_secs(1620));
    assert_eq!(pod.files(), written("one", None));
    fs::write(pod.path("token"), "token-2").unwrap();
    assert_eq!(agent.step().await, Duration::from_secs(1620));
    assert_eq!(pod.files(), written("two", None));
    let request = |token: &str| {
        format!(
            "POST /v1/tickets HTTP/1.1\r\nhost: {BROKER}\r\ncontent-type: application/json\r\nauthorization: Bearer {token}\r\n\
             content-length: 28\r\n\r\n{{\"credentialSpec\":\"webapp1\"}}"
        )
    };
    assert_eq!(server.requests(), ["token-1", "token-2"].map(request));
    assert!(agent.folder.is_ready(now()));
}

#[tokio::test]
async fn the_group_alone_reads_the_files_where_it_is_asked_for() {
    let pod = Pod::new();
    let server = Scripted::start(BROKER, [tickets("one"), refusal(503, "")]).await;
    let mut agent = Agent { mode: 0o440, ..pod.agent(&server) };
    agent.step().await;
    agent.step().await;
    let modes = pod.files().into_iter().map(|(name, mode, _)| (name, mode)).collect::<Vec<_>>();
    assert_eq!(modes, ["krb5.conf", "krb5cc", "status", "tickets.json"].map(|name| (name.to_owned(), 0o440)));
}

/// Each answer after tickets: what is said, whether the tickets stay, how long the agent waits.
#[tokio::test]
async fn the_end_of_the_right_removes_the_tickets_and_nothing_else_does() {
    for (sent, said, is_kept, wait) in [
        (refused(403, "", "not-authorized"), "the broker refused: 403 Forbidden, not-authorized: some words", false, 1),
        (
            refused(403, "", "ticket-services"),
            "the broker refused: 403 Forbidden, ticket-services: some words",
            false,
            1,
        ),
        (refused(404, "", "spec-missing"), "the broker refused: 404 Not Found, spec-missing: some words", false, 1),
        // A pod that ends needs its tickets until then.
        (refused(403, "", "ticket-pod"), "the broker refused: 403 Forbidden, ticket-pod: some words", true, 1),
        (refused(403, "", "ticket-account"), "the broker refused: 403 Forbidden, ticket-account: some words", true, 1),
        (
            refused(403, "", "account-differs"),
            "the broker refused: 403 Forbidden, account-differs: some words",
            true,
            1,
        ),
        // A proxy's.
        (answer(403, "", "RBAC"), "the broker refused: 403 Forbidden", true, 1),
        // The path is missing, and not the credential spec.
        (refusal(404, ""), "the broker refused: 404 Not Found, why: some words", true, 1),
        (answer(404, "", ""), "the broker refused: 404 Not Found", true, 1),
        (refusal(400, ""), "the broker refused: 400 Bad Request, why: some words", true, 1),
        (refusal(401, ""), "the broker refused: 401 Unauthorized, why: some words", true, 1),
        (refusal(409, ""), "the broker refused: 409 Conflict, why: some words", true, 1),
        (refusal(429, "retry-after: 7\r\n"), "the broker refused: 429 Too Many Requests, why: some words", true, 8),
        (
            refused(503, "retry-after: 7\r\n", "ticket-busy"),
            "the broker refused: 503 Service Unavailable, ticket-busy: some words",
            true,
            7,
        ),
        (refusal(500, ""), "the broker refused: 500 Internal Server Error, why: some words", true, 1),
        (refusal(501, ""), "the broker refused: 501 Not Implemented, why: some words", true, 1),
        (refusal(502, ""), "the broker refused: 502 Bad Gateway, why: some words", true, 1),
        (
            refusal(503, "Retry-After: 99999\r\n"),
            "the broker refused: 503 Service Unavailable, why: some words",
            true,
            301,
        ),
        (
            refusal(503, "retry-after: Thu, 26 Nov 2026 00:00:00 GMT\r\n"),
            "the broker refused: 503 Service Unavailable, why: some words",
            true,
            1,
        ),
        (answer(302, "location: /\r\n", ""), "the broker refused: 302 Found", true, 1),
        (answer(200, "", "{}"), "the broker's answer is not tickets", true, 1),
        (answer(200, "", &"a".repeat(128 * 1024 + 1)), "the broker's answer is longer than 128 KiB", true, 1),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"a\"".to_owned(),
            "the broker's answer ends too early",
            true,
            1,
        ),
        (tickets("one").replace("b25l", "b25!"), "the broker's answer has no tickets in Base64", true, 1),
        (tickets("one").replace("2026-11-26T01", "2026-13-26T01"), "the broker's answer has no valid times", true, 1),
    ] {
        let pod = Pod::new();
        let server = Scripted::start(BROKER, [tickets("one"), sent, tickets("two")]).await;
        let mut agent = pod.agent(&server);
        agent.step().await;
        assert_eq!((agent.step().await, said), (Duration::from_secs(wait), said));
        let status = format!("{said}\n");
        if is_kept {
            assert_eq!(pod.files(), written("one", Some(&status)));
            assert!(agent.folder.is_ready(now()));
        } else {
            assert_eq!(pod.files(), [("status".to_owned(), 0o444, status)]);
            assert_eq!((agent.folder.is_ready(now()), &*agent.folder.why_not_ready(now()).1), (false, said));
        }
        // It goes on, and the next tickets are taken.
        agent.step().await;
        assert_eq!(pod.files(), written("two", None));
    }
}

#[tokio::test]
async fn no_token_leaves_the_pod_for_a_server_of_another_name_or_authority() {
    let pod = Pod::new();
    let server = Scripted::start("other.svc", [tickets("one")]).await;
    pod.agent(&server).step().await;
    let address = server.address;
    let said = |reason: &str| {
        vec![("status".to_owned(), 0o444, format!("TLS with the broker at {address} failed: {reason}\n"))]
    };
    assert_eq!(
        pod.files(),
        said(&format!(
            "invalid peer certificate: certificate not valid for name \"{BROKER}\"; certificate is only valid for DnsName(\"other.svc\")"
        ))
    );
    assert_eq!(server.requests(), [""; 0]);

    let (known, stranger) = (Scripted::start(BROKER, []).await, Scripted::start(BROKER, [tickets("one")]).await);
    pod.agent_that_trusts(&known.ca, &stranger).step().await;
    assert_eq!(stranger.requests(), [""; 0]);
    assert_eq!(
        pod.files()[0].2,
        format!("TLS with the broker at {} failed: invalid peer certificate: BadSignature\n", stranger.address)
    );
}

#[tokio::test]
async fn what_fails_in_the_pod_is_said() {
    let pod = Pod::new();
    let server = Scripted::start(BROKER, [tickets("one")]).await;
    let mut agent = pod.agent(&server);
    assert_eq!(agent.folder.why_not_ready(now()).1, "the broker has not answered yet");
    fs::remove_file(pod.path("token")).unwrap();
    agent.step().await;
    let token = pod.path("token").display().to_string();
    let said = format!("cannot read the token {token}: No such file or directory (os error 2)");
    assert_eq!(agent.folder.why_not_ready(now()).1, said);
    fs::write(pod.path("token"), "two\nlines").unwrap();
    agent.step().await;
    assert_eq!(agent.folder.why_not_ready(now()).1, format!("the file {token} does not hold a token"));
    assert_eq!(server.requests(), [""; 0]);

    fs::write(pod.path("token"), "token").unwrap();
    fs::remove_dir_all(pod.path("gmsa")).unwrap();
    assert_eq!(agent.step().await, Duration::from_secs(4));
    assert!(!pod.path("gmsa").exists());
}

/// `agent ready` says what is wrong where the agent itself cannot.
#[tokio::test]
async fn tickets_that_have_expired_and_a_folder_that_cannot_be_written_are_not_ready() {
    let pod = Pod::new();
    let server = Scripted::start(BROKER, [tickets("one"), refusal(503, "")]).await;
    let mut agent = pod.agent(&server);
    agent.step().await;
    let end = now() + Duration::from_secs(3600);
    assert_eq!([end - Duration::from_secs(1), end].map(|time| agent.folder.is_ready(time)), [true, false]);
    let expired = |why: &str| format!("the last ones have expired at 2026-11-26T01:00:00Z: {why}");
    assert_eq!(agent.folder.why_not_ready(now()).1, expired("the broker has not answered yet"));
    agent.step().await;
    assert_eq!(
        agent.folder.why_not_ready(now()).1,
        expired("the broker refused: 503 Service Unavailable, why: some words")
    );
    fs::remove_file(pod.path("gmsa/krb5cc")).unwrap();
    assert!(!agent.folder.is_ready(now()));

    // A folder that is gone stands for one that is full or read-only: root may write into the latter.
    let gone = Folder(pod.path("gone"));
    assert_eq!(gone.why_not_ready(now()).1, "cannot write into the folder: No such file or directory (os error 2)");
    assert_eq!(pod.files().iter().filter(|(name, ..)| name.starts_with('.')).count(), 0);
}

fn keytab(file: &str, kvno: u32) -> String {
    let body = json!({
        "credentialSpec": "webapp1",
        "principal": "WebApp1$@CONTOSO.COM",
        "names": ["HTTP/app.contoso.com"],
        "kvno": kvno,
        "keytab": base64::Engine::encode(&base64::prelude::BASE64_STANDARD, file),
        "renewAfter": "2026-11-26T00:00:20Z",
    });
    answer(200, "", &body.to_string())
}

#[tokio::test]
async fn a_keytab_is_a_file_that_is_replaced_and_removed_once_export_is_revoked() {
    let pod = Pod::new();
    let answers = [
        keytab("one", 7),
        keytab("two", 8),
        refusal(503, ""),
        refused(403, "", "keytab-domain"),
        refused(403, "", "not-authorized"),
        keytab("two", 8).replace("dHdv", "dHd!"),
    ];
    let server = Scripted::start(BROKER, answers).await;
    let mut agent = pod.keytab_agent(&server);
    let file = |name: &str, contents: &str| (name.to_owned(), 0o444, contents.to_owned());
    let summary = |kvno| {
        file(
            "keytab.json",
            &format!(r#"{{"kvno":{kvno},"names":["HTTP/app.contoso.com"],"principal":"WebApp1$@CONTOSO.COM"}}"#),
        )
    };
    // At the time that the broker says, and a tenth of a fifth before it.
    assert_eq!(agent.step().await, Duration::from_secs(18));
    assert_eq!(pod.files(), [file("keytab", "one"), summary(7)]);
    agent.step().await;
    assert_eq!(pod.files(), [file("keytab", "two"), summary(8)]);
    for said in ["503 Service Unavailable, why", "403 Forbidden, keytab-domain"] {
        agent.step().await;
        let status = file("keytab.status", &format!("the broker refused: {said}: some words\n"));
        assert_eq!(pod.files(), [file("keytab", "two"), summary(8), status]);
    }
    agent.step().await;
    let status = file("keytab.status", "the broker refused: 403 Forbidden, not-authorized: some words\n");
    assert_eq!(pod.files(), [status]);
    agent.step().await;
    assert_eq!(pod.files(), [file("keytab.status", "the broker's answer has no keytab in Base64\n")]);
    assert!(server.requests().iter().all(|request| request.starts_with("POST /v1/keytab HTTP/1.1\r\n")));
}

/// `agent ready` knows from the folder what the agent keeps.
#[tokio::test]
async fn a_pod_is_ready_once_all_is_there_that_it_asked_for() {
    let pod = Pod::new();
    let server = Scripted::start(BROKER, [keytab("one", 7), refusal(503, ""), tickets("one")]).await;
    let (mut keytab, mut tickets) = (pod.keytab_agent(&server), pod.agent(&server));
    let folder = Folder(pod.path("gmsa"));
    keytab.announce();
    assert_eq!(folder.why_not_ready(now()), (Verb::Export, "the broker has not answered yet".to_owned()));
    keytab.step().await;
    assert!(folder.is_ready(now()));
    let summary = json!({"principal": "WebApp1$@CONTOSO.COM", "names": ["HTTP/app.contoso.com"], "kvno": 7});
    let state = json!({"tickets": null, "lastFailure": null, "keytab": summary, "lastKeytabFailure": null});
    assert_eq!(folder.state(), state);

    tickets.announce();
    assert_eq!(folder.why_not_ready(now()), (Verb::Use, "the broker has not answered yet".to_owned()));
    tickets.step().await;
    let said = "the broker refused: 503 Service Unavailable, why: some words";
    assert_eq!((folder.is_ready(now()), folder.why_not_ready(now())), (false, (Verb::Use, said.to_owned())));
    tickets.step().await;
    assert!(folder.is_ready(now()));
    // What is there already is not announced again.
    keytab.announce();
    assert!(folder.is_ready(now()) && !pod.path("gmsa/keytab.status").exists());
}

#[tokio::test]
async fn a_broker_that_is_not_there_is_asked_again() {
    let pod = Pod::new();
    let server = Scripted::start(BROKER, []).await;
    let mut agent = pod.agent(&server);
    let address = server.address;
    drop(server);
    let waits = [agent.step().await, agent.step().await].map(|wait| wait.as_secs());
    assert_eq!(waits, [1, 2]);
    let said = agent.folder.why_not_ready(now()).1;
    assert!(said.starts_with(&format!("cannot connect to the broker at {address}: ")), "{said}");
}

/// Neither `Debug` nor a message shows a token.
#[test]
fn the_command_line_is_checked() {
    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }
    let error = |line: &str| Line::try_parse_from(line.split(' ')).unwrap_err().to_string();
    let whole = "agent --credential-spec a --broker b.svc --broker-ca c";
    let line = Line::try_parse_from(whole.split(' ')).unwrap().args;
    assert!(line.keep.is_some() && line.broker.is_some() && line.command.is_none());
    let ready = Line::try_parse_from(["agent", "ready"]).unwrap().args;
    assert!(
        matches!(ready.command, Some(Command::Ready { folder, wait: Duration::ZERO, json: false }) if folder.to_str() == Some(FOLDER))
            && ready.keep.is_none()
    );
    for (more, said) in [
        ("--broker-address b", "expected HOST:PORT"),
        ("--broker-address :1", "expected HOST:PORT"),
        ("--broker-address b:99999", "expected HOST:PORT"),
        ("--mode 0600", "[possible values: 0444, 0440]"),
        ("--check-interval 10ms", "expected a duration from 1s, such as 5m"),
    ] {
        let shown = error(&format!("{whole} {more}"));
        assert!(shown.contains(said), "{shown}");
    }
    let keytab =
        Line::try_parse_from("agent --keytab a --broker b.svc --broker-ca c".split(' ')).unwrap().args.keep.unwrap();
    assert_eq!((keytab.credential_spec, keytab.keytab.as_deref()), (None, Some("a")));
    assert_eq!(keytab.keytab_token_file.to_str(), Some("/var/run/secrets/gmsa-keytab/token"));
    for line in ["agent", "agent --credential-spec a --broker b", "agent --broker b.svc --broker-ca c"] {
        let shown = error(line);
        assert!(shown.contains("the following required arguments were not provided"), "{shown}");
    }
    assert!(error("agent --credential-spec A --broker b --broker-ca c").contains("expected a lower-case DNS name"));
}
