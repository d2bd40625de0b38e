//! A text as one argument of a command that a person copies into a shell.
//!
//! Invariants: each function gives one argument that the shell reads as exactly this text, or [`None`], where the caller says in words what to
//! do; a text with a character that steers a terminal or is not seen is never part of a command.

use super::hides;

/// Every character that PowerShell takes for a single quote (`CharTraits.IsSingleQuote` of its tokenizer).
const SINGLE_QUOTES: [char; 5] = ['\'', '\u{2018}', '\u{2019}', '\u{201a}', '\u{201b}'];

/// An argument of a cmdlet: in single quotes, in which only a single quote, doubled, has a meaning (`about_Quoting_Rules`).
pub fn powershell(text: &str) -> Option<String> {
    let mut quoted = "'".to_owned();
    for c in text.chars() {
        if hides(c) {
            return None;
        }
        quoted.push(c);
        quoted.extend(SINGLE_QUOTES.contains(&c).then_some(c));
    }
    Some(quoted + "'")
}

/// An argument of a program in cmd: bare where cmd gives nothing in it a meaning, otherwise in double quotes. PowerShell reads the same argument,
/// as such a command may be copied there.
///
/// No quotes keep `%` and `!` from being expanded, or `"` from ending them; in PowerShell `$` and `` ` `` are expanded. Programs that take
/// their arguments in the code page of the system get plain quotes for some characters that are not ASCII ("best fit"). What begins
/// with `/` or `-` is an option.
pub fn cmd(text: &str) -> Option<String> {
    let is_refused = |c: char| !(c.is_ascii_graphic() || c == ' ') || matches!(c, '"' | '%' | '!' | '$' | '`');
    // A backslash before the closing quote would escape it (`CommandLineToArgvW`).
    if text.contains(is_refused) || text.starts_with(['/', '-']) || text.ends_with('\\') {
        return None;
    }
    let is_bare = text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(is_plain);
    Some(if is_bare { text.to_owned() } else { format!("\"{text}\"") })
}

/// An argument of a program in a POSIX shell: bare where no shell gives anything in it a meaning, otherwise in single quotes, in which nothing
/// has one (POSIX.1-2024, Shell Command Language, 2.2.2). An argument that begins with `-` is an option.
pub fn posix(text: &str) -> Option<String> {
    if text.contains(hides) || text.starts_with('-') {
        return None;
    }
    let is_bare = !text.is_empty() && text.chars().all(is_plain);
    Some(if is_bare { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) })
}

/// A JSON text as an argument of kubectl, which people run in any shell. In single quotes, and only with characters that have no meaning
/// there: cmd, which has no such quotes, sees its strings in double ones.
pub fn json(text: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "{}[]\":,-_./=".contains(c);
    text.chars().all(is_plain).then(|| format!("'{text}'"))
}

/// A character that has no meaning in any shell, except at the start of a word.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/._-:@".contains(c)
}

#[cfg(test)]
mod tests;
