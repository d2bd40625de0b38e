//! Credential specs from manifests: what is found, and what is refused.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::manifests::{Bounds, Error, parse};
use gmsa_core::diagnostic::Diagnostics;

fn specs(text: &str) -> Result<CredentialSpecs, String> {
    {
        let (found, refused) =
            CredentialSpecs::from_documents(&parse("a.yaml", text, &Bounds::SERVER).complete().unwrap());
        let mut problems = Diagnostics::default();
        problems.extend(refused);
        Error::unless_none(problems).map(|()| found).map_err(|error| error.to_string())
    }
}

fn name(text: &str) -> SpecName {
    SpecName::parse(text).unwrap()
}

const SPECS: &str = "
apiVersion: windows.k8s.io/v1
kind: GMSACredentialSpec
metadata: {name: new}
credspec: {b: <x>, a: 1}
---
apiVersion: windows.k8s.io/v1alpha1
kind: GMSACredentialSpec
metadata: {name: old}
credspec: {}
---
apiVersion: windows.k8s.io/v1
kind: GMSACredentialSpec
metadata: {name: without}
---
apiVersion: windows.k8s.io/v1
kind: GMSACredentialSpec
metadata: {name: text}
credspec: '{}'
---
apiVersion: other.example.com/v1
kind: GMSACredentialSpec
---
apiVersion: windows.k8s.io/v1
kind: Other
";

#[test]
fn credential_specs_are_known_by_name() {
    let specs = specs(SPECS).unwrap();
    assert_eq!(specs.names().len(), 4);
    assert_eq!(specs.names().map(SpecName::as_str).collect::<Vec<_>>(), ["new", "old", "text", "without"]);
    let contents = |value: serde_json::Value| SpecFact::Contents(Arc::new(Contents::of(value.as_object().unwrap())));
    assert_eq!(specs.fact(&name("new")), contents(json!({"a": 1, "b": "<x>"})));
    assert_eq!(specs.fact(&name("old")), contents(json!({})));
    assert_eq!(specs.fact(&name("without")), SpecFact::Unusable);
    assert_eq!(specs.fact(&name("text")), SpecFact::Unusable);
    assert_eq!(specs.fact(&name("other")), SpecFact::Missing);
}

#[tokio::test]
async fn answers_come_from_files_at_once() {
    let specs = specs(SPECS).unwrap();
    let past = Instant::now() - Duration::from_secs(1);
    for freshness in [Freshness::Any, Freshness::Live] {
        let resolved = specs.resolve(&name("other"), freshness, past).await;
        assert_eq!(resolved, Resolved { fact: SpecFact::Missing, source: Source::Files });
    }
}

#[test]
fn no_credential_specs_are_fine() {
    assert_eq!(specs("apiVersion: v1\nkind: Pod\n").unwrap().names().len(), 0);
}

#[test]
fn what_the_api_server_would_refuse_is_an_error() {
    let text = "
apiVersion: windows.k8s.io/v2
kind: GMSACredentialSpec
metadata: {name: a}
---
apiVersion: windows.k8s.io/v1
kind: GMSACredentialSpec
metadata:
  name: gmsa-WebApp1
---
apiVersion: windows.k8s.io/v1
kind: GMSACredentialSpec
metadata: {generateName: a-}
---
apiVersion: windows.k8s.io/v1
kind: GMSACredentialSpec
metadata: {name: 7}
---
apiVersion: windows.k8s.io/v1
kind: GMSACredentialSpec
metadata: {name: twice}
---
apiVersion: windows.k8s.io/v1alpha1
kind: GMSACredentialSpec
metadata: {name: twice}
";
    assert_eq!(
        specs(text).unwrap_err(),
        "cannot load the manifests: \
         a.yaml, document 1, line 2: apiVersion: expected windows.k8s.io/v1 or windows.k8s.io/v1alpha1; \
         a.yaml, document 2, line 9: metadata.name: expected a lower-case DNS subdomain, found \"gmsa-WebApp1\"; \
         a.yaml, document 3, line 13: metadata.name: expected a lower-case DNS subdomain, found null; \
         a.yaml, document 4, line 17: metadata.name: expected a lower-case DNS subdomain, found 7; \
         a.yaml, document 6, line 25: metadata.name: GMSACredentialSpec \"twice\" is defined twice, first in a.yaml, document 5, line 19"
    );
}
