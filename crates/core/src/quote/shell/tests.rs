//! What each shell makes of an argument: readers of the three grammars give back the text and nothing else.

use proptest::prelude::*;

use super::*;

/// What no command may hold.
const REFUSED: [&str; 6] = ["a\nb", "a\rb", "a\0b", "a\u{1b}[2Jb", "a\u{202e}b", "a\u{2028}b"];

#[test]
fn powershell_doubles_every_quote_that_it_knows() {
    assert_eq!(powershell("WebApp1").as_deref(), Some("'WebApp1'"));
    assert_eq!(powershell("").as_deref(), Some("''"));
    assert_eq!(powershell("a'; calc #$(calc)`\"%").as_deref(), Some("'a''; calc #$(calc)`\"%'"));
    assert_eq!(
        powershell("w\u{2019}(calc)\u{2018}\u{201a}\u{201b}").as_deref(),
        Some("'w\u{2019}\u{2019}(calc)\u{2018}\u{2018}\u{201a}\u{201a}\u{201b}\u{201b}'")
    );
    assert_eq!(REFUSED.map(powershell), [const { None }; 6]);
}

#[test]
fn cmd_gets_no_argument_that_it_would_expand() {
    assert_eq!(cmd("http/web.contoso.com:443").as_deref(), Some("http/web.contoso.com:443"));
    assert_eq!(cmd("http/web & calc & rem").as_deref(), Some("\"http/web & calc & rem\""));
    assert_eq!(cmd("a|b<c>d^e(f);g,h=i").as_deref(), Some("\"a|b<c>d^e(f);g,h=i\""));
    assert_eq!((cmd("").as_deref(), cmd("@a").as_deref()), (Some("\"\""), Some("\"@a\"")));
    for refused in ["a\"b", "%PATH%", "a!b!", "$(calc)", "a`b", "a\\", "/X", "-X", "a\u{ff02}b", "a\u{201d}b", "a\tb"] {
        assert_eq!(cmd(refused), None, "{refused}");
    }
    assert_eq!(REFUSED.map(cmd), [const { None }; 6]);
}

#[test]
fn a_posix_shell_gets_single_quotes() {
    assert_eq!(posix("@/tmp/a.b_c-d:1").as_deref(), Some("@/tmp/a.b_c-d:1"));
    assert_eq!(posix("a; reboot").as_deref(), Some("'a; reboot'"));
    assert_eq!(posix("it's $(x) `y` !z \\").as_deref(), Some(r"'it'\''s $(x) `y` !z \'"));
    assert_eq!((posix("").as_deref(), posix("~").as_deref()), (Some("''"), Some("'~'")));
    assert_eq!(posix("--all"), None);
    assert_eq!(REFUSED.map(posix), [const { None }; 6]);
}

#[test]
fn json_is_an_argument_where_no_shell_reads_its_strings() {
    let patch = r#"[{"op":"test","path":"/webhooks/0/name","value":"a.b"}]"#;
    assert_eq!(json(patch), Some(format!("'{patch}'")));
    for value in ["a'b", "a\u{2019}b", "a\\\"b", "%PATH%", "a b", "a!", "a&b", "a$b", "ä"] {
        assert_eq!(json(&format!("{{\"a\":\"{value}\"}}")), None, "{value}");
    }
}

/// The string in single quotes that a command line of PowerShell holds (`ScanStringLiteral`), and what follows it.
fn read_powershell(argument: &str) -> Option<(String, String)> {
    let (mut chars, mut text) = (argument.strip_prefix('\'')?.chars().peekable(), String::new());
    while let Some(c) = chars.next() {
        if !SINGLE_QUOTES.contains(&c) {
            text.push(c);
        } else if let Some(second) = chars.next_if(|next| SINGLE_QUOTES.contains(next)) {
            text.push(second);
        } else {
            return Some((text, chars.collect()));
        }
    }
    None
}

/// What a POSIX shell makes of words without expansions.
fn read_posix(argument: &str) -> String {
    let (mut chars, mut text) = (argument.chars(), String::new());
    while let Some(c) = chars.next() {
        match c {
            '\'' => text.extend(chars.by_ref().take_while(|c| *c != '\'')),
            '\\' => text.extend(chars.next()),
            c if is_plain(c) => text.push(c),
            c => panic!("{c:?} in {argument:?} has a meaning"),
        }
    }
    text
}

/// Texts with what shells look at.
fn text() -> impl Strategy<Value = String> {
    proptest::string::string_regex(
        "([a-zA-Z0-9 /._:@-]|['\"`$%!&|<>^();,\\\\~#*?\u{2018}\u{2019}\u{201a}\u{201b}\u{201c}ä\n\u{1b}]){0,12}",
    )
    .unwrap()
}

proptest! {
    #[test]
    fn powershell_reads_the_same_text(text in text()) {
        if let Some(argument) = powershell(&text) {
            prop_assert_eq!(read_powershell(&argument), Some((text, String::new())));
        }
    }

    #[test]
    fn a_posix_shell_reads_the_same_text(text in text()) {
        if let Some(argument) = posix(&text) {
            prop_assert_eq!(read_posix(&argument), text);
        }
    }

    #[test]
    fn cmd_reads_the_same_text(text in text()) {
        if let Some(argument) = cmd(&text) {
            let inner = argument.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            let bare = || argument.chars().all(is_plain).then_some(argument.as_str());
            prop_assert_eq!(inner.or_else(bare), Some(text.as_str()));
            prop_assert!(!text.contains(['"', '%', '!']));
        }
    }
}
