//! Names of statuses, to decode any code: Win32, HRESULT and NTSTATUS (`winerror.h`, `lmerr.h`, `winhttp.h`, `ntstatus.h`, in
//! `windows.txt`; the repository's `tests/windows.sh` compares it with the headers of mingw-w64), Kerberos (RFC 4120, 7.5.9, with Windows' names) and
//! LDAP (RFC 4511, 4.1.9). Codes with a known cause are in the rules.

use std::{collections::HashMap, sync::LazyLock};

use super::meaning::{Explanation, Meaning};

macro_rules! symbols {
    ($($table:ident: $type:ty { $($value:literal $name:ident,)* })*) => {
        $(static $table: &[($type, &str)] = &[$(($value, stringify!($name))),*];)*
    };
}

symbols! {
KERBEROS: u32 {
    1 KDC_ERR_NAME_EXP, 2 KDC_ERR_SERVICE_EXP, 3 KDC_ERR_BAD_PVNO, 4 KDC_ERR_C_OLD_MAST_KVNO, 5 KDC_ERR_S_OLD_MAST_KVNO,
    6 KDC_ERR_C_PRINCIPAL_UNKNOWN, 7 KDC_ERR_S_PRINCIPAL_UNKNOWN, 8 KDC_ERR_PRINCIPAL_NOT_UNIQUE, 9 KDC_ERR_NULL_KEY,
    10 KDC_ERR_CANNOT_POSTDATE, 11 KDC_ERR_NEVER_VALID, 12 KDC_ERR_POLICY, 13 KDC_ERR_BADOPTION, 14 KDC_ERR_ETYPE_NOTSUPP,
    15 KDC_ERR_SUMTYPE_NOSUPP, 16 KDC_ERR_PADATA_TYPE_NOSUPP, 17 KDC_ERR_TRTYPE_NO_SUPP, 18 KDC_ERR_CLIENT_REVOKED,
    19 KDC_ERR_SERVICE_REVOKED, 20 KDC_ERR_TGT_REVOKED, 21 KDC_ERR_CLIENT_NOTYET, 22 KDC_ERR_SERVICE_NOTYET, 23 KDC_ERR_KEY_EXPIRED,
    24 KDC_ERR_PREAUTH_FAILED, 25 KDC_ERR_PREAUTH_REQUIRED, 26 KDC_ERR_SERVER_NOMATCH, 27 KDC_ERR_MUST_USE_USER2USER,
    28 KDC_ERR_PATH_NOT_ACCEPTED, 29 KDC_ERR_SVC_UNAVAILABLE, 31 KRB_AP_ERR_BAD_INTEGRITY, 32 KRB_AP_ERR_TKT_EXPIRED,
    33 KRB_AP_ERR_TKT_NYV, 34 KRB_AP_ERR_REPEAT, 35 KRB_AP_ERR_NOT_US, 36 KRB_AP_ERR_BADMATCH, 37 KRB_AP_ERR_SKEW,
    38 KRB_AP_ERR_BADADDR, 39 KRB_AP_ERR_BADVERSION, 40 KRB_AP_ERR_MSG_TYPE, 41 KRB_AP_ERR_MODIFIED, 42 KRB_AP_ERR_BADORDER,
    44 KRB_AP_ERR_BADKEYVER, 45 KRB_AP_ERR_NOKEY, 46 KRB_AP_ERR_MUT_FAIL, 47 KRB_AP_ERR_BADDIRECTION, 48 KRB_AP_ERR_METHOD,
    49 KRB_AP_ERR_BADSEQ, 50 KRB_AP_ERR_INAPP_CKSUM, 51 KRB_AP_PATH_NOT_ACCEPTED, 52 KRB_ERR_RESPONSE_TOO_BIG, 60 KRB_ERR_GENERIC,
    61 KRB_ERR_FIELD_TOOLONG, 62 KDC_ERR_CLIENT_NOT_TRUSTED, 63 KDC_ERR_KDC_NOT_TRUSTED, 64 KDC_ERR_INVALID_SIG,
    65 KDC_ERR_KEY_TOO_WEAK, 66 KDC_ERR_CERTIFICATE_MISMATCH, 67 KRB_AP_ERR_NO_TGT, 68 KDC_ERR_WRONG_REALM,
    69 KRB_AP_ERR_USER_TO_USER_REQUIRED,
}
MIT: u32 {
    140 KRB5_CC_UNKNOWN_TYPE, 141 KRB5_CC_NOTFOUND, 147 KRB5_KDCREP_MODIFIED, 148 KRB5_KDCREP_SKEW, 154 KRB5_REALM_UNKNOWN,
    156 KRB5_KDC_UNREACH, 181 KRB5_KT_NOTFOUND, 195 KRB5_FCC_NOFILE, 210 KRB5_PREAUTH_FAILED, 220 KRB5_REALM_CANT_RESOLVE,
    224 KRB5_CONFIG_NODEFREALM,
}
LDAP: u32 {
    1 LDAP_OPERATIONS_ERROR, 2 LDAP_PROTOCOL_ERROR, 3 LDAP_TIMELIMIT_EXCEEDED, 4 LDAP_SIZELIMIT_EXCEEDED,
    7 LDAP_AUTH_METHOD_NOT_SUPPORTED, 8 LDAP_STRONG_AUTH_REQUIRED, 10 LDAP_REFERRAL, 11 LDAP_ADMIN_LIMIT_EXCEEDED,
    12 LDAP_UNAVAILABLE_CRIT_EXTENSION, 13 LDAP_CONFIDENTIALITY_REQUIRED, 14 LDAP_SASL_BIND_IN_PROGRESS, 16 LDAP_NO_SUCH_ATTRIBUTE,
    17 LDAP_UNDEFINED_TYPE, 18 LDAP_INAPPROPRIATE_MATCHING, 19 LDAP_CONSTRAINT_VIOLATION, 20 LDAP_ATTRIBUTE_OR_VALUE_EXISTS,
    21 LDAP_INVALID_SYNTAX, 32 LDAP_NO_SUCH_OBJECT, 34 LDAP_INVALID_DN_SYNTAX, 48 LDAP_INAPPROPRIATE_AUTH, 49 LDAP_INVALID_CREDENTIALS,
    50 LDAP_INSUFFICIENT_RIGHTS, 51 LDAP_BUSY, 52 LDAP_UNAVAILABLE, 53 LDAP_UNWILLING_TO_PERFORM, 54 LDAP_LOOP_DETECT,
    64 LDAP_NAMING_VIOLATION, 65 LDAP_OBJECT_CLASS_VIOLATION, 68 LDAP_ALREADY_EXISTS, 80 LDAP_OTHER, 81 LDAP_SERVER_DOWN,
    82 LDAP_LOCAL_ERROR, 85 LDAP_TIMEOUT, 91 LDAP_CONNECT_ERROR,
}
}

/// Aliases of statuses, and names that are missing in the headers of Windows: the last is from hcsshim.
static OTHERS: &[(u32, &str)] = &[
    (0x8007_0005, "E_ACCESSDENIED"),
    (0x8007_0057, "E_INVALIDARG"),
    (0x8007_000e, "E_OUTOFMEMORY"),
    (0x8037_0103, "HCS_E_OPERATION_PENDING"),
];

/// Each value, in hexadecimal, with its name; in the order of the values.
static WINDOWS: &str = include_str!("windows.txt");

static NAMES: LazyLock<HashMap<u32, &str>> = LazyLock::new(|| windows().collect());

/// By the name in upper case.
static VALUES: LazyLock<HashMap<String, u32>> =
    LazyLock::new(|| windows().map(|(value, name)| (name.to_ascii_uppercase(), value)).collect());

fn windows() -> impl Iterator<Item = (u32, &'static str)> {
    WINDOWS.lines().filter_map(|line| {
        let (value, name) = line.split_once(' ')?;
        Some((u32::from_str_radix(value, 16).ok()?, name))
    })
}

fn named(table: &'static [(u32, &'static str)], value: u32) -> Option<&'static str> {
    table.iter().find(|(known, _)| *known == value).map(|(_, name)| *name)
}

/// The name of a status of Windows, in the form that [`WindowsStatus`](super::WindowsStatus) normalizes to.
pub(super) fn name(value: u32) -> Option<&'static str> {
    NAMES.get(&value).copied().or_else(|| named(OTHERS, value))
}

pub(super) fn value(name: &str) -> Option<u32> {
    let name = name.to_ascii_uppercase();
    let other = || OTHERS.iter().find(|(_, other)| *other == name).map(|(value, _)| *value);
    VALUES.get(&name).copied().or_else(other)
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
    let kerberos = named(KERBEROS, value).map(|name| format!("; in Kerberos it is {name}"));
    let ldap = named(LDAP, value).map(|name| format!("; in LDAP it is {name}"));
    kerberos.unwrap_or_default() + &ldap.unwrap_or_default()
}

/// The name of a negative code of MIT Kerberos: protocol codes first, then library codes (`krb5_err.et`).
pub(super) fn of_mit(value: u32) -> Option<&'static str> {
    let code = value.checked_sub(0x96c7_3a00).filter(|code| *code <= 0xff)?;
    named(KERBEROS, code).or_else(|| named(MIT, code))
}

/// The names of Kerberos and LDAP in a text in its normal form, in the notation of Windows or MIT Kerberos.
pub(super) fn names_of_protocols(text: &str) -> impl Iterator<Item = &'static str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| word.contains('_'));
    words.filter_map(|word| {
        let bare = word.strip_prefix("krb5").filter(|rest| rest.starts_with('k')).unwrap_or(word);
        let mut known = [KERBEROS, MIT, LDAP].into_iter().flatten().map(|(_, name)| *name);
        known.find(|name| name.eq_ignore_ascii_case(word) || name.eq_ignore_ascii_case(bare))
    })
}

/// The explanation of a name of Kerberos or LDAP without context.
pub(super) fn explain(name: &str) -> Explanation {
    let how = "The cause is unknown. Kerberos errors are explained in RFC 4120, 7.5.9, results of LDAP in RFC 4511, appendix A.";
    Explanation { found: name.to_owned(), meaning: Meaning::Unknown(how.to_owned()) }
}

/// Words before a code of Kerberos; the first are of the Windows events 4768, 4769 and 4771.
const KERBEROS_CODES: [&str; 7] = [
    "failure code: 0x",
    "failure code 0x",
    "result code: 0x",
    "result code 0x",
    "kerberos error code",
    "kdc_err_",
    "krb_ap_err_",
];

/// Words before a result of LDAP.
const LDAP_CODES: [&str; 3] = ["ldap: error code", "ldap error code", "ldap result code"];

/// Whether a text in its normal form has decimal codes of a protocol, behind the word `code`.
pub(super) fn has_codes(text: &str) -> bool {
    text.contains("kerberos error code") || LDAP_CODES.iter().any(|words| text.contains(words))
}

/// The name of a small number in a text with codes of Kerberos or LDAP.
pub(super) fn of_protocol(text: &str) -> impl Fn(u32) -> Option<&'static str> + use<> {
    let is_kerberos = KERBEROS_CODES.iter().any(|words| text.contains(words));
    let table = match (is_kerberos, LDAP_CODES.iter().any(|words| text.contains(words))) {
        (true, false) => KERBEROS,
        (false, true) => LDAP,
        _ => &[],
    };
    move |value| named(table, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_symbol_is_listed_twice() {
        for table in [KERBEROS, MIT, LDAP] {
            assert!(table.is_sorted_by(|(value, _), (next, _)| value < next));
        }
        let windows: Vec<_> = windows().collect();
        assert!(windows.is_sorted_by(|(value, _), (next, _)| value < next));
        assert_eq!((windows.len(), NAMES.len(), VALUES.len()), (WINDOWS.lines().count(), windows.len(), windows.len()));
    }
}
