//! Takes out of free texts what looks like contents of a credential spec, a token or a key.

use serde_json::Value;

/// What stands where something was taken out.
const LEFT_OUT: &str = "<left out>";

/// Words of the contents of a credential spec. Their names alone, as in a path of the linter, are no contents: those stand in braces.
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
    let mut in_key = false;
    let lines = text.split('\n').map(|line| {
        // PEM, from its first line to its last.
        let starts = line.contains("-----BEGIN");
        let was_in_key = in_key;
        in_key = (in_key || starts) && !line.contains("-----END");
        let has_contents = CONTENTS.iter().any(|word| line.contains(word)) && line.contains('{');
        if starts || was_in_key || has_contents { LEFT_OUT.to_owned() } else { without_tokens(line) }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A line without JSON Web Tokens, which start with `eyJ`, and without what follows a word that names a secret.
fn without_tokens(line: &str) -> String {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '/' | '=');
    let mut out = String::with_capacity(line.len());
    let (mut rest, mut is_secret) = (line, false);
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c: char| is_of_word(c) != is_of_word(first)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        if !is_of_word(first) {
            out.push_str(word);
            continue;
        }
        let lower = word.to_lowercase();
        if is_secret || (word.starts_with("eyJ") && word.len() > 20) {
            out.push_str(LEFT_OUT);
            is_secret = lower == "bearer";
        } else if let Some((name, _)) = word.split_once('=').filter(|(name, _)| names_secret(&name.to_lowercase())) {
            out.push_str(name);
            out.push('=');
            out.push_str(LEFT_OUT);
        } else {
            out.push_str(word);
            is_secret = lower == "bearer" || lower == "password:" || lower == "password";
        }
    }
    out
}

fn names_secret(name: &str) -> bool {
    ["token", "password", "secret"].iter().any(|word| name.ends_with(word))
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
            ("a\n-----BEGIN KEY-----\nMIIB\n-----END KEY-----\nb", "a\n<left out>\n<left out>\n<left out>\nb"),
            ("one\nInvalid value: \"{\\\"CmsPlugins\\\":[]}\"\ntwo", "one\n<left out>\ntwo"),
        ] {
            assert_eq!(scrubbed(text), scrubbed_text);
        }
    }
}
