//! Kinds of pods: users and groups, quotas, networks, Jobs, many at once, an image that is missing.

use std::time::Duration;

use gmsa_test_support::{
    control_plane::{Client, namespace, service_account},
    until,
};
use serde_json::{Value, json};

use crate::world::{ACCOUNT, WHO, World, application};

/// How many pods start at once: a node has room for 110.
const MANY: usize = 30;

pub async fn of_every_kind_log_on(world: &mut World) {
    world.namespace("strict", json!({"pod-security.kubernetes.io/enforce": "restricted"})).await;
    world.namespace("counted", json!({})).await;
    let hard = json!({"limits.memory": "96Mi", "pods": "1"});
    let quotas = "/api/v1/namespaces/counted/resourcequotas";
    let quota = json!({"metadata": {"name": "quota"}, "spec": {"hard": hard}});
    world.client().create(quotas, &quota).await.unwrap();
    until("the quota is in force", async || {
        let quota = world.client().get(&format!("{quotas}/quota")).await.unwrap();
        (quota["status"]["hard"] == hard).then_some(())
    })
    .await;

    let one = &[("app", 1000)][..];
    let kinds = [
        ("strict", "plain", one, json!({})),
        ("strict", "grouped", one, json!({"securityContext": {"fsGroup": 2000}})),
        ("strict", "initialized", one, json!({"initContainers": []})),
        ("strict", "several", &[("app", 1000), ("other", 2000)], json!({})),
        ("shop", "as-root", &[("app", 1000), ("root", 0)], json!({})),
        ("shop", "on-the-host", one, json!({"hostNetwork": true, "dnsPolicy": "ClusterFirstWithHostNet"})),
        ("counted", "counted", one, json!({})),
    ];
    for (namespace, name, containers, more) in &kinds {
        world.deploy(namespace, name, 1, &application(containers, more)).await;
    }
    for (namespace, name, containers, more) in &kinds {
        world.rolled_out(namespace, name);
        let names = containers.iter().map(|(name, _)| *name).chain(more.get("initContainers").map(|_| "migrate"));
        for container in names {
            world.shows(&format!("kubectl -n {namespace} logs deployment/{name} -c {container}"), ACCOUNT).await;
        }
    }
    // What the volume and the agent leave: with an fsGroup, that group alone reads the tickets.
    let shows = "stat -c '%a %u %g' /var/run/gmsa/krb5cc";
    for (name, expected) in [("plain", "444 65532 0\n"), ("grouped", "440 65532 2000\n")] {
        assert_eq!(
            world.run(&format!("kubectl -n strict exec deployment/{name} -c app -- {shows}")),
            expected,
            "{name}"
        );
    }
    let used = world.client().get(&format!("{quotas}/quota")).await.unwrap()["status"]["used"].take();
    assert_eq!(used, json!({"limits.memory": "96Mi", "pods": "1"}), "the sidecar counts");
    world.run(
        "kubectl delete namespace strict counted --wait=false; kubectl -n shop delete deployment as-root on-the-host",
    );
}

/// The sidecar ends with the Job's container, and what it had is in the log.
pub async fn of_a_job_end(world: &mut World) {
    let mut spec = application(&[("app", 1000)], &json!({"restartPolicy": "Never"}));
    spec["containers"][0]["command"] = json!(["sh", "-c", WHO]);
    let annotations = json!({"gmsa-webhook/tickets": "webapp1"});
    let job = json!({"metadata": {"name": "once"}, "spec": {"template": {"metadata": {"annotations": annotations}, "spec": spec}}});
    world.client().create("/apis/batch/v1/namespaces/shop/jobs", &job).await.unwrap();
    world.run("kubectl -n shop wait --for=condition=complete job/once --timeout=120s");
    assert_eq!(world.run("kubectl -n shop logs job/once -c app"), ACCOUNT);
    world.run("kubectl -n shop delete job once");
}

/// Nothing resolves the address of the controller to its name, which `OpenLDAP` asks for without `-N`.
pub async fn log_on_without_the_name_of_an_address(world: &mut World) {
    let tries = |command: &str| world.tries(&format!("kubectl -n shop exec deployment/web -c app -- {command}"));
    let resolved = tries("getent hosts 10.0.0.1");
    assert_eq!((resolved.status.code(), resolved.stdout), (Some(2), Vec::new()), "there is no PTR record");
    let told = WHO.replace("ldapwhoami -N", "env LDAPSASL_NOCANON=on ldapwhoami");
    for (command, expected) in [(WHO, ACCOUNT), (&told, ACCOUNT), (&WHO.replace(" -N", ""), "")] {
        let output = tries(command);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{command}: {errors}");
        assert!(!expected.is_empty() || errors.contains("Matching credential not found"), "{errors}");
    }
}

/// The broker is away while many pods start. They wait, and `why` says what for; when it is back, all log on.
pub async fn wait_for_a_broker_that_is_away(world: &mut World) {
    let running = "kubectl -n shop exec deployment/web -c app --";
    let before = world.run(&format!("{running} sha256sum /var/run/gmsa/krb5cc"));
    world.run("kubectl -n gmsa-tickets scale deployment/gmsa-tickets --replicas=0");
    world.run("kubectl -n gmsa-tickets wait --for=delete pod --all --timeout=120s");

    world.deploy("shop", "many", MANY, &application(&[("app", 1000)], &json!({}))).await;
    let client = world.client().clone();
    let waits = async || {
        let pods = client.get("/api/v1/namespaces/shop/pods?labelSelector=app%3Dmany").await.unwrap();
        let states = pods["items"].as_array().unwrap().iter();
        let running = states.filter(|pod| !pod["status"]["initContainerStatuses"][0]["state"]["running"].is_null());
        (running.count() == MANY).then_some(())
    };
    patiently(waits).await;
    let why = world.tries("kubectl gmsa why deployment/many -n shop");
    let why = String::from_utf8(why.stdout).unwrap();
    let cause = "the sidecar waits for tickets: the Service gmsa-tickets/gmsa-tickets of the broker has no ready endpoint: Deployment \
                 gmsa-tickets/gmsa-tickets: no pod is wanted: replicas is 0";
    assert!(why.contains(cause), "{why}");
    let waiting = world.node.cores(Duration::from_secs(15)).await;
    println!("        {MANY} waiting pods, kubelet and containerd: {waiting:.2} cores");
    world.waiting = Some(waiting);
    // A pod that has tickets goes on with them.
    assert_eq!(world.run(&format!("{running} {WHO}")), ACCOUNT);
    assert_eq!(world.run(&format!("{running} sha256sum /var/run/gmsa/krb5cc")), before);

    world.run("kubectl -n gmsa-tickets scale deployment/gmsa-tickets --replicas=2");
    world.rolled_out("shop", "many");
    world.shows("kubectl -n shop logs -l app=many -c app --tail=-1 --max-log-requests=50", &ACCOUNT.repeat(MANY)).await;
    world.run("kubectl -n shop delete deployment many --cascade=foreground");
}

async fn patiently(look: impl AsyncFnMut() -> Option<()>) {
    let mut look = look;
    for _ in 0..360 {
        if look().await.is_some() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    panic!("waited in vain");
}

/// A token for tickets without `use` is refused at the door, on a node as elsewhere.
pub async fn without_use_are_refused(world: &mut World) {
    namespace(world.client(), "other", &json!({})).await;
    service_account(world.client(), "other", "web").await;
    let refusal = create(world.client(), "other").await.unwrap_err();
    assert!(refusal.contains("\"webapp1\""), "{refusal}");
    world.run("kubectl delete namespace other --wait=false");
}

async fn create(client: &Client, namespace: &str) -> Result<Value, String> {
    let metadata = json!({"name": "refused", "annotations": {"gmsa-webhook/tickets": "webapp1"}});
    let pod = json!({"metadata": metadata, "spec": application(&[("app", 1000)], &json!({}))});
    client.create(&format!("/api/v1/namespaces/{namespace}/pods"), &pod).await.map_err(|refusal| refusal.message)
}

/// The default resources of the sidecar are below what a namespace allows: `why` names the value that changes them.
pub async fn in_a_namespace_with_a_limit_range(world: &mut World) {
    world.namespace("limited", json!({})).await;
    let least =
        json!({"metadata": {"name": "least"}, "spec": {"limits": [{"type": "Container", "min": {"memory": "48Mi"}}]}});
    world.client().create("/api/v1/namespaces/limited/limitranges", &least).await.unwrap();
    world.deploy("limited", "web", 1, &application(&[("app", 1000)], &json!({}))).await;
    world.shows("kubectl -n limited get deployment web -o 'jsonpath={.status.conditions[?(@.type==\"ReplicaFailure\")].reason}'", "FailedCreate").await;
    let why = String::from_utf8(world.tries("kubectl gmsa why deployment/web -n limited").stdout).unwrap();
    let refused = "minimum memory usage per Container is 48Mi, but request is 32Mi";
    assert!(why.contains(refused) && why.contains("`tickets.resources`"), "{why}");
    world.run(
        "helm upgrade gmsa-webhook charts/gmsa-webhook -n gmsa-webhook --reuse-values \
         --set tickets.resources.requests.memory=48Mi,tickets.resources.limits.memory=48Mi",
    );
    world.rolled_out("gmsa-webhook", "gmsa-webhook");
    // The controller waits longer after each refusal.
    world.run("kubectl -n limited rollout restart deployment/web");
    world.rolled_out("limited", "web");
    assert_eq!(world.run("kubectl -n limited logs deployment/web -c app"), ACCOUNT);
    world.run("helm rollback gmsa-webhook -n gmsa-webhook; kubectl delete namespace limited --wait=false");
    world.rolled_out("gmsa-webhook", "gmsa-webhook");
}

/// The image of the sidecar cannot be pulled: `why` names the container and its image, and asks for no other image.
pub async fn without_an_image_say_so(world: &mut World) {
    let metadata = json!({"name": "pulls", "annotations": {"gmsa-webhook/tickets": "webapp1"}});
    let pod = json!({"metadata": metadata, "spec": application(&[("app", 1000)], &json!({}))});
    let pods = "/api/v1/namespaces/shop/pods";
    let mut spec = world.client().create(&format!("{pods}?dryRun=All"), &pod).await.unwrap()["spec"].take();
    spec["initContainers"][0]["image"] = json!("registry.example.com/gmsa-tickets:none");
    world.client().create(pods, &json!({"metadata": {"name": "pulls"}, "spec": spec})).await.unwrap();
    let reason = "kubectl -n shop get pod pulls -o 'jsonpath={.status.initContainerStatuses[0].state.waiting.reason}'";
    world.shows(reason, "ImagePullBackOff").await;
    let why = String::from_utf8(world.tries("kubectl gmsa why pod/pulls -n shop").stdout).unwrap();
    let cause = "init container \"gmsa-tickets\" waits: ImagePullBackOff: Back-off pulling image \"registry.example.com/gmsa-tickets:none\"";
    assert!(why.contains(cause) && !why.contains("Windows"), "{why}");
    world.run("kubectl -n shop delete pod pulls");
}
