//! The options that select findings, for all commands with findings.

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use gmsa_core::diagnostic::{Diagnostic, Severity};

use crate::shared::args;

#[derive(Clone, Debug, Args)]
pub struct Filter {
    /// Leave out rules, separated by commas
    #[arg(long, value_name = "RULE", value_delimiter = ',', value_parser = args::rule)]
    ignore: Vec<String>,
    /// Fail on error, warning or note
    ///
    /// The lowest severity that ends in exit code 1
    #[arg(long, value_name = "SEVERITY", default_value = "warning", value_parser = severity(), hide_possible_values = true)]
    fail_on: Severity,
}

fn severity() -> impl TypedValueParser<Value = Severity> {
    let all = [Severity::Error, Severity::Warning, Severity::Note];
    PossibleValuesParser::new(all.map(Severity::as_str))
        .try_map(move |word| all.into_iter().find(|severity| severity.as_str() == word).ok_or("no severity"))
}

impl Filter {
    /// The same filter, with exit code 1 for errors only.
    #[must_use]
    pub fn of_errors(&self) -> Self {
        Self { fail_on: Severity::Error, ..self.clone() }
    }

    /// Whether its rule is not ignored.
    pub fn keeps(&self, found: &Diagnostic) -> bool {
        self.ignore.iter().all(|id| id != found.rule.id)
    }

    /// Whether it ends in exit code 1.
    pub fn fails(&self, found: &Diagnostic) -> bool {
        found.severity >= self.fail_on
    }
}
