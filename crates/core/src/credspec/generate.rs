//! A `GMSACredentialSpec` from what an administrator has: facts about the domain, the JSON that `Get-ADDomain`
//! prints, or the JSON that the `CredentialSpec` PowerShell module writes for Docker.
//!
//! Pure. Invariants: the YAML that is printed reads back as the object that was checked, with any characters
//! in the facts; nothing is guessed that could be another domain's.

use std::{collections::BTreeSet, fmt::Write as _};

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Value, json};

use super::{GROUP, KIND, VERSION, ccg_plugin::input_from_object, suggest_name};
use crate::quote::{self, NAME, VALUE, bare, shorten};

/// The domain, as `DomainJoinConfig` describes it and `Get-ADDomain` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Domain {
    #[serde(rename = "DNSRoot")]
    pub dns: String,
    /// The DNS name of its forest's root.
    #[serde(rename = "Forest")]
    pub forest: String,
    #[serde(rename = "NetBIOSName")]
    pub netbios: String,
    #[serde(rename = "DomainSID", deserialize_with = "sid")]
    pub sid: String,
    /// Without braces.
    #[serde(rename = "ObjectGUID")]
    pub guid: String,
}

/// An entry of `GroupManagedServiceAccounts`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ScopedAccount {
    /// The account's SAM name.
    pub name: String,
    /// The domain's DNS or NetBIOS name.
    pub scope: String,
}

/// `HostAccountConfig`: the plugin that fetches the account on a host that is not joined to the domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugin {
    /// The plugin's GUID, in braces.
    pub guid: String,
    /// The input of the plugin.
    pub input: String,
}

/// A file for Amazon ECS holds the input as an object, one for Docker as a text, as Kubernetes does.
impl<'de> Deserialize<'de> for Plugin {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Written {
            #[serde(rename = "PluginGUID")]
            guid: String,
            #[serde(rename = "PluginInput", default)]
            input: Value,
        }
        let Written { guid, input } = Written::deserialize(input)?;
        let input = match input {
            Value::Null => String::new(),
            Value::String(text) => text,
            Value::Object(object) => input_from_object(&guid, object),
            _ => return Err(D::Error::custom("PluginInput is neither a text nor an object")),
        };
        Ok(Self { guid, input })
    }
}

/// A credential spec to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    pub name: String,
    /// The account that the container logs on with.
    pub account: String,
    pub domain: Domain,
    /// The accounts that the host may fetch.
    pub accounts: Vec<ScopedAccount>,
    pub plugin: Option<Plugin>,
}

#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    #[error("not the output of `Get-ADDomain | ConvertTo-Json`")]
    Directory(#[source] serde_json::Error),
    #[error("not a credential spec as `New-CredentialSpec` writes one")]
    Docker(#[source] serde_json::Error),
    #[error(
        "the accounts are of several domains, {0}, and a release of the chart gmsa-accounts has one: run this for each, with --all --domain DOMAIN"
    )]
    SeveralDomains(String),
    #[error(
        "the chart gmsa-accounts cannot make this credential spec: its accounts are not each under the DNS and the NetBIOS name of the domain. Leave `-o values` out"
    )]
    NotOfChart,
}

impl Domain {
    /// Reads what `Get-ADDomain | ConvertTo-Json` prints.
    ///
    /// # Errors
    /// Where the text is not JSON of that shape.
    pub fn from_directory(json: &str) -> Result<Self, DraftError> {
        serde_json::from_str(json).map_err(DraftError::Directory)
    }
}

/// `ConvertTo-Json` prints a `SecurityIdentifier` as an object with its text in `Value`, `Select-Object` may have made it
/// the text itself.
fn sid<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    match Value::deserialize(input)? {
        Value::String(text) => Ok(text),
        Value::Object(mut object) => match object.remove("Value") {
            Some(Value::String(text)) => Ok(text),
            _ => Err(D::Error::custom("DomainSID has no Value")),
        },
        _ => Err(D::Error::custom("DomainSID is neither a text nor an object")),
    }
}

impl Draft {
    /// A credential spec for one account of a domain, and others that the host may fetch too.
    pub fn new(name: String, account: String, domain: Domain, additional: &[String], plugin: Option<Plugin>) -> Self {
        let both = |name: &String| {
            [&domain.dns, &domain.netbios].map(|scope| ScopedAccount { name: name.clone(), scope: scope.clone() })
        };
        let accounts = std::iter::once(&account).chain(additional).flat_map(both).collect();
        Self { name, account, domain, accounts, plugin }
    }

    /// Reads the JSON that `New-CredentialSpec` writes.
    ///
    /// # Errors
    /// Where the text is not JSON of that shape.
    pub fn from_docker(name: Option<String>, json: &str) -> Result<Self, DraftError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Written {
            domain_join_config: Join,
            active_directory_config: Directory,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Join {
            dns_name: String,
            dns_tree_name: String,
            guid: String,
            machine_account_name: String,
            net_bios_name: String,
            sid: String,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Directory {
            group_managed_service_accounts: Vec<ScopedAccount>,
            host_account_config: Option<Plugin>,
        }
        let Written { domain_join_config: join, active_directory_config: directory } =
            serde_json::from_str(json).map_err(DraftError::Docker)?;
        Ok(Self {
            name: name.unwrap_or_else(|| suggest_name(&join.machine_account_name)),
            account: join.machine_account_name,
            domain: Domain {
                dns: join.dns_name,
                forest: join.dns_tree_name,
                netbios: join.net_bios_name,
                sid: join.sid,
                guid: join.guid,
            },
            accounts: directory.group_managed_service_accounts,
            plugin: directory.host_account_config,
        })
    }

    /// The differences between the converted file and the credential spec: each field, and whether it was left out, changed or added.
    pub fn changes(&self, json: &str) -> Vec<String> {
        let mut changes = Vec::new();
        if let (Ok(written), Some(made)) = (serde_json::from_str(json), self.object().get("credspec")) {
            compare("", &written, made, &mut changes);
        }
        changes
    }

    /// The whole object, for the linter.
    pub fn object(&self) -> Value {
        let accounts: Vec<_> =
            self.accounts.iter().map(|account| json!({"Name": account.name, "Scope": account.scope})).collect();
        let mut directory = json!({"GroupManagedServiceAccounts": accounts});
        if let (Some(plugin), Some(directory)) = (&self.plugin, directory.as_object_mut()) {
            let host = json!({"PluginGUID": plugin.guid, "PluginInput": plugin.input, "PortableCcgVersion": "1"});
            directory.insert("HostAccountConfig".to_owned(), host);
        }
        json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": KIND,
            "metadata": {"name": self.name},
            "credspec": {
                "ActiveDirectoryConfig": directory,
                "CmsPlugins": ["ActiveDirectory"],
                "DomainJoinConfig": {
                    "DnsName": self.domain.dns,
                    "DnsTreeName": self.domain.forest,
                    "Guid": self.domain.guid,
                    "MachineAccountName": self.account,
                    "NetBiosName": self.domain.netbios,
                    "Sid": self.domain.sid,
                },
            },
        })
    }

    /// The values of the chart `gmsa-accounts` that make these credential specs, as YAML.
    ///
    /// # Errors
    /// Where the chart cannot: they are of several domains, or the accounts are not each under both names of the domain.
    pub fn values(all: &[Self]) -> Result<String, DraftError> {
        let domains: BTreeSet<&str> = all.iter().map(|draft| draft.domain.dns.as_str()).collect();
        if domains.len() > 1 {
            return Err(DraftError::SeveralDomains(Vec::from_iter(domains).join(", ")));
        }
        let Self { domain, .. } = all.first().ok_or(DraftError::NotOfChart)?;
        let entries = if all.len() == 1 { "entry" } else { "entries" };
        let mut yaml = format!(
            "# Values of the chart gmsa-accounts. Copy the {entries} into the list of those that you have.\ndomain:\n"
        );
        for (key, value) in [
            ("dnsName", &domain.dns),
            ("dnsTreeName", &domain.forest),
            ("guid", &domain.guid),
            ("netBiosName", &domain.netbios),
            ("sid", &domain.sid),
        ] {
            line(&mut yaml, &format!("  {key}: "), value, "");
        }
        yaml.push_str("accounts:\n");
        for draft in all {
            draft.value(&mut yaml).ok_or(DraftError::NotOfChart)?;
        }
        Ok(yaml)
    }

    /// Its entry in the list of accounts.
    fn value(&self, yaml: &mut String) -> Option<()> {
        let mut names: Vec<&String> = self.accounts.iter().map(|account| &account.name).collect();
        names.dedup();
        let additional: Vec<String> = names.into_iter().skip(1).cloned().collect();
        let Self { name, account, domain, plugin, .. } = self;
        if Self::new(name.clone(), account.clone(), domain.clone(), &additional, plugin.clone()) != *self {
            return None;
        }
        line(yaml, "- name: ", name, "");
        line(yaml, "  account: ", account, "");
        if !additional.is_empty() {
            yaml.push_str("  additionalAccounts:\n");
        }
        for other in &additional {
            line(yaml, "  - ", other, "");
        }
        if let Some(plugin) = plugin {
            line(yaml, "  plugin: ", &plugin.guid, "");
            line(yaml, "  pluginInput: ", &plugin.input, "");
        }
        yaml.push_str("  # Who may use it: NAMESPACE:SERVICE-ACCOUNT.\n  grants: []\n");
        Some(())
    }

    /// The manifest: sorted, and each field with a comment on what it is.
    pub fn yaml(&self) -> String {
        let mut yaml = format!(
            "apiVersion: {GROUP}/{VERSION}\nkind: {KIND}\nmetadata:\n  name: {}\n\
             # Not secret. Everyone who may change it can choose the account that pods log on with.\ncredspec:\n  \
             ActiveDirectoryConfig:\n    \
             # What the host may fetch: each account under the domain's DNS and NetBIOS names.\n    \
             GroupManagedServiceAccounts:\n",
            scalar(&self.name)
        );
        for account in &self.accounts {
            line(&mut yaml, "    - Name: ", &account.name, "");
            line(&mut yaml, "      Scope: ", &account.scope, "");
        }
        if let Some(plugin) = &self.plugin {
            yaml.push_str("    # How a host that is not joined to the domain fetches them.\n    HostAccountConfig:\n");
            line(&mut yaml, "      PluginGUID: ", &plugin.guid, "in braces");
            line(&mut yaml, "      PluginInput: ", &plugin.input, "no passwords: it can be read in every pod");
            line(&mut yaml, "      PortableCcgVersion: ", "1", "a text, not a number");
        }
        yaml.push_str("  CmsPlugins:\n  - ActiveDirectory\n  # The domain, and the account that the container logs on with.\n  DomainJoinConfig:\n");
        let Domain { dns, forest, netbios, sid, guid } = &self.domain;
        for (key, value, comment) in [
            ("DnsName", dns, "(Get-ADDomain).DNSRoot"),
            ("DnsTreeName", forest, "(Get-ADDomain).Forest"),
            ("Guid", guid, "(Get-ADDomain).ObjectGUID: the domain's, not the account's"),
            ("MachineAccountName", &self.account, "the account's SAM name, without $ and domain"),
            ("NetBiosName", netbios, "(Get-ADDomain).NetBIOSName"),
            ("Sid", sid, "(Get-ADDomain).DomainSID.Value: the domain's, not the account's"),
        ] {
            line(&mut yaml, &format!("    {key}: "), value, comment);
        }
        yaml
    }
}

fn compare(path: &str, written: &Value, made: &Value, changes: &mut Vec<String>) {
    let below = |key: &str| if path.is_empty() { bare(key, VALUE) } else { format!("{path}.{}", bare(key, VALUE)) };
    match (written, made) {
        (Value::Object(written), Value::Object(made)) => {
            for (key, value) in written.iter().filter(|(_, value)| !value.is_null()) {
                match made.get(key) {
                    Some(made) => compare(&below(key), value, made, changes),
                    None => changes.push(format!("{} is left out: it is not a field of a credential spec", below(key))),
                }
            }
            let added = made.keys().filter(|key| written.get(*key).is_none_or(Value::is_null));
            changes.extend(added.map(|key| format!("{} is added", below(key))));
        }
        (Value::Array(written), Value::Array(made)) if written.len() == made.len() => {
            for (index, (written, made)) in written.iter().zip(made).enumerate() {
                compare(&format!("{path}[{index}]"), written, made, changes);
            }
        }
        _ if written == made => {}
        _ => changes.push(format!("{path} is changed to {}", shorten(&made.to_string(), NAME))),
    }
}

/// A text as a YAML scalar: plain where every YAML parser reads it as this text, otherwise as a JSON string, which is valid
/// YAML, in ASCII where it would hide something.
pub fn scalar(text: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'))
        && !WORDS.iter().any(|word| word.eq_ignore_ascii_case(text));
    if plain { text.to_owned() } else { quote::json(&Value::from(text).to_string()) }
}

/// A line of values; `-` is the key of an item of a list.
fn line(yaml: &mut String, start: &str, value: &str, comment: &str) {
    let comment = if comment.is_empty() { String::new() } else { format!("  # {comment}") };
    // Writing into a String cannot fail.
    let _ = writeln!(yaml, "{start}{}{comment}", scalar(value));
}

#[cfg(test)]
mod tests;
