//! From what was typed to what holds.

use std::{collections::BTreeMap, net::SocketAddr};

use gmsa_core::admission::{Resources, SidecarOptions, StartupProbe};

use super::*;

fn resolve(args: &[&str]) -> Result<Config, ConfigError> {
    match Args::read([&["gmsa-webhook"], args].concat()).unwrap().command() {
        Command::Serve(args) => args.resolve(),
        other => panic!("not to be served: {other:?}"),
    }
}

#[test]
fn addresses_depend_on_where_the_server_runs() {
    let pair = ["--tls-cert", "c", "--tls-key", "k"];
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    for (args, listen, admin) in [
        (&["--standalone", "d"][..], "127.0.0.1:8443", "127.0.0.1:9090"),
        (&["serve", "--standalone", "d"], "127.0.0.1:8443", "127.0.0.1:9090"),
        (&["--standalone", "d", "--https-port", "1"], "127.0.0.1:1", "127.0.0.1:9090"),
        (&["--standalone", "d", "--https-port", "1", "--listen", "[::1]:2"], "[::1]:2", "127.0.0.1:9090"),
        (&[], "[::]:443", "[::]:9090"),
        (&["--https-port", "8443", "--admin-listen", "127.0.0.1:1"], "[::]:8443", "127.0.0.1:1"),
        (&["--https-port", ""], "[::]:443", "[::]:9090"),
    ] {
        let args = if args.contains(&"--standalone") { args.to_vec() } else { [&pair, args].concat() };
        let config = resolve(&args).unwrap();
        assert_eq!((config.listen, config.admin_listen), (address(listen), address(admin)), "{args:?}");
    }
}

#[test]
fn certificates_come_from_one_place() {
    let managed = ["--self-managed-secret", "gmsa/tls", "--self-managed-service", "hook.gmsa"];
    let published = ["--standalone", "d", "--webhook-configuration", "mutating/m"];
    for (args, reason) in [
        (&[][..], "no serving certificate: set --tls-cert"),
        (&managed, "--self-managed-secret needs the webhook configurations"),
        (&published, "--webhook-configuration needs a CA to write into it"),
    ] {
        assert!(resolve(args).unwrap_err().to_string().starts_with(reason), "{args:?}");
    }
    let whole =
        [&managed[..], &["--webhook-configuration", "mutating/m", "--webhook-configuration", "validating/v"]].concat();
    let Certificate::SelfManaged(settings) = resolve(&whole).unwrap().certificate else { panic!("not self-managed") };
    assert_eq!(settings.secret.to_string(), "gmsa/tls");
    assert_eq!(settings.names, ["hook.gmsa.svc", "hook.gmsa", "hook"]);
    assert_eq!(settings.renewal_point, 66);
    assert_eq!(
        settings.configurations.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["mutating/m", "validating/v"]
    );
}

#[test]
fn what_does_not_go_together_is_refused() {
    for args in [
        &["--tls-cert", "c"][..],
        &["--tls-cert", "c", "--tls-key", "k", "--publish-ca", "f"],
        &["--self-managed-secret", "a/b"],
        &["--self-managed-secret", "a", "--self-managed-service", "a.b"],
        &["--self-managed-secret", "a/b", "--self-managed-service", "a"],
        &["--self-managed-secret", "a/b", "--self-managed-service", "a.b", "--tls-cert", "c", "--tls-key", "k"],
        &["--renewal-point", "0"],
        &["--renewal-point", "100"],
        &["--renewal-point", "-1"],
        &["--renewal-point", ""],
        &["--renewal-point", "66%"],
        &["--client-name", "n"],
        &["--webhook-configuration", "m"],
        &["--standalone", "a", "serve"],
    ] {
        assert!(Args::read([&["gmsa-webhook"], args].concat()).is_err(), "{args:?}");
    }
}

#[test]
fn settings_without_effect_are_named() {
    let config = resolve(&["--standalone", "d", "--cert-reload", "--qps", "1", "--burst", ""]).unwrap();
    assert_eq!(config.without_effect, ["--cert-reload", "QPS"]);
}

#[test]
fn enforcement_is_on_unless_it_is_switched_off_in_any_letters() {
    for (args, expected) in [
        (&[][..], Enforcement::Enforce),
        (&["--enforcement", ""], Enforcement::Enforce),
        (&["--enforcement", "Enforce"], Enforcement::Enforce),
        (&["--enforcement", "Warn"], Enforcement::Warn),
        (&["--enforcement=WARN"], Enforcement::Warn),
    ] {
        let args = [&["--standalone", "d"], args].concat();
        assert_eq!(resolve(&args).unwrap().typed.enforcement, expected, "{args:?}");
    }
    let trial = resolve(&["--standalone", "d", "--warn-namespaces=shop,till", "--warn-namespaces", "shop"]).unwrap();
    assert_eq!(trial.typed.warn_namespaces, ["shop", "till", "shop"]);
    assert_eq!(trial.typed.enforcement, Enforcement::Enforce);
    for list in ["", "shop,", "Shop", "shop, till"] {
        let error = Args::read(["gmsa-webhook", "--warn-namespaces", list]).unwrap_err().to_string();
        assert!(error.contains("expected a lower-case DNS name"), "{list:?}: {error}");
    }
    let error = Args::read(["gmsa-webhook", "--enforcement", "off"]).unwrap_err().to_string();
    assert!(error.contains("expected Enforce or Warn"), "{error}");
}

#[test]
fn the_flags_of_tickets_go_together() {
    let flags = [
        "--tickets-broker=b.n.svc",
        "--tickets-broker-address=[fd00::1]:443",
        "--tickets-broker-ca=ca",
        "--tickets-image=i",
    ];
    assert!(resolve(&["--standalone", "d"]).unwrap().tickets.is_none());
    let TicketsConfig { broker_ca, sidecar } =
        resolve(&[&["--standalone", "d"], &flags[..]].concat()).unwrap().tickets.unwrap();
    assert_eq!(broker_ca, PathBuf::from("ca"));
    let [image, broker, broker_address] = ["i", "b.n.svc", "[fd00::1]:443"].map(str::to_owned);
    let options = SidecarOptions::default();
    assert_eq!(sidecar, Sidecar { image, broker, broker_address, broker_ca: String::new(), options });
    for some in 1..(1 << flags.len()) - 1 {
        let some: Vec<_> =
            flags.iter().enumerate().filter(|(at, _)| some & (1 << at) != 0).map(|(_, flag)| *flag).collect();
        let error = Args::read([&["gmsa-webhook"], &some[..]].concat()).unwrap_err().to_string();
        assert!(error.contains("the following required arguments were not provided"), "{some:?}: {error}");
    }
}

#[test]
fn what_the_api_server_would_refuse_of_the_sidecar_is_refused_at_the_start() {
    let tickets = |last: &str| {
        let flags = ["--tickets-broker=b.n.svc", "--tickets-broker-address=10.0.0.1:443", "--tickets-broker-ca=ca"];
        let line = ["--standalone", "d"].iter().chain(&flags).copied().chain(["--tickets-image=i", last]);
        resolve(&line.collect::<Vec<_>>()).map(|config| config.tickets.unwrap().sidecar)
    };
    let given = r#"--tickets-sidecar={"resources":{"requests":{"cpu":1,"memory":"0.5Gi"}},"startupProbe":{"timeoutSeconds":30},"checkInterval":"1m"}"#;
    let options = tickets(given).unwrap().options;
    let requests = [("cpu".to_owned(), 1.into()), ("memory".to_owned(), "0.5Gi".into())].into();
    let startup_probe = StartupProbe { timeout_seconds: 30, ..StartupProbe::default() };
    let resources = Resources { requests, limits: BTreeMap::new() };
    assert_eq!(options, SidecarOptions { resources, startup_probe, check_interval: "1m".to_owned() });
    for (flag, value, said) in [
        ("image", "", "expected an image, such as registry.example.com/gmsa-tickets:1"),
        ("image", "a\"b", "expected an image, such as"),
        ("image", "a b", "expected an image, such as"),
        ("sidecar", "{", "EOF while parsing an object"),
        ("sidecar", r#"{"resource":{}}"#, "unknown field `resource`"),
        ("sidecar", r#"{"resources":{"limits":{"cpu":"50 m"}}}"#, "resources: cpu is \"50 m\", expected a quantity"),
        ("sidecar", r#"{"resources":{"limits":{"cpu":"m"}}}"#, "resources: cpu is \"m\", expected a quantity"),
        ("sidecar", r#"{"resources":{"limits":{"cpu":true}}}"#, "resources: cpu is true, expected a quantity"),
        ("sidecar", r#"{"startupProbe":{"timeoutSeconds":2}}"#, "expected timeoutSeconds from 3 to 60"),
        ("sidecar", r#"{"startupProbe":{"failureThreshold":0}}"#, "failureThreshold from 1 to 86400"),
        ("sidecar", r#"{"checkInterval":"10"}"#, "checkInterval: \"10\" is not a duration from 1s, such as 5m"),
    ] {
        let line = ["gmsa-webhook".to_owned(), format!("--tickets-{flag}={value}")];
        let error = Args::read(line).unwrap_err().to_string();
        assert!(error.contains(said), "{value}: {error}");
    }
}

/// A command and all below it, each by its words.
fn commands(this: &clap::Command, words: &str, found: &mut Vec<(String, clap::Command)>) {
    found.push((words.trim().to_owned(), this.clone()));
    for below in this.get_subcommands().filter(|below| below.get_name() != "help") {
        commands(below, &format!("{words} {}", below.get_name()), found);
    }
}

#[test]
fn every_command_s_help_has_examples_that_parse_and_fits_a_screen() {
    let Err(root) = Args::read(["gmsa-webhook", "-h"]) else { panic!("no help") };
    let mut all = Vec::new();
    commands(&<Args as clap::CommandFactory>::command(), "", &mut all);
    for (words, _) in all {
        let help = |flag: &str| {
            let line = ["gmsa-webhook"].into_iter().chain(words.split_whitespace()).chain([flag]);
            Args::read(line).unwrap_err().to_string()
        };
        let rows: usize = help("-h").trim_end().lines().map(|line| line.chars().count().div_ceil(80).max(1)).sum();
        assert!(rows <= 40, "{words}: {rows} rows");
        let long = help("--help");
        let (_, examples) = long.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{words}: no examples"));
        let examples: Vec<&str> = examples.lines().filter_map(|line| line.strip_prefix("  gmsa-webhook ")).collect();
        assert!(
            !examples.is_empty() && examples.iter().all(|line| line.starts_with(&words) || words.is_empty()),
            "{words}"
        );
        for line in examples {
            let read = Args::read(["gmsa-webhook"].into_iter().chain(line.split_whitespace()));
            match read.unwrap_or_else(|error| panic!("{line}: {error}")).command() {
                Command::Serve(args) => drop(args.resolve().unwrap()),
                _ => assert!(!line.starts_with("serve"), "{line}"),
            }
        }
    }
    assert!(!root.to_string().contains("--tls-cert"), "the options of serve are in the help of serve");
}
