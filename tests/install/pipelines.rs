//! The parts for pipelines as docs/pipelines.md prints them: the Argo CD hook, the `CronJob`, the hooks of pre-commit, the action.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, printed},
    helm::Helm,
    pods::{Options, pod},
    tool::plugin,
};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const SPEC: &str = include_str!("credential-spec.yaml");

/// The manifests of the page's block with this text in it.
fn block(text: &str) -> String {
    let page = fs::read_to_string("docs/pipelines.md").unwrap();
    let blocks = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let found: Vec<&str> = blocks.filter(|block| block.contains(text)).collect();
    assert_eq!(found.len(), 1, "{text}");
    found[0].to_owned()
}

/// A Deployment of the namespace `shop` whose pods name the credential spec.
fn deployment() -> Value {
    let mut template = pod("web", "pod", Options::Name, "webapp1");
    template["metadata"] = json!({"labels": {"app": "web"}});
    template["spec"]["os"] = json!({"name": "windows"});
    template["spec"]["nodeSelector"] =
        json!({"kubernetes.io/os": "windows", "node.kubernetes.io/windows-build": "10.0.20348"});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": template["metadata"], "spec": template["spec"]},
        },
    })
}

/// A cluster with the CRD, a credential spec and the namespace `shop`.
fn start() -> Cluster {
    let cluster = Cluster::start();
    cluster.apply(&fs::read_to_string("charts/gmsa-webhook/crds/gmsacredentialspecs.yaml").unwrap());
    cluster.until("the kind is served", || cluster.kubectl(["get", "gmsacredentialspecs"]).status.success());
    cluster.apply(SPEC);
    cluster.create_namespace("shop");
    cluster
}

fn grant(cluster: &Cluster) {
    let grant = ["grant", "--credspec", "webapp1", "--serviceaccount", "shop:default", "--apply"];
    printed(Command::new(plugin()).args(grant).env("KUBECONFIG", cluster.kubeconfig()).output().unwrap());
}

/// Runs the container of a pod with the rights of the pod's service account, and with a folder mounted: its exit code, and what it prints.
fn contained(cluster: &Cluster, namespace: &str, spec: &Value, container: &Value, manifests: &Path) -> (i32, String) {
    let (control_plane, runtime) = cluster.control_plane();
    let account = spec["serviceAccountName"].as_str().unwrap();
    let credentials = cluster.folder().join("job.kubeconfig");
    fs::write(&credentials, runtime.block_on(control_plane.kubeconfig_of(namespace, account)).to_string()).unwrap();
    let args = container["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
    let mounted = manifests.to_str().unwrap();
    let mut command = Command::new(plugin());
    command.args(args.map(|arg| arg.replace("/manifests", mounted))).env_clear().env("KUBECONFIG", credentials);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code().unwrap(), said.replace(mounted, "/manifests"))
}

#[test]
fn a_sync_is_refused_before_it_begins_where_its_pods_would_be() {
    let cluster = start();
    cluster.apply(&block("metadata: {name: gmsa-check-shop}"));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("kustomization.yaml"), block("configMapGenerator")).unwrap();
    fs::write(folder.path().join("gmsa-check.yaml"), block("sync-wave: \"-1\"")).unwrap();
    fs::write(folder.path().join("deployment.yaml"), deployment().to_string()).unwrap();
    let rendered = cluster.kubectl_prints(["kustomize", folder.path().to_str().unwrap()]);
    let hooks: Vec<Value> = serde_saphyr::from_multiple::<Value>(&rendered)
        .unwrap()
        .into_iter()
        .filter(|object| object["metadata"]["annotations"]["argocd.argoproj.io/hook"] == "PreSync")
        .collect();
    let kinds: Vec<&str> = hooks.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ConfigMap", "Job"]);
    for hook in &hooks {
        cluster.apply(&hook.to_string());
    }
    let [files, job] = &hooks[..] else { panic!("{rendered}") };
    let spec = &job["spec"]["template"]["spec"];
    assert_eq!(spec["volumes"][0]["configMap"]["name"], files["metadata"]["name"]);
    let mounted = folder.path().join("manifests");
    fs::create_dir(&mounted).unwrap();
    for (name, text) in files["data"].as_object().unwrap() {
        fs::write(mounted.join(name), text.as_str().unwrap()).unwrap();
    }

    let run = || contained(&cluster, "shop", spec, &spec["containers"][0], &mounted);
    let (code, said) = run();
    let refused = "spec.template.spec.securityContext.windowsOptions.gmsaCredentialSpecName: service account \"default\" is not authorized to `use` GMSA \
                   cred spec \"webapp1\"";
    assert!(said.contains("\nerror[not-authorized] /manifests/deployment.yaml:1: Deployment shop/web\n"), "{said}");
    assert!(said.contains(refused), "{said}");
    assert_eq!(code, 1, "{said}");

    grant(&cluster);
    let (code, said) = run();
    assert!(
        said.contains(
            "Deployment shop/web  pod template  webapp1          gets its contents, if the webhook reviews it\n"
        ),
        "{said}"
    );
    assert_eq!(code, 0, "{said}");
}

#[test]
fn a_nightly_job_says_what_would_be_refused_and_what_is_outdated() {
    let cluster = start();
    cluster.create_namespace("gmsa-webhook");
    cluster.apply(&block("kind: CronJob"));
    let cron = cluster.kubectl_prints(["get", "cronjob", "gmsa-audit", "--namespace", "gmsa-webhook", "-o", "json"]);
    let cron: Value = serde_json::from_str(&cron).unwrap();
    let spec = &cron["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    let [check, outdated] = [0, 1].map(|at| &spec["containers"][at]);
    let run = |container| contained(&cluster, "gmsa-webhook", spec, container, cluster.folder());

    let (code, said) = run(check);
    assert_eq!((code, said.as_str()), (0, "no problems found in 1 object\n"));
    let (code, said) = run(outdated);
    assert_eq!((code, said.as_str()), (0, "no problems found in 0 objects\n"));

    // From before the webhook.
    let mut old = pod("old", "pod", Options::Both, "webapp1");
    old["metadata"]["namespace"] = "shop".into();
    cluster.apply(&old.to_string());
    let install = ["install", "gmsa", "charts/gmsa-webhook", "--namespace", "gmsa-webhook", "--skip-crds"];
    Helm::of_cluster(&cluster.kubeconfig()).prints(install);
    cluster.apply(&deployment().to_string());
    let (code, said) = run(check);
    assert!(said.contains("error[not-authorized] Deployment shop/web"), "{said}");
    assert!(!said.contains("not-checked"), "{said}");
    assert_eq!(code, 1, "{said}");
    let (code, said) = run(outdated);
    let expected = "\
warning[contents-outdated] Pod shop/old
  carries other contents than its credential spec has now
  so: a pod keeps its contents until it is replaced
  fix: kubectl delete pod --namespace shop old, then create it again from its manifest: no controller does

1 warning in 1 object
";
    assert_eq!((code, said.as_str()), (1, expected));
}

/// `git` without what this machine has configured.
fn git(folder: &Path, args: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"];
    printed(Command::new("git").args(identity).args(args).current_dir(folder).output().unwrap());
}

#[test]
fn a_commit_is_refused_with_what_the_webhook_would_refuse() {
    let folder = tempfile::tempdir().unwrap();
    let (hooks, work) = (folder.path().join("hooks"), folder.path().join("work"));
    fs::create_dir_all(&hooks).unwrap();
    fs::create_dir_all(&work).unwrap();
    fs::copy(".pre-commit-hooks.yaml", hooks.join(".pre-commit-hooks.yaml")).unwrap();
    git(&hooks, &["init", "--quiet"]);
    git(&hooks, &["add", "."]);
    git(&hooks, &["commit", "--quiet", "--message=hooks"]);
    git(&hooks, &["tag", &format!("v{VERSION}")]);
    git(&work, &["init", "--quiet"]);
    let commit = |files: &[(&str, &str)]| -> (i32, String) {
        for (name, text) in files {
            fs::write(work.join(name), text).unwrap();
        }
        git(&work, &["add", "."]);
        let plugins = plugin().parent().unwrap().to_owned();
        let path = format!("{}:{}", plugins.display(), env::var("PATH").unwrap());
        let mut command = Command::new("pre-commit");
        command.args(["run", "--all-files", "--color=never"]).current_dir(&work).env("PATH", path);
        let output = command.env("PRE_COMMIT_HOME", folder.path().join("cache")).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let config = block("id: gmsa-check\n").replace("https://REPOSITORY", hooks.to_str().unwrap());
    let deployment = deployment().to_string();
    let (code, said) =
        commit(&[(".pre-commit-config.yaml", &config), ("deployment.yaml", &deployment), ("credspec.yaml", SPEC)]);
    assert!(said.contains("\n- hook id: gmsa-check\n- exit code: 1\n"), "{said}");
    assert!(said.contains("\nerror[not-authorized] ./deployment.yaml:1: Deployment shop/web\n"), "{said}");
    assert_eq!(code, 1, "{said}");
    let grant = ["grant", "--credspec", "webapp1", "--serviceaccount", "shop:default"];
    let grant = printed(Command::new(plugin()).args(grant).output().unwrap());
    let passed = "GMSA, what the webhook will do to the pods of the manifests.......................Passed\n";
    assert_eq!(commit(&[("grant.yaml", &grant)]), (0, passed.to_owned()));

    let lint = config.replace("gmsa-check", "gmsa-credspec-lint");
    let wrong = SPEC.replace("S-1-5-21-", "S-1-5-32-");
    let (code, said) = commit(&[(".pre-commit-config.yaml", &lint), ("credspec.yaml", &wrong)]);
    assert!(said.contains("\n- hook id: gmsa-credspec-lint\n- exit code: 1\n"), "{said}");
    assert!(said.contains("error[sid] ./credspec.yaml:13: GMSACredentialSpec webapp1\n"), "{said}");
    assert_eq!(code, 1, "{said}");
    let passed = "GMSA, mistakes in credential specs.......................................Passed\n";
    assert_eq!(commit(&[("credspec.yaml", SPEC)]), (0, passed.to_owned()));
}

/// The workflow that signs releases, and who certifies that.
const WORKFLOW: &str = "https://github.com/example/gmsa/.github/workflows/release.yml";
const ISSUER: &str = "https://token.actions.githubusercontent.com";

/// In place of cosign: a bundle is right that holds the identity, its issuer and the hash of the file. It says more than a line, as cosign does.
const COSIGN: &str = r#"#!/bin/sh
[ "$# $1 $2 $4 $6" = "8 verify-blob --bundle --certificate-identity --certificate-oidc-issuer" ] || exit 9
printf '%s\n%s\n%s\n' "$5" "$7" "$(sha256sum <"$8")" | cmp -s - "$3" && exit
printf '::warning::x\nError: none of the expected identities matched\033[0m\n' >&2
exit 1
"#;

/// A runner of GitHub Actions, as far as the action sees it.
struct Runner {
    folder: tempfile::TempDir,
    releases: String,
}

impl Runner {
    /// One for which this version is released, with the built plugin in its archive.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let release = folder.path().join(format!("releases/v{VERSION}"));
        fs::create_dir_all(&release).unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        let pack = format!(
            "tar --create --directory {} kubectl-gmsa | gzip -1 >kubectl-gmsa-{VERSION}-linux-amd64.tar.gz; sha256sum -- * >SHA256SUMS",
            plugin().parent().unwrap().display()
        );
        printed(Command::new("bash").args(["-euc", &pack]).current_dir(&release).output().unwrap());
        fs::create_dir(folder.path().join("tools")).unwrap();
        fs::write(folder.path().join("tools/cosign"), COSIGN).unwrap();
        fs::set_permissions(folder.path().join("tools/cosign"), fs::Permissions::from_mode(0o755)).unwrap();
        let releases = format!("file://{}", folder.path().join("releases").display());
        let runner = Self { folder, releases };
        runner.sign(&format!("{WORKFLOW}@refs/tags/v{VERSION}"));
        runner
    }

    fn release(&self, file: &str) -> PathBuf {
        self.folder.path().join(format!("releases/v{VERSION}")).join(file)
    }

    /// Signs the checksums as this identity.
    fn sign(&self, identity: &str) {
        let sums = fs::File::open(self.release("SHA256SUMS")).unwrap();
        let hash = printed(Command::new("sha256sum").stdin(sums).output().unwrap());
        fs::write(self.release("SHA256SUMS.sigstore.json"), format!("{identity}\n{ISSUER}\n{hash}")).unwrap();
    }

    /// Runs the steps of the action with these inputs beside the defaults, until one fails.
    fn run(&self, inputs: &[(&str, &str)]) -> (i32, String) {
        let action: Value = serde_saphyr::from_str(&fs::read_to_string("action.yml").unwrap()).unwrap();
        let input = |name: &str| -> String {
            let given = inputs.iter().find(|(given, _)| *given == name).map(|(_, value)| *value);
            given.unwrap_or_else(|| action["inputs"][name]["default"].as_str().unwrap()).to_owned()
        };
        let path_file = self.folder.path().join("path");
        let _ = fs::remove_file(&path_file);
        let mut said = String::new();
        for step in action["runs"]["steps"].as_array().unwrap() {
            // The tool that another action installs is here.
            if !step["uses"].is_null() || (step["if"] == "inputs.files != ''" && input("files").is_empty()) {
                continue;
            }
            let output = self.step(step, &input, &path_file);
            said += &String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            if !output.status.success() {
                return (output.status.code().unwrap(), said);
            }
        }
        (0, said)
    }

    fn step(&self, step: &Value, input: &dyn Fn(&str) -> String, path_file: &Path) -> Output {
        let added = fs::read_to_string(path_file).unwrap_or_default();
        let tools = self.folder.path().join("tools");
        let path = format!("{}:{}:{}", added.trim(), tools.display(), env::var("PATH").unwrap());
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"].as_str().unwrap()]);
        command.current_dir(self.folder.path().join("work")).env("PATH", path);
        for (name, value) in step["env"].as_object().unwrap() {
            let value = value.as_str().unwrap();
            let value = match value.strip_prefix("${{ inputs.").and_then(|rest| rest.strip_suffix(" }}")) {
                Some(of) => input(of),
                None if name == "WORKFLOW" => WORKFLOW.to_owned(),
                None => self.releases.clone(),
            };
            command.env(name, value);
        }
        command.env("GITHUB_ACTION_PATH", fs::canonicalize(".").unwrap()).env("GITHUB_PATH", path_file);
        command.env("RUNNER_OS", "Linux").env("RUNNER_ARCH", "X64").env("RUNNER_TEMP", self.folder.path().join("temp"));
        command.output().unwrap()
    }
}

#[test]
fn the_action_checks_with_the_plugin_of_its_release() {
    let runner = Runner::new();
    let work = runner.folder.path().join("work");
    fs::create_dir(work.join("deploy")).unwrap();
    fs::write(work.join("deploy/deployment.yaml"), deployment().to_string()).unwrap();
    fs::write(work.join("spec.yaml"), SPEC).unwrap();
    let version = format!("kubectl-gmsa {VERSION}\n");

    let (code, said) = runner.run(&[("files", "\ndeploy\n"), ("state", "spec.yaml")]);
    let annotation = "::error file=deploy/deployment.yaml,line=1,title=not-authorized::Deployment shop/web: \
                      spec.template.spec.securityContext.windowsOptions.gmsaCredentialSpecName: service account \"default\" is not authorized to \
                      `use` GMSA cred spec \"webapp1\"%0Afix: ";
    assert!(said.starts_with(&format!("{version}{annotation}")), "{said}");
    assert_eq!(code, 1, "{said}");
    let (code, said) = runner.run(&[("files", "deploy"), ("state", "spec.yaml"), ("ignore", "not-authorized")]);
    assert_eq!((code, said), (0, format!("{version}no problems found in 1 object, and 1 ignored\n")));
    assert_eq!(runner.run(&[("files", "deploy"), ("state", "spec.yaml"), ("fail-on", "fatal")]).0, 2);
    assert_eq!(runner.run(&[("files", "")]), (0, version));
}

#[test]
fn the_action_runs_nothing_that_is_not_of_the_release() {
    let runner = Runner::new();
    let archive = format!("kubectl-gmsa-{VERSION}-linux-amd64.tar.gz");
    fs::write(runner.release(&archive), "other").unwrap();
    assert_eq!(runner.run(&[]), (1, format!("::error::{archive} does not have the checksum of the release\n")));

    // Who can replace the archive can replace its checksum too, and sign as somebody else.
    let sums = "sha256sum -- kubectl-gmsa-* >SHA256SUMS";
    printed(Command::new("bash").args(["-euc", sums]).current_dir(runner.release("")).output().unwrap());
    let identity = format!("{WORKFLOW}@refs/tags/v{VERSION}");
    let unsigned =
        format!("::error::SHA256SUMS is not signed by {identity}: Error: none of the expected identities matched[0m\n");
    assert_eq!(runner.run(&[]), (1, unsigned.clone()));
    for other in
        ["https://github.com/other/gmsa/.github/workflows/release.yml@refs/tags/v", &format!("{WORKFLOW}@refs/heads/v")]
    {
        runner.sign(&format!("{other}{VERSION}"));
        assert_eq!(runner.run(&[]), (1, unsigned.clone()));
    }
    fs::remove_file(runner.folder.path().join("tools/cosign")).unwrap();
    runner.sign(&identity);
    let missing = "::error::cosign is missing, which verifies the signature of the release\n";
    assert_eq!(runner.run(&[]), (1, missing.to_owned()));

    for file in ["SHA256SUMS.sigstore.json", "SHA256SUMS", &archive] {
        fs::remove_file(runner.release(file)).unwrap();
        let (code, said) = runner.run(&[]);
        assert!(said.contains(&format!("::error::cannot fetch {}/v{VERSION}/{file}\n", runner.releases)), "{said}");
        assert_eq!(code, 1);
    }
    assert!(!runner.folder.path().join(format!("temp/kubectl-gmsa-{VERSION}/bin/kubectl-gmsa")).exists());
}
