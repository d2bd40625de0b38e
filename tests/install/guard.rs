//! The guard, pod by pod, without any webhook: what it refuses, in which words, and what it costs at its limit.

use serde_json::json;

use crate::{
    cluster::Cluster,
    helm::Helm,
    pods::{KINDS, NAMESPACE, Options, complaint, creation, crowd, debugging, grant, pod},
};

/// The most credential specs in a pod.
const LIMIT: usize = gmsa_core::admission::MAX_SPECS_PER_POD;

#[test]
fn the_guard_enforces_the_outcome_without_the_webhook() {
    let cluster = Cluster::start();
    prepare(&cluster);
    let guard = Helm::new().template([
        "--namespace",
        "windows",
        "--set",
        "guard.enabled=true,webhooks.optOutLabel=windows.k8s.io/disabled",
        "-s",
        "templates/guard.yaml",
    ]);
    cluster.apply(&guard);
    cluster.until("the guard is in force", || creation(&cluster, &pod("p", "pod", Options::Name, "spec-0")).is_some());
    cluster.until("the expressions have been checked against the types", || {
        let status = [
            "get",
            "validatingadmissionpolicies",
            "-o",
            "jsonpath={range .items[*]}{.status.typeChecking}{'\\n'}{end}",
        ];
        cluster.kubectl_prints(status) == "{}\n{}\n"
    });
    let guard = Guard { cluster: &cluster, policy: "gmsa-guard" };
    guard.enforces();
    opt_out_label(&cluster);
}

/// The same from a file of the control plane, beside which there is no object to delete.
#[test]
fn the_guard_enforces_the_same_from_a_file_of_the_control_plane() {
    let mut cluster = Cluster::start();
    prepare(&cluster);
    cluster.load_static_policies(&static_policies(&["webhooks.optOutLabel=windows.k8s.io/disabled"]));
    let none =
        cluster.kubectl_prints(["get", "validatingadmissionpolicies,validatingadmissionpolicybindings", "-o", "name"]);
    assert_eq!(none, "");
    let guard = Guard { cluster: &cluster, policy: "gmsa-guard.static.k8s.io" };
    guard.enforces();

    let label = |value: &str, user: &[&str]| {
        let label = ["label", "namespace", NAMESPACE, "--overwrite", value];
        complaint(cluster.kubectl(label.iter().chain(user).copied()))
    };
    let refused = "is forbidden: ValidatingAdmissionPolicy 'gmsa-guard-opt-out.static.k8s.io' with binding 'gmsa-guard-opt-out.static.k8s.io' denied \
                   request: the label windows.k8s.io/disabled takes pods out of the GMSA webhook: only the administrators that the static policies of \
                   the control plane name may change it";
    let other = ["--as=other", "--as-group=system:masters"];
    let said = label("windows.k8s.io/disabled=true", &other);
    assert!(said.as_deref().is_some_and(|complaint| complaint.ends_with(refused)), "{said:?}");
    // A user who has the name of a group, and one of a group that has the name of a user.
    for user in [
        &["--as=platform", "--as-group=system:masters"][..],
        &["--as=other", "--as-group=system:masters", "--as-group=admin"],
    ] {
        let said = label("windows.k8s.io/disabled=true", user);
        assert!(said.as_deref().is_some_and(|complaint| complaint.ends_with(refused)), "{said:?}");
    }
    assert_eq!(label("a=b", &other), None);
    assert_eq!(
        label("windows.k8s.io/disabled=true", &["--as=other", "--as-group=system:masters", "--as-group=platform"]),
        None
    );
}

/// Pods from before the guard, and what may be used.
fn prepare(cluster: &Cluster) {
    cluster.create_namespace(NAMESPACE);
    cluster.apply(&pod("plain", "pod", Options::Absent, "").to_string());
    cluster.apply(&pod("revoked", "pod", Options::Both, "forbidden").to_string());
    cluster.apply(&crowd("full", &allowed(LIMIT), 0).to_string());
    grant(cluster, "default", &allowed(LIMIT + 1));
}

/// The policies for the control plane, of the release `gmsa`, with these values; the group `platform` administers it, and the user of the kubeconfig.
pub fn static_policies(values: &[&str]) -> String {
    let admins = r#"staticPolicies.enabled=true,staticPolicies.admins.groups={platform},staticPolicies.admins.users={admin,O'Neill "<x>"}"#;
    let values = [admins].into_iter().chain(values.iter().copied()).flat_map(|value| ["--set", value]);
    let args = ["--namespace", "windows", "-s", "templates/static-policies.yaml"];
    Helm::new().template(args.into_iter().chain(values))
}

/// A guard, by the name of its policy.
struct Guard<'c> {
    cluster: &'c Cluster,
    policy: &'c str,
}

impl Guard<'_> {
    fn enforces(&self) {
        self.every_slot();
        self.service_accounts();
        self.ephemeral_containers();
        self.many_names();
    }

    /// A refusal with the API server's words around it.
    fn invalid(&self, pod: &str, message: &str) -> String {
        format!(
            "The pods \"{pod}\" is invalid: : ValidatingAdmissionPolicy '{0}' with binding '{0}' denied request: {message}",
            self.policy
        )
    }

    /// A refusal of the right, with the API server's words around it.
    fn forbidden(&self, pod: &str, account: &str, spec: &str) -> String {
        format!(
            "pods \"{pod}\" is forbidden: ValidatingAdmissionPolicy '{0}' with binding '{0}' denied request: \
             service account \"{account}\" is not authorized to `use` GMSA cred spec \"{spec}\"",
            self.policy
        )
    }

    /// The right is that of the pod's own service account, in the pod's own namespace.
    fn service_accounts(&self) {
        self.cluster.kubectl_prints(["create", "serviceaccount", "other", "--namespace", NAMESPACE]);
        let mut other = pod("p", "pod", Options::Both, "spec-0");
        other["spec"]["serviceAccountName"] = json!("other");
        let said = creation(self.cluster, &other);
        assert!(
            said.as_deref().is_some_and(|complaint| complaint.ends_with(&self.forbidden("p", "other", "spec-0"))),
            "{said:?}"
        );

        let mut elsewhere = pod("p", "pod", Options::Both, "spec-0");
        elsewhere["metadata"]["namespace"] = json!("default");
        let said = creation(self.cluster, &elsewhere);
        assert!(
            said.as_deref().is_some_and(|complaint| complaint.ends_with(&self.forbidden("p", "default", "spec-0"))),
            "{said:?}"
        );
    }

    fn every_slot(&self) {
        for kind in KINDS {
            for options in Options::ALL {
                let expected = match options {
                    Options::Absent | Options::Other | Options::Both => None,
                    Options::Name => Some(self.invalid("p", NO_CONTENTS)),
                    Options::Contents => Some(self.invalid("p", NO_NAME)),
                };
                assert_eq!(
                    creation(self.cluster, &pod("p", kind, options, "spec-0")),
                    expected,
                    "{kind} with {options:?}"
                );
            }
            let said = creation(self.cluster, &pod("p", kind, Options::Both, "forbidden"));
            let expected = self.forbidden("p", "default", "forbidden");
            assert!(said.as_deref().is_some_and(|complaint| complaint.ends_with(&expected)), "{kind}: {said:?}");
        }
        let hostile = creation(self.cluster, &pod("p", "pod", Options::Both, "../spec-0?x=y"));
        assert!(
            hostile
                .as_deref()
                .is_some_and(|complaint| complaint.contains("securityContext.windowsOptions.gmsaCredentialSpecName")),
            "{hostile:?}"
        );
    }

    /// A new ephemeral container is judged; the rest of its pod was judged when it came.
    fn ephemeral_containers(&self) {
        for options in Options::ALL {
            let expected = match options {
                Options::Absent | Options::Other | Options::Both => None,
                Options::Name => Some(self.invalid("plain", NO_CONTENTS)),
                Options::Contents => Some(self.invalid("plain", NO_NAME)),
            };
            assert_eq!(debugging(self.cluster, "plain", "debug", options, "spec-0"), expected, "{options:?}");
        }
        let said = debugging(self.cluster, "plain", "debug", Options::Both, "forbidden");
        assert!(
            said.as_deref().is_some_and(|complaint| complaint.ends_with(&self.forbidden(
                "plain",
                "default",
                "forbidden"
            ))),
            "{said:?}"
        );
        assert_eq!(debugging(self.cluster, "revoked", "debug", Options::Absent, ""), None);
        assert_eq!(debugging(self.cluster, "revoked", "debug", Options::Both, "spec-0"), None);
    }

    /// Each name is an access check of its own, and a policy may cost only so much: it must do for as many as a pod may have.
    fn many_names(&self) {
        assert_eq!(creation(self.cluster, &crowd("crowd", &allowed(LIMIT), 0)), None);
        assert_eq!(creation(self.cluster, &crowd("crowd", &allowed(LIMIT), 200)), None);
        let thrice = [allowed(LIMIT), allowed(LIMIT), allowed(LIMIT)].concat();
        assert_eq!(creation(self.cluster, &crowd("crowd", &thrice, 0)), None);

        let message = format!("more than {LIMIT} different GMSA cred specs in one pod");
        assert_eq!(
            creation(self.cluster, &crowd("crowd", &allowed(LIMIT + 1), 0)),
            Some(self.invalid("crowd", &message))
        );
        // An ephemeral container counts together with what its pod names already, as in the webhook.
        assert_eq!(debugging(self.cluster, "full", "debug", Options::Both, "spec-0"), None);
        let one_more = format!("spec-{LIMIT}");
        assert_eq!(
            debugging(self.cluster, "full", "debug", Options::Both, &one_more),
            Some(self.invalid("full", &message))
        );

        for index in [0, LIMIT / 2, LIMIT - 1] {
            let mut specs = allowed(LIMIT);
            "forbidden".clone_into(&mut specs[index]);
            let said = creation(self.cluster, &crowd("crowd", &specs, 0));
            let expected = self.forbidden("crowd", "default", "forbidden");
            assert!(said.as_deref().is_some_and(|complaint| complaint.ends_with(&expected)), "name {index}: {said:?}");
        }
    }
}

fn allowed(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("spec-{index}")).collect()
}

const NO_NAME: &str = "GMSA cred spec contents are set without the name of their cred spec";
const NO_CONTENTS: &str = "a GMSA cred spec name has no contents, so the container would start without its identity; \
                           the mutating webhook did not run, or another one added the name after it";

/// The label that frees a namespace takes the right to change the webhooks; other labels take nothing more than before.
fn opt_out_label(cluster: &Cluster) {
    cluster.kubectl_prints([
        "create",
        "clusterrole",
        "namespaces",
        "--verb=*",
        "--resource=namespaces,namespaces/status",
    ]);
    cluster.kubectl_prints([
        "create",
        "clusterrolebinding",
        "namespaces",
        "--clusterrole=namespaces",
        "--user=developer",
    ]);
    let label = |user: &str, label: &str, more: &[&str]| {
        let user = format!("--as={user}");
        let label = ["label", "namespace", NAMESPACE, "--overwrite", label, &user];
        complaint(cluster.kubectl(label.iter().chain(more).copied()))
    };
    let refused = "is forbidden: ValidatingAdmissionPolicy 'gmsa-guard-opt-out' with binding 'gmsa-guard-opt-out' denied request: \
                   the label windows.k8s.io/disabled takes pods out of the GMSA webhook, so only those who may update the \
                   ValidatingWebhookConfiguration gmsa may change it";
    cluster.until("the developer may update namespaces", || label("developer", "a=b", &[]).is_none());
    for change in ["windows.k8s.io/disabled=true", "windows.k8s.io/disabled=false"] {
        let said = label("developer", change, &[]);
        assert!(said.as_deref().is_some_and(|complaint| complaint.ends_with(refused)), "{change}: {said:?}");
    }
    let status = json!({"metadata": {"labels": {"windows.k8s.io/disabled": "true"}}}).to_string();
    let said = complaint(cluster.kubectl([
        "patch",
        "namespace",
        NAMESPACE,
        "--subresource=status",
        "--patch",
        &status,
        "--as=developer",
    ]));
    assert!(said.as_deref().is_some_and(|complaint| complaint.ends_with(refused)), "{said:?}");

    assert_eq!(label("admin", "windows.k8s.io/disabled=true", &["--as-group=system:masters"]), None);
    assert_eq!(label("developer", "a=c", &[]), None);
    let said = label("developer", "windows.k8s.io/disabled-", &[]);
    assert!(said.as_deref().is_some_and(|complaint| complaint.ends_with(refused)), "{said:?}");
}
