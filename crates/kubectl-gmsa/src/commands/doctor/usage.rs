//! Credential specs, and the pods that use them.

use std::collections::{BTreeSet, HashMap};

use serde::Deserialize as _;
use serde_json::{Value, value::RawValue};

use super::{found, hostnames::HostNames, not_checked};
use crate::shared::{
    connection::{Cluster, is_missing},
    output::first_five,
    pods::{ClusterPod, ContentsState, FIX_UNMATCHED, contents_by_name},
    rules::{self, Names},
};
use gmsa_cluster::resolver::live::collection;
use gmsa_core::{
    credspec::{Contents, CredentialSpec, is_dns_subdomain, lint},
    diagnostic::{Check, Diagnostic},
};

pub(super) const SPECS: &str = "credential specs";
const PODS: &str = "pods";

/// What both are checked by.
pub(super) struct Read {
    specs: anyhow::Result<Vec<Value>>,
    pub pods: anyhow::Result<Vec<Box<RawValue>>>,
}

impl Read {
    /// The credential specs, where they could be read.
    pub(super) fn specs(&self) -> &[Value] {
        self.specs.as_deref().unwrap_or_default()
    }

    /// The domains of the credential specs, in lower case. A name that is none is a finding of the linter.
    pub(super) fn domains(&self) -> BTreeSet<String> {
        let specs = self.specs.iter().flatten();
        let names = specs.filter_map(|spec| spec.pointer("/credspec/DomainJoinConfig/DnsName")?.as_str());
        let names = names.map(|name| name.strip_suffix('.').unwrap_or(name).to_lowercase());
        names.filter(|name| is_dns_subdomain(name)).collect()
    }
}

pub(super) async fn read(cluster: &Cluster) -> Read {
    let specs = collection();
    let (specs, pods) = tokio::join!(cluster.list(&specs), cluster.list("/api/v1/pods"));
    Read { specs, pods }
}

/// Checks both. `excluded` are the namespaces that the webhook does not review.
pub(super) fn add_checks(Read { specs, pods }: &Read, excluded: &[String], checks: &mut Vec<Check>) {
    let objects: &[Value] = match specs {
        Ok(objects) => {
            check_specs(objects, checks);
            objects
        }
        // If the CRD is missing, which another check reports, there are no credential specs.
        Err(error) if is_missing(error) => &[],
        Err(error) => return checks.push(not_checked(SPECS, error)),
    };
    let contents = contents_by_name(objects.iter().filter_map(|object| CredentialSpec::deserialize(object).ok()));
    match pods {
        Ok(pods) => check_pods(pods, &contents, excluded, checks),
        Err(error) => checks.push(not_checked(PODS, error)),
    }
}

fn check_specs(objects: &[Value], checks: &mut Vec<Check>) {
    let before = checks.len();
    for object in objects {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("");
        let findings = lint::object(object).into_iter();
        checks.extend(findings.map(|finding| Check::found(SPECS, Diagnostic { object: name.to_owned(), ..finding })));
    }
    if objects.is_empty() {
        checks.push(Check::pass(SPECS, "there are none yet: kubectl gmsa credspec new makes one"));
    } else if checks.len() == before {
        let (count, plural) = (objects.len(), if objects.len() == 1 { "" } else { "s" });
        checks.push(Check::pass(SPECS, format!("no problems found in {count} credential spec{plural}")));
    }
}

fn check_pods(
    pods: &[Box<RawValue>],
    contents: &HashMap<String, Contents>,
    excluded: &[String],
    checks: &mut Vec<Check>,
) {
    let before = checks.len();
    let (mut up_to_date, mut unparsed) = (0_usize, 0_usize);
    let (mut outdated, mut unmatched, mut without_contents) = (Vec::new(), Vec::new(), Vec::new());
    let mut hostnames = HostNames::default();
    for json in pods {
        let Ok(pod) = ClusterPod::read(json) else {
            unparsed += 1;
            continue;
        };
        if pod.has_ended() {
            continue;
        }
        hostnames.add(&pod);
        let (namespace, name) = pod.place();
        let is_excluded = excluded.iter().any(|name| name == namespace);
        let note = if is_excluded { " (not reviewed by the webhook)" } else { "" };
        let name = format!("{namespace}/{name}{note}");
        match ContentsState::of(&pod.admission, contents) {
            ContentsState::NoGmsa => {}
            ContentsState::UpToDate => up_to_date += 1,
            ContentsState::Outdated => outdated.push(name),
            ContentsState::Unmatched => unmatched.push(name),
            ContentsState::WithoutContents => without_contents.push(name),
        }
    }
    if !without_contents.is_empty() {
        let (count, names) = (without_contents.len(), first_five(&without_contents));
        let text = format!("{count} name a credential spec and carry no contents: {names}");
        let names = Names { exists: true, ..Names::default() };
        checks.push(Check::found(PODS, rules::found(&rules::NAME_WITHOUT_CONTENTS, text, &names)));
    }
    if !outdated.is_empty() {
        let (count, names) = (outdated.len(), first_five(&outdated));
        let text = format!("{count} carry other contents than their credential spec has now: {names}");
        checks.push(found(PODS, &rules::CONTENTS_OUTDATED, text));
    }
    if !unmatched.is_empty() {
        let (count, names) = (unmatched.len(), first_five(&unmatched));
        let text = format!("{count} carry contents, and there is no credential spec to compare them with: {names}");
        checks.push(Check::found(PODS, Diagnostic::new(&rules::CONTENTS_OUTDATED, text).with_fix(FIX_UNMATCHED)));
    }
    if unparsed > 0 {
        let text = format!("{unparsed} could not be parsed");
        let fix = "use a newer version of kubectl gmsa";
        checks.push(Check::found(PODS, Diagnostic::new(&rules::NOT_CHECKED, text).with_fix(fix)));
    }
    if checks.len() == before {
        let text = match up_to_date {
            0 => "none uses GMSA yet".to_owned(),
            1 => "1 uses GMSA, with up-to-date contents".to_owned(),
            count => format!("{count} use GMSA, all with up-to-date contents"),
        };
        checks.push(Check::pass(PODS, text));
    }
    checks.extend(hostnames.check());
}
