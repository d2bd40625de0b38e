//! Code that several commands need. It does not know the commands, and no command imports another.

pub mod admission;
pub mod annotations;
pub mod args;
pub mod configured;
pub mod connection;
pub mod credspecs;
pub mod directory;
pub mod grant;
pub mod input;
pub mod installer;
pub mod kinds;
pub mod live;
pub mod names;
pub mod output;
pub mod pods;
pub mod progress;
pub mod rounds;
pub mod rules;
pub mod spelling;
pub mod unread;
pub mod verification;
pub mod walk;
pub mod webhook;
pub mod windows_build;
pub mod world;

pub use output::{Outcome, print, print_clean};
