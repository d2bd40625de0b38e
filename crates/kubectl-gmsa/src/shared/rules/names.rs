//! The names that a remedy is filled in with.
//!
//! Invariant: a name becomes part of a command only where it is one, in quotes where its shell gives it a meaning.

use gmsa_core::{
    admission::{
        Denial,
        pod::{Pod, Slot},
    },
    credspec::{domain_join::DomainJoinConfig, is_dns_label, is_dns_subdomain},
    quote::shell::{cmd, powershell},
};
use serde_json::Value;

use super::{FixTarget, Reading};
use crate::shared::{installer::Installer, workloads::Kind};

/// What is known of the objects that a breach is about. They can be from any source.
#[derive(Clone, Copy, Default)]
pub struct Names<'n> {
    pub spec: Option<&'n str>,
    /// The credential spec of nearly that name, which exists.
    pub nearest: Option<&'n str>,
    pub namespace: Option<&'n str>,
    /// The service account of the pod.
    pub service_account: Option<&'n str>,
    pub node: Option<&'n str>,
    /// The name of the Pod.
    pub pod_name: Option<&'n str>,
    /// The group Managed Service Account.
    pub account: Option<&'n str>,
    /// The DNS name of its domain.
    pub domain: Option<&'n str>,
    /// The service principal name that a ticket was asked for.
    pub principal: Option<&'n str>,
    pub pod: Option<&'n Pod>,
    /// The slot of the pod that is meant.
    pub slot: Option<&'n Slot<'n>>,
    /// Whether the pod exists.
    pub exists: bool,
    /// Whose pods are meant.
    pub target: Option<FixTarget<'n>>,
    /// Who installed the webhook.
    pub installer: Option<&'n Installer>,
    /// The namespace and the name of the Deployment of the webhook.
    pub webhook: Option<(&'n str, &'n str)>,
    /// What the API server, or the webhook, said.
    pub said: &'n str,
    /// The same as it was read already: a paste is read once.
    pub readings: &'n [&'n Reading],
}

impl<'n> Names<'n> {
    /// The names that a decision of ours is about.
    pub fn of_denial(denial: &'n Denial) -> Self {
        let spec = match denial {
            Denial::SpecMissing(spec)
            | Denial::SpecUnusable(spec)
            | Denial::NotAuthorized { spec, .. }
            | Denial::ContentsDiffer { spec, .. }
            | Denial::NameWithoutContents { spec, .. } => Some(spec.as_str()),
            _ => None,
        };
        Self { spec, ..Self::default() }
    }

    /// The names that a refusal, a line of this program or what `kubectl describe pod` prints holds.
    pub fn of_refusal(said: &'n str) -> Self {
        let after = |start: &str, end: &[char]| said.split_once(start)?.1.split(end).next();
        // The columns of a description begin at the margin.
        let described =
            |key: &str| only(said.lines().filter_map(|line| line.strip_prefix(key)?.split_whitespace().next()));
        // `Deployment shop/web: pod web-1-a: …`
        let is_kind = |word: &str| Kind::ALL.iter().any(|kind| kind.as_str() == word);
        let words = || said.split_whitespace();
        let of_workloads = words().zip(words().skip(1)).filter(|(kind, _)| is_kind(kind));
        let of_workload = only(of_workloads.filter_map(|(_, name)| Some(name.strip_suffix(':')?.split_once('/')?.0)));
        let of_pod = only(said.split(": pod ").skip(1).filter_map(|rest| rest.split(':').next()));
        // `shop:web may not use webapp1`
        let of_permission = || said.split_once(" may not use ")?.0.split_whitespace().next_back()?.split_once(':');
        let account = after("error looking up service account ", &[':', ' ']).and_then(|name| name.split_once('/'));
        let (namespace, service_account) = account.or_else(of_permission).unzip();
        let namespace = namespace.or_else(|| after("in the namespace \"", &['"'])).or_else(|| described("Namespace:"));
        let spec = after("GMSA cred spec \"", &['"']).or_else(|| after("GMSA resource \"", &['"']));
        let spec = spec.or_else(|| after("cred spec ", &[' ', ':'])).or_else(|| after(" may not use ", &[' ', '\n']));
        let node = described("Node:").and_then(|node| node.split('/').next());
        Self {
            spec,
            namespace: namespace.or(of_workload),
            service_account: service_account
                .or_else(|| after("service account \"", &['"']))
                .or_else(|| described("Service Account:")),
            node,
            // Other objects have a name and no node.
            pod_name: node.and(described("Name:")).or(of_pod),
            said,
            ..Self::default()
        }
    }

    /// With the account and the domain that the contents of a pod are for: `contents` as JSON.
    #[must_use]
    pub fn of_contents(self, contents: &'n Value) -> Self {
        let DomainJoinConfig { machine_account_name: account, dns_name: domain, .. } = DomainJoinConfig::of(contents);
        Self { account, domain, ..self }
    }

    /// The name that a word in a command of a remedy stands for, as a word of that command.
    fn word(&self, placeholder: &str) -> Option<String> {
        let plain =
            |name: Option<&str>, is_name: fn(&str) -> bool| name.filter(|name| is_name(name)).map(str::to_owned);
        match placeholder {
            "SPEC" => plain(self.spec, is_dns_subdomain),
            "NAMESPACE" => plain(self.namespace, is_dns_label),
            "SERVICEACCOUNT" => plain(self.service_account, is_dns_subdomain),
            "NODE" => plain(self.node, is_dns_subdomain),
            "OBJECT" => plain(self.named(), is_dns_subdomain),
            "KEY" => plain(self.key(), is_key),
            "POD" => plain(self.pod_name, is_dns_subdomain),
            "NAME" => powershell(self.account?),
            "DOMAIN" => cmd(self.domain?),
            "SPN" => cmd(self.principal?),
            _ => None,
        }
    }

    /// The object of another kind that a kubelet, the scheduler or the API server names.
    fn named(&self) -> Option<&'n str> {
        let kinds = [
            "configmap \"",
            "secret \"",
            "persistentvolumeclaim \"",
            "RuntimeClass \"",
            "runtime class \"",
            "no PriorityClass with name ",
            "image pull secrets (",
        ];
        let rest = kinds.iter().find_map(|kind| self.said.split_once(kind)).map(|(_, rest)| rest);
        let of_key =
            || ["in ConfigMap ", "in Secret "].iter().find_map(|of| self.said.split_once(of)?.1.split_once('/'));
        rest.or_else(|| of_key().map(|(_, name)| name))?.split(['"', ' ', ')', ',', ';']).next()
    }

    /// The key of a ConfigMap or Secret that a kubelet misses.
    fn key(&self) -> Option<&'n str> {
        self.said.split_once("couldn't find key ")?.1.split(' ').next()
    }

    /// A remedy with these names in its commands; `None` if nothing was filled in.
    pub(super) fn filled(&self, remedy: &str) -> Option<String> {
        // The name with which an account logs on ends with `$`, which PowerShell would expand without the quotes.
        let logon = self.account.and_then(|account| powershell(&format!("{account}$")));
        let command = |text: &str| {
            let parts: Vec<String> = text.split("'NAME$'").map(|part| self.filled_words(part)).collect();
            parts.join(logon.as_deref().unwrap_or("'NAME$'"))
        };
        let parts = remedy.split('`').enumerate();
        let parts: Vec<String> =
            parts.map(|(index, part)| if index % 2 == 1 { command(part) } else { part.to_owned() }).collect();
        Some(parts.join("`")).filter(|filled| filled != remedy)
    }

    fn filled_words(&self, text: &str) -> String {
        let is_between = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        // Each part is a word, and what ends it.
        let filled = |part: &str| {
            let word = part.trim_end_matches(is_between);
            let named = self.word(word).zip(part.strip_prefix(word));
            named.map_or_else(|| part.to_owned(), |(name, end)| name + end)
        };
        text.split_inclusive(is_between).map(filled).collect()
    }
}

/// The name, if all of these are the same: a text about several Pods means no single one.
fn only<'n>(mut names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let first = names.next()?;
    names.all(|name| name == first).then_some(first)
}

/// Whether a ConfigMap can have such a key.
fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

/// What to do about a breach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    run: Option<String>,
    write: Option<String>,
}

impl Fix {
    /// What to do in a cluster: a sentence, with its commands in backquotes.
    pub fn run(text: impl Into<String>) -> Self {
        Self { run: Some(text.into()), write: None }
    }

    /// What to write into a manifest.
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
