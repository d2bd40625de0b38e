//! What is said about a pod, seen through `/validate`.

use futures::FutureExt as _;
use serde_json::{Value, json};

use super::advise_template;
use crate::{
    admission::{
        Decision, Fact, Known, Question, Review, Settings, Source, SpecFact, UseFact, Webhook,
        pod::{Pod, fields},
    },
    credspec::Contents,
    diagnostic::Severity,
};

const BUILD: &str = "node.kubernetes.io/windows-build";

/// The warnings of `/validate` on a pod whose credential spec `web` is as it should be.
fn warnings(operation: &str, pod: &Value) -> Vec<String> {
    let body = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": operation, "namespace": "shop", "kind": {"group": "", "kind": "Pod"},
            "object": pod, "oldObject": if operation == "UPDATE" { pod.clone() } else { Value::Null },
        },
    })
    .to_string();
    let review = Review::parse(body.as_bytes(), Webhook::Validate).unwrap();
    let contents = std::sync::Arc::new(Contents::of_spec(&json!({"credspec": {}})).unwrap());
    let spec = Known { fact: SpecFact::Contents(contents), source: Source::Api };
    let may_use = Known { fact: UseFact::Allowed, source: Source::Api };
    let step = Decision::begin(review, Webhook::Validate, Settings::default());
    let decision = step
        .answered_by(async |question| match question {
            Question::Contents(..) => Fact::Contents(spec.clone()),
            Question::Use(..) => Fact::Use(may_use.clone()),
        })
        .now_or_never()
        .unwrap();
    assert!(decision.is_allowed(), "{decision:?}");
    decision.warnings
}

fn gmsa(more: &Value) -> Value {
    let mut options = json!({"gmsaCredentialSpecName": "web", "gmsaCredentialSpec": "{}"});
    options.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"windowsOptions": options})
}

/// A pod that uses GMSA, with these fields more in its spec.
fn pod(more: &Value) -> Value {
    let mut spec = json!({"securityContext": gmsa(&json!({})), "containers": [{"name": "iis"}]});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"metadata": {"name": "web"}, "spec": spec})
}

fn on_windows(more: &Value) -> Value {
    let mut pod = pod(more);
    pod["spec"]["nodeSelector"] = json!({"kubernetes.io/os": "windows"});
    pod
}

const LINUX: &str = "the pod uses GMSA but may land on a Linux node: set spec.os.name and nodeSelector kubernetes.io/os: windows [linux-node]";

#[test]
fn a_pod_that_may_land_anywhere_is_warned_of() {
    let preferred = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}]}},
    ]}});
    let either = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}]},
        {"matchExpressions": [{"key": "disk", "operator": "Exists"}]},
    ]}}});
    let both = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["windows", "linux"]}]},
    ]}}});
    let not_in = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "NotIn", "values": ["windows"]}]},
    ]}}});
    let in_none = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": BUILD, "operator": "In", "values": []}]},
    ]}}});
    for spec in [
        json!({}),
        json!({"nodeSelector": {"kubernetes.io/os": "linux"}}),
        json!({"nodeSelector": null, "affinity": null, "runtimeClassName": ""}),
        json!({"affinity": preferred}),
        json!({"affinity": either}),
        json!({"affinity": both}),
        json!({"affinity": not_in}),
        json!({"affinity": in_none}),
        // The scheduler does not read it.
        json!({"os": {"name": "windows"}}),
    ] {
        assert_eq!(warnings("CREATE", &pod(&spec)), [LINUX], "{spec}");
    }
}

#[test]
fn a_pod_that_keeps_to_windows_is_not() {
    let required = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [
            {"key": "disk", "operator": "Exists"},
            {"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]},
        ]},
    ]}}});
    let on_a_build = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [
            {"key": BUILD, "operator": "In", "values": ["10.0.20348"]},
            {"key": "disk", "operator": "Exists"},
        ]},
    ]}}});
    let not_linux = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "NotIn", "values": ["linux"]}]},
    ]}}});
    for spec in [
        json!({"affinity": on_a_build}),
        json!({"nodeSelector": {"kubernetes.io/os": "windows", "disk": "ssd"}}),
        json!({"nodeSelector": {BUILD: "10.0.20348"}}),
        json!({"runtimeClassName": "windows-2022"}),
        json!({"affinity": required}),
        json!({"nodeSelector": {"beta.kubernetes.io/os": "windows"}}),
        json!({"affinity": not_linux}),
    ] {
        assert_eq!(warnings("CREATE", &pod(&spec)), [""; 0], "{spec}");
    }
}

#[test]
fn a_pod_for_an_operating_system_that_no_node_has_is_warned_of() {
    const NONE: &str =
        "no node has this operating system, so the pod stays Pending: write kubernetes.io/os: windows [os-selector]";
    let term =
        |key: &str, value: &str| json!({"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]});
    let terms = |terms: &[Value]| {
        let required = json!({"nodeSelectorTerms": terms});
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}})
    };
    let (right, wrong) = (term("kubernetes.io/os", "windows"), term("kubernetes.io/os", "Windows"));
    for (spec, expected) in [
        (json!({"nodeSelector": {"kubernetes.io/os": "Windows"}}), NONE),
        (json!({"nodeSelector": {"kubernetes.io/OS": "windows"}, "os": {"name": "windows"}}), NONE),
        (json!({"nodeSelector": {"kubernetes.io/os": "win"}}), NONE),
        (json!({"nodeSelector": {"beta.kubernetes.io/os": "Windows"}}), NONE),
        (json!({"nodeSelector": {"kubernetes.io/os": "linux"}}), LINUX),
        (terms(std::slice::from_ref(&wrong)), NONE),
        (terms(&[term("Kubernetes.io/os", "windows"), wrong.clone()]), NONE),
        (terms(&[term("kubernetes.io/os", "linux"), wrong]), LINUX),
    ] {
        assert_eq!(warnings("CREATE", &pod(&spec)), [expected], "{spec}");
    }
    let spec = terms(&[right, term("kubernetes.io/os", "WINDOWS")]);
    assert_eq!(warnings("CREATE", &pod(&spec)), [""; 0], "only one of the terms can be met");
}

#[test]
fn only_system_and_network_service_act_as_the_account() {
    for user in ["SYSTEM", "NT AUTHORITY\\SYSTEM", "nt authority\\network service", "NetworkService", "LocalSystem"] {
        let spec =
            json!({"containers": [{"name": "iis", "securityContext": {"windowsOptions": {"runAsUserName": user}}}]});
        assert_eq!(warnings("CREATE", &on_windows(&spec)), [""; 0], "{user}");
    }
    let spec = json!({
        "securityContext": gmsa(&json!({"runAsUserName": "ContainerUser"})),
        "containers": [
            {"name": "inherits"},
            {"name": "own", "securityContext": {"windowsOptions": {"runAsUserName": "SYSTEM"}}},
        ],
        "initContainers": [{"name": "setup", "securityContext": {"windowsOptions": {"runAsUserName": "CONTOSO\\me"}}}],
    });
    assert_eq!(
        warnings("CREATE", &on_windows(&spec)),
        [
            "container \"inherits\" runs as \"ContainerUser\": only SYSTEM and NETWORK SERVICE act as the gMSA [run-as-user]",
            "init container \"setup\" runs as \"CONTOSO\\\\me\": only SYSTEM and NETWORK SERVICE act as the gMSA [run-as-user]",
        ]
    );
}

#[test]
fn a_host_process_is_not_the_account() {
    let spec = json!({"securityContext": gmsa(&json!({"hostProcess": true, "runAsUserName": "x"}))});
    assert_eq!(
        warnings("CREATE", &on_windows(&spec)),
        ["container \"iis\" is a hostProcess: it acts as the host's account, not as the gMSA [host-process]"]
    );
}

#[test]
fn containers_without_gmsa_are_left_alone() {
    let spec = json!({
        "securityContext": null,
        "containers": [
            {"name": "iis", "securityContext": gmsa(&json!({}))},
            {"name": "logs", "securityContext": {"windowsOptions": {"runAsUserName": "ContainerUser"}}},
        ],
    });
    assert_eq!(warnings("CREATE", &on_windows(&spec)), [""; 0]);
    assert_eq!(warnings("CREATE", &json!({"spec": {"containers": [{"name": "iis"}]}})), [""; 0]);
}

#[test]
fn updates_are_not_advised_on() {
    assert_eq!(warnings("UPDATE", &pod(&json!({}))), [""; 0]);
}

/// The pointers and severities of what is said of three pods of this template.
fn of_template(pod: &Value) -> Vec<(String, Severity)> {
    let json = pod.to_string();
    let advice = advise_template(&Pod::from_json(&json).unwrap(), &fields::read(&json), Some(3));
    advice.into_iter().map(|found| (found.field, found.severity)).collect()
}

#[test]
fn a_template_for_linux_or_without_gmsa_is_left_alone() {
    let windows = pod(&json!({"hostname": "web"}));
    assert_eq!(of_template(&windows), [("/spec/hostname".to_owned(), Severity::Warning)]);
    assert_eq!(of_template(&pod(&json!({"hostname": "web", "os": {"name": "linux"}}))), []);
    assert_eq!(of_template(&pod(&json!({"hostname": "web", "securityContext": null}))), []);
}

#[test]
fn what_windows_does_not_have_is_worse_where_it_is_refused() {
    let host = |os: &str| {
        pod(&json!({
            "os": {"name": os}, "hostPID": true, "hostNetwork": true, "securityContext": gmsa(&json!({"hostProcess": true})),
            "containers": [{"name": "iis", "securityContext": {"privileged": false}}],
        }))
    };
    let privileged = "/spec/containers/0/securityContext/privileged";
    let of = |pointer: &str, severity| (pointer.to_owned(), severity);
    // For a host process the network of the host is right.
    assert_eq!(of_template(&host("")), [of("/spec/hostPID", Severity::Warning)]);
    let refused = [of("/spec/hostPID", Severity::Error), of(privileged, Severity::Error)];
    assert_eq!(of_template(&host("windows")), refused);
    let mut plain = host("");
    plain["spec"]["securityContext"] = gmsa(&json!({}));
    let warned = ["/spec/hostPID", "/spec/hostNetwork"].map(|pointer| of(pointer, Severity::Warning));
    assert_eq!(of_template(&plain), warned);
}

#[test]
fn the_user_of_the_container_on_nano_server_is_looked_at() {
    let user = json!({"windowsOptions": {"runAsUserName": "NT AUTHORITY\\NETWORK SERVICE"}});
    let container =
        |name: &str, image: &str, context: &Value| json!({"name": name, "image": image, "securityContext": context});
    let nano = "images.invalid/windows/nanoserver:ltsc2022";
    let template = pod(&json!({
        "containers": [container("core", "images.invalid/core", &json!({})), container("set", nano, &user), container("unset", nano, &json!({}))],
        "initContainers": [container("core", "images.invalid/core", &json!({})), container("unset", nano, &json!({}))],
    }));
    let expected = ["/spec/containers/2", "/spec/initContainers/1"];
    let found: Vec<_> = of_template(&template).into_iter().map(|(pointer, _)| pointer).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}");
    }
}
