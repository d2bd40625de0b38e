//! The server's commands beside `serve`: they print a report and exit with 0, or with 1 where the report names problems. `main.rs` has 2 for what failed.

pub mod certs;
pub mod crd;
pub mod dry_run;
