//! What a person sees who asks with kubectl what would happen.

use std::{
    fs,
    process::{Command, Output},
};

use serde_json::{Value, json};

use crate::{
    control_plane::Refusal,
    pods::{denied, filled, gmsa, path, pod, slots},
    world::{USER, VISITOR, WEB, World},
};

/// `kubectl apply --dry-run=server` of a pod.
fn dry_run(world: &World, mut kubectl: Command, pod: &Value) -> Output {
    let file = world.control_plane.folder().join("pod.json");
    fs::write(&file, pod.to_string()).unwrap();
    kubectl.args(["apply", "--dry-run=server", "--namespace=apps", "--output=json", "--filename"]).arg(&file);
    kubectl.output().unwrap()
}

pub async fn dry_run_by_the_server(world: &mut World) {
    let (Some(allowing), Some(refusing)) = (world.control_plane.kubectl(), world.control_plane.kubectl()) else {
        println!("        there is no kubectl: this is left out");
        return;
    };
    let spec = json!({"securityContext": gmsa("web")});
    let allowed = pod("tried", USER, &spec);
    let output = dry_run(world, allowing, &allowed);
    let answer = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(slots(&serde_json::from_str(&answer).unwrap()), json!({"pod": filled("web", WEB)}));
    let absent = Refusal { code: 404, message: r#"pods "tried" not found"#.to_owned() };
    assert_eq!(world.client().get(&path(&allowed)).await, Err(absent));

    let output = dry_run(world, refusing, &pod("tried", VISITOR, &spec));
    let message = r#"service account "visitor" is not authorized to `use` GMSA cred spec "web""#;
    let file = world.control_plane.folder().join("pod.json");
    let message = format!(
        "Error from server (Forbidden): error when creating {:?}: {}\n",
        file.display().to_string(),
        denied(403, message).message
    );
    assert_eq!(String::from_utf8(output.stderr).unwrap(), message);
    assert_eq!(output.status.code(), Some(1));
}
