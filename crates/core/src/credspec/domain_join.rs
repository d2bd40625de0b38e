//! The domain and the accounts in the contents of a credential spec; fields that are not text are skipped.

use serde_json::Value;

/// `DomainJoinConfig`.
#[derive(Clone, Copy, Debug, Default)]
pub struct DomainJoinConfig<'v> {
    pub dns_name: Option<&'v str>,
    pub dns_tree_name: Option<&'v str>,
    pub guid: Option<&'v str>,
    pub machine_account_name: Option<&'v str>,
    pub net_bios_name: Option<&'v str>,
    pub sid: Option<&'v str>,
}

impl<'v> DomainJoinConfig<'v> {
    /// Reads contents: the field `credspec`, or the text of a pod.
    pub fn of(contents: &'v Value) -> Self {
        let text = |key: &str| contents.get("DomainJoinConfig")?.get(key)?.as_str();
        Self {
            dns_name: text("DnsName"),
            dns_tree_name: text("DnsTreeName"),
            guid: text("Guid"),
            machine_account_name: text("MachineAccountName"),
            net_bios_name: text("NetBiosName"),
            sid: text("Sid"),
        }
    }

    /// Reads a whole credential spec.
    pub fn of_spec(spec: &'v Value) -> Self {
        spec.get("credspec").map(Self::of).unwrap_or_default()
    }
}

/// The names in `GroupManagedServiceAccounts` of a whole credential spec.
pub fn accounts(spec: &Value) -> impl Iterator<Item = &str> {
    let listed = spec.pointer("/credspec/ActiveDirectoryConfig/GroupManagedServiceAccounts").and_then(Value::as_array);
    listed.into_iter().flatten().filter_map(|entry| entry.get("Name")?.as_str())
}
