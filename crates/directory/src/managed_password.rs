//! The password of a group Managed Service Account, as a controller gives it: `MSDS-MANAGEDPASSWORD_BLOB` ([MS-ADTS] 2.2.19).
//!
//! Invariant: what holds it is wiped when dropped, and never printed.

use std::{net::IpAddr, time::Duration};

use tokio::time::sleep;
use zeroize::Zeroizing;

use crate::{
    Directory, Error, LdapSearch,
    account::{Account, PASSWORD},
};

/// In bytes.
const LENGTH: usize = 256;

/// How long before a change a controller gives the next password as the current one: the difference of clocks that Kerberos allows.
const BEFORE_CHANGE: Duration = Duration::from_secs(300);

/// The number of the key in force, which the controller computes.
const KEY_NUMBER: &str = "msDS-KeyVersionNumber";

/// How long before a change a password may be another one by the time that its number is read.
const NEAR: Duration = Duration::from_secs(5);

/// The most reads for a password and its number.
const READS: usize = 3;

pub struct ManagedPassword {
    /// UTF-16, in any bytes.
    pub current: Zeroizing<Vec<u8>>,
    /// The password of the previous interval; `None` in the first interval.
    pub previous: Option<Zeroizing<Vec<u8>>>,
    /// How long until it should be read again.
    pub query: Duration,
    /// How long it certainly stays the current one: a little less than `query`.
    pub unchanged: Duration,
    /// The number of the key in force, where it was asked for.
    pub kvno: Option<u32>,
    /// The controller that gave it. Others can have another one for as long as it takes to replicate a change.
    pub controller: IpAddr,
}

impl ManagedPassword {
    /// Whether the change is so near that the current password may be the next one, which KDCs refuse until the change, and the previous one the
    /// password in force (seen in Samba 4.22).
    pub fn is_before_change(&self) -> bool {
        self.query <= BEFORE_CHANGE
    }

    /// The passwords, in the order in which a KDC probably takes them.
    pub fn candidates(&self) -> impl Iterator<Item = &Zeroizing<Vec<u8>>> {
        let [mut first, mut second] = [Some(&self.current), self.previous.as_ref()];
        if self.is_before_change() {
            std::mem::swap(&mut first, &mut second);
        }
        [first, second].into_iter().flatten()
    }

    /// The passwords, with the numbers of their keys where that of the key in force is known.
    pub fn numbered(&self) -> impl Iterator<Item = (u32, &Zeroizing<Vec<u8>>)> {
        let current = self.kvno.map(|kvno| kvno.saturating_add(self.is_before_change().into()));
        let numbers = current.into_iter().flat_map(|current| [Some(current), current.checked_sub(1)]);
        numbers.flatten().zip([Some(&self.current), self.previous.as_ref()].into_iter().flatten())
    }

    /// `None` if the blob has another form.
    fn read(blob: &[u8], controller: IpAddr) -> Option<Self> {
        const VERSION: u16 = 1;
        let short = |at: usize| Some(u16::from_le_bytes(*blob.get(at..)?.first_chunk()?));
        let long = |at: usize| Some(u32::from_le_bytes(*blob.get(at..)?.first_chunk()?));
        let interval = |at: usize| {
            let ticks = u64::from_le_bytes(*blob.get(usize::from(short(at)?)..)?.first_chunk()?);
            // Units of 100 ns.
            Some(Duration::from_nanos(ticks.saturating_mul(100)))
        };
        let password = |offset: u16| {
            let start = usize::from(offset);
            Some(Zeroizing::new(blob.get(start..start + LENGTH)?.to_vec()))
        };
        if short(0)? != VERSION || usize::try_from(long(4)?) != Ok(blob.len()) {
            return None;
        }
        let previous = match short(10)? {
            0 => None,
            offset => Some(password(offset)?),
        };
        Some(Self {
            current: password(short(8)?)?,
            previous,
            query: interval(12)?,
            unchanged: interval(14)?,
            kvno: None,
            controller,
        })
    }
}

impl Directory {
    /// The password of an account; `None` where the user may not retrieve it, or the controller makes none.
    ///
    /// # Errors
    /// Where the directory cannot be asked, or what it gives has another form.
    pub async fn managed_password(&mut self, account: &Account) -> Result<Option<ManagedPassword>, Error> {
        let search = LdapSearch::object(&account.name, &[PASSWORD]);
        let Some((blob, controller)) = self.secret(&search, PASSWORD).await? else { return Ok(None) };
        let read = ManagedPassword::read(&blob, controller);
        read.map(Some).ok_or_else(|| Error::Incomplete(account.name.clone(), "the password in a known form"))
    }

    /// The same, with the number of the key in force.
    ///
    /// A read can make the change, and one search for both has shown the new password with the old number (seen in Samba 4.22). So the number is read
    /// before and after the password until both agree, and again where the change is near.
    ///
    /// # Errors
    /// As [`Self::managed_password`], and where the number does not settle.
    pub async fn numbered_password(&mut self, account: &Account) -> Result<Option<ManagedPassword>, Error> {
        let mut before = self.key_number(account).await?;
        for _ in 0..READS {
            let Some(password) = self.managed_password(account).await? else { return Ok(None) };
            if password.query < NEAR {
                sleep(password.query + Duration::from_secs(1)).await;
            }
            let after = self.key_number(account).await?;
            if before == after && password.query >= NEAR {
                return Ok(Some(ManagedPassword { kvno: Some(after), ..password }));
            }
            before = after;
        }
        Err(Error::Incomplete(account.name.clone(), "the same number of the key before and after the password"))
    }

    async fn key_number(&mut self, account: &Account) -> Result<u32, Error> {
        let found = self.search(&LdapSearch::object(&account.name, &[KEY_NUMBER])).await?;
        let number = found.first().and_then(|entry| u32::try_from(entry.number(KEY_NUMBER)?).ok());
        number.ok_or_else(|| Error::Incomplete(account.name.clone(), KEY_NUMBER))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// A blob as Samba makes it: both passwords with a null character behind, the intervals aligned.
    fn blob(previous: bool) -> Vec<u8> {
        let (first, second): (u16, u16) = (16, if previous { 16 + 258 } else { 0 });
        let end = 16 + if previous { 516 } else { 258 };
        let aligned = u16::div_ceil(end, 8) * 8;
        let mut blob = [1u16, 0].map(u16::to_le_bytes).concat();
        blob.extend(u32::from(aligned + 16).to_le_bytes());
        for offset in [first, second, aligned, aligned + 8] {
            blob.extend(offset.to_le_bytes());
        }
        blob.extend([&[0xD8; LENGTH][..], &[0, 0]].concat());
        blob.extend(if previous { [&[0x41; LENGTH][..], &[0, 0]].concat() } else { Vec::new() });
        blob.resize(aligned.into(), 0);
        blob.extend([864_000_000_000u64, 861_000_000_000].map(u64::to_le_bytes).concat());
        blob
    }

    #[test]
    fn both_passwords_and_intervals_are_read() {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        for previous in [false, true] {
            let read = ManagedPassword::read(&blob(previous), address).unwrap();
            assert_eq!(*read.current, [0xD8; LENGTH]);
            assert_eq!(read.previous.as_deref(), previous.then_some(&vec![0x41; LENGTH]));
            assert_eq!((read.query, read.unchanged), (Duration::from_secs(86_400), Duration::from_secs(86_100)));
        }
    }

    #[test]
    fn in_the_last_five_minutes_the_previous_password_comes_first() {
        let mut read = ManagedPassword::read(&blob(true), IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        let mut firsts = |seconds| {
            read.query = Duration::from_secs(seconds);
            read.candidates().map(|password| password[0]).collect::<Vec<_>>()
        };
        assert_eq!([firsts(301), firsts(300), firsts(0)], [[0xD8, 0x41], [0x41, 0xD8], [0x41, 0xD8]]);
        read.previous = None;
        assert_eq!(read.candidates().count(), 1);
    }

    #[test]
    fn the_numbers_of_keys_follow_the_order_of_the_passwords() {
        let mut read = ManagedPassword::read(&blob(true), IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        let numbered = |read: &ManagedPassword| read.numbered().map(|(kvno, key)| (kvno, key[0])).collect::<Vec<_>>();
        assert_eq!(numbered(&read), []);
        read.kvno = Some(7);
        assert_eq!(numbered(&read), [(7, 0xD8), (6, 0x41)]);
        // The next password, and the one in force.
        read.query = BEFORE_CHANGE;
        assert_eq!(numbered(&read), [(8, 0xD8), (7, 0x41)]);
        read.previous = None;
        assert_eq!(numbered(&read), [(8, 0xD8)]);
    }

    #[test]
    fn another_form_is_none() {
        let whole = blob(true);
        let read = |blob: &[u8]| ManagedPassword::read(blob, IpAddr::V4(Ipv4Addr::LOCALHOST)).is_some();
        assert!((0..whole.len()).all(|length| !read(&whole[..length])));
        for (at, byte) in [(0, 2), (4, 0), (9, 0xFF), (11, 0xFF), (13, 0xFF), (15, 0xFF)] {
            let mut changed = whole.clone();
            changed[at] = byte;
            assert!(!read(&changed), "{at}");
        }
    }
}
