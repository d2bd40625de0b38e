//! The user who logs on, and the password.

use std::io::{self, Read};

use zeroize::Zeroizing;

use crate::entry::{domain_of, parts};

/// The longest password that Active Directory takes, in characters, is 256.
const MAX_PASSWORD: usize = 1024;
/// The prefix of `ConvertFrom-SecureString` output on Windows: the GUID of its encryption provider (DPAPI).
const SECURE_STRING: &str = "01000000d08c9ddf0115d1118c7a00c04fc297eb";

/// A user of the domain, and the password.
pub struct Credentials {
    pub user: String,
    pub password: Zeroizing<String>,
}

/// Whether the text is a user name that a domain controller accepts. Any other would only fail to log on.
pub fn is_user(text: &str) -> bool {
    let is_name = |name: &str| !name.is_empty() && !name.contains(['"', '/', '\\', '@']) && name.trim() == name;
    let is_domain = |domain: &str| is_name(domain) && !domain.contains(|c: char| c.is_whitespace() || c == '=');
    if let Some((domain, name)) = text.split_once('\\').filter(|(domain, _)| !domain.contains('=')) {
        return is_domain(domain) && is_name(name);
    }
    if let Some((name, domain)) = text.rsplit_once('@').filter(|(_, domain)| !domain.contains('=')) {
        return is_name(name) && !name.contains(char::is_whitespace) && is_domain(domain);
    }
    let is_part = |part: &str| part.split_once('=').is_some_and(|(key, value)| !key.is_empty() && !value.is_empty());
    domain_of(text).is_some() && parts(text).all(is_part)
}

/// The password in a file, without the line break at its end: UTF-8 or UTF-16 with a byte order mark, as PowerShell writes it.
///
/// # Errors
/// If it cannot be read, or cannot be a password: each wrong password counts towards a lockout.
pub fn password_in(file: impl Read) -> io::Result<Zeroizing<String>> {
    // Large enough from the start: a buffer that grows would leave a copy behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_PASSWORD + 1));
    file.take(MAX_PASSWORD as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_PASSWORD {
        return Err(io::Error::other(format!("it is longer than {MAX_PASSWORD} bytes")));
    }
    let mut text = Zeroizing::new(String::with_capacity(2 * MAX_PASSWORD));
    let mut units = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units =
            bytes.chunks(2).map(|pair| unit([pair.first().copied().unwrap_or(0), pair.get(1).copied().unwrap_or(0)]));
        char::decode_utf16(units).try_for_each(|c| c.map(|c| text.push(c))).map_err(io::Error::other)
    };
    match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => units(rest, u16::from_le_bytes)?,
        [0xfe, 0xff, rest @ ..] => units(rest, u16::from_be_bytes)?,
        [0xef, 0xbb, 0xbf, rest @ ..] | rest => text.push_str(
            std::str::from_utf8(rest).map_err(|_| io::Error::other("it is neither UTF-8 nor UTF-16 with its mark"))?,
        ),
    }
    let length = text.trim_end_matches(['\r', '\n']).len();
    text.truncate(length);
    Err(io::Error::other(if text.contains('\n') {
        "it has several lines: expected the password alone"
    } else if text.contains(char::is_control) {
        "it has control characters, as UTF-16 without its mark has: expected the password alone, in UTF-8, or in UTF-16 with the mark"
    } else if text.starts_with(SECURE_STRING) || text.starts_with("<Objs ") {
        "it is encrypted by PowerShell (SecureString): expected the password itself"
    } else {
        return Ok(text);
    }))
}
