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
    cluster.create_namespace(NAMESPACE);
    // Pods from before the guard.
    cluster.apply(&pod("plain", "pod", Options::Absent, "").to_string());
    cluster.apply(&pod("revoked", "pod", Options::Both, "forbidden").to_string());
    cluster.apply(&crowd("full", &allowed(LIMIT), 0).to_string());
    grant(&cluster, "default", &allowed(LIMIT + 1));
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

    every_slot(&cluster);
    service_accounts(&cluster);
    ephemeral_containers(&cluster);
    many_names(&cluster);
    opt_out_label(&cluster);
}

fn allowed(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("spec-{index}")).collect()
}

/// A refusal with the API server's words around it.
fn invalid(pod: &str, message: &str) -> String {
    format!(
        "The pods \"{pod}\" is invalid: : ValidatingAdmissionPolicy 'gmsa-guard' with binding 'gmsa-guard' denied request: {message}"
    )
}

fn forbidden(pod: &str, account: &str, spec: &str) -> String {
    format!(
        "pods \"{pod}\" is forbidden: ValidatingAdmissionPolicy 'gmsa-guard' with binding 'gmsa-guard' denied request: \
         service account \"{account}\" is not authorized to `use` GMSA cred spec \"{spec}\""
    )
}

const NO_NAME: &str = "GMSA cred spec contents are set without the name of their cred spec";
const NO_CONTENTS: &str = "a GMSA cred spec name has no contents, so the container would start without its identity; \
                           the mutating webhook did not run, or another one added the name after it";

fn every_slot(cluster: &Cluster) {
    for kind in KINDS {
        for options in Options::ALL {
            let expected = match options {
                Options::Absent | Options::Other | Options::Both => None,
                Options::Name => Some(invalid("p", NO_CONTENTS)),
                Options::Contents => Some(invalid("p", NO_NAME)),
            };
            assert_eq!(creation(cluster, &pod("p", kind, options, "spec-0")), expected, "{kind} with {options:?}");
        }
        let said = creation(cluster, &pod("p", kind, Options::Both, "forbidden"));
        let expected = forbidden("p", "default", "forbidden");
        assert!(said.as_deref().is_some_and(|complaint| complaint.ends_with(&expected)), "{kind}: {said:?}");
    }
    let hostile = creation(cluster, &pod("p", "pod", Options::Both, "../spec-0?x=y"));
    assert!(
        hostile
            .as_deref()
            .is_some_and(|complaint| complaint.contains("securityContext.windowsOptions.gmsaCredentialSpecName")),
        "{hostile:?}"
    );
}

/// The right is that of the pod's own service account, in the pod's own namespace.
fn service_accounts(cluster: &Cluster) {
    cluster.kubectl_prints(["create", "serviceaccount", "other", "--namespace", NAMESPACE]);
    let mut other = pod("p", "pod", Options::Both, "spec-0");
    other["spec"]["serviceAccountName"] = json!("other");
    let said = creation(cluster, &other);
    assert!(
        said.as_deref().is_some_and(|complaint| complaint.ends_with(&forbidden("p", "other", "spec-0"))),
        "{said:?}"
    );

    let mut elsewhere = pod("p", "pod", Options::Both, "spec-0");
    elsewhere["metadata"]["namespace"] = json!("default");
    let said = creation(cluster, &elsewhere);
    assert!(
        said.as_deref().is_some_and(|complaint| complaint.ends_with(&forbidden("p", "default", "spec-0"))),
        "{said:?}"
    );
}

/// A new ephemeral container is judged; the rest of its pod was judged when it came.
fn ephemeral_containers(cluster: &Cluster) {
    for options in Options::ALL {
        let expected = match options {
            Options::Absent | Options::Other | Options::Both => None,
            Options::Name => Some(invalid("plain", NO_CONTENTS)),
            Options::Contents => Some(invalid("plain", NO_NAME)),
        };
        assert_eq!(debugging(cluster, "plain", "debug", options, "spec-0"), expected, "{options:?}");
    }
    let said = debugging(cluster, "plain", "debug", Options::Both, "forbidden");
    assert!(
        said.as_deref().is_some_and(|complaint| complaint.ends_with(&forbidden("plain", "default", "forbidden"))),
        "{said:?}"
    );
    assert_eq!(debugging(cluster, "revoked", "debug", Options::Absent, ""), None);
    assert_eq!(debugging(cluster, "revoked", "debug", Options::Both, "spec-0"), None);
}

/// Each name is an access check of its own, and a policy may cost only so much: it must do for as many as a pod may have.
fn many_names(cluster: &Cluster) {
    assert_eq!(creation(cluster, &crowd("crowd", &allowed(LIMIT), 0)), None);
    assert_eq!(creation(cluster, &crowd("crowd", &allowed(LIMIT), 200)), None);
    let thrice = [allowed(LIMIT), allowed(LIMIT), allowed(LIMIT)].concat();
    assert_eq!(creation(cluster, &crowd("crowd", &thrice, 0)), None);

    let message = format!("more than {LIMIT} different GMSA cred specs in one pod");
    assert_eq!(creation(cluster, &crowd("crowd", &allowed(LIMIT + 1), 0)), Some(invalid("crowd", &message)));
    // An ephemeral container counts together with what its pod names already, as in the webhook.
    assert_eq!(debugging(cluster, "full", "debug", Options::Both, "spec-0"), None);
    let one_more = format!("spec-{LIMIT}");
    assert_eq!(debugging(cluster, "full", "debug", Options::Both, &one_more), Some(invalid("full", &message)));

    for index in [0, LIMIT / 2, LIMIT - 1] {
        let mut specs = allowed(LIMIT);
        "forbidden".clone_into(&mut specs[index]);
        let said = creation(cluster, &crowd("crowd", &specs, 0));
        let expected = forbidden("crowd", "default", "forbidden");
        assert!(said.as_deref().is_some_and(|complaint| complaint.ends_with(&expected)), "name {index}: {said:?}");
    }
}

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
