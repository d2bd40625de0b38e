//! Colour on a terminal.

use std::{env, io::IsTerminal as _};

use gmsa_core::diagnostic::Severity;

#[derive(Clone, Copy, Debug)]
pub struct Style {
    colour: bool,
    /// The width of the terminal, if known.
    pub(super) columns: Option<usize>,
}

impl Style {
    pub const PLAIN: Self = Self { colour: false, columns: None };

    /// Colour if standard output is a terminal, unless `NO_COLOR` is set. A Windows console has to be switched to colour; if that fails,
    /// the text is plain.
    pub fn of_terminal() -> Self {
        let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        let wanted = std::io::stdout().is_terminal() && !set("NO_COLOR") && !dumb;
        let columns = if std::io::stdout().is_terminal() { columns() } else { None };
        Self { columns, colour: wanted && anstyle_query::windows::enable_ansi_colors() != Some(false) }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// The text in the colour of the severity; `None` for a pass.
    pub(super) fn level(self, severity: Option<Severity>, text: &str) -> String {
        let code = match severity {
            None => "32",
            Some(Severity::Note) => "36",
            Some(Severity::Warning) => "33",
            Some(Severity::Error) => "31",
        };
        self.paint(code, text)
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }
}

/// The width of the terminal, or of an exported `COLUMNS`.
fn columns() -> Option<usize> {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(std::io::stdout())
        && size.ws_col > 0
    {
        return Some(size.ws_col.into());
    }
    env::var("COLUMNS").ok()?.parse().ok()
}
