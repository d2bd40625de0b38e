//! `dns` on the simulated API server: which platform it recognizes, and that what it prints is what `doctor` then finds. What it prints
//! for each platform is in the folders `dns-*`.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::{
    cluster::{healthy, kind},
    program,
    support::{Fault, SimulatedApi, Verb},
    text,
};

const ZONE: [&str; 7] = ["dns", "--domain", "contoso.com", "--server", "10.0.0.4", "--server", "10.0.0.5"];

/// A cluster without DNS, of this version.
async fn cluster(version: &str) -> SimulatedApi {
    let api = healthy().await;
    api.delete("configmaps", "kube-system", "coredns");
    api.heal();
    api.fault(Verb::Get, "/version", usize::MAX, Fault::Object(json!({"gitVersion": version})));
    api
}

fn map(name: &str, key: &str, value: &str) -> Value {
    let metadata = json!({"name": name, "namespace": "kube-system"});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {key: value}})
}

const ROOT: &str = ".:53 {\n    kubernetes cluster.local\n    forward . /etc/resolv.conf\n    reload\n}\n";

#[tokio::test(flavor = "multi_thread")]
async fn the_platform_is_recognized() {
    let custom = format!("{ROOT}import custom/*.server\n");
    let of_k3s = format!("{ROOT}import /etc/coredns/custom/*.server\n");
    let stubs = map("kube-dns", "stubDomains", "{}");
    for (version, object, said) in [
        ("v1.33.1", map("coredns", "Corefile", ROOT), "kubeadm, by ConfigMap kube-system/coredns"),
        (
            "v1.33.1-eks-595af52",
            map("coredns", "Corefile", ROOT),
            "eks, by the version of the API server (v1.33.1-eks-595af52)",
        ),
        (
            "v1.33.1",
            map("coredns", "Corefile", &custom),
            "aks, by the line `import custom/*.server` of ConfigMap kube-system/coredns",
        ),
        ("v1.33.1+k3s1", map("coredns", "Corefile", &of_k3s), "k3s, by the version of the API server (v1.33.1+k3s1)"),
        (
            "v1.33.1",
            map("rke2-coredns-rke2-coredns", "Corefile", ROOT),
            "rke2, by ConfigMap kube-system/rke2-coredns-rke2-coredns",
        ),
        ("v1.33.1-gke.1200", stubs, "gke, by the version of the API server (v1.33.1-gke.1200)"),
        (
            "v1.33.1",
            json!({"apiVersion": "operator.openshift.io/v1", "kind": "DNS", "metadata": {"name": "default"}, "spec": {}}),
            "openshift, by DNS default",
        ),
    ] {
        let api = cluster(version).await;
        api.define(kind("operator.openshift.io/v1", "DNS", "dnses", false));
        api.apply(object);
        let output = super::cluster::run(&api, &ZONE).await;
        let stderr = text(&output.stderr);
        assert_eq!(stderr.lines().next(), Some(format!("platform: {said}").as_str()), "{stderr}");
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        assert!(text(&output.stdout).contains("10.0.0.4"), "{}", text(&output.stdout));
    }
    let api = cluster("v1.33.1").await;
    let output = super::cluster::run(&api, &ZONE).await;
    let unknown = "error: the platform cannot be recognized, as none of the objects that configure a DNS is there: give --platform\n";
    assert_eq!((text(&output.stderr), output.status.code()), (unknown, Some(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_printed_is_what_doctor_finds() {
    let api = cluster("v1.33.1").await;
    api.apply(map("coredns", "Corefile", ROOT));
    let printed = super::cluster::run(&api, &ZONE).await;
    let object: Value = serde_saphyr::from_str(text(&printed.stdout)).unwrap();
    // The version that was read, at which `kubectl replace` is refused when somebody else was faster.
    assert_eq!(
        object["metadata"],
        api.object("configmaps", "kube-system", "coredns").unwrap()["metadata"].without_uid()
    );
    api.apply(object);
    let again = super::cluster::run(&api, &ZONE).await;
    let nothing = "platform: kubeadm, by ConfigMap kube-system/coredns\n\
        contoso.com is forwarded to 10.0.0.4, 10.0.0.5 already (ConfigMap kube-system/coredns): there is nothing to do\n";
    assert_eq!((text(&again.stdout), text(&again.stderr), again.status.code()), ("", nothing, Some(0)));
    let doctor = super::cluster::run(&api, &["doctor"]).await;
    let line = "pass  DNS                contoso.com: the zone contoso.com goes to 10.0.0.4, 10.0.0.5 (ConfigMap kube-system/coredns)\n";
    assert!(text(&doctor.stdout).contains(line), "{}", text(&doctor.stdout));
}

/// What only the API server writes is not printed.
trait WithoutUid {
    fn without_uid(&self) -> Value;
}

impl WithoutUid for Value {
    fn without_uid(&self) -> Value {
        let mut metadata = self.clone();
        for field in ["uid", "creationTimestamp", "generation", "managedFields"] {
            metadata.as_object_mut().unwrap().remove(field);
        }
        metadata
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_read_is_an_error() {
    let api = cluster("v1.33.1").await;
    api.fault(Verb::Get, "/configmaps/", usize::MAX, Fault::forbidden());
    let output = super::cluster::run(&api, &ZONE).await;
    let refused = "error: the API server answered 403: not allowed here\n";
    assert_eq!((text(&output.stdout), text(&output.stderr), output.status.code()), ("", refused, Some(2)));
}

/// The `coredns` on the PATH.
fn coredns() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("coredns")).find(|file| file.is_file())
}

/// CoreDNS starts with what is printed. It listens at a port that the system chooses.
#[test]
fn a_real_coredns_reads_the_printed_corefile() {
    let Some(coredns) = coredns() else {
        println!("there is no coredns on the PATH: the printed Corefile is read by this project's reader alone");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let print = |existing: &str| -> Value {
        fs::write(file("existing.yaml"), existing).unwrap();
        let output = program(folder.path()).args(ZONE).args(["-f", "existing.yaml"]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        serde_saphyr::from_str(text(&output.stdout)).unwrap()
    };
    let root = ".:0 {\n    errors\n    cache 30\n    forward . 127.0.0.1:9\n}\n";
    let printed = print(&map("coredns", "Corefile", root).to_string());
    fs::write(file("Corefile"), printed["data"]["Corefile"].as_str().unwrap()).unwrap();
    assert!(starts(&coredns, &file("Corefile")));

    let imports = format!("{root}import custom/*.server\n");
    let printed = print(&map("coredns", "Corefile", &imports).to_string());
    fs::create_dir(file("custom")).unwrap();
    fs::write(file("custom/contoso.com.server"), printed["data"]["contoso.com.server"].as_str().unwrap()).unwrap();
    fs::write(file("Corefile"), imports).unwrap();
    assert!(starts(&coredns, &file("Corefile")));

    fs::write(file("Corefile"), ". {\n    errors\n").unwrap();
    assert!(!starts(&coredns, &file("Corefile")));
}

/// Whether CoreDNS says that it serves: its version is the last that it prints when it starts.
fn starts(coredns: &Path, corefile: &Path) -> bool {
    let mut child =
        Command::new(coredns).arg("-conf").arg(corefile).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let served = lines.map_while(Result::ok).any(|line| line.starts_with("CoreDNS-"));
    let _ = child.kill();
    child.wait().unwrap();
    served
}
