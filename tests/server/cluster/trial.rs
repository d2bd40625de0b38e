//! A trial in some namespaces: there every denial is a warning, and everywhere else it is a denial.

use std::{collections::BTreeSet, sync::Arc};

use gmsa_core::admission::{Verdict, Webhook};

use super::{
    REVIEWS,
    pods::{WEB, simple},
    replica::{Replica, decide},
};
use crate::support::{Fault, Verb};

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
