//! A group Managed Service Account, as `Get-ADServiceAccount NAME -Properties * | ConvertTo-Json` prints it.
//!
//! Pure. Invariants: properties that are not checked are ignored; a property that was not printed
//! is [`None`], which is different from one that is empty.

use serde_json::{Map, Value};

pub mod lint;

/// The most accounts that are read from one text.
pub const MAX_ACCOUNTS: usize = 10_000;

/// The bits of `msDS-SupportedEncryptionTypes` that name an encryption type of tickets ([MS-KILE] 2.2.7); the others are flags.
/// `ADKerberosEncryptionType` of PowerShell has the same values.
const ENCRYPTION_TYPES: [(&str, u64); 5] =
    [("DES-CBC-CRC", 0x1), ("DES-CBC-MD5", 0x2), ("RC4", 0x4), ("AES128", 0x8), ("AES256", 0x10)];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// `SamAccountName`, without the `$` at its end.
    pub sam: String,
    pub distinguished_name: Option<String>,
    /// `ObjectClass`
    pub class: Option<String>,
    pub enabled: Option<bool>,
    /// `PrincipalsAllowedToRetrieveManagedPassword`
    pub may_retrieve: Option<Vec<String>>,
    /// `ServicePrincipalNames`
    pub service_principals: Option<Vec<String>>,
    /// The encryption types of its tickets, as bits of `msDS-SupportedEncryptionTypes`.
    pub encryption: Option<u64>,
    /// `userAccountControl`
    pub control: Option<u64>,
    pub sid: Option<String>,
    /// `ObjectGUID`
    pub guid: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("not the output of `Get-ADServiceAccount NAME -Properties * | ConvertTo-Json`")]
    Json(#[from] serde_json::Error),
    #[error(
        "entry {0} has no SamAccountName: not the output of `Get-ADServiceAccount NAME -Properties * | ConvertTo-Json`"
    )]
    NotAnAccount(usize),
    #[error("more than {MAX_ACCOUNTS} accounts")]
    TooMany,
}

/// Reads one account, or a list of them.
///
/// # Errors
/// Where the text is not JSON of that shape.
pub fn read(json: &str) -> Result<Vec<Account>, ReadError> {
    let entries = match serde_json::from_str(json)? {
        Value::Array(entries) => entries,
        one => vec![one],
    };
    if entries.len() > MAX_ACCOUNTS {
        return Err(ReadError::TooMany);
    }
    let account = |(place, entry): (usize, &Value)| {
        entry.as_object().and_then(Account::of).ok_or(ReadError::NotAnAccount(place + 1))
    };
    entries.iter().enumerate().map(account).collect()
}

impl Account {
    fn of(printed: &Map<String, Value>) -> Option<Self> {
        // PowerShell ignores the case of names, and so do scripts that select properties by theirs.
        let field = |name: &str| printed.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        let text = |name| field(name).and_then(|value| texts(value).into_iter().next());
        let list = |name| field(name).map(texts);
        let encryption = field("msDS-SupportedEncryptionTypes").and_then(Value::as_u64).or_else(|| {
            list("KerberosEncryptionType").map(|types| types.iter().map(|text| bits(text)).fold(0, |a, b| a | b))
        });
        Some(Self {
            sam: text("SamAccountName").filter(|name| !name.is_empty())?.trim_end_matches('$').to_owned(),
            distinguished_name: text("DistinguishedName"),
            class: text("ObjectClass"),
            enabled: field("Enabled").and_then(Value::as_bool),
            may_retrieve: list("PrincipalsAllowedToRetrieveManagedPassword"),
            service_principals: list("ServicePrincipalNames").or_else(|| list("servicePrincipalName")),
            encryption,
            control: field("userAccountControl").and_then(Value::as_u64),
            sid: text("SID").or_else(|| text("objectSid")),
            guid: text("ObjectGUID"),
        })
    }

    /// The DNS name of the domain that the account is in, from its distinguished name.
    pub fn domain(&self) -> Option<String> {
        let parts = self.distinguished_name.as_deref()?.split(',').map(str::trim);
        let component = |part: &str| {
            let (key, value) = part.split_once('=')?;
            key.eq_ignore_ascii_case("DC").then(|| value.to_owned())
        };
        let labels: Vec<String> = parts.filter_map(component).collect();
        (!labels.is_empty()).then(|| labels.join("."))
    }

    /// The SID of the domain that the account is in: its own without the last number.
    pub fn domain_sid(&self) -> Option<&str> {
        self.sid.as_deref()?.rsplit_once('-').map(|(domain, _)| domain)
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
            distinguished_name: Some("CN=WebApp1,CN=Managed Service Accounts,DC=corp,DC=contoso,DC=com".to_owned()),
            class: Some("msDS-GroupManagedServiceAccount".to_owned()),
            enabled: Some(true),
            may_retrieve: Some(vec!["CN=Hosts,CN=Users,DC=contoso,DC=com".to_owned()]),
            service_principals: Some(vec!["http/web".to_owned()]),
            encryption: Some(28),
            control: None,
            sid: Some("S-1-5-21-1-2-3-1103".to_owned()),
            guid: Some("850ad035-f87e-4846-b6bf-403235381858".to_owned()),
        };
        assert_eq!(account.domain().as_deref(), Some("corp.contoso.com"));
        assert_eq!(account.domain_sid(), Some("S-1-5-21-1-2-3"));
        assert_eq!(read(one).unwrap(), [account]);
        let bare = |name: &str| Account { sam: name.to_owned(), ..Account::default() };
        assert_eq!(read(r#"[{"SamAccountName": "a$"}, {"samaccountname": "b"}]"#).unwrap(), [bare("a"), bare("b")]);
    }

    #[test]
    fn an_empty_text_is_no_text() {
        let empty =
            r#"{"SamAccountName": "a", "ObjectClass": "", "ServicePrincipalNames": "", "SID": {"Value": null}}"#;
        let account = Account { sam: "a".to_owned(), service_principals: Some(Vec::new()), ..Account::default() };
        assert_eq!(read(empty).unwrap(), [account]);
    }

    #[test]
    fn encryption_types_are_read_as_number_list_and_names() {
        let of = |text: &str| read(&format!(r#"{{"SamAccountName": "a", {text}}}"#)).unwrap()[0].encryption;
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
                ReadError::Json(serde_json::from_str::<Value>("G").unwrap_err()).to_string(),
            ),
            ("[{\"SamAccountName\": \"a\"}, {\"DNSRoot\": \"contoso.com\"}]", ReadError::NotAnAccount(2).to_string()),
            ("{\"SamAccountName\": \"\"}", ReadError::NotAnAccount(1).to_string()),
            ("7", ReadError::NotAnAccount(1).to_string()),
        ] {
            assert_eq!(read(json).unwrap_err().to_string(), error, "{json}");
        }
        let many = format!("[{}0]", "0,".repeat(MAX_ACCOUNTS));
        assert!(matches!(read(&many).unwrap_err(), ReadError::TooMany));
        let most = format!("[{}0]", "0,".repeat(MAX_ACCOUNTS - 1));
        assert!(matches!(read(&most).unwrap_err(), ReadError::NotAnAccount(1)));
    }
}
