//! The parts for pipelines as docs/pipelines.md prints them: the Argo CD hook, the `CronJob`, the hooks of pre-commit, the action.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

use crate::{
    cluster::{Cluster, path_with_plugin, plugin, printed},
    desk::{self, Desk},
    helm::CHART,
    objects::CRD,
    pods::{Options, SPEC, pod},
    release::container,
};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A Deployment of the namespace `shop` whose pods name the credential spec.
const DEPLOYMENT: &str = include_str!("objects/check.yaml");

/// The manifests of the page's block with this text in it.
fn block(text: &str) -> String {
    desk::block("docs/pipelines.md", "yaml", text)
}

/// A cluster with the CRD, a credential spec and the namespace `shop`.
fn start() -> Cluster {
    let cluster = Cluster::start();
    cluster.define(CRD);
    cluster.apply(SPEC);
    cluster.create_namespace("shop");
    cluster
}

/// Runs a container of a pod with the rights of the pod's service account: its exit code, and what it prints.
fn contained(cluster: &Cluster, namespace: &str, spec: &Value, at: usize) -> (i32, String) {
    outcome(&container(cluster, namespace, spec, at, &plugin()).output().unwrap())
}

fn outcome(output: &Output) -> (i32, String) {
    let said = [output.stdout.as_slice(), &output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(said).unwrap())
}

#[test]
fn a_sync_is_refused_before_it_begins_where_its_pods_would_be() {
    let cluster = start();
    let desk = Desk::new(&cluster);
    cluster.apply(&block("metadata: {name: gmsa-check-shop}"));
    desk.write("kustomization.yaml", &block("configMapGenerator"));
    desk.write("gmsa-check.yaml", &block("sync-wave: \"-1\""));
    desk.write("deployment.yaml", DEPLOYMENT);
    let rendered: Vec<Value> = serde_saphyr::from_multiple(&desk.run("kubectl kustomize .")).unwrap();
    let is_hook = |object: &&Value| object["metadata"]["annotations"]["argocd.argoproj.io/hook"] == "PreSync";
    let hooks: Vec<&Value> = rendered.iter().filter(is_hook).collect();
    let [files, job] = hooks[..] else { panic!("{hooks:?}") };
    assert_eq!((&files["kind"], &job["kind"]), (&Value::from("ConfigMap"), &Value::from("Job")));
    cluster.apply(&files.to_string());
    cluster.apply(&job.to_string());
    let spec = &job["spec"]["template"]["spec"];
    assert_eq!(spec["volumes"][0]["configMap"]["name"], files["metadata"]["name"]);
    let mounted = desk.path("manifests");
    fs::create_dir(&mounted).unwrap();
    for (name, text) in files["data"].as_object().unwrap() {
        fs::write(mounted.join(name), text.as_str().unwrap()).unwrap();
    }
    let mounted = mounted.to_str().unwrap();
    let spec: Value = serde_json::from_str(&spec.to_string().replace("/manifests", mounted)).unwrap();

    let (code, said) = contained(&cluster, "shop", &spec, 0);
    assert!(said.contains(&format!("\nerror[not-authorized] {mounted}/deployment.yaml:")), "{said}");
    assert_eq!(code, 1, "{said}");

    desk.gmsa("grant --credspec webapp1 --serviceaccount shop:default --apply");
    let (code, said) = contained(&cluster, "shop", &spec, 0);
    assert!(said.contains("  gets its contents"), "{said}");
    assert_eq!(code, 0, "{said}");
}

#[test]
fn a_nightly_job_says_what_would_be_refused_and_what_is_outdated() {
    let cluster = start();
    cluster.create_namespace("gmsa-webhook");
    cluster.apply(&block("kind: CronJob"));
    let cron = cluster.get("cronjob gmsa-audit -n gmsa-webhook");
    let spec = &cron["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    let check = || contained(&cluster, "gmsa-webhook", spec, 0);
    let outdated = || contained(&cluster, "gmsa-webhook", spec, 1);
    assert_eq!(check(), (0, "no problems found in 1 object\n".to_owned()));
    assert_eq!(outdated(), (0, "no problems found in 0 objects\n".to_owned()));

    // From before the webhook.
    let mut old = pod("old", "pod", Options::Both, "webapp1");
    old["metadata"]["namespace"] = "shop".into();
    cluster.apply(&old.to_string());
    cluster.helm_prints(&format!("install gmsa {CHART} -n gmsa-webhook --skip-crds"));
    cluster.apply(DEPLOYMENT);
    let (code, said) = check();
    assert!(said.contains("error[not-authorized] Deployment shop/web"), "{said}");
    assert!(!said.contains("not-checked"), "{said}");
    assert_eq!(code, 1, "{said}");
    let (code, said) = outdated();
    assert!(said.starts_with("warning[contents-outdated] Pod shop/old\n"), "{said}");
    assert!(said.ends_with("\n1 warning in 1 object\n"), "{said}");
    assert_eq!(code, 1, "{said}");
}

/// `git` without what this machine has configured.
fn git(folder: &Path, args: &str) {
    let identity = "-c user.name=t -c user.email=t@example.com -c commit.gpgsign=false";
    let args = identity.split(' ').chain(args.split(' '));
    printed(Command::new("git").args(args).current_dir(folder).output().unwrap());
}

#[test]
fn a_commit_is_refused_with_what_the_webhook_would_refuse() {
    let folder = tempfile::tempdir().unwrap();
    let (hooks, work) = (folder.path().join("hooks"), folder.path().join("work"));
    for repository in [&hooks, &work] {
        fs::create_dir_all(repository).unwrap();
        git(repository, "init --quiet");
    }
    fs::copy(".pre-commit-hooks.yaml", hooks.join(".pre-commit-hooks.yaml")).unwrap();
    git(&hooks, "add .");
    git(&hooks, "commit --quiet --message=hooks");
    git(&hooks, &format!("tag v{VERSION}"));
    let commit = |files: &[(&str, &str)]| -> (i32, String) {
        for (name, text) in files {
            fs::write(work.join(name), text).unwrap();
        }
        git(&work, "add .");
        let mut command = Command::new("pre-commit");
        command.args(["run", "--all-files", "--color=never"]).current_dir(&work).env("PATH", path_with_plugin());
        outcome(&command.env("PRE_COMMIT_HOME", folder.path().join("cache")).output().unwrap())
    };
    let config = block("id: gmsa-check\n").replace("https://REPOSITORY", hooks.to_str().unwrap());
    let config = |id: &str| (".pre-commit-config.yaml", config.replace("gmsa-check", id));
    let assert_found = |(code, said): (i32, String), id: &str, finding: &str| {
        assert!(said.contains(&format!("\n- hook id: {id}\n- exit code: 1\n")), "{said}");
        assert!(said.contains(&format!("\nerror{finding}\n")), "{said}");
        assert_eq!(code, 1, "{said}");
    };
    let assert_passed = |(code, said): (i32, String)| {
        assert!(said.lines().count() == 1 && said.ends_with(".Passed\n"), "{said}");
        assert_eq!(code, 0);
    };
    let (name, check) = config("gmsa-check");
    let found = commit(&[(name, &check), ("deployment.yaml", DEPLOYMENT), ("credspec.yaml", SPEC)]);
    assert_found(found, "gmsa-check", "[not-authorized] ./deployment.yaml:11: Deployment shop/web");
    let grant = ["grant", "--credspec", "webapp1", "--serviceaccount", "shop:default"];
    let grant = printed(Command::new(plugin()).args(grant).output().unwrap());
    assert_passed(commit(&[("grant.yaml", &grant)]));

    let (name, lint) = config("gmsa-credspec-lint");
    let found = commit(&[(name, &lint), ("credspec.yaml", &SPEC.replace("S-1-5-21-", "S-1-5-32-"))]);
    assert_found(found, "gmsa-credspec-lint", "[sid] ./credspec.yaml:13: GMSACredentialSpec webapp1");
    assert_passed(commit(&[("credspec.yaml", SPEC)]));
}

/// The workflow that signs releases, and who certifies that.
const WORKFLOW: &str = "https://github.com/example/gmsa/.github/workflows/release.yml";
const ISSUER: &str = "https://token.actions.githubusercontent.com";

/// The checksums of what is released.
const SUMS: &str = "sha256sum -- kubectl-gmsa-* >SHA256SUMS";

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
            "tar --create --directory {} kubectl-gmsa | gzip -1 >kubectl-gmsa-{VERSION}-linux-amd64.tar.gz; {SUMS}",
            plugin().parent().unwrap().display()
        );
        printed(Command::new("bash").args(["-euc", &pack]).current_dir(&release).output().unwrap());
        fs::create_dir(folder.path().join("tools")).unwrap();
        // In place of cosign.
        fs::copy("tests/install/objects/cosign", folder.path().join("tools/cosign")).unwrap();
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
        let at = |name: &str| self.folder.path().join(name);
        let _ = fs::remove_file(at("path"));
        let mut said = String::new();
        for step in action["runs"]["steps"].as_array().unwrap() {
            // The tool that another action installs is here.
            if !step["uses"].is_null() || (step["if"] == "inputs.files != ''" && input("files").is_empty()) {
                continue;
            }
            let added = fs::read_to_string(at("path")).unwrap_or_default();
            let mut command = Command::new("bash");
            command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"].as_str().unwrap()]);
            for (name, value) in step["env"].as_object().unwrap() {
                let value = value.as_str().unwrap();
                match value.strip_prefix("${{ inputs.").and_then(|rest| rest.strip_suffix(" }}")) {
                    Some(of) => command.env(name, input(of)),
                    None if name == "WORKFLOW" => command.env(name, WORKFLOW),
                    None => command.env(name, &self.releases),
                };
            }
            command.env("PATH", format!("{}:{}:{}", added.trim(), at("tools").display(), env::var("PATH").unwrap()));
            command.env("GITHUB_ACTION_PATH", fs::canonicalize(".").unwrap()).env("GITHUB_PATH", at("path"));
            command.env("RUNNER_OS", "Linux").env("RUNNER_ARCH", "X64").env("RUNNER_TEMP", at("temp"));
            let (code, more) = outcome(&command.current_dir(at("work")).output().unwrap());
            said += &more;
            if code != 0 {
                return (code, said);
            }
        }
        (0, said)
    }
}

#[test]
fn the_action_checks_with_the_plugin_of_its_release() {
    let runner = Runner::new();
    let work = runner.folder.path().join("work");
    fs::create_dir(work.join("deploy")).unwrap();
    fs::write(work.join("deploy/deployment.yaml"), DEPLOYMENT).unwrap();
    fs::write(work.join("spec.yaml"), SPEC).unwrap();
    let version = format!("kubectl-gmsa {VERSION}\n");

    let (code, said) = runner.run(&[("files", "\ndeploy\n"), ("state", "spec.yaml")]);
    let annotation = "::error file=deploy/deployment.yaml,line=11,title=not-authorized::Deployment shop/web: ";
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

    // Who can replace the archive can replace its checksum too, and sign as another identity.
    printed(Command::new("bash").args(["-euc", SUMS]).current_dir(runner.release("")).output().unwrap());
    let identity = format!("{WORKFLOW}@refs/tags/v{VERSION}");
    let unsigned =
        format!("::error::SHA256SUMS is not signed by {identity}: Error: none of the expected identities matched[0m\n");
    assert_eq!(runner.run(&[]), (1, unsigned.clone()));
    for (from, to) in [("/example/", "/other/"), ("/tags/", "/heads/")] {
        runner.sign(&identity.replace(from, to));
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
