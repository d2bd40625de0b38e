//! What a logon at a simulated KDC ends with, whole.

use gmsa_kerberos::EncryptionType;
use gmsa_test_support::kdc::{Conduct, Kdc, Lie};
use time::Duration;

use super::*;

const PASSWORD: [u8; 256] = [0xD8; 256];

async fn kdc() -> Kdc {
    let kdc = Kdc::start("contoso.com").await;
    kdc.account("WebApp1$", &Password::managed(&PASSWORD), EncryptionType::Aes256);
    kdc
}

async fn printed(kdc: &Kdc) -> String {
    let name = "CN=WebApp1,CN=Managed Service Accounts,DC=contoso,DC=com".to_owned();
    let account = Account { sam: "WebApp1".to_owned(), name, ..Account::default() };
    match logon(kdc.address, &account, "contoso.com", &Password::managed(&PASSWORD)).await {
        Ok(Check { result: Ok(text), .. }) => text,
        Ok(Check { result: Err(found), .. }) => format!("{} [{}] -> {}", found.message, found.rule.id, found.remedy()),
        Err(error) => format!("error: {}", causes::chain(&*error)),
    }
}

#[tokio::test]
async fn a_ticket_is_printed_with_its_end_and_its_encryption() {
    let kdc = kdc().await;
    let shown = printed(&kdc).await;
    let (start, end) = shown.split_once(" until ").unwrap();
    assert_eq!(start, "WebApp1$@CONTOSO.COM can log on: 127.0.0.1 gave a ticket with aes256-cts-hmac-sha1-96");
    // 2026-11-26 01:00:00 UTC
    let pattern: String = end.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(pattern, "0000-00-00 00:00:00 UTC");
    assert_eq!(kdc.asked(), ["AS WebApp1$", "AS+ WebApp1$"], "a password is tried once");
}

const REFUSED: &str = "account WebApp1 cannot log on: ";

#[tokio::test]
async fn each_refusal_of_a_kdc_is_a_rule() {
    let kdc = kdc().await;
    let [disabled, expired, locked, must_change, workstation] =
        [0xC000_0072, 0xC000_0193, 0xC000_0234, 0xC000_0224, 0xC000_0070].map(Some);
    for (conduct, why, remedy) in [
        (
            Conduct::RefuseProven(18, disabled),
            "it is disabled (127.0.0.1: Kerberos code 18, status 0xc0000072) [account-disabled]",
            "Enable it: `Set-ADServiceAccount 'WebApp1' -Enabled $true`.",
        ),
        (
            Conduct::RefuseProven(18, expired),
            "it has expired (127.0.0.1: Kerberos code 18, status 0xc0000193) [account-expired]",
            "Remove the date: `Clear-ADAccountExpiration -Identity 'WebApp1$'`.",
        ),
        (
            Conduct::RefuseProven(18, locked),
            "it is locked out (127.0.0.1: Kerberos code 18, status 0xc0000234) [account-locked]",
            "Unlock it: `Unlock-ADAccount -Identity 'WebApp1$'`. Domain controllers generate its password: an attacker tries to guess it, or a node uses an old one.",
        ),
        (
            Conduct::RefuseProven(18, None),
            "it is disabled, locked out or has expired (127.0.0.1: Kerberos code 18) [account-revoked]",
            "`Get-ADServiceAccount 'WebApp1' -Properties Enabled,LockedOut,AccountExpirationDate` says it. Then `Enable-ADAccount`, `Unlock-ADAccount` or `Clear-ADAccountExpiration`.",
        ),
        (
            Conduct::RefuseProven(23, must_change),
            "its password has expired, or must be changed first (127.0.0.1: Kerberos code 23, status 0xc0000224) [password-expired]",
            "Domain controllers change the password of a gMSA themselves. `Get-ADServiceAccount`, with `-Properties PasswordLastSet,PasswordExpired`, says when they did.",
        ),
        (
            Conduct::Refuse(24, None),
            "the password that the directory gave is wrong (127.0.0.1: Kerberos code 24) [logon-denied]",
            "The domain controllers may not agree yet on a password that has changed: try again in some minutes. `repadmin /showrepl` lists what is not replicated.",
        ),
        (
            Conduct::Refuse(6, None),
            "the domain controller does not know it (127.0.0.1: Kerberos code 6) [account-unknown]",
            "`Get-ADServiceAccount 'WebApp1' -Server contoso.com` shows whether it is there: correct `MachineAccountName` in the credential spec, or create the account.",
        ),
        (
            Conduct::Refuse(68, None),
            "the domain controller is of another realm (127.0.0.1: Kerberos code 68) [kerberos-configuration]",
            "Name a domain controller of the account's own domain: `--directory ldaps://HOST`.",
        ),
        (
            Conduct::Refuse(14, None),
            "the domain controller gives it no ticket with AES (127.0.0.1: Kerberos code 14) [ticket-encryption]",
            "`Set-ADServiceAccount 'WebApp1' -KerberosEncryptionType AES128,AES256`, and compare with the policy of the domain controllers.",
        ),
        (
            Conduct::Rc4,
            "the domain holds no AES key of it (127.0.0.1) [ticket-encryption]",
            "`Set-ADServiceAccount 'WebApp1' -KerberosEncryptionType AES128,AES256`, and compare with the policy of the domain controllers.",
        ),
        (
            Conduct::Refuse(12, workstation),
            "a policy of the domain refuses it, or requires armored requests (FAST), which this is not (127.0.0.1: Kerberos code 12, status 0xc0000070) [logon-restricted]",
            "Look at authentication policies and silos, and at the group policy `KDC support for claims, compound authentication and Kerberos armoring`: with `Fail unarmored authentication requests`, members of the domain alone can log on.",
        ),
        (
            Conduct::Refuse(29, None),
            "the domain controller is not available (127.0.0.1: Kerberos code 29) [kdc-unreachable]",
            "The security log of the domain controller says more: events 4768 and 4771.",
        ),
        (
            Conduct::Refuse(60, None),
            "the domain controller refuses it (127.0.0.1: Kerberos code 60) [logon-denied]",
            "The security log of the domain controller says more: events 4768 and 4771.",
        ),
    ] {
        kdc.conduct(conduct.clone());
        assert_eq!(printed(&kdc).await, format!("{REFUSED}{why} -> {remedy}"), "{conduct:?}");
    }
}

#[tokio::test]
async fn a_clock_that_is_too_far_is_printed_with_the_difference() {
    let kdc = kdc().await;
    for (ahead, expected) in [
        (Duration::seconds(-325), "5 minutes behind"),
        (Duration::minutes(10), "10 minutes ahead of"),
        (Duration::hours(5), "5 hours ahead of"),
        (Duration::days(3) + Duration::hours(1), "3 days ahead of"),
    ] {
        kdc.clock(ahead);
        let expected = format!(
            "{REFUSED}the clock of the domain controller is {expected} that of this machine (127.0.0.1: Kerberos code 37) [directory-clock] \
             -> Compare both with a time server. If the domain controller is wrong, run `w32tm /resync` on it."
        );
        assert_eq!(printed(&kdc).await, expected);
    }
}

#[tokio::test]
async fn a_kdc_that_does_not_answer_is_one_thing_and_one_that_lies_another() {
    let kdc = kdc().await;
    kdc.conduct(Conduct::Close);
    let expected = format!(
        "{REFUSED}the KDC {} ended the connection without an answer [kdc-unreachable] \
         -> Let TCP 88 of the domain controller through from this machine.",
        kdc.address
    );
    assert_eq!(printed(&kdc).await, expected);
    // Nothing is said of the account.
    kdc.conduct(Conduct::Lie(Lie::Nonce));
    assert_eq!(printed(&kdc).await, "error: the answer of the KDC has another nonce than the request");
}
