//! What the pages print of values, objects and links is what there is.

use std::{collections::BTreeSet, fs, path::PathBuf};

use serde_json::Value;

use crate::{
    files::{objects, text},
    rendered::rendered_with,
};

/// The blocks of a page in this language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let page = text(page);
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_values_that_pages_print_are_taken() {
    let mut taken = 0;
    for page in ["docs/install.md", "docs/certificates.md", "docs/metrics.md"] {
        for block in blocks(page, "yaml") {
            let values: Value = serde_saphyr::from_str(&block).unwrap();
            // Objects are no values, and what a parent chart says is below its key.
            if values.get("kind").is_none() && values.get("gmsa-webhook").is_none() {
                rendered_with(&values);
                taken += 1;
            }
        }
    }
    assert_eq!(taken, 3);
}

#[test]
fn argo_cd_and_flux_get_values_that_are_taken_and_a_namespace_that_there_is() {
    let blocks = blocks("docs/gitops.md", "yaml");
    let application: Value = serde_saphyr::from_str(&blocks[0]).unwrap();
    rendered_with(&application["spec"]["source"]["helm"]["valuesObject"]);
    let flux = blocks.iter().find(|block| block.contains("kind: HelmRelease")).unwrap();
    let objects = objects(flux);
    let release = objects.iter().find(|object| object["kind"] == "HelmRelease").unwrap();
    rendered_with(&release["spec"]["values"]);
    assert_eq!(release["spec"]["chart"]["spec"]["reconcileStrategy"], "Revision");
    assert!(
        objects
            .iter()
            .any(|object| object["kind"] == "Namespace"
                && object["metadata"]["name"] == release["metadata"]["namespace"])
    );
}

/// The anchor that a page's reader gets for a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The Markdown files of the folders that people read.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for folder in [".", "docs", "examples", "certs", "certs/*", "charts/*", "tests", "tests/golden"] {
        for page in glob(folder) {
            pages.extend(fs::read_dir(page).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages
}

/// The folder, or those in it.
fn glob(folder: &str) -> Vec<PathBuf> {
    let Some(parent) = folder.strip_suffix("/*") else { return vec![folder.into()] };
    fs::read_dir(parent).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
}

#[test]
fn every_link_between_pages_leads_to_a_section() {
    let pages = pages();
    assert!(pages.len() > 20, "{pages:?}");
    let mut lost = BTreeSet::new();
    for page in &pages {
        let links = text(page);
        for link in links.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, section) = link.split_once('#').unwrap_or((link, ""));
            if link.contains("://") || link.contains(char::is_whitespace) {
                continue;
            }
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let there = fs::read_to_string(&target).is_ok_and(|text| {
                section.is_empty() || text.lines().any(|line| line.starts_with('#') && anchor(line) == section)
            });
            if !there && !target.is_dir() {
                lost.insert(format!("{}: {link}", page.display()));
            }
        }
    }
    assert_eq!(lost.into_iter().collect::<Vec<_>>(), [""; 0]);
}

/// The root key: without a parameter it is used after ten days, and there is one for the forest.
#[test]
fn the_quickstart_says_what_there_is_to_know_of_the_root_key() {
    let page = text("docs/quickstart.md");
    assert!(page.contains("Add-KdsRootKey -EffectiveImmediately"));
    assert!(page.contains("Each forest needs one root key"));
}
