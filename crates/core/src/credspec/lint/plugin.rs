//! `HostAccountConfig`: how a host that is not joined to the domain fetches the account, by a plugin of the Container
//! Credential Guard.

use serde_json::Value;

use super::{Report, Severity, quote};
use crate::{
    credspec::plugin::{Known, is_guid},
    diagnostic::rules::{self, Rule},
};

const PATH: &str = "credspec.ActiveDirectoryConfig.HostAccountConfig";
const SKIPPED: &str = "the host skips the plugin and, not being joined to the domain, finds no account";
const REFUSED: &str = "the API server refuses the object: the field is a string";

pub(super) fn check(report: &mut Report, value: Option<&Value>) {
    let config = match value {
        // A host that is joined to the domain needs no plugin.
        None | Some(Value::Null) => return,
        Some(Value::Object(config)) => config,
        Some(_) => {
            let remedy = "PluginGUID, PluginInput and PortableCcgVersion, or no HostAccountConfig";
            return report.add(Severity::Error, &rules::PLUGIN, PATH, "is not an object", SKIPPED, remedy);
        }
    };
    report.unknown_keys(PATH, config, &["PluginGUID", "PluginInput", "PortableCcgVersion"]);
    version(report, config.get("PortableCcgVersion"));
    guid(report, config.get("PluginGUID"));
    let known = config.get("PluginGUID").and_then(Value::as_str).and_then(Known::of_guid);
    input(report, config.get("PluginInput"), known);
}

fn version(report: &mut Report, value: Option<&Value>) {
    const RULE: &Rule = &rules::PLUGIN_VERSION;
    const REMEDY: &str = r#"PortableCcgVersion: "1""#;
    let field = format!("{PATH}.PortableCcgVersion");
    if let Some(Value::Number(_)) = value {
        return report.add(Severity::Error, RULE, &field, "is a bare number", REFUSED, REMEDY);
    }
    if let Some(version) = report.text(RULE, &field, value, SKIPPED, REMEDY).filter(|version| *version != "1") {
        report.add(Severity::Error, RULE, &field, format!("{} is not \"1\"", quote(version)), SKIPPED, REMEDY);
    }
}

fn guid(report: &mut Report, value: Option<&Value>) {
    const RULE: &Rule = &rules::PLUGIN_GUID;
    const REMEDY: &str = "the plugin's GUID in braces, from its maker or from HKLM:\\SYSTEM\\CurrentControlSet\\Control\\CCG\\COMClasses";
    let field = format!("{PATH}.PluginGUID");
    let Some(guid) = report.text(RULE, &field, value, SKIPPED, REMEDY) else { return };
    // The digits are no reason to refuse: the GUID in Microsoft's own sample is not hexadecimal.
    let shape = |text: &str| is_guid(text, |b| b.is_ascii_alphanumeric());
    match guid.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        Some(inner) if shape(inner) => {}
        Some(_) => {
            let problem = format!("{} does not look like a GUID", quote(guid));
            report.add(Severity::Warning, RULE, &field, problem, SKIPPED, REMEDY);
        }
        None => {
            let remedy = if shape(guid) { format!("\"{{{guid}}}\"") } else { REMEDY.to_owned() };
            let problem = format!("{} is not in braces", quote(guid));
            report.add(Severity::Error, RULE, &field, problem, SKIPPED, remedy);
        }
    }
}

fn input(report: &mut Report, value: Option<&Value>, known: Option<Known>) {
    const RULE: &Rule = &rules::PLUGIN_INPUT;
    let field = format!("{PATH}.PluginInput");
    let remedy = known.map_or("one string, as the plugin's maker documents it", Known::form);
    let problem = match value {
        Some(Value::String(input)) => {
            let lower = input.to_ascii_lowercase();
            if ["password", "passwd", "pwd="].iter().any(|word| lower.contains(word)) {
                let why =
                    "credential specs are not secret: everyone who may read them, or a pod, can read the password";
                let remedy = "keep the password in the plugin's vault and name the vault here";
                report.add(Severity::Warning, RULE, &field, "seems to hold a password", why, remedy);
            } else if let Some(problem) = known.and_then(|known| known.fault(input)) {
                // A warning: the maker may have taught the plugin more than is known here.
                let why =
                    "the plugin does not find the user that may fetch the account, so the container does not start";
                report.add(Severity::Warning, RULE, &field, problem, why, remedy);
            }
            return;
        }
        None | Some(Value::Null) => {
            return report.add(Severity::Warning, RULE, &field, "is missing", "most plugins need one", remedy);
        }
        Some(Value::Object(_) | Value::Array(_)) => "is an object, not a string",
        Some(_) => "is not a string",
    };
    report.add(Severity::Error, RULE, &field, problem, REFUSED, remedy);
}
