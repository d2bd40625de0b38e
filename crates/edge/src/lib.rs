//! The parts of a server that `gmsa-webhook` and `gmsa-tickets` share: connections, certificates, the admin port, logs, traces and metrics, and the
//! access reviews that are remembered. It knows no request: a program brings its routes.
//!
//! A program starts in this order; `crates/tickets/src/serve.rs` is the shorter one:
//!
//! ```text
//!  Program ► telemetry::init ► metrics::register ► Served ◄─ tls::files, or tls::self_managed
//!                                                    ▼
//!             limits ► Serving ► server::Listener ► shutdown::Bound::serve, until a signal
//! ```
//!
//! | module | what it decides |
//! |---|---|
//! | [`program`](Program) | the names of a program |
//! | [`limits`] | what a connection may hold, and for how long; how many fit into the open files |
//! | [`memory_limit`] | how much memory the process may take |
//! | [`server`] | which connections are served, which wait, and which are closed |
//! | [`tls`] | which certificate is served, what is appended to a `caBundle`, which clients may connect |
//! | [`admin`] | what `/livez`, `/readyz` and `/metrics` answer |
//! | [`telemetry`] | which lines are logged, in which form, and which spans are exported |
//! | [`metrics`](mod@metrics) | the metrics of connections and certificates, and how a program adds its own |
//! | [`shutdown`] | the order in which a program ends |
//! | [`coalesce`] | which equal questions become one call to the API server |
//! | [`authorization_cache`] | how long an allowed access review is remembered, and when one is made |
//! | [`own_token`] | when a replica is out of service because the API server refuses its token |
//! | [`object`] | which Secret and which webhook configurations are read and written, each by its name |
//! | [`service_names`] | the DNS names in a serving certificate |
//! | [`report`] | how the report of a command is printed |
//! | [`clock`] | how long something has lasted, where a clock may stop or jump |
//!
//! Invariants: nothing here knows what a program decides. What differs between programs is a value: [`Program`] has the names,
//! [`server::Serving`] the numbers and which answers keep a connection. The API server is asked by `gmsa_cluster` alone.

pub mod admin;
pub mod authorization_cache;
pub mod clock;
pub mod coalesce;
pub mod limits;
pub mod memory_limit;
pub mod metrics;
pub mod object;
pub mod own_token;
mod program;
pub mod report;
pub mod server;
pub mod service_names;
pub mod shutdown;
pub mod telemetry;
pub mod tls;

pub use program::Program;
