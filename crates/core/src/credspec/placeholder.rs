//! Values that a page, a template or a tool leaves for others to fill in: `<GMSA_NAME>`, `${GMSA}`, `REPLACE_ME`.
//!
//! Pure. Invariant: names that Active Directory, Kubernetes or AWS give do not count as placeholders: a SAM name with `$`, a GUID in braces, an ARN.

use super::ccg_plugin::has_guid_shape;
use crate::{diagnostic::rules, quote};

/// How much of a value is looked at, in bytes: a bound for hostile objects.
const MAX_LENGTH: usize = 1024;

/// How often the beginning of a placeholder is looked for.
const MAX_TRIED: usize = 8;

/// The longest word that is taken apart.
const MAX_WORD: usize = 40;

/// Words at the end of a generic name: `gmsa-account-name`.
const LAST: [&str; 6] = ["guid", "here", "id", "name", "sid", "username"];

/// Whether a value is still a placeholder, or holds one.
pub fn is_placeholder(text: &str) -> bool {
    let text = quote::cut(text.trim(), MAX_LENGTH);
    is_token(text) || is_left_out(text) || asks(text) || is_generic(text)
}

/// Whether a value holds what a tool fills in, by its form alone. Words such as `todo` can be names of programs.
pub fn is_token(text: &str) -> bool {
    is_enclosed(text) || is_framed(text) || is_variable(text)
}

/// Whether a character that no name has stands on both sides: `#GMSA#`, `!!GMSA!!`.
fn is_framed(text: &str) -> bool {
    ['!', '#', '&', '^', '|', '$', '=', '*', '?'].into_iter().any(|frame| {
        let inner = text.trim_matches(frame);
        let is_on_both = text.starts_with(frame) && text.ends_with(frame) && !inner.is_empty();
        is_on_both && is_word(inner) && inner.contains(|c: char| c.is_alphabetic())
    })
}

/// Values that documentation abbreviates: `S-1-5-21-…`, a GUID of zeros.
fn is_left_out(text: &str) -> bool {
    text.contains('…') || text.contains("...") || has_guid_shape(text, |b| b == b'0')
}

fn is_enclosed(text: &str) -> bool {
    rules::PLACEHOLDER_ENCLOSED.iter().filter_map(|pair| pair.split_once(' ')).any(|(open, close)| {
        let mut rest = text;
        (0..MAX_TRIED).any(|_| {
            let Some((_, after)) = rest.split_once(open) else { return false };
            rest = after;
            after.split_once(close).is_some_and(|(name, _)| is_name(name, open))
        })
    })
}

/// Whether what is enclosed is the name of a value. A GUID is in braces, and a SID or a number in nothing.
fn is_name(name: &str, open: &str) -> bool {
    let has_letter = name.contains(|c: char| c.is_alphabetic());
    match open {
        "{" => has_letter && !has_guid_shape(name, |b| b.is_ascii_alphanumeric()) && is_word(name),
        // `user@contoso.com` has one; a password may have any.
        "@" | "%" | "~" | "__" | "@@" => has_letter && is_word(name),
        // JSON has lists of strings.
        "<" | "[" => has_letter && name.len() <= 64 && !name.contains(['"', ',']),
        _ => has_letter,
    }
}

fn is_word(name: &str) -> bool {
    name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' '))
}

/// A variable of a shell, PowerShell or Terraform: `$GMSA_NAME`, `$env:GMSA`, `var.gmsa`.
fn is_variable(text: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_:.$".contains(&b))
    };
    text.strip_prefix('$').is_some_and(is_name)
        // The last is of SOPS.
        || ["var.", "local.", ".Values.", "ENC["].iter().any(|start| text.starts_with(start))
}

/// The words of a name, in lower case: `gMSA-ACCOUNT-NAME`, `YourGmsaName`.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in text.replace("gMSA", "Gmsa").chars() {
        let starts = c.is_uppercase() && was_lower;
        if !c.is_alphanumeric() || starts {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

fn asks(text: &str) -> bool {
    let words = words(text);
    let is_crossed_out = |word: &String| word.len() >= 3 && word.bytes().all(|b| b == b'x');
    let is_of_reader = |word: &String| {
        word.strip_prefix("your").is_some_and(|rest| rest.is_empty() || rules::PLACEHOLDER_WORDS.contains(&rest))
    };
    let asks = |joined: &[String]| rules::PLACEHOLDER_ASKS.contains(&joined.concat().as_str());
    words.iter().any(|word| is_crossed_out(word) || is_of_reader(word))
        || (1..=3).any(|length| words.windows(length).any(asks))
}

/// Whether it is made of words that name nothing: `gMSA-ACCOUNT-NAME`, `domain_sid`, `DOMAINNAME`.
fn is_generic(text: &str) -> bool {
    let words = words(text);
    let ends = words.last().is_some_and(|last| LAST.iter().any(|end| last.ends_with(end)));
    let parts: Option<usize> = words.iter().map(|word| parts(word)).sum();
    ends && parts.is_some_and(|parts| parts > 1)
}

/// How many generic words make up this word; `None` if it has any other part. Short ones count only alone.
fn parts(word: &str) -> Option<usize> {
    if word.len() > MAX_WORD {
        return None;
    }
    if rules::PLACEHOLDER_WORDS.contains(&word) {
        return Some(1);
    }
    let starts =
        rules::PLACEHOLDER_WORDS.iter().filter(|known| known.len() > 2).filter_map(|known| word.strip_prefix(known));
    starts.filter_map(parts).map(|parts| parts + 1).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_or_a_reader_fills_in_is_a_placeholder() {
        for text in [
            "<Your GMSA Spec Name>",
            "<gmsa-name>",
            "<GMSA_ACCOUNT_USERNAME>",
            "#{GMSA_NAME}#",
            "#GMSA#",
            "!GMSA!",
            "$GMSA$",
            "«GMSA»",
            "DOMAINNAME",
            "to-be-defined",
            "S-1-5-21-...",
            "00000000-0000-0000-0000-000000000000",
            "#{GMSA_NAME}",
            "__GMSA__",
            "__gmsa_name__",
            "%GMSA%",
            "%%GMSA%%",
            "@GMSA@",
            "@@GMSA@@",
            "[GMSA]",
            "[[gmsa]]",
            "[your gMSA]",
            "{{ .Values.gmsa }}",
            "{{gmsa}}",
            "${GMSA}",
            "${gmsa.name}",
            "$(GMSA)",
            "$(gmsa.name)",
            "$[variables.gmsa]",
            "<%= gmsa %>",
            "%{gmsa}",
            "@{gmsa}",
            "((gmsa))",
            "{gmsa}",
            "{GMSA_NAME}",
            "~GMSA~",
            "$GMSA_NAME",
            "$env:GMSA",
            "$gmsa",
            "var.gmsa_name",
            "REPLACE_ME",
            "REPLACEME",
            "replace-me",
            "ReplaceMe",
            "CHANGEME",
            "change_me",
            "changeMe",
            "TODO",
            "todo-gmsa",
            "FIXME",
            "TBD",
            "xxx",
            "XXXX",
            "gmsa-xxx",
            "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
            "your-gmsa",
            "YOUR_GMSA_NAME",
            "yourGmsaName",
            "yourgmsa",
            "gmsaName",
            "put-your-gmsa-here",
            "gMSA-ACCOUNT-NAME",
            "GMSA_NAME",
            "gmsa-spec-name",
            "domain-sid",
            "ACCOUNT_NAME",
            "insert-name-here",
            "placeholder",
            "gmsa-placeholder",
            "web-${ENV}",
            "gmsa-#{env}#",
            "S-1-5-21-xxx-xxx-xxx",
            "https://<VAULT>.vault.azure.net/secrets/<SECRET>",
        ] {
            assert!(is_placeholder(text), "{text}");
        }
    }

    #[test]
    fn a_name_of_the_directory_or_of_kubernetes_is_none() {
        for text in [
            "",
            "WebApp1",
            "WebApp1$",
            "CONTOSO\\WebApp1$",
            "webapp1",
            "gmsa",
            "gmsa-webapp1",
            "gmsa-web",
            "svc_web",
            "contoso.com",
            "CONTOSO",
            "{CCC2A336-D7F3-4818-A213-272B7924213E}",
            "{GDMA0342-266A-4D1P-831J-20990E82944F}",
            "244818ae-87ac-4fcd-92ec-e79e5252348a",
            "S-1-5-21-2126449477-2524075714-3094792973",
            "arn:aws:secretsmanager:us-west-2:1:secret:x",
            "user@contoso.com",
            "accounts:user-credentials",
            "{\"credentialArn\":\"arn:aws:ssm:us-west-2:1:parameter/gmsa\"}",
            "account",
            "name",
            "service-account",
            "todolist",
            "my-gmsa",
            "youtube",
            "creditmetrics",
            "assetmesh",
            "yourk",
            "ObjectId=56d9b66c-d746-4f87-bd26-26760cfdca2e;SecretUri=https://my.vault.azure.net/secrets/GMSADomainUserCred",
            "maxxx2",
        ] {
            assert!(!is_placeholder(text), "{text}");
        }
    }
}
