//! Access to a cluster for the server and the plugin: through its API server, or from manifests.
//!
//! Each answer has two sources: [`resolver`] finds credential specs by live reads or in manifests, [`authorizer`] says who
//! may use them by access reviews or by the RBAC objects of manifests. The admission core asks neither: it gets the answers
//! as facts.
//!
//! | module | what it decides or holds |
//! |---|---|
//! | [`apiserver`] | a call: its limits, its one retry, its errors |
//! | [`body`], [`large_memory`] | a body, read within memory; how its users share that |
//! | [`resolver`], [`authorizer`] | the two facts of a decision, each live or from manifests; the server's `sources.rs` picks one of both, `serve.rs` of gmsa-tickets the live ones |
//! | [`manifests`] | YAML and JSON, from files and folders, with the place of every value |
//! | [`standalone`] | both facts from a folder that is read once |
//! | [`crd`], [`kubernetes_version`], [`probe`] | the text and the revision of the CRD; the version that an API server names; a review that shows that a webhook works |

pub mod apiserver;
pub mod authorizer;
pub mod body;
pub mod crd;
pub mod kubernetes_version;
pub mod large_memory;
pub mod manifests;
pub mod probe;
pub mod resolver;
pub mod standalone;
