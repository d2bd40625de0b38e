//! The crate against a simulated KDC, honest and hostile, and against picky-krb.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test ends where its surroundings fail"
)]

mod exchange;
mod files;
mod hostile;
#[cfg(target_os = "linux")]
mod memory;
mod oracle;
mod referrals;

use std::time::Duration;

use gmsa_kerberos::{EncryptionType, Error, Kdcs, Password, Principal, PrincipalName, Realm, Ticket};
use gmsa_test_support::kdc::Kdc;

const SERVICE: &str = "ldap/dc1.contoso.com";
const HOUR: Duration = Duration::from_secs(3600);

fn client() -> Principal {
    let realm = Realm::from_domain("contoso.com").unwrap();
    Principal { name: PrincipalName::account("WebApp1$").unwrap(), realm }
}

fn password() -> Password {
    Password::managed(&[0x01, 0xDC, 0, 0, 0x41, 0x00])
}

/// A KDC with an account and a service.
async fn kdc() -> Kdc {
    let kdc = Kdc::start("contoso.com").await;
    kdc.account("WebApp1$", &password(), EncryptionType::Aes256);
    kdc.service(SERVICE);
    kdc
}

/// What a client gets of a KDC that has one second for each answer: the key of the account, a TGT with it, a ticket with that.
async fn tickets(kdc: &Kdc) -> Result<[Ticket; 2], Error> {
    let kdcs = Kdcs::new(vec![kdc.address], Duration::from_secs(1));
    let key = kdcs.key(&client(), &password()).await?;
    let tgt = kdcs.tgt(&client(), &key, HOUR).await?;
    let ticket = kdcs.service_ticket(&tgt, &PrincipalName::service(SERVICE).unwrap(), false, HOUR).await?;
    Ok([tgt, ticket])
}
