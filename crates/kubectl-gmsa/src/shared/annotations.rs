//! The annotations of this project that users write, and what is written for them by mistake.

use gmsa_core::{
    admission::pod::{RANDOM_HOSTNAME, tickets},
    credspec::services::{self, KEYTAB},
};

/// The annotation that a key of annotations or labels means: one of ours, or one that is misspelt or has another prefix.
pub fn meant(key: &str) -> Option<&'static str> {
    let bare = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let (prefix, name) = key.rsplit_once('/').unwrap_or(("", key));
    let (prefix, name) = (bare(prefix), bare(name));
    // `gmsa-tickets` without a prefix; `gsma-webhook` with a misspelt one.
    let is_ours = prefix.contains("gmsa") || strsim::osa_distance(&prefix, "gmsawebhook") <= 2;
    let name = match name.strip_prefix("gmsa") {
        Some(rest) => rest.strip_prefix("webhook").unwrap_or(rest),
        None if is_ours => &name,
        None => return None,
    };
    [tickets::ANNOTATION, services::ANNOTATION, KEYTAB, RANDOM_HOSTNAME].into_iter().find(|own| {
        let own = bare(own.rsplit_once('/').map_or("", |(_, own)| own));
        strsim::osa_distance(name, &own) <= own.len() / 4
            || name.trim_end_matches('s').ends_with(own.trim_end_matches('s'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_annotation_is_told_from_another_one() {
        for (key, own) in [
            ("gmsa-webhook/tickets", Some(tickets::ANNOTATION)),
            ("gmsa-webhook/ticket", Some(tickets::ANNOTATION)),
            ("gmsa-webhook/Tickets", Some(tickets::ANNOTATION)),
            ("gmsa-webhook/tikcets", Some(tickets::ANNOTATION)),
            ("gmsa-webhook.io/tickets", Some(tickets::ANNOTATION)),
            ("gmsa-webhook/gmsa-tickets", Some(tickets::ANNOTATION)),
            ("GMSA-Webhook/tickets", Some(tickets::ANNOTATION)),
            ("gmsa/tickets", Some(tickets::ANNOTATION)),
            ("gsma-webhook/tickets", Some(tickets::ANNOTATION)),
            ("gmsawebhook/tickets", Some(tickets::ANNOTATION)),
            ("gmsa_webhook/tickets", Some(tickets::ANNOTATION)),
            ("gmsa-webhook-tickets", Some(tickets::ANNOTATION)),
            ("gmsa-tickets", Some(tickets::ANNOTATION)),
            ("gmsa-tickets/ticket", Some(tickets::ANNOTATION)),
            ("admission-webhook.windows-gmsa.sigs.k8s.io/tickets", Some(tickets::ANNOTATION)),
            ("gmsa-webhook/kerberos-tickets", Some(tickets::ANNOTATION)),
            ("gmsa-webhook/services", Some(services::ANNOTATION)),
            ("gmsa-webhook/service", Some(services::ANNOTATION)),
            ("gmsa-webhook.io/Services", Some(services::ANNOTATION)),
            ("gmsa-webhook/keytabs", Some(KEYTAB)),
            ("gmsa-webhook/Keytab", Some(KEYTAB)),
            ("gmsa-keytab", Some(KEYTAB)),
            ("gmsa-webhook/random-hostnames", Some(RANDOM_HOSTNAME)),
            ("gmsa-webhook/randomHostname", Some(RANDOM_HOSTNAME)),
            ("gmsa-webhook/crd-revision", None),
            ("gmsa-webhook/rotate-ca", None),
            ("gmsa-webhook/pods", None),
            ("example.com/tickets", None),
            ("jira/ticket", None),
            ("tickets", None),
            ("services", None),
            ("app.kubernetes.io/part-of", None),
            ("pod.alpha.windows.kubernetes.io/gmsa-credential-spec-name", None),
            ("windows.k8s.io/gmsa", None),
        ] {
            assert_eq!(meant(key), own, "{key}");
        }
    }
}
