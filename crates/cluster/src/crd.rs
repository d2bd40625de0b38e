//! The CRD of this release: its text, and the revision that says which of two is newer.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The manifest, as the chart has it.
pub const TEXT: &str = include_str!("../../../charts/gmsa-webhook/crds/gmsacredentialspecs.yaml");
/// The path of the CRD in an API server.
pub const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gmsacredentialspecs.windows.k8s.io";
/// The annotation that counts the changes of the CRD.
const ANNOTATION: &str = "gmsa-webhook/crd-revision";

#[expect(clippy::missing_panics_doc, reason = "it never panics")]
pub fn own_revision() -> u32 {
    let annotation = TEXT.lines().find_map(|line| line.trim().strip_prefix(ANNOTATION)?.strip_prefix(": "));
    #[expect(clippy::expect_used, reason = "the manifest is part of the program, and a test reads its revision")]
    annotation.and_then(|revision| revision.trim_matches('"').parse().ok()).expect("the CRD has a revision")
}

/// The revision of a CRD. A CRD without the annotation is older than any with it.
pub fn revision(crd: &ObjectMeta) -> u32 {
    let revision = crd.annotations.as_ref().and_then(|annotations| annotations.get(ANNOTATION));
    revision.and_then(|revision| revision.parse().ok()).unwrap_or(0)
}
