//! Services of other domains: referrals that are followed, those that are not, and what other domains' KDCs refuse.

use std::time::Duration;

use gmsa_test_support::kdc::{Conduct, Kdc, Lie};
use gmsa_tickets::limits::Times;

use crate::{
    dns::Dns,
    world::{World, pass, spec, times},
};

const SERVICE: &str = "HTTP/web.northwind.com";

/// The configuration of other domains with these KDCs.
fn referrals(domains: &[(&str, &Kdc)]) -> String {
    let entry = |(name, kdc): &(&str, &Kdc)| {
        format!("  - name: {name}\n    controllers: [{}]\n    kdcPort: {}\n", kdc.address.ip(), kdc.address.port())
    };
    format!("  referrals:\n{}", domains.iter().map(entry).collect::<String>())
}

/// contoso.com refers the listed service to northwind.com, which has it.
async fn northwind() -> (World, Kdc) {
    northwind_with(times()).await
}

async fn northwind_with(times: Times) -> (World, Kdc) {
    let other = Kdc::start("northwind.com").await;
    let world = World::with(times, &referrals(&[("Northwind.com", &other)])).await;
    world.api.apply(spec("webapp1", Some(SERVICE)));
    world.kdc.trust(&other);
    world.kdc.refer(SERVICE, "NORTHWIND.COM");
    other.service(SERVICE);
    (world, other)
}

#[tokio::test]
async fn a_pod_gets_a_ticket_for_a_service_of_another_domain_under_both_realms() {
    let (world, other) = northwind().await;
    world.api.apply(spec("webapp1", Some("HTTP/web.northwind.com, HTTP/app.contoso.com")));
    let answer = world.ask().await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.body["services"], serde_json::json!([SERVICE, "HTTP/app.contoso.com"]));
    let ccache = answer.ccache();
    let count = |text: &str| ccache.windows(text.len()).filter(|bytes| *bytes == text.as_bytes()).count();
    let name = |realm: &str| format!("{realm}\0\0\0\x04HTTP\0\0\0\x11web.northwind.com");
    assert_eq!([count(&name("NORTHWIND.COM")), count(&name("CONTOSO.COM"))], [1, 1]);
    assert_eq!(count("CONTOSO.COM\0\0\0\x04HTTP\0\0\0\x0fapp.contoso.com"), 1);
    // No ticket between realms leaves the broker.
    assert_eq!(count("krbtgt"), 0);
    let conf = answer.body["krb5Conf"].as_str().unwrap();
    assert!(!conf.contains("northwind") && !conf.contains("[realms]"), "{conf}");
    let tgs = ["TGS+ HTTP/web.northwind.com", "TGS+ HTTP/app.contoso.com"];
    assert_eq!(
        (world.kdc.asked(), other.asked()),
        (
            [["AS WebApp1$", "AS+ WebApp1$"], tgs].concat().into_iter().map(str::to_owned).collect(),
            vec![tgs[0].to_owned()]
        )
    );
    // Nor is one kept: the account's own realm is asked each time, and refuses at once.
    assert_eq!(world.ask().await.status, 200);
    assert_eq!((world.kdc.asked(), other.asked()), (tgs.map(str::to_owned).to_vec(), vec![tgs[0].to_owned()]));
    world.kdc.conduct(Conduct::Refuse(12, Some(0xC000_0072)));
    let message = "WebApp1$@CONTOSO.COM cannot log on: it is disabled (Kerberos code 12, status 0xc0000072)";
    assert_eq!(world.ask().await.refusal(), (409, "account-disabled", message));
    assert!(other.asked().is_empty());
}

#[tokio::test]
async fn no_referral_is_followed_without_a_list() {
    let (world, other) = (World::start().await, Kdc::start("northwind.com").await);
    world.api.apply(spec("webapp1", Some(SERVICE)));
    world.kdc.trust(&other);
    let unknown = "the KDC of CONTOSO.COM refuses: it does not know the service HTTP/web.northwind.com, or knows it twice (Kerberos code 7)";
    assert_eq!(world.ask().await.refusal(), (502, "principal-unknown", unknown));
    assert_eq!(world.kdc.asked()[2..], ["TGS HTTP/web.northwind.com"]);
    world.kdc.refer(SERVICE, "NORTHWIND.COM");
    let other_service = "CONTOSO.COM: the answer of the KDC has another service than the request";
    assert_eq!(world.ask().await.refusal(), (502, "ticket-answer", other_service));
}

#[tokio::test]
async fn the_other_domain_is_asked_for_by_its_name_where_no_kdc_refers_to_it() {
    let (world, other) = northwind().await;
    let service = "MSSQLSvc/sql.northwind.com:1433";
    world.api.apply(spec("webapp1", Some(service)));
    other.service(service);
    assert_eq!(world.ask().await.status, 200);
    let asked = [format!("TGS+ {service}"), "TGS+ krbtgt/NORTHWIND.COM".to_owned()];
    assert_eq!((&world.kdc.asked()[2..], other.asked().as_slice()), (&asked[..], &asked[..1]));
    // A host elsewhere is in no listed domain.
    world.api.apply(spec("webapp1", Some("MSSQLSvc/sql.notnorthwind.com:1433")));
    let unknown = "the KDC of CONTOSO.COM refuses: it does not know the service MSSQLSvc/sql.notnorthwind.com:1433, or knows it twice (Kerberos code 7)";
    assert_eq!(world.ask().await.refusal(), (502, "principal-unknown", unknown));
    assert_eq!(world.kdc.asked(), ["TGS+ MSSQLSvc/sql.notnorthwind.com:1433"]);
}

#[tokio::test]
async fn kdcs_of_another_domain_are_found_by_the_dns() {
    let (other, second) = (Kdc::start("northwind.com").await, Kdc::start("northwind.com").await);
    let world = World::with(times(), "  referrals: [{name: northwind.com}]\n").await;
    world.api.apply(spec("webapp1", Some(SERVICE)));
    world.kdc.refer(SERVICE, "NORTHWIND.COM");
    let none = "no KDC of NORTHWIND.COM answers: none is configured, and the DNS names none";
    assert_eq!(world.ask().await.refusal(), (503, "kdc-unreachable", none));
    world.kdc.trust(&other);
    other.service(SERVICE);
    second.conduct(Conduct::Close);
    let dns = Dns::start_for("northwind.com", &[second.address, other.address]).await;
    let world = world.with_dns(dns.address, times());
    // A silent KDC is followed by the next, and not asked first again.
    for _ in 0..2 {
        assert_eq!(world.ask().await.status, 200);
        assert_eq!(other.asked(), ["TGS+ HTTP/web.northwind.com"]);
        second.conduct(Conduct::Silent);
    }
}

/// The chain of so many realms, all listed, of which each refers to the next one and the last has the service.
async fn chain(length: usize) -> (World, Vec<Kdc>) {
    let names: Vec<String> = (1..=length).map(|number| format!("r{number}.example")).collect();
    let mut kdcs = Vec::new();
    for name in &names {
        kdcs.push(Kdc::start(name).await);
    }
    let listed: Vec<(&str, &Kdc)> = names.iter().map(String::as_str).zip(&kdcs).collect();
    let world = World::with(times(), &referrals(&listed)).await;
    world.api.apply(spec("webapp1", Some("HTTP/far.example")));
    for (from, (name, to)) in [&world.kdc].into_iter().chain(&kdcs).zip(&listed) {
        from.trust(to);
        from.refer("HTTP/far.example", &name.to_uppercase());
    }
    kdcs.last().unwrap().service("HTTP/far.example");
    (world, kdcs)
}

#[tokio::test]
async fn five_referrals_are_followed_and_no_sixth() {
    let (world, kdcs) = chain(5).await;
    assert_eq!(world.ask().await.status, 200);
    assert!(kdcs.iter().all(|kdc| kdc.asked() == ["TGS+ HTTP/far.example"]));
    let (world, kdcs) = chain(6).await;
    let message =
        "the KDC of R5.EXAMPLE refers HTTP/far.example to R6.EXAMPLE, after 5 other realms: the broker asks no more";
    assert_eq!(world.ask().await.refusal(), (502, "ticket-referral", message));
    assert_eq!((kdcs[4].asked().len(), kdcs[5].asked().len()), (1, 0));
}

#[tokio::test]
async fn a_referral_leads_only_to_a_listed_realm_that_was_not_asked() {
    let (world, other) = northwind().await;
    let evil = Kdc::start("evil.example").await;
    let service = "HTTP/elsewhere.northwind.com";
    world.api.apply(spec("webapp1", Some(service)));
    for (from, to, why) in [
        ("CONTOSO.COM", "EVIL.EXAMPLE", "which `referrals` of contoso.com does not list"),
        ("CONTOSO.COM", "CONTOSO.COM", "which was asked already"),
        ("NORTHWIND.COM", "EVIL.EXAMPLE", "which `referrals` of contoso.com does not list"),
        ("NORTHWIND.COM", "CONTOSO.COM", "which was asked already"),
        ("NORTHWIND.COM", "NORTHWIND.COM", "which was asked already"),
    ] {
        world.kdc.refer(service, if from == "CONTOSO.COM" { to } else { "NORTHWIND.COM" });
        other.refer(service, to);
        let message = format!("the KDC of {from} refers {service} to {to}, {why}");
        assert_eq!(world.ask().await.refusal(), (502, "ticket-referral", message.as_str()));
        assert_eq!((other.asked().len(), evil.asked().len()), (usize::from(from == "NORTHWIND.COM"), 0));
    }
}

#[tokio::test]
async fn a_kdc_of_another_realm_that_lies_is_not_believed() {
    let (world, other) = northwind().await;
    for (lie, what) in [
        (Lie::Nonce, "nonce"),
        (Lie::Realm, "realm"),
        (Lie::TicketRealm, "realm"),
        (Lie::InnerRealm, "realm"),
        (Lie::Client, "client"),
        (Lie::Service, "service"),
        (Lie::InnerService, "service"),
        (Lie::InnerReferral, "service"),
        (Lie::OuterReferral, "service"),
    ] {
        other.conduct(Conduct::Lie(lie));
        let message = format!("NORTHWIND.COM: the answer of the KDC has another {what} than the request");
        assert_eq!(world.ask().await.refusal(), (502, "ticket-answer", message.as_str()), "{lie:?}");
    }
}

#[tokio::test]
async fn a_refusal_of_the_own_realm_is_about_the_trust() {
    let (world, other) = northwind().await;
    for (code, why) in [
        (14, "the trust with NORTHWIND.COM has no AES keys"),
        (43, "the trust with NORTHWIND.COM leads back to CONTOSO.COM"),
        (7, "no trust lets accounts of CONTOSO.COM into NORTHWIND.COM"),
    ] {
        world.kdc.conduct(Conduct::RefuseServices(code));
        let message = format!("the KDC of CONTOSO.COM gives no ticket for {SERVICE}: {why} (Kerberos code {code})");
        assert_eq!(world.ask().await.refusal(), (502, "ticket-referral", message.as_str()));
    }
    assert!(other.asked().is_empty());
}

#[tokio::test]
async fn each_refusal_of_another_realm_names_it() {
    const TRUST: &str = "ticket-referral";
    let (world, other) = northwind().await;
    let in_words = "it does not let accounts of CONTOSO.COM in, by selective authentication or because the trust has another direction";
    for (code, reason, why) in [
        (12, TRUST, in_words),
        (35, TRUST, in_words),
        (31, TRUST, "CONTOSO.COM and NORTHWIND.COM have different secrets of their trust"),
        (44, TRUST, "CONTOSO.COM and NORTHWIND.COM have keys of different types of their trust"),
        (14, TRUST, "the account of HTTP/web.northwind.com has no AES keys"),
        // An account can be disabled in its own realm only.
        (18, TRUST, "for an unknown reason"),
        (7, "principal-unknown", "it does not know the service HTTP/web.northwind.com, or knows it twice"),
    ] {
        other.conduct(Conduct::Refuse(code, None));
        let message = match reason {
            TRUST => format!("the KDC of NORTHWIND.COM gives no ticket for {SERVICE}: {why} (Kerberos code {code})"),
            _ => format!("the KDC of NORTHWIND.COM refuses: {why} (Kerberos code {code})"),
        };
        assert_eq!(world.ask().await.refusal(), (502, reason, message.as_str()));
    }
}

#[tokio::test]
async fn a_kdc_of_another_realm_that_gives_no_usable_answer_is_named() {
    let (world, other) = northwind().await;
    other.conduct(Conduct::Refuse(29, None));
    let message = "the KDC of NORTHWIND.COM refuses: it is not available (Kerberos code 29)";
    assert_eq!(world.ask().await.refusal(), (503, "kdc-unreachable", message));
    other.conduct(Conduct::Answer(b"\x7E\x00".to_vec()));
    let message = "NORTHWIND.COM: the answer of the KDC cannot be read: reply";
    assert_eq!(world.ask().await.refusal(), (502, "ticket-answer", message));
    // Its clock, not that of the account's domain.
    other.conduct(Conduct::Honest);
    other.clock(time::Duration::hours(2));
    let answer = world.ask().await;
    let (status, reason, message) = answer.refusal();
    assert_eq!((status, reason), (502, "directory-clock"));
    let difference = message.strip_prefix("the KDC of NORTHWIND.COM refuses: its clock is 7").unwrap();
    assert!(difference.ends_with(" s ahead of that of the broker (Kerberos code 37)"), "{message}");
    other.clock(time::Duration::ZERO);
    assert_eq!(world.ask().await.status, 200);
}

#[tokio::test]
async fn a_realm_that_does_not_answer_is_left_alone_for_a_while() {
    let pause = Duration::from_secs(600);
    let (world, other) = northwind_with(Times { pause, ..times() }).await;
    other.conduct(Conduct::Close);
    let message =
        format!("no KDC of NORTHWIND.COM answers: the KDC {} ended the connection without an answer", other.address);
    assert_eq!(world.ask().await.refusal(), (503, "kdc-unreachable", message.as_str()));
    other.conduct(Conduct::Honest);
    assert_eq!(world.ask().await.refusal(), (503, "kdc-unreachable", message.as_str()));
    assert!(other.asked().is_empty());
    // Services of the account's own domain do not wait for it, and it is asked again after the pause.
    world.api.apply(spec("webapp1", Some("HTTP/app.contoso.com")));
    assert_eq!(world.ask().await.status, 200);
    world.api.apply(spec("webapp1", Some(SERVICE)));
    pass(601).await;
    assert_eq!(world.ask().await.status, 200);
}

#[tokio::test]
async fn a_request_without_time_left_names_the_realm_that_is_silent() {
    let (world, other) = northwind_with(Times { request: Duration::from_secs(2), ..times() }).await;
    other.conduct(Conduct::Silent);
    assert_eq!(world.ask().await.refusal(), (503, "kdc-unreachable", "no KDC of NORTHWIND.COM answers in time"));
}
