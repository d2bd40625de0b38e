//! `check`: decides about every pod in some manifests, or in a cluster, as the webhook would.
//!
//! Invariants: the decisions are the server's own, made by the same code from the same facts; only where the facts
//! come from differs: the manifests, another folder of them, or the cluster. Nothing is created in a cluster: the requests that are not
//! reads are access reviews.

use std::{
    collections::{HashMap, HashSet},
    io::{self, Write as _},
    path::PathBuf,
    sync::Arc,
};

use anyhow::bail;
use clap::Args;
use serde_json::Value;

use crate::shared::{
    Outcome,
    admission::{FactFinder, fact_finder},
    connection::{Connection, block_on},
    credspecs, input,
    output::{Filter, Format, Report, Style, first_five},
    print, rules,
    snapshot::{From, Snapshot},
};
use gmsa_cluster::{
    authorizer::rbac::Rbac,
    manifests::{Document, Manifests},
    resolver::manifests::CredentialSpecs,
};
use gmsa_core::diagnostic::{Diagnostic, Severity};

mod argo;
mod builds;
mod elsewhere;
mod hostnames;
mod misspelt;
mod near_miss;
mod pods;
mod pointer;
mod refused;
mod search;
mod surroundings;
mod template;
mod workloads;

use search::Search;
use surroundings::Surroundings;
use template::CheckedPod;

const EXAMPLES: &str = "Examples:
  # Check the manifests of a folder
  kubectl gmsa check -f manifests/

  # Check what Helm renders against the cluster
  helm template shop | kubectl gmsa check -f - --live

  # Check the workloads of the whole cluster
  kubectl gmsa check -A";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct Options {
    /// A file, folder or pattern, or - for stdin; repeatable
    #[arg(long = "filename", short, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Taken as kubectl takes it: folders are always read with those in them
    #[arg(long, short = 'R', hide_short_help = true)]
    recursive: bool,
    /// Check the workloads of all namespaces of the cluster
    ///
    /// Those of one namespace are checked with --namespace and without -f
    #[arg(long, short = 'A', conflicts_with_all = ["files", "state", "patched"])]
    all_namespaces: bool,
    /// Take credential specs and RBAC from here
    ///
    /// A file, a folder, or - for standard input, instead of the manifests
    #[arg(long, value_name = "DIR", conflicts_with_all = ["live", "from"])]
    state: Option<PathBuf>,
    /// Ask the cluster for credential specs and permissions
    ///
    /// And for webhooks, service accounts, runtime classes and the builds of nodes. What is in the cluster is always checked so
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    from: From,
    /// Print manifests as the API server would store them
    ///
    /// The report is then on standard error
    #[arg(long, conflicts_with = "output")]
    patched: bool,
    /// Print table, json, sarif or github
    ///
    /// sarif is for code scanning, github for the log of a GitHub workflow
    #[arg(long, short, value_enum, default_value = "table", hide_possible_values = true)]
    output: Format,
    #[command(flatten)]
    filter: Filter,
}

/// What is checked.
enum Scope<'o> {
    Files,
    AllNamespaces,
    Namespace(&'o str),
}

impl<'o> Scope<'o> {
    fn of(options: &Options, connection: &'o Connection) -> anyhow::Result<Self> {
        match connection.asked_namespace() {
            _ if options.all_namespaces => Ok(Self::AllNamespaces),
            _ if !options.files.is_empty() => Ok(Self::Files),
            Some(_) if options.state.is_some() || options.patched => {
                bail!("--state and --patched are for manifests: name them (-f)")
            }
            Some(namespace) => Ok(Self::Namespace(namespace)),
            None => bail!(
                "nothing to check: name manifests (-f FILE), or check the workloads of the live cluster, in all namespaces (-A) or in \
                 one (-n NAMESPACE)"
            ),
        }
    }
}

pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let scope = Scope::of(options, connection)?;
    let mut report = Report::default();
    let mut documents = match scope {
        Scope::Files => manifests(options, &mut report),
        Scope::AllNamespaces | Scope::Namespace(_) => Vec::new(),
    };
    let patched = block_on(async {
        let snapshot = match scope {
            Scope::Files if !options.live && !options.from.is_named() => None,
            _ => Some(options.from.open(connection).await?),
        };
        match (scope, &snapshot) {
            (Scope::AllNamespaces, Some(snapshot)) => documents = workloads::read(snapshot, None, &mut report).await?,
            (Scope::Namespace(name), Some(snapshot)) => {
                documents = workloads::read(snapshot, Some(name), &mut report).await?;
            }
            _ => {}
        }
        report.documents = documents.len();
        let (mut finder, mut surroundings, namespace) =
            sources(options, connection, snapshot, &documents, &mut report).await;
        // The objects that would be stored differently, by position.
        let mut patched = HashMap::new();
        for (place, document) in documents.iter().enumerate() {
            report.findings.extend(misspelt::kind(document));
            if credspecs::is_credential_spec(document) {
                report.findings.extend(credspecs::findings(document));
                continue;
            }
            if let Some(stored) = pods_of(document, &namespace, &mut finder, &mut surroundings, &mut report).await {
                patched.insert(place, stored);
            }
        }
        // These are beside the question: the answers about credential specs hold.
        report.findings.extend(surroundings.unchecked.into_iter().map(|(cause, about)| {
            Diagnostic {
                object: first_five(&about),
                ..Diagnostic::new(&rules::NOT_CHECKED, format!("could not be checked: {cause}"))
                    .with_severity(Severity::Note)
            }
        }));
        Ok(patched)
    })?;
    if !options.patched {
        return report.print(options.output, &options.filter);
    }
    let (text, outcome) = report.render(Format::Table, &options.filter, Style::PLAIN)?;
    print(&stream(&documents, &patched)?)?;
    io::stderr().write_all(text.as_bytes())?;
    Ok(outcome)
}

/// The objects of the files.
fn manifests(options: &Options, report: &mut Report) -> Vec<Document> {
    let Manifests { documents, mut problems, foreign } = input::manifests(&options.files);
    input::expect(documents.len(), "Kubernetes object", &mut problems, &options.files);
    report.findings = problems;
    report.findings.extend(foreign);
    documents
}

/// Checks the pods of a document; returns it as it would be stored, where it is a pod itself.
async fn pods_of(
    document: &Document,
    namespace: &str,
    finder: &mut FactFinder,
    surroundings: &mut Surroundings,
    report: &mut Report,
) -> Option<Value> {
    let Search { found, more, .. } = Search::of(&document.value);
    report.findings.extend(elsewhere::findings(document, &found, namespace));
    let mut stored = None;
    for one in &found {
        let pod = CheckedPod::new(document, one, namespace, found.len() == 1);
        stored = pods::check(&pod, finder, surroundings, report).await;
    }
    if let Some(one) = found.first().filter(|_| more > 0) {
        let pod = CheckedPod::new(document, one, namespace, false);
        let text = format!("{more} more pod templates of this object are not checked");
        let fix = "write them as objects of their own";
        report.findings.push(pod.finding_at(&rules::NOT_CHECKED, "", text).with_fix(fix));
    }
    stored
}

/// The sources of facts, and the namespace of objects that name none.
async fn sources(
    options: &Options,
    connection: &Connection,
    snapshot: Option<Snapshot>,
    documents: &[Document],
    report: &mut Report,
) -> (FactFinder, Surroundings, String) {
    if let Some(snapshot) = snapshot {
        let finder = fact_finder(&snapshot).await;
        let namespace = snapshot.namespace.clone();
        return (finder, Surroundings::new(documents, &namespace, Some(snapshot)), namespace);
    }
    let state = options.state.as_ref().map(|path| input::manifests(std::slice::from_ref(path)));
    let documents = match &state {
        Some(found) => {
            report.findings.extend(found.problems.clone());
            &found.documents
        }
        None => documents,
    };
    let (specs, refused_specs) = CredentialSpecs::from_documents(documents);
    let (rbac, refused_rbac) = Rbac::from_documents(documents);
    // The linter reports more about a credential spec among the manifests.
    let specs_problems = if state.is_some() { refused_specs } else { only_duplicates(refused_specs, documents) };
    report.findings.extend(specs_problems.into_iter().chain(refused_rbac).map(refused));
    let namespace = connection.offline_namespace().to_owned();
    let surroundings = Surroundings::new(documents, &namespace, None);
    (FactFinder::new(Arc::new(specs), Arc::new(rbac), connection.timeout()), surroundings, namespace)
}

/// The problems that the linter does not find: it checks each credential spec alone.
fn only_duplicates(problems: Vec<Diagnostic>, documents: &[Document]) -> Vec<Diagnostic> {
    let linted: HashSet<_> = documents
        .iter()
        .filter(|document| credspecs::is_credential_spec(document))
        .filter(|document| credspecs::findings(document).any(|finding| finding.severity == Severity::Error))
        .map(|document| (&document.location.file, document.location.position.map(|position| position.document)))
        .collect();
    let place = |problem: &Diagnostic| {
        let location = problem.location.as_ref()?;
        Some(linted.contains(&(&location.file, location.position.map(|position| position.document))))
    };
    let is_new = |problem: &Diagnostic| place(problem) != Some(true);
    problems.into_iter().filter(is_new).collect()
}

/// The problem of an object that the API server would refuse.
fn refused(problem: Diagnostic) -> Diagnostic {
    let position = problem.location.as_ref().and_then(|location| location.position);
    Diagnostic {
        object: position.map_or_else(String::new, |position| format!("document {}", position.document)),
        consequence: Some("the API server refuses the object, so it has no effect here"),
        ..problem
    }
}

/// All documents as they would be stored, as one YAML stream.
fn stream(documents: &[Document], patched: &HashMap<usize, Value>) -> anyhow::Result<Vec<u8>> {
    let mut out = Vec::new();
    for (place, document) in documents.iter().enumerate() {
        if place > 0 {
            out.extend_from_slice(b"---\n");
        }
        let stored = patched.get(&place).unwrap_or(&document.value);
        out.extend_from_slice(serde_saphyr::to_string(stored)?.as_bytes());
    }
    Ok(out)
}
