//! What `doctor --pod` says of one pod.

use serde_json::json;

use super::super::{
    cluster::{healthy, pod, run},
    support::Table,
    text,
};

#[tokio::test(flavor = "multi_thread")]
async fn one_pod_is_explained() {
    let api = healthy().await;
    let output = run(&api, &["doctor", "--pod", "shop/web"]).await;
    assert_eq!(
        text(&output.stdout),
        "\
pass  admission   the pod carries the contents of its credential spec
pass  permission  shop:web may use webapp1
pass  node        Running on win1
pass  in the pod  run: kubectl gmsa verify shop/web
"
    );
    assert_eq!(output.status.code(), Some(0));
    api.authorize_by(Table::default());
    let output = run(&api, &["doctor", "--pod", "shop/web"]).await;
    assert!(text(&output.stdout).contains(
        "fail  permission  shop:web may not use webapp1 [not-authorized]\n                  -> kubectl gmsa grant --credspec webapp1 --serviceaccount shop:web --apply\n"
    ));
    api.apply(pod("bare", &json!({"gmsaCredentialSpecName": "gone"})));
    let mut waiting = pod("old", &json!({"gmsaCredentialSpecName": "webapp1", "gmsaCredentialSpec": "{}"}));
    waiting["status"] = json!({"phase": "Pending", "containerStatuses": [
        {"state": {"waiting": {"reason": "CreateContainerError", "message": "winapi error #3489792023"}}},
    ]});
    api.apply(waiting);
    api.authorize_by(Table::of(&[("shop", "web", "webapp1"), ("shop", "web", "gone")]));
    let output = run(&api, &["doctor", "--pod", "shop/bare"]).await;
    assert_eq!(
        text(&output.stdout),
        "\
fail  admission        the pod names a credential spec and carries no contents: the webhook did not review it [name-without-contents]
                       -> delete it: its controller creates a new one; then run doctor without --pod
fail  credential spec  gone does not exist [spec-missing]
                       -> kubectl gmsa credspec new gone
pass  permission       shop:web may use gone
pass  node             Running on win1
"
    );
    let output = run(&api, &["doctor", "--pod", "shop/old"]).await;
    assert_eq!(
        text(&output.stdout),
        "\
warn  admission   the pod carries other contents than its credential spec has now [contents-outdated]
                  -> Delete the Pod: its controller creates a new one.
pass  permission  shop:web may use webapp1
fail  node        Pending on win1, waiting: CreateContainerError: winapi error #3489792023 [not-started]
                  -> See docs/troubleshooting.md.
"
    );
    api.apply(pod("unmatched", &json!({"gmsaCredentialSpecName": "gone", "gmsaCredentialSpec": "{}"})));
    let output = run(&api, &["doctor", "--pod", "shop/unmatched"]).await;
    assert_eq!(
        text(&output.stdout).lines().next(),
        Some(
            "warn  admission        the pod carries contents, and there is no credential spec to compare them with [contents-outdated]"
        )
    );
    let output = run(&api, &["doctor", "--pod", "shop/none"]).await;
    assert_eq!((text(&output.stderr), output.status.code()), ("error: there is no pod shop/none\n", Some(2)));
}
