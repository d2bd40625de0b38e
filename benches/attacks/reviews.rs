//! What is posted: plain reviews, and bodies that are made to cost as much as they can.

use bytes::Bytes;
use gmsa_core::credspec::Contents;
use gmsa_test_support::{
    control_plane::{SPEC, example},
    reviews::created,
};
use serde_json::{Value, json};

pub const NAMESPACE: &str = "attacks";
/// Where denials are not enforced.
pub const TRIAL: &str = "trial";
/// Service accounts that may use the credential spec of the examples.
pub const ACCOUNTS: usize = 2000;
/// As many credential specs as a pod may name.
const NAMES: usize = 24;

/// The largest body that the server takes, in bytes.
pub const MAX_BODY: usize = 8 << 20;

/// A service account that may use it.
pub fn account(number: usize) -> String {
    format!("account-{}", number % ACCOUNTS)
}

/// The review of a pod with name and contents.
pub fn plain(number: usize) -> Bytes {
    let contents = Contents::of(example()["credspec"].as_object().unwrap());
    bytes(&pod(&json!({
        "os": {"name": "windows"},
        "serviceAccountName": account(number),
        "securityContext": {"windowsOptions": {"gmsaCredentialSpecName": SPEC, "gmsaCredentialSpec": contents.text()}},
        "containers": [{"name": "app", "image": "images.invalid/app:1"}],
    })))
}

/// The same with white space behind it: 1 MiB.
pub fn large() -> Bytes {
    let mut review = plain(0).to_vec();
    review.resize(1 << 20, b' ');
    review.into()
}

/// The review of a pod that names credential specs which do not exist.
pub fn unknown_names(number: usize) -> Bytes {
    bytes(&pod(&naming_unknown(&account(0), number, NAMES, &json!({}))))
}

/// The review of a pod that names this credential spec, without contents.
pub fn one_name(name: &str) -> Bytes {
    bytes(&pod(&json!({"serviceAccountName": account(0), "securityContext": naming(name), "containers": []})))
}

/// The review of a pod of this account that names credential specs which do not exist, with contents: an access review for each.
pub fn made_up(account: &str, number: usize, names: usize) -> Bytes {
    bytes(&pod(&naming_unknown(account, number, names, &json!({"gmsaCredentialSpec": "{}"}))))
}

/// The review of a Deployment whose pods name as many credential specs as a pod may, as an account that need not exist.
pub fn workload(number: usize) -> Bytes {
    let spec = naming_unknown(&format!("builder-{number}"), number, NAMES, &json!({}));
    let deployment = json!({"metadata": {"name": "web"}, "spec": {"template": {"spec": spec}}});
    bytes(&review("apps", "Deployment", &deployment))
}

/// [`made_up`] in the namespace where denials are not enforced.
pub fn of_trial(number: usize) -> Bytes {
    let spec = naming_unknown(&format!("builder-{number}"), number, NAMES, &json!({"gmsaCredentialSpec": "{}"}));
    let mut review = pod(&spec);
    review["request"]["namespace"] = json!(TRIAL);
    bytes(&review)
}

/// Reviews that carry a text of this length in each field that a pod's author, or any client, can set.
pub fn long_texts(length: usize) -> Vec<Bytes> {
    let long = "a".repeat(length);
    let plain = pod(&json!({"serviceAccountName": "s", "containers": [{"name": "c", "securityContext": naming("x")}]}));
    let container = "/object/spec/containers/0";
    let places = [
        "/uid",
        "/namespace",
        "/operation",
        "/subResource",
        "/kind/kind",
        "/kind/group",
        "/object/metadata/name",
        "/object/spec/serviceAccountName",
        &format!("{container}/name"),
        &format!("{container}/securityContext/windowsOptions/gmsaCredentialSpecName"),
    ];
    let with = |place: &str| {
        let mut review = plain.clone();
        *review["request"].pointer_mut(place).unwrap() = json!(long);
        bytes(&review)
    };
    places.into_iter().map(with).collect()
}

/// A pod with as many empty containers as fit.
pub fn empty_containers() -> Bytes {
    filled(&pod(&json!({"containers": "FILL"})), "{}", MAX_BODY)
}

/// A pod that may land on nodes with any of a million empty values: 3 MB.
pub fn empty_affinity_values() -> Bytes {
    let expression = json!({"key": "kubernetes.io/os", "operator": "In", "values": "FILL"});
    let terms = json!({"nodeSelectorTerms": [{"matchExpressions": [expression]}]});
    let review = pod(&json!({
        "securityContext": naming(SPEC),
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        "containers": [{"name": "c"}],
    }));
    filled(&review, r#""""#, 3_000_000)
}

/// A credential spec with as many lists as fit.
pub fn nested_lists() -> Bytes {
    let spec = json!({
        "apiVersion": "windows.k8s.io/v1",
        "kind": "GMSACredentialSpec",
        "metadata": {"name": "lists"},
        "credspec": {"CmsPlugins": "FILL"},
    });
    filled(&review("windows.k8s.io", "GMSACredentialSpec", &spec), "[0]", MAX_BODY)
}

/// A Deployment with 60,000 containers; each names another credential spec: 4.4 MB.
pub fn many_names() -> Bytes {
    let names: Vec<_> = (0..60_000).map(|at| format!("n-{at:05}")).collect();
    deployment(&names, 0)
}

/// A Deployment that names these credential specs, with this many empty containers of each kind beside them.
pub fn deployment(names: &[String], empty: usize) -> Bytes {
    let fill = vec![json!({}); empty];
    let containers = names.iter().map(|name| json!({"securityContext": naming(name)})).chain(fill.clone());
    let containers: Vec<Value> = containers.collect();
    let spec = json!({"serviceAccountName": "crowd", "containers": containers, "initContainers": fill});
    let deployment = json!({"metadata": {"name": "of-an-author"}, "spec": {"template": {"spec": spec}}});
    bytes(&review("apps", "Deployment", &deployment))
}

/// A pod whose containers name credential specs which do not exist, in options that say more.
fn naming_unknown(account: &str, number: usize, names: usize, more: &Value) -> Value {
    let container = |at: usize| {
        let mut options = more.clone();
        options["gmsaCredentialSpecName"] = json!(format!("unknown-{number}-{at}"));
        json!({"name": format!("c-{at}"), "securityContext": {"windowsOptions": options}})
    };
    json!({"serviceAccountName": account, "containers": (0..names).map(container).collect::<Value>()})
}

fn naming(name: &str) -> Value {
    json!({"windowsOptions": {"gmsaCredentialSpecName": name}})
}

fn pod(spec: &Value) -> Value {
    review("", "Pod", &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}))
}

fn review(group: &str, kind: &str, object: &Value) -> Value {
    let mut review = created(NAMESPACE, object);
    review["request"]["kind"] = json!({"group": group, "version": "v1", "kind": kind});
    review["request"]["subResource"] = json!("");
    review
}

fn bytes(review: &Value) -> Bytes {
    review.to_string().into()
}

/// The review with a list of this many equal items in the place of `FILL` that it has this length, or nearly.
fn filled(review: &Value, item: &str, length: usize) -> Bytes {
    let (before, after) =
        review.to_string().split_once(r#""FILL""#).map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let items = (length - before.len() - after.len() - 2) / (item.len() + 1);
    let list = vec![item; items].join(",");
    format!("{before}[{list}]{after}").into()
}
