//! Remedies with names, and what is said about errors as they are printed here.

use std::collections::BTreeSet;

use gmsa_core::diagnostic::{Check, Location};
use gmsa_test_support::rules::families;

use super::*;
use crate::shared::output::{Filter, Format, Report, Style, checks_json, table};

/// The first rule that a text is explained by.
fn first(text: &str) -> Option<&'static str> {
    explain(text).0.into_iter().find_map(|found| match found.meaning {
        Meaning::Fault(rules) => rules.first().map(|(_, rule)| rule.id),
        Meaning::NoFault(_) | Meaning::Unknown(_) => None,
    })
}

#[derive(clap::Parser)]
struct CommandLine {
    #[command(flatten)]
    filter: Filter,
}

#[test]
fn each_diagnosis_that_is_printed_is_recognized() {
    let CommandLine { filter } = clap::Parser::parse_from(["gmsa"]);
    for rule in all() {
        let found = || Diagnostic::new(rule, "winapi error #3489792023").at(Location::file("web.yaml"));
        let checks = [Check::found("pods", found())];
        let mut printed = vec![
            rule.id.to_owned(),
            format!("the pod may start [{}]", rule.id),
            table::checks(&checks, Style::PLAIN),
            checks_json(&checks, &filter).unwrap(),
        ];
        for format in [Format::Table, Format::Json, Format::Sarif, Format::Github] {
            let mut report = Report::default();
            report.findings.push(found());
            printed.push(report.render(format, &filter, Style::PLAIN).unwrap().0);
        }
        for text in printed {
            assert_eq!(first(&text), Some(rule.id), "{text}");
        }
    }
}

#[test]
fn names_become_part_of_a_command_only_as_words_of_it() {
    let filled = |rule: &Rule, names: Names<'_>| fix(rule, &names).and_then(Fix::in_cluster);
    let names = Names { spec: Some("web"), node: Some("win1"), account: Some("App'1"), ..Names::default() };
    let grant = "Grant it: `kubectl gmsa grant --credspec web --serviceaccount NAMESPACE:SERVICEACCOUNT --apply`.";
    assert_eq!(filled(&NOT_AUTHORIZED, names).as_deref(), Some(grant));
    assert_eq!(
        filled(&ACCOUNT_EXPIRED, names).as_deref(),
        Some("Remove the date: `Clear-ADAccountExpiration -Identity 'App''1$'`.")
    );
    assert!(filled(&NODE_NOT_READY, names).unwrap().starts_with("`kubectl describe node win1` shows why"));
    let hostile = Names {
        spec: Some("web; reboot"),
        namespace: Some("shop --as=admin"),
        service_account: Some("$(id)"),
        node: Some("-A"),
        account: Some("App\u{1b}1"),
        domain: Some("a%PATH%"),
        principal: Some("/x"),
        ..Names::default()
    };
    for rule in all() {
        assert_eq!(filled(rule, hostile).filter(|fix| fix != rule.remedy), None, "{}", rule.id);
    }
}

/// The names in a message become part of its remedy.
#[test]
fn a_remedy_has_the_names_of_its_message() {
    for (text, part) in [
        ("the broker refused: 404 Not Found, spec-missing: cred spec webapp1 does not exist", "credspec new webapp1"),
        ("cred spec webapp1 gives no tickets: its owner lists no services", "annotate gmsacredentialspec webapp1"),
        (
            "failed calling webhook \"gmsa\": Post \"https://gmsa.windows.svc:443/mutate\": connection refused",
            "get pods -n windows`",
        ),
        ("failed calling webhook \"check.gatekeeper.sh\": dial tcp 10.0.0.9:8443: i/o timeout", "another webhook"),
        (
            "pods \"web-1\" is forbidden: User \"jane\" cannot create resource \"pods/exec\" in API group \"\" in the namespace \"shop\"",
            "--namespace shop",
        ),
        (
            "denied the request: service account \"web\" is not authorized to `export` GMSA cred spec \"webapp1\" in the namespace \"shop\"",
            "--serviceaccount shop:web --keytab --apply`",
        ),
    ] {
        let (found, reading) = explain(text);
        let Some(Explanation { meaning: Meaning::Fault(rules), .. }) = found.first() else { panic!("{text}") };
        let names = Names { readings: &[&reading], ..Names::of_refusal(said(text)) };
        let fix = fix(rules[0].1, &names).and_then(Fix::in_cluster);
        assert!(fix.as_ref().is_some_and(|fix| fix.contains(part)), "{text}: {fix:?}");
    }
}

#[test]
fn every_remedy_shows_a_pod_by_the_same_command() {
    let remedies = || {
        all().flat_map(|rule| {
            [rule.remedy]
                .into_iter()
                .chain(entry(rule).into_iter().flat_map(|entry| entry.remedies.iter().map(|(_, remedy)| *remedy)))
        })
    };
    let commands = remedies().flat_map(|remedy| remedy.split('`').skip(1).step_by(2));
    let shown: BTreeSet<&str> = commands.filter(|command| command.contains("describe pod ")).collect();
    assert_eq!(shown, BTreeSet::from([names::SHOW_POD]));
}

#[test]
fn the_code_has_the_remedies_that_the_data_says_it_computes() {
    let of_data = families().into_iter().flat_map(|family| family.rules).filter(|rule| rule.computed);
    let of_data: BTreeSet<String> = of_data.map(|rule| rule.id).collect();
    let of_code: BTreeSet<String> = computed::COMPUTED.iter().map(|(rule, _)| rule.id.to_owned()).collect();
    assert_eq!(of_data, of_code);
}
