//! The DNS of the cluster: whether the domains of the credential specs are forwarded, and to which servers.
//!
//! Invariants: nothing is resolved. A domain without its own zone may be correct: the default servers may know it.

use gmsa_core::{
    causes,
    diagnostic::{Check, Diagnostic, Severity},
    quote::one_line,
};

use super::parts::{Judged, Parts, domains};
use crate::shared::{
    cluster_dns::{self, ClusterDns},
    corefile::{Destination, Forward, is_of_node, is_public},
    rules,
    unread::{Remedy, because, not_checked},
};

pub(super) const DNS: &str = "DNS";

/// A check for each domain.
pub(super) fn check(parts: &Parts) -> Judged<'_> {
    let (domains, objects) = (domains(parts.specs.as_ref()?), parts.dns.as_ref()?);
    if domains.is_empty() {
        return Ok(Vec::new());
    }
    Ok(match ClusterDns::of(objects) {
        Ok(Some(dns)) => domains.iter().map(|domain| of_domain(&dns, domain)).collect(),
        Ok(None) => {
            let cause = "there is no ConfigMap coredns, rke2-coredns-rke2-coredns or kube-dns in kube-system, and no dns.operator.openshift.io";
            let remedy = "Find out what answers the DNS questions of pods (on GKE perhaps Cloud DNS), and whether it forwards the domain. See docs/windows-pods.md.";
            vec![because(DNS, cause, Remedy::new(remedy))]
        }
        Err(error) if cluster_dns::is_too_large(&error) => vec![not_checked(DNS, &error)],
        Err(error) => vec![Check::breach(DNS, &rules::DNS_CONFIGURATION, causes::chain(error.as_ref()))],
    })
}

fn of_domain(dns: &ClusterDns, domain: &str) -> Check {
    let ClusterDns { place, corefile } = dns;
    let answer = corefile.answer(domain);
    let is_of_domain = matches!(&answer, Destination::Forwarded(forward) if forward.zone != ".");
    if let Some(unread) = corefile.unread.first().filter(|_| !is_of_domain) {
        let cause = format!("the Corefile of {place} has {:?}, which may be about {domain}", one_line(unread));
        return because(DNS, &cause, Remedy::new("Look there for a zone of the domain. See docs/windows-pods.md."));
    }
    if let Some(port) = corefile.other_port(domain) {
        let asked = corefile.port();
        let text = format!("{domain}: its zone in {place} is at port {port}, and pods ask at port {asked}");
        let moved = Diagnostic::new(&rules::DNS_ZONE, text).with_severity(Severity::Warning);
        return Check::found(DNS, moved.with_fix(format!("Write the zone as `{domain}:{asked}`.")));
    }
    match answer {
        Destination::Forwarded(forward) => judged(domain, &forward, place),
        Destination::NotForwarded(zone) => {
            let text = format!("the zone {} of {place} does not forward it, so other plugins answer", one_line(&zone));
            missing(domain, Severity::Note, &text)
        }
        Destination::Nowhere => {
            missing(domain, Severity::Error, &format!("{place} has no zone for it, and none for all other names"))
        }
    }
}

/// The line for a domain that no zone forwards, with the remedy.
fn missing(domain: &str, severity: Severity, text: &str) -> Check {
    let missing = Diagnostic::new(&rules::DNS_ZONE, format!("{domain}: {text}")).with_severity(severity);
    let command = format!(
        "`kubectl gmsa dns --domain {domain} --server IP --server IP` prints the zone to add. It is not needed where the domain is \
         resolved already. See docs/windows-pods.md."
    );
    Check::found(DNS, missing.with_fix(command))
}

/// The line about the servers for a domain.
fn judged(domain: &str, forward: &Forward, place: &str) -> Check {
    let count = |is: fn(&str) -> bool| forward.servers.iter().filter(|server| is(server)).count();
    let (public, of_node, all) = (count(is_public), count(is_of_node), forward.servers.len());
    let is_root = forward.zone == ".";
    let servers = forward.servers.iter().map(|server| one_line(server)).collect::<Vec<_>>().join(", ");
    let zone = if is_root {
        "no zone is for it, and all other names go".to_owned()
    } else {
        format!("the zone {} goes", one_line(&forward.zone))
    };
    let text = format!("{domain}: {zone} to {servers} ({place})");
    let resolvers = |problem: &str, severity| {
        Check::found(DNS, Diagnostic::new(&rules::DNS_RESOLVERS, format!("{text}: {problem}")).with_severity(severity))
    };
    // Sequential servers are asked only if the first does not answer.
    let mixed = if forward.is_sequential { Severity::Warning } else { Severity::Error };
    if public > 0 && public == all {
        return resolvers("public resolvers do not know it", Severity::Error);
    } else if public > 0 {
        return resolvers("public resolvers do not know it, and are asked too", mixed);
    } else if of_node > 0 && of_node < all {
        return resolvers("the resolvers of the node are asked too, and may not know it", Severity::Warning);
    } else if of_node > 0 {
        let of_node = format!(
            "{zone} to the resolvers of the nodes that the DNS runs on ({servers}, {place}): this works where they know the domain"
        );
        return missing(domain, Severity::Note, &of_node);
    } else if all < 2 {
        return Check::breach(DNS, &rules::DNS_SERVERS, text);
    }
    Check::pass(DNS, text)
}
