//! What was measured, beside what it should be.

use std::{collections::BTreeMap, fmt};

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
    pub fn aim(self, aim: impl fmt::Display, holds: bool) -> Self {
        Self { aim: Some((aim.to_string(), holds)), ..self }
    }

    /// A number with this many digits, and the largest that it should be.
    pub fn at_most(number: f64, digits: usize, aim: f64, unit: &str) -> Self {
        Self::new(format!("{number:.digits$}{unit}")).aim(aim, number <= aim)
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

/// How many times each answer came.
#[derive(Default)]
pub struct Words(BTreeMap<String, usize>);

impl Extend<String> for Words {
    fn extend<T: IntoIterator<Item = String>>(&mut self, words: T) {
        words.into_iter().for_each(|word| *self.0.entry(word).or_default() += 1);
    }
}

impl Words {
    pub fn are_all(&self, word: &str) -> bool {
        self.0.keys().all(|seen| seen == word)
    }

    pub fn figure(&self) -> Figure {
        Figure::new(self.to_string())
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.0.iter().map(|(word, times)| format!("{times} × {word}")).collect();
        f.write_str(&words.join(", "))
    }
}
