//! Pods at the bounds: hostile names, too many names, too many containers, a huge patch.

use std::sync::Arc;

use futures::future::BoxFuture;
use gmsa_cluster::resolver::{Freshness, Resolved, Resolver};
use gmsa_core::credspec::SpecName;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Holds, containers, create, decode, denied, examples, naming, same_containers, windows};
use crate::https::Setup;

/// A resolver that must not be asked.
struct Unasked;

impl Resolver for Unasked {
    fn resolve<'a>(&'a self, name: &'a SpecName, _: Freshness, _: Instant) -> BoxFuture<'a, Resolved> {
        panic!("asked for {name}")
    }
}

#[tokio::test]
async fn hostile_names_are_denied_before_anything_is_asked() {
    let server = Setup { resolver: Arc::new(Unasked), ..examples() }.start();
    for name in
        ["../../version", "x?watch=true", "", "gmsa-WebApp1", "a b", "a%2fb", "-a", "a-", "a..b", "ä", "x#", "web\n"]
    {
        for path in ["/mutate", "/validate"] {
            let review = create(&json!({"securityContext": windows(&naming(name))}));
            let answer = server.post(path, serde_json::to_vec(&review).unwrap()).await;
            let message = format!("GMSA cred spec name {name:?} of pod \"p\" is not a lower-case DNS subdomain");
            assert_eq!(answer.json(), denied(422, "Invalid", &message), "{path}");
        }
    }
    let review = create(&json!({"securityContext": windows(&naming(&"a".repeat(1_000_000)))}));
    let answer = server.post("/mutate", serde_json::to_vec(&review).unwrap()).await;
    let message =
        format!("GMSA cred spec name \"{}\"… of pod \"p\" is not a lower-case DNS subdomain", "a".repeat(253));
    assert_eq!(answer.json(), denied(422, "Invalid", &message));
}

#[tokio::test]
async fn more_names_than_allowed_are_denied_before_anything_is_asked() {
    let server = Setup { resolver: Arc::new(Unasked), ..examples() }.start();
    for path in ["/mutate", "/validate"] {
        let answer = server.post(path, containers(25, |n| format!("s{n}"))).await;
        assert_eq!(answer.json(), denied(422, "Invalid", "a pod may name at most 24 distinct GMSA cred specs"));
    }
}

#[tokio::test]
async fn many_containers_are_answered_and_too_many_or_a_huge_patch_are_refused() {
    let too_large = "the GMSA cred spec contents of this pod would take more than 2097152 bytes: use fewer containers or name the GMSA cred spec on the pod";
    let server = Setup { resolver: Holds::text_of(64 << 10), ..examples() }.start();
    let answer = server.post("/mutate", same_containers(999)).await;
    assert_eq!(answer.json()["response"]["status"]["message"], too_large);
    assert_eq!(answer.json()["response"]["status"]["code"], 422);
    let too_many = "a pod may have at most 999 containers, init containers and ephemeral containers together";
    for path in ["/mutate", "/validate"] {
        assert_eq!(server.post(path, same_containers(1_000)).await.json(), denied(422, "Invalid", too_many));
    }

    // 31 texts of 64 KiB and their paths fit; 32 do not.
    for (count, allowed) in [(31, true), (32, false)] {
        let answer = server.post("/mutate", same_containers(count)).await;
        assert_eq!(answer.json()["response"]["allowed"], allowed, "{count}");
    }
    let small = Setup { resolver: Holds::text_of(1), ..examples() }.start();
    let answer = small.post("/mutate", same_containers(999)).await.json();
    let patch: Vec<Value> = serde_json::from_slice(&decode(&answer["response"]["patch"])).unwrap();
    assert_eq!(patch.len(), 999);
    assert_eq!(
        patch[998],
        json!({"op": "add", "path": "/spec/containers/998/securityContext/windowsOptions/gmsaCredentialSpec", "value": "{\"k\":\"x\"}"})
    );
    let plain: Vec<_> = (0..999).map(|n| json!({"name": format!("c{n}")})).collect();
    let answer = small.post("/validate", serde_json::to_vec(&create(&json!({"containers": plain}))).unwrap()).await;
    assert_eq!(answer.json()["response"], json!({"uid": "u-1", "allowed": true}));
}
