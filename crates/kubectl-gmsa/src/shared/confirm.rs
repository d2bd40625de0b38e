//! Confirmation before a change that cannot be undone.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anyhow::ensure;
use gmsa_core::quote::one_line;

pub fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks at the terminal; everything but yes is no.
///
/// # Errors
/// Where there is no terminal.
pub fn confirmed(question: &str) -> anyhow::Result<bool> {
    ensure!(has_terminal(), "there is no terminal to ask for confirmation");
    write!(io::stderr(), "{} [y/N] ", one_line(question))?;
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
