//! The Container Credential Guard plugins whose input format is known, and what each takes as its `PluginInput`.
//!
//! Pure. Invariants: no message quotes an input, which may contain a secret by mistake.

use std::net::IpAddr;

use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};
use serde_json::{Map, Value, json};

use super::{is_dns_label, is_dns_subdomain};
use crate::{diagnostic::rules, quote};

word_enum! {
    /// A plugin whose input format is known, by its name on the command line.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum KnownPlugin {
        /// Azure Key Vault: the plugin of AKS (Microsoft: Enable GMSA for your Windows Server nodes on AKS).
        Azure = "azure",
        /// AWS Secrets Manager and Systems Manager (AWS: Using gMSAs for Windows containers, domainless).
        Aws = "aws",
        /// A Kubernetes Secret (Rancher: Windows GMSA, CCG plugin).
        Rancher = "rancher",
    }
}

/// The key of AWS's input. For Linux containers AWS writes it as `CredentialArn`, in an object.
const CREDENTIAL_ARN: &str = "credentialArn";

impl KnownPlugin {
    pub fn guid(self) -> &'static str {
        match self {
            Self::Azure => "{CCC2A336-D7F3-4818-A213-272B7924213E}",
            Self::Aws => "{859E1386-BDB4-49E8-85C7-3070B13920E1}",
            Self::Rancher => "{e4781092-f116-4b79-b55e-28eb6a224e26}",
        }
    }

    pub(crate) fn from_guid(guid: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.guid().eq_ignore_ascii_case(guid))
    }

    /// The format of its input.
    pub fn template(self) -> &'static str {
        match self {
            Self::Azure => "ObjectId=GUID;SecretUri=https://VAULT.vault.azure.net/secrets/NAME",
            Self::Aws => r#"'{"credentialArn":"arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME"}'"#,
            Self::Rancher => "NAMESPACE:SECRET",
        }
    }

    /// The fault of an input; `None` if it is valid.
    pub fn problem(self, input: &str) -> Option<&'static str> {
        match self {
            Self::Azure => azure(input),
            Self::Aws => aws(input),
            Self::Rancher => rancher(input),
        }
    }
}

/// The input of [`KnownPlugin::Azure`]: the object ID of the managed identity that may read the secret, a GUID, and the
/// `https` address of the secret.
pub fn azure_input(object_id: &str, secret_uri: &str) -> String {
    format!("ObjectId={object_id};SecretUri={secret_uri}")
}

/// The input of [`KnownPlugin::Aws`]: the ARN of the secret or the parameter.
pub fn aws_input(credential_arn: &str) -> String {
    json!({CREDENTIAL_ARN: credential_arn}).to_string()
}

/// The input of [`KnownPlugin::Rancher`]: the namespace of the account provider, and the Secret in it.
pub fn rancher_input(namespace: &str, secret: &str) -> String {
    format!("{namespace}:{secret}")
}

/// Turns a `PluginInput` object, as in Amazon ECS files, into the string that Kubernetes takes.
pub(crate) fn input_from_object(guid: &str, object: Map<String, Value>) -> String {
    let is_aws = KnownPlugin::from_guid(guid) == Some(KnownPlugin::Aws);
    let rename = |(key, value): (String, Value)| {
        let known = is_aws && key.eq_ignore_ascii_case(CREDENTIAL_ARN);
        (if known { CREDENTIAL_ARN.to_owned() } else { key }, value)
    };
    Value::Object(object.into_iter().map(rename).collect()).to_string()
}

/// Whether an input looks as if it held a password. The inputs of known plugins, addresses, ARNs and identifiers never do.
pub(crate) fn holds_secret(input: &str) -> bool {
    // A bound for hostile objects.
    let input = quote::cut(input.trim(), 4096);
    // `password:x` has the form of the input of Rancher's plugin.
    let is_known = KnownPlugin::ALL.into_iter().any(|known| known.problem(input).is_none()) && !assigns_secret(input);
    if is_known || is_reference(input) {
        return false;
    }
    if let Ok(Value::Object(fields)) = serde_json::from_str(&input.replace('\'', "\"")) {
        return fields.iter().any(|(key, value)| is_secret_field(key, value.as_str().unwrap_or_default()))
            || fields.values().filter_map(Value::as_str).any(holds_secret);
    }
    TOKENS.iter().any(|start| input.starts_with(start))
        || has_user_info(input)
        || assigns_secret(input)
        || is_user_with_secret(input)
        || decoded(input).is_some_and(|text| holds_secret(&text))
}

/// An address without a user in it, an ARN, or a GUID: the place of a secret, not the secret.
fn is_reference(input: &str) -> bool {
    let is_address = input.starts_with("https://") && !has_user_info(input) && !input.contains('?');
    let bare = input.trim_start_matches('{').trim_end_matches('}');
    is_address || input.starts_with("arn:") || has_guid_shape(bare, |b| b.is_ascii_alphanumeric())
}

/// Whether an address in a text has a user and a password: `https://user:password@host`.
fn has_user_info(input: &str) -> bool {
    let mut rest = input;
    while let Some((_, after)) = rest.split_once("://") {
        let authority = after.split(['/', '?', ';', ' ']).next().unwrap_or_default();
        if authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')) {
            return true;
        }
        rest = after;
    }
    false
}

/// The starts of tokens of GitHub, GitLab and Vault, and of JSON Web Tokens.
const TOKENS: [&str; 5] = ["ghp_", "github_pat_", "glpat-", "hvs.", "eyJ"];

fn is_secret_field(key: &str, value: &str) -> bool {
    let key: String = key.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_lowercase()).collect();
    let is_of_secret = rules::SECRET_FIELDS.contains(&key.as_str())
        || ["password", "passwd", "passphrase", "accesskey", "secretkey"].iter().any(|end| key.ends_with(end));
    is_of_secret && !value.trim().is_empty() && !is_reference(value.trim())
}

/// Whether a text has `Password=…`, `pwd: …` or `-p …`.
fn assigns_secret(input: &str) -> bool {
    let words: Vec<&str> = input.split_whitespace().collect();
    let is_option = |pair: &[&str]| match pair {
        [option, value] => option.starts_with('-') && (*option == "-p" || is_secret_field(option, value)),
        _ => false,
    };
    let is_assigned = |(at, _): (usize, &str)| {
        let (before, after) = input.split_at_checked(at).unwrap_or_default();
        let is_of_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let key = before.trim_end_matches(['"', ' ']).rsplit(|c| !is_of_key(c)).next().unwrap_or_default();
        let value = after.trim_start_matches(['=', ':', '>', ' ', '"']);
        let value = value.split([';', '&', ',', '|', ' ', '"', '<', '\n']).next();
        // An ARN says `secret:` before a name.
        let is_of_arn =
            before.rsplit([' ', ';', ',', '"', '&', '=']).next().is_some_and(|word| word.starts_with("arn:"));
        !is_of_arn && is_secret_field(key, value.unwrap_or_default())
    };
    words.windows(2).any(is_option) || input.match_indices(['=', ':', '>']).any(is_assigned)
}

/// A user and what follows: `CONTOSO\user:…`, `user@contoso.com:…`, `contoso.com:user:…`, `user:Pa55`.
fn is_user_with_secret(input: &str) -> bool {
    // The colon in an address or after a drive letter does not separate.
    let text = input.replace("://", "//");
    let is_of_domain = |user: &str| {
        user.split_once(['\\', '/'])
            .or_else(|| user.split_once('@'))
            .is_some_and(|(one, other)| is_bare(one) && is_bare(other.trim_start_matches('\\')))
            || user.to_ascii_lowercase().starts_with("cn=")
    };
    let separated = |separator: char| {
        let parts: Vec<&str> = text.splitn(3, separator).map(str::trim).collect();
        match *parts.as_slice() {
            [user, secret] => {
                let is_path = secret.starts_with(['\\', '/']);
                let is_of_user = separator == ':' && is_bare(user) && !is_path && !is_dns_subdomain(secret);
                !secret.is_empty() && (is_of_domain(user) || is_of_user)
            }
            [domain, user, secret] => {
                // Other text has commas and spaces too.
                let is_domain = separator == ':' || domain.contains('.') || domain.to_uppercase() == domain;
                let is_of_user = is_bare(domain) && is_domain && (is_bare(user) || is_of_domain(user));
                // In another order, one part is a DNS name, and one has characters that no name has.
                let parts = [domain, user, secret];
                let is_secret = |part: &str| !is_bare(part) && !part.contains([' ', '/', '=']);
                let is_shuffled = separator != ' '
                    && parts.iter().any(|part| part.contains('.') && is_dns_subdomain(&part.to_lowercase()))
                    && parts.iter().filter(|part| is_bare(part)).count() == 2
                    && parts.into_iter().any(is_secret);
                !secret.is_empty() && (is_of_domain(domain) || is_of_user || is_shuffled)
            }
            _ => false,
        }
    };
    [':', ';', ',', '|', '\t', ' '].into_iter().any(separated)
}

/// A name of a domain or of a user.
fn is_bare(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '$'))
}

/// The text that is in Base64, in UTF-8 or UTF-16, where it is one.
fn decoded(input: &str) -> Option<String> {
    let digits = input.trim_end_matches('=').replace('-', "+").replace('_', "/");
    let bytes = BASE64_STANDARD_NO_PAD.decode(digits).ok().filter(|bytes| bytes.len() >= 8)?;
    let wide: Vec<u16> =
        bytes.chunks_exact(2).filter_map(|pair| Some(u16::from_le_bytes(pair.try_into().ok()?))).collect();
    let narrow = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let text = narrow.or_else(|| String::from_utf16(&wide).ok())?;
    text.chars().all(|c| !c.is_control()).then_some(text)
}

fn azure(input: &str) -> Option<&'static str> {
    let parts = input.split(';').map(str::trim).filter(|part| !part.is_empty());
    let (mut object_id, mut secret_uri) = (None, None);
    for part in parts {
        match part.split_once('=') {
            Some(("ObjectId", value)) => object_id = Some(value),
            Some(("SecretUri", value)) => secret_uri = Some(value),
            _ => return Some("contains something other than ObjectId= and SecretUri="),
        }
    }
    let uri_is_good = |uri: &str| {
        uri.strip_prefix("https://").and_then(|rest| rest.split_once("/secrets/")).is_some_and(|(host, name)| {
            !host.is_empty() && !name.is_empty() && !host.contains('/') && host.parse::<IpAddr>().is_err()
        })
    };
    match (object_id, secret_uri) {
        (None, _) => Some("has no ObjectId="),
        (_, None) => Some("has no SecretUri="),
        (Some(id), _) if !has_guid_shape(id, |b| b.is_ascii_hexdigit()) => Some("has an ObjectId that is not a GUID"),
        (Some(id), _) if id.bytes().all(|b| b == b'0' || b == b'-') => Some("has an ObjectId of zeros"),
        (_, Some(uri)) if uri.contains(".privatelink.") => Some(
            "names the private endpoint of the vault: the plugin takes the vault's own name, such as kv1.vault.azure.net",
        ),
        (_, Some(uri)) if !uri_is_good(uri) => Some("has a SecretUri that is not https://VAULT/secrets/NAME"),
        _ => None,
    }
}

fn aws(input: &str) -> Option<&'static str> {
    let Ok(Value::Object(object)) = serde_json::from_str(input) else {
        return Some("is not a JSON object in a string");
    };
    let arn = match object.get(CREDENTIAL_ARN) {
        Some(Value::String(arn)) => arn,
        Some(_) => return Some("has a credentialArn that is not a string"),
        None if object.keys().any(|key| key.eq_ignore_ascii_case(CREDENTIAL_ARN)) => {
            return Some("must spell its key credentialArn, with a lower-case c");
        }
        None => return Some("has no credentialArn"),
    };
    // arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    match parts.as_slice() {
        ["arn", partition, "secretsmanager" | "ssm", region, account, resource]
            if partition.starts_with("aws") && !resource.is_empty() =>
        {
            let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            let is_region = region.rsplit_once('-').is_some_and(|(_, number)| is_number(number));
            match (is_region, is_number(account) && account.len() == 12) {
                (false, _) => Some("has a credentialArn without a region such as us-west-2"),
                (_, false) => Some("has a credentialArn without the number of an account, which has 12 digits"),
                _ => None,
            }
        }
        _ => Some("has a credentialArn that is not the ARN of a secret or a parameter"),
    }
}

fn rancher(input: &str) -> Option<&'static str> {
    match input.split_once(':') {
        Some((namespace, secret)) if is_dns_label(namespace) && is_dns_subdomain(secret) => None,
        _ => Some("is not the name of a namespace and of a Secret, joined by a colon"),
    }
}

/// Whether a text has the shape 8-4-4-4-12, and all of its characters but the hyphens satisfy `digit`.
pub(super) fn has_guid_shape(text: &str, digit: impl Fn(u8) -> bool) -> bool {
    let groups: Vec<_> = text.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]) && groups.concat().bytes().all(digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET_ARN: &str = "arn:aws:secretsmanager:us-west-2:111122223333:secret:gmsa-plugin-input";

    #[test]
    fn documented_inputs_are_accepted() {
        let id = "56d9b66c-d746-4f87-bd26-26760cfdca2e";
        for (known, input) in [
            (
                KnownPlugin::Azure,
                format!("ObjectId={id};SecretUri=https://my.vault.azure.net/secrets/GMSADomainUserCred"),
            ),
            (KnownPlugin::Aws, format!(r#"{{"credentialArn": "{SECRET_ARN}"}}"#)),
            (
                KnownPlugin::Aws,
                r#"{"credentialArn": "arn:aws-cn:ssm:cn-north-1:111122223333:parameter/gmsa"}"#.to_owned(),
            ),
            (KnownPlugin::Rancher, "accounts:user-credentials".to_owned()),
            (KnownPlugin::Azure, azure_input(id, "https://v.example/secrets/n")),
            (KnownPlugin::Aws, aws_input(SECRET_ARN)),
            (KnownPlugin::Rancher, rancher_input("a", "b.c")),
        ] {
            assert_eq!(known.problem(&input), None, "{input}");
        }
    }

    #[test]
    fn what_looks_like_a_password_is_one() {
        for input in [
            "contoso.com:gmsaccg:p4ssw0rd",
            "CONTOSO:gmsaccg:P@ssw0rd!",
            "user@contoso.com:P@ssw0rd",
            "gmsaccg@contoso.com:simple",
            "CONTOSO/user:x",
            "CONTOSO\\user:secret1",
            "CONTOSO\\\\user:secret1",
            "CN=ccg,DC=contoso,DC=com:Secret1",
            "AccessKeyId=AKIA1;SecretAccessKey=x",
            "aws_secret_access_key=x",
            "secretKey: x",
            "password:hunter2",
            "Passwort=geheim1",
            "mot de passe: x1",
            "ghp_0123456789",
            "CONTOSO\\user;secret1",
            "CONTOSO\\user,secret1",
            "CONTOSO\\user secret1",
            "CONTOSO\\user|secret1",
            "contoso.com;gmsaccg;p4ssw0rd",
            "contoso.com|gmsaccg|p4ssw0rd",
            "contoso.com,gmsaccg,p4ssw0rd",
            "contoso.com gmsaccg p4ssw0rd",
            "contoso.com:CONTOSO\\gmsaccg:x",
            "gmsaccg:P@ss",
            "gmsaccg:Passw0rd",
            "{'user':'gmsaccg','pass':'P@ssw0rd'}",
            r#"{"username": "gmsaccg", "password": "x"}"#,
            r#"{"credentialArn": "x", "secret": "y"}"#,
            r#"{"credentials": "user@contoso.com:x"}"#,
            "user=x;Password=hunter2",
            "user=x&pwd=hunter2",
            "User ID=x, Pwd=y",
            "username: x password: y",
            "-u gmsaccg -p x",
            "--user gmsaccg --password x",
            "ClientSecret=abc",
            "https://gmsaccg:x@vault.contoso.com/secret",
            "ObjectId=1;SecretUri=https://v/secrets/n;Password=x",
            "AccountKey=abc==",
            "https://kv1.vault.azure.net/secrets/u?sig=abc",
            "Y29udG9zby5jb206Z21zYWNjZzpwNHNzdzByZA==",
            "domainUserPassword=x",
            "gmsaccg|contoso.com|P@ssw0rd",
            "gmsaccg,Passw0rd!,contoso.com",
            "token=hvs.CAESIJ3a9",
            "<creds><user>gmsaccg</user><password>x</password></creds>",
        ] {
            assert!(holds_secret(input), "{input}");
        }
        let id = "56d9b66c-d746-4f87-bd26-26760cfdca2e";
        for input in [
            "",
            "x",
            "x:y",
            "accounts:user-credentials",
            id,
            &format!("{{{id}}}"),
            SECRET_ARN,
            &aws_input(SECRET_ARN),
            &aws_input("arn:aws:ssm:r:1:p"),
            "https://kv1.vault.azure.net/secrets/u",
            "https://vault.contoso.com:8200/v1/secret/data/gmsa",
            "contoso.com",
            "CONTOSO\\gmsaccg",
            "gmsaccg@contoso.com",
            &azure_input(id, "https://my.vault.azure.net/secrets/GMSADomainUserCred"),
            &azure_input(id, "https://kv1.privatelink.vaultcore.azure.net/secrets/u"),
            &azure_input("00000000-0000-0000-0000-000000000000", "https://v/secrets/n"),
            "SecretUri=https://v/secrets/n",
            "secret=arn:aws:secretsmanager:us-west-2:1:secret:x",
            "password=",
            "HKLM:\\SOFTWARE\\Contoso",
            "GMSADomainUserCred",
            "kv1,vault.contoso.com,gmsa-user",
            "<user>gmsaccg</user>",
            r#"{"secretName": "gmsa", "namespace": "accounts"}"#,
        ] {
            assert!(!holds_secret(input), "{input}");
        }
    }

    #[test]
    fn each_mistake_has_its_own_words() {
        let id = "ObjectId=56d9b66c-d746-4f87-bd26-26760cfdca2e";
        for (known, input, problem) in [
            (KnownPlugin::Azure, "SecretUri=https://v/secrets/n", "has no ObjectId="),
            (KnownPlugin::Azure, id, "has no SecretUri="),
            (KnownPlugin::Azure, "ObjectId=app;SecretUri=https://v/secrets/n", "has an ObjectId that is not a GUID"),
            (
                KnownPlugin::Azure,
                &format!("{id};SecretUri=v/secrets/n"),
                "has a SecretUri that is not https://VAULT/secrets/NAME",
            ),
            (
                KnownPlugin::Azure,
                &format!("{id};SecretUri=https://v/keys/n"),
                "has a SecretUri that is not https://VAULT/secrets/NAME",
            ),
            (
                KnownPlugin::Azure,
                "ObjectId=00000000-0000-0000-0000-000000000000;SecretUri=https://v/secrets/n",
                "has an ObjectId of zeros",
            ),
            (
                KnownPlugin::Azure,
                &format!("{id};SecretUri=https://kv1.privatelink.vaultcore.azure.net/secrets/n"),
                "names the private endpoint of the vault: the plugin takes the vault's own name, such as kv1.vault.azure.net",
            ),
            (
                KnownPlugin::Aws,
                r#"{"credentialArn": "arn:aws:secretsmanager:aws-region:1:secret:x"}"#,
                "has a credentialArn without a region such as us-west-2",
            ),
            (
                KnownPlugin::Aws,
                r#"{"credentialArn": "arn:aws:ssm:us-west-2:account:parameter/x"}"#,
                "has a credentialArn without the number of an account, which has 12 digits",
            ),
            (
                KnownPlugin::Aws,
                r#"{"credentialArn": "arn:aws:secretsmanager:us-west-2:1111-2222-3333:secret:x"}"#,
                "has a credentialArn without the number of an account, which has 12 digits",
            ),
            (
                KnownPlugin::Aws,
                r#"{"credentialArn": "arn:aws:secretsmanager:us-west-2:11122223333:secret:x"}"#,
                "has a credentialArn without the number of an account, which has 12 digits",
            ),
            (KnownPlugin::Azure, "contoso.com:user:x", "contains something other than ObjectId= and SecretUri="),
            (KnownPlugin::Aws, SECRET_ARN, "is not a JSON object in a string"),
            (KnownPlugin::Aws, "{}", "has no credentialArn"),
            (KnownPlugin::Aws, r#"{"credentialArn": 1}"#, "has a credentialArn that is not a string"),
            (KnownPlugin::Aws, r#"{"CredentialArn": "x"}"#, "must spell its key credentialArn, with a lower-case c"),
            (
                KnownPlugin::Aws,
                r#"{"credentialArn": "arn:aws:s3:::x"}"#,
                "has a credentialArn that is not the ARN of a secret or a parameter",
            ),
            (KnownPlugin::Rancher, "secret", "is not the name of a namespace and of a Secret, joined by a colon"),
            (KnownPlugin::Rancher, "A:b", "is not the name of a namespace and of a Secret, joined by a colon"),
        ] {
            assert_eq!(known.problem(input), Some(problem), "{input}");
        }
    }

    #[test]
    fn every_part_of_an_input_matters() {
        let azure = "has a SecretUri that is not https://VAULT/secrets/NAME";
        for uri in ["https:///secrets/n", "https://v/secrets/", "https://v/x/secrets/n", "https://10.0.0.5/secrets/n"] {
            let input = format!("ObjectId=56d9b66c-d746-4f87-bd26-26760cfdca2e;SecretUri={uri}");
            assert_eq!(KnownPlugin::Azure.problem(&input), Some(azure), "{uri}");
        }
        let aws = "has a credentialArn that is not the ARN of a secret or a parameter";
        for arn in ["arn:aws:ssm:r:1:", "arn:gcp:ssm:r:1:parameter/n", "arn:gcp:ssm:r:1:"] {
            let input = json!({"credentialArn": arn}).to_string();
            assert_eq!(KnownPlugin::Aws.problem(&input), Some(aws), "{arn}");
        }
        let is_guid = |text: &str| has_guid_shape(text, |b| b.is_ascii_hexdigit());
        assert!(is_guid("56d9b66c-d746-4f87-bd26-26760cfdca2e"));
        assert!(!is_guid("56d9b66c-d746-4f87-bd26-26760cfdca2g") && !is_guid("56d9b66cd7464f87bd2626760cfdca2e"));
    }

    #[test]
    fn every_plugin_has_a_name() {
        assert_eq!(KnownPlugin::ALL.map(KnownPlugin::as_str), ["azure", "aws", "rancher"]);
    }

    #[test]
    fn an_object_becomes_a_text() {
        let object = |value: Value| value.as_object().cloned().unwrap();
        let text = input_from_object(KnownPlugin::Aws.guid(), object(json!({"CredentialArn": SECRET_ARN})));
        assert_eq!(text, format!(r#"{{"credentialArn":"{SECRET_ARN}"}}"#));
        assert_eq!(input_from_object("{other}", object(json!({"CredentialArn": 1}))), r#"{"CredentialArn":1}"#);
    }
}
