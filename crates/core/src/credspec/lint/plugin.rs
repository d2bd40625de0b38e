//! `HostAccountConfig`: how a host that is not joined to the domain fetches the account, by a plugin of the Container
//! Credential Guard.

use serde_json::Value;

use super::{Findings, Severity, quote};
use crate::{
    credspec::ccg_plugin::{KnownPlugin, has_guid_shape, holds_secret},
    diagnostic::rules::{self, Rule},
};

const PATH: &str = "credspec.ActiveDirectoryConfig.HostAccountConfig";
const SKIPPED: &str = "the host skips the plugin and, not being joined to the domain, finds no account";
const REFUSED: &str = "the API server refuses the object: the field is a string";

pub(super) fn check(findings: &mut Findings, value: Option<&Value>) {
    let config = match value {
        // A host that is joined to the domain needs no plugin.
        None | Some(Value::Null) => return,
        Some(Value::Object(config)) => config,
        Some(_) => {
            let remedy = "PluginGUID, PluginInput and PortableCcgVersion, or no HostAccountConfig";
            return findings.add(&rules::PLUGIN, PATH, "is not an object", SKIPPED, remedy);
        }
    };
    findings.unknown_keys(PATH, config, &["PluginGUID", "PluginInput", "PortableCcgVersion"]);
    version(findings, config.get("PortableCcgVersion"));
    guid(findings, config.get("PluginGUID"));
    let known = config.get("PluginGUID").and_then(Value::as_str).and_then(KnownPlugin::from_guid);
    input(findings, config.get("PluginInput"), known);
}

fn version(findings: &mut Findings, value: Option<&Value>) {
    const RULE: &Rule = &rules::PLUGIN_VERSION;
    const REMEDY: &str = r#"PortableCcgVersion: "1""#;
    let field = format!("{PATH}.PortableCcgVersion");
    if let Some(Value::Number(_)) = value {
        return findings.add(RULE, &field, "is a bare number", REFUSED, REMEDY);
    }
    if let Some(version) = findings.text(RULE, &field, value, SKIPPED, REMEDY).filter(|version| *version != "1") {
        findings.add(RULE, &field, format!("{} is not \"1\"", quote(version)), SKIPPED, REMEDY);
    }
}

fn guid(findings: &mut Findings, value: Option<&Value>) {
    const RULE: &Rule = &rules::PLUGIN_GUID;
    const REMEDY: &str = "the plugin's GUID in braces, from its maker or from HKLM:\\SYSTEM\\CurrentControlSet\\Control\\CCG\\COMClasses";
    let field = format!("{PATH}.PluginGUID");
    let Some(guid) = findings.text(RULE, &field, value, SKIPPED, REMEDY) else { return };
    // Invalid digits do not refuse it: the GUID in Microsoft's own sample is not hexadecimal.
    let shape = |text: &str| has_guid_shape(text, |b| b.is_ascii_alphanumeric());
    match guid.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        Some(inner) if has_guid_shape(inner, |b| b.is_ascii_hexdigit()) => {}
        Some(inner) if shape(inner) => {
            let problem = format!("{} has letters that are not hexadecimal digits", quote(guid));
            findings.add_as(Severity::Warning, RULE, &field, problem, SKIPPED, REMEDY);
        }
        Some(_) => {
            let problem = format!("{} does not look like a GUID", quote(guid));
            findings.add_as(Severity::Warning, RULE, &field, problem, SKIPPED, REMEDY);
        }
        None => {
            let remedy = if shape(guid) { format!("\"{{{guid}}}\"") } else { REMEDY.to_owned() };
            let problem = format!("{} is not in braces", quote(guid));
            findings.add(RULE, &field, problem, SKIPPED, remedy);
        }
    }
}

fn input(findings: &mut Findings, value: Option<&Value>, known: Option<KnownPlugin>) {
    const RULE: &Rule = &rules::PLUGIN_INPUT;
    let field = format!("{PATH}.PluginInput");
    let remedy = known.map_or("one string, as the plugin's maker documents it", KnownPlugin::template);
    let problem = match value {
        Some(Value::String(input)) => {
            if holds_secret(input) {
                let why =
                    "credential specs are not secret: everyone who may read them, or a pod, can read the password";
                let remedy = "keep the password in the plugin's vault and name the vault here; change the password: others may have read it";
                findings.add(&rules::PLUGIN_PASSWORD, &field, "seems to hold a password", why, remedy);
            } else if let Some(problem) = known.and_then(|known| known.problem(input)) {
                // A warning: the maker may have taught the plugin more than is known here.
                let why =
                    "the plugin does not find the user that may fetch the account, so the container does not start";
                findings.add_as(Severity::Warning, RULE, &field, problem, why, remedy);
            }
            return;
        }
        None | Some(Value::Null) => {
            return findings.add_as(Severity::Warning, RULE, &field, "is missing", "most plugins need one", remedy);
        }
        Some(Value::Object(_) | Value::Array(_)) => "is an object, not a string",
        Some(_) => "is not a string",
    };
    findings.add(RULE, &field, problem, REFUSED, remedy);
}
