//! Reading reviews, and refusing other bodies.

use serde_json::{Value, json};

use super::*;
use crate::admission::tests::review;

fn parse(body: &[u8]) -> Result<Review, ParseError> {
    Review::parse(body, Webhook::Validate)
}

const SECRET: &str = "hunter2";

fn create(object: &Value) -> Value {
    review("CREATE", object, &Value::Null)
}

fn error(review: &Value) -> String {
    parse(review.to_string().as_bytes()).unwrap_err().to_string()
}

/// A review with one place in it replaced.
fn with(pointer: &str, value: Value) -> Value {
    let mut review = create(&json!({
        "metadata": {"name": "web", "generateName": "web-", "annotations": {"gmsa-webhook/random-hostname": "true", "gmsa-webhook/tickets": "t", "gmsa-webhook/keytab": "t"}},
        "spec": {
            "os": {"name": "windows"},
            "hostname": "h",
            "hostnameOverride": "h",
            "serviceAccountName": "sa",
            "runtimeClassName": "r",
            "nodeSelector": {"kubernetes.io/os": "windows", "node.kubernetes.io/windows-build": "b"},
            "securityContext": {"windowsOptions": {"gmsaCredentialSpecName": "n", "gmsaCredentialSpec": "c"}},
            "containers": [{
                "name": "c",
                "securityContext": {"windowsOptions": {"gmsaCredentialSpecName": "n"}},
                "env": [{"name": "v"}],
                "volumeMounts": [{"name": "m", "mountPath": "p", "readOnly": true, "subPath": "s", "subPathExpr": "e"}],
            }],
            "volumes": [{
                "name": "v",
                "emptyDir": {"medium": "m"},
                "projected": {"sources": [{"serviceAccountToken": {"audience": "a"}}]},
            }],
            "initContainers": [{"name": "i", "securityContext": {"windowsOptions": {}}}],
            "ephemeralContainers": [{"name": "e", "securityContext": {"windowsOptions": {}}}],
        },
    }));
    *review.pointer_mut(pointer).unwrap() = value;
    review
}

#[test]
fn a_review_is_read_from_the_body() {
    let body = create(&json!({"metadata": {"name": "web"}})).to_string();
    let review = parse(body.as_bytes()).unwrap();
    assert_eq!(review.api_version, ApiVersion::V1);
    assert_eq!(review.operation, Operation::Create);
    assert_eq!((&*review.kind, &*review.sub_resource, &*review.namespace), ("Pod", "", "prod"));
    assert!(review.is_pod());
    assert_eq!(review.uid, "u1");
    assert_eq!(review.object.unwrap().name(), "web");
    assert!(review.old_object.is_none());
}

#[test]
fn null_is_read_as_absent() {
    let pod = json!({
        "metadata": null,
        "spec": null,
    });
    let body = create(&pod).to_string();
    assert_eq!(parse(body.as_bytes()).unwrap().object.unwrap().slots().count(), 1);

    for pointer in [
        "/request/namespace",
        "/request/object",
        "/request/object/metadata",
        "/request/object/metadata/name",
        "/request/object/metadata/generateName",
        "/request/object/metadata/annotations",
        "/request/object/metadata/annotations/gmsa-webhook~1random-hostname",
        "/request/object/spec",
        "/request/object/spec/os",
        "/request/object/spec/os/name",
        "/request/object/spec/hostname",
        "/request/object/spec/hostnameOverride",
        "/request/object/spec/serviceAccountName",
        "/request/object/spec/securityContext",
        "/request/object/spec/securityContext/windowsOptions",
        "/request/object/spec/securityContext/windowsOptions/gmsaCredentialSpecName",
        "/request/object/spec/securityContext/windowsOptions/gmsaCredentialSpec",
        "/request/object/spec/containers",
        "/request/object/spec/initContainers",
        "/request/object/spec/ephemeralContainers",
        "/request/object/spec/containers/0/name",
        "/request/object/spec/containers/0/securityContext",
        "/request/object/metadata/annotations/gmsa-webhook~1tickets",
        "/request/object/metadata/annotations/gmsa-webhook~1keytab",
        "/request/object/spec/containers/0/env",
        "/request/object/spec/containers/0/env/0/name",
        "/request/object/spec/containers/0/volumeMounts",
        "/request/object/spec/containers/0/volumeMounts/0/name",
        "/request/object/spec/containers/0/volumeMounts/0/mountPath",
        "/request/object/spec/containers/0/volumeMounts/0/readOnly",
        "/request/object/spec/containers/0/volumeMounts/0/subPath",
        "/request/object/spec/containers/0/volumeMounts/0/subPathExpr",
        "/request/object/spec/volumes",
        "/request/object/spec/volumes/0/name",
        "/request/object/spec/volumes/0/emptyDir",
        "/request/object/spec/volumes/0/emptyDir/medium",
        "/request/object/spec/volumes/0/projected",
        "/request/object/spec/volumes/0/projected/sources",
        "/request/object/spec/volumes/0/projected/sources/0/serviceAccountToken",
        "/request/object/spec/volumes/0/projected/sources/0/serviceAccountToken/audience",
        "/request/kind/group",
    ] {
        let body = with(pointer, Value::Null).to_string();
        assert!(parse(body.as_bytes()).is_ok(), "{pointer}");
    }
}

const PREFIX: &str = "the body is not an AdmissionReview (admission.k8s.io/v1 or v1beta1): ";

fn refuses(pointers: &[&str], expected: &str, wrong: &[Value]) {
    for pointer in pointers {
        for value in wrong {
            let text = error(&with(pointer, value.clone()));
            assert!(text.starts_with(&format!("{PREFIX}expected {expected} at line 1 column ")), "{pointer}: {text}");
        }
    }
}

#[test]
fn a_field_of_the_wrong_type_is_refused_without_being_quoted() {
    let object = json!({"k": SECRET});
    let array = json!([SECRET]);
    let others = [json!(17), json!(1.5), json!(true), json!(false)];
    let not_objects = [&[json!(SECRET), array.clone(), json!([])], &others[..]].concat();
    let not_strings = [&[object.clone(), array, json!([])], &others[..]].concat();
    let not_arrays = [&[json!(SECRET), object], &others[..]].concat();
    refuses(
        &[
            "",
            "/request",
            "/request/kind",
            "/request/object",
            "/request/object/metadata",
            "/request/object/spec",
            "/request/object/spec/os",
            "/request/object/spec/securityContext",
            "/request/object/spec/securityContext/windowsOptions",
            "/request/object/spec/containers/0",
            "/request/object/spec/containers/0/securityContext/windowsOptions",
            "/request/object/spec/initContainers/0",
            "/request/object/spec/initContainers/0/securityContext",
            "/request/object/spec/ephemeralContainers/0",
            "/request/object/spec/containers/0/env/0",
            "/request/object/spec/containers/0/volumeMounts/0",
            "/request/object/spec/volumes/0",
            "/request/object/spec/volumes/0/emptyDir",
            "/request/object/spec/volumes/0/projected",
            "/request/object/spec/volumes/0/projected/sources/0",
            "/request/object/spec/volumes/0/projected/sources/0/serviceAccountToken",
        ],
        "an object",
        &not_objects,
    );
    refuses(
        &[
            "/request/uid",
            "/request/kind/group",
            "/request/kind/kind",
            "/request/namespace",
            "/request/object/metadata/name",
            "/request/object/metadata/generateName",
            "/request/object/metadata/annotations/gmsa-webhook~1random-hostname",
            "/request/object/spec/os/name",
            "/request/object/spec/hostname",
            "/request/object/spec/hostnameOverride",
            "/request/object/spec/serviceAccountName",
            "/request/object/spec/securityContext/windowsOptions/gmsaCredentialSpecName",
            "/request/object/spec/securityContext/windowsOptions/gmsaCredentialSpec",
            "/request/object/spec/containers/0/name",
            "/request/object/spec/ephemeralContainers/0/name",
        ],
        "a string",
        &not_strings,
    );
    refuses(
        &[
            "/request/object/spec/containers",
            "/request/object/spec/initContainers",
            "/request/object/spec/ephemeralContainers",
        ],
        "a sequence",
        &not_arrays,
    );
}

#[test]
fn an_unknown_word_is_refused_without_being_quoted() {
    // The quoted word imitates the end of the message: only the true end may be kept.
    let word = json!(format!("{SECRET}, expected {SECRET}"));
    for (pointer, expected) in [
        ("/apiVersion", "`admission.k8s.io/v1` or `admission.k8s.io/v1beta1`"),
        ("/kind", "`AdmissionReview`"),
        ("/request/operation", "one of `CREATE`, `UPDATE`, `DELETE`, `CONNECT`"),
    ] {
        refuses(&[pointer], expected, std::slice::from_ref(&word));
    }
}

#[test]
fn what_is_missing_is_named() {
    for (parent, field) in [
        ("", "apiVersion"),
        ("", "kind"),
        ("", "request"),
        ("/request", "uid"),
        ("/request", "kind"),
        ("/request", "operation"),
        ("/request/kind", "kind"),
    ] {
        let mut review = create(&json!({}));
        review.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(field);
        let text = error(&review);
        assert!(text.starts_with(&format!("{PREFIX}missing field `{field}` at line 1 column ")), "{text}");
    }
}

#[test]
fn a_known_key_that_stands_twice_is_refused() {
    let body =
        create(&json!({"spec": {"securityContext": {"windowsOptions": {"gmsaCredentialSpecName": "n"}}}})).to_string();
    for (once, twice, field) in [
        (r#""uid":"u1""#, r#""uid":"u1","uid":"u2""#, "uid"),
        (r#""operation":"CREATE""#, r#""operation":"UPDATE","operation":"CREATE""#, "operation"),
        (r#""oldObject":null"#, r#""object":{},"oldObject":null"#, "object"),
        (r#""spec":{"#, r#""spec":{},"spec":{"#, "spec"),
        (r#""securityContext":{"#, r#""securityContext":null,"securityContext":{"#, "securityContext"),
        (
            r#""gmsaCredentialSpecName":"n""#,
            r#""gmsaCredentialSpecName":"n","gmsaCredential\u0053pecName":"m""#,
            "gmsaCredentialSpecName",
        ),
    ] {
        assert!(body.contains(once), "{once}");
        let text = parse(body.replace(once, twice).as_bytes()).unwrap_err().to_string();
        assert!(text.starts_with(&format!("{PREFIX}duplicate field `{field}` at line 1 column ")), "{text}");
    }
}

#[test]
fn what_is_not_json_is_refused_with_the_place() {
    let body = create(&json!({"metadata": {"name": "web"}})).to_string();
    for (bad, explained) in [
        (&b""[..], "EOF while parsing a value at line 1 column 0"),
        (b"null", "expected an object at line 1 column 4"),
        (b"{", "EOF while parsing an object at line 1 column 1"),
        (b"{}", "missing field `apiVersion` at line 1 column 2"),
        (b"\xff\xfe", "it is not UTF-8 from byte 0 on"),
        (b"{\"apiVersion\":\"\xff\"}", "it is not UTF-8 from byte 15 on"),
        (&[body.as_bytes(), b"x"].concat(), &format!("trailing characters at line 1 column {}", body.len() + 1)),
    ] {
        assert_eq!(parse(bad).unwrap_err().to_string(), format!("{PREFIX}{explained}"));
    }
    for cut in 0..body.len() {
        assert!(parse(&body.as_bytes()[..cut]).is_err(), "{cut}");
    }
}

#[test]
fn unknown_fields_are_skipped_however_deep_they_are() {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let parsed = |pod: Value| parse(create(&pod).to_string().replace("\"DEEP\"", &deep).as_bytes());
    let skipped = parsed(json!({"spec": {"tolerations": "DEEP"}, "status": {"containers": 7}}));
    assert!(skipped.unwrap().object.is_some());
    let refused = parsed(json!({"spec": {"containers": "DEEP"}})).unwrap_err().to_string();
    assert!(refused.starts_with(&format!("{PREFIX}expected an object at line 1 column ")), "{refused}");
}

#[test]
fn a_uid_has_from_1_to_128_bytes() {
    for (uid, is_one) in [("", false), ("u", true), (&*"u".repeat(128), true), (&*"u".repeat(129), false)] {
        let body = with("/request/uid", json!(uid)).to_string();
        match parse(body.as_bytes()) {
            Ok(review) => assert!(is_one && review.uid == uid, "{uid}"),
            Err(error) => {
                assert!(!is_one, "{uid}");
                assert_eq!(error.to_string(), "the request.uid of the AdmissionReview is not of 1 to 128 bytes");
            }
        }
    }
}

#[test]
fn objects_of_other_kinds_are_named_and_not_read() {
    for (kind, name) in [
        (json!({"group": "apps", "version": "v1", "kind": "Deployment"}), "Deployment.apps"),
        (json!({"group": "metrics.k8s.io", "version": "v1", "kind": "Pod"}), "Pod.metrics.k8s.io"),
        (json!({"group": "", "version": "v1", "kind": "PodExecOptions"}), "PodExecOptions"),
        (json!({"version": "v1", "kind": "pod"}), "pod"),
        (json!({"group": null, "version": "v1", "kind": "Binding"}), "Binding"),
    ] {
        // A valid Pod, and what no Pod is.
        for object in [json!({"spec": {"containers": []}}), json!({"spec": {"containers": 3}}), json!([1])] {
            let mut review = create(&object);
            review["request"]["kind"] = kind.clone();
            review["request"]["oldObject"] = object;
            let body = review.to_string();
            let review = parse(body.as_bytes()).unwrap();
            assert_eq!(review.kind, name);
            assert!(!review.is_pod() && review.object.is_none() && review.old_object.is_none());
        }
    }
}

#[test]
fn the_old_object_is_not_read_where_there_is_none() {
    let parse = |operation: &str| {
        let body = review(operation, &json!({}), &json!({"spec": 3})).to_string();
        parse(body.as_bytes()).map(|review| review.old_object.is_some()).map_err(|error| error.to_string())
    };
    assert_eq!(parse("CREATE"), Ok(false));
    assert!(parse("UPDATE").is_err_and(|error| error.contains("expected an object at line 1 column ")));
}

#[test]
fn the_bounds_are_these() {
    assert_eq!(most_bytes_to_parse(2 << 20), (3 << 20) + (256 << 10));
    // Beside what it points to.
    assert!(size_of::<Review>() <= 2176, "{}", size_of::<Review>());
    assert_eq!(crate::admission::MOST_BYTES_TO_ANSWER, 7 << 20);
    let containers = json!({"spec": {"containers": vec![json!({}); 5000]}});
    let review = parse(create(&containers).to_string().as_bytes()).unwrap();
    assert_eq!(review.object.unwrap().slots().count(), 1 + crate::admission::pod::MAX_SLOTS);
}

#[test]
fn only_a_credential_spec_is_read_as_one() {
    let webhook = Webhook::ValidateCredspec;
    let mut review = create(&json!({"apiVersion": "windows.k8s.io/v1", "kind": "GMSACredentialSpec", "credspec": {}}));
    let mut is_read = |group: &str, kind: &str| {
        review["request"]["kind"] = json!({"group": group, "kind": kind});
        Review::parse(review.to_string().as_bytes(), webhook).unwrap().credential_spec.is_some()
    };
    assert!(is_read("windows.k8s.io", "GMSACredentialSpec"));
    assert!(!is_read("windows.k8s.io", "Other"));
}
