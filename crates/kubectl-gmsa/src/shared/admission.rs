//! A new pod, parsed once by the webhooks' parser, and the webhooks that review it: both without a cluster, otherwise those of the cluster.

use std::{collections::BTreeMap, sync::Arc};

use gmsa_cluster::manifests::wrong_type;
use gmsa_core::{
    admission::{
        Review, Webhook,
        pod::{Pod, Slot},
    },
    diagnostic::Diagnostic,
};
use serde_json::{Value, json};
use serde_path_to_error::{Deserializer, Track};

use super::{configured::Configured, rules};

/// A field of a pod has the wrong type.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the API server would refuse the pod: {expected}")]
pub struct WrongType {
    /// The field, as a JSON Pointer in the pod.
    pub pointer: String,
    /// Such as `expected a string`.
    expected: String,
}

/// A new pod: its JSON, and its review or the parse error.
#[derive(Clone)]
pub struct NewPod {
    pub json: Value,
    review: Result<Arc<Review>, WrongType>,
}

impl NewPod {
    pub fn new(namespace: &str, json: Value) -> Self {
        Self { review: review_of(namespace, &json), json }
    }

    /// The pod that a controller of this name creates from a template. What is no template is no pod.
    pub fn of_template(namespace: &str, mut template: Value, controller: &str) -> Self {
        let [labels, annotations] =
            ["/metadata/labels", "/metadata/annotations"].map(|at| template.pointer(at).cloned());
        if let Value::Object(fields) = &mut template {
            let name = format!("{controller}-");
            let metadata = json!({"generateName": name, "labels": labels, "annotations": annotations});
            fields.insert("metadata".to_owned(), metadata);
        }
        Self::new(namespace, template)
    }

    /// The review of its creation.
    pub fn review(&self) -> Result<&Arc<Review>, WrongType> {
        self.review.as_ref().map_err(WrongType::clone)
    }

    /// The pod as the webhooks parse it; `None` if it cannot be parsed.
    pub fn pod(&self) -> Option<&Pod> {
        self.review.as_ref().ok()?.object.as_ref()
    }

    /// The whole JSON.
    pub fn root(&self) -> Part<'_> {
        Part { at: String::new(), json: &self.json }
    }

    /// The slots of its containers, each with its JSON.
    pub fn containers(&self) -> impl Iterator<Item = (Slot<'_>, Part<'_>)> {
        let slots = self.pod().into_iter().flat_map(Pod::slots);
        slots.filter_map(|slot| Some((slot, self.root().below(&format!("spec/{}/{}", slot.kind.field()?, slot.index)))))
    }
}

/// A part of a pod's JSON, with its place. Paths below it have no leading slash.
pub struct Part<'p> {
    /// As a JSON Pointer in the pod.
    pub at: String,
    pub json: &'p Value,
}

impl<'p> Part<'p> {
    /// A part of it; null if it is not there.
    pub fn below(&self, path: &str) -> Self {
        let at = format!("{}/{path}", self.at);
        Self { json: self.json.pointer(&format!("/{path}")).unwrap_or(&Value::Null), at }
    }

    /// A text below it, or else an empty one.
    pub fn text(&self, path: &str) -> &'p str {
        self.below(path).json.as_str().unwrap_or_default()
    }

    pub fn has(&self, path: &str) -> bool {
        !self.below(path).json.is_null()
    }

    /// The items of a list below it.
    pub fn list(&self, path: &str) -> impl Iterator<Item = Self> + use<'p> {
        let list = self.below(path);
        let items = list.json.as_array().into_iter().flatten().enumerate();
        items.map(move |(index, json)| Self { at: format!("{}/{index}", list.at), json })
    }
}

/// The review of a pod that is created in `namespace`.
fn review_of(namespace: &str, pod: &Value) -> Result<Arc<Review>, WrongType> {
    let mut track = Track::new();
    Review::of_pod(namespace, Deserializer::new(pod, &mut track)).map(Arc::new).map_err(|error| {
        let (pointer, expected) = wrong_type(&error, &track.path());
        WrongType { pointer, expected }
    })
}

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// The labels of an object.
pub fn labels(object: &Value) -> Labels {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    labels.into_iter().flatten().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

const WITHOUT_IDENTITY: &str = "the container starts without its identity";

/// The webhooks that review a pod.
#[derive(Debug)]
pub struct Reviewed {
    /// Those that review it, in order.
    pub webhooks: &'static [Webhook],
    /// Why one of the two does not review it.
    pub gap: Option<Diagnostic>,
    /// The Service of a webhook that reviews it and has no ready endpoint, and whether the API server then refuses the pod.
    pub silent: Option<(String, bool)>,
    /// Whether the webhooks of the cluster could not be read.
    pub is_unsure: bool,
}

impl Reviewed {
    /// Both webhooks review it.
    pub const ASSUMED: Self =
        Self { webhooks: &[Webhook::Mutate, Webhook::Validate], gap: None, silent: None, is_unsure: false };

    /// The webhooks of a cluster that review a pod, by its labels and those of its namespace.
    pub fn of(webhooks: &[Configured], namespace: &Labels, pod: &Labels) -> Self {
        let reviews = |found: &&Configured| found.reviews(namespace, pod);
        let of_pods = |mutating| webhooks.iter().filter(move |found| found.mutating == mutating && found.is_of_pods());
        let reviewed_by = |mutating| of_pods(mutating).any(|found| reviews(&found));
        // Only the webhook for system namespaces reviews it, which validates but never blocks.
        let is_of_system =
            !reviewed_by(false) && webhooks.iter().filter(reviews).any(Configured::is_of_system_namespaces);
        let (mutates, validates) = (reviewed_by(true), reviewed_by(false) || is_of_system);
        let lacks = |mutating| of_pods(mutating).next().is_none();
        let is_missing = !mutates && lacks(true) || !validates && lacks(false);
        let (rule, why, fix) = if is_missing {
            let restore = webhooks.first().map(|found| format!("{} creates it again.", found.installer.restore()));
            (&rules::WEBHOOK_MISSING, "the cluster has none", restore)
        } else if is_of_system {
            let fix = "Use another namespace. Or upgrade the cluster to 1.28 or later, then run `helm upgrade` for the webhook.";
            let why = "before Kubernetes 1.28 it leaves out kube-system and its own namespace";
            (&rules::NAMESPACES_EXCLUDED, why, Some(fix.to_owned()))
        } else {
            let why = "the selectors in its configuration leave out the namespace, or the pod";
            (&rules::NAMESPACES_EXCLUDED, why, None)
        };
        let (webhooks, which, consequence): (&[Webhook], _, _) = match (mutates, validates) {
            (true, true) => return Self::ASSUMED,
            (false, true) => {
                let consequence = "the name gets no contents, so the validating webhook refuses the pod";
                (&[Webhook::Validate], "mutating ", consequence)
            }
            (true, false) => {
                let consequence = "nothing checks whether the pod may use the credential spec";
                (&[Webhook::Mutate], "validating ", consequence)
            }
            (false, false) => (&[], "", WITHOUT_IDENTITY),
        };
        let gap = Diagnostic::new(rule, format!("no {which}webhook for GMSA reviews this pod: {why}"));
        let gap = Diagnostic { consequence: Some(consequence), fix, ..gap };
        Self { webhooks, gap: Some(gap), ..Self::ASSUMED }
    }

    /// The fate of a pod whose webhook does not answer.
    pub fn silence(&self) -> Option<&'static str> {
        let (_, is_refused) = self.silent.as_ref()?;
        Some(if *is_refused {
            "is refused: the webhook does not answer"
        } else {
            "gets nothing: the webhook does not answer"
        })
    }

    /// Whether the API server refuses a pod whose webhook does not answer.
    pub fn is_refused(&self) -> bool {
        matches!(self.silent, Some((_, true)))
    }

    /// The problem if one of the two does not review the pod, or does not answer.
    pub fn problem(&self) -> Option<Diagnostic> {
        let Some((service, is_refused)) = &self.silent else { return self.gap.clone() };
        let message = format!("the webhook for GMSA does not answer: its Service {service} has no ready endpoint");
        let consequence = Some(if *is_refused { "the API server refuses the pod" } else { WITHOUT_IDENTITY });
        let found = Diagnostic::new(&rules::WEBHOOK_UNREACHABLE, message);
        Some(Diagnostic { consequence, ..found.with_fix("See why its Pods do not run: `kubectl gmsa doctor`.") })
    }
}
