//! A trial in some namespaces: there every denial is a warning, and everywhere else it is a denial.

use std::{collections::BTreeSet, sync::Arc};

use gmsa_core::admission::{Verdict, Webhook};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{
    REVIEWS,
    pods::{WEB, simple},
    replica::{Replica, decide},
};
use crate::support::{Fault, Gate, Verb};

#[tokio::test]
async fn denials_are_warnings_in_the_namespaces_of_the_trial_alone() {
    let mut replica = Replica::start().await;
    replica.reviewer.warn_namespaces = Arc::new(BTreeSet::from(["mall".to_owned()]));
    let message =
        |account: &str| format!("service account \"{account}\" is not authorized to `use` GMSA cred spec \"web\"");

    let decision = decide(&replica.reviewer, Webhook::Validate, &simple("mall", "clerk", WEB)).await;
    let Verdict::WouldDeny(denial) = &decision.verdict else { panic!("{decision:?}") };
    assert_eq!((denial.code(), denial.to_string()), (403, message("clerk")));
    assert_eq!(decision.warnings.first(), Some(&format!("GMSA, not enforced: {}", message("clerk"))));
    for (namespace, account) in [("shop", "cook"), ("mal", "clerk"), ("malls", "clerk")] {
        replica.denies(Webhook::Validate, &simple(namespace, account, WEB), 403, &message(account)).await;
    }

    // A failure says nothing of the pod, so it is refused there too.
    replica.api.fault(
        Verb::Create,
        REVIEWS,
        usize::MAX,
        Fault::Refuse { code: 500, reason: "InternalError", message: "no", retry_after: None },
    );
    let decision = decide(&replica.reviewer, Webhook::Validate, &simple("mall", "cook", WEB)).await;
    let Verdict::Denied(denial) = &decision.verdict else { panic!("{decision:?}") };
    assert_eq!(denial.code(), 500);
}

/// A Deployment whose pods name a credential spec.
fn workload() -> Value {
    let options = json!({"gmsaCredentialSpecName": "web", "gmsaCredentialSpec": WEB});
    let spec = json!({
        "serviceAccountName": "builder",
        "nodeSelector": {"kubernetes.io/os": "windows"},
        "securityContext": {"windowsOptions": options},
        "containers": [],
    });
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "namespace": "shop",
            "operation": "CREATE",
            "object": {"metadata": {"name": "web"}, "spec": {"template": {"spec": spec}}}
        }
    })
}

#[tokio::test]
async fn what_is_asked_for_warnings_takes_nothing_from_decisions() {
    let mut replica = Replica::start().await;
    replica.reviewer.warn_namespaces = Arc::new(BTreeSet::from(["mall".to_owned()]));
    let gate = Gate::new();
    replica.api.fault(Verb::Create, "/namespaces/mall/", usize::MAX, Fault::Hold(gate.clone()));
    let mut asking = JoinSet::new();
    for number in 0..4 {
        let (reviewer, review) = (replica.reviewer.clone(), simple("mall", &format!("account-{number}"), WEB));
        asking.spawn(async move { decide(&reviewer, Webhook::Validate, &review).await });
    }
    replica.api.wait_for(Verb::Create, "/namespaces/mall/", 4).await;
    // Of one more, nothing is checked after a while: it is admitted.
    let decision = decide(&replica.reviewer, Webhook::Validate, &simple("mall", "late", WEB)).await;
    let Verdict::WouldDeny(denial) = &decision.verdict else { panic!("{decision:?}") };
    let message = "unable to check whether service account \"late\" is authorized to `use` GMSA cred spec \"web\": \
        4 other calls to the API server for warnings were under way for 0.2 s";
    assert_eq!((denial.code(), denial.to_string()), (500, message.to_owned()));
    let decision = decide(&replica.reviewer, Webhook::ValidateWorkload, &workload()).await;
    let unchecked = "it could not be checked whether service account \"builder\" may use GMSA cred spec \"web\"";
    assert_eq!(
        (decision.verdict, decision.warnings),
        (Verdict::Allowed, vec![format!("{unchecked} [authorization-failed]")])
    );
    // A pod where denials are enforced waits for none of them.
    replica.allows(Webhook::Validate, &simple("shop", "till", WEB)).await;
    assert_eq!(replica.api.count(Verb::Create, "/namespaces/mall/"), 4);
    gate.open();
    while let Some(decision) = asking.join_next().await {
        assert!(decision.unwrap().is_allowed());
    }
}
