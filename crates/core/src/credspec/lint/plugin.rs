//! `HostAccountConfig`: how a host that is not joined to the domain fetches the account, by a plugin of the Container
//! Credential Guard.

use serde_json::Value;

use super::{Report, Severity, domain::is_guid, quote};
use crate::diagnostic::rules::{self, Rule};

/// The plugins that are known by name: the word that people type, who makes it, and its GUID.
pub const KNOWN_PLUGINS: [(&str, &str, &str); 3] = [
    ("azure", "Azure Key Vault", "{CCC2A336-D7F3-4818-A213-272B7924213E}"),
    ("aws", "AWS", "{859E1386-BDB4-49E8-85C7-3070B13920E1}"),
    ("rancher", "Rancher", "{e4781092-f116-4b79-b55e-28eb6a224e26}"),
];

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
    input(report, config.get("PluginInput"));
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
            let problem = format!("{} does not stand in braces", quote(guid));
            report.add(Severity::Error, RULE, &field, problem, SKIPPED, remedy);
        }
    }
}

fn input(report: &mut Report, value: Option<&Value>) {
    const RULE: &Rule = &rules::PLUGIN_INPUT;
    const REMEDY: &str = "one string, as the plugin's maker documents it";
    let field = format!("{PATH}.PluginInput");
    let problem = match value {
        Some(Value::String(input)) => {
            let lower = input.to_ascii_lowercase();
            if ["password", "passwd", "pwd="].iter().any(|word| lower.contains(word)) {
                let why = "credential specs are not secret: whoever can read them or a pod reads the password";
                let remedy = "keep the password in the plugin's vault and name the vault here";
                report.add(Severity::Warning, RULE, &field, "seems to hold a password", why, remedy);
            }
            return;
        }
        None | Some(Value::Null) => {
            return report.add(Severity::Warning, RULE, &field, "is missing", "most plugins need one", REMEDY);
        }
        Some(Value::Object(_) | Value::Array(_)) => "is an object, not a string",
        Some(_) => "is not a string",
    };
    report.add(Severity::Error, RULE, &field, problem, REFUSED, REMEDY);
}
