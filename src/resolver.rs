//! Finding credential specs in a cluster: a cache over the live reads of [`gmsa_cluster::resolver`].

pub use gmsa_cluster::resolver::{Freshness, Resolved, Resolver, live, manifests};

pub mod cache;
