//! A problem is logged once while it lasts, not on every attempt.

use std::error::Error;

use super::chain;

/// The problem that was logged last, until it is resolved.
#[derive(Clone, Debug, Default)]
pub struct LogOnce(Option<String>);

impl LogOnce {
    /// The value of an attempt, which ends the problem; a failure is logged as by [`fail`](Self::fail).
    pub fn check<T>(&mut self, attempt: Result<T, impl Error>, log: impl FnOnce(&str)) -> Option<T> {
        match attempt {
            Ok(value) => {
                self.resolve();
                Some(value)
            }
            Err(error) => {
                self.fail(&error, log);
                None
            }
        }
    }

    /// Logs an error by `log`, unless it equals the last logged one. Returns whether it differs.
    pub fn fail(&mut self, error: &dyn Error, log: impl FnOnce(&str)) -> bool {
        let reason = chain(error);
        let is_new = self.reason() != Some(&reason);
        if is_new {
            log(&reason);
            self.0 = Some(reason);
        }
        is_new
    }

    /// Ends the problem. Returns whether there was one.
    pub fn resolve(&mut self) -> bool {
        self.0.take().is_some()
    }

    /// The problem that lasts, if any.
    pub fn reason(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INVALID: &str = "invalid digit found in string";
    const EMPTY: &str = "cannot parse integer from empty string";

    #[test]
    fn a_problem_is_logged_once_until_it_changes_or_is_resolved() {
        let mut problem = LogOnce::default();
        let mut logged = Vec::new();
        let mut check = |text: &str| problem.check(text.parse::<u8>(), |reason| logged.push(reason.to_owned()));
        assert_eq!(
            ["1", "x", "y", "", "x", "2", "x"].map(&mut check),
            [Some(1), None, None, None, None, Some(2), None]
        );
        assert_eq!(logged, [INVALID, EMPTY, INVALID, INVALID]);
        assert_eq!(problem.reason(), Some(INVALID));
        assert!(problem.resolve());
        assert_eq!(problem.reason(), None);
        assert!(!problem.resolve());
    }
}
