//! An error and its causes, in one line.

use std::{error::Error, fmt};

/// The start of a link to a library's manual, which does not help an operator.
const MANUAL: &str = "https://docs.rs/";

/// The error and what it comes from, down to the first cause. Some libraries repeat a cause in their own message: it is given once.
pub fn chain(error: &dyn Error) -> String {
    let mut text = own(error);
    let mut next = error.source();
    while let Some(error) = next {
        let cause = own(error);
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
        next = error.source();
    }
    text
}

/// The error without its causes, and without the address of a manual.
pub fn own(error: &(impl fmt::Display + ?Sized)) -> String {
    let mut text = error.to_string();
    while let Some((before, after)) = text.split_once(MANUAL) {
        let after = after.trim_start_matches(|c: char| !c.is_whitespace());
        text = format!("{}{after}", before.trim_end_matches([' ', ':']));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

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
    #[test]
    fn no_manual_of_a_library_is_quoted() {
        // What rustls says of a connection that ends without close_notify.
        let rustls = "peer closed connection without sending TLS close_notify: \
                      https://docs.rs/rustls/latest/rustls/manual/_03_howto/index.html#unexpected-eof";
        let cut = |text| Outer(text, io::Error::new(io::ErrorKind::UnexpectedEof, rustls));
        let plain = "peer closed connection without sending TLS close_notify";
        assert_eq!(chain(&cut("connection error")), format!("connection error: {plain}"));
        assert_eq!(chain(&cut(rustls)), plain);
        assert_eq!(own("a https://docs.rs/b and c: https://docs.rs/d"), "a and c");
    }
}
