//! One command in a container, by the API server's `exec`.
//!
//! Invariants: a command runs without a shell; its time and the size of its output are limited.

use std::{borrow::Borrow, time::Duration};

use futures::future::OptionFuture;
use k8s_openapi::{api::core::v1, apimachinery::pkg::apis::meta::v1::Status};
use kube::{
    Api, Error,
    api::{AttachParams, AttachedProcess},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    time::timeout,
};

use super::{CommandOutput, not_checked};
use crate::shared::{
    pods::ClusterPod,
    progress,
    rules::{self, Names},
};
use gmsa_core::{causes, diagnostic::Diagnostic, quote};

/// The size limit of an output, in bytes. `nltest` and `klist` print far less.
const MAX_OUTPUT: u64 = 64 * 1024;

#[derive(Clone)]
pub struct Executor {
    /// An HTTP/1.1 client, because only HTTP/1.1 connections can become web sockets.
    pub(super) client: kube::Client,
    pub(super) namespace: String,
    pub(super) pod: String,
    pub(super) container: String,
    pub(super) limit: Duration,
}

/// Why a command gave no answer.
pub enum NotRun {
    /// The image does not have it.
    Absent(Box<Diagnostic>),
    TimedOut(Box<Diagnostic>),
    /// It was not run, which says nothing about the image or the account: the user may not run commands in the container, the kubelet does not
    /// answer, the connection broke off, or the API server is overloaded.
    Failed(Box<Diagnostic>),
}

/// The remedy if a command is not in the image.
pub const OTHER_IMAGE: &str = "Use an image that has whoami, nltest, nslookup and klist, such as one on Server Core.";

impl Executor {
    pub fn new(client: kube::Client, pod: &ClusterPod, container: &str, limit: Duration) -> Self {
        let (namespace, pod) = pod.place();
        Self { client, namespace: namespace.to_owned(), pod: pod.to_owned(), container: container.to_owned(), limit }
    }

    /// The answer of a command that has ended.
    pub async fn run(&self, command: &[impl Borrow<str>]) -> Result<CommandOutput, NotRun> {
        let (shown, limit) = (command.join(" "), self.limit.as_secs());
        progress::doing(&format!("running {shown} in the container"));
        let failed = |why: String| {
            let fix = "Run the command again: this says nothing of the image or the account. `kubectl get nodes` shows whether the node answers.";
            Err(NotRun::Failed(Box::new(not_checked(&format!("{shown} could not be run: {why}"), fix))))
        };
        let pods: Api<v1::Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let words: Vec<String> = command.iter().map(|word| word.borrow().to_owned()).collect();
        let attach = AttachParams::default().container(&self.container).stdin(false).stdout(true).stderr(true);
        // The client repeats a request that an overloaded API server refuses, which must not look like a command that hangs.
        let process = match timeout(self.limit, pods.exec(&self.pod, words, &attach)).await {
            Ok(Ok(process)) => process,
            Ok(Err(Error::Api(status))) if status.code == 403 => {
                return Err(NotRun::Failed(Box::new(self.forbidden(&status.message))));
            }
            Ok(Err(Error::Api(status))) => {
                let said = quote::bare(&status.message, quote::NAME);
                return failed(format!("the API server answered {}: {said}", status.code));
            }
            Ok(Err(error)) => return failed(causes::chain(&error)),
            Err(_) => return failed(format!("the API server did not start it within {limit} s")),
        };
        match timeout(self.limit, ended(process)).await {
            Ok(Ok(Some(answer))) => Ok(answer),
            Ok(Ok(None)) => {
                Err(NotRun::Absent(Box::new(not_checked(&format!("the image cannot run {shown}"), OTHER_IMAGE))))
            }
            Ok(Err(why)) => failed(why),
            Err(_) => {
                let text = format!("{shown} did not end within {limit} s");
                Err(NotRun::TimedOut(Box::new(Diagnostic::new(&rules::NO_ANSWER, text))))
            }
        }
    }

    fn forbidden(&self, message: &str) -> Diagnostic {
        let text = format!("the API server runs no command in the container, 403: {}", quote::remark(message));
        // The API server's version decides which of the two verbs is checked.
        let names = Names { namespace: Some(&self.namespace), said: message, ..Names::default() };
        not_checked(&text, rules::found(&rules::EXEC_REFUSED, &*text, &names).remedy())
    }
}

/// Waits for the end of a command; `None` if the container does not have it.
async fn ended(mut process: AttachedProcess) -> Result<Option<CommandOutput>, String> {
    let (stdout, stderr) = (process.stdout(), process.stderr());
    let status = OptionFuture::from(process.take_status());
    let (stdout, stderr, status) = tokio::join!(text(stdout), text(stderr), status);
    let printed = format!("{stdout}\n{stderr}");
    let Some(status) = status.flatten() else { return Err("the connection to the container broke off".to_owned()) };
    let message = status.message.as_deref().unwrap_or("no reason is given");
    match exit_code(&status) {
        Some(exit) if exit & 0xffff_ffff == STATUS_DLL_NOT_FOUND => Ok(None),
        Some(exit) => Ok(Some(CommandOutput { exit, printed })),
        None if is_absent(message) => Ok(None),
        None => Err(quote::bare(message, quote::NAME)),
    }
}

/// The exit code of a program with a missing library, as on Nano Server ([MS-ERREF] 2.3.1).
const STATUS_DLL_NOT_FOUND: i64 = 0xc000_0135;

/// Whether the host compute service did not find the program: `ERROR_FILE_NOT_FOUND` or `ERROR_PATH_NOT_FOUND`. The message is
/// translated, the number is not. On Linux runc and crun say it.
fn is_absent(message: &str) -> bool {
    let of_linux = ["executable file not found in $path", "executable file `", "no such file or directory"];
    let lower = message.to_ascii_lowercase();
    message.contains("(0x2)") || message.contains("(0x3)") || of_linux.iter().any(|words| lower.contains(words))
}

/// Reads a stream up to the limit. Bytes that are not UTF-8 are replaced: they occur only in translated text.
async fn text(stream: Option<impl AsyncRead + Unpin>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        // Output before an interruption counts, because the status tells how the command ended.
        let _ = (&mut stream).take(MAX_OUTPUT).read_to_end(&mut bytes).await;
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The exit code in a status (`remotecommand` of Kubernetes: reason `NonZeroExitCode`).
fn exit_code(status: &Status) -> Option<i64> {
    if status.status.as_deref() == Some("Success") {
        return Some(0);
    }
    if status.reason.as_deref() != Some("NonZeroExitCode") {
        return None;
    }
    let mut causes = status.details.iter().flat_map(|details| details.causes.iter().flatten());
    let cause = causes.find(|cause| cause.reason.as_deref() == Some("ExitCode"))?;
    cause.message.as_deref()?.parse().ok()
}
