//! The decisions against their contract: golden cases, every combination of one slot, and properties of any pod.

#[path = "../support/hostile.rs"]
mod hostile;
mod oracle;
#[path = "../support/slow_json.rs"]
mod slow_json;

mod exhaustive;
mod golden;
mod properties;
mod world;
