//! The pure core: credential specs, and the webhook's decisions about reviews.
//!
//! Invariants: nothing in here does I/O, reads a clock, draws random numbers or knows a runtime; the crate's
//! dependencies and its `clippy.toml` help to keep it so. Random host names come in as values.
//!
//! | module | what it decides or holds |
//! |---|---|
//! | `json` | how JSON from outside is read, within bounds |
//! | [`quote`] | how a string from outside is put into a message: the only place that cuts and escapes |
//! | [`duration`] | how a duration is written, in a flag or in `?timeout=` |
//! | [`pointer`] | how a JSON Pointer is written, also for people |
//! | [`causes`] | an error and its causes, in one line |
//! | [`diagnostic`] | one thing that is wrong, and the table of rules |
//! | [`credspec`] | a credential spec: its name, its contents text, the comparison, the linter, the generator |
//! | [`node_affinity`] | which nodes a pod's required node affinity allows |
//! | [`admission`] | a review: parsed, decided, answered |
//!
//! [`pointer`]: mod@pointer

/// An enum with a word for each variant, on the wire or in output, from one table.
#[macro_export]
macro_rules! word_enum {
    ($(#[$about:meta])* pub enum $name:ident {
        $($(#[$variant_about:meta])* $variant:ident = $word:literal,)+
    }) => {
        $(#[$about])*
        pub enum $name {
            $($(#[$variant_about])* $variant,)+
        }

        impl $name {
            /// Every variant, in order.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word for the variant.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

pub mod admission;
pub mod causes;
pub mod credspec;
pub mod diagnostic;
pub mod duration;
pub mod json;
pub mod node_affinity;
pub mod pointer;
pub mod quote;
