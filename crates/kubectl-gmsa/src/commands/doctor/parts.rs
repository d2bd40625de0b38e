//! The parts of a cluster that the checks of `doctor` read.
//!
//! Invariants: a part is a value or a failed read; dependent parts are read in order, all others in parallel. There are no checks here.

use std::collections::BTreeSet;

use futures::future::{OptionFuture, join_all};
use k8s_openapi::{
    api::{
        admissionregistration::v1::ServiceReference,
        core::v1::{ConfigMap, Namespace, Node, Pod},
        discovery::v1::Endpoint,
        networking::v1::NetworkPolicy,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::version::Info,
    jiff::Timestamp,
};
use serde_json::{Value, json, value::RawValue};

use super::{directory, replica::Replica};
use crate::shared::{
    directory::Source,
    installer::Installer,
    kinds::Kind,
    snapshot::{CA_VOLUME, DryRunAnswer, Snapshot},
    unread::{Read, Remedy, Unread, because},
    walk::{
        events::Events,
        scheduling::Nodes,
        workload::{ClusterWorkload, Idle, WorkloadTree, Workloads, pods_of},
        worst,
    },
    webhook::{Configured, broker, configured, endpoints, installer, is_ready, no_namespace, pod_name, reviewing},
};
use gmsa_cluster::{kubernetes_version::is_at_least, probe, resolver::live::collection};
use gmsa_core::{
    admission::Webhook,
    credspec::{is_dns_label, is_dns_subdomain},
    diagnostic::{Check, Diagnostic},
};

/// The Service of a webhook, or of the broker of tickets.
pub(super) struct Service {
    pub named: ServiceReference,
    pub endpoints: Read<Vec<Endpoint>>,
    /// A pod of the Service.
    pub replica: Option<Read<Replica>>,
    /// The network policies of its namespace.
    pub policies: Read<Vec<NetworkPolicy>>,
    /// `None` if its names are not valid in a path.
    pub own: Option<OwnDeployment>,
}

/// The Deployment of a Service: the chart gives both the same name.
pub(super) struct OwnDeployment {
    /// `None` if it was deleted.
    pub namespace: Read<Option<Namespace>>,
    pub workload: Read<Option<WorkloadTree>>,
    pub events: Events,
}

/// The installation for tickets.
pub(super) struct TicketsInstall {
    /// Whether there is a Deployment of the broker's chart.
    pub is_installed: Read<bool>,
    /// The broker that the webhook names; `None` where it injects no sidecar.
    pub broker: Option<Service>,
    /// The CAs that new sidecars trust; `None` where the webhook mounts none.
    pub authorities: Option<Read<Option<ConfigMap>>>,
}

impl TicketsInstall {
    async fn read(snapshot: &Snapshot, webhook: Option<(&str, &Pod)>) -> Self {
        let deployments = ClusterWorkload::list(snapshot, Kind::Deployment, None).await;
        let is_of_broker = |found: &ClusterWorkload| {
            let labels = found.metadata.labels.as_ref();
            labels.and_then(|labels| labels.get("app.kubernetes.io/name")).is_some_and(|name| name == "gmsa-tickets")
        };
        let is_installed = deployments.map(|deployments| deployments.iter().any(is_of_broker));
        let named = webhook.and_then(|(_, pod)| broker(pod, "tickets-broker"));
        let broker = OptionFuture::from(named.as_ref().map(|named| Box::pin(Service::read(snapshot, named)))).await;
        let path = webhook.and_then(|(namespace, pod)| {
            let volumes = pod.spec.as_ref()?.volumes.as_ref()?;
            let mounted = volumes.iter().find(|volume| volume.name == CA_VOLUME)?;
            let name = Some(&mounted.config_map.as_ref()?.name).filter(|name| is_dns_subdomain(name))?;
            Some(format!("/api/v1/namespaces/{namespace}/configmaps/{name}"))
        });
        let authorities = OptionFuture::from(path.as_deref().map(|path| snapshot.find(path))).await;
        Self { is_installed, broker, authorities }
    }
}

/// The webhook's installation, as far as it is known: fields of [`Parts`].
struct Installation {
    webhooks: Read<Vec<Configured>>,
    installer: Option<Installer>,
    dry_runs: Vec<(Webhook, DryRunMade)>,
    protection: Option<(String, Read<Value>)>,
    services: Vec<Service>,
}

impl Installation {
    async fn read(snapshot: &Snapshot) -> Self {
        let webhooks = configured(snapshot).await;
        let known = webhooks.as_deref().unwrap_or_default();
        let ours: Vec<&Configured> = known.iter().filter(|found| found.is_of_pods() && is_ours(found)).collect();
        let (dry_runs, protection, services, installer) = tokio::join!(
            // The right to create pods is enough, without the right to read configurations.
            dry_runs(snapshot, &webhooks),
            protection(snapshot, &ours),
            services(snapshot, &ours),
            async { installer(snapshot, webhooks.as_deref().ok()?).await },
        );
        Self { webhooks, installer, dry_runs, protection, services }
    }
}

/// The lines of a check, or the failed read that it depends on.
pub(super) type Judged<'p> = Result<Vec<Check>, &'p Unread>;

/// The answer to a dry run; `None` if the namespace is not a valid name.
pub(super) type DryRunMade = Option<Read<DryRunAnswer>>;

pub(super) struct Parts {
    pub taken: Timestamp,
    /// The namespace of the dry runs.
    pub namespace: String,
    pub version: Read<Info>,
    pub crd: Read<Option<CustomResourceDefinition>>,
    pub webhooks: Read<Vec<Configured>>,
    /// The installer of the webhook; `None` also without the right to read configurations and Deployments.
    pub installer: Option<Installer>,
    pub namespaces: Read<Vec<Namespace>>,
    /// The dry runs of the configured webhooks.
    pub dry_runs: Vec<(Webhook, DryRunMade)>,
    /// The release, and the answer to a test configuration that only its static policies refuse.
    pub protection: Option<(String, Read<Value>)>,
    pub services: Vec<Service>,
    pub tickets: TicketsInstall,
    /// Empty without the custom resource.
    pub specs: Read<Vec<Value>>,
    pub pods: Read<Vec<Box<RawValue>>>,
    /// The only namespace whose pods and workloads were read, and why.
    pub narrowed: Option<(String, Unread)>,
    pub workloads: Workloads,
    pub windows: Read<Vec<Node>>,
    /// The Windows nodes, and the other nodes that pods are on.
    pub nodes: Nodes,
    pub events: Events,
    /// The findings of the directories on the credential specs.
    pub directory: Option<Read<Vec<Diagnostic>>>,
}

impl Parts {
    /// `asked` is the namespace to fall back to without the right to list pods of the whole cluster.
    pub(super) async fn read(snapshot: &Snapshot, sources: Vec<Source>, asked: Option<&str>) -> Self {
        let all = OptionFuture::from(asked.map(async |_| snapshot.list::<Box<RawValue>>(&pods_of(None)).await));
        let unread = all.await.and_then(Result::err).filter(Unread::is_forbidden);
        let narrowed = asked.filter(|name| is_dns_label(name)).map(str::to_owned).zip(unread);
        let scope = narrowed.as_ref().map(|(namespace, _)| namespace.as_str());
        let pods_path = pods_of(scope);
        let (version, crd, namespaces, installation, (specs, directory), pods, workloads, windows) = tokio::join!(
            snapshot.get("/version"),
            snapshot.find(gmsa_cluster::crd::PATH),
            snapshot.list("/api/v1/namespaces"),
            Box::pin(Installation::read(snapshot)),
            Box::pin(with_directory(snapshot, sources)),
            snapshot.list::<Box<RawValue>>(&pods_path),
            Workloads::read(snapshot, scope),
            snapshot.list(Nodes::WINDOWS),
        );
        let Installation { webhooks, installer, dry_runs, protection, services } = installation;
        let tickets = Box::pin(TicketsInstall::read(snapshot, webhook_pod(&services).ok().flatten())).await;
        let mut nodes = Nodes::of(windows.as_ref().ok().cloned());
        // Without the right to list nodes, reading a single node rarely works.
        if nodes.windows.is_some() {
            let own = services.iter().chain(&tickets.broker);
            let own = own.filter_map(|service| service.own.as_ref()?.workload.as_ref().ok()?.as_ref());
            nodes.add(snapshot, workloads.known.iter().chain(own).flat_map(WorkloadTree::pods)).await;
        }
        let is_broken = |workload: &WorkloadTree| worst::cause(workload, &nodes, &Events::default()).is_some();
        let is_broken = workloads.known.iter().any(is_broken);
        let events = if is_broken { Events::read(snapshot, scope).await } else { Events::default() };
        Self {
            taken: snapshot.taken(),
            namespace: snapshot.namespace.clone(),
            version,
            crd,
            webhooks,
            installer,
            namespaces,
            dry_runs,
            protection,
            services,
            tickets,
            specs,
            pods,
            narrowed,
            workloads,
            windows,
            nodes,
            events,
            directory,
        }
    }

    /// Whether the API server is at least minor version `minor` of Kubernetes 1, as far as is known.
    pub(super) fn has_kubernetes(&self, minor: u32) -> bool {
        self.version.as_ref().map_or(true, |info| is_at_least(&info.git_version, minor))
    }

    /// A pod of the webhook, with its namespace. `None` if the webhook has no pod.
    pub(super) fn webhook_pod(&self) -> Result<Option<(&str, &Pod)>, &Unread> {
        self.webhooks.as_ref()?;
        webhook_pod(&self.services)
    }

    /// Whether the webhook gives tickets to Linux pods, and no pod template uses GMSA on Windows.
    pub(super) fn has_linux_pods_alone(&self) -> bool {
        let uses_gmsa = |workload: &WorkloadTree| workload.template.pod().is_none_or(|pod| pod.uses_gmsa());
        self.tickets.broker.is_some() && self.workloads.unread.is_empty() && !self.workloads.known.iter().any(uses_gmsa)
    }

    /// Why nodes could not be read: a pod that is said to run may be on a node that is gone.
    pub(super) fn unread_nodes(&self) -> Option<&Unread> {
        self.windows.as_ref().err().or(self.nodes.unread())
    }

    /// The line of a check about pods of all namespaces, if those of one namespace alone were read.
    pub(super) fn other_namespaces(&self, about: &'static str) -> Option<Check> {
        let (namespace, unread) = self.narrowed.as_ref()?;
        let cause = format!("other namespaces than {namespace}, {}", unread.cause);
        Some(because(about, &cause, Remedy::new(unread.remedy())))
    }

    /// Whether the webhook is scaled to 0, or its namespace is deleted or being deleted: checks of its pods cannot find that cause.
    pub(super) fn is_webhook_away(&self) -> bool {
        self.services.iter().filter_map(|service| service.own.as_ref()).any(OwnDeployment::is_away)
    }

    /// The pod webhooks that AKS does not manage, or all if AKS manages all of them.
    pub(super) fn of_pods(&self) -> Result<Vec<&Configured>, &Unread> {
        self.webhooks.as_deref().map(reviewing)
    }
}

fn webhook_pod<'s>(services: &'s [Service]) -> Result<Option<(&'s str, &'s Pod)>, &'s Unread> {
    let pod = |service: &'s Service| Some((&*service.named.namespace, &service.replica.as_ref()?.as_ref().ok()?.pod));
    let unread = |service: &'s Service| service.endpoints.as_ref().err().or(service.replica.as_ref()?.as_ref().err());
    let found = services.iter().find_map(pod);
    if found.is_none() { services.iter().find_map(unread).map_or(Ok(None), Err) } else { Ok(found) }
}

fn is_ours(found: &Configured) -> bool {
    found.installer != Installer::Aks
}

/// Makes the API server call the configured webhooks, or both if the configurations cannot be read.
async fn dry_runs(snapshot: &Snapshot, webhooks: &Read<Vec<Configured>>) -> Vec<(Webhook, DryRunMade)> {
    let known = || webhooks.iter().flatten();
    let is_configured =
        |mutating| webhooks.is_err() || known().any(|found| found.is_of_pods() && found.mutating == mutating);
    let slot = if known().all(is_ours) { "/spec" } else { probe::INIT_CONTAINER };
    let pods = [
        (Webhook::Mutate, is_configured(true), probe::naming(slot)),
        (Webhook::Validate, is_configured(false), probe::carrying(slot)),
    ];
    let made = pods.into_iter().filter(|(_, is_configured, _)| *is_configured);
    join_all(made.map(async |(webhook, _, pod)| (webhook, snapshot.dry_run(webhook, &pod).await))).await
}

/// Tries a test configuration with a name of the release, which its static policies refuse to everybody. The configuration has no
/// webhooks, so it would be harmless if it were stored by mistake.
async fn protection(snapshot: &Snapshot, webhooks: &[&Configured]) -> Option<(String, Read<Value>)> {
    const PATH: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All";
    let release = webhooks.iter().find(|found| !found.mutating)?.configuration();
    let probe = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": format!("{release}-static-policies")},
    });
    Some((release.to_owned(), snapshot.ask(PATH, &probe).await))
}

/// Reads the Service of each webhook.
async fn services(snapshot: &Snapshot, webhooks: &[&Configured]) -> Vec<Service> {
    let mut seen = BTreeSet::new();
    let named = webhooks.iter().filter_map(|found| found.webhook.client_config.service.as_ref());
    let each = named.filter(|named| seen.insert((&named.namespace, &named.name)));
    join_all(each.map(|named| Service::read(snapshot, named))).await
}

impl Service {
    pub(super) async fn read(snapshot: &Snapshot, named: &ServiceReference) -> Self {
        let ServiceReference { namespace, name, .. } = named;
        let policies = format!("/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies");
        // Checked because they become parts of paths.
        let are_names = is_dns_label(namespace) && is_dns_subdomain(name);
        let own = OptionFuture::from(are_names.then(|| OwnDeployment::read(snapshot, namespace, name)));
        let (endpoints, policies, own) = tokio::join!(endpoints(snapshot, named), snapshot.list(&policies), own);
        // If no endpoint is ready, an unready one may show why.
        let known = endpoints.iter().flatten();
        let mut by_use: Vec<&Endpoint> = known.filter(|endpoint| pod_name(endpoint).is_some()).collect();
        by_use.sort_by_key(|endpoint| !is_ready(endpoint));
        let read = async |name: &str| {
            let pod: Pod = snapshot.get(&format!("/api/v1/namespaces/{namespace}/pods/{name}")).await?;
            Ok(Replica::read(snapshot, namespace, name, pod).await)
        };
        let replica = OptionFuture::from(by_use.first().and_then(|first| pod_name(first)).map(read)).await;
        Self { named: named.clone(), endpoints, replica, policies, own }
    }

    /// The installer of its Deployment.
    pub(super) fn installer(&self) -> Option<Installer> {
        let workload = self.own.as_ref()?.workload.as_ref().ok()?.as_ref()?;
        Some(Installer::of(&workload.object.metadata))
    }
}

impl OwnDeployment {
    fn is_away(&self) -> bool {
        self.is_scaled_to_zero()
            || self.namespace.as_ref().is_ok_and(|namespace| no_namespace(namespace.as_ref()).is_some())
    }

    pub(super) fn is_scaled_to_zero(&self) -> bool {
        let workload = self.workload.iter().flatten().next();
        workload.is_some_and(|workload| workload.wanted() == (0, Idle::Scaled))
    }

    async fn read(snapshot: &Snapshot, namespace: &str, name: &str) -> Self {
        let path = format!("/api/v1/namespaces/{namespace}");
        let (of, workload) =
            tokio::join!(snapshot.find(&path), WorkloadTree::find(snapshot, namespace, Kind::Deployment, name));
        // Events are needed only if something fails.
        let events = match &workload {
            Ok(Some(_)) => Events::read(snapshot, Some(namespace)).await,
            _ => Events::default(),
        };
        Self { namespace: of, workload, events }
    }
}

/// The credential specs, and with `--directory` the directory's findings on them.
async fn with_directory(
    snapshot: &Snapshot,
    sources: Vec<Source>,
) -> (Read<Vec<Value>>, Option<Read<Vec<Diagnostic>>>) {
    let specs = match snapshot.list(&collection()).await {
        // Without the custom resource, which another check reports, the list is empty.
        Err(unread) if unread.is_missing() => Ok(Vec::new()),
        read => read,
    };
    let directory = match sources.as_slice() {
        [] => None,
        _ => Some(directory::ask(sources, specs.as_deref().unwrap_or_default()).await),
    };
    (specs, directory)
}
