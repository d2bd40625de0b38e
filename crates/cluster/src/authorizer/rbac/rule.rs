//! One rule of a role, and whether it covers an access.

use gmsa_core::credspec::{GROUP, PLURAL, SpecName, USE_VERB};

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// The namespace; `None` for access in the whole cluster.
    pub namespace: Option<&'a str>,
    pub verb: &'a str,
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The plural of the resource, with a `/` and the subresource where there is one.
    pub resource: &'a str,
    /// The object's name; empty where no single object is meant.
    pub name: &'a str,
}

impl<'a> Access<'a> {
    /// The `use` of a credential spec by the pods of a namespace.
    pub fn to_use(spec: &'a SpecName, namespace: &'a str) -> Self {
        Self { namespace: Some(namespace), verb: USE_VERB, group: GROUP, resource: PLURAL, name: spec.as_str() }
    }
}

/// One rule of a role. One for `nonResourceURLs` names no group and no resource here, and so covers no object.
#[derive(Clone, Debug)]
pub(super) struct PolicyRule {
    /// The verbs; `*` is all of them.
    pub verbs: Vec<String>,
    /// The API groups; `*` is all of them.
    pub groups: Vec<String>,
    /// The resources; `*` is all of them, `*/SUBRESOURCE` one subresource of all of them.
    pub resources: Vec<String>,
    /// The names of objects; none means all objects.
    pub names: Vec<String>,
}

impl PolicyRule {
    pub fn allows(&self, access: &Access<'_>) -> bool {
        let any_or = |list: &[String], wanted: &str| list.iter().any(|entry| entry == "*" || entry == wanted);
        any_or(&self.verbs, access.verb)
            && any_or(&self.groups, access.group)
            && self.resources.iter().any(|resource| matches_resource(resource, access.resource))
            && (self.names.is_empty() || self.names.iter().any(|name| name == access.name))
    }
}

/// `*`, the resource itself, or `*/SUBRESOURCE`.
fn matches_resource(rule: &str, wanted: &str) -> bool {
    let subresource = |text| str::split_once(text, '/');
    rule == "*"
        || rule == wanted
        || matches!((subresource(rule), subresource(wanted)), (Some(("*", a)), Some((_, b))) if a == b)
}
