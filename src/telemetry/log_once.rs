//! A problem is logged once while it lasts, not on every attempt.

/// The problem that was logged last, until it is resolved.
#[derive(Clone, Debug, Default)]
pub struct LogOnce(Option<String>);

impl LogOnce {
    /// Whether `reason` differs from the problem that was logged last. The caller logs it only then.
    #[must_use]
    pub fn is_new(&mut self, reason: &str) -> bool {
        let new = self.reason() != Some(reason);
        if new {
            self.0 = Some(reason.to_owned());
        }
        new
    }

    /// Ends the problem. Returns whether there was one.
    pub fn resolve(&mut self) -> bool {
        self.0.take().is_some()
    }

    /// The problem that lasts, if any.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_new_once_until_it_changes_or_is_resolved() {
        let mut problem = LogOnce::default();
        assert!(!problem.resolve());
        assert_eq!(["a", "a", "b", "a"].map(|reason| problem.is_new(reason)), [true, false, true, true]);
        assert_eq!(problem.reason(), Some("a"));
        assert!(problem.resolve());
        assert_eq!(problem.reason(), None);
        assert!(problem.is_new("a"));
    }
}
