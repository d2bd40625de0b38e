//! A `GMSACredentialSpec` from what an administrator has: facts about the domain, the JSON that `Get-ADDomain`
//! prints, or the JSON that the `CredentialSpec` PowerShell module writes for Docker.
//!
//! Pure. Invariants: the YAML that is printed reads back as the object that was checked, with any characters
//! in the facts; nothing is guessed that could be another domain's.

use std::collections::BTreeSet;

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

    /// Its fields in their order, as YAML.
    fn scalars(&self) -> [String; 5] {
        let Self { dns, forest, netbios, sid, guid } = self;
        [dns, forest, netbios, sid, guid].map(|text| scalar(text))
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
        let [dns, forest, netbios, sid, guid] = domain.scalars();
        let accounts: Option<String> = all.iter().map(Self::value).collect();
        Ok(format!(
            "# Values of the chart gmsa-accounts. Copy the {entries} into the list of those that you have.\n\
             domain:\n  dnsName: {dns}\n  dnsTreeName: {forest}\n  guid: {guid}\n  netBiosName: {netbios}\n  sid: {sid}\n\
             accounts:\n{}",
            accounts.ok_or(DraftError::NotOfChart)?
        ))
    }

    /// Its entry in the list of accounts.
    fn value(&self) -> Option<String> {
        let mut names: Vec<&String> = self.accounts.iter().map(|account| &account.name).collect();
        names.dedup();
        let additional: Vec<String> = names.into_iter().skip(1).cloned().collect();
        let Self { name, account, domain, plugin, .. } = self;
        if Self::new(name.clone(), account.clone(), domain.clone(), &additional, plugin.clone()) != *self {
            return None;
        }
        let mut yaml = format!("- name: {}\n  account: {}\n", scalar(name), scalar(account));
        yaml.push_str(if additional.is_empty() { "" } else { "  additionalAccounts:\n" });
        yaml.extend(additional.iter().map(|other| format!("  - {}\n", scalar(other))));
        yaml.extend(
            plugin.iter().map(|Plugin { guid, input }| {
                format!("  plugin: {}\n  pluginInput: {}\n", scalar(guid), scalar(input))
            }),
        );
        Some(yaml + "  # Who may use it: NAMESPACE:SERVICE-ACCOUNT.\n  grants: []\n")
    }

    /// The manifest: sorted, and each field with a comment on what it is.
    pub fn yaml(&self) -> String {
        let account = |ScopedAccount { name, scope }: &ScopedAccount| {
            format!("    - Name: {}\n      Scope: {}\n", scalar(name), scalar(scope))
        };
        let plugin = |Plugin { guid, input }: &Plugin| {
            format!(include_str!("generate/plugin.yaml.tpl"), guid = scalar(guid), input = scalar(input))
        };
        let [dns, forest, netbios, sid, guid] = self.domain.scalars();
        format!(
            include_str!("generate/credspec.yaml.tpl"),
            group = GROUP,
            version = VERSION,
            kind = KIND,
            name = scalar(&self.name),
            accounts = self.accounts.iter().map(account).collect::<String>(),
            plugin = self.plugin.as_ref().map(plugin).unwrap_or_default(),
            account = scalar(&self.account),
            dns = dns,
            forest = forest,
            guid = guid,
            netbios = netbios,
            sid = sid,
        )
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

#[cfg(test)]
mod tests;
