//! The sidecar's program: it gets tickets, a keytab or both from the broker and keeps them in files that the pod's other containers read.
//!
//! Invariants: it holds tokens of its pod and what it was given for them, and no other secret of the domain; a reader sees a whole file or none. Files
//! are removed after the refusals of [`END_OF_TICKETS`](gmsa_core::diagnostic::rules::END_OF_TICKETS); no other failure removes them.

use std::{
    fmt::Display,
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use futures::future::join_all;
use gmsa_core::{
    admission::pod::tickets::{FOLDER, KEYTAB_TOKEN_FILE, TOKEN_FILE},
    causes::chain,
    credspec::{Verb, dns_name},
    duration::{duration, go_duration},
    quote::remark,
};
use gmsa_edge::{
    report,
    shutdown::Signals,
    telemetry::{self, LogArgs, cut_message},
};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

mod client;
mod folder;
mod schedule;
#[cfg(test)]
mod tests;

use client::{AskError, BrokerArgs, BrokerClient};
use folder::{Folder, UNANSWERED};
use schedule::Schedule;

use crate::PROGRAM;

pub const EXAMPLES: &str = "Examples:
  # Keep the tickets of the credential spec webapp1 in /var/run/gmsa
  gmsa-tickets agent --credential-spec webapp1 --broker gmsa-tickets.gmsa-tickets.svc --broker-ca \"$(cat ca.crt)\"

  # Keep its keytab there too
  gmsa-tickets agent --credential-spec webapp1 --keytab webapp1 --broker gmsa-tickets.gmsa-tickets.svc --broker-ca \"$(cat ca.crt)\"

  # Whether what the agent keeps is there: for a startup probe
  gmsa-tickets agent ready";

/// How often `agent ready` looks while it waits.
const READY_INTERVAL: Duration = Duration::from_millis(100);

/// The flags of `agent`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    broker: Option<BrokerArgs>,

    #[command(flatten)]
    keep: Option<KeepArgs>,

    // Not among those of `KeepArgs`: where the environment of a pod sets one of them, its probe `ready` would miss the required others.
    #[command(flatten)]
    log: LogArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Exit with 0 if the tickets are there, and the keytab where the agent keeps one; otherwise say why not, and exit with 1.
    Ready {
        /// Folder of the tickets.
        #[arg(long, value_name = "DIR", default_value = FOLDER)]
        folder: PathBuf,

        /// How long to wait for them. A probe that waits is run less often, and passes at once when they are there.
        #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
        wait: Duration,

        /// Also print the account, its services, the end of the tickets and the last failure, as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Exit with 0 if the broker answers over TLS and refuses a request without a token.
    Test(BrokerArgs),
}

#[derive(Debug, clap::Args)]
struct KeepArgs {
    /// Credential spec of the account that the pod gets tickets of.
    #[arg(long, value_name = "NAME", value_parser = dns_name, required_unless_present = "keytab")]
    credential_spec: Option<String>,

    /// Token of the pod with the audience gmsa-tickets/NAME, read before each request.
    #[arg(long, value_name = "FILE", default_value = TOKEN_FILE)]
    token_file: PathBuf,

    /// Credential spec of the account whose keytab the pod gets, to accept tickets of others with.
    #[arg(long, value_name = "NAME", value_parser = dns_name)]
    keytab: Option<String>,

    /// Token of the pod with the audience gmsa-keytab/NAME, read before each request.
    #[arg(long, value_name = "FILE", default_value = KEYTAB_TOKEN_FILE)]
    keytab_token_file: PathBuf,

    /// Folder of the files: krb5cc and krb5.conf, keytab, and what the agent keeps beside them.
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    folder: PathBuf,

    /// Mode of the files in it. In a pod with an `fsGroup`, 0440 lets that group alone read them.
    #[arg(long, default_value = "0444", value_parser = PossibleValuesParser::new(["0444", "0440"]).try_map(|mode| u32::from_str_radix(&mode, 8)))]
    mode: u32,

    /// Longest time between two requests, unless one failed: a revoked permission and a changed list of services reach the pod within it.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = interval, hide_short_help = true)]
    check_interval: Duration,
}

fn interval(text: &str) -> Result<Duration, &'static str> {
    go_duration(text)
        .filter(|interval| *interval >= Duration::from_secs(1))
        .ok_or("expected a duration from 1s, such as 5m")
}

pub fn run(args: Args) -> ExitCode {
    let ended = match (args.command, args.broker, args.keep) {
        (Some(Command::Ready { folder, wait, json }), ..) => ready(&Folder(folder), wait, json),
        (Some(Command::Test(broker)), ..) => on_runtime(test(broker)),
        (None, Some(broker), Some(keep)) => on_runtime(start(broker, keep, args.log)),
        // Without a command, both are required.
        (None, ..) => Ok(ExitCode::from(2)),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(2)
    })
}

fn on_runtime(work: impl Future<Output = Result<ExitCode, String>>) -> Result<ExitCode, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("cannot start the runtime: {error}"))?.block_on(work)
}

fn print(report: impl Display) -> Result<(), String> {
    report::print(&format!("{report}\n")).map_err(|error| format!("cannot write the report: {error}"))
}

fn ready(folder: &Folder, wait: Duration, is_json: bool) -> Result<ExitCode, String> {
    let (started, is_ready) = (Instant::now(), || folder.is_ready(OffsetDateTime::now_utc()));
    while !is_ready() && started.elapsed() < wait {
        thread::sleep(READY_INTERVAL);
    }
    if is_json {
        print(folder.state())?;
    }
    if is_ready() {
        return Ok(ExitCode::SUCCESS);
    }
    let (verb, why) = folder.why_not_ready(OffsetDateTime::now_utc());
    eprintln!("no {} in {}: {why}", verb.product().name, folder.0.display());
    Ok(ExitCode::FAILURE)
}

async fn test(args: BrokerArgs) -> Result<ExitCode, String> {
    let broker = BrokerClient::new(args)?;
    // It gives an empty token.
    let error = match broker.ask(Verb::Use, "test", "/dev/null".as_ref()).await {
        Ok(_) => "the broker gives tickets without a token".to_owned(),
        Err(AskError::Refused { status: http::StatusCode::UNAUTHORIZED, .. }) => {
            print("the broker answers, and refuses a request without a token")?;
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => chain(&error),
    };
    eprintln!("error: {error}");
    Ok(ExitCode::FAILURE)
}

/// Keeps what was asked for current until a signal.
async fn start(broker: BrokerArgs, args: KeepArgs, log: LogArgs) -> Result<ExitCode, String> {
    let (broker, has_keytab) = (Arc::new(BrokerClient::new(broker)?), args.keytab.is_some());
    let tickets = args.credential_spec.map(|spec| (Verb::Use, spec, args.token_file));
    let keytab = args.keytab.map(|spec| (Verb::Export, spec, args.keytab_token_file));
    let agents = tickets.into_iter().chain(keytab).map(|(verb, credential_spec, token_file)| Agent {
        verb,
        broker: Arc::clone(&broker),
        folder: Folder(args.folder.clone()),
        mode: args.mode,
        credential_spec,
        token_file,
        schedule: Schedule::new(args.check_interval, random),
        now: OffsetDateTime::now_utc,
        last: None,
    });
    let agents: Vec<Agent> = agents.collect();
    let mut signals = Signals::install().map_err(|error| format!("cannot handle signals: {error}"))?;
    let _log = telemetry::init(&PROGRAM, log, None);
    if has_keytab {
        agents.iter().for_each(Agent::announce);
    }
    tokio::select! {
        signal = signals.next() => tracing::info!(signal, "ending"),
        _ = join_all(agents.into_iter().map(Agent::run)) => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// From 0 to 1. Without random numbers all agents wait equally long, which is acceptable.
fn random() -> f64 {
    f64::from(getrandom::u32().unwrap_or(u32::MAX)) / f64::from(u32::MAX)
}

/// Keeps a pod's tickets current, or its keytab.
struct Agent {
    verb: Verb,
    broker: Arc<BrokerClient>,
    folder: Folder,
    mode: u32,
    credential_spec: String,
    token_file: PathBuf,
    schedule: Schedule,
    now: fn() -> OffsetDateTime,
    /// The log's summary of the last answer.
    last: Option<(String, Option<u32>)>,
}

impl Agent {
    /// Leaves a note of what it waits for, so that `agent ready` does, too. Without one, tickets are meant.
    fn announce(&self) {
        if self.folder.lacks(self.verb, (self.now)()) {
            let _ = self.folder.write_status(self.verb, UNANSWERED, self.mode);
        }
    }

    async fn run(mut self) {
        loop {
            tokio::time::sleep(self.step().await).await;
        }
    }

    /// Asks once, leaves the files as they must be after the answer, and says how long to wait.
    async fn step(&mut self) -> Duration {
        let Self { verb, mode, .. } = *self;
        match self.renew().await {
            Ok(wait) => wait,
            Err(error) => {
                let reason = remark(&chain(&error));
                let is_removed = error.removes_tickets() && self.folder.remove_given(verb);
                tracing::warn!(is_removed, "no {}: {}", verb.product().name, cut_message(&reason));
                // The next answer is logged, so the last line of the log is the state.
                self.last = None;
                if let Err(error) = self.folder.write_status(verb, &reason, mode) {
                    tracing::warn!("cannot write the status into {}: {error}", self.folder.0.display());
                }
                self.schedule.after_failure(error.retry_after())
            }
        }
    }

    /// Gets tickets or a keytab, and writes them.
    async fn renew(&mut self) -> Result<Duration, AskError> {
        let given = self.broker.ask(self.verb, &self.credential_spec, &self.token_file).await?;
        let now = (self.now)();
        let until = |text: &str| {
            let time = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| AskError::Unreadable("has no valid times"))?;
            // In the past: now.
            Ok(Duration::try_from(time - now).unwrap_or_default())
        };
        let (services, expires, kvno) = given.product.described();
        let life = expires.map_or(Ok(Duration::MAX), until)?;
        let asked = until(&given.renew_after)?;
        self.folder.write(&given, self.mode, now)?;
        let last = (services, kvno);
        if self.last.as_ref() != Some(&last) {
            let (services, expires) = (cut_message(&last.0), expires.map(cut_message));
            tracing::info!(services, expires, kvno, "{} written", self.verb.product().name);
            self.last = Some(last);
        }
        Ok(self.schedule.after_tickets(life, asked))
    }
}
