//! Workloads in reviews: what is asked and what is said.

use std::sync::Arc;

use futures::FutureExt as _;
use serde_json::{Value, json};

use crate::{
    admission::{
        Decision, Fact, Failure, FailureKind, Freshness, Known, Question, Review, ServiceAccount, Settings, Source,
        SpecFact, UseFact, Webhook, workload::Kind,
    },
    credspec::{Contents, SpecName, Verb},
};

fn body(kind: &str, object: &Value) -> String {
    let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": "CREATE", "namespace": "shop", "kind": {"group": group, "kind": kind}, "object": object,
        },
    })
    .to_string()
}

/// As a review names it.
fn of_review(kind: Kind) -> &'static str {
    match kind {
        Kind::Deployment => "Deployment.apps",
        Kind::StatefulSet => "StatefulSet.apps",
        Kind::DaemonSet => "DaemonSet.apps",
        Kind::ReplicaSet => "ReplicaSet.apps",
        Kind::ReplicationController => "ReplicationController",
        Kind::Job => "Job.batch",
        Kind::CronJob => "CronJob.batch",
    }
}

fn in_template(kind: &str, template: &Value) -> Value {
    match kind {
        "CronJob.batch" => json!({"spec": {"jobTemplate": {"spec": {"template": template}}}}),
        _ => json!({"metadata": {"ownerReferences": null}, "spec": {"template": template}}),
    }
}

/// A template on Windows whose pods run as `web` and name this credential spec.
fn template(name: &str) -> Value {
    json!({"spec": {
        "serviceAccountName": "web",
        "nodeSelector": {"kubernetes.io/os": "windows"},
        "securityContext": {"windowsOptions": {"gmsaCredentialSpecName": name}},
        "containers": [{"name": "iis"}],
    }})
}

fn known<F: Clone>(fact: &F) -> Known<F> {
    Known { fact: fact.clone(), source: Source::Api }
}

fn judge(kind: &str, object: &Value, fact: &SpecFact, may_use: &UseFact) -> (Vec<Question>, Decision) {
    let body = body(kind, object);
    let review = Review::parse(body.as_bytes(), Webhook::ValidateWorkload).unwrap();
    let mut asked = Vec::new();
    let step = Decision::begin(review, Webhook::ValidateWorkload, Settings::default());
    let decision = step
        .answered_by(async |question| {
            asked.push(question.clone());
            match question {
                Question::Contents(..) => Fact::Contents(known(fact)),
                Question::Use(..) => Fact::Use(known(may_use)),
            }
        })
        .now_or_never()
        .unwrap();
    assert!(decision.is_allowed());
    (asked, decision)
}

/// The contents of a credential spec, and whether the service account `web` may use it.
fn questions(name: &str) -> [Question; 2] {
    let account = ServiceAccount { namespace: Arc::from("shop"), name: Arc::from("web") };
    let name = SpecName::parse(name).unwrap();
    [Question::Contents(name.clone(), Freshness::Any), Question::Use(account, Verb::Use, name)]
}

fn usable() -> SpecFact {
    SpecFact::Contents(Arc::new(Contents::of_spec(&json!({"credspec": {"a": 1}})).unwrap()))
}

fn denied() -> UseFact {
    UseFact::Denied { reason: None }
}

#[test]
fn every_kind_of_workload_is_looked_into() {
    for kind in Kind::ALL.map(of_review) {
        let (asked, decision) = judge(kind, &in_template(kind, &template("web")), &SpecFact::Missing, &denied());
        assert_eq!(asked, questions("web"), "{kind}");
        assert_eq!(
            decision.warnings,
            [
                "GMSA cred spec \"web\" does not exist: the pods will be refused [spec-missing]",
                "service account \"web\" may not use GMSA cred spec \"web\": the pods will be refused [not-authorized]",
            ]
        );
        assert_eq!(decision.reason, "workload");
    }
}

#[test]
fn a_spec_that_many_slots_name_is_one_of_those_that_are_left_out() {
    let mut template = template("s0");
    let named = |spec: usize| json!({"windowsOptions": {"gmsaCredentialSpecName": format!("s{spec}")}});
    template["spec"]["containers"] =
        (1..18).chain([17]).map(|spec| json!({"name": "c", "securityContext": named(spec)})).collect();
    let object = in_template("", &template);
    let (_, decision) = judge("Deployment.apps", &object, &SpecFact::Missing, &UseFact::Allowed);
    assert_eq!(decision.warnings.len(), 17);
    assert_eq!(decision.warnings[16], "2 more GMSA warnings are left out");
}

#[test]
fn the_template_is_where_its_pointer_says() {
    for kind in Kind::ALL.map(of_review) {
        let object = in_template(kind, &template("web"));
        assert_eq!(object.pointer(Kind::of_review(kind).unwrap().facts().template), Some(&template("web")), "{kind}");
    }
    assert_eq!(Kind::of_review("Pod"), None);
}

#[test]
fn what_is_right_is_not_talked_about() {
    let (_, decision) = judge("Deployment.apps", &in_template("", &template("web")), &usable(), &UseFact::Allowed);
    assert_eq!(decision.warnings, [""; 0]);
}

#[test]
fn what_windows_does_not_have_is_said_of_every_kind() {
    let mut template = template("web");
    template["spec"]["hostPID"] = json!(true);
    template["spec"]["hostname"] = json!("web");
    template["spec"]["containers"][0]["image"] = json!("mcr.microsoft.com/windows/nanoserver:ltsc2022");
    template["spec"]["containers"][0]["securityContext"] = json!({"runAsUser": 0, "privileged": false});
    let said = |kind: &str, template: &Value| {
        let mut object = in_template(kind, template);
        object["spec"]["replicas"] = json!(3);
        judge(kind, &object, &usable(), &UseFact::Allowed).1.warnings
    };
    let nano =
        "container \"iis\" runs on Nano Server as ContainerUser: set runAsUserName to NETWORK SERVICE [nano-server]";
    let hosts = "3 replicas have the same host name \"web\": services that register it conflict [shared-hostname]";
    for kind in Kind::ALL.map(of_review) {
        let expected = [
            "the pod sets hostPID: Windows cannot share namespaces of the host [linux-only]",
            "container \"iis\" sets securityContext.runAsUser: Windows has runAsUserName instead [linux-only]",
            nano,
            hosts,
        ];
        assert_eq!(said(kind, &template), expected, "{kind}");
    }
    // With `spec.os.name` the API server refuses them with any value.
    template["spec"]["os"] = json!({"name": "windows"});
    assert_eq!(
        said("Deployment.apps", &template),
        [
            "the pod sets hostPID: refused with spec.os.name: windows [linux-only]",
            "container \"iis\" sets securityContext.privileged: refused with spec.os.name: windows [linux-only]",
            "container \"iis\" sets securityContext.runAsUser: refused with spec.os.name: windows [linux-only]",
            nano,
            hosts,
        ]
    );
    // Nothing is said of pods that do not use GMSA.
    template["spec"]["securityContext"] = Value::Null;
    assert_eq!(said("Deployment.apps", &template), [""; 0]);
    // A field that cannot be read keeps nothing else back.
    let mut odd = in_template(
        "",
        &json!({"spec": {"dnsPolicy": 7, "securityContext": {"windowsOptions": {"gmsaCredentialSpecName": "web"}}}}),
    );
    odd["spec"]["replicas"] = json!("many");
    let (_, decision) = judge("Deployment.apps", &odd, &SpecFact::Missing, &UseFact::Allowed);
    assert_eq!(decision.warnings[0], "GMSA cred spec \"web\" does not exist: the pods will be refused [spec-missing]");
}

#[test]
fn what_could_not_be_found_out_is_said() {
    let failure = Failure { kind: FailureKind::TimedOut, ..Failure::new("x".repeat(500)) };
    let (_, decision) = judge(
        "Deployment.apps",
        &in_template("", &template("web")),
        &SpecFact::Failed(failure.clone()),
        &UseFact::Failed(failure),
    );
    assert_eq!(
        decision.warnings,
        [
            "GMSA cred spec \"web\" could not be read, so this workload was not checked [spec-unreadable]",
            "it could not be checked whether service account \"web\" may use GMSA cred spec \"web\" [authorization-failed]",
        ]
    );
}

#[test]
fn a_spec_without_contents_is_warned_of() {
    let (_, decision) = judge("Job.batch", &in_template("", &template("web")), &SpecFact::Unusable, &UseFact::Allowed);
    assert_eq!(
        decision.warnings,
        ["GMSA cred spec \"web\" has no credspec key: the pods will be refused [spec-unusable]"]
    );
}

#[test]
fn hostile_templates_are_warned_of_and_never_asked_about() {
    let mut template = template("../../version");
    template["spec"]["containers"] = json!([
        {"name": "a", "securityContext": {"windowsOptions": {"gmsaCredentialSpec": "{}"}}},
        {"name": "b", "securityContext": {"windowsOptions": {"gmsaCredentialSpecName": "ok", "gmsaCredentialSpec": "{}"}}},
    ]);
    let (asked, decision) = judge("Deployment.apps", &in_template("", &template), &usable(), &UseFact::Allowed);
    assert_eq!(asked, questions("ok"));
    assert_eq!(
        decision.warnings,
        [
            "GMSA cred spec name \"../../version\" is not a lower-case DNS subdomain: the pods will be refused [invalid-spec-name]",
            "container \"a\" has GMSA cred spec contents without its name: the pods will be refused [contents-without-name]",
            "container \"b\" has other contents than GMSA cred spec \"ok\": the pods will be refused [contents-differ]",
        ]
    );

    let mut template = self::template("web");
    template["spec"]["serviceAccountName"] = json!("a b");
    template["spec"]["securityContext"]["windowsOptions"]["gmsaCredentialSpec"] = json!("{}");
    let (asked, decision) = judge("Deployment.apps", &in_template("", &template), &usable(), &UseFact::Allowed);
    assert_eq!(asked, []);
    assert_eq!(
        decision.warnings,
        [
            "service account name \"a b\" is not a lower-case DNS subdomain: the pods will be refused [invalid-service-account]"
        ]
    );
}

#[test]
fn the_template_s_own_slot_has_no_name() {
    let mut template = template("web");
    template["spec"]["securityContext"] = json!({"windowsOptions": {"gmsaCredentialSpec": "{}"}});
    let (_, decision) = judge("Deployment.apps", &in_template("", &template), &usable(), &UseFact::Allowed);
    assert_eq!(
        decision.warnings,
        [
            "the pod template has GMSA cred spec contents without its name: the pods will be refused [contents-without-name]"
        ]
    );
}

#[test]
fn the_questions_are_bounded() {
    let containers: Vec<_> = (0..1000)
        .map(|n| json!({"name": "c", "securityContext": {"windowsOptions": {"gmsaCredentialSpecName": format!("s{n}")}}}))
        .collect();
    let mut template = template("web");
    template["spec"]["containers"] = json!(containers);
    let (asked, decision) = judge("Deployment.apps", &in_template("", &template), &usable(), &UseFact::Allowed);
    assert_eq!(asked.len(), 2 * 24);
    assert_eq!(
        decision.warnings,
        [
            "the pods have more than 999 containers: they will be refused [too-many-slots]",
            "the pods name more than 24 distinct GMSA cred specs: they will be refused [too-many-specs]",
        ]
    );
}

#[test]
fn owned_linux_and_foreign_objects_are_passed_over() {
    let owned = json!({
        "metadata": {"ownerReferences": [{"kind": "Deployment", "name": "web", "controller": true}]},
        "spec": {"template": template("web")},
    });
    let mut linux = template("web");
    linux["spec"]["os"] = json!({"name": "linux"});
    for (kind, object, reason) in [
        ("ReplicaSet.apps", owned, "controlled"),
        ("Deployment.apps", in_template("", &linux), "linux"),
        ("Deployment.apps", in_template("", &json!({"spec": {"containers": [{"name": "a"}]}})), "no-gmsa"),
        ("Deployment.apps", Value::Null, "no-gmsa"),
        ("Scale.autoscaling", in_template("", &template("web")), "no-gmsa"),
        ("Deployment.example.com", json!({"spec": {"template": 1}}), "no-gmsa"),
    ] {
        let (asked, decision) = judge(kind, &object, &SpecFact::Missing, &denied());
        assert_eq!((asked, decision.reason, decision.warnings), (vec![], reason, vec![]), "{kind}");
    }
}

#[test]
fn a_template_is_advised_on_as_its_pods_would_be() {
    let mut template = template("web");
    template["spec"]["nodeSelector"] = json!({});
    let (_, decision) = judge("CronJob.batch", &in_template("CronJob.batch", &template), &usable(), &UseFact::Allowed);
    assert_eq!(
        decision.warnings,
        [
            "the pod uses GMSA but may land on a Linux node: set spec.os.name and nodeSelector kubernetes.io/os: windows [linux-node]"
        ]
    );
}
