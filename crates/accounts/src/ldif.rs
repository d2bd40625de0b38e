//! LDIF (RFC 2849): what `ldapsearch` and `ldifde` print.

use std::collections::BTreeMap;

use anyhow::{anyhow, ensure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use gmsa_core::quote::{Quoted, cut};

use gmsa_directory::{
    Directory, Entry, Sid,
    entry::{MAX_TEXT, base_of},
};

/// The most entries of one text.
const MAX_ENTRIES: usize = 100_000;

/// Whether a text looks like LDIF, not like JSON.
pub fn is_ldif(text: &str) -> bool {
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.take(2).any(|line| line.len() >= 3 && line.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("dn:")))
}

/// The directory that a text shows.
///
/// # Errors
/// Where there is no entry, or a line is not LDIF, with its number.
pub fn directory(text: &str) -> anyhow::Result<Directory> {
    let entries = read(text)?;
    ensure!(!entries.is_empty(), "no entry");
    let incomplete = incomplete(text, &entries);
    Ok(Directory::printed(entries, incomplete))
}

/// The entries of a text. Other lines of `ldapsearch`, such as `search: 2` and references, are skipped.
///
/// # Errors
/// Where a line is not LDIF, with its number.
fn read(text: &str) -> anyhow::Result<Vec<Entry>> {
    const NO_NAME: &str = "is not LDIF: an entry begins with dn:";
    let mut entries = Vec::new();
    let mut entry: Option<Entry> = None;
    // Lines without a dn, before the first entry or between two.
    let mut skipping = false;
    for (number, line) in unfolded(text) {
        let wrong = |what: &str| anyhow!("line {number} {what}");
        if line.is_empty() {
            entries.extend(entry.take());
            skipping = false;
            ensure!(entries.len() <= MAX_ENTRIES, "more than {MAX_ENTRIES} entries");
            continue;
        }
        if skipping || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| wrong("is not LDIF: expected NAME: VALUE"))?;
        let value = match value.strip_prefix([':', '<']) {
            None => value.trim_start_matches(' ').as_bytes().to_vec(),
            Some(encoded) if value.starts_with(':') => {
                BASE64_STANDARD.decode(encoded.trim()).map_err(|_| wrong("is not base64"))?
            }
            Some(_) => return Err(wrong("names a file, which is not read")),
        };
        let name = name.trim().to_ascii_lowercase();
        // Samba's tools print it as a text.
        let sid = (name == "objectsid").then(|| Sid::parse(str::from_utf8(&value).ok()?)).flatten();
        let value = sid.map_or(value, |sid| sid.to_bytes());
        match (&mut entry, name.as_str()) {
            (None, "dn") => {
                let name = String::from_utf8(value).map_err(|_| wrong(NO_NAME))?;
                entry = Some(Entry { name: cut(&name, MAX_TEXT).to_owned(), ..Entry::default() });
            }
            (None, "version") => {}
            // The end of what ldapsearch prints.
            (None, "search" | "result" | "ref") => skipping = true,
            (None, _) => return Err(wrong(NO_NAME)),
            // `ldifde` writes an entry as a change that adds it.
            (Some(_), "changetype") if value.eq_ignore_ascii_case(b"add") => {}
            (Some(_), "changetype" | "control") => return Err(wrong("is a change, not an entry of the directory")),
            (Some(entry), name) => entry.attributes.entry(name.to_owned()).or_default().push(value),
        }
    }
    entries.extend(entry);
    Ok(entries)
}

/// Why a text is incomplete. Signs are an error in the result line of `ldapsearch`, a number of entries at which domain
/// controllers stop, and partial lists of values.
fn incomplete(text: &str, entries: &[Entry]) -> Option<String> {
    // `MaxPageSize` of domain controllers ([MS-ADTS] 3.1.1.3.4.6).
    const PAGE: usize = 1000;
    let mut results = text.lines().filter_map(|line| line.strip_prefix("result: ").map(str::trim));
    if let Some(result) = results.find(|result| !result.starts_with("0 ") && *result != "0") {
        return Some(format!("the file is incomplete: the search ended with {}", Quoted::new(result)));
    }
    let is_range = |name: &&String| name.contains(";range=") && !name.ends_with("-*");
    let range =
        |entry: &Entry| Some((Quoted::new(&entry.name).to_string(), entry.attributes.keys().find(is_range)?.clone()));
    if let Some((name, attribute)) = entries.iter().find_map(range) {
        return Some(format!("the file is incomplete: it holds only {} of {name}", Quoted::new(&attribute)));
    }
    let mut of_domains: BTreeMap<String, usize> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| !entry.name.to_ascii_lowercase().contains(",cn=configuration,")) {
        *of_domains.entry(base_of(&entry.name).to_ascii_lowercase()).or_default() += 1;
    }
    let (domain, count) = of_domains.into_iter().find(|(_, count)| *count > 0 && *count % PAGE == 0)?;
    Some(format!(
        "the file may not be whole: it holds exactly {count} entries of {}, after which a domain controller ends a search without pages",
        Quoted::new(&domain)
    ))
}

/// The lines with their numbers, folded lines joined again. An empty line ends each entry.
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
            ("dn: CN=a\nb", "line 2 is not LDIF: expected NAME: VALUE"),
            ("\ncn: a", "line 2 is not LDIF: an entry begins with dn:"),
            ("dn: CN=a\nb:: !", "line 2 is not base64"),
            ("dn: CN=a\nb:< file:///etc/passwd", "line 2 names a file, which is not read"),
            ("dn: CN=a\nchangetype: delete", "line 2 is a change, not an entry of the directory"),
            ("dn: CN=a\nchangetype: modify\nadd: b", "line 2 is a change, not an entry of the directory"),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), error, "{text}");
        }
        assert!(!is_ldif("{\"dn:\": 1}") && !is_ldif(""));
    }

    #[test]
    fn what_ldifde_prints_is_read() {
        let text = "dn: CN=a,DC=x\r\nchangetype: Add\r\ncn: a\r\ndescription: lo\r\n ng\r\n\r\ndn: CN=b,DC=x\r\nchangetype: add\r\ncn: b\r\n";
        let entries = read(text).unwrap();
        assert_eq!((entries.len(), entries[0].text("description")), (2, Some("long")));
        assert_eq!(entries[0].value("changetype"), None);
    }

    #[test]
    fn what_is_not_whole_is_known() {
        let said = |text: &str| incomplete(text, &read(text).unwrap());
        let many = |count: usize| -> String {
            (0..count).map(|number| format!("dn: CN={number},DC=X\ncn: {number}\n\n")).collect::<Vec<_>>().concat()
        };
        let configuration = "dn: CN=X,CN=Partitions,CN=Configuration,DC=x\ncn: X\n";
        assert_eq!(said(&many(999)), None);
        assert_eq!(said(&(many(3) + "search: 2\nresult: 0 Success\n")), None);
        assert_eq!(said("dn: CN=a,DC=x\nmember;range=1500-*: CN=b,DC=x\n"), None);
        let page = "the file may not be whole: it holds exactly 1000 entries of \"DC=x\", after which a domain controller ends a search without pages";
        assert_eq!(said(&(many(1000) + configuration)).unwrap(), page.replace("DC=x", "dc=x"));
        assert!(said(&many(5000)).unwrap().contains(" exactly 5000 entries "));
        assert_eq!(said(&many(5001)), None);
        assert_eq!(
            said(&(many(3) + "search: 2\nresult: 4 Size limit exceeded\n")).unwrap(),
            "the file is incomplete: the search ended with \"4 Size limit exceeded\""
        );
        assert_eq!(
            said("dn: CN=a,DC=x\nmember;range=0-1499: CN=b,DC=x\n").unwrap(),
            "the file is incomplete: it holds only \"member;range=0-1499\" of \"CN=a,DC=x\""
        );
    }

    proptest! {
        #[test]
        fn any_entry_survives(name in "CN=[a-zA-Z0-9 ,äé]*x", values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..4)) {
            let line = |name: &str, value: &[u8]| format!("{name}:: {}\n", BASE64_STANDARD.encode(value));
            let lines: String = values.iter().map(|value| line("value", value)).collect();
            let text = line("dn", name.as_bytes()) + &lines;
            let mut entry = Entry { name, ..Entry::default() };
            entry.attributes.insert("value".to_owned(), values);
            prop_assert_eq!(read(&text).unwrap(), vec![entry]);
        }

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            let _ = read(&text);
        }
    }
}
