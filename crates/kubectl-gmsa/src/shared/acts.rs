//! What makes a user act as a pod that somebody else created.

use gmsa_cluster::authorizer::rbac::Action;

/// What makes a user act as a pod that runs, or get its tickets: a word of `kubectl` for it, the verb and the resource.
pub const ACTS: [(&str, &str, &str); 9] = [
    ("exec", "create", "pods/exec"),
    ("exec", "get", "pods/exec"),
    ("attach", "create", "pods/attach"),
    ("attach", "get", "pods/attach"),
    ("patch", "patch", "pods"),
    ("patch", "update", "pods"),
    ("debug", "patch", "pods/ephemeralcontainers"),
    ("debug", "update", "pods/ephemeralcontainers"),
    ("token", "create", "serviceaccounts/token"),
];

/// Each as RBAC knows it, with its word.
pub fn acts() -> impl Iterator<Item = (&'static str, Action<'static>)> {
    ACTS.into_iter().map(|(word, verb, resource)| (word, Action { verb, group: "", resource, name: None }))
}
