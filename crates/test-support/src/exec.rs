//! Containers that answer `exec` from transcripts, over the same web socket as a real API server's.
//!
//! A transcript is what `kubectl exec` shows: `> COMMAND`, what it prints, and `exit CODE` where that is not 0; `hangs` is a command
//! that never ends. A command that is not there is one that the image does not have.

use std::{collections::HashMap, fs};

use axum::body::Body;
use futures::SinkExt as _;
use http::{Response, header};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        handshake::derive_accept_key,
        protocol::{CloseFrame, Role, frame::coding::CloseCode},
    },
};

use crate::{SimulatedApi, repository};

/// The protocol of Kubernetes for the channels of a command.
const PROTOCOL: &str = "v5.channel.k8s.io";

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
pub fn code_page_850(text: &str) -> Vec<u8> {
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

/// The command of an exec request, from the query of its URL.
fn command(query: &str) -> String {
    let pairs = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "command");
    pairs.map(|(_, word)| word.into_owned()).collect::<Vec<_>>().join(" ")
}

/// Lets each container answer: `answer` takes the path of the request, which names the pod, and the command. A server with TLS can be a
/// kubelet: the API server passes a web socket on to a node that declares the feature `ExtendWebSocketsToKubelet` (Kubernetes 1.36).
pub fn answer_each(api: &SimulatedApi, answer: impl Fn(&str, &str) -> Option<Answer> + Send + Sync + 'static) {
    api.upgrade_by(move |mut request| {
        let command = command(request.uri().query().unwrap());
        let answer = answer(request.uri().path(), &command);
        let key = request.headers()[header::SEC_WEBSOCKET_KEY].as_bytes().to_vec();
        tokio::spawn(async move {
            let upgraded = hyper::upgrade::on(&mut request).await.unwrap();
            let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
            serve(socket, &command, answer).await;
        });
        Response::builder()
            .status(101)
            .header(header::UPGRADE, "websocket")
            .header(header::CONNECTION, "Upgrade")
            .header(header::SEC_WEBSOCKET_ACCEPT, derive_accept_key(&key))
            .header(header::SEC_WEBSOCKET_PROTOCOL, PROTOCOL)
            .body(Body::empty())
            .unwrap()
    });
}

/// Sends what a command prints and how it ends, in the channels of [`PROTOCOL`]: 1 is standard output, 3 the status.
async fn serve(mut socket: WebSocketStream<TokioIo<Upgraded>>, command: &str, answer: Option<Answer>) {
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
    let _ = socket.close(Some(CloseFrame { code: CloseCode::Normal, reason: "".into() })).await;
}

pub fn transcript(case: &str) -> Transcript {
    let file = repository().join("crates/kubectl-gmsa/tests/verify").join(case).join("transcript");
    parse(&fs::read_to_string(file).unwrap(), |text| text.as_bytes().to_vec())
}
