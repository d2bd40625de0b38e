//! Names of statuses, to decode any code: Win32, HRESULT and NTSTATUS (`winerror.h`, `lmerr.h`, `winhttp.h`, `ntstatus.h`, in
//! `windows.txt`; the repository's `tests/windows.sh` compares it with the headers of mingw-w64), Kerberos (RFC 4120, 7.5.9, with Windows' names) and
//! LDAP (RFC 4511, 4.1.9). Codes with a known cause are in the rules.

use std::{collections::HashMap, sync::LazyLock};

use super::{
    KERBEROS_CODES, LDAP_CODES,
    meaning::{Explanation, Meaning},
};

type CodeNames = HashMap<u32, &'static str>;

/// Protocol errors, by the numbers of the RFC.
static KERBEROS: LazyLock<CodeNames> = LazyLock::new(|| lines(include_str!("kerberos.txt"), 10).collect());

/// Errors of the library of MIT Kerberos.
static MIT: LazyLock<CodeNames> = LazyLock::new(|| lines(include_str!("mit.txt"), 10).collect());

static LDAP: LazyLock<CodeNames> = LazyLock::new(|| lines(include_str!("ldap.txt"), 10).collect());

/// In the order of the values, with aliases, and with names that Windows headers do not define.
static WINDOWS: &str = include_str!("windows.txt");

static NAMES: LazyLock<CodeNames> = LazyLock::new(|| lines(WINDOWS, 16).collect());

/// By the name in upper case.
static VALUES: LazyLock<HashMap<String, u32>> =
    LazyLock::new(|| lines(WINDOWS, 16).map(|(value, name)| (name.to_ascii_uppercase(), value)).collect());

/// Each value with its name: a line each.
fn lines(table: &'static str, radix: u32) -> impl Iterator<Item = (u32, &'static str)> {
    table.lines().filter_map(move |line| {
        let (value, name) = line.split_once(' ')?;
        Some((u32::from_str_radix(value, radix).ok()?, name))
    })
}

/// The name of a status of Windows, in the form that [`WindowsStatus`](super::WindowsStatus) normalizes to.
pub(super) fn name(value: u32) -> Option<&'static str> {
    NAMES.get(&value).copied()
}

pub(super) fn value(name: &str) -> Option<u32> {
    VALUES.get(&name.to_ascii_uppercase()).copied()
}

/// The part of Windows that issues such a status, for a status without a name.
pub(super) fn facility(value: u32) -> &'static str {
    match (value >> 28, (value >> 16) & 0x0fff) {
        (0, 0) => "a Win32 code",
        (0xc, 0) => "an NTSTATUS",
        (0xc, 2 | 3) => "an NTSTATUS of RPC",
        (0xc, 0x35) => "an NTSTATUS of the hypervisor",
        (0xc, 0x3a) => "an NTSTATUS of virtual disks",
        (0xc, _) => "an NTSTATUS of another facility than the system's",
        (8, 0) => "an HRESULT of COM",
        (8, 1) => "an HRESULT of RPC",
        (8, 4) => "an HRESULT of the interface that returned it, such as a CCG plugin",
        (8, 9) => "an HRESULT of security (SSPI, cryptography)",
        (8, 11) => "an HRESULT of certificates",
        (8, 0x13) => "an HRESULT of .NET",
        (8, 0x37) => "an HRESULT of the Host Compute System",
        (8, 0x3b) => "an HRESULT of the Host Compute Network",
        (8, _) => "an HRESULT",
        _ => "not a status of Windows that is known here",
    }
}

/// The names of a small number in Kerberos and LDAP.
pub(super) fn elsewhere(value: u32) -> String {
    let kerberos = KERBEROS.get(&value).map(|name| format!("; in Kerberos it is {name}"));
    let ldap = LDAP.get(&value).map(|name| format!("; in LDAP it is {name}"));
    kerberos.unwrap_or_default() + &ldap.unwrap_or_default()
}

/// The name of a negative code of MIT Kerberos: protocol codes first, then library codes (`krb5_err.et`).
pub(super) fn of_mit(value: u32) -> Option<&'static str> {
    let code = value.checked_sub(0x96c7_3a00).filter(|code| *code <= 0xff)?;
    KERBEROS.get(&code).or_else(|| MIT.get(&code)).copied()
}

/// The names of Kerberos and LDAP in a text in its normal form, in the notation of Windows or MIT Kerberos.
pub(super) fn names_of_protocols(text: &str) -> impl Iterator<Item = &'static str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| word.contains('_'));
    words.filter_map(|word| {
        let bare = word.strip_prefix("krb5").filter(|rest| rest.starts_with('k')).unwrap_or(word);
        let mut known = [&*KERBEROS, &*MIT, &*LDAP].into_iter().flat_map(CodeNames::values).copied();
        known.find(|name| name.eq_ignore_ascii_case(word) || name.eq_ignore_ascii_case(bare))
    })
}

/// The explanation of a name of Kerberos or LDAP without context.
pub(super) fn explain(name: &str) -> Explanation {
    let how = "The cause is unknown. Kerberos errors are explained in RFC 4120, 7.5.9, results of LDAP in RFC 4511, appendix A.";
    Explanation { found: name.to_owned(), meaning: Meaning::Unknown(how.to_owned()) }
}

/// Whether a text in its normal form has decimal codes of a protocol, behind the word `code`.
pub(super) fn has_codes(text: &str) -> bool {
    text.contains("kerberos error code") || LDAP_CODES.iter().any(|words| text.contains(words))
}

/// The name of a small number in a text with codes of Kerberos or LDAP.
pub(super) fn of_protocol(text: &str) -> impl Fn(u32) -> Option<&'static str> + use<> {
    let is_kerberos = KERBEROS_CODES.iter().any(|words| text.contains(words));
    let table = match (is_kerberos, LDAP_CODES.iter().any(|words| text.contains(words))) {
        (true, false) => Some(&*KERBEROS),
        (false, true) => Some(&*LDAP),
        _ => None,
    };
    move |value| table?.get(&value).copied()
}
