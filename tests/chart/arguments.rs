//! The arguments and the environment that the charts give to the programs: each program's own parser takes them, for every set of values.

use clap::{Args as _, Command, CommandFactory, FromArgMatches as _};
use gmsa_tickets::{agent, serve};
use gmsa_webhook::config::{self, Args};
use serde_json::Value;

use crate::{accounts, files::objects, rendered, tickets};

/// All containers of a value, at any depth.
fn containers<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| containers(item, found)),
        Value::Object(fields) => {
            let lists = ["containers", "initContainers"].iter().filter_map(|list| fields.get(*list)?.as_array());
            found.extend(lists.flatten().filter(|container| container["image"].is_string()));
            fields.values().for_each(|value| containers(value, found));
        }
        _ => {}
    }
}

/// The command line of a container: its arguments, and each variable that an option reads as that option.
fn line(container: &Value, options: &Command) -> Vec<String> {
    let arguments = container["args"].as_array().into_iter().flatten().map(|word| word.as_str().unwrap().to_owned());
    let mut line: Vec<String> = arguments.collect();
    for variable in container["env"].as_array().into_iter().flatten() {
        let option = options
            .get_arguments()
            .find(|option| option.get_env().is_some_and(|name| variable["name"] == *name.to_str().unwrap()));
        if let (Some(option), Some(value)) = (option, variable["value"].as_str()) {
            line.push(format!("--{}={value}", option.get_long().unwrap()));
        }
    }
    line
}

/// Why the webhook does not start with this command line.
fn refused_by_webhook(line: &[String]) -> Option<String> {
    match Args::read([&["gmsa-webhook".to_owned()], line].concat()).map(Args::command) {
        Ok(config::Command::Serve(args)) => args.resolve().err().map(|error| error.to_string()),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}

/// Why broker or agent do not start with it.
fn refused_by_tickets(line: &[String]) -> Option<String> {
    let commands = [serve::Args::augment_args(Command::new("serve")), agent::Args::augment_args(Command::new("agent"))];
    let program = Command::new("gmsa-tickets").subcommands(commands).subcommand_required(true);
    let read = program.try_get_matches_from([&["gmsa-tickets".to_owned()], line].concat());
    let checked = read.and_then(|read| match read.subcommand().unwrap() {
        ("serve", options) => serve::Args::from_arg_matches(options).map(drop),
        (_, options) => agent::Args::from_arg_matches(options).map(drop),
    });
    checked.err().map(|error| error.to_string())
}

#[test]
fn the_programs_take_what_the_charts_give_them() {
    let webhook = <Args as CommandFactory>::command();
    let broker = serve::Args::augment_args(Command::new("serve"));
    let mut lines = Vec::new();
    for manifest in rendered::every_rendering().into_iter().chain(tickets::every_rendering()) {
        let (objects, before) = (objects(&manifest), lines.len());
        let mut found = Vec::new();
        for object in &objects {
            containers(object, &mut found);
        }
        for container in found {
            let image = container["image"].as_str().unwrap();
            let (line, refused) = if image.contains("gmsa-tickets") {
                let line = line(container, &broker);
                let refused = refused_by_tickets(&line);
                (line, refused)
            } else {
                let line = line(container, &webhook);
                let refused = refused_by_webhook(&line);
                (line, refused)
            };
            assert_eq!(refused, None, "{image} {line:?}");
            lines.push(line);
        }
        assert!(lines.len() > before, "nothing runs: {manifest}");
    }
    // Values reach them: a word that a value must have made.
    for word in ["--enforcement=Warn", "--self-managed-secret=tickets/tickets-tls", "--https-port=10250"] {
        assert!(lines.iter().flatten().any(|argument| argument == word), "no set of values gives {word}");
    }
    // The other chart runs no program.
    for manifest in accounts::every_rendering() {
        let (objects, mut found) = (objects(&manifest), Vec::new());
        for object in &objects {
            containers(object, &mut found);
        }
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn what_a_program_does_not_know_is_refused() {
    let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
    assert!(refused_by_webhook(&words("serve --standalone=d --qqps=5")).is_some());
    assert!(refused_by_webhook(&words("serve --listen=[::1]:1")).unwrap().starts_with("no serving certificate"));
    assert!(refused_by_tickets(&words("serve --config=f --listen=nowhere")).is_some());
    assert!(refused_by_tickets(&words("agent test --broker=Broker")).is_some());
}
