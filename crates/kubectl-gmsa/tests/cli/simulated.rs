//! Sessions with a simulated cluster: the folders of `tests/cli/simulated`.
//!
//! `session.yaml` is a list of steps: what changes in the cluster, what goes wrong, what is typed, and which requests are of interest. `printed` is what
//! comes out, with every request that would write something. Each document of the file starts with a healthy cluster in which the steps of
//! `cluster.yaml` are done, if there is one. The other files of the folder are for the commands to read.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use futures::StreamExt as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    cluster::{KINDS, answers, healthy, run_in},
    compare, shown,
    support::{
        Fault, Recorded, SimulatedApi, Table, Verb,
        exec::{answer_each, transcript},
    },
    words,
};

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
    /// What is typed after `kubectl gmsa`.
    run: String,
    /// Requests that are shown beside those that write: `VERB PATH`, of which the path may be a part.
    asked: Vec<String>,
    /// Requests that are shown with their bodies.
    bodies: Vec<String>,
}

/// A fault of the API server.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Trouble {
    /// `VERB PATH`, of which the path may be a part.
    on: String,
    /// A part of the body as JSON without white space.
    #[serde(default)]
    body: String,
    times: Option<usize>,
    answer: Answer,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Answer {
    Forbidden,
    TooManyRequests,
    Gone,
    Cut,
    Silence,
    /// A code with a message.
    Refuse(u16, String),
    /// A code with a text.
    Text(u16, String),
    Object(Value),
}

impl Trouble {
    fn script(&self, api: &SimulatedApi) {
        let (verb, path) = asked(&self.on);
        // As long as the process of the test.
        let text = |text: &String| -> &'static str { text.clone().leak() };
        let fault = match &self.answer {
            Answer::Forbidden => Fault::forbidden(),
            Answer::TooManyRequests => Fault::too_many_requests(0),
            Answer::Gone => Fault::gone(),
            Answer::Cut => Fault::Cut,
            Answer::Silence => Fault::Silence,
            Answer::Refuse(code, message) => {
                Fault::Refuse { code: *code, reason: "Whatever", message: text(message), retry_after: Some(0) }
            }
            Answer::Text(code, said) => Fault::Text(*code, text(said)),
            Answer::Object(object) => Fault::Object(object.clone()),
        };
        if self.body.is_empty() {
            api.fault(verb, path, self.times.unwrap_or(usize::MAX), fault);
        } else {
            api.fault_of_body(verb, path, &self.body, fault);
        }
    }
}

/// `VERB PATH`.
fn asked(words: &str) -> (Verb, &str) {
    let (verb, path) = words.split_once(' ').unwrap_or((words, ""));
    let verb = match verb {
        "get" => Verb::Get,
        "list" => Verb::List,
        "create" => Verb::Create,
        "update" => Verb::Update,
        "patch" => Verb::Patch,
        "delete" => Verb::Delete,
        other => panic!("no verb: {other}"),
    };
    (verb, path)
}

/// Changes an object of a list, or makes it.
fn change(api: &SimulatedApi, list: &str, key: &str, change: &Value) {
    let of_list = |path: &str| KINDS.iter().find(|kind| format!("{}/{}", kind.api_version, kind.plural) == path);
    let kind = list.strip_prefix("/apis/").or_else(|| list.strip_prefix("/api/")).and_then(of_list);
    let kind = kind.unwrap_or_else(|| panic!("no list of the simulated cluster: {list}"));
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
    /// What is printed by the step, if it runs something.
    async fn take(&self, api: &mut SimulatedApi, folder: &Path) -> String {
        for (list, changes) in &self.objects {
            changes.iter().for_each(|(key, patch)| change(api, list, key, patch));
        }
        if let Some(allowed) = &self.allowed {
            let entries: Vec<Vec<&str>> = allowed.iter().map(|entry| entry.split(' ').collect()).collect();
            let entries: Vec<_> = entries.iter().map(|entry| (entry[0], entry[1], entry[2])).collect();
            api.authorize_by(Table::of(&entries));
        }
        if let Some(faults) = &self.faults {
            api.heal();
            faults.iter().for_each(|fault| fault.script(api));
            answers(api);
        }
        if let Some(case) = &self.exec {
            let transcript = transcript(case);
            answer_each(api, move |_, command| transcript.get(command).cloned());
        }
        if self.stop {
            api.stop().await;
        }
        if self.run.is_empty() {
            return String::new();
        }
        api.forget_requests();
        let output = run_in(folder, api, &words(&self.run)).await;
        let title = if self.title.is_empty() { String::new() } else { format!("## {}\n", self.title) };
        let printed = format!("{title}$ kubectl gmsa {}\n{}{}\n", self.run, shown(&output), self.requests(api));
        printed.replace(api.url().split_once("//").unwrap().1, "HOST:PORT")
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
        let body = |request: Recorded| {
            format!("{:?} {}\n{:#}\n", request.verb, request.path, request.body)
        };
        let plain = written.chain(self.asked.iter().flat_map(of)).map(line);
        let mut shown: Vec<String> = plain.chain(self.bodies.iter().flat_map(of).map(body)).collect();
        shown.sort();
        shown.concat()
    }
}

/// What a folder's sessions print.
async fn played(case: &Path) -> String {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(case).unwrap() {
        let file = entry.unwrap();
        fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    let steps = |name: &str| -> Vec<Vec<Step>> {
        let text = fs::read_to_string(case.join(name)).unwrap_or_default();
        serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", case.join(name).display()))
    };
    let before = steps("cluster.yaml");
    let mut printed = String::new();
    for session in steps("session.yaml") {
        let mut api = healthy().await;
        for step in before.iter().flatten().chain(&session) {
            printed += &step.take(&mut api, folder.path()).await;
        }
    }
    printed
}

#[tokio::test(flavor = "multi_thread")]
async fn every_session_prints_what_is_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/simulated");
    let mut cases: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    let printed = futures::stream::iter(&cases).map(|case| played(case)).buffered(4).collect::<Vec<_>>().await;
    let wrong: Vec<String> =
        cases.iter().zip(printed).filter_map(|(case, printed)| compare(case, "printed", &printed)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
