//! What is read from a directory: a message, a security descriptor, a SID, an answer of the DNS, or LDIF whose accounts are linted.
//! Nothing panics, and what is written back is the same.

#![no_main]

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
    time::SystemTime,
};

use gmsa_accounts::{ldif, lint, principal::Principals};
use gmsa_directory::{
    Retrieval, Sid, dns,
    ldap::message::{self, LdapAnswer},
};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((kind, bytes)) = input.split_first() else { return };
    match kind % 4 {
        0 => {
            if let Some((_, LdapAnswer::Entry(found))) = message::read(bytes) {
                let held = found.value("cn").map(|value| !value.is_empty());
                let entry = found.entry();
                assert!(
                    entry.is_none_or(|entry| held == Some(entry.value("cn").is_some_and(|value| !value.is_empty())))
                );
            }
        }
        1 => {
            Retrieval::read(bytes);
            if let Some(sid) = Sid::from_bytes(bytes) {
                assert_eq!((Some(&sid), sid.to_bytes().as_slice()), (Sid::parse(&sid.to_string()).as_ref(), bytes));
            }
        }
        2 => drop(dns::hosts(bytes, "contoso.com", "_ldap")),
        _ => {
            let Ok(text) = str::from_utf8(bytes) else { return };
            let Ok(mut directory) = ldif::directory(text) else { return };
            let accounts = ready(directory.accounts(None)).unwrap();
            let principals = ready(Principals::of(&mut directory, &accounts)).unwrap();
            let (services, now) = (["http/web".to_owned()], SystemTime::now().into());
            ready(lint::accounts(&mut directory, &accounts, &principals, &services, now)).unwrap();
        }
    }
});

/// What a future gives that waits for nothing: a printed directory is not asked over a network.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!(),
    }
}
