//! What a message means with which the API server refuses the pods of a workload: the rule, and what to do.
//!
//! The webhook's messages are those of `Denial` in the core, which the Go webhook shares. The others are of kube-apiserver:
//! `plugin/pkg/admission/serviceaccount/admission.go`, `plugin/pkg/admission/runtimeclass/admission.go`, and
//! `staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go` for webhooks that are not reached.

use gmsa_core::{
    admission::pod::Pod,
    credspec::lint::suggest_name,
    diagnostic::{
        Diagnostic,
        rules::{self, Rule},
    },
};
use serde_json::{Value, json};

use super::{
    remedy::{self, Subject},
    workload::Workload,
};

/// Parts of messages, and the rules that they are about. The first that fits counts.
const MESSAGES: [(&str, &Rule); 14] = [
    ("is not authorized to `use`", &rules::NOT_AUTHORIZED),
    ("unable to retrieve the contents of cred spec", &rules::SPEC_UNREADABLE),
    ("unable to check whether service account", &rules::AUTHORIZATION_FAILED),
    ("does not have a credspec key", &rules::SPEC_UNUSABLE),
    ("but does not define the name of the corresponding resource", &rules::CONTENTS_WITHOUT_NAME),
    ("does not match the contents of GMSA resource", &rules::CONTENTS_DIFFER),
    ("but does not carry its contents", &rules::NAME_WITHOUT_CONTENTS),
    ("error looking up service account", &rules::SERVICE_ACCOUNT_MISSING),
    ("pod rejected: RuntimeClass", &rules::RUNTIME_CLASS_MISSING),
    ("failed calling webhook", &rules::WEBHOOK_UNREACHABLE),
    ("distinct GMSA cred specs", &rules::TOO_MANY_SPECS),
    ("the GMSA cred spec contents of this pod would take", &rules::PATCH_TOO_LARGE),
    ("containers, init containers and ephemeral containers together", &rules::TOO_MANY_SLOTS),
    ("cannot update an existing pod's GMSA settings", &rules::MODIFIED),
];

/// The finding about a workload whose pods are refused with this message. `count` says how many pods it has.
pub fn found(workload: &Workload, count: &str, message: &str) -> Diagnostic {
    let message = said(message);
    let rule = rule(message);
    let found = Diagnostic::new(rule, format!("{count}: {message}"));
    Diagnostic { fix: fix(rule, message, workload), ..found }
}

/// The message without the words of the controller: `Error creating: pods "web-" is forbidden: …`.
pub fn said(message: &str) -> &str {
    let rest = message.strip_prefix("Error creating: ").unwrap_or(message);
    rest.split_once(" failed error: ").map_or(rest, |(_, said)| said)
}

/// The rule that a message is about.
pub fn rule(message: &str) -> &'static Rule {
    find(message).map_or(&rules::POD_REFUSED, |(_, rule)| rule)
}

/// The words by which a refusal is recognised, and the rule that they are about.
pub fn find(message: &str) -> Option<(&'static str, &'static Rule)> {
    const INVALID: &str = "is not a lower-case DNS subdomain";
    const ABSENT: &str = " does not exist";
    let is_of_spec = message.contains("cred spec");
    if message.contains(INVALID) {
        return Some((INVALID, if is_of_spec { &rules::INVALID_SPEC_NAME } else { &rules::INVALID_SERVICE_ACCOUNT }));
    }
    let known = MESSAGES.iter().find(|(part, _)| message.contains(part)).copied();
    known.or_else(|| {
        (is_of_spec && message.contains(ABSENT)).then_some(("cred spec … does not exist", &rules::SPEC_MISSING))
    })
}

fn fix(rule: &Rule, message: &str, workload: &Workload) -> Option<String> {
    let pod = Pod::from_json(&workload.template.to_string()).ok()?;
    let account = pod.service_account();
    match rule {
        _ if *rule == rules::NOT_AUTHORIZED => {
            remedy::grant(quoted_after(message, "GMSA cred spec \"")?, &workload.namespace, account)
        }
        _ if *rule == rules::SPEC_MISSING => {
            let (_, rest) = message.split_once("cred spec ")?;
            Some(remedy::create_spec(rest.split(' ').next()?))
        }
        _ if *rule == rules::SERVICE_ACCOUNT_MISSING => remedy::create_account(&workload.namespace, account),
        _ if *rule == rules::INVALID_SPEC_NAME => Some(Subject::Workload(workload).change(&named(&pod)?)),
        _ => None,
    }
}

/// The text up to the next quote.
fn quoted_after<'m>(message: &'m str, start: &str) -> Option<&'m str> {
    message.split_once(start)?.1.split('"').next()
}

/// The spec of the pod with a valid name in its first slot that has none.
pub fn named(pod: &Pod) -> Option<Value> {
    let slot = pod.slots().find(|slot| slot.name.is_some_and(|name| suggest_name(name) != name))?;
    let name = suggest_name(slot.name?);
    let context = json!({"windowsOptions": {"gmsaCredentialSpecName": name}});
    Some(match slot.kind.field() {
        None => json!({"securityContext": context}),
        Some(list) => json!({(list): [{"name": slot.owner, "securityContext": context}]}),
    })
}
