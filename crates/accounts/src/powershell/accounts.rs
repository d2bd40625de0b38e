//! Accounts as `Get-ADServiceAccount NAME -Properties *` prints them.
//!
//! Invariants: properties that are not checked are ignored; a checked list that was not printed is [`None`], which is different from one
//! that is empty.

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value};
use time::{OffsetDateTime, UtcDateTime, format_description::well_known::Rfc3339};

use super::to_json;
use gmsa_directory::{
    Retrieval, Sid,
    account::{Account, DISABLED, ENCRYPTION_TYPES, expiry},
};

/// The most accounts that are read from one text.
const MAX_ACCOUNTS: usize = 10_000;

/// The error for text in another format, and the command that prints JSON.
fn not_json(text: &str) -> String {
    let printed = if text.contains('\u{1b}') {
        "coloured for a terminal"
    } else if text.trim_start().starts_with("****") {
        // Lines of `Start-Transcript`.
        "a transcript of PowerShell"
    } else {
        return "not the output of `Get-ADServiceAccount NAME -Properties * | ConvertTo-Json`".to_owned();
    };
    format!(
        "{printed}, not JSON: run `Get-ADServiceAccount NAME -Properties * | ConvertTo-Json -Depth 4 | Out-File account.json`"
    )
}

/// Reads one account, or a list of them, in any form in which PowerShell prints them.
///
/// # Errors
/// If the text is in another format, or an entry is not an account.
pub fn accounts(text: &str) -> anyhow::Result<Vec<Account>> {
    let entries = match to_json(text).with_context(|| not_json(text))? {
        Value::Array(entries) => entries,
        one => vec![one],
    };
    ensure!(entries.len() <= MAX_ACCOUNTS, "more than {MAX_ACCOUNTS} accounts");
    let account = |(place, entry): (usize, &Value)| {
        let other = || match place {
            0 => not_json(text),
            _ => format!("entry {} has no SamAccountName: {}", place + 1, not_json("")),
        };
        entry.as_object().and_then(of).with_context(other)
    };
    entries.iter().enumerate().map(account).collect()
}

/// The account of these properties; `None` where they have no name.
fn of(printed: &Map<String, Value>) -> Option<Account> {
    // PowerShell ignores the case of names, and so do scripts that select properties by theirs.
    // A property that was cut off counts as not printed.
    let field = |name: &str| {
        let mut fields = printed.iter().filter(|(_, value)| !is_cut_off(value));
        fields.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    };
    let text = |name| field(name).and_then(|value| texts(value).into_iter().next());
    let list = |name| field(name).map(texts);
    let encryption = field("msDS-SupportedEncryptionTypes").and_then(Value::as_u64).or_else(|| {
        list("KerberosEncryptionType").map(|types| types.iter().map(|text| bits(text)).fold(0, |a, b| a | b))
    });
    let control = field("userAccountControl").and_then(Value::as_u64);
    let by_control = control.map(|control| control & DISABLED == 0);
    Some(Account {
        sam: text("SamAccountName").filter(|name| !name.is_empty())?.trim_end_matches('$').to_owned(),
        name: text("DistinguishedName").unwrap_or_default(),
        // The list begins with `top`; its last class is the object's own.
        class: list("ObjectClass").and_then(|classes| classes.into_iter().next_back()),
        enabled: field("Enabled").and_then(Value::as_bool).or(by_control),
        retrieval: list("PrincipalsAllowedToRetrieveManagedPassword").map(Retrieval::Named),
        delegation: list("PrincipalsAllowedToDelegateToAccount").map(Retrieval::Named),
        service_principals: list("ServicePrincipalNames").or_else(|| list("servicePrincipalName")),
        encryption,
        control,
        sid: text("SID").or_else(|| text("objectSid")).and_then(|sid| Sid::parse(&sid)),
        guid: text("ObjectGUID"),
        expires: match field("accountExpires").and_then(Value::as_i64) {
            Some(time) => expiry(time),
            None => text("AccountExpirationDate").and_then(|text| time(&text)),
        },
        password_interval: field("ManagedPasswordIntervalInDays").and_then(|days| texts(days).first()?.parse().ok()),
        is_left_over: field("Deleted").or_else(|| field("isDeleted")).and_then(Value::as_bool).unwrap_or(false),
        superseded_by: text("msDS-SupersededByManagedAccountLink"),
        groups: list("MemberOf").unwrap_or_default(),
        ..Account::default()
    })
}

/// Whether PowerShell cut a property off. Below its `-Depth`, 2 by default, `ConvertTo-Json` prints what
/// `ToString` says of an object (Microsoft: `ConvertTo-Json`): of most the name of its type, of a collection in Windows PowerShell
/// its entries, joined by spaces. Above it, a collection of the directory may be an object with its sizes alone.
fn is_cut_off(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let names = ["CN=", "OU=", "DC="].map(|start| format!(" {start}"));
            let is_type = text.starts_with("System.") || text.starts_with("Microsoft.ActiveDirectory.Management.");
            let joined = |start: &String| {
                text.match_indices(start.as_str())
                    .any(|(at, _)| text.get(..at).is_some_and(|head| !head.ends_with(',')))
            };
            let service_principals = text.contains(' ') && text.split(' ').all(|part| part.contains('/'));
            is_type || service_principals || (text.contains('=') && names.iter().any(joined))
        }
        Value::Array(items) => items.iter().any(is_cut_off),
        Value::Object(object) => {
            let has = |key: &str| object.keys().any(|found| found.eq_ignore_ascii_case(key));
            !has("value") && has("Count")
        }
        _ => false,
    }
}

/// The texts of a property: `ConvertTo-Json` prints a collection as a list, or as an object that has it in `value`, and a
/// SID as an object that has its text in `Value`.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![text.clone()],
        Value::Bool(flag) => vec![flag.to_string()],
        Value::Number(number) => vec![number.to_string()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(object) => object.get("Value").or_else(|| object.get("value")).map(texts).unwrap_or_default(),
    }
}

/// A time: `/Date(1705526400000)/` of Windows PowerShell, `2024-01-17T21:20:00Z` of PowerShell 7.
fn time(text: &str) -> Option<UtcDateTime> {
    let number = text.strip_prefix("/Date(").and_then(|rest| rest.strip_suffix(")/"));
    let time = match number {
        Some(number) => OffsetDateTime::from_unix_timestamp(number.parse::<i64>().ok()?.div_euclid(1000)),
        None => return OffsetDateTime::parse(text, &Rfc3339).ok().map(OffsetDateTime::to_utc),
    };
    time.ok().map(OffsetDateTime::to_utc)
}

/// The bits of one entry of `KerberosEncryptionType`: a number, or names joined by commas.
fn bits(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| {
        let bit = |name: &str| match name.trim() {
            "DES" => 0x3,
            name => ENCRYPTION_TYPES.iter().find(|(known, _)| *known == name).map_or(0, |(_, bit)| *bit),
        };
        text.split(',').map(bit).fold(0, |all, bit| all | bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_account_and_many_are_read_with_what_was_printed_of_them() {
        let one = r#"{
            "DistinguishedName":  "CN=WebApp1,CN=Managed Service Accounts,DC=corp,DC=contoso,DC=com",
            "Enabled":  true, "ObjectClass":  "msDS-GroupManagedServiceAccount",
            "KerberosEncryptionType":  [28], "msDS-SupportedEncryptionTypes":  28,
            "ObjectGUID":  "850ad035-f87e-4846-b6bf-403235381858", "SamAccountName":  "WebApp1$",
            "PrincipalsAllowedToRetrieveManagedPassword":  ["CN=Hosts,CN=Users,DC=contoso,DC=com"],
            "ServicePrincipalNames":  {"value":  ["http/web"], "Count":  1},
            "SID":  {"BinaryLength":  28, "AccountDomainSid":  "S-1-5-21-1-2-3", "Value":  "S-1-5-21-1-2-3-1103"}
        }"#;
        let account = Account {
            sam: "WebApp1".to_owned(),
            name: "CN=WebApp1,CN=Managed Service Accounts,DC=corp,DC=contoso,DC=com".to_owned(),
            class: Some("msDS-GroupManagedServiceAccount".to_owned()),
            enabled: Some(true),
            retrieval: Some(Retrieval::Named(vec!["CN=Hosts,CN=Users,DC=contoso,DC=com".to_owned()])),
            service_principals: Some(vec!["http/web".to_owned()]),
            encryption: Some(28),
            sid: Sid::parse("S-1-5-21-1-2-3-1103"),
            guid: Some("850ad035-f87e-4846-b6bf-403235381858".to_owned()),
            ..Account::default()
        };
        assert_eq!(account.domain().as_deref(), Some("corp.contoso.com"));
        assert_eq!(account.domain_sid(), Sid::parse("S-1-5-21-1-2-3"));
        assert_eq!(accounts(one).unwrap(), [account]);
        let bare = |name: &str| Account { sam: name.to_owned(), ..Account::default() };
        assert_eq!(accounts(r#"[{"SamAccountName": "a$"}, {"samaccountname": "b"}]"#).unwrap(), [bare("a"), bare("b")]);
    }

    #[test]
    fn what_powershell_cut_off_was_not_printed() {
        let of = |value: &str| {
            let json = format!(
                r#"{{"SamAccountName": "a", "ServicePrincipalNames": {value}, "PrincipalsAllowedToRetrieveManagedPassword": {value}}}"#
            );
            let account = accounts(&json).unwrap().remove(0);
            (account.service_principals, account.retrieval)
        };
        for cut in [
            r#""System.Object[]""#,
            r#"["System.Object[]"]"#,
            r#""Microsoft.ActiveDirectory.Management.ADPropertyValueCollection""#,
            r#""host/a host/a.contoso.com""#,
            r#""CN=Hosts,CN=Users,DC=contoso,DC=com CN=More,CN=Users,DC=contoso,DC=com""#,
            r#"{"Capacity": 4, "Count": 1}"#,
        ] {
            assert_eq!(of(cut), (None, None), "{cut}");
        }
        for whole in ["host/a", "CN=Web, CN=Users,DC=contoso,DC=com", "CN=Web Hosts,OU=Shop And DC,DC=contoso,DC=com"] {
            let texts = Some(vec![whole.to_owned()]);
            assert_eq!(
                of(&format!(r#"{{"value": ["{whole}"], "Count": 1}}"#)),
                (texts.clone(), texts.map(Retrieval::Named)),
                "{whole}"
            );
        }
    }

    #[test]
    fn a_list_for_people_is_read_and_what_the_console_cut_off_was_not_printed() {
        let text = "\r\nEnabled        : True\r\nObjectClass    : msDS-GroupManagedServiceAccount\r\nSamAccountName : WebApp1$\r\n\
                    ServicePrincipalNames : {http/w, host/w}\r\nPrincipalsAllowedToRetrieveManagedPassword : {CN=Hosts,CN=Us...}\r\n";
        let account = accounts(text).unwrap().remove(0);
        assert_eq!((account.sam.as_str(), account.enabled, account.retrieval), ("WebApp1", Some(true), None));
        assert_eq!(account.service_principals, Some(vec!["http/w".to_owned(), "host/w".to_owned()]));
    }

    #[test]
    fn a_list_of_classes_ends_with_the_accounts_own() {
        let json = r#"{"SamAccountName": "a", "ObjectClass": ["top", "computer", "msDS-GroupManagedServiceAccount"]}"#;
        assert_eq!(accounts(json).unwrap()[0].class.as_deref(), Some("msDS-GroupManagedServiceAccount"));
    }

    #[test]
    fn what_is_printed_for_people_gets_the_command_to_run() {
        let run = "`Get-ADServiceAccount NAME -Properties * | ConvertTo-Json -Depth 4 | Out-File account.json`";
        for (text, what) in [
            ("\u{1b}[32;1mName\u{1b}[0m", "coloured for a terminal"),
            ("**********************\r\nWindows PowerShell transcript start", "a transcript of PowerShell"),
        ] {
            assert_eq!(accounts(text).unwrap_err().to_string(), format!("{what}, not JSON: run {run}"));
        }
    }

    #[test]
    fn each_way_to_print_a_date_is_read() {
        let of = |text: &str| {
            accounts(&format!(r#"{{"SamAccountName": "a", {text}}}"#)).unwrap()[0]
                .expires
                .map(UtcDateTime::unix_timestamp)
        };
        for never in
            [r#""accountExpires": 0"#, r#""accountExpires": 9223372036854775807"#, r#""AccountExpirationDate": null"#]
        {
            assert_eq!(of(never), None, "{never}");
        }
        for date in [
            r#""accountExpires": 133500000000000000"#,
            r#""AccountExpirationDate": "\/Date(1705526400000)\/""#,
            r#""AccountExpirationDate": {"value": "\/Date(1705526400000)\/", "DateTime": "Wednesday"}"#,
            r#""AccountExpirationDate": "2024-01-17T22:20:00.0000000+01:00""#,
        ] {
            assert_eq!(of(date), Some(1_705_526_400), "{date}");
        }
    }

    #[test]
    fn an_empty_text_is_no_text() {
        let empty =
            r#"{"SamAccountName": "a", "ObjectClass": "", "ServicePrincipalNames": "", "SID": {"Value": null}}"#;
        let account = Account { sam: "a".to_owned(), service_principals: Some(Vec::new()), ..Account::default() };
        assert_eq!(accounts(empty).unwrap(), [account]);
    }

    #[test]
    fn encryption_types_are_read_as_number_list_and_names() {
        let of = |text: &str| accounts(&format!(r#"{{"SamAccountName": "a", {text}}}"#)).unwrap()[0].encryption;
        assert_eq!(of(r#""msDS-SupportedEncryptionTypes": 24"#), Some(24));
        assert_eq!(of(r#""KerberosEncryptionType": [4]"#), Some(4));
        assert_eq!(of(r#""KerberosEncryptionType": ["RC4, AES128, AES256"]"#), Some(28));
        assert_eq!(of(r#""KerberosEncryptionType": "DES""#), Some(3));
        assert_eq!(of(r#""KerberosEncryptionType": []"#), Some(0));
        // A type that is named twice counts once.
        assert_eq!(of(r#""KerberosEncryptionType": ["AES128, AES128"]"#), Some(8));
        assert_eq!(of(r#""KerberosEncryptionType": ["AES128", "AES128"]"#), Some(8));
        assert_eq!(of(r#""Enabled": true"#), None);
    }

    #[test]
    fn what_is_no_account_is_refused() {
        for (json, error) in [
            (
                "Get-ADServiceAccount : Cannot find",
                "not the output of `Get-ADServiceAccount NAME -Properties * | ConvertTo-Json`".to_owned(),
            ),
            (
                "[{\"SamAccountName\": \"a\"}, {\"DNSRoot\": \"contoso.com\"}]",
                format!("entry 2 has no SamAccountName: {}", not_json("")),
            ),
            ("{\"SamAccountName\": \"\"}", not_json("")),
            ("7", not_json("")),
            ("| Command | What it does |\n|---|---|\n| `cargo test` | all tests |\n", not_json("")),
        ] {
            assert_eq!(accounts(json).unwrap_err().to_string(), error, "{json}");
        }
        let many = format!("[{}0]", "0,".repeat(MAX_ACCOUNTS));
        assert_eq!(accounts(&many).unwrap_err().to_string(), "more than 10000 accounts");
        let most = format!("[{}0]", "0,".repeat(MAX_ACCOUNTS - 1));
        assert_eq!(accounts(&most).unwrap_err().to_string(), not_json(""));
    }
}
