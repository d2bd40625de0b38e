//! The templates of an Argo workflow, which are not pod templates: each step is one container with some fields of its pod, and
//! inherits other fields from the workflow (`createWorkflowPod` in `workflow/controller/workflowpod.go` of Argo).

use serde_json::{Map, Value, json};

/// The group of `Workflow`, `WorkflowTemplate`, `CronWorkflow` and `Rollout`.
pub(super) const GROUP: &str = "argoproj.io";

/// The fields of a pod that a step inherits from the workflow unless it sets them.
const INHERITED: [&str; 4] = ["securityContext", "serviceAccountName", "nodeSelector", "affinity"];

/// The steps of a workflow that run a pod of their own, each with its position in the list of `templates`.
pub(super) fn steps(workflow: &Value) -> impl Iterator<Item = (usize, &Value)> {
    let runs = |step: &&Value| ["container", "script", "containerSet"].iter().any(|field| step.get(field).is_some());
    let templates = workflow.get("templates").and_then(Value::as_array).into_iter().flatten();
    templates.enumerate().filter(move |(_, step)| runs(step))
}

/// The pod of a step, and the places of its parts in the document, the innermost first.
pub(super) fn pod(step: &Value, at: &str, workflow: &Value, workflow_at: &str) -> (Value, Vec<(String, String)>) {
    let (mut containers, mut places) = (Vec::new(), Vec::new());
    let mut add = |container: &Value, name: &str, place: String| {
        let mut container = container.clone();
        if let Some(fields) = container.as_object_mut() {
            fields.entry("name").or_insert_with(|| Value::from(name));
        }
        places.push((format!("/spec/containers/{}", containers.len()), place));
        containers.push(container);
    };
    for kind in ["container", "script"] {
        step.get(kind).into_iter().for_each(|container| add(container, "main", format!("{at}/{kind}")));
    }
    for list in ["/containerSet/containers", "/sidecars"] {
        let items = step.pointer(list).and_then(Value::as_array).into_iter().flatten();
        items.enumerate().for_each(|(index, container)| add(container, "", format!("{at}{list}/{index}")));
    }
    let mut spec = Map::from_iter([("containers".to_owned(), Value::Array(containers))]);
    if let Some(init) = step.get("initContainers") {
        spec.insert("initContainers".to_owned(), init.clone());
    }
    for field in INHERITED {
        let own = step.get(field).filter(|value| !value.is_null());
        let (value, place) = match own {
            Some(value) => (Some(value), at),
            None => (workflow.get(field), workflow_at),
        };
        if let Some(value) = value {
            spec.insert(field.to_owned(), value.clone());
            places.push((format!("/spec/{field}"), format!("{place}/{field}")));
        }
    }
    places.extend([("/spec".to_owned(), at.to_owned()), (String::new(), at.to_owned())]);
    (json!({"spec": spec}), places)
}
