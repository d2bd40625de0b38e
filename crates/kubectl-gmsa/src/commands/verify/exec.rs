//! One command in a container, by the API server's `exec`.
//!
//! Invariants: a command is run without a shell; waiting for it ends at its time limit; of its output a bounded part is read.

use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::{api::core::v1, apimachinery::pkg::apis::meta::v1::Status};
use kube::{
    Api, Error,
    api::{AttachParams, AttachedProcess},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    time::timeout,
};

use super::CommandOutput;
use gmsa_core::{
    diagnostic::{Diagnostic, rules},
    quote,
};

/// The most bytes of an output that are read: what `nltest` and `klist` print is far shorter.
const MAX_OUTPUT: u64 = 64 * 1024;

pub(super) struct Executor {
    /// Speaks HTTP/1.1, which a connection needs to become a web socket.
    pub client: kube::Client,
    pub namespace: String,
    pub pod: String,
    pub container: String,
    pub limit: Duration,
}

pub(super) enum Execution {
    Ended(CommandOutput),
    /// It did not begin: the image does not have it, or it may not be run.
    NotStarted(String),
    TimedOut,
    /// The API server runs no command there.
    Refused(Box<Diagnostic>),
}

impl Executor {
    pub(super) async fn run(&self, command: &[String]) -> anyhow::Result<Execution> {
        let Ok(answered) = timeout(self.limit, self.exec(command)).await else { return Ok(Execution::TimedOut) };
        answered
    }

    async fn exec(&self, command: &[String]) -> anyhow::Result<Execution> {
        let pods: Api<v1::Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let attach = AttachParams::default().container(&self.container).stdin(false).stdout(true).stderr(true);
        let mut process = match pods.exec(&self.pod, command, &attach).await {
            Ok(process) => process,
            Err(Error::Api(status)) => {
                return Ok(Execution::Refused(Box::new(self.refused(status.code, &status.message))));
            }
            Err(error) => return Err(error).context("the API server does not let commands run in the container"),
        };
        let (stdout, stderr) = (process.stdout(), process.stderr());
        let status = status(&mut process);
        let (stdout, stderr, status) = tokio::join!(text(stdout), text(stderr), status);
        let printed = format!("{stdout}\n{stderr}");
        Ok(match status {
            None => anyhow::bail!("the connection to the container broke off"),
            Some(status) if status.status.as_deref() == Some("Success") => {
                Execution::Ended(CommandOutput { exit: 0, printed })
            }
            Some(status) => match exit_code(&status) {
                Some(exit) => Execution::Ended(CommandOutput { exit, printed }),
                None => Execution::NotStarted(said(status.message.as_deref().unwrap_or("no reason is given"))),
            },
        })
    }

    fn refused(&self, code: u16, message: &str) -> Diagnostic {
        let Self { namespace, .. } = self;
        let text = format!("the API server runs no command in the container, {code}: {}", said(message));
        let found = Diagnostic::new(&rules::EXEC_REFUSED, text);
        match code {
            // Which of the two verbs is checked depends on the version of the API server.
            403 => found.with_fix(format!(
                "the permission create pods/exec is needed: kubectl create role gmsa-verify --namespace {namespace} \
                 --verb=create,get --resource=pods/exec, then bind it"
            )),
            _ => found,
        }
    }
}

/// What the API server says.
fn said(message: &str) -> String {
    quote::bare(message, quote::NAME)
}

async fn status(process: &mut AttachedProcess) -> Option<Status> {
    match process.take_status() {
        Some(status) => status.await,
        None => None,
    }
}

/// Reads a stream and keeps a bounded part. Bytes that are not UTF-8 are in translated text, which does not matter.
async fn text(stream: Option<impl AsyncRead + Unpin>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        // What was read before a break counts: the status says how the command ended.
        let _ = (&mut stream).take(MAX_OUTPUT).read_to_end(&mut bytes).await;
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The exit code of a command that ended with one (`remotecommand` of Kubernetes: reason `NonZeroExitCode`).
fn exit_code(status: &Status) -> Option<i64> {
    if status.reason.as_deref() != Some("NonZeroExitCode") {
        return None;
    }
    let mut causes = status.details.iter().flat_map(|details| details.causes.iter().flatten());
    let cause = causes.find(|cause| cause.reason.as_deref() == Some("ExitCode"))?;
    cause.message.as_deref()?.parse().ok()
}
