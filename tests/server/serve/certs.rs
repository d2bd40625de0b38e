//! `gmsa-webhook certs`: what is said of certificates in files and in a cluster, and what is issued into a folder.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    time::{Duration, SystemTime},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gmsa_webhook::tls::{
    Summary, Timestamp,
    issue::{Ca, Issued},
};
use serde_json::json;
use tempfile::TempDir;

use super::{binary, run, server_program, stderr};
use crate::support::{Fault, SimulatedApi, Verb};

const DAY: Duration = Duration::from_secs(86_400);
const NAME: &str = "webhook.gmsa.svc";
const FILES: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

fn authority() -> Ca {
    Ca::generate("test CA", SystemTime::now(), 100 * DAY).unwrap()
}

/// A certificate that lives ten days and a bit.
fn leaf(ca: &Ca) -> Issued {
    ca.issue(&[NAME.to_owned()], SystemTime::now(), 10 * DAY + DAY / 2).unwrap()
}

fn summary(cert: &str) -> Summary {
    let (_, pem) = x509_parser::pem::parse_x509_pem(cert.as_bytes()).unwrap();
    Summary::of(&pem.parse_x509().unwrap())
}

/// The lines about a certificate itself, while it is valid.
fn about(cert: &str) -> String {
    let summary = summary(cert);
    format!("certificate 1: {summary}\nok    the certificate expires at {} (10 d left)\n", Timestamp(summary.not_after))
}

fn folder(cert: &str, key: &str, ca: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in FILES.into_iter().zip([cert, key, ca]) {
        fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

async fn inspect_files(folder: &Path) -> (i32, String, String) {
    let [cert, key, ca] = FILES.map(|name| folder.join(name).to_str().unwrap().to_owned());
    server_program(None, &["certs", "inspect", "--tls-cert", &cert, "--tls-key", &key, "--ca", &ca]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_belong_together_pass() {
    let ca = authority();
    let Issued { cert, key } = leaf(&ca);
    let report = about(&cert)
        + "ok    the private key is the key of the certificate\n"
        + "ok    the certificate authority accepts the certificate\n";
    let files = folder(&cert, &key, ca.cert_pem());
    assert_eq!(inspect_files(files.path()).await, (0, report, String::new()));

    // What is only worth a warning does not pass.
    let ca = Ca::generate("test CA", SystemTime::now() - 99 * DAY, 200 * DAY).unwrap();
    let late = ca.issue(&[NAME.to_owned()], SystemTime::now() - 90 * DAY, 92 * DAY + DAY / 2).unwrap();
    let (code, report, error) = inspect_files(folder(&late.cert, &late.key, ca.cert_pem()).path()).await;
    let warnings: Vec<&str> = report.lines().filter(|line| line.starts_with("warn ")).collect();
    let expiry = format!("warn  the certificate expires at {} (2 d left)", Timestamp(summary(&late.cert).not_after));
    assert_eq!((code, warnings, error), (1, vec![&*format!("{expiry} (certificate-expiry)")], String::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_looked_at_is_an_error() {
    let empty = tempfile::tempdir().unwrap();
    let error = format!(
        "error: cannot read {}: No such file or directory (os error 2)\n",
        empty.path().join("tls.crt").display()
    );
    assert_eq!(inspect_files(empty.path()).await, (2, String::new(), error));

    let (code, report, error) = server_program(None, &["certs", "inspect", "--secret", "gmsa/tls"]).await;
    assert_eq!((code, report.as_str()), (2, ""));
    assert!(error.starts_with("error: no cluster to ask: no credentials for a cluster: not in a pod ("), "{error}");

    let api = SimulatedApi::start().await;
    let error = "error: the Secret gmsa/tls does not exist\n".to_owned();
    let inspected = server_program(Some(&api), &["certs", "inspect", "--secret", "gmsa/tls"]).await;
    assert_eq!(inspected, (2, String::new(), error));
    api.fault(Verb::Get, "/secrets/tls", 1, Fault::forbidden());
    let error = "error: cannot get the Secret gmsa/tls: the API server answered 403: not allowed here\n".to_owned();
    let inspected = server_program(Some(&api), &["certs", "inspect", "--secret", "gmsa/tls"]).await;
    assert_eq!(inspected, (2, String::new(), error));

    let (code, report, error) = server_program(None, &["certs", "inspect"]).await;
    assert_eq!((code, report.as_str()), (2, ""));
    assert!(
        error.starts_with("error: the following required arguments were not provided:\n  --tls-cert <FILE>\n"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_cluster_every_webhook_is_asked_whether_it_accepts() {
    let (ca, other) = (authority(), authority());
    let Issued { cert, key } = leaf(&ca);
    let api = SimulatedApi::start().await;
    let data: serde_json::Map<_, _> = FILES
        .into_iter()
        .zip([cert.as_str(), &key, ca.cert_pem()])
        .map(|(name, content)| (name.to_owned(), json!(BASE64_STANDARD.encode(content))))
        .collect();
    let metadata = json!({"name": "tls", "namespace": "gmsa"});
    api.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}));
    let configuration = |kind: &str, service: &str, bundle: &str| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": format!("{kind}WebhookConfiguration"),
            "metadata": {"name": "gmsa"},
            "webhooks": [{
                "name": "w.example",
                "clientConfig": {
                    "service": {"name": service, "namespace": "gmsa"},
                    "caBundle": BASE64_STANDARD.encode(bundle),
                },
            }],
        })
    };
    let arguments = [
        "certs",
        "inspect",
        "--secret",
        "gmsa/tls",
        "--webhook-configuration",
        "mutating/gmsa",
        "--webhook-configuration",
        "validating/gmsa",
    ];
    let own = about(&cert)
        + "ok    the private key is the key of the certificate\n"
        + "ok    the certificate authority accepts the certificate\n";

    api.apply(configuration("Mutating", "webhook", ca.cert_pem()));
    api.apply(configuration("Validating", "webhook", &format!("{}{}", other.cert_pem(), ca.cert_pem())));
    let report = own.clone()
        + "ok    mutating/gmsa, webhook w.example, accepts the certificate for webhook.gmsa.svc\n"
        + "ok    validating/gmsa, webhook w.example, accepts the certificate for webhook.gmsa.svc\n";
    assert_eq!(server_program(Some(&api), &arguments).await, (0, report, String::new()));

    // Another authority, and another Service.
    api.apply(configuration("Mutating", "webhook", other.cert_pem()));
    api.apply(configuration("Validating", "elsewhere", ca.cert_pem()));
    let (code, report, error) = server_program(Some(&api), &arguments).await;
    assert_eq!((code, error.as_str()), (1, ""));
    let unknown = "FAIL  mutating/gmsa, webhook w.example, does not accept the certificate for webhook.gmsa.svc: \
        invalid peer certificate: BadSignature (certificate-not-trusted)\n";
    let unnamed = "FAIL  validating/gmsa, webhook w.example, does not accept the certificate for elsewhere.gmsa.svc: \
        invalid peer certificate: certificate not valid for name \"elsewhere.gmsa.svc\"; certificate is only valid for \
        DnsName(\"webhook.gmsa.svc\") (certificate-not-trusted)\n";
    assert_eq!(report, own.clone() + unknown + unnamed);

    api.delete("validatingwebhookconfigurations", "", "gmsa");
    let report = own + unknown + "FAIL  validating/gmsa does not exist (webhook-missing)\n";
    assert_eq!(server_program(Some(&api), &arguments).await, (1, report, String::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_issued_and_then_renewed() {
    let root = tempfile::tempdir().unwrap();
    let into = root.path().join("made");
    let file = |name: &str| into.join(name);
    let read = |name: &str| fs::read_to_string(file(name)).unwrap();
    let shown = into.to_str().unwrap();
    let issue =
        ["certs", "issue", shown, "--service", "webhook.gmsa", "--name", "127.0.0.1", "--leaf-lifetime", "252h"];
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
    assert_eq!(first.names, ["webhook.gmsa.svc", "webhook.gmsa", "webhook", "127.0.0.1"]);
    let ca = read("ca.crt");
    for (name, mode) in [("ca.key", 0o600), ("tls.key", 0o600), ("ca.crt", 0o644), ("tls.crt", 0o644)] {
        assert_eq!(fs::metadata(file(name)).unwrap().permissions().mode() & 0o777, mode, "{name}");
    }
    let (code, inspected, _) = inspect_files(&into).await;
    assert_eq!((code, inspected.lines().filter(|line| line.starts_with("ok ")).count()), (0, 3), "{inspected}");

    let issued = server_program(None, &issue).await;
    assert_eq!(issued, (0, report("the existing certificate authority"), String::new()));
    assert_ne!(summary(&read("tls.crt")).serial, first.serial);
    assert_eq!(fs::read_dir(&into).unwrap().count(), 4, "nothing else is left");
    assert_eq!(read("ca.crt"), ca);

    fs::write(file("ca.key"), "oops").unwrap();
    let error = format!(
        "error: cannot issue a certificate with {shown}/ca.crt: the certificate authority's private key cannot be read"
    );
    let (code, report, complaint) = server_program(None, &issue).await;
    assert_eq!((code, report.as_str()), (2, ""));
    assert!(complaint.starts_with(&error), "{complaint}");
    assert_eq!(read("ca.crt"), ca, "it is not replaced");

    let (code, report, error) = server_program(None, &["certs", "issue", shown]).await;
    assert_eq!((code, report.as_str()), (2, ""));
    assert!(
        error.starts_with("error: the following required arguments were not provided:\n  --name <NAME>\n"),
        "{error}"
    );
}

#[test]
fn the_environment_of_serve_is_no_matter_of_other_commands() {
    let folder = tempfile::tempdir().unwrap();
    let output = |args: &[&str]| {
        let environment = [("LOG_LEVEL", "loud"), ("HTTPS_PORT", "x"), ("TLS_CRT", "c"), ("ENFORCEMENT", "maybe")];
        run(binary(args).envs(environment))
    };
    let issued = output(&["certs", "issue", folder.path().to_str().unwrap(), "--name", NAME]);
    assert_eq!((issued.status.code(), stderr(&issued)), (Some(0), ""));
    for serve in [&["serve", "--standalone", "examples"][..], &["--standalone", "examples"]] {
        let refused = output(serve);
        assert_eq!(refused.status.code(), Some(2));
        let error = "error: invalid value 'x' for '--https-port <PORT>': expected a port: a number from 0 to 65535";
        assert_eq!(stderr(&refused).lines().next(), Some(error));
    }
}
