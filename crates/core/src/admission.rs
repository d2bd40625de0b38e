//! The decision about a review: [`Review::parse`], [`Decision::begin`], [`Undecided::tell`], [`Review::answer`].
//!
//! Pure: no runtime, no client, no files, no clock, no random source. A module uses only those above it, apart from `webhook`,
//! whose [`Settings`] hold the [`TicketSettings`]:
//!
//! | module | what it decides or holds |
//! |---|---|
//! | `operation` | what is being done: CREATE to CONNECT |
//! | `pod`, `pod::placement` | a Pod and its slots (the only walk over them), and where it may land |
//! | `workload` | a Deployment and the like, for the pod template |
//! | `denial`, `allow_reason` | why a request is refused, with message and code, or admitted |
//! | `webhook` | the table of webhooks, and the operator's settings |
//! | `review` | an AdmissionReview, parsed within bounds |
//! | `service_account`, `facts` | who the pod runs as; what was found out |
//! | `patch` | what the answer changes |
//! | `claims` | what the slots ask for, before anything is looked up |
//! | `warning`, `advice` | lines that `kubectl` shows; those about a pod that uses GMSA |
//! | `case` | a review with its claims and facts; what a webhook finds in it |
//! | `preconditions` | what must hold before the slots of a pod are checked: the kind, the number of slots and of names |
//! | `tickets` | what a Linux pod needs for tickets |
//! | `mutate` | `/mutate`: names become contents, Linux pods get the sidecar |
//! | `validate` | `/validate`: names and tokens are authorised, contents are compared |
//! | `validate_workload` | `/validate-workload`: what will happen to the pods |
//! | `validate_credspec` | `/validate-credspec`: what the linter finds |
//! | `decision` | which of them decides, and what becomes of its denials |
//! | `step` | what must be found out first, in the order of the slots: the loop that looks up the facts |
//! | `answer` | the decision as an AdmissionReview |

pub mod advice;
mod allow_reason;
mod answer;
mod case;
mod claims;
mod decision;
pub mod denial;
mod facts;
mod mutate;
pub mod operation;
mod patch;
pub mod pod;
mod preconditions;
pub mod review;
mod service_account;
mod step;
mod tickets;
mod validate;
mod validate_credspec;
mod validate_workload;
pub mod warning;
mod webhook;
pub mod workload;

pub use allow_reason::AllowReason;
pub use decision::{Decision, Verdict};
pub use denial::{Denial, Failure, FailureKind, SlotDenial};
use facts::Facts;
pub use facts::{Known, Source, SpecFact, UseFact};
pub use review::Review;
pub use service_account::ServiceAccount;
pub use step::{Fact, Freshness, Question, Step, Undecided};
pub use tickets::{Resources, Sidecar, SidecarOptions, StartupProbe, TicketSettings};
pub use webhook::{Enforcement, Settings, Webhook};

/// The most distinct credential specs that one pod may name.
pub const MAX_SPECS_PER_POD: usize = 24;

/// The largest JSON Patch in an answer, in bytes before base64.
pub const MAX_PATCH_BYTES: usize = 2 * 1024 * 1024;

/// The most memory that deciding a parsed review and writing its answer takes at any moment: the patch while it grows, or the
/// patch and the answer, which holds it in base64; or the tree of values of a credential spec that is linted or compared.
pub const MOST_BYTES_TO_ANSWER: usize = 7 * 1024 * 1024;

#[cfg(test)]
mod tests;
