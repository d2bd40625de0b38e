//! One module for each command. Commands do not import each other: code that two of them need is in `shared`.

pub mod account;
pub mod can;
pub mod check;
pub mod complete;
pub mod credspec;
pub mod dns;
pub mod doctor;
pub mod explain;
pub mod grant;
pub mod outdated;
pub mod probe;
pub mod reference;
pub mod verify;
pub mod version;
pub mod who_can;
pub mod why;
