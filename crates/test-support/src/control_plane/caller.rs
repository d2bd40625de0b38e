//! How the API server proves to a webhook that it is the API server: by a client certificate, to the webhooks in its configuration.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gmsa_edge::tls::issue::{Ca, Issued};
use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use serde_json::json;

/// The common name of the certificate.
pub const CALLER: &str = "kube-apiserver";

/// The file that the API server is started with.
pub(super) const ADMISSION: &str = "admission.json";

const CERT: &str = "caller.crt";
const KEY: &str = "caller.key";
/// The servers that get the certificate.
const KUBECONFIG: &str = "webhooks.kubeconfig";

/// The file with the authority that signed the API server's certificate.
pub fn authority(folder: &Path) -> PathBuf {
    folder.join("caller-ca.crt")
}

/// A client's certificate, as `openssl` would sign one.
pub fn client_certificate(ca: &Ca, common_name: &str, dns_names: &[&str]) -> Issued {
    let key = KeyPair::generate().unwrap();
    let dns_names: Vec<_> = dns_names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(dns_names).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let signer = KeyPair::from_pem(&ca.key_pem()).unwrap();
    let issuer = Issuer::from_ca_cert_pem(ca.cert_pem(), signer).unwrap();
    Issued { cert: params.signed_by(&key, &issuer).unwrap().pem(), key: key.serialize_pem() }
}

/// Writes what the API server is to read, and its certificate, signed by `ca`.
pub(super) fn write(folder: &Path, ca: &Ca) {
    let Issued { cert, key } = client_certificate(ca, CALLER, &[]);
    fs::write(folder.join(CERT), cert).unwrap();
    fs::write(folder.join(KEY), key).unwrap();
    fs::write(authority(folder), ca.cert_pem()).unwrap();
    show_to(folder, &[]);
}

/// How the admission plugins of API servers that start from now on are configured; `policies` is the folder of the static ones, where there is one.
pub(super) fn configure(folder: &Path, policies: Option<&Path>) {
    let plugin = |name: &str, kind: &str, key: &str, path: &Path| {
        let configuration = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": kind, key: path});
        json!({"name": name, "configuration": configuration})
    };
    let of_webhooks = |name| plugin(name, "WebhookAdmissionConfiguration", "kubeConfigFile", &folder.join(KUBECONFIG));
    let of_policies = |path: &Path| {
        plugin("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyConfiguration", "staticManifestsDir", path)
    };
    let plugins = ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"].map(of_webhooks);
    let plugins: Vec<_> = plugins.into_iter().chain(policies.map(of_policies)).collect();
    let admission =
        json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins});
    fs::write(folder.join(ADMISSION), admission.to_string()).unwrap();
}

/// Has API servers that start from now on show their certificate to these Services: `NAME.NAMESPACE.svc`, and `:PORT` where
/// that is not 443.
pub(super) fn show_to(folder: &Path, services: &[&str]) {
    let user = json!({"client-certificate": folder.join(CERT), "client-key": folder.join(KEY)});
    let users: Vec<_> = services.iter().map(|service| json!({"name": service, "user": user})).collect();
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "users": users});
    fs::write(folder.join(KUBECONFIG), kubeconfig.to_string()).unwrap();
}
