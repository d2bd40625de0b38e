//! An error and its causes, in one line.

use std::error::Error;

/// The error and what it comes from, down to the first cause. Some libraries repeat a cause in their own message: it is given once.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let cause = error.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
        next = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::{fmt, io};

    use super::*;

    #[derive(Debug)]
    struct Outer(&'static str, io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.1)
        }
    }

    #[test]
    fn each_cause_is_given_once() {
        let because = |text| chain(&Outer(text, io::Error::other("the disk is gone")));
        assert_eq!(because("cannot read a"), "cannot read a: the disk is gone");
        assert_eq!(because("cannot read a: the disk is gone"), "cannot read a: the disk is gone");
        assert_eq!(because(""), "the disk is gone");
    }
}
