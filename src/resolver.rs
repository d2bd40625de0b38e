//! Finding credential specs in a cluster: a cache over the live reads of [`gmsa_cluster::resolver`].

pub mod cache;
