//! The Container Credential Guard plugins whose input format is known, and what each takes as its `PluginInput`.
//!
//! Pure. Invariants: no message quotes an input, which may contain a secret by mistake.

use serde_json::{Map, Value, json};

use super::{is_dns_label, is_dns_subdomain};

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

    pub fn from_guid(guid: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.guid().eq_ignore_ascii_case(guid))
    }

    /// What its input looks like.
    pub fn template(self) -> &'static str {
        match self {
            Self::Azure => "ObjectId=GUID;SecretUri=https://VAULT.vault.azure.net/secrets/NAME",
            Self::Aws => r#"'{"credentialArn":"arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME"}'"#,
            Self::Rancher => "NAMESPACE:SECRET",
        }
    }

    /// What is wrong with an input; `None` if nothing is wrong.
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
pub fn input_from_object(guid: &str, object: Map<String, Value>) -> String {
    let is_aws = KnownPlugin::from_guid(guid) == Some(KnownPlugin::Aws);
    let rename = |(key, value): (String, Value)| {
        let known = is_aws && key.eq_ignore_ascii_case(CREDENTIAL_ARN);
        (if known { CREDENTIAL_ARN.to_owned() } else { key }, value)
    };
    Value::Object(object.into_iter().map(rename).collect()).to_string()
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
        uri.strip_prefix("https://")
            .and_then(|rest| rest.split_once("/secrets/"))
            .is_some_and(|(host, name)| !host.is_empty() && !name.is_empty() && !host.contains('/'))
    };
    match (object_id, secret_uri) {
        (None, _) => Some("has no ObjectId="),
        (_, None) => Some("has no SecretUri="),
        (Some(id), _) if !has_guid_shape(id, |b| b.is_ascii_hexdigit()) => Some("has an ObjectId that is not a GUID"),
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
        ["arn", partition, "secretsmanager" | "ssm", _, _, resource]
            if partition.starts_with("aws") && !resource.is_empty() =>
        {
            None
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
            (KnownPlugin::Aws, r#"{"credentialArn": "arn:aws-cn:ssm:cn-north-1:1:parameter/gmsa"}"#.to_owned()),
            (KnownPlugin::Rancher, "accounts:user-credentials".to_owned()),
            (KnownPlugin::Azure, azure_input(id, "https://v.example/secrets/n")),
            (KnownPlugin::Aws, aws_input(SECRET_ARN)),
            (KnownPlugin::Rancher, rancher_input("a", "b.c")),
        ] {
            assert_eq!(known.problem(&input), None, "{input}");
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
        for uri in ["https:///secrets/n", "https://v/secrets/", "https://v/x/secrets/n"] {
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
