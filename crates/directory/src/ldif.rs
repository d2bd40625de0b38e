//! LDIF (RFC 2849): what `ldapsearch` prints, and what `ldapadd` and `ldifde` take.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gmsa_core::quote::cut;

use crate::{Entry, entry::MAX_TEXT};

/// The most entries of one text.
const MAX_ENTRIES: usize = 100_000;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LdifError {
    #[error("line {0} is not LDIF: expected NAME: VALUE")]
    Line(usize),
    #[error("line {0} is not LDIF: an entry begins with dn:")]
    NoName(usize),
    #[error("line {0} is not base64")]
    Base64(usize),
    #[error("line {0} names a file, which is not read")]
    File(usize),
    #[error("line {0} is a change, not an entry of the directory")]
    Change(usize),
    #[error("more than {MAX_ENTRIES} entries")]
    TooMany,
}

/// Whether a text looks like LDIF, not like JSON.
pub fn is_ldif(text: &str) -> bool {
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.take(2).any(|line| line.len() >= 3 && line.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("dn:")))
}

/// The entries of a text. What `ldapsearch` prints besides, such as `search: 2` and references, is left out.
///
/// # Errors
/// Where a line is not LDIF, with its number.
pub fn read(text: &str) -> Result<Vec<Entry>, LdifError> {
    let mut entries = Vec::new();
    let mut entry: Option<Entry> = None;
    // What stands before the first entry or between two, without a dn.
    let mut skipping = false;
    for (number, line) in unfolded(text) {
        if line.is_empty() {
            entries.extend(entry.take());
            skipping = false;
            if entries.len() > MAX_ENTRIES {
                return Err(LdifError::TooMany);
            }
            continue;
        }
        if skipping || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once(':').ok_or(LdifError::Line(number))?;
        let value = match value.strip_prefix([':', '<']) {
            None => value.trim_start_matches(' ').as_bytes().to_vec(),
            Some(encoded) if value.starts_with(':') => {
                BASE64_STANDARD.decode(encoded.trim()).map_err(|_| LdifError::Base64(number))?
            }
            Some(_) => return Err(LdifError::File(number)),
        };
        let name = name.trim().to_ascii_lowercase();
        match (&mut entry, name.as_str()) {
            (None, "dn") => {
                let name = String::from_utf8(value).map_err(|_| LdifError::NoName(number))?;
                entry = Some(Entry { name: cut(&name, MAX_TEXT).to_owned(), ..Entry::default() });
            }
            (None, "version") => {}
            // The end of what ldapsearch prints.
            (None, "search" | "result" | "ref") => skipping = true,
            (None, _) => return Err(LdifError::NoName(number)),
            (Some(_), "changetype" | "control") => return Err(LdifError::Change(number)),
            (Some(entry), name) => entry.attributes.entry(name.to_owned()).or_default().push(value),
        }
    }
    entries.extend(entry);
    Ok(entries)
}

/// The lines with their numbers, in which those that were folded are whole again. An empty one ends each entry.
fn unfolded(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut lines = text.lines().map(|line| line.trim_end_matches('\r')).enumerate().peekable();
    std::iter::from_fn(move || {
        let (index, line) = lines.next()?;
        let mut line = line.to_owned();
        while let Some(rest) = lines.peek().and_then(|(_, next)| next.strip_prefix(' ')) {
            line.push_str(rest);
            lines.next();
        }
        Some((index + 1, line))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_ldapsearch_prints_is_read() {
        let text = "# extended LDIF\n#\n# LDAPv3\n\n# WebApp1\ndn: CN=WebApp1,CN=Managed\n  Service Accounts,DC=contoso,DC=com\nobjectClass: top\n\
            objectClass: msDS-GroupManagedServiceAccount\nobjectSid:: AQUA\nsAMAccountName: WebApp1$\n\n# refldaps://contoso.com\n\n\
            # search reference\nref: ldaps://contoso.com/CN=Configuration,DC=contoso,DC=com\n\n# search result\nsearch: 2\nresult: 0 Success\n";
        assert!(is_ldif(text));
        let entries = read(text).unwrap();
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].name, "CN=WebApp1,CN=Managed Service Accounts,DC=contoso,DC=com");
        assert!(entries[0].is_a("msds-groupmanagedserviceaccount"));
        assert_eq!(entries[0].value("objectSid"), Some(&[1, 5, 0][..]));
    }

    #[test]
    fn what_is_no_ldif_is_refused_with_its_line() {
        for (text, error) in [
            ("dn: CN=a\nb", LdifError::Line(2)),
            ("\ncn: a", LdifError::NoName(2)),
            ("dn: CN=a\nb:: !", LdifError::Base64(2)),
            ("dn: CN=a\nb:< file:///etc/passwd", LdifError::File(2)),
            ("dn: CN=a\nchangetype: delete", LdifError::Change(2)),
        ] {
            assert_eq!(read(text), Err(error), "{text}");
        }
        assert!(!is_ldif("{\"dn:\": 1}") && !is_ldif(""));
    }

    proptest! {
        #[test]
        fn any_entry_survives(name in "CN=[a-zA-Z0-9 ,äé]*x", values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..4)) {
            let line = |name: &str, value: &[u8]| format!("{name}:: {}\n", BASE64_STANDARD.encode(value));
            let lines: String = values.iter().map(|value| line("value", value)).collect();
            let text = line("dn", name.as_bytes()) + &lines;
            let mut entry = Entry { name, ..Entry::default() };
            entry.attributes.insert("value".to_owned(), values);
            prop_assert_eq!(read(&text), Ok(vec![entry]));
        }

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            let _ = read(&text);
        }
    }
}
