//! Security descriptors: `msDS-GroupMSAMembership` holds who may retrieve the password of an account.
//!
//! Invariant: no entry that may give or take the right is left out: what is not understood is kept as such.

use std::collections::{BTreeSet, HashSet};

use crate::Sid;

/// `READ_PROPERTY`, which retrieving the password needs ([MS-ADTS] 3.1.1.4.5.39).
const RETRIEVE: u32 = 0x10;
/// Generic rights that would include it. An access check does not map those of an entry ([MS-DTYP] 2.5.3.2), and Samba gives no password for them;
/// where they are mapped as they are stored, they are not seen here.
const GENERIC: u32 = 0x8000_0000 | 0x1000_0000;

/// An entry of the list, in its order: the first one that fits decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRule {
    pub allows: bool,
    pub to: Sid,
}

/// An entry that is not evaluated (conditional, for a part of the object, of an unknown type): it may grant or deny.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unknown {
    /// `AceType` ([MS-DTYP] 2.4.4.1).
    pub kind: u8,
    /// `None` if the place of the SID is unknown for this kind.
    pub to: Option<Sid>,
}

/// The principals that may retrieve a managed password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retrieval {
    /// Without a list everybody is allowed ([MS-DTYP] 2.4.6).
    Everybody,
    Listed {
        rules: Vec<AccessRule>,
        unknown: BTreeSet<Unknown>,
    },
    /// The names that PowerShell printed.
    Named(Vec<String>),
    /// It cannot be parsed as a security descriptor.
    Unreadable,
}

impl Retrieval {
    /// Reads a self-relative security descriptor ([MS-DTYP] 2.4.6).
    pub fn read(descriptor: &[u8]) -> Self {
        Self::of(descriptor).unwrap_or(Self::Unreadable)
    }

    fn of(descriptor: &[u8]) -> Option<Self> {
        const DACL_PRESENT: u16 = 0x4;
        let number = |at: usize| Some(u32::from_le_bytes(*descriptor.get(at..)?.first_chunk()?));
        if descriptor.first() != Some(&1) {
            return None;
        }
        let control = u16::from_le_bytes(*descriptor.get(2..)?.first_chunk()?);
        let offset = usize::try_from(number(16)?).ok()?;
        if control & DACL_PRESENT == 0 || offset == 0 {
            return Some(Self::Everybody);
        }
        // Its size has 16 bits ([MS-DTYP] 2.4.5), so it is bounded.
        let list = descriptor.get(offset..)?;
        let list = list.get(..usize::from(u16::from_le_bytes(*list.get(2..)?.first_chunk()?)))?;
        let count = u16::from_le_bytes(*list.get(4..)?.first_chunk()?);
        let mut rest = list.get(8..)?;
        let (mut rules, mut unknown) = (Vec::new(), BTreeSet::new());
        for _ in 0..count {
            let [kind, flags, low, high] = *rest.first_chunk()?;
            let (entry, after) = rest.split_at_checked(usize::from(u16::from_le_bytes([low, high])).max(4))?;
            match read_entry(kind, flags, entry.get(4..)?)? {
                Ace::Rule(rule) => rules.push(rule),
                Ace::Unknown(to) => {
                    unknown.insert(Unknown { kind, to });
                }
                Ace::Other => {}
            }
            rest = after;
        }
        Some(Self::Listed { rules, unknown })
    }

    /// With these rules alone.
    pub fn listed(rules: Vec<AccessRule>) -> Self {
        Self::Listed { rules, unknown: BTreeSet::new() }
    }

    /// The first known entry for one of these SIDs, which decides: they are the SIDs of a user and of its groups.
    pub fn deciding(&self, token: &HashSet<Sid>) -> Option<&AccessRule> {
        self.rules().iter().find(|rule| token.contains(&rule.to))
    }

    /// The entries that are understood, in their order.
    pub fn rules(&self) -> &[AccessRule] {
        if let Self::Listed { rules, .. } = self { rules } else { &[] }
    }

    /// Whether certainly no principal may retrieve the password.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Everybody | Self::Unreadable => false,
            Self::Listed { rules, unknown } => unknown.is_empty() && !rules.iter().any(|rule| rule.allows),
            Self::Named(names) => names.is_empty(),
        }
    }

    /// The SIDs of the entries that allow it.
    pub fn principals(&self) -> impl Iterator<Item = &Sid> {
        self.rules().iter().filter(|rule| rule.allows).map(|rule| &rule.to)
    }

    /// The entries that are not understood.
    pub fn unknown(&self) -> &BTreeSet<Unknown> {
        static NONE: BTreeSet<Unknown> = BTreeSet::new();
        if let Self::Listed { unknown, .. } = self { unknown } else { &NONE }
    }
}

/// The effect of an entry on retrieving the password.
enum Ace {
    Rule(AccessRule),
    /// It may grant or deny the right, to this SID.
    Unknown(Option<Sid>),
    /// It has no effect: it is about other rights, applies only to objects below, or is an audit or a label.
    Other,
}

/// Reads an entry after its header ([MS-DTYP] 2.4.4); `None` where it is broken.
fn read_entry(kind: u8, flags: u8, entry: &[u8]) -> Option<Ace> {
    const INHERIT_ONLY: u8 = 0x8;
    // `ACE_OBJECT_TYPE_PRESENT` and `ACE_INHERITED_OBJECT_TYPE_PRESENT` ([MS-DTYP] 2.4.4.3).
    const OF_PART: u32 = 0x1;
    const INHERITED_BY: u32 = 0x2;
    const GUID: usize = 16;
    // System audits, alarms, labels, claims and policies.
    if flags & INHERIT_ONLY != 0 || matches!(kind, 2 | 3 | 7 | 8 | 0xD..=0x13) {
        return Some(Ace::Other);
    }
    let has = |entry: &[u8], rights: u32| Some(u32::from_le_bytes(*entry.first_chunk()?) & rights != 0);
    let rule = |allows: bool, sid: &[u8]| Some(Ace::Rule(AccessRule { allows, to: Sid::first(sid)?.0 }));
    Some(match kind {
        0 | 1 | 5 | 6 | 9 | 0xA | 0xB | 0xC if !has(entry, RETRIEVE | GENERIC)? => Ace::Other,
        0 | 1 if !has(entry, RETRIEVE)? => Ace::Unknown(Sid::first(entry.get(4..)?).map(|(sid, _)| sid)),
        0 | 1 => rule(kind == 0, entry.get(4..)?)?,
        // For callbacks: under a condition.
        9 | 0xA => Ace::Unknown(Sid::first(entry.get(4..)?).map(|(sid, _)| sid)),
        5 | 6 | 0xB | 0xC => {
            let present = u32::from_le_bytes(*entry.get(4..)?.first_chunk()?);
            let types = [OF_PART, INHERITED_BY].into_iter().filter(|flag| present & flag != 0).count();
            let sid = entry.get(8 + types * GUID..)?;
            match kind {
                5 | 6 if present & OF_PART == 0 && has(entry, RETRIEVE)? => rule(kind == 5, sid)?,
                _ => Ace::Unknown(Sid::first(sid).map(|(sid, _)| sid)),
            }
        }
        _ => Ace::Unknown(None),
    })
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    use proptest::prelude::*;

    use super::*;

    fn sid(text: &str) -> Sid {
        Sid::parse(text).unwrap()
    }

    /// The rights that `New-ADServiceAccount` grants: every right of the directory.
    const ALL: u32 = 0x000F_01FF;

    /// The security descriptor that lets these retrieve the password, as `New-ADServiceAccount` makes it.
    fn allowing(principals: &[Sid]) -> Vec<u8> {
        const ADMINISTRATORS: [u8; 16] = [1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 32, 2, 0, 0];
        // Where the owner and the list are.
        const OWNER: u32 = 20;
        const LIST: u32 = OWNER + 16;
        let entries: Vec<Vec<u8>> = principals.iter().map(allowed).collect();
        let size = 8 + entries.iter().map(Vec::len).sum::<usize>();
        let mut bytes = Vec::new();
        // Revision, and the control: self-relative, with a list.
        bytes.extend([1, 0, 0x04, 0x80]);
        bytes.extend(OWNER.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(LIST.to_le_bytes());
        bytes.extend(ADMINISTRATORS);
        bytes.extend([4, 0]);
        bytes.extend(length(size));
        bytes.extend(length(entries.len()));
        bytes.extend([0; 2]);
        bytes.extend(entries.concat());
        bytes
    }

    fn allowed(to: &Sid) -> Vec<u8> {
        let sid = to.to_bytes();
        let mut entry = vec![0, 0];
        entry.extend(length(8 + sid.len()));
        entry.extend(ALL.to_le_bytes());
        entry.extend(sid);
        entry
    }

    #[expect(clippy::cast_possible_truncation, reason = "a short list of typed principals")]
    fn length(length: usize) -> [u8; 2] {
        (length as u16).to_le_bytes()
    }

    #[test]
    fn what_a_domain_controller_stores_is_read() {
        // Made by Samba 4.22: the administrator, and a group.
        let stored = "AQAEgBQAAAAAAAAAAAAAACQAAAABAgAAAAAABSAAAAAgAgAABABQAAIAAAAAACQA/wEPAAEFAAAAAAAFFQAAANEwlVptpigazT1pPPQBAAAAACQA/wEPAAEFAAAAAAAFFQAAANEwlVptpigazT1pPE8EAAA=";
        let principals =
            ["S-1-5-21-1519726801-438871661-1013530061-500", "S-1-5-21-1519726801-438871661-1013530061-1103"].map(sid);
        let stored = BASE64_STANDARD.decode(stored).unwrap();
        let read = Retrieval::read(&stored);
        assert_eq!(read.principals().collect::<Vec<_>>(), principals.iter().collect::<Vec<_>>());
        assert_eq!(allowing(&principals), stored);
        let token = |text| HashSet::from([sid(text)]);
        assert!(read.deciding(&token("S-1-5-21-1519726801-438871661-1013530061-1103")).unwrap().allows);
        assert_eq!(read.deciding(&token("S-1-5-21-1519726801-438871661-1013530061-1104")), None);
    }

    #[test]
    fn the_first_entry_that_fits_decides() {
        let (one, other) = (sid("S-1-5-21-1-2-3-1"), sid("S-1-5-21-1-2-3-2"));
        let rules = vec![AccessRule { allows: false, to: one.clone() }, AccessRule { allows: true, to: other.clone() }];
        let retrieval = Retrieval::listed(rules);
        assert!(!retrieval.deciding(&HashSet::from([one, other.clone()])).unwrap().allows);
        assert!(retrieval.deciding(&HashSet::from([other])).unwrap().allows);
        assert_eq!(Retrieval::listed(Vec::new()).deciding(&HashSet::new()), None);
        // No list at all.
        assert_eq!(
            Retrieval::read(&[1, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            Retrieval::Everybody
        );
    }

    /// A descriptor with one entry of this kind, whose body follows its header.
    fn with(kind: u8, flags: u8, body: &[u8]) -> Retrieval {
        let mut bytes = allowing(&[]);
        bytes.splice(38..42, [length(8 + 4 + body.len()), length(1)].concat());
        bytes.extend([kind, flags]);
        bytes.extend(length(4 + body.len()));
        bytes.extend(body);
        Retrieval::read(&bytes)
    }

    #[test]
    fn no_entry_that_may_give_or_take_the_right_is_left_out() {
        const READ: [u8; 4] = [0x10, 0, 0, 0];
        let someone = sid("S-1-5-21-1-2-3-1103");
        let bytes = someone.to_bytes();
        let plain = |mask: [u8; 4]| [mask.as_slice(), &bytes].concat();
        let of_object = |mask: [u8; 4], present: u8| {
            let types = [7; 16].repeat(usize::try_from(present.count_ones()).unwrap());
            [mask.as_slice(), &[present, 0, 0, 0], &types, &bytes].concat()
        };
        let rule = |allows| Retrieval::listed(vec![AccessRule { allows, to: someone.clone() }]);
        let unknown =
            |kind, to| Retrieval::Listed { rules: Vec::new(), unknown: BTreeSet::from([Unknown { kind, to }]) };
        let nothing = Retrieval::listed(Vec::new());
        for (kind, body, wanted) in [
            (0, plain(READ), rule(true)),
            (1, plain(READ), rule(false)),
            // Without an object type they are as 0 and 1, also where only some objects inherit them.
            (5, of_object(READ, 0), rule(true)),
            (6, of_object(READ, 2), rule(false)),
            (5, of_object(READ, 1), unknown(5, Some(someone.clone()))),
            (6, of_object(READ, 3), unknown(6, Some(someone.clone()))),
            (9, [plain(READ), b"artx".to_vec()].concat(), unknown(9, Some(someone.clone()))),
            (0xA, plain(READ), unknown(0xA, Some(someone.clone()))),
            (0xB, of_object(READ, 0), unknown(0xB, Some(someone.clone()))),
            (0xC, of_object(READ, 3), unknown(0xC, Some(someone.clone()))),
            (4, plain(READ), unknown(4, None)),
            (0x14, Vec::new(), unknown(0x14, None)),
            (0xFF, plain([0; 4]), unknown(0xFF, None)),
            // Broken, in a place that is needed.
            (9, READ.to_vec(), unknown(9, None)),
            (0, READ.to_vec(), Retrieval::Unreadable),
            (5, READ.to_vec(), Retrieval::Unreadable),
            // Other rights, and what is for audits and labels.
            (0, plain([0x20, 0, 0, 0]), nothing.clone()),
            (9, plain([0x20, 0, 0, 0]), nothing.clone()),
            (0xB, of_object([0x20, 0, 0, 0], 1), nothing.clone()),
            (2, plain(READ), nothing.clone()),
            (0x11, plain(READ), nothing.clone()),
        ] {
            assert_eq!(with(kind, 0, &body), wanted, "{kind:#x} {body:?}");
        }
        assert_eq!(with(9, 0x8, &plain(READ)), nothing);
        // Generic rights may hold it.
        assert_eq!(with(0, 0, &plain([0, 0, 0, 0x10])), unknown(0, Some(someone.clone())));
        assert_eq!(with(5, 0, &of_object([0, 0, 0, 0x80], 0)), unknown(5, Some(someone.clone())));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Retrieval::read(&bytes);
        }

        #[test]
        fn a_descriptor_that_is_cut_is_refused(cut in 1usize..80) {
            let whole = allowing(&[sid("S-1-5-21-1-2-3-1103")]);
            prop_assert_eq!(Retrieval::read(whole.get(..whole.len().saturating_sub(cut)).unwrap()), Retrieval::Unreadable);
        }
    }
}
