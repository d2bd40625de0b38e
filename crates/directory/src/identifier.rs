//! SIDs, which the directory stores as bytes.

use std::fmt;

/// A security identifier ([MS-DTYP] 2.4.2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sid {
    authority: u64,
    parts: Vec<u32>,
}

/// The most parts of a SID, `SID_MAX_SUB_AUTHORITIES`.
const MAX_PARTS: usize = 15;

impl Sid {
    /// Parses its bytes ([MS-DTYP] 2.4.2.2), which must end with it.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (sid, rest) = Self::first(bytes)?;
        rest.is_empty().then_some(sid)
    }

    /// The SID at the start, and what follows it.
    pub(crate) fn first(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let ([1, count, authority @ ..], rest) = bytes.split_first_chunk::<8>()? else { return None };
        let authority = authority.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        let count = usize::from(*count);
        let (parts, rest) = (count <= MAX_PARTS).then(|| rest.split_at_checked(count * 4)).flatten()?;
        let (parts, _) = parts.as_chunks();
        Some((Self { authority, parts: parts.iter().copied().map(u32::from_le_bytes).collect() }, rest))
    }

    /// Parses its text ([MS-DTYP] 2.4.2.1), such as `S-1-5-32-544`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix("S-1-")?.split('-');
        let authority = parts.next()?.parse().ok().filter(|authority| *authority < 1 << 48)?;
        let parts = parts.map(|part| part.parse().ok()).collect::<Option<Vec<_>>>()?;
        (parts.len() <= MAX_PARTS).then_some(Self { authority, parts })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        #[expect(clippy::cast_possible_truncation, reason = "at most 15 parts")]
        let mut bytes = vec![1, self.parts.len() as u8];
        bytes.extend(self.authority.to_be_bytes().into_iter().skip(2));
        bytes.extend(self.parts.iter().flat_map(|part| part.to_le_bytes()));
        bytes
    }

    /// The SID of the domain, and the number within it (RID).
    pub fn split(&self) -> Option<(Self, u32)> {
        let (number, domain) = self.parts.split_last()?;
        Some((Self { authority: self.authority, parts: domain.to_vec() }, *number))
    }

    /// This SID of a domain with a RID appended.
    #[must_use]
    pub fn of(&self, number: u32) -> Self {
        Self { authority: self.authority, parts: self.parts.iter().copied().chain([number]).collect() }
    }

    /// Whether it is issued by a domain (`S-1-5-21-…`).
    pub fn is_of_domain(&self) -> bool {
        self.authority == 5 && self.parts.first() == Some(&21)
    }

    /// The principal of a well-known SID, the same in every domain ([MS-DTYP] 2.4.2.4).
    pub fn well_known(&self) -> Option<&'static WellKnown> {
        let known = WELL_KNOWN.iter().find(|known| known.authority == self.authority && known.parts == self.parts);
        // SIDs known by their prefix alone. Users do not type them.
        known.or(match (self.authority, self.parts.as_slice()) {
            (5, [5, ..]) => Some(&LOGON_SESSION),
            // From `SECURITY_SERVICE_ID_BASE_RID` to `SECURITY_MAX_BASE_RID`.
            (5, [80..=111, ..]) => Some(&SERVICE),
            (15, _) => Some(&APP),
            (16, _) => Some(&INTEGRITY),
            _ => None,
        })
    }

    /// Whether it is a group of `BUILTIN`, whose members each domain has in its directory.
    pub fn is_builtin(&self) -> bool {
        self.authority == 5 && self.parts.first() == Some(&32)
    }

    /// Whether it is a group of domain controllers ([MS-DTYP] 2.4.2.4): of the forest, of a domain, or the read-only ones.
    pub fn is_of_controllers(&self) -> bool {
        let number = self.split().filter(|_| self.is_of_domain()).map(|(_, number)| number);
        matches!(number, Some(498 | 516 | 521)) || (self.authority == 5 && self.parts == [9])
    }

    /// The wide group that has this number in every domain.
    pub fn wide_group(&self) -> Option<&'static WellKnown> {
        let (_, number) = self.split().filter(|_| self.is_of_domain())?;
        WIDE_GROUPS.iter().find(|known| known.parts == [number])
    }
}

/// A principal whose SID does not depend on the domain.
#[derive(Debug, PartialEq, Eq)]
pub struct WellKnown {
    authority: u64,
    parts: &'static [u32],
    pub name: &'static str,
    /// The members of a wide group: every user of a domain, for example.
    pub wide: Option<&'static str>,
    /// Only local logons have it. A client that asks a domain controller over the network never has it.
    pub is_local: bool,
}

const fn known(authority: u64, parts: &'static [u32], name: &'static str) -> WellKnown {
    WellKnown { authority, parts, name, wide: None, is_local: false }
}

const fn local(authority: u64, parts: &'static [u32], name: &'static str) -> WellKnown {
    WellKnown { is_local: true, ..known(authority, parts, name) }
}

const fn wide(authority: u64, parts: &'static [u32], name: &'static str, who: &'static str) -> WellKnown {
    WellKnown { wide: Some(who), ..known(authority, parts, name) }
}

/// Everybody who can log on.
pub const EVERYBODY: &str = "every user and every computer of the domain";
pub const EVERY_USER: &str = "every user of the domain";
pub const EVERY_COMPUTER: &str = "every computer of the domain";
const BY_DEFAULT: &str = "by default every user and every computer of the domain";
const ANONYMOUS: &str = "everybody without a user";
const GUESTS: &str = "everybody, where the user Guest is enabled,";
const TRUSTED: &str = "every user of trusted domains";
const BY_KEY: &str = "every user who logs on with a certificate or a key";
const WITH_CLAIMS: &str = "every user and every computer for which the domain makes claims";

static LOGON_SESSION: WellKnown = local(5, &[5], "a logon session");
static SERVICE: WellKnown = local(5, &[80], "a service of a machine");
static APP: WellKnown = local(15, &[], "an app of a machine");
static INTEGRITY: WellKnown = local(16, &[], "an integrity level");

/// Wide ones are in the token of every user who logs on to a domain controller over the network.
static WELL_KNOWN: &[WellKnown] = &[
    local(0, &[0], "Null SID"),
    wide(1, &[0], "Everyone", EVERYBODY),
    local(2, &[0], "Local"),
    local(2, &[1], "Console Logon"),
    local(3, &[0], "Creator Owner"),
    local(3, &[1], "Creator Group"),
    local(3, &[4], "Owner Rights"),
    local(5, &[1], "Dialup"),
    wide(5, &[2], "Network", EVERYBODY),
    local(5, &[3], "Batch"),
    local(5, &[4], "Interactive"),
    local(5, &[6], "Service"),
    wide(5, &[7], "Anonymous Logon", ANONYMOUS),
    local(5, &[8], "Proxy"),
    known(5, &[9], "Enterprise Domain Controllers"),
    local(5, &[10], "Self"),
    wide(5, &[11], "Authenticated Users", EVERYBODY),
    local(5, &[12], "Restricted Code"),
    local(5, &[13], "Terminal Server User"),
    local(5, &[14], "Remote Interactive Logon"),
    wide(5, &[15], "This Organization", EVERYBODY),
    local(5, &[17], "IUSR"),
    local(5, &[18], "Local System"),
    local(5, &[19], "Local Service"),
    local(5, &[20], "Network Service"),
    wide(5, &[21, 0, 0, 0, 496], "Compounded Authentication", WITH_CLAIMS),
    wide(5, &[21, 0, 0, 0, 497], "Claims Valid", WITH_CLAIMS),
    local(5, &[33], "Write Restricted"),
    known(5, &[32, 544], "Administrators"),
    wide(5, &[32, 545], "Users", EVERYBODY),
    wide(5, &[32, 546], "Guests", GUESTS),
    known(5, &[32, 547], "Power Users"),
    known(5, &[32, 548], "Account Operators"),
    known(5, &[32, 549], "Server Operators"),
    known(5, &[32, 550], "Print Operators"),
    known(5, &[32, 551], "Backup Operators"),
    known(5, &[32, 552], "Replicator"),
    wide(5, &[32, 554], "Pre-Windows 2000 Compatible Access", BY_DEFAULT),
    known(5, &[32, 555], "Remote Desktop Users"),
    known(5, &[32, 556], "Network Configuration Operators"),
    known(5, &[32, 557], "Incoming Forest Trust Builders"),
    known(5, &[32, 558], "Performance Monitor Users"),
    known(5, &[32, 559], "Performance Log Users"),
    known(5, &[32, 560], "Windows Authorization Access Group"),
    known(5, &[32, 561], "Terminal Server License Servers"),
    known(5, &[32, 562], "Distributed COM Users"),
    known(5, &[32, 568], "IIS_IUSRS"),
    known(5, &[32, 569], "Cryptographic Operators"),
    known(5, &[32, 573], "Event Log Readers"),
    known(5, &[32, 574], "Certificate Service DCOM Access"),
    known(5, &[32, 575], "RDS Remote Access Servers"),
    known(5, &[32, 576], "RDS Endpoint Servers"),
    known(5, &[32, 577], "RDS Management Servers"),
    known(5, &[32, 578], "Hyper-V Administrators"),
    known(5, &[32, 579], "Access Control Assistance Operators"),
    known(5, &[32, 580], "Remote Management Users"),
    known(5, &[32, 581], "System Managed Accounts Group"),
    known(5, &[32, 582], "Storage Replica Administrators"),
    wide(5, &[64, 10], "NTLM Authentication", EVERYBODY),
    wide(5, &[64, 14], "SChannel Authentication", EVERYBODY),
    wide(5, &[64, 21], "Digest Authentication", EVERYBODY),
    wide(5, &[65, 1], "This Organization Certificate", BY_KEY),
    local(5, &[113], "Local account"),
    local(5, &[114], "Local account and member of Administrators group"),
    wide(5, &[1000], "Other Organization", TRUSTED),
    wide(18, &[1], "Authentication authority asserted identity", EVERYBODY),
    wide(18, &[2], "Service asserted identity", EVERYBODY),
    wide(18, &[3], "Fresh public key identity", BY_KEY),
    wide(18, &[4], "Key trust identity", BY_KEY),
    wide(18, &[5], "MFA key property", BY_KEY),
    wide(18, &[6], "Attested key property", BY_KEY),
];

/// By their numbers in a domain ([MS-DTYP] 2.4.2.4): every user has the first as primary group, every computer the third.
static WIDE_GROUPS: [WellKnown; 3] = [
    wide(5, &[513], "Domain Users", EVERY_USER),
    wide(5, &[514], "Domain Guests", GUESTS),
    wide(5, &[515], "Domain Computers", EVERY_COMPUTER),
];

/// The wide group that PowerShell prints by this name and place.
pub fn wide_by_name(name: &str, place: &str) -> Option<&'static WellKnown> {
    let named = |known: &&WellKnown| known.name.eq_ignore_ascii_case(name) && known.wide.is_some();
    match place.to_ascii_lowercase().as_str() {
        "cn=users" => WIDE_GROUPS.iter().find(named),
        "cn=builtin" => WELL_KNOWN.iter().filter(|known| known.parts.first() == Some(&32)).find(named),
        _ => None,
    }
}

impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S-1-{}", self.authority)?;
        self.parts.iter().try_for_each(|part| write!(f, "-{part}"))
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_domain_controller_stores_is_read() {
        let bytes = |text| BASE64_STANDARD.decode(text).unwrap();
        let sid = Sid::from_bytes(&bytes("AQUAAAAAAAUVAAAA0TCVWm2mKBrNPWk8UgQAAA==")).unwrap();
        assert_eq!(sid.to_string(), "S-1-5-21-1519726801-438871661-1013530061-1106");
        let (domain, number) = sid.split().unwrap();
        assert_eq!((domain.to_string().as_str(), number), ("S-1-5-21-1519726801-438871661-1013530061", 1106));
    }

    #[test]
    fn what_is_no_sid_is_refused() {
        for text in [
            "",
            "S-1-",
            "S-2-5",
            "S-1-5-x",
            "S-1-5-4294967296",
            "S-1-281474976710656",
            "S-1-5-1-2-3-4-5-6-7-8-9-10-11-12-13-14-15-16",
        ] {
            assert_eq!(Sid::parse(text), None, "{text}");
        }
        for bytes in [
            &b""[..],
            &[1, 1, 0, 0, 0, 0, 0, 5, 1, 2, 3],
            &[2, 0, 0, 0, 0, 0, 0, 5],
            &[1, 0, 0, 0, 0, 0, 0, 5, 0],
            &[1, 16, 0, 0, 0, 0, 0, 5],
        ] {
            assert_eq!(Sid::from_bytes(bytes), None, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn a_sid_survives_bytes_and_text(authority in 0u64..1 << 48, parts in prop::collection::vec(any::<u32>(), 0..=MAX_PARTS)) {
            let sid = Sid { authority, parts };
            prop_assert_eq!(Sid::from_bytes(&sid.to_bytes()), Some(sid.clone()));
            prop_assert_eq!(Sid::parse(&sid.to_string()), Some(sid));
        }
    }
}
