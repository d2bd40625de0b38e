//! What a denial says where facts are missing, failed or are against the pod.

use serde_json::json;

use super::*;

#[test]
fn a_reason_is_given_where_there_is_one() {
    let pod = create(&json!({"securityContext": options("a", "{\"a\":1}")}));
    for (reason, end) in [(None, ""), (Some(""), ""), (Some("no \"RBAC\""), r#", reason: "no \"RBAC\"""#)] {
        let facts = facts("a", UseFact::Denied { reason: reason.map(str::to_owned) }, Source::Api);
        let message = format!("service account \"default\" is not authorized to `use` GMSA cred spec \"a\"{end}");
        assert_eq!(denial(Webhook::Validate, &pod, &facts), (403, message));
    }
}

#[test]
fn a_failed_question_is_a_denial_with_its_cause() {
    let pod = create(&json!({"securityContext": options("a", "{\"a\":1}")}));
    for (kind, code) in [(FailureKind::Failed, 500), (FailureKind::TimedOut, 504), (FailureKind::NotAsked, 500)] {
        let failed = UseFact::Failed(Failure { kind, ..Failure::new("the API server is away") });
        let message = "unable to check whether service account \"default\" is authorized to `use` GMSA cred spec \"a\": the API server is away";
        assert_eq!(denial(Webhook::Validate, &pod, &facts("a", failed, Source::Api)), (code, message.to_owned()));
    }
}

#[test]
fn a_denial_has_the_status_reason_of_its_code() {
    let failed = |kind| Denial::SpecUnreadable { spec: name("a"), failure: Failure { kind, ..Failure::new("away") } };
    let forbidden =
        Denial::NotAuthorized { service_account: "sa".to_owned(), verb: Verb::Use, spec: name("a"), reason: None };
    for (denial, status) in [
        (Denial::NoObject { field: "object", operation: operation::Operation::Create }, (400, Some("BadRequest"))),
        (forbidden, (403, Some("Forbidden"))),
        (Denial::SpecMissing(name("a")), (404, Some("NotFound"))),
        (Denial::TooManySlots, (422, Some("Invalid"))),
        (failed(FailureKind::Failed), (500, Some("InternalError"))),
        (failed(FailureKind::TimedOut), (504, None)),
    ] {
        assert_eq!((denial.code(), denial.status_reason()), status);
    }
}
