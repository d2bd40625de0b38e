//! `/validate-credspec`: a credential spec is linted when it is applied, before a container fails to start with it.
//!
//! Invariants: a deletion is allowed. In strict mode, findings that are errors refuse the credential spec. Otherwise
//! it is allowed, with a warning for each finding.

use super::{
    AllowReason, Denial, Review, SlotDenial,
    case::{Assessment, Case},
    operation::Operation,
    review::CREDENTIAL_SPEC,
    warning::Warnings,
};
use crate::{
    credspec::{KIND, lint, manifest::Manifest},
    diagnostic::{Diagnostic, Severity, rules},
    quote::Quoted,
};

/// The most findings that a denial spells out: it is one line in a terminal.
const MAX_SPELLED_OUT: usize = 5;

/// Warns of what is wrong with a credential spec; in strict mode, denies what cannot work.
pub(super) fn lint(Case { review, settings, .. }: &Case) -> Assessment {
    let mut warnings = Warnings::default();
    let linted = check(review, settings.strict_credential_specs, &mut warnings);
    let (reason, denied) = linted.map_or_else(|denial| (AllowReason::Findings, Some(denial)), |reason| (reason, None));
    let denials = denied.into_iter().map(|denial| SlotDenial { slot: None, denial }).collect();
    Assessment { denials, patch: None, warnings: warnings.into_lines(), reason }
}

fn check(review: &Review, strict: bool, warnings: &mut Warnings) -> Result<AllowReason, Denial> {
    if review.kind != CREDENTIAL_SPEC {
        return Err(Denial::UnexpectedKind { expected: KIND, kind: Quoted::bare(&review.kind) });
    }
    match review.operation {
        Operation::Delete => return Ok(AllowReason::Deletion),
        Operation::Connect => return Err(Denial::UnexpectedOperation(review.operation)),
        Operation::Create | Operation::Update => {}
    }
    let findings = match &review.credential_spec {
        Some(spec) if spec.is_too_large => lint::too_large(),
        spec => lint::object(&spec.as_ref().and_then(Manifest::tree).unwrap_or_default()),
    };
    let (errors, others): (Vec<_>, Vec<_>) = findings.iter().partition(|finding| strict && refuses(finding));
    for finding in others {
        warnings.push(finding.rule, &warning(finding));
    }
    match errors.as_slice() {
        [] if findings.is_empty() => Ok(AllowReason::Clean),
        [] => Ok(AllowReason::Findings),
        errors => Err(Denial::CredentialSpecWrong(spell_out(errors))),
    }
}

/// Whether strict mode refuses this finding. A possible password is only a guess by its form, so it never refuses.
fn refuses(finding: &Diagnostic) -> bool {
    finding.severity == Severity::Error && *finding.rule != rules::PLUGIN_PASSWORD
}

/// The field by its last two steps, which are enough to find it, and what is wrong with it.
fn warning(finding: &Diagnostic) -> String {
    let steps: Vec<&str> = finding.field.rsplitn(3, '.').take(2).collect();
    let field: Vec<&str> = steps.into_iter().rev().collect();
    format!("{}: {}", field.join("."), finding.message)
}

fn spell_out(errors: &[&Diagnostic]) -> String {
    let line = |f: &&Diagnostic| {
        let (why, right) = (f.consequence.unwrap_or_default(), f.fix.as_deref().unwrap_or_default());
        format!("{}: {} ({why}; right: {right})", f.field, f.message)
    };
    let left_out = errors.len().saturating_sub(MAX_SPELLED_OUT);
    let rest = (left_out > 0).then(|| format!("and {left_out} more"));
    errors.iter().take(MAX_SPELLED_OUT).map(line).chain(rest).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests;
