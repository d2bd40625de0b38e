//! An autoscaler that is turned on and off: the number of replicas never falls to the API server's default.

use crate::{cluster::Cluster, release::Release};

#[test]
fn turning_autoscaling_on_keeps_the_replicas() {
    let cluster = Cluster::start();
    let release = Release::install_with(&cluster, &["replicaCount=4"]);
    let replicas = || release.get("deployment/gmsa")["spec"]["replicas"].clone();
    assert_eq!(replicas(), 4);
    release.upgrade("autoscaling.enabled=true");
    assert_eq!(replicas(), 4);
    // As the autoscaler does it: by the subresource.
    cluster.kubectl_prints(["scale", "deployment/gmsa", "--namespace", "windows", "--replicas=5"]);
    release.upgrade("autoscaling.enabled=true,logLevel=debug");
    assert_eq!(replicas(), 5);
    release.upgrade("autoscaling.enabled=false,replicaCount=5");
    assert_eq!(replicas(), 5);
}
