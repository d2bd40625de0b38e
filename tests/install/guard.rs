//! The guard, pod by pod, without any webhook: what it refuses, in which words, and what it costs at its limit.

use serde_json::json;

use crate::{
    cluster::{Cluster, Feature, complaint},
    helm::Helm,
    pods::{KINDS, NAMESPACE, Options, creation, creation_in, crowd, debugging, grant, grant_verb, pod, with_tokens},
};

/// The most credential specs in a pod.
const LIMIT: usize = gmsa_core::admission::MAX_SPECS_PER_POD;
/// A user who may do everything in the API.
pub const OTHER: &str = "--as=other --as-group=system:masters";

const OPT_OUT: &str = "webhooks.optOutLabel=windows.k8s.io/disabled";
/// Who may do what a static policy refuses.
pub const ADMINISTRATORS: &str = "only the administrators that the static policies of the control plane name may";

/// The audience of a token for tickets, before the name of a credential spec.
const TICKETS: &str = "gmsa-tickets/";
/// The same of a keytab.
const KEYTAB: &str = "gmsa-keytab/";

/// What is said to contents alone.
const NO_NAME: &str = "GMSA cred spec contents are set without the name of their cred spec";
const NO_CONTENTS: &str = "a GMSA cred spec name has no contents, so the container would start without its identity; \
                           the mutating webhook did not run, or another one added the name after it";

#[test]
fn the_guard_enforces_the_outcome_without_the_webhook() {
    let cluster = Cluster::start();
    if cluster.lacks(Feature::Guard) {
        return;
    }
    prepare(&cluster);
    let values = format!("guard.enabled=true,{OPT_OUT}");
    cluster.apply(&cluster.template(["-n", "windows", "--set", &values, "-s", "templates/guard.yaml"]));
    cluster.until("the guard is in force", || creation(&cluster, &pod("p", "pod", Options::Name, "spec-0")).is_some());
    cluster.until("the expressions have been checked against the types", || {
        let checked = cluster.list("validatingadmissionpolicies").into_iter().map(|mut policy| policy["status"].take());
        checked.map(|status| status["typeChecking"].clone()).collect::<Vec<_>>() == [json!({}), json!({})]
    });
    Guard { cluster: &cluster, policy: "gmsa-guard" }.enforces();
    opt_out_label(&cluster);
}

/// The same from a file of the control plane, beside which there is no object to delete.
#[test]
fn the_guard_enforces_the_same_from_a_file_of_the_control_plane() {
    let mut cluster = Cluster::start();
    if cluster.lacks(Feature::StaticPolicies) {
        return;
    }
    prepare(&cluster);
    cluster.load_static_policies(&static_policies(&["--set", OPT_OUT]));
    assert_eq!(cluster.names("validatingadmissionpolicies") + &cluster.names("validatingadmissionpolicybindings"), "");
    Guard { cluster: &cluster, policy: "gmsa-guard.static.k8s.io" }.enforces();

    let refused = of_label("gmsa-guard-opt-out.static.k8s.io", &format!(": {ADMINISTRATORS} change it"));
    // A user who has the name of a group, and one of a group that has the name of a user.
    let platform = "--as=platform --as-group=system:masters";
    for user in [OTHER, platform, &format!("{OTHER} --as-group=admin")] {
        let said = label(&cluster, "windows.k8s.io/disabled=true", user).unwrap();
        assert!(said.ends_with(&refused), "{said}");
    }
    assert_eq!(label(&cluster, "a=b", OTHER), None);
    assert_eq!(label(&cluster, "windows.k8s.io/disabled=true", &format!("{OTHER} --as-group=platform")), None);
}

/// Pods from before the guard, and what may be used.
fn prepare(cluster: &Cluster) {
    cluster.create_namespace(NAMESPACE);
    cluster.apply(&pod("plain", "pod", Options::Absent, "").to_string());
    cluster.apply(&pod("revoked", "pod", Options::Both, "forbidden").to_string());
    cluster.apply(&crowd("full", &allowed(LIMIT), 0).to_string());
    cluster.apply(&with_tokens("mounted", &[KEYTAB.to_owned() + "forbidden"]).to_string());
    grant(cluster, "default", &allowed(LIMIT + 1));
}

/// The policies for the control plane, of the release `gmsa`, with these values; the group `platform` administers it, and the user of the kubeconfig.
pub fn static_policies(values: &[&str]) -> String {
    let args = ["-n", "windows", "-s", "templates/static-policies.yaml"];
    let admins = ["--values", "tests/install/objects/static-policies.yaml"];
    Helm::new().template(args.into_iter().chain(admins).chain(values.iter().copied()))
}

/// What the API server says to a label on the namespace of the pods, by this user.
fn label(cluster: &Cluster, label: &str, user: &str) -> Option<String> {
    complaint(cluster.kubectl(&format!("label namespace apps --overwrite {label} {user}")))
}

/// The API server's words before those of a policy.
pub fn denied(policy: &str) -> String {
    format!("ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: ")
}

/// A refusal of the label that takes pods out, with the API server's words around it.
fn of_label(policy: &str, message: &str) -> String {
    let label = "the label windows.k8s.io/disabled takes pods out";
    format!("is forbidden: {}{label} of the GMSA webhook{message}", denied(policy))
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
        self.tokens();
    }

    /// A refusal with the API server's words around it.
    fn invalid(&self, pod: &str, message: &str) -> String {
        format!("The pods \"{pod}\" is invalid: : {}{message}", denied(self.policy))
    }

    /// What is said to a slot with these options, whose credential spec may be used.
    fn of_options(&self, pod: &str, options: Options) -> Option<String> {
        match options {
            Options::Absent | Options::Other | Options::Both => None,
            Options::Name => Some(self.invalid(pod, NO_CONTENTS)),
            Options::Contents => Some(self.invalid(pod, NO_NAME)),
        }
    }

    /// It is a refusal of the right, with the API server's words around it.
    fn assert_forbidden(&self, said: Option<String>, pod: &str, account: &str, spec: &str) {
        self.assert_no(said, "use", pod, account, spec);
    }

    /// The same of the right with this verb.
    fn assert_no(&self, said: Option<String>, verb: &str, pod: &str, account: &str, spec: &str) {
        let message = format!("service account \"{account}\" is not authorized to `{verb}` GMSA cred spec \"{spec}\"");
        let expected = format!("pods \"{pod}\" is forbidden: {}{message}", denied(self.policy));
        let said = said.unwrap_or_default();
        assert!(said.ends_with(&expected), "{said}");
    }

    /// The pod's own service account needs the right, in the pod's own namespace.
    fn service_accounts(&self) {
        self.cluster.prints("create serviceaccount other -n apps");
        let mut asked = pod("p", "pod", Options::Both, "spec-0");
        self.assert_forbidden(creation_in(self.cluster, "default", &asked), "p", "default", "spec-0");
        asked["spec"]["serviceAccountName"] = json!("other");
        self.assert_forbidden(creation(self.cluster, &asked), "p", "other", "spec-0");
    }

    fn every_slot(&self) {
        for kind in KINDS {
            let said = |options: Options, spec: &str| creation(self.cluster, &pod("p", kind, options, spec));
            for options in Options::ALL {
                assert_eq!(said(options, "spec-0"), self.of_options("p", options), "{kind} with {options:?}");
            }
            self.assert_forbidden(said(Options::Both, "forbidden"), "p", "default", "forbidden");
        }
        let hostile = creation(self.cluster, &pod("p", "pod", Options::Both, "../spec-0?x=y")).unwrap();
        assert!(hostile.contains("securityContext.windowsOptions.gmsaCredentialSpecName"), "{hostile}");
    }

    /// A new ephemeral container is judged; the rest of its pod was judged when it came.
    fn ephemeral_containers(&self) {
        let said = |pod: &str, options: Options, spec: &str| debugging(self.cluster, pod, options, spec);
        for options in Options::ALL {
            assert_eq!(said("plain", options, "spec-0"), self.of_options("plain", options), "{options:?}");
        }
        self.assert_forbidden(said("plain", Options::Both, "forbidden"), "plain", "default", "forbidden");
        assert_eq!(said("revoked", Options::Absent, ""), None);
        assert_eq!(said("revoked", Options::Both, "spec-0"), None);
    }

    /// Each name is an access check of its own, and a policy may cost only so much: it must do for as many as a pod may have.
    fn many_names(&self) {
        let created = |specs: &[String], plain: usize| creation(self.cluster, &crowd("crowd", specs, plain));
        assert_eq!(created(&allowed(LIMIT), 0), None);
        assert_eq!(created(&allowed(LIMIT), 200), None);
        assert_eq!(created(&[allowed(LIMIT), allowed(LIMIT), allowed(LIMIT)].concat(), 0), None);

        let message = format!("more than {LIMIT} different GMSA cred specs in one pod");
        assert_eq!(created(&allowed(LIMIT + 1), 0), Some(self.invalid("crowd", &message)));
        // An ephemeral container counts together with what its pod names already, as in the webhook.
        assert_eq!(debugging(self.cluster, "full", Options::Both, "spec-0"), None);
        let one_more = debugging(self.cluster, "full", Options::Both, &format!("spec-{LIMIT}"));
        assert_eq!(one_more, Some(self.invalid("full", &message)));

        for index in [0, LIMIT / 2, LIMIT - 1] {
            let mut specs = allowed(LIMIT);
            "forbidden".clone_into(&mut specs[index]);
            self.assert_forbidden(created(&specs, 0), "crowd", "default", "forbidden");
        }
    }

    /// A token for tickets needs `use`, one for a keytab needs `export`; both count with the names of containers.
    fn tokens(&self) {
        let tickets = |specs: &[String]| specs.iter().map(|spec| format!("{TICKETS}{spec}")).collect::<Vec<_>>();
        let created = |audiences: &[String]| creation(self.cluster, &with_tokens("linux", audiences));
        let of_keytab = |spec: &str| created(&[tickets(&allowed(2)), vec![format!("{KEYTAB}{spec}")]].concat());
        assert_eq!(created(&["gmsa-ticket", "GMSA-KEYTAB/a", " gmsa-keytab/a"].map(str::to_owned)), None);
        assert_eq!(created(&tickets(&allowed(LIMIT))), None);
        for index in [0, LIMIT / 2, LIMIT - 1] {
            let mut specs = allowed(LIMIT);
            "forbidden".clone_into(&mut specs[index]);
            self.assert_forbidden(created(&tickets(&specs)), "linux", "default", "forbidden");
        }
        self.assert_no(of_keytab("spec-0"), "export", "linux", "default", "spec-0");
        grant_verb(self.cluster, "default", "export", &allowed(1));
        self.cluster.until("the keytab may be had", || of_keytab("spec-0").is_none());
        self.assert_no(of_keytab("spec-1"), "export", "linux", "default", "spec-1");

        let mut both = crowd("linux", &allowed(LIMIT), 200);
        let mut said = |audiences: &[String]| {
            both["spec"]["volumes"] = with_tokens("linux", audiences)["spec"]["volumes"].take();
            creation(self.cluster, &both)
        };
        assert_eq!(said(&tickets(&allowed(LIMIT))), None);
        let message = format!("more than {LIMIT} different GMSA cred specs in one pod");
        assert_eq!(said(&[format!("{KEYTAB}spec-0")]), Some(self.invalid("linux", &message)));
        // A token cannot come later, so that of a running pod is not judged again.
        assert_eq!(debugging(self.cluster, "mounted", Options::Absent, ""), None);
        assert_eq!(debugging(self.cluster, "mounted", Options::Both, "spec-0"), None);
    }
}

fn allowed(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("spec-{index}")).collect()
}

/// The label that frees a namespace takes the right to change the webhooks; other labels take nothing more than before.
fn opt_out_label(cluster: &Cluster) {
    cluster.apply(include_str!("objects/developer.yaml"));
    let who = "so only those who may update the ValidatingWebhookConfiguration gmsa may change it";
    let refused = of_label("gmsa-guard-opt-out", &format!(", {who}"));
    let assert_refused = |said: Option<String>| {
        let said = said.unwrap_or_default();
        assert!(said.ends_with(&refused), "{said}");
    };
    let developer = "--as=developer";
    let may = || label(cluster, "a=b", developer).is_none();
    cluster.until("the developer may update namespaces", may);
    assert_refused(label(cluster, "windows.k8s.io/disabled=true", developer));
    assert_refused(label(cluster, "windows.k8s.io/disabled=false", developer));
    let status = json!({"metadata": {"labels": {"windows.k8s.io/disabled": "true"}}});
    assert_refused(cluster.patch("namespace apps --subresource=status --as=developer", &status));

    let admin = "--as=admin --as-group=system:masters";
    assert_eq!(label(cluster, "windows.k8s.io/disabled=true", admin), None);
    assert_eq!(label(cluster, "a=c", developer), None);
    assert_refused(label(cluster, "windows.k8s.io/disabled-", developer));
}
