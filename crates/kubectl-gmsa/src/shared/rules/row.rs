//! A row of the table. A test leaves single rows out, to show that a message needs each of them.

/// A row, as it takes part in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageRow {
    /// Words, by their index in the list of all patterns.
    Words(usize),
    /// A status of a rule.
    Code(&'static str, &'static str),
    /// An event, by its source and number.
    Event(&'static str, u32),
    Exit(u32),
}

/// Whether the row is in the table.
#[cfg(not(test))]
pub const fn is_in(_row: MessageRow) -> bool {
    true
}

#[cfg(test)]
pub use of_test::{all, is_in, without};

#[cfg(test)]
mod of_test {
    use std::{
        cell::{Cell, RefCell},
        collections::{BTreeMap, BTreeSet},
    };

    use super::MessageRow;
    use crate::shared::rules::{Words, no_faults::NO_FAULTS, reading, words};

    thread_local! {
        static ASKED: RefCell<BTreeSet<MessageRow>> = const { RefCell::new(BTreeSet::new()) };
        static LEFT_OUT: Cell<Option<MessageRow>> = const { Cell::new(None) };
    }

    /// Records the row: only rows that a text has are asked for.
    pub fn is_in(row: MessageRow) -> bool {
        ASKED.with_borrow_mut(|asked| asked.insert(row));
        LEFT_OUT.get() != Some(row)
    }

    /// What `answer` gives without this row, and the rows that it asked for.
    pub fn without<A>(row: Option<MessageRow>, answer: impl FnOnce() -> A) -> (A, BTreeSet<MessageRow>) {
        ASKED.take();
        LEFT_OUT.set(row);
        let answer = answer();
        LEFT_OUT.set(None);
        (answer, ASKED.take())
    }

    /// Every row, with its words.
    pub fn all() -> BTreeMap<MessageRow, String> {
        let mut all: BTreeMap<MessageRow, String> = reading::patterns()
            .enumerate()
            .map(|(index, pattern)| (MessageRow::Words(index), format!("{}: {}", pattern.says.kind(), pattern.words)))
            .collect();
        let of_events = NO_FAULTS.iter().flat_map(|(words, _)| words.iter().copied());
        let of_rules = words().map(|(rule, words)| (rule.id, words));
        for (rule, words) in of_rules.chain(of_events.map(|words| ("", words))) {
            let rows: Vec<MessageRow> = match words {
                Words::Codes(names) | Words::StartCodes(names) | Words::RunningCodes(names) => {
                    names.iter().map(|name| MessageRow::Code(rule, name)).collect()
                }
                Words::Event(source, numbers) => {
                    numbers.iter().map(|number| MessageRow::Event(source, *number)).collect()
                }
                Words::Exit(codes) => codes.iter().map(|code| MessageRow::Exit(*code)).collect(),
                _ => Vec::new(),
            };
            all.extend(rows.into_iter().map(|row| (row, format!("{rule}: {row:?}"))));
        }
        all
    }
}
