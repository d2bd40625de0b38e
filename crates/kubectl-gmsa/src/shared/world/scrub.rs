//! Removes contents of credential specs, tokens, keys, passwords, and users in addresses from free texts.

use serde_json::Value;

/// The placeholder for removed text.
const REMOVED: &str = "<left out>";

/// Keys in the contents of a credential spec. A key alone, as in a path of the linter, is harmless; contents are in braces.
const CONTENTS: [&str; 4] = ["ActiveDirectoryConfig", "CmsPlugins", "DomainJoinConfig", "HostAccountConfig"];

/// Ends of names of passwords.
const PASSWORDS: [&str; 5] = ["password", "passwd", "pwd", "passphrase", "authorization"];
/// Ends of names of other secrets; `sig` is a shared access signature of Azure.
const SECRETS: [&str; 13] = [
    "token",
    "secret",
    "apikey",
    "api-key",
    "api_key",
    "accesskey",
    "access_key",
    "accountkey",
    "privatekey",
    "private_key",
    "bearer",
    "?sig",
    "&sig",
];

/// Scrubs every string of a value.
pub fn all(value: &mut Value) {
    match value {
        Value::String(text) => *text = scrubbed(text),
        Value::Array(items) => items.iter_mut().for_each(all),
        Value::Object(fields) => fields.values_mut().for_each(all),
        _ => {}
    }
}

fn scrubbed(text: &str) -> String {
    // Within PEM: the label of its first line. Certificates are public.
    let mut pem = None;
    let lines = text.split('\n').map(|line| {
        if let Some((_, label)) = line.split_once("-----BEGIN ") {
            pem = Some(label.trim_end_matches(['-', '\r', ' ']));
        }
        let label = pem;
        if line.contains("-----END") {
            pem = None;
        }
        let has_contents = CONTENTS.iter().any(|word| line.contains(word)) && line.contains('{');
        let is_base64 = line.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=\r".contains(&byte));
        match label {
            Some("CERTIFICATE") if is_base64 => line.to_owned(),
            None | Some("CERTIFICATE") if !has_contents => without_secrets(&without_users(line)),
            _ => REMOVED.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A line without its end, where that begins with a JSON Web Token, or follows a word that names a secret.
fn without_secrets(line: &str) -> String {
    let lower = line.to_ascii_lowercase();
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_.+/".contains(c);
    let follows = |end: &usize| {
        let (before, after) = lower.split_at(*end);
        let name = before.rsplit(|c| !is_of_name(c)).next().unwrap_or_default();
        let next = after.trim_start_matches(['"', '\'', '\\', ' ']);
        // `couldn't find key password in Secret shop/db` contains no secret. The name of the webhook's Secret is not confidential.
        let is_assigned = after.starts_with('=') && name != "--self-managed-secret";
        // A key of JSON, which may be a string of JSON itself.
        let is_key = next.starts_with(':') && after.starts_with(['"', '\\']);
        let is_argument = after.starts_with(' ') && (name.starts_with('-') || name == "bearer");
        let is_password = PASSWORDS.iter().any(|word| name.ends_with(word)) && next.starts_with([':', '=']);
        is_assigned || is_key || is_argument || is_password
    };
    let words = PASSWORDS.iter().chain(&SECRETS);
    let ends = words.flat_map(|word| lower.match_indices(word).map(|(at, _)| at + word.len())).filter(follows);
    // JSON Web Tokens start with `eyJ`.
    let is_token =
        |start: &usize| line.get(*start..).is_some_and(|word| word.find(|c| !is_of_name(c)).unwrap_or(word.len()) > 20);
    let tokens = line.match_indices("eyJ").map(|(at, _)| at).filter(is_token);
    let Some((kept, rest)) = ends.chain(tokens).min().map(|end| line.split_at(end)) else { return line.to_owned() };
    let separators = rest.len() - rest.trim_start_matches(['=', ':', '"', '\'', '\\', ' ']).len();
    format!("{kept}{}{REMOVED}", rest.get(..separators).unwrap_or_default())
}

/// A line without users and passwords in addresses: `https://user:password@host`.
fn without_users(line: &str) -> String {
    let mut parts = line.split("://");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // A password can contain other characters.
        let end = part.find(|c: char| c.is_whitespace() || "\"'`<>".contains(c)).unwrap_or(part.len());
        let (address, after) = part.split_at(end);
        // An image has a digest there.
        let host = address.rsplit_once('@').map(|(_, host)| host).filter(|host| !host.starts_with("sha256:"));
        out += "://";
        out += &host.map_or_else(|| address.to_owned(), |host| format!("{REMOVED}@{host}"));
        out += after;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_secret_is_left_out_and_nothing_else() {
        for (text, scrubbed_text) in [
            ("pods \"web\" is forbidden: exceeded quota", "pods \"web\" is forbidden: exceeded quota"),
            ("webapp1: credspec.DomainJoinConfig.Sid: wrong", "webapp1: credspec.DomainJoinConfig.Sid: wrong"),
            ("Authorization: Bearer abc.def-1", "Authorization: <left out>"),
            ("got eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln end", "got <left out>"),
            ("?token=abc&x=1", "?token=<left out>"),
            ("Server=db;Password=a!b$c;x=1", "Server=db;Password=<left out>"),
            ("db_password = a#b", "db_password = <left out>"),
            ("run --pwd a.b!c x", "run --pwd <left out>"),
            ("{\"apiPassword\":\"a+b!\",\"x\":1}", "{\"apiPassword\":\"<left out>"),
            ("couldn't find key db.password in Secret shop/db", "couldn't find key db.password in Secret shop/db"),
            ("--self-managed-secret=gmsa/webhook-tls", "--self-managed-secret=gmsa/webhook-tls"),
            ("--client-secret=abc", "--client-secret=<left out>"),
            ("Proxy-Authorization: Negotiate YII=", "Proxy-Authorization: <left out>"),
            ("sent Bearer abc", "sent Bearer <left out>"),
            ("agent --token abc --api-key d", "agent --token <left out>"),
            ("{\"clientSecret\": \"ab\",\"x\":1}", "{\"clientSecret\": \"<left out>"),
            ("{\\\"token\\\":\\\"abc\\\"}", "{\\\"token\\\":\\\"<left out>"),
            ("AccountKey=a+/==;x=1", "AccountKey=<left out>"),
            ("AWS_SECRET_ACCESS_KEY=b", "AWS_SECRET_ACCESS_KEY=<left out>"),
            ("?x=1&sig=c%2F", "?x=1&sig=<left out>"),
            ("secret: not found, a token of a basic kind", "secret: not found, a token of a basic kind"),
            ("--broker=secret", "--broker=secret"),
            ("serve-password=abc agent-token=abc", "serve-password=<left out>"),
            ("--broker=amqp://user:a/b@c@mq:5671/x y", "--broker=amqp://<left out>@mq:5671/x y"),
            ("pull \"https://abc@git/x\", https://mq/x", "pull \"https://<left out>@git/x\", https://mq/x"),
            ("docker-pullable://r.io:5000/a@sha256:0a", "docker-pullable://r.io:5000/a@sha256:0a"),
            ("a\n-----BEGIN KEY-----\nMIIB\n-----END KEY-----\nb", "a\n<left out>\n<left out>\n<left out>\nb"),
            (
                "--broker-ca=-----BEGIN CERTIFICATE-----\neyJhbGciOiJSUzI1NiJ9eyJhb\n-----END CERTIFICATE-----\n-----BEGIN X-----\nMIIB",
                "--broker-ca=-----BEGIN CERTIFICATE-----\neyJhbGciOiJSUzI1NiJ9eyJhb\n-----END CERTIFICATE-----\n<left out>\n<left out>",
            ),
            (
                "-----BEGIN CERTIFICATE-----\nBearer abc.def\n-----BEGIN KEY-----\nMIIB",
                "-----BEGIN CERTIFICATE-----\nBearer <left out>\n<left out>\n<left out>",
            ),
            ("one\nInvalid value: \"{\\\"CmsPlugins\\\":[]}\"\ntwo", "one\n<left out>\ntwo"),
        ] {
            assert_eq!(scrubbed(text), scrubbed_text);
        }
    }
}
