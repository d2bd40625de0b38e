//! The names that replace placeholders in a remedy, and remedies for an object: a command if that is enough, otherwise a change in the manifest.
//!
//! Invariant: only a valid name becomes part of a command, quoted if its characters have a meaning to the shell; a value cannot break out of its quotes.

use gmsa_core::{
    admission::{
        Denial,
        pod::{Pod, Slot},
    },
    credspec::{Verb, domain_join::DomainJoinConfig, is_dns_label, is_dns_subdomain},
    quote::shell::{self, cmd, powershell},
};
use serde_json::{Value, json};

use super::Reading;
use crate::shared::{installer::Installer, kinds::Kind};

/// The command that shows a pod.
pub(super) const SHOW_POD: &str = "kubectl describe pod POD --namespace NAMESPACE";

/// The same for a pod that is deleted before its remedy is read.
const SHOW_EVENTS: &str = "kubectl get events --namespace NAMESPACE --field-selector involvedObject.name=POD";

/// The name of the webhook's Service.
const SERVICE: &str = "NAME.NAMESPACE.svc";

/// The known names of the objects of a finding. They may come from any source.
#[derive(Clone, Copy, Default)]
pub struct Names<'n> {
    pub spec: Option<&'n str>,
    /// The action that was not permitted.
    pub verb: Option<Verb>,
    /// The most similar name of an existing credential spec.
    pub nearest: Option<&'n str>,
    pub namespace: Option<&'n str>,
    /// The service account of the pod.
    pub service_account: Option<&'n str>,
    pub runtime_class: Option<&'n str>,
    pub node: Option<&'n str>,
    /// The name of the Pod.
    pub pod_name: Option<&'n str>,
    /// The group Managed Service Account.
    pub account: Option<&'n str>,
    /// The DNS name of its domain.
    pub domain: Option<&'n str>,
    /// The service principal name of the requested ticket.
    pub principal: Option<&'n str>,
    pub pod: Option<&'n Pod>,
    /// The slot of the pod.
    pub slot: Option<&'n Slot<'n>>,
    /// The object to change.
    pub target: Option<FixTarget<'n>>,
    /// The installer of the webhook.
    pub installer: Option<&'n Installer>,
    /// The namespace and the name of the Deployment of the webhook.
    pub webhook: Option<(&'n str, &'n str)>,
    /// The message of the API server or the webhook.
    pub said: &'n str,
    /// Readings of the message: a paste is read only once.
    pub readings: &'n [&'n Reading],
}

impl<'n> Names<'n> {
    /// The names in a denial of this pod.
    pub fn of_denied(denial: &'n Denial, pod: &'n Pod, namespace: &'n str) -> Self {
        let spec = match denial {
            Denial::SpecMissing(spec)
            | Denial::SpecUnusable(spec)
            | Denial::NotAuthorized { spec, .. }
            | Denial::ContentsDiffer { spec, .. }
            | Denial::NameWithoutContents { spec, .. } => Some(spec.as_str()),
            _ => None,
        };
        let verb = if let Denial::NotAuthorized { verb, .. } = denial { Some(*verb) } else { None };
        let (namespace, service_account) = (Some(namespace), Some(pod.service_account()));
        Self { spec, verb, namespace, service_account, pod: Some(pod), ..Self::default() }
    }

    /// The names in a refusal, or in the output of `kubectl describe pod`.
    pub fn of_refusal(said: &'n str) -> Self {
        let after = |start: &str, end: &[char]| said.split_once(start)?.1.split(end).next();
        // The keys of a description start at the margin.
        let described =
            |key: &str| only(said.lines().filter_map(|line| line.strip_prefix(key)?.split_whitespace().next()));
        let verb = Verb::ALL.into_iter().find(|verb| said.contains(&format!("authorized to `{}`", verb.as_str())));
        let account = after("error looking up service account ", &[':', ' ']).and_then(|name| name.split_once('/'));
        let (namespace, service_account) = account.unzip();
        let namespace = namespace.or_else(|| after("in the namespace \"", &['"'])).or_else(|| described("Namespace:"));
        let spec = after("GMSA cred spec \"", &['"']).or_else(|| after("GMSA resource \"", &['"']));
        let node = described("Node:").and_then(|node| node.split('/').next());
        Self {
            spec: spec.or_else(|| after("cred spec ", &[' ', ':'])),
            verb,
            namespace,
            service_account: service_account
                .or_else(|| after("service account \"", &['"']))
                .or_else(|| described("Service Account:")),
            node,
            // Only pods have a node.
            pod_name: node.and(described("Name:")),
            said,
            ..Self::default()
        }
    }

    /// Adds the account and the domain from the contents of a pod: `contents` is JSON.
    #[must_use]
    pub fn of_contents(self, contents: &'n Value) -> Self {
        let DomainJoinConfig { machine_account_name: account, dns_name: domain, .. } = DomainJoinConfig::of(contents);
        Self { account, domain, ..self }
    }

    /// The value of a placeholder in a command, as a word of that command.
    fn word(&self, placeholder: &str) -> Option<String> {
        let plain =
            |name: Option<&str>, is_name: fn(&str) -> bool| name.filter(|name| is_name(name)).map(str::to_owned);
        match placeholder {
            "SPEC" => plain(self.spec, is_dns_subdomain),
            "NAMESPACE" => plain(self.namespace, is_dns_label),
            "SERVICEACCOUNT" => plain(self.service_account, is_dns_subdomain),
            "NODE" => plain(self.node, is_dns_subdomain),
            "RUNTIMECLASS" => plain(self.runtime_class(), is_dns_subdomain),
            // The namespace of the webhook's Service, or else the usual one.
            "WEBHOOKNAMESPACE" => {
                plain(Some(self.service().map_or("gmsa-webhook", |(namespace, _)| namespace)), is_dns_label)
            }
            "POD" => plain(self.pod_name, is_dns_subdomain),
            "NAME" => powershell(self.account?),
            "DOMAIN" => cmd(self.domain?),
            "SPN" => cmd(self.principal?),
            _ => None,
        }
    }

    /// The runtime class, or the one in a message of a kubelet or the API server.
    fn runtime_class(&self) -> Option<&'n str> {
        let rest = || ["RuntimeClass \"", "runtime class \""].iter().find_map(|kind| self.said.split_once(kind));
        self.runtime_class.or_else(|| rest()?.1.split('"').next())
    }

    /// The namespace and the name of the webhook's Service: the known ones, or those in the URL of a call that failed,
    /// `Post "https://gmsa.windows.svc:443/mutate`.
    fn service(&self) -> Option<(&'n str, &'n str)> {
        let called = || {
            let (service, _) = self.said.split_once("https://")?.1.split_once(".svc")?;
            service.split_once('.').map(|(name, namespace)| (namespace, name))
        };
        self.webhook.or_else(called).filter(|(namespace, name)| is_dns_label(namespace) && is_dns_subdomain(name))
    }

    /// A remedy with these names in its commands; `None` if no placeholder was replaced.
    pub(super) fn filled(&self, remedy: &str) -> Option<String> {
        // The logon name of an account ends with `$`, which PowerShell would expand without quotes.
        let logon = self.account.and_then(|account| powershell(&format!("{account}$")));
        let is_between = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        // Each part is a word, and what ends it.
        let filled = |part: &str| {
            let word = part.trim_end_matches(is_between);
            let named = self.word(word).zip(part.strip_prefix(word));
            named.map_or_else(|| part.to_owned(), |(name, end)| name + end)
        };
        let command = |text: &str| {
            let text = match text {
                SHOW_POD if matches!(self.target, Some(FixTarget::Probe { .. })) => SHOW_EVENTS,
                // The namespace of a workload differs from the webhook's.
                SERVICE => match self.service() {
                    Some((namespace, name)) => return format!("{name}.{namespace}.svc"),
                    None => return text.to_owned(),
                },
                _ => text,
            };
            let words = |text: &str| text.split_inclusive(is_between).map(filled).collect();
            let parts: Vec<String> = text.split("'NAME$'").map(words).collect();
            parts.join(logon.as_deref().unwrap_or("'NAME$'"))
        };
        let parts = remedy.split('`').enumerate();
        let parts: Vec<String> =
            parts.map(|(index, part)| if index % 2 == 1 { command(part) } else { part.to_owned() }).collect();
        Some(parts.join("`")).filter(|filled| filled != remedy)
    }
}

/// The name, if all of these are equal. A text about several Pods has no single name.
fn only<'n>(mut names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let first = names.next()?;
    names.all(|name| name == first).then_some(first)
}

/// The remedy for a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    run: Option<String>,
    write: Option<String>,
}

impl Fix {
    /// A change in a cluster: a sentence with commands in backquotes.
    pub fn run(text: impl Into<String>) -> Self {
        Self { run: Some(text.into()), write: None }
    }

    /// A change in a manifest.
    pub fn write(text: impl Into<String>) -> Self {
        Self { run: None, write: Some(text.into()) }
    }

    #[must_use]
    pub fn or_run(self, text: Option<String>) -> Self {
        Self { run: text, ..self }
    }

    /// For a user with access to the cluster.
    pub fn in_cluster(self) -> Option<String> {
        self.run
    }

    /// For a user with the manifest.
    pub fn in_manifest(self) -> Option<String> {
        self.write.or(self.run)
    }
}

/// The object that a remedy is about: the pods of a workload, a pod without a known controller, or the pod of `probe`, which is deleted before the
/// remedy is read.
#[derive(Clone, Copy)]
pub enum FixTarget<'w> {
    Workload { kind: Kind, namespace: &'w str, name: &'w str },
    Pod { namespace: &'w str },
    Probe { namespace: &'w str },
}

impl FixTarget<'_> {
    fn namespace(&self) -> &str {
        match self {
            Self::Workload { namespace, .. } | Self::Pod { namespace } | Self::Probe { namespace } => namespace,
        }
    }

    /// The remedy that sets the fields of `spec` in the spec of its pods. Lists, except of containers, replace existing lists.
    pub fn change(&self, spec: &Value) -> String {
        let yaml = spec.to_string();
        let Self::Workload { kind, namespace, name } = self else {
            return format!(
                "Set {yaml} in the spec of its Pod template, or in its manifest, and create the Pod again."
            );
        };
        if !kind.facts().follows_template {
            return format!("Set {yaml} in the spec of its Pod template, then delete it and create it again.");
        }
        let way = kind.facts().template.split('/').skip(1).collect::<Vec<_>>();
        let below = way.into_iter().rev().fold(json!({"spec": spec}), |below, key| json!({key: below}));
        let patch = shell::json(&below.to_string()).filter(|_| is_dns_label(namespace) && is_dns_subdomain(name));
        let Some(patch) = patch else { return format!("Set {yaml} in the spec of its Pod template.") };
        let kind = kind.as_str().to_ascii_lowercase();
        format!("`kubectl patch {kind} {name} --namespace {namespace} --patch {patch}`.")
    }

    /// A command about a pod in its namespace; `None` if a name is invalid.
    pub fn command(&self, verb: &str, pod: &str, more: &str) -> Option<String> {
        let namespace = self.namespace();
        (is_dns_label(namespace) && is_dns_subdomain(pod))
            .then(|| format!("`kubectl {verb} {pod} --namespace {namespace}{more}`"))
    }
}
