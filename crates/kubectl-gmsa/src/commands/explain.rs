//! `explain`: an error of a Windows node, of a command in a container, or the refusal of a pod, in words. It asks no cluster.

use std::{fmt::Write as _, path::Path};

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use crate::shared::{
    Outcome, input,
    output::{Shape, json},
    print,
    start::refusal,
};
use gmsa_core::{
    diagnostic::rules::Rule,
    node_error::{Explanation, Meaning, Phase, explain},
    quote::one_line,
};

#[derive(Debug, Args)]
pub struct Options {
    /// A status code (decimal or hexadecimal HRESULT, Win32 code or NTSTATUS, or its name), or a message: of the API server, of an event, of a
    /// log of the node, or of nltest or klist. - reads it from standard input
    #[arg(value_name = "CODE|TEXT", required = true, allow_negative_numbers = true)]
    text: Vec<String>,
    /// The form of the output
    #[arg(long, short, value_enum, default_value = "table")]
    output: Shape,
}

/// Explains what it knows; an error where it knows nothing of the text.
pub fn run(options: &Options) -> anyhow::Result<Outcome> {
    let text = match &*options.text {
        [text] if text == input::STDIN => input::text(Path::new(text))?,
        words => words.join(" "),
    };
    let refused = refusal::find(&text).map(|(words, rule)| Explanation {
        found: format!("\"{words}\""),
        meaning: Meaning::Fault(vec![(None, rule)]),
    });
    let found: Vec<Explanation> = refused.into_iter().chain(explain(&text)).collect();
    if found.is_empty() {
        bail!(
            "no error that is known here in {}: give a status code, or the whole message",
            one_line(&shortened(&text))
        );
    }
    let outcome = if found.iter().all(|explanation| matches!(explanation.meaning, Meaning::Unknown(_))) {
        Outcome::Incomplete
    } else {
        Outcome::Clean
    };
    print(match options.output {
        Shape::Table => for_people(&found),
        Shape::Json => {
            json::object(outcome, Explanations { explanations: found.iter().map(Explained::from).collect() })?
        }
    })?;
    Ok(outcome)
}

fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or(text)),
        None => format!("{text:?}"),
    }
}

fn for_people(found: &[Explanation]) -> String {
    let mut text = String::new();
    for (index, Explanation { found, meaning }) in found.iter().enumerate() {
        let separator = if index == 0 { "" } else { "\n" };
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{separator}{found}");
        match meaning {
            Meaning::Fault(rules) => {
                for (phase, Rule { id, title, remedy, .. }) in rules {
                    let phase = phase.map(|phase| format!(" {phase}")).unwrap_or_default();
                    let _ = writeln!(text, "  [{id}]{phase}\n    {title}\n    fix: {remedy}");
                }
            }
            Meaning::NoFault(what) | Meaning::Unknown(what) => {
                let _ = writeln!(text, "  {what}");
            }
        }
    }
    text
}

#[derive(Serialize)]
struct Explanations<'e> {
    explanations: Vec<Explained<'e>>,
}

#[derive(Serialize)]
struct Explained<'e> {
    found: &'e str,
    /// What it says where it is no fault, or not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'static str>,
    causes: Vec<Cause>,
}

#[derive(Serialize)]
struct Cause {
    /// Where only one phase can have this cause: `start` or `running`.
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<&'static str>,
    rule: &'static str,
    text: &'static str,
    remedy: &'static str,
}

impl<'e> From<&'e Explanation> for Explained<'e> {
    fn from(Explanation { found, meaning }: &'e Explanation) -> Self {
        let (text, causes) = match meaning {
            Meaning::Fault(rules) => (None, rules.iter().map(|(phase, rule)| Cause::new(*phase, rule)).collect()),
            Meaning::NoFault(what) | Meaning::Unknown(what) => (Some(*what), Vec::new()),
        };
        Self { found, text, causes }
    }
}

impl Cause {
    fn new(phase: Option<Phase>, rule: &Rule) -> Self {
        let phase = phase.map(|phase| match phase {
            Phase::Start => "start",
            Phase::Running => "running",
        });
        Self { phase, rule: rule.id, text: rule.title, remedy: rule.remedy }
    }
}
