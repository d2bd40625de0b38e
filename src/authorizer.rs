//! Who may use a credential spec: remembered approvals over the access reviews of [`gmsa_cluster::authorizer`].

pub mod remembered;
