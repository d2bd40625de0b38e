//! `gmsa-webhook certs`: what is said of certificates in files and in a cluster, and what is issued into a folder; `gmsa-webhook test`: what
//! it makes of each answer that an API server gives to its pods.

use std::{
    fs::{self, File},
    io::pipe,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    time::SystemTime,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gmsa_edge::tls::{
    Summary, Timestamp,
    issue::{Ca, Issued},
};
use serde_json::{Value, json};

use super::{binary, run, server_program};
use crate::{
    https::{DAY, authority},
    support::{Fault, SimulatedApi, Verb, https::NAME},
};

const FILES: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

fn summary(cert: &str) -> Summary {
    let (_, pem) = x509_parser::pem::parse_x509_pem(cert.as_bytes()).unwrap();
    Summary::of(&pem.parse_x509().unwrap())
}

/// What is said of a certificate that is well, and how long it is valid.
fn well(cert: &str, days: u8) -> String {
    let summary = summary(cert);
    format!(
        "certificate 1: {summary}\nok    the certificate expires at {} ({days} d left)\n\
         ok    the private key is the key of the certificate\n\
         ok    the certificate authority accepts the certificate\n",
        Timestamp(summary.not_after)
    )
}

async fn inspect_files(folder: &Path) -> (i32, String, String) {
    let [cert, key, ca] = FILES.map(|name| folder.join(name).to_str().unwrap().to_owned());
    server_program(None, &["certs", "inspect", "--tls-cert", &cert, "--tls-key", &key, "--ca", &ca]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_only_worth_a_warning_does_not_pass() {
    let folder = tempfile::tempdir().unwrap();
    let since = SystemTime::now() - 90 * DAY;
    let ca = Ca::generate("test CA", since, 200 * DAY).unwrap();
    let Issued { cert, key } = ca.issue("gmsa-webhook", &[NAME.to_owned()], since, 92 * DAY + DAY / 2).unwrap().0;
    for (name, content) in FILES.into_iter().zip([&*cert, &key, ca.cert_pem()]) {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let report = well(&cert, 2).replacen("ok  ", "warn", 1).replacen(" d left)", " d left) (certificate-expiry)", 1);
    assert_eq!(inspect_files(folder.path()).await, (1, report, String::new()));
}

#[test]
fn a_report_that_cannot_be_written_is_an_error_and_one_that_nobody_reads_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let issue = ["certs", "issue", folder.path().to_str().unwrap(), "--name", NAME];
    assert_eq!(run(binary(&issue).stdout(pipe().unwrap().1)), (0, String::new(), String::new()));
    let full = "error: cannot write the report: No space left on device (os error 28)\n".to_owned();
    assert_eq!(run(binary(&issue).stdout(File::create("/dev/full").unwrap())), (2, String::new(), full));
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_cluster_every_webhook_is_asked_whether_it_accepts() {
    let (ca, other) = (authority(), authority());
    let Issued { cert, key } =
        ca.issue("gmsa-webhook", &[NAME.to_owned()], SystemTime::now(), 10 * DAY + DAY / 2).unwrap().0;
    let api = SimulatedApi::start().await;
    let arguments =
        "certs inspect --secret gmsa/tls --webhook-configuration mutating/gmsa --webhook-configuration validating/gmsa";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let inspected = async || server_program(Some(&api), &arguments).await;
    let failed = |error: &str| (2, String::new(), format!("error: {error}\n"));
    assert_eq!(inspected().await, failed("the Secret gmsa/tls does not exist"));
    api.fault(Verb::Get, "/secrets/tls", 1, Fault::forbidden());
    let forbidden = "cannot get the Secret gmsa/tls: the API server answered 403: not allowed here";
    assert_eq!(inspected().await, failed(forbidden));

    let data: serde_json::Map<_, _> = FILES
        .into_iter()
        .zip([cert.as_str(), &key, ca.cert_pem()])
        .map(|(name, content)| (name.to_owned(), json!(BASE64_STANDARD.encode(content))))
        .collect();
    let metadata = json!({"name": "tls", "namespace": "gmsa"});
    api.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}));
    let configure = |kind: &str, bundle: &str| {
        let service = json!({"name": "gmsa-webhook", "namespace": "gmsa"});
        let client = json!({"service": service, "caBundle": BASE64_STANDARD.encode(bundle)});
        api.apply(json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": format!("{kind}WebhookConfiguration"),
            "metadata": {"name": "gmsa"},
            "webhooks": [{"name": "w.example", "clientConfig": client}],
        }))
    };
    configure("Mutating", ca.cert_pem());
    configure("Validating", &format!("{}{}", other.cert_pem(), ca.cert_pem()));
    let accepts = |kind: &str| format!("ok    {kind}/gmsa, webhook w.example, accepts the certificate for {NAME}\n");
    let report = well(&cert, 10) + &accepts("mutating") + &accepts("validating");
    assert_eq!(inspected().await, (0, report, String::new()));

    configure("Mutating", other.cert_pem());
    api.delete("validatingwebhookconfigurations", "", "gmsa");
    let unknown = format!(
        "FAIL  mutating/gmsa, webhook w.example, does not accept the certificate for {NAME}: \
         invalid peer certificate: BadSignature (certificate-not-trusted)\n"
    );
    let report = well(&cert, 10) + &unknown + "FAIL  validating/gmsa does not exist (webhook-missing)\n";
    assert_eq!(inspected().await, (1, report, String::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_issued_and_then_renewed() {
    let root = tempfile::tempdir().unwrap();
    let into = root.path().join("made");
    let file = |name: &str| into.join(name);
    let read = |name: &str| fs::read_to_string(file(name)).unwrap();
    let shown = into.to_str().unwrap();
    let issue =
        ["certs", "issue", shown, "--service", "gmsa-webhook.gmsa", "--name", "127.0.0.1", "--leaf-lifetime", "252h"];
    let report = |authority: &str| {
        format!(
            "certificate: {}\nsigned by {authority}: {shown}/ca.key\nfor the caBundle: {shown}/ca.crt\n\
             for the server: {shown}/tls.crt and {shown}/tls.key\n",
            summary(&read("tls.crt"))
        )
    };

    let issued = server_program(None, &issue).await;
    assert_eq!(issued, (0, report("a new certificate authority"), String::new()));
    let first = summary(&read("tls.crt"));
    assert_eq!(first.names, [NAME, "gmsa-webhook.gmsa", "gmsa-webhook", "127.0.0.1"]);
    let ca = read("ca.crt");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    // As public as the umask lets a file be.
    fs::write(root.path().join("public"), "").unwrap();
    let public = mode(&root.path().join("public")) & 0o644;
    for (name, expected) in [("ca.key", 0o600), ("tls.key", 0o600), ("ca.crt", public), ("tls.crt", public)] {
        assert_eq!(mode(&file(name)), expected, "{name}");
    }
    assert_eq!(inspect_files(&into).await, (0, well(&read("tls.crt"), 10), String::new()));

    let issued = server_program(None, &issue).await;
    assert_eq!(issued, (0, report("the existing certificate authority"), String::new()));
    assert_ne!(summary(&read("tls.crt")).serial, first.serial);
    assert_eq!(fs::read_dir(&into).unwrap().count(), 4, "nothing else is left");
    assert_eq!(read("ca.crt"), ca);
}

#[test]
fn the_environment_of_serve_is_no_matter_of_other_commands() {
    let folder = tempfile::tempdir().unwrap();
    let output = |args: &[&str]| {
        let environment = [("LOG_LEVEL", "loud"), ("HTTPS_PORT", "x"), ("TLS_CRT", "c"), ("ENFORCEMENT", "maybe")];
        run(binary(args).envs(environment))
    };
    let issued = output(&["certs", "issue", folder.path().to_str().unwrap(), "--name", NAME]);
    assert_eq!((issued.0, &*issued.2), (0, ""));
    for serve in [&["serve", "--standalone", "examples"][..], &["--standalone", "examples"]] {
        let (code, _, complaint) = output(serve);
        let is_named = complaint.starts_with("error: invalid value 'x' for '--https-port <PORT>'");
        assert_eq!((code, is_named), (2, true), "{complaint}");
    }
}

const PODS: &str = "/api/v1/namespaces/apps/pods?dryRun=All";

/// What one of the answers in `dry_run.yaml` is to a pod.
fn answer(answer: &Value) -> Fault {
    let Some(message) = answer["message"].as_str() else {
        return Fault::Object(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "gmsa-webhook-test-x"}}));
    };
    let code = answer["code"].as_u64().unwrap().try_into().unwrap();
    Fault::Refuse { code, reason: "Whatever", message: message.to_owned().leak(), retry_after: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_validating_webhook_is_tested_by_itself() {
    let file: Value = serde_saphyr::from_str(include_str!("dry_run.yaml")).unwrap();
    for run in file["runs"].as_array().unwrap() {
        let api = SimulatedApi::start().await;
        for name in run["answers"].as_array().unwrap() {
            api.fault(Verb::Create, PODS, 1, answer(&file["answers"][name.as_str().unwrap()]));
        }
        let enforcement = run["enforcement"].as_str().unwrap_or("Enforce");
        let test = ["test", "--namespace", "apps", "--enforcement", enforcement];
        let (code, stdout, stderr) = server_program(Some(&api), &test).await;
        let expected = ["stdout", "stderr"].map(|stream| run[stream].as_str().unwrap_or_default());
        assert_eq!((json!(code), [&*stdout, &stderr]), (run["code"].clone(), expected));
        assert_slots(&api);
    }
}

/// Each pod names the credential spec in one slot; the last one is for /validate, which /mutate passes; in a slot that the Go webhook
/// beside this one would pass over.
fn assert_slots(api: &SimulatedApi) {
    let pods: Vec<Value> =
        api.requests(Verb::Create, "").into_iter().map(|request| request.body["spec"].clone()).collect();
    let name = json!({"gmsaCredentialSpecName": "gmsa-webhook-test-does-not-exist"});
    let mut whole = name.clone();
    whole["gmsaCredentialSpec"] = json!("{}");
    let asked = pods.iter().map(|spec| {
        ["", "/containers/0", "/initContainers/0"]
            .map(|place| spec.pointer(&format!("{place}/securityContext/windowsOptions")))
    });
    let (name, whole) = (Some(&name), Some(&whole));
    let expected = [[None; 3], [name, None, None], [None, name, None], [None, None, name], [None, None, whole]];
    assert_eq!(asked.collect::<Vec<_>>(), expected[..pods.len()]);
}
