//! Credential specs in reviews, with strictness and without.

use serde_json::{Value, json};

use crate::admission::{Decision, Review, Settings, Step, Verdict, Webhook};

fn judge(strict: bool, operation: &str, kind: &Value, object: &Value) -> Decision {
    let body = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "1", "operation": operation, "kind": kind, "object": object},
    })
    .to_string();
    let (webhook, settings) =
        (Webhook::ValidateCredspec, Settings { strict_credential_specs: strict, ..Settings::default() });
    let review = Review::parse(body.as_bytes(), webhook).unwrap();
    let Step::Done(decision) = Decision::begin(review, webhook, settings) else { panic!("nothing is asked") };
    decision
}

fn kind() -> Value {
    json!({"group": "windows.k8s.io", "version": "v1", "kind": "GMSACredentialSpec"})
}

fn spec(sid: &str, scopes: &[&str]) -> Value {
    let accounts: Vec<_> = scopes.iter().map(|scope| json!({"Name": "WebApp1", "Scope": scope})).collect();
    json!({
        "apiVersion": "windows.k8s.io/v1",
        "kind": "GMSACredentialSpec",
        "metadata": {"name": "webapp1"},
        "credspec": {
            "ActiveDirectoryConfig": {"GroupManagedServiceAccounts": accounts},
            "CmsPlugins": ["ActiveDirectory"],
            "DomainJoinConfig": {
                "DnsName": "contoso.com", "DnsTreeName": "contoso.com", "Guid": "244818ae-87ac-4fcd-92ec-e79e5252348a",
                "MachineAccountName": "WebApp1", "NetBiosName": "CONTOSO", "Sid": sid,
            },
        },
    })
}

const DOMAIN: &str = "S-1-5-21-1-2-3";
const ACCOUNT: &str = "S-1-5-21-1-2-3-1104";
const BOTH: [&str; 2] = ["contoso.com", "CONTOSO"];

#[test]
fn a_good_spec_passes_silently() {
    for strict in [false, true] {
        let decision = judge(strict, "CREATE", &kind(), &spec(DOMAIN, &BOTH));
        assert_eq!((decision.verdict, decision.reason), (Verdict::Allowed, "clean"));
        assert_eq!(decision.warnings, [""; 0]);
    }
}

#[test]
fn by_default_findings_are_warnings() {
    let decision = judge(false, "UPDATE", &kind(), &spec(ACCOUNT, &BOTH[..1]));
    assert_eq!((decision.verdict, decision.reason), (Verdict::Allowed, "findings"));
    assert_eq!(
        decision.warnings,
        [
            "DomainJoinConfig.Sid: \"S-1-5-21-1-2-3-1104\" is an account's SID: one number too many [sid]",
            "DomainJoinConfig.Guid: \"244818ae-87ac-4fcd-92ec-e79e5252348a\" may be the account's too: Sid is the account's [guid]",
            "ActiveDirectoryConfig.GroupManagedServiceAccounts: has no entry whose Scope is the NetBIOS name \"CONTOSO\" [accounts]",
        ]
    );
}

#[test]
fn strictness_refuses_errors_and_warns_of_the_rest() {
    let decision = judge(true, "CREATE", &kind(), &spec(ACCOUNT, &BOTH[..1]));
    let Verdict::Denied(denial) = &decision.verdict else { panic!("allowed") };
    assert_eq!((denial.code(), decision.reason), (422, "credential-spec-wrong"));
    assert_eq!(
        denial.to_string(),
        "the GMSA cred spec cannot work: credspec.DomainJoinConfig.Sid: \"S-1-5-21-1-2-3-1104\" is an account's SID: \
         one number too many (the container starts, but has no trust with the domain: every logon \
         fails; right: S-1-5-21-1-2-3, to be compared with (Get-ADDomain).DomainSID.Value)"
    );
    assert_eq!(decision.warnings.len(), 2);
    let decision = judge(true, "CREATE", &kind(), &spec(DOMAIN, &BOTH[..1]));
    assert_eq!((decision.verdict, decision.reason), (Verdict::Allowed, "findings"));
}

#[test]
fn what_looks_like_a_password_is_a_warning_with_strictness_too() {
    let mut spec = spec(DOMAIN, &BOTH);
    spec["credspec"]["ActiveDirectoryConfig"]["HostAccountConfig"] = json!({
        "PluginGUID": "{CFCA0441-511D-4B2A-862E-20348A78760B}", "PluginInput": "contoso.com:gmsaccg:p4ssw0rd", "PortableCcgVersion": "1",
    });
    let decision = judge(true, "CREATE", &kind(), &spec);
    assert_eq!((decision.verdict, decision.reason), (Verdict::Allowed, "findings"));
    assert_eq!(decision.warnings, ["HostAccountConfig.PluginInput: seems to hold a password [plugin-password]"]);
}

#[test]
fn a_denial_stays_short() {
    let empty = json!({"metadata": {"name": "A"}, "credspec": {"DomainJoinConfig": {}}});
    let decision = judge(true, "CREATE", &kind(), &empty);
    let Verdict::Denied(denial) = &decision.verdict else { panic!("allowed") };
    assert!(denial.to_string().ends_with("; and 4 more"), "{denial}");
}

#[test]
fn a_deletion_is_always_allowed() {
    let decision = judge(true, "DELETE", &kind(), &Value::Null);
    assert_eq!((decision.verdict, decision.reason), (Verdict::Allowed, "deletion"));
}

#[test]
fn what_is_no_credential_spec_is_refused() {
    let pod = json!({"group": "", "version": "v1", "kind": "Pod"});
    for (operation, kind, message) in [
        ("CREATE", pod, "expected a GMSACredentialSpec object, got a Pod"),
        ("CONNECT", kind(), "expected a CREATE or UPDATE operation, got CONNECT"),
    ] {
        let decision = judge(false, operation, &kind, &Value::Null);
        let Verdict::Denied(denial) = &decision.verdict else { panic!("allowed") };
        assert_eq!((denial.code(), denial.to_string().as_str()), (400, message));
    }
}
