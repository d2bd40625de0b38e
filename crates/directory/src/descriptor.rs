//! Security descriptors: `msDS-GroupMSAMembership` holds who may retrieve the password of an account.

use std::collections::HashSet;

use crate::Sid;

/// `READ_PROPERTY`, which retrieving the password needs ([MS-ADTS] 3.1.1.4.5.39), and the two generic rights that hold it.
const RETRIEVE: u32 = 0x10 | 0x8000_0000 | 0x1000_0000;

/// What `New-ADServiceAccount` grants: every right of the directory.
const ALL: u32 = 0x000F_01FF;

/// An entry of the list, in its order: the first one that fits decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub allows: bool,
    pub to: Sid,
}

/// Who may retrieve a managed password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retrieval {
    /// There is no list, which allows it to everybody ([MS-DTYP] 2.4.6).
    Everybody,
    Listed(Vec<Rule>),
    /// It is no security descriptor.
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
        let list = descriptor.get(offset..)?;
        let count = u16::from_le_bytes(*list.get(4..)?.first_chunk()?);
        let mut rest = list.get(8..)?;
        let mut rules = Vec::new();
        for _ in 0..count {
            let [kind, flags, low, high] = *rest.first_chunk()?;
            let (entry, after) = rest.split_at_checked(usize::from(u16::from_le_bytes([low, high])).max(4))?;
            read_rule(kind, flags, entry.get(4..)?, &mut rules)?;
            rest = after;
        }
        Some(Self::Listed(rules))
    }

    /// Whether a user with these SIDs, its own and those of its groups, may.
    pub fn allows(&self, token: &HashSet<Sid>) -> bool {
        match self {
            Self::Everybody => true,
            Self::Unreadable => false,
            Self::Listed(rules) => rules.iter().find(|rule| token.contains(&rule.to)).is_some_and(|rule| rule.allows),
        }
    }

    /// Those to whom it is allowed.
    pub fn principals(&self) -> impl Iterator<Item = &Sid> {
        let rules = match self {
            Self::Everybody | Self::Unreadable => &[],
            Self::Listed(rules) => rules.as_slice(),
        };
        rules.iter().filter(|rule| rule.allows).map(|rule| &rule.to)
    }
}

/// Adds what an entry says of retrieving; `None` where it is broken.
fn read_rule(kind: u8, flags: u8, entry: &[u8], rules: &mut Vec<Rule>) -> Option<()> {
    const INHERIT_ONLY: u8 = 0x8;
    // The other kinds are for one property or kind of object, for audits, or for claims ([MS-DTYP] 2.4.4.1).
    if kind <= 1 {
        let (mask, rest) = entry.split_first_chunk::<4>()?;
        let (to, _) = Sid::first(rest)?;
        if u32::from_le_bytes(*mask) & RETRIEVE != 0 && flags & INHERIT_ONLY == 0 {
            rules.push(Rule { allows: kind == 0, to });
        }
    }
    Some(())
}

/// The security descriptor that lets these retrieve the password, as `New-ADServiceAccount` makes it.
pub fn allowing(principals: &[Sid]) -> Vec<u8> {
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

#[expect(clippy::cast_possible_truncation, reason = "a list of the principals that somebody typed")]
fn length(length: usize) -> [u8; 2] {
    (length as u16).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    use proptest::prelude::*;

    use super::*;

    fn sid(text: &str) -> Sid {
        Sid::parse(text).unwrap()
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
        assert!(read.allows(&token("S-1-5-21-1519726801-438871661-1013530061-1103")));
        assert!(!read.allows(&token("S-1-5-21-1519726801-438871661-1013530061-1104")));
    }

    #[test]
    fn the_first_entry_that_fits_decides() {
        let (one, other) = (sid("S-1-5-21-1-2-3-1"), sid("S-1-5-21-1-2-3-2"));
        let rules = vec![Rule { allows: false, to: one.clone() }, Rule { allows: true, to: other.clone() }];
        let retrieval = Retrieval::Listed(rules);
        assert!(!retrieval.allows(&HashSet::from([one, other.clone()])));
        assert!(retrieval.allows(&HashSet::from([other])));
        assert!(!Retrieval::Listed(Vec::new()).allows(&HashSet::new()));
        // No list at all.
        assert_eq!(
            Retrieval::read(&[1, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            Retrieval::Everybody
        );
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
