//! The webhooks' decision about a pod, made by their own code, from the facts of a cluster, a bundle or manifests. Each fact is looked
//! up once in a run.

use std::{borrow::Cow, cell::RefCell, collections::HashMap, sync::Arc, time::Duration};

use anyhow::Context as _;
use futures::future::join_all;
use k8s_openapi::api::core::v1::Namespace;
use serde_json::Value;
use tokio::time::Instant;

use super::{Base, World};
use crate::shared::{
    admission::{NewPod, Reviewed},
    unread::{OTHER_BUNDLE, Read, Remedy, Unread},
};
use gmsa_cluster::{
    authorizer::{Authorization, Authorizer, rbac::Rbac},
    manifests::{Document, Manifests},
    resolver::{Freshness, Resolved, Resolver, live::collection, manifests::CredentialSpecs},
};
use gmsa_core::{
    admission::{
        Decision, Denial, Enforcement, Fact, Failure, Known, Question, ServiceAccount, Settings, Sidecar, SlotDenial,
        Source, TicketSettings,
    },
    credspec::{GROUP, KIND, SpecName, VERSION, Verb, is_dns_subdomain},
};

const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

/// The kinds of RBAC objects.
const KINDS: [(&str, &str); 4] = [
    ("ClusterRole", "clusterroles"),
    ("Role", "roles"),
    ("ClusterRoleBinding", "clusterrolebindings"),
    ("RoleBinding", "rolebindings"),
];

/// Whether a look-up failed here: only failures have a code from 500 on. The webhook looks up as another user from another place, so it
/// may succeed.
pub fn is_unchecked(denial: &Denial) -> bool {
    denial.code() >= 500
}

/// Whether it is about the permission to use a credential spec.
pub fn is_about_use(denial: &Denial) -> bool {
    matches!(denial, Denial::NotAuthorized { .. } | Denial::AuthorizationFailed { .. })
}

/// Where facts are looked up, and those that are known.
pub(super) struct FactSource {
    resolver: Read<Arc<dyn Resolver>>,
    authorizer: Read<Arc<dyn Authorizer>>,
    /// The time limit of a call.
    timeout: Duration,
    specs: RefCell<HashMap<SpecName, Resolved>>,
    uses: RefCell<HashMap<(ServiceAccount, Verb, SpecName), Authorization>>,
}

impl FactSource {
    fn new(resolver: Read<Arc<dyn Resolver>>, authorizer: Read<Arc<dyn Authorizer>>, timeout: Duration) -> Self {
        Self { resolver, authorizer, timeout, specs: RefCell::default(), uses: RefCell::default() }
    }
}

impl World {
    /// The world of manifests, in which nothing but these facts is known.
    pub fn of_files(specs: CredentialSpecs, rbac: Rbac, namespace: String) -> Self {
        Self::new(Base::Files(Arc::new(specs), Arc::new(rbac)), namespace)
    }

    async fn facts(&self) -> &FactSource {
        self.seen.facts.get_or_init(|| self.of_base()).await
    }

    /// The facts of its source. For a bundle, permissions follow from its roles and bindings.
    async fn of_base(&self) -> FactSource {
        match &self.seen.base {
            Base::Live(live) => return FactSource::new(Ok(live.api.clone()), Ok(live.api.clone()), live.timeout),
            Base::Files(specs, rbac) => return FactSource::new(Ok(specs.clone()), Ok(rbac.clone()), Duration::ZERO),
            Base::Bundle(_) => {}
        }
        let version = format!("{GROUP}/{VERSION}");
        let specs = self.list(&collection()).await.map(|specs| -> Arc<dyn Resolver> {
            let document = |spec: &Value| Document::of_api(KIND, &version, KIND, spec);
            let documents: Vec<Document> = specs.iter().map(document).collect();
            Arc::new(CredentialSpecs::from_documents(&documents).0)
        });
        let rbac = self.roles_and_bindings().await;
        let rbac = rbac.map(|found| -> Arc<dyn Authorizer> { Arc::new(Rbac::from_documents(&found.documents).0) });
        FactSource::new(specs, rbac, Duration::ZERO)
    }

    /// The cause and the remedy if a fact for the decision could not be read. `None` for other denials.
    pub fn unread_fact<'d>(&self, denial: &'d Denial, namespace: &str) -> Option<(&'d str, Remedy)> {
        let (cause, remedy) = Remedy::of_denial(denial, namespace)?;
        Some((cause, if matches!(self.seen.base, Base::Bundle(_)) { Remedy::new(OTHER_BUNDLE) } else { remedy }))
    }

    /// Sends a pod through the webhooks that review it, as the API server does, but without a random host name. Returns every denial, refusals
    /// before failed look-ups; that a slot is empty only if it has no other denial.
    pub async fn admit(&self, pod: &NewPod, reviewed: &Reviewed) -> anyhow::Result<Vec<SlotDenial>> {
        // Assumes that tickets are enabled. This sidecar has neither image nor broker, so a pod that has it must not be printed.
        let tickets = TicketSettings::On(Arc::new(Sidecar::default()));
        let settings = Settings { enforcement: Enforcement::Warn, tickets, ..Settings::default() };
        let mut pod = Cow::Borrowed(pod);
        let mut denials: Vec<SlotDenial> = Vec::new();
        for webhook in reviewed.webhooks.iter().copied() {
            let review = pod.review()?;
            let step = Decision::begin(Arc::clone(review), webhook, settings.clone());
            let answered = step.answered_by(async |question| match question {
                Question::Contents(name, _) => Fact::Contents(self.spec(name).await),
                Question::Use(account, verb, name) => Fact::Use(self.may(account, *verb, name).await),
            });
            let decision = answered.await;
            for found in decision.denials {
                let is_empty = matches!(found.denial, Denial::NameWithoutContents { .. });
                if denials.iter().all(|known| *known != found && !(is_empty && known.slot == found.slot)) {
                    denials.push(found);
                }
            }
            if let Some(patch) = decision.patch {
                let patch: json_patch::Patch =
                    serde_json::from_slice(patch.as_bytes()).context("the patch is not a JSON Patch")?;
                let mut stored = pod.json.clone();
                json_patch::patch(&mut stored, &patch).context("the patch does not fit the pod")?;
                pod = Cow::Owned(NewPod::new(&review.namespace, stored));
            }
        }
        denials.sort_by_key(|found| is_unchecked(&found.denial));
        Ok(denials)
    }

    /// The contents of a credential spec, read once.
    pub async fn spec(&self, name: &SpecName) -> Resolved {
        let facts = self.facts().await;
        if let Some(known) = facts.specs.borrow().get(name) {
            return known.clone();
        }
        let found = match &facts.resolver {
            Ok(resolver) => resolver.resolve(name, Freshness::Any, Instant::now() + facts.timeout).await,
            Err(unread) => left_out(unread),
        };
        facts.specs.borrow_mut().insert(name.clone(), found.clone());
        found
    }

    /// Whether a service account may use a credential spec, or export it, asked once.
    async fn may(&self, account: &ServiceAccount, verb: Verb, name: &SpecName) -> Authorization {
        let (facts, key) = (self.facts().await, (account.clone(), verb, name.clone()));
        if let Some(known) = facts.uses.borrow().get(&key) {
            return known.clone();
        }
        let found = match &facts.authorizer {
            Ok(authorizer) => authorizer.may(account, verb, name, Instant::now() + facts.timeout).await,
            Err(unread) => left_out(unread),
        };
        facts.uses.borrow_mut().insert(key, found.clone());
        found
    }

    /// Whether a service account is missing; among manifests only if they hold others of its namespace. Every namespace has `default`.
    pub async fn is_account_missing(&self, namespace: &str, name: &str) -> Read<bool> {
        if name == "default" || !is_dns_subdomain(namespace) || !is_dns_subdomain(name) {
            return Ok(false);
        }
        let list = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        match self.find::<Value>(&format!("{list}/{name}")).await {
            Err(_) if !self.has_cluster() => self.list::<Value>(&list).await.map(|_| true),
            found => Ok(found?.is_none()),
        }
    }

    /// A namespace; `None` if it does not exist, or cannot by its name.
    pub async fn namespace(&self, name: &str) -> Read<Option<Namespace>> {
        if is_dns_subdomain(name) { self.find(&format!("/api/v1/namespaces/{name}")).await } else { Ok(None) }
    }

    /// The runtime class of this name: `None` without a valid name, and `Some(None)` if it is missing.
    pub async fn runtime_class(&self, name: Option<&str>) -> Read<Option<Option<Value>>> {
        let Some(name) = name.filter(|name| is_dns_subdomain(name)) else { return Ok(None) };
        self.find(&format!("/apis/node.k8s.io/v1/runtimeclasses/{name}")).await.map(Some)
    }

    /// Reads all roles and bindings.
    pub async fn roles_and_bindings(&self) -> Read<Manifests> {
        let reading =
            KINDS.map(|(_, resources)| async move { self.list(&format!("/apis/{API_VERSION}/{resources}")).await });
        let mut found = Manifests::default();
        for ((kind, resources), items) in KINDS.into_iter().zip(join_all(reading).await) {
            let document = |item: &Value| Document::of_api(resources, API_VERSION, kind, item);
            found.documents.extend(items?.iter().map(document));
        }
        Ok(found)
    }
}

/// The answer for a fact that a bundle does not have.
fn left_out<F: From<Failure>>(unread: &Unread) -> Known<F> {
    let failure = Failure { refused: unread.code, ..Failure::new(&*unread.cause) };
    Known { fact: failure.into(), source: Source::Files }
}
