//! The data of `crates/rules`, for the tests of its table and of `explain`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;

/// A file of the data.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FamilyData {
    #[serde(default)]
    pub heading: String,
    /// Set for the rules of the core: as `docs/rules.md` groups and orders them.
    #[serde(default)]
    pub groups: Vec<GroupData>,
    /// Rules of earlier releases, each with the reason why it is gone.
    #[serde(default)]
    pub removed: BTreeMap<String, String>,
    #[serde(default)]
    pub rules: Vec<RuleData>,
    /// Words that code looks for.
    #[serde(default)]
    pub lists: Vec<ListData>,
    /// Texts of a successful step.
    #[serde(default)]
    pub good: Vec<GoodData>,
    /// Parts of messages in which nothing counts.
    #[serde(default)]
    pub nothing: Vec<NothingData>,
    /// Messages of Windows.
    #[serde(default)]
    pub windows: Vec<WindowsData>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupData {
    pub heading: String,
    /// Ids of rules.
    pub rules: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleData {
    pub id: String,
    pub severity: Severity,
    pub title: String,
    pub remedy: String,
    #[serde(default)]
    pub words: Vec<WordData>,
    #[serde(default)]
    pub remedies: Vec<RemedyData>,
    /// Whether the code makes its remedy, where it knows the names.
    #[serde(default)]
    pub computed: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListData {
    pub name: String,
    pub about: String,
    pub words: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
    Note,
}

/// Words of one kind, which is the key.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct WordData {
    pub refusal: Option<String>,
    pub start: Option<String>,
    pub message: Option<String>,
    pub general: Option<String>,
    pub event: Option<String>,
    /// The numbers of the event.
    pub ids: Vec<u32>,
    pub exit: Vec<u32>,
    pub codes: Vec<String>,
    pub start_codes: Vec<String>,
    pub running_codes: Vec<String>,
    pub seen: Vec<Seen>,
}

/// A real message that shows the words.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    pub text: String,
    /// The rule that is said first of it, where it is another one.
    pub first: Option<String>,
    /// A part of the answer: the word that helps.
    #[serde(default)]
    pub says: String,
    /// The thread, page or source file that it is from; `made` for words that no real message needs alone.
    pub from: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemedyData {
    #[serde(rename = "if")]
    pub words: Vec<String>,
    #[serde(rename = "do")]
    pub remedy: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoodData {
    pub says: String,
    pub words: Vec<WordData>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NothingData {
    pub message: String,
    #[serde(default)]
    pub seen: Vec<Seen>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowsData {
    pub status: String,
    pub message: String,
    #[serde(default)]
    pub seen: Vec<Seen>,
}

/// The files in the order of their numbers.
pub fn families() -> Vec<FamilyData> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rules/data");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut ids = BTreeSet::new();
    let read = |path: &PathBuf| {
        let family: Result<FamilyData, _> = serde_saphyr::from_str(&fs::read_to_string(path).unwrap());
        let family = family.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for RuleData { id, .. } in &family.rules {
            assert!(ids.insert(id.clone()), "{}: another rule has the id {id}", path.display());
        }
        family
    };
    paths.iter().map(read).collect()
}
