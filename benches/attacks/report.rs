//! What was measured, beside what it should be, as a Markdown table.

use std::fmt;

use super::page;

const BEGIN: &str = "<!-- attacks: written by `just attacks --write` -->";
const END: &str = "<!-- attacks: end -->";

/// Something that was measured, and its aim where there is one.
pub struct Figure {
    text: String,
    /// The aim, and whether it holds.
    aim: Option<(String, bool)>,
}

impl Figure {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), aim: None }
    }

    /// With an aim in words.
    #[must_use]
    pub fn aim(self, aim: impl Into<String>, holds: bool) -> Self {
        Self { aim: Some((aim.into(), holds)), ..self }
    }

    /// A number with this many digits, and the largest that it should be.
    pub fn at_most(number: f64, digits: usize, aim: f64, unit: &str) -> Self {
        Self::new(format!("{number:.digits$}{unit}")).aim(format!("{aim}"), number <= aim)
    }

    pub fn holds(&self) -> bool {
        self.aim.as_ref().is_none_or(|(_, holds)| *holds)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match &self.aim {
            None => Ok(()),
            Some((aim, true)) => write!(f, ", aim {aim}"),
            Some((aim, false)) => write!(f, ", **missed: aim {aim}**"),
        }
    }
}

/// One attack.
pub struct Row {
    pub attack: &'static str,
    /// What happened to what was sent.
    pub outcome: Vec<Figure>,
    pub peak: Figure,
    /// Resident after a while.
    pub after: Figure,
    pub cpu: Figure,
    pub bystander: Figure,
}

impl Row {
    pub fn holds(&self) -> bool {
        let rest = [&self.peak, &self.after, &self.cpu, &self.bystander];
        self.outcome.iter().chain(rest).all(Figure::holds)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attack, outcome, peak, after, cpu, bystander } = self;
        let outcome: Vec<String> = outcome.iter().map(Figure::to_string).collect();
        write!(f, "| {attack} | {} | {peak} | {after} | {cpu} | {bystander} |", outcome.join("; "))
    }
}

/// All of it.
pub struct Report {
    pub rows: Vec<Row>,
    /// Whether the server was in a memory cgroup.
    pub limited: bool,
    /// Seconds between the end of an attack and the last look at the memory.
    pub rest: u64,
    /// MiB of the limit.
    pub limit: u64,
}

impl Report {
    pub fn holds(&self) -> bool {
        self.rows.iter().all(Row::holds)
    }

    /// Puts it into docs/measurements.md.
    pub fn write(&self) {
        page::write("docs/measurements.md", BEGIN, END, &self.to_string());
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, limited, rest, limit } = self;
        writeln!(
            f,
            "| Attack | What happened | Peak, MiB | Resident {rest} s after, MiB | CPU, s | Slowest answer to the bystander, ms |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for row in rows {
            writeln!(f, "{row}")?;
        }
        if *limited {
            writeln!(
                f,
                "\nEach against a new process in a memory cgroup of {limit} MiB; the peak is the larger of the group's and the resident memory's."
            )?;
        } else {
            writeln!(
                f,
                "\nEach against a new process. **This system gives no memory cgroup**: nothing limits the process, and the peak is that of its resident memory."
            )?;
        }
        writeln!(
            f,
            "Client, attack and server share the machine. The CPU time is the server's during the attack, the bystander's requests included.\n"
        )?;
        write!(f, "- Machine: {}.", page::machine())
    }
}
