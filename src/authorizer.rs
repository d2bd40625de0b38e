//! Who may use a credential spec: remembered approvals over the access reviews of [`gmsa_cluster::authorizer`].

pub use gmsa_cluster::authorizer::{Authorizer, Verdict, access_review, rbac};

pub mod remembered;
