//! What Helm says after an install, which `notes/` holds.
//!
//! Only `helm install` shows notes, and it knows no other Kubernetes version than its own. A copy of the chart therefore has them in a
//! template, which `helm template` renders for any version.

use std::{fs, path::Path};

use crate::{
    files::text,
    helm::{CHART, Helm},
    snapshot::assert_file,
};

/// The chart, with its notes in a template.
fn chart_with_notes() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(Path::new(CHART), folder.path());
    let templates = folder.path().join("templates");
    let notes = text(templates.join("NOTES.txt"));
    fs::write(templates.join("_notes.tpl"), format!("{{{{- define \"notes\" -}}}}\n{notes}{{{{- end -}}}}")).unwrap();
    let template = "notes: |\n  {{- include \"notes\" . | trim | nindent 2 }}\n";
    fs::write(templates.join("notes.yaml"), template).unwrap();
    folder
}

/// Copies a folder.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn notes_are_said_as_recorded() {
    let chart = chart_with_notes();
    let helm = Helm::new();
    let cases = text("tests/chart/notes/cases");
    for case in cases.lines().filter(|line| !line.starts_with('#')) {
        let mut args = case.split(' ');
        let name = args.next().unwrap();
        let template = ["template", "gmsa", chart.path().to_str().unwrap(), "--namespace", "windows"];
        let shown = ["--show-only", "templates/notes.yaml"];
        let rendered = helm.prints(template.into_iter().chain(shown).chain(args));
        let (_, notes) = rendered.split_once("notes: |\n").unwrap();
        let notes: String = notes.split_inclusive('\n').map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
        assert_file(format!("tests/chart/notes/{name}.txt"), &notes);
    }
}
