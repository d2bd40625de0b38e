//! Access to a cluster for the server and the plugin: through its API server, or from manifests.
//!
//! Each answer has two sources: [`resolver`] finds credential specs by live reads or in manifests, [`authorizer`] says who
//! may use them by access reviews or by the RBAC objects of manifests. The admission core asks neither: it gets the answers
//! as facts.

pub mod apiserver;
pub mod authorizer;
pub mod body;
pub mod crd;
pub mod kubernetes_version;
pub mod manifests;
pub mod probe;
pub mod resolver;
pub mod standalone;
