//! Whether policies from files of the control plane protect the webhook configurations. Such policies cannot be read; what they refuse shows
//! that they are in force.
//!
//! Invariants: the name that is tried belongs to no configuration, so that a dry run that is stored by mistake calls no webhook.

use anyhow::Error;
use serde_json::{Value, json};

use super::{found, not_checked};
use crate::shared::{
    connection::{Cluster, is_forbidden},
    rules,
};
use gmsa_core::diagnostic::Check;

const PROTECTION: &str = "protection";
const PATH: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All";

/// The check of the configurations of the release with this name.
pub(super) async fn check(cluster: &Cluster, release: &str) -> Check {
    // The static policies of the chart refuse this name to everybody.
    let probe = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": format!("{release}-static-policies")},
    });
    let unprotected = |text: &str| {
        found(PROTECTION, &rules::STATIC_POLICIES, format!("{text} the webhook configurations of {release}"))
    };
    match cluster.post::<Value>(PATH, &probe).await {
        Ok(_) => unprotected("no static policies protect"),
        Err(error) if refuses(&error) => {
            let text =
                format!("static policies, from files of the control plane, protect the configurations of {release}");
            Check::pass(PROTECTION, text)
        }
        // A user who may not create a configuration cannot try it, and lacks nothing else.
        Err(error) if is_forbidden(&error) => unprotected(
            "you may not create validatingwebhookconfigurations, so it was not tried whether static policies protect",
        ),
        Err(error) => not_checked(PROTECTION, &error),
    }
}

fn refuses(error: &Error) -> bool {
    error.to_string().contains("the static policies of the GMSA webhook")
}
