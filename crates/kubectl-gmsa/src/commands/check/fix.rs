//! What to do about a denial: a command to run, or the YAML to write.

use crate::shared::grant::GrantObjects;
use gmsa_core::{
    admission::{Denial, pod::Slot},
    credspec::{is_dns_subdomain, lint::suggest_name},
};

/// The fix of a denial of one slot of a pod that runs in `namespace` as `service_account`.
pub(super) fn fix(denial: &Denial, slot: &Slot<'_>, namespace: &str, service_account: &str) -> Option<String> {
    Some(match denial {
        // An invalid name is not put into a shell command.
        Denial::NotAuthorized { .. } if !is_dns_subdomain(namespace) || !is_dns_subdomain(service_account) => {
            return None;
        }
        Denial::NotAuthorized { spec, .. } => {
            let yaml = GrantObjects { spec, namespace, service_account }.yaml();
            format!(
                "# or: kubectl gmsa grant --credspec {spec} --serviceaccount {namespace}:{service_account} --apply\n{yaml}"
            )
        }
        Denial::SpecMissing(spec) => {
            format!("kubectl gmsa credspec new {spec} --account NAME --from-ad FILE, or the name of one that exists")
        }
        Denial::SpecUnusable(spec) => {
            format!("give {spec} a credspec: kubectl gmsa credspec new {spec} --account NAME --from-ad FILE")
        }
        Denial::InvalidSpecName { .. } => {
            format!("gmsaCredentialSpecName: {}", suggest_name(slot.name.unwrap_or_default()))
        }
        Denial::ContentsWithoutName(_) => {
            "windowsOptions:\n  gmsaCredentialSpecName: NAME  # instead of gmsaCredentialSpec".to_owned()
        }
        Denial::ContentsDiffer { .. } => "remove gmsaCredentialSpec: the webhook fills it in".to_owned(),
        Denial::SpecUnreadable { spec, .. } => {
            format!("find out why: kubectl auth can-i get gmsacredentialspecs.windows.k8s.io/{spec}")
        }
        Denial::AuthorizationFailed { .. } if !is_dns_subdomain(namespace) => return None,
        Denial::AuthorizationFailed { .. } => {
            format!(
                "find out why: kubectl auth can-i create localsubjectaccessreviews.authorization.k8s.io --namespace {namespace}"
            )
        }
        Denial::NameWithoutContents { .. } => {
            "remove spec.os.name: linux, or the name: the webhook leaves Linux pods alone".to_owned()
        }
        _ => return None,
    })
}
