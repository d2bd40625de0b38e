//! Contents that the pod brings along.

use serde_json::json;

use crate::{
    pods::{container, denied, filled, pod, slots},
    world::{SQL, USER, WEB, World},
};

pub async fn equal(world: &mut World) {
    let pod = pod("equal", USER, &json!({"securityContext": filled("web", WEB)}));
    assert_eq!(slots(&world.stored(&pod).await), json!({"pod": filled("web", WEB)}));
}

pub async fn equal_but_reordered(world: &mut World) {
    let reordered = r#"{ "CmsPlugins": ["ActiveDirectory"],
        "ActiveDirectoryConfig": {"HostAccountConfig": {"PluginInput": "a<b>c&d"}} }"#;
    let pod = pod("reordered", USER, &json!({"containers": [container("main", &filled("sql", reordered))]}));
    // The text is left as it is.
    assert_eq!(slots(&world.stored(&pod).await), json!({"containers/main": filled("sql", reordered)}));
}

pub async fn different(world: &mut World) {
    let spaced = r#"{ "CmsPlugins": ["Another"] }"#;
    let differ = |slot: &str, more: &str| {
        denied(
            422,
            &format!(
                "the GMSA cred spec contents for {slot} does not match the contents of GMSA resource \"web\": they hold other values{more}"
            ),
        )
    };
    let spec = json!({"initContainers": [container("before", &filled("web", spaced))]});
    assert_eq!(world.refused(&pod("different", USER, &spec)).await, differ(r#"init container "before""#, ""));
    // In the form in which this webhook writes them, they may be what it injected a moment ago.
    let spec = json!({"securityContext": filled("web", SQL)});
    let more = ", in the form in which the webhook writes them: the resource may have changed meanwhile, try again";
    assert_eq!(world.refused(&pod("different", USER, &spec)).await, differ(r#"pod "different""#, more));
}

pub async fn without_a_name(world: &mut World) {
    let unnamed = json!({"windowsOptions": {"gmsaCredentialSpec": WEB}});
    let pod = pod("unnamed", USER, &json!({"containers": [container("main", &unnamed)]}));
    let message =
        r#"container "main" has a GMSA cred spec set, but does not define the name of the corresponding resource"#;
    assert_eq!(world.refused(&pod).await, denied(422, message));
}
