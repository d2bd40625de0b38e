//! Sessions with a simulated cluster: the folders of `tests/cli/simulated`.
//!
//! `session.yaml` is a list of steps: what changes in the cluster, what goes wrong, what is typed, and which requests are of interest. `printed` is what
//! comes out, with every request that would write something. Each document of the file starts with a healthy cluster in which the steps of
//! `cluster.yaml` are done, if there is one. The other files of the folder are for the commands to read.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use futures::StreamExt as _;
use serde::Deserialize;
use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::{
    cluster::{KINDS, Trouble, answers, asked, healthy, run_in},
    compare,
    nodes::{Fate, created, kubelets},
    shown,
    support::{
        Recorded, SimulatedApi, Verb,
        exec::{answer_each, transcript},
    },
    words,
};

/// When a workload was restarted, in the patch that does it.
const RESTARTED: &str = "/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt";

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Step {
    /// What is special about the step.
    title: String,
    /// Changes of objects, by the path of their list and by `NAMESPACE/NAME` as in a bundle. A map is a JSON Merge Patch (RFC 7386), a list is a JSON
    /// Patch (RFC 6902), null deletes.
    objects: BTreeMap<String, BTreeMap<String, Value>>,
    /// The only service accounts that may use a credential spec: `NAMESPACE NAME SPEC`.
    allowed: Option<Vec<String>>,
    /// What goes wrong, until a step says something else.
    faults: Option<Vec<Trouble>>,
    /// The API server stops.
    stop: bool,
    /// Containers answer by the transcript of this case of `tests/verify`.
    exec: Option<String>,
    /// What becomes of the pods that are created on each node.
    nodes: BTreeMap<String, Fate>,
    /// What is typed after `kubectl gmsa`. `TEMP` is a folder to write to.
    run: String,
    /// The files that are shown.
    files: Vec<String>,
    /// The only lines that are shown, by a part of them.
    only: Vec<String>,
    /// Requests that are shown beside those that write: `VERB PATH`, of which the path may be a part.
    asked: Vec<String>,
    /// Requests that are shown with their bodies.
    bodies: Vec<String>,
}

/// Changes an object of a list, or makes it.
fn change(api: &SimulatedApi, list: &str, key: &str, change: &Value) {
    let kind = KINDS
        .iter()
        .find(|kind| kind.list() == list)
        .unwrap_or_else(|| panic!("no list of the simulated cluster: {list}"));
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    if change.is_null() {
        return api.delete(kind.plural, namespace, name);
    }
    let mut object = api.object(kind.plural, namespace, name).unwrap_or_else(|| {
        let metadata = json!({"name": name, "namespace": namespace, "uid": format!("{}/{key}", kind.plural)});
        json!({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata})
    });
    if change.is_array() {
        let patch: json_patch::Patch = serde_json::from_value(change.clone()).unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
    } else {
        json_patch::merge(&mut object, change);
    }
    api.apply(object);
}

impl Step {
    /// Changes the cluster.
    async fn prepare(&self, api: &mut SimulatedApi) {
        for (list, changes) in &self.objects {
            for (key, patch) in changes {
                change(api, list, key, patch);
            }
        }
        if let Some(allowed) = &self.allowed {
            let entries: Vec<Vec<&str>> = allowed.iter().map(|entry| entry.split(' ').collect()).collect();
            let grants: Vec<_> = entries.iter().map(|entry| (entry[0], entry[1], entry[2])).collect();
            api.grant_only(&grants);
            for entry in entries.iter().filter(|entry| entry.get(3) == Some(&"export")) {
                api.grant_export(entry[0], entry[1], entry[2]);
            }
        }
        if let Some(faults) = &self.faults {
            api.heal();
            for fault in faults {
                fault.script(api);
            }
            answers(api);
        }
        if let Some(case) = &self.exec {
            let transcript = transcript(case);
            answer_each(api, move |_, command| transcript.get(command).cloned());
        }
        if self.stop {
            api.stop().await;
        }
    }

    /// What is printed by what is run.
    async fn printed(&self, api: &SimulatedApi, folder: &Path, temporary: &Path) -> String {
        api.forget_requests();
        let temporary = temporary.to_str().unwrap();
        // Words first: the name of the folder may have spaces.
        let arguments = words(&self.run);
        let arguments: Vec<String> = arguments.iter().map(|word| word.replace("TEMP", temporary)).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = run_beside(api, &self.nodes, folder, &arguments).await;
        let title = if self.title.is_empty() { String::new() } else { format!("## {}\n", self.title) };
        let is_shown = |line: &&str| self.only.is_empty() || self.only.iter().any(|part| line.contains(part));
        let printed: String = shown(&output).split_inclusive('\n').filter(is_shown).collect();
        let file = |name: &String| format!("{name}:\n{}", fs::read_to_string(name.replace("TEMP", temporary)).unwrap());
        let files: String = self.files.iter().map(file).collect();
        // Windows joins paths by a backslash, which JSON doubles.
        let printed = printed
            .replace(&temporary.replace('\\', "\\\\"), "TEMP")
            .replace(temporary, "TEMP")
            .replace("TEMP\\win1", "TEMP/win1")
            .replace("win1\\", "win1/");
        let printed = printed.replace(api.config().cluster_url.to_string().trim_end_matches('/'), "http://SERVER");
        let shown = without_pod_names(api, printed + &files + &self.requests(api));
        format!("{title}$ kubectl gmsa {}\n{shown}\n", self.run)
    }

    /// The requests that are shown, sorted: many are made at the same time.
    fn requests(&self, api: &SimulatedApi) -> String {
        let of = |words: &String| {
            let (verb, path) = asked(words);
            api.requests(verb, path)
        };
        let written = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete].into_iter();
        let written = written.flat_map(|verb| api.requests(verb, ""));
        let written = written.filter(|request| !request.path.contains("accessreviews"));
        let line = |request: Recorded| format!("{:?} {}\n", request.verb, request.path);
        let body = |mut request: Recorded| {
            if let Some(time) = request.body.pointer_mut(RESTARTED) {
                OffsetDateTime::parse(time.as_str().unwrap(), &Rfc3339).unwrap();
                *time = json!("TIME");
            }
            format!("{:?} {}\n{:#}\n", request.verb, request.path, request.body)
        };
        let plain = written.chain(self.asked.iter().flat_map(of)).map(line);
        let mut shown: Vec<String> = plain.chain(self.bodies.iter().flat_map(of).map(body)).collect();
        shown.sort();
        let alike = shown.chunk_by(|one, next| one == next).map(|lines| match lines {
            [line] => line.clone(),
            lines => format!("{} times {}", lines.len(), lines[0]),
        });
        alike.collect()
    }
}

/// Runs the program while the nodes do their work, if there are any.
async fn run_beside(api: &SimulatedApi, nodes: &BTreeMap<String, Fate>, folder: &Path, arguments: &[&str]) -> Output {
    tokio::select! {
        output = run_in(folder, api, arguments) => output,
        () = kubelets(api, nodes), if !nodes.is_empty() => unreachable!("the nodes never end"),
    }
}

/// The names of the pods that `probe` creates are made up each time.
fn without_pod_names(api: &SimulatedApi, shown: String) -> String {
    created(api).iter().fold(shown, |shown, (_, name)| {
        let (_, random) = name.rsplit_once('-').unwrap();
        assert_eq!(random.len(), 16, "{name}");
        shown.replace(random, "RANDOM")
    })
}

/// What a folder's sessions print.
async fn played(case: &Path) -> String {
    let mut printed = String::new();
    for session in sessions(case, "session.yaml") {
        let (mut api, temporary) = (cluster(case).await, tempfile::tempdir().unwrap());
        for step in session {
            step.prepare(&mut api).await;
            if !step.run.is_empty() {
                printed += &step.printed(&api, case, temporary.path()).await;
            }
        }
    }
    printed
}

/// The documents of a file of a folder.
fn sessions(case: &Path, name: &str) -> Vec<Vec<Step>> {
    let text = fs::read_to_string(case.join(name)).unwrap_or_default();
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", case.join(name).display()))
}

/// The cluster in which the sessions of a folder start.
pub async fn cluster(case: &Path) -> SimulatedApi {
    let mut api = healthy().await;
    for step in sessions(case, "cluster.yaml").into_iter().flatten() {
        step.prepare(&mut api).await;
    }
    api
}

/// The folder of sessions with this name.
pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/simulated").join(name)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_session_prints_what_is_written() {
    let mut cases: Vec<PathBuf> = fs::read_dir(folder("")).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() > 20, "the sessions are gone: {cases:?}");
    // Most of them wait for a second to pass.
    let printed = futures::stream::iter(&cases).map(|case| played(case)).buffered(16).collect::<Vec<_>>().await;
    let wrong: Vec<String> =
        cases.iter().zip(printed).filter_map(|(case, printed)| compare(&case.join("printed"), &printed)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
