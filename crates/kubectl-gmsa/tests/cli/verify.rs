//! `verify`, against a container that answers from transcripts (`tests/verify/CASE/transcript`), over the same web socket as that
//! of a real API server.
//!
//! A transcript is what `kubectl exec` shows: `> COMMAND`, what it prints, and `exit CODE` where that is not 0; `hangs` is a command
//! that never ends. A command that is not there is one that the image does not have. What is in a folder with `german` in its
//! name is sent in code page 850, as a German console writes it.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use axum::body::Body;
use futures::SinkExt as _;
use http::{Request, Response, header};
use hyper::{body::Incoming, upgrade::Upgraded};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, handshake::derive_accept_key, protocol::Role},
};

use super::{
    cluster::{healthy, kind, pod, run},
    compare, connect, program,
    support::{Fault, SimulatedApi, Verb},
    text,
};

/// How a command ends in a transcript.
#[derive(Clone)]
pub enum Ending {
    Exit(i64),
    Hangs,
}

/// What a command prints, and how it ends.
pub type Answer = (Vec<u8>, Ending);

pub type Transcript = HashMap<String, Answer>;

pub fn parse(text: &str, encode: fn(&str) -> Vec<u8>) -> Transcript {
    let mut transcript = Transcript::new();
    for part in text.split("\n> ").map(|part| part.strip_prefix("> ").unwrap_or(part)) {
        let (command, rest) = part.split_once('\n').unwrap_or((part, ""));
        let mut lines: Vec<&str> = rest.lines().collect();
        let ending = match lines.last().map(|last| last.split_once(' ').unwrap_or((last, ""))) {
            Some(("exit", code)) => Ending::Exit(code.parse().unwrap()),
            Some(("hangs", "")) => Ending::Hangs,
            _ => Ending::Exit(0),
        };
        if !matches!(ending, Ending::Exit(0)) {
            lines.pop();
        }
        transcript.insert(command.to_owned(), (encode(&lines.join("\r\n")), ending));
    }
    transcript
}

/// Code page 850, as far as German needs it.
fn code_page_850(text: &str) -> Vec<u8> {
    let byte = |c: char| match c {
        'ä' => 0x84,
        'ö' => 0x94,
        'ü' => 0x81,
        'Ä' => 0x8e,
        'Ü' => 0x9a,
        'ß' => 0xe1,
        c => u8::try_from(c).unwrap(),
    };
    text.chars().map(byte).collect()
}

/// The command of an exec request, from its query.
fn command(request: &Request<Incoming>) -> String {
    let words = request.uri().query().unwrap().split('&').filter_map(|pair| pair.strip_prefix("command="));
    words.map(decode).collect::<Vec<_>>().join(" ")
}

/// A word of a query, decoded.
fn decode(word: &str) -> String {
    let word = word.replace('+', " ");
    let mut parts = word.split('%');
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| {
        let (code, rest) = part.split_at(2);
        format!("{text}{}{rest}", char::from(u8::from_str_radix(code, 16).unwrap()))
    })
}

/// Lets the container answer by a transcript.
fn answer_by(api: &SimulatedApi, transcript: Transcript) {
    answer_each(api, move |_, command| transcript.get(command).cloned());
}

/// Lets each container answer: `answer` takes the path of the request, which names the pod, and the command.
pub fn answer_each(api: &SimulatedApi, answer: impl Fn(&str, &str) -> Option<Answer> + Send + Sync + 'static) {
    api.upgrade_by(move |mut request| {
        let command = command(&request);
        let answer = answer(request.uri().path(), &command);
        let key = request.headers()[header::SEC_WEBSOCKET_KEY].as_bytes().to_vec();
        tokio::spawn(async move {
            let upgraded = hyper::upgrade::on(&mut request).await.unwrap();
            serve(upgraded, &command, answer).await;
        });
        Response::builder()
            .status(101)
            .header(header::UPGRADE, "websocket")
            .header(header::CONNECTION, "Upgrade")
            .header(header::SEC_WEBSOCKET_ACCEPT, derive_accept_key(&key))
            .header(header::SEC_WEBSOCKET_PROTOCOL, "v5.channel.k8s.io")
            .body(Body::empty())
            .unwrap()
    });
}

/// Sends what a command prints and how it ends, in the channels of `v5.channel.k8s.io`: 1 is standard output, 3 the status.
async fn serve(upgraded: Upgraded, command: &str, answer: Option<(Vec<u8>, Ending)>) {
    let mut socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
    let (printed, ending) = answer.map_or((Vec::new(), None), |(printed, ending)| (printed, Some(ending)));
    let status = match ending {
        Some(Ending::Hangs) => std::future::pending().await,
        Some(Ending::Exit(0)) => json!({"metadata": {}, "status": "Success"}),
        Some(Ending::Exit(code)) => json!({
            "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
            "message": format!("command terminated with non-zero exit code: exit code {code}"),
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }),
        None => json!({
            "metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
            "message": format!("hcs::System::CreateProcess {command}: The system cannot find the file specified. (0x2)"),
        }),
    };
    // A client that has enough goes away.
    let _ = socket.send(Message::binary([&[1][..], &printed].concat())).await;
    let _ = socket.send(Message::binary([&[3][..], status.to_string().as_bytes()].concat())).await;
    let _ = socket.close(None).await;
}

/// The pod of the healthy cluster, with its container running.
fn running() -> Value {
    let mut pod = pod("web", &Value::Null);
    let contents = pod_contents().to_string();
    pod["spec"]["securityContext"]["windowsOptions"] =
        json!({"gmsaCredentialSpecName": "webapp1", "gmsaCredentialSpec": contents});
    pod["status"]["containerStatuses"] = json!([{"name": "iis", "state": {"running": {}}}]);
    pod
}

fn pod_contents() -> Value {
    json!({"DomainJoinConfig": {"DnsName": "contoso.com", "MachineAccountName": "WebApp1"}})
}

async fn cluster() -> SimulatedApi {
    let api = healthy().await;
    api.apply(running());
    api
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verify");
    let mut cases: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

#[tokio::test(flavor = "multi_thread")]
async fn each_cause_is_found_in_its_transcript() {
    let api = cluster().await;
    let mut wrong = Vec::new();
    assert!(cases().len() > 15, "the cases are gone");
    for case in cases() {
        let name = case.file_name().unwrap().to_str().unwrap();
        let encode = if name.contains("german") { code_page_850 } else { |text: &str| text.as_bytes().to_vec() };
        answer_by(&api, parse(&fs::read_to_string(case.join("transcript")).unwrap(), encode));
        // A command that never ends is not waited for long.
        let mut arguments = vec!["verify", "shop/web"];
        if name.contains("hangs") {
            arguments.extend(["--timeout", "1"]);
        }
        let output = run(&api, &arguments).await;
        let code = format!("{}\n", output.status.code().unwrap());
        wrong.extend(compare(&case, "stdout", text(&output.stdout)));
        wrong.extend(compare(&case, "stderr", text(&output.stderr)));
        wrong.extend(compare(&case, "code", &code));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The transcript of the healthy container.
fn good() -> Transcript {
    transcript("healthy")
}

/// The transcript of a case.
pub fn transcript(case: &str) -> Transcript {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verify").join(case).join("transcript");
    parse(&fs::read_to_string(file).unwrap(), |text| text.as_bytes().to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_ticket_is_printed() {
    let api = cluster().await;
    answer_by(&api, good());
    for format in ["table", "json"] {
        let output = run(&api, &["verify", "shop/web", "-o", format]).await;
        assert_eq!(output.status.code(), Some(0));
        let all = [output.stdout, output.stderr].concat();
        for secret in ["krbtgt/CONTOSO.COM", "Session Key", "DC01", "0x60a10000"] {
            assert!(!text(&all).contains(secret), "{secret}");
        }
    }
    let output = run(&api, &["verify", "shop/web", "-o", "json", "--service", "http/other"]).await;
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let last = printed["checks"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["status"], &last["rule"]), (&json!("skip"), &json!("not-checked")));
    let commands: Vec<String> = api.requests(Verb::Get, "/exec?").into_iter().map(|request| request.path).collect();
    assert!(commands.iter().all(|path| path.contains("container=iis") && !path.contains("tty=true")), "{commands:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_through_a_proxy() {
    let api = cluster().await;
    answer_by(&api, good());
    let direct = run(&api, &["verify", "shop/web"]).await;
    let address = api.url().strip_prefix("http://").unwrap().parse().unwrap();
    let (at, log) = connect::proxy(connect::Proxy::Socks, address).await;
    let folder = tempfile::tempdir().unwrap();
    let mut config: Value = serde_json::from_str(&api.kubeconfig()).unwrap();
    config["clusters"][0]["cluster"] =
        json!({"server": "http://k8s.example.test:6443", "proxy-url": format!("socks5://{at}")});
    fs::write(folder.path().join("config"), config.to_string()).unwrap();
    let mut command = program(folder.path());
    command.args(["--kubeconfig", "config", "verify", "shop/web"]);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    assert_eq!((text(&output.stdout), output.status.code()), (text(&direct.stdout), Some(0)));
    assert_eq!(connect::heard(&log), ["k8s.example.test:6443"]);
}

/// Verifies, and gives the checks, a line each, and the exit code.
async fn verified(api: &SimulatedApi, arguments: &[&str]) -> (String, Option<i32>) {
    let output = run(api, &[&["verify"], arguments].concat()).await;
    (text(&output.stdout).to_owned() + text(&output.stderr), output.status.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_run_commands_learns_which_right_is_missing() {
    let api = cluster().await;
    answer_by(&api, good());
    let message = "pods \"web\" is forbidden: User \"jane\" cannot create resource \"pods/exec\"";
    api.fault(Verb::Get, "/exec?", 1, Fault::Refuse { code: 403, reason: "Forbidden", message, retry_after: None });
    let (said, code) = verified(&api, &["shop/web"]).await;
    assert_eq!(
        said,
        "pass  pod        container iis carries the credential spec of WebApp1\n\
         fail  container  the API server runs no command in the container, 403: pods \\\"web\\\" is forbidden: User \\\"jane\\\" cannot create resource \\\"pods/exec\\\" [exec-refused]\n                 \
         -> the permission create pods/exec is needed: kubectl create role gmsa-verify --namespace shop --verb=create,get --resource=pods/exec, then bind it\n"
    );
    assert_eq!(code, Some(1));
    assert_eq!(api.count(Verb::Get, "/exec?"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_could_not_be_run_is_no_fault_of_the_image_or_the_network() {
    let dialing = "error dialing backend: dial tcp 10.0.0.9:10250: connect: connection refused";
    for (code, message, why) in [
        (500, dialing, format!("the API server answered 500: {dialing}")),
        // The client repeats these.
        (429, "too many requests", "the API server did not start it within 1 s".to_owned()),
        (503, "unable to handle the request", "the API server did not start it within 1 s".to_owned()),
    ] {
        let api = cluster().await;
        answer_by(&api, good());
        api.fault(Verb::Get, "/exec?", usize::MAX, Fault::Refuse { code, reason: "", message, retry_after: None });
        let expected = format!(
            "pass  pod        container iis carries the credential spec of WebApp1\n\
             skip  container  whoami /user could not be run: {why} [not-checked]\n                 \
             -> Run the command again: this says nothing of the image or the account. `kubectl get nodes` shows whether the node answers.\n"
        );
        assert_eq!(verified(&api, &["shop/web", "--timeout", "1"]).await, (expected, Some(2)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_is_found_by_its_workload_and_each_container_is_verified() {
    let api = cluster().await;
    answer_by(&api, good());
    api.define(kind("apps/v1", "Deployment", "deployments", true));
    api.define(kind("apps/v1", "StatefulSet", "statefulsets", true));
    api.apply(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}}}));
    let mut pod = running();
    pod["metadata"]["labels"] = json!({"app": "web"});
    pod["status"]["phase"] = json!("Running");
    pod["spec"]["initContainers"] =
        json!([{"name": "setup", "image": "x"}, {"name": "proxy", "image": "x", "restartPolicy": "Always"}]);
    pod["status"]["initContainerStatuses"] = json!([
        {"name": "setup", "state": {"terminated": {"exitCode": 0}}}, {"name": "proxy", "state": {"running": {}}}
    ]);
    api.apply(pod);
    let (healthy, _) = verified(&api, &["shop/web"]).await;
    for named in ["deploy/web", "Deployment/web", "pod/web", "web"] {
        assert_eq!(verified(&api, &["-n", "shop", named]).await, (healthy.clone(), Some(0)), "{named}");
    }
    let (said, code) = verified(&api, &["shop/web", "--all-containers"]).await;
    let lines: Vec<&str> =
        said.lines().filter(|line| line.contains("container")).filter(|line| !line.contains("gave")).collect();
    assert_eq!(
        lines,
        [
            "pass  pod                    container iis carries the credential spec of WebApp1",
            "pass  secure channel         the container has logged on to contoso.com",
            "pass  pod                    init container setup carries the credential spec of WebApp1",
            "skip  container              container setup has ended, with exit code 0 [not-checked]",
            "                             -> Verify another container of the Pod.",
            "pass  pod                    init container proxy carries the credential spec of WebApp1",
            "pass  secure channel         the container has logged on to contoso.com",
        ]
    );
    assert_eq!(code, Some(2));
    let (said, code) = verified(&api, &["shop/web", "-c", "proxy"]).await;
    assert_eq!(
        (said.lines().next().unwrap(), code),
        ("pass  pod                    init container proxy carries the credential spec of WebApp1", Some(0))
    );
    for (named, error) in [
        ("deploy/none", "error: there is no deploy/none in namespace shop\n"),
        ("sts/A", "error: \"sts/A\" is not KIND/NAME\n"),
    ] {
        assert_eq!(verified(&api, &["-n", "shop", named]).await, (error.to_owned(), Some(2)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_have_an_identity_is_not_asked() {
    let api = cluster().await;
    answer_by(&api, good());
    let change = |change: fn(&mut Value)| {
        let mut pod = running();
        change(&mut pod);
        api.apply(pod);
    };
    let first = |said: &str| said.lines().next().unwrap().to_owned();
    for (changed, expected) in [
        (
            (|pod| pod["spec"]["os"] = json!({"name": "linux"})) as fn(&mut Value),
            "fail  pod  the pod is for Linux (spec.os.name), so it has no GMSA [no-credential-spec]",
        ),
        (
            |pod| pod["spec"]["securityContext"] = Value::Null,
            "fail  pod  container iis does not use GMSA [no-credential-spec]",
        ),
        (
            |pod| pod["spec"]["securityContext"]["windowsOptions"]["hostProcess"] = json!(true),
            "fail  pod  container iis is a hostProcess: it acts as the account of its node [host-process]",
        ),
        (
            |pod| pod["spec"]["securityContext"]["windowsOptions"]["gmsaCredentialSpec"] = Value::Null,
            "fail  pod  the pod names a credential spec and carries no contents: it was created without a call of the webhook [name-without-contents]",
        ),
        (
            |pod| {
                let contents = json!({"DomainJoinConfig": {"DnsName": "a & b", "MachineAccountName": "x"}}).to_string();
                pod["spec"]["securityContext"]["windowsOptions"]["gmsaCredentialSpec"] = json!(contents);
            },
            "fail  pod  DnsName in the contents that the pod carries is not a name: \"a & b\" [dns-name]",
        ),
    ] {
        change(changed);
        let (said, code) = verified(&api, &["shop/web"]).await;
        assert_eq!((first(&said).as_str(), code), (expected, Some(1)));
    }
    change(|pod| {
        pod["status"]["containerStatuses"] =
            json!([{"name": "iis", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}}]);
    });
    let (said, code) = verified(&api, &["shop/web"]).await;
    assert_eq!(
        (said.lines().nth(1).unwrap(), code),
        ("fail  container  container iis waits: CrashLoopBackOff: back-off [not-started]", Some(1))
    );
    assert_eq!(api.count(Verb::Get, "/exec?"), 0);
    for (arguments, error) in [
        (&["shop/web", "-c", "other"][..], "error: the pod has no container \"other\"\n"),
        (&["shop/none"], "error: there is no pod shop/none\n"),
        (&["a/b/c"], "error: \"a/b/c\" is not a pod's NAMESPACE/NAME\n"),
    ] {
        assert_eq!(verified(&api, arguments).await, (error.to_owned(), Some(2)));
    }
}
