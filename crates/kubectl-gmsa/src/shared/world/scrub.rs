//! Removes contents of credential specs, tokens, keys, passwords, and users in addresses from free texts.

use serde_json::Value;

/// The placeholder for removed text.
const REMOVED: &str = "<left out>";

/// Keys in the contents of a credential spec. A key alone, as in a path of the linter, is harmless; contents are in braces.
const CONTENTS: [&str; 4] = ["ActiveDirectoryConfig", "CmsPlugins", "DomainJoinConfig", "HostAccountConfig"];

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
            None | Some("CERTIFICATE") if !has_contents => without_tokens(&without_users(line)),
            _ => REMOVED.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A line without JSON Web Tokens, which start with `eyJ`, and without the text after a word that names a secret.
fn without_tokens(line: &str) -> String {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '/' | '=');
    let is_end = |c: char| c.is_whitespace() || "\"'`;,&<>()[]{}".contains(c);
    let is_authorization = line.to_lowercase().contains("authorization");
    let mut out = String::with_capacity(line.len());
    let (mut rest, mut is_secret) = (line, false);
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c: char| is_of_word(c) != is_of_word(first)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        // A password can contain any character.
        let after_secret = || after.trim_start_matches(|c| !is_end(c));
        rest = after;
        if !is_of_word(first) || (is_secret && word == "=") {
            out.push_str(word);
            continue;
        }
        let lower = word.to_lowercase();
        if is_secret || (word.starts_with("eyJ") && word.len() > 20) {
            out.push_str(REMOVED);
            rest = after_secret();
            is_secret = lower == "bearer";
        } else if let Some((name, _)) = word.split_once('=').filter(|(name, _)| names_secret(&name.to_lowercase())) {
            // The name of the webhook's Secret is not confidential.
            let is_name = word.starts_with("--self-managed-secret=");
            out.push_str(if is_name { word } else { name });
            out.push_str(if is_name { "" } else { "=<left out>" });
            rest = if is_name { after } else { after_secret() };
        } else {
            out.push_str(word);
            // `couldn't find key password in Secret shop/db` contains no secret.
            let next = after.trim_start_matches(['"', '\'', '\\', ' ']);
            let is_option = word.starts_with('-');
            // A key of JSON, which may be a string of JSON itself.
            let is_key = next.starts_with(':') && after.starts_with(['"', '\\']);
            is_secret = lower == "bearer"
                || (is_authorization && ["basic", "negotiate"].contains(&&*lower))
                || ((is_option || next.starts_with([':', '='])) && is_password(&lower))
                || ((is_option || is_key) && names_secret(&lower));
        }
    }
    out
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

fn is_password(name: &str) -> bool {
    ["password", "passwd", "pwd", "passphrase"].iter().any(|word| name.ends_with(word))
}

fn names_secret(name: &str) -> bool {
    let bare = name.replace(['-', '_'], "");
    let keys = ["token", "secret", "apikey", "accesskey", "accountkey", "secretkey", "privatekey"];
    // A shared access signature of Azure.
    is_password(name) || bare == "sig" || keys.iter().any(|word| bare.ends_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_secret_is_left_out_and_nothing_else() {
        for (text, scrubbed_text) in [
            ("pods \"web\" is forbidden: exceeded quota", "pods \"web\" is forbidden: exceeded quota"),
            ("webapp1: credspec.DomainJoinConfig.Sid: wrong", "webapp1: credspec.DomainJoinConfig.Sid: wrong"),
            ("Authorization: Bearer abc.def-1", "Authorization: Bearer <left out>"),
            ("got eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln end", "got <left out> end"),
            ("?token=abc&x=1", "?token=<left out>&x=1"),
            ("Server=db;Password=a!b$c;x=1", "Server=db;Password=<left out>;x=1"),
            ("db_password = a#b, --pwd a.b!c x", "db_password = <left out>, --pwd <left out> x"),
            ("{\"apiPassword\":\"a+b!\",\"x\":1}", "{\"apiPassword\":\"<left out>\",\"x\":1}"),
            ("couldn't find key db.password in Secret shop/db", "couldn't find key db.password in Secret shop/db"),
            ("--self-managed-secret=gmsa/webhook-tls", "--self-managed-secret=gmsa/webhook-tls"),
            ("--client-secret=abc", "--client-secret=<left out>"),
            (
                "Authorization: Basic dTpw; Proxy-Authorization: Negotiate YII=",
                "Authorization: Basic <left out>; Proxy-Authorization: Negotiate <left out>",
            ),
            ("agent --token abc --api-key d", "agent --token <left out> --api-key <left out>"),
            (
                "{\"clientSecret\":\"ab\",\"secret\": \"c\"}",
                "{\"clientSecret\":\"<left out>\",\"secret\": \"<left out>\"}",
            ),
            ("{\\\"token\\\":\\\"abc\\\"}", "{\\\"token\\\":\\\"<left out>\"}"),
            (
                "AccountKey=a+/==;AWS_SECRET_ACCESS_KEY=b ?sig=c%2F&x=1",
                "AccountKey=<left out>;AWS_SECRET_ACCESS_KEY=<left out> ?sig=<left out>&x=1",
            ),
            ("secret: not found, a token of a basic kind", "secret: not found, a token of a basic kind"),
            ("--broker=secret", "--broker=secret"),
            ("serve-password=abc agent-token=abc", "serve-password=<left out> agent-token=<left out>"),
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
