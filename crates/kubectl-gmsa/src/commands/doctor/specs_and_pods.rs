//! Credential specs, and the pods that use them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Namespace;
use serde_json::Value;
use time::UtcDateTime;

use super::{
    configuration::excluded,
    install::{DoctorInput, narrowed, other_namespaces, specs},
};
use crate::shared::{
    credspecs::contents_by_name,
    directory::Source,
    output::{first_five, plural},
    pods::{ClusterPod, ContentsState, FIX_UNMATCHED},
    rules,
    unread::{Read, Unread},
    webhook::reviewing,
    world::World,
};
use gmsa_accounts::lint::credential_specs;
use gmsa_core::{
    admission::advice::same_computer::distinct,
    credspec::lint,
    diagnostic::{Check, Diagnostic, Severity},
};

pub(super) const SPECS: &str = "credential specs";
pub(super) const DIRECTORY: &str = "directory";
pub(super) const PODS: &str = "pods";
const HOST_NAMES: &str = "host names";

pub(super) async fn check_specs(world: &World) -> Read<Vec<Check>> {
    let (objects, crd) = tokio::join!(specs(world), world.find::<Value>(gmsa_cluster::crd::PATH));
    let (objects, mut checks) = (objects?, Vec::new());
    // No credential specs without the custom resource, which another check reports.
    if matches!(crd, Ok(None)) {
        return Ok(checks);
    }
    for object in &objects {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("");
        let findings = findings(object).into_iter();
        checks.extend(findings.map(|finding| Check::found(SPECS, Diagnostic { object: name.to_owned(), ..finding })));
    }
    if objects.is_empty() {
        checks.push(Check::pass(SPECS, "there are none yet: kubectl gmsa credspec new makes one"));
    } else if checks.is_empty() {
        checks.push(Check::pass(SPECS, format!("no problems found in {}", plural(objects.len(), "credential spec"))));
    }
    Ok(checks)
}

/// The linter's findings. A bundle without contents has recorded them.
fn findings(object: &Value) -> Vec<Diagnostic> {
    let Some(found) = object.get("findings").and_then(Value::as_array) else {
        return lint::object(object).into_iter().collect();
    };
    let finding = |found: &Value| {
        let text = |key: &str| found.get(key).and_then(Value::as_str).unwrap_or_default();
        let rule = rules::all().find(|rule| rule.id == text("rule"))?;
        let levels = [Severity::Note, Severity::Warning, Severity::Error];
        let severity = levels.into_iter().find(|level| level.as_str() == text("level"))?;
        let found = Diagnostic { field: text("field").to_owned(), ..Diagnostic::new(rule, rule.title) };
        Some(found.with_severity(severity))
    };
    found.iter().filter_map(finding).collect()
}

/// The fix for pods without contents.
const FIX_WITHOUT_CONTENTS: &str = "Delete each of them: its controller creates a new one. A Pod without a controller must be created again from its manifest.";

/// Whether the directories agree with the credential specs.
pub(super) async fn check_directory(world: &World, asked: &DoctorInput) -> Read<Vec<Check>> {
    let directories = asked.directories.take();
    if directories.is_empty() {
        return Ok(Vec::new());
    }
    let specs = specs(world).await;
    let found = compared(directories, specs.as_deref().unwrap_or_default()).await?;
    let count = specs?.len();
    if found.is_empty() {
        return Ok(vec![Check::pass(DIRECTORY, format!("agrees with {}", plural(count, "credential spec")))]);
    }
    Ok(found.into_iter().map(|found| Check::found(DIRECTORY, found)).collect())
}

/// Checks in the directories that the account of each credential spec exists, is enabled, and has a principal that may retrieve its
/// password, and that all fields are right. Reports directories that cannot be opened, and asks the others.
async fn compared(sources: Vec<Source>, specs: &[Value]) -> Read<Vec<Diagnostic>> {
    let unread = |error| Unread::of("read", "the directory", &error);
    let (mut directories, mut closed) = (Vec::new(), Vec::new());
    for source in sources {
        match source.open().await {
            Ok(directory) => directories.push(directory),
            Err(error) => closed.push(unread(error)),
        }
    }
    if directories.is_empty()
        && let Some(first) = closed.first()
    {
        return Err(first.clone());
    }
    let found = credential_specs(&mut directories, specs, UtcDateTime::now()).await;
    let mut list = found.map_err(|error| unread(error.into()))?;
    list.extend(closed.iter().filter_map(|unread| unread.check(DIRECTORY).result.err()));
    Ok(list)
}

pub(super) async fn check_pods(world: &World, asked: &DoctorInput) -> Read<Vec<Check>> {
    let narrowed = narrowed(world, asked).await;
    let (specs, webhooks, namespaces, pods) = tokio::join!(
        specs(world),
        world.webhooks(),
        world.list::<Namespace>("/api/v1/namespaces"),
        world.pods(narrowed.as_ref().map(|(namespace, _)| namespace.as_str())),
    );
    let specs = specs?;
    let contents = contents_by_name(specs.iter());
    let (reviewing, namespaces) = (reviewing(webhooks.unwrap_or_default()), namespaces.unwrap_or_default());
    let excluded = excluded(&namespaces, &reviewing).unwrap_or_default();
    let mut by_state: BTreeMap<ContentsState, Vec<String>> = BTreeMap::new();
    let (mut checks, mut unparsed, mut hostnames) = (Vec::new(), 0_usize, HostNames::default());
    for json in pods?.iter() {
        let Ok(pod) = ClusterPod::read(json) else {
            unparsed += 1;
            continue;
        };
        if pod.has_ended() {
            continue;
        }
        hostnames.add(&pod);
        let (namespace, name) = pod.place();
        let note = if excluded.contains(&namespace) { " (not reviewed by the webhook)" } else { "" };
        let pods = by_state.entry(ContentsState::of(&pod.admission, &contents)).or_default();
        pods.push(format!("{namespace}/{name}{note}"));
    }
    for (state, pods) in &by_state {
        let (count, names) = (pods.len(), first_five(pods));
        checks.push(match state {
            ContentsState::NoGmsa | ContentsState::UpToDate => continue,
            ContentsState::WithoutContents => {
                let text = format!("{count} name a credential spec and carry no contents: {names}");
                Check::found(PODS, Diagnostic::new(&rules::NAME_WITHOUT_CONTENTS, text).with_fix(FIX_WITHOUT_CONTENTS))
            }
            ContentsState::Outdated => {
                let text = format!("{count} carry other contents than their credential spec has now: {names}");
                Check::breach(PODS, &rules::CONTENTS_OUTDATED, text)
            }
            ContentsState::Unmatched => {
                let text =
                    format!("{count} carry contents, and there is no credential spec to compare them with: {names}");
                Check::found(PODS, Diagnostic::new(&rules::CONTENTS_OUTDATED, text).with_fix(FIX_UNMATCHED))
            }
        });
    }
    if unparsed > 0 {
        let unread = Diagnostic::new(&rules::NOT_CHECKED, format!("{unparsed} could not be parsed"));
        checks.push(Check::found(PODS, unread.with_fix("use a newer version of kubectl gmsa")));
    }
    checks.extend(other_namespaces(PODS, narrowed.as_ref()));
    if checks.is_empty() {
        let text = match by_state.get(&ContentsState::UpToDate).map_or(0, Vec::len) {
            0 => "none uses GMSA yet".to_owned(),
            1 => "1 uses GMSA, with up-to-date contents".to_owned(),
            count => format!("{count} use GMSA, all with up-to-date contents"),
        };
        checks.push(Check::pass(PODS, text));
    }
    checks.extend(hostnames.check());
    Ok(checks)
}

/// The pods by credential spec and by the significant part of their host names. Pods with the same pair look like one computer.
#[derive(Default)]
struct HostNames(BTreeMap<(String, String), Vec<String>>);

impl HostNames {
    fn add(&mut self, pod: &ClusterPod) {
        let (namespace, name) = pod.place();
        // The default host name is the name of the pod.
        let hostname = distinct(pod.admission.hostname().unwrap_or(name));
        let specs: BTreeSet<&str> = pod.admission.slots().filter_map(|slot| slot.name).collect();
        for spec in specs.into_iter().filter(|_| !pod.admission.is_linux()) {
            self.0.entry((spec.to_owned(), hostname.clone())).or_default().push(format!("{namespace}/{name}"));
        }
    }

    /// `None` if all host names are distinct.
    fn check(self) -> Option<Check> {
        let alike: BTreeSet<String> = self.0.into_values().filter(|pods| pods.len() > 1).flatten().collect();
        if alike.is_empty() {
            return None;
        }
        let (count, names) = (alike.len(), first_five(alike));
        let text = format!(
            "{count} pods share a credential spec and the first 15 characters of their host names with another, so they can lose their trust: \
             {names}"
        );
        Some(Check::breach(HOST_NAMES, &rules::SHARED_HOSTNAME, text))
    }
}
