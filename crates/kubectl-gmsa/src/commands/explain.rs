//! `explain`: explains an error of a Windows node, of a command in a container, a refused pod, or a finding of another command. It
//! never connects to a cluster. The messages are in `crates/rules`; its head says where a new one goes.

use std::{collections::HashMap, path::Path};

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use crate::shared::{
    Outcome, input,
    output::{Shape, print_as},
    rules::{self, Explanation, Fix, Meaning, Names, Phase, Reading, Rule, explain, fix},
};
use gmsa_core::quote::{VALUE, one_line, quoted};

const EXAMPLES: &str = "Examples:
  # Explain a status code
  kubectl gmsa explain 0x8009030e

  # Explain a message
  kubectl gmsa explain \"cred spec webapp1 does not exist\"

  # Explain what is in a paste
  kubectl describe pod web-0 | kubectl gmsa explain -";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Options {
    /// A status code, a message, a rule or an alert; - for stdin, up to 16 MiB
    ///
    /// A code is an HRESULT, Win32 code or NTSTATUS, decimal, hexadecimal or by its name. A message is one of the API server, kubectl or Helm, of an
    /// event, a log of the node, nltest, klist, Kerberos, PowerShell, SQL Server or IIS, or of another command of this program, alone or in a paste
    #[arg(value_name = "CODE|TEXT", required = true, allow_negative_numbers = true)]
    text: Vec<String>,
    /// Print table or json
    #[arg(long, short, value_enum, default_value = "table", hide_possible_values = true)]
    output: Shape,
}

/// Explains the text; an error if it contains nothing known.
pub fn run(options: &Options) -> anyhow::Result<Outcome> {
    let text = match &*options.text {
        [text] if text == input::STDIN => input::text(Path::new(text))?,
        words => words.join(" "),
    };
    let (found, reading) = explain(&text);
    let names = Names::of_refusal(rules::said(&text));
    if found.is_empty() {
        bail!(
            "no error that is known here in {}: give a status code, or the whole message. `kubectl gmsa doctor` looks at the cluster, \
             and docs/messages.md lists messages{}",
            one_line(&quoted(text.trim(), VALUE)),
            instead(text.trim())
        );
    }
    let is_unknown = |found: &Explanation| matches!(found.meaning, Meaning::Unknown(_));
    let outcome = if found.iter().all(is_unknown) { Outcome::Findings } else { Outcome::Clean };
    let explanations: Vec<Explained<'_>> = found.iter().map(|found| Explained::of(found, &names, &reading)).collect();
    let body = HashMap::from([("explanations", &explanations)]);
    print_as(options.output, outcome, || for_people(&explanations), body)
}

/// The advice for an unknown text.
fn instead(text: &str) -> &'static str {
    if text.lines().any(|line| line.starts_with("apiVersion: ")) {
        ". A manifest is checked by `kubectl gmsa check -f FILE`"
    } else if Path::new(text).exists() {
        ". A file is given by `kubectl gmsa explain - < FILE`"
    } else if !text.is_ascii() {
        ". Windows writes in its own language: the code beside its message is what counts"
    } else {
        ""
    }
}

fn for_people(explanations: &[Explained<'_>]) -> String {
    let part = |Explained { found, text, causes }: &Explained<'_>| {
        let causes = causes.iter().map(|Cause { phase, rule, text, remedy }| {
            let phase = phase.map(|phase| format!(" {phase}")).unwrap_or_default();
            format!("  [{rule}]{phase}\n    {text}\n    fix: {remedy}\n")
        });
        let text = text.map(|text| format!("  {text}\n")).unwrap_or_default();
        format!("{found}\n{text}{}", causes.collect::<String>())
    };
    explanations.iter().map(part).collect::<Vec<_>>().join("\n")
}

#[derive(Serialize)]
struct Explained<'e> {
    found: &'e str,
    /// The explanation of a success or of an unknown code.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'e str>,
    causes: Vec<Cause>,
}

#[derive(Serialize)]
struct Cause {
    /// Set if only one phase can have this cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<Phase>,
    rule: &'static str,
    text: &'static str,
    remedy: String,
}

impl<'e> Explained<'e> {
    fn of(Explanation { found, meaning }: &'e Explanation, names: &Names<'_>, reading: &Reading) -> Self {
        // The matched part of the text can select the remedy too.
        let of_found = Reading::of(found);
        let cause = |(phase, rule): &(Option<Phase>, &Rule)| {
            let fix = fix(rule, &Names { readings: &[&of_found, reading], ..*names }).and_then(Fix::in_cluster);
            let Rule { id, title, remedy, .. } = rule;
            Cause { phase: *phase, rule: id, text: title, remedy: fix.unwrap_or_else(|| (*remedy).to_owned()) }
        };
        match meaning {
            Meaning::Fault(rules) => Self { found, text: None, causes: rules.iter().map(cause).collect() },
            Meaning::NoFault(what) | Meaning::Unknown(what) => Self { found, text: Some(what), causes: Vec::new() },
        }
    }
}
