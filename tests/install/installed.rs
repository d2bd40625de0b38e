//! The installed release with the built binary behind its own Service: what the chart gives the webhook (arguments, environment, rights)
//! must be what it takes, and `helm test` must pass.

use std::{
    process::{Output, Stdio},
    thread,
};

use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, printed},
    pods::{NAMESPACE, Options, complaint, creation, grant, pod},
    release::{Container, RELEASE_NAMESPACE, Release},
};

#[test]
fn the_installed_configuration_is_what_admits_pods() {
    let cluster = Cluster::start();
    let release = Release::install(&cluster);
    release.route_to_loopback();
    cluster.create_namespace(NAMESPACE);
    cluster.apply(include_str!("credential-spec.yaml"));

    let mut replica = release.start_replica();
    admits_and_refuses(&release);
    the_test_of_the_release_passes(&release);

    replica.end();
    cluster.until("the webhook is missed", || creation(&cluster, &pod("p", "pod", Options::Name, "webapp1")).is_some());
    the_test_of_the_release_fails(&release);

    // The certificate is in the Secret: a new replica serves it, and is trusted at once.
    let bundle = ca_bundles(&release);
    let _replica = release.start_replica();
    assert_eq!(ca_bundles(&release), bundle);
    assert_eq!(creation(&cluster, &pod("p", "pod", Options::Name, "webapp1")), None);
    the_test_of_the_release_passes(&release);
}

/// The bundle of every webhook of the release.
fn ca_bundles(release: &Release<'_>) -> Vec<Value> {
    ["mutatingwebhookconfiguration/gmsa", "mutatingwebhookconfiguration/zz-gmsa", "validatingwebhookconfiguration/gmsa"]
        .iter()
        .flat_map(|configuration| release.get(configuration)["webhooks"].as_array().cloned().unwrap())
        .map(|webhook| webhook["clientConfig"]["caBundle"].clone())
        .inspect(|bundle| assert!(bundle.is_string(), "a webhook without a caBundle"))
        .collect()
}

fn admits_and_refuses(release: &Release<'_>) {
    let cluster = release.cluster;
    let denial = "admission webhook \"admission-webhook.windows-gmsa.sigs.k8s.io\" denied the request: \
                  service account \"default\" is not authorized to `use` GMSA cred spec \"webapp1\"";
    let asked = || creation(cluster, &pod("p", "pod", Options::Name, "webapp1"));
    cluster.until("the API server trusts the webhook", || {
        asked().is_some_and(|said| said.contains("is not authorized to"))
    });
    let said = asked().unwrap();
    assert!(said.contains(denial), "{said}");

    grant(cluster, "default", &["webapp1".to_owned()]);
    cluster.until("the grant is in force", || asked().is_none());
    cluster.apply(&pod("web", "pod", Options::Name, "webapp1").to_string());
    let contents = "jsonpath={.spec.securityContext.windowsOptions.gmsaCredentialSpec}";
    let contents = cluster.kubectl_prints(["get", "pod", "web", "--namespace", NAMESPACE, "-o", contents]);
    let contents: Value = serde_json::from_str(&contents).unwrap();
    assert_eq!(contents["DomainJoinConfig"]["MachineAccountName"], "WebApp1");
    assert_eq!(ca_bundles(release).len(), 5);
}

/// `helm test`, with this test for a kubelet: it runs what the pod says, as the pod's service account, and reports how that ended. Gives back
/// what the pod printed, and what helm said.
pub fn test_the_release(release: &Release<'_>) -> (String, Output) {
    let (cluster, helm) = (release.cluster, release.helm());
    // Of a test that was interrupted: helm takes it away before the next one.
    let uid = || {
        cluster.kubectl(["get", "pod", "gmsa-test", "--namespace", RELEASE_NAMESPACE, "-o", "jsonpath={.metadata.uid}"])
    };
    let before = uid().stdout;
    thread::scope(|scope| {
        let tested = scope.spawn(|| helm.run(["test", "gmsa", "--namespace", RELEASE_NAMESPACE, "--timeout", "60s"]));
        cluster.until("helm has created the pod", || {
            let now = uid();
            now.status.success() && now.stdout != before
        });
        let spec = release.get("pod/gmsa-test")["spec"].clone();
        let account = spec["serviceAccountName"].as_str().unwrap();
        let output = Container::of(&spec).command(cluster, account).stdin(Stdio::null()).output().unwrap();
        let phase = if output.status.success() { "Succeeded" } else { "Failed" };
        let status = json!({"status": {"phase": phase}}).to_string();
        let patch =
            ["patch", "pod", "gmsa-test", "--namespace", RELEASE_NAMESPACE, "--subresource=status", "--patch", &status];
        cluster.kubectl_prints(patch);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        (String::from_utf8(output.stdout).unwrap(), tested.join().unwrap())
    })
}

fn the_test_of_the_release_passes(release: &Release<'_>) {
    let (report, tested) = test_the_release(release);
    let lines = [
        "pass  a pod without GMSA",
        "pass  a pod that names a credential spec",
        "pass  a container that names a credential spec",
        "pass  an init container that names a credential spec",
        "pass  a pod that brings contents of its own",
    ];
    assert_eq!(report.lines().collect::<Vec<_>>(), lines);
    let printed = printed(tested);
    assert!(printed.contains("Phase:          Succeeded"), "{printed}");
    nothing_is_left_of_the_test(release);
}

fn nothing_is_left_of_the_test(release: &Release<'_>) {
    for object in ["pod", "role", "rolebinding", "serviceaccount"] {
        let get = ["get", &format!("{object}/gmsa-test"), "--namespace", RELEASE_NAMESPACE];
        release.cluster.until("helm has removed it", || {
            complaint(release.cluster.kubectl(get)).is_some_and(|said| said.contains("NotFound"))
        });
    }
}

/// A webhook that is down: the test fails, and says that the API server asks it in vain, and for pods that use GMSA only.
fn the_test_of_the_release_fails(release: &Release<'_>) {
    let (report, tested) = test_the_release(release);
    let (others, with_gmsa) = report.split_once('\n').unwrap();
    assert_eq!(others, "pass  a pod without GMSA");
    for (line, what) in with_gmsa.lines().zip([
        "a pod that names a credential spec",
        "a container that names a credential spec",
        "an init container that names a credential spec",
        "a pod that brings contents of its own",
    ]) {
        let start = format!(
            "FAIL  {what} was refused with 500: Internal error occurred: failed calling webhook \
             \"admission-webhook.windows-gmsa.sigs.k8s.io\": failed to call webhook: Post \"https://gmsa.{RELEASE_NAMESPACE}.svc:"
        );
        assert!(line.starts_with(&start) && line.ends_with("connect: connection refused"), "{line}");
    }
    assert_eq!(with_gmsa.lines().count(), 4, "{report}");
    let said = complaint(tested).unwrap();
    assert!(said.contains("pod gmsa-test failed"), "{said}");
    nothing_is_left_of_the_test(release);
}
