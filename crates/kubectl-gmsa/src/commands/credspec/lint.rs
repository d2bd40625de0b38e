//! `credspec lint`: finds problems in credential specs of manifests and of the cluster, also against the directory.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;
use time::UtcDateTime;

use super::domain;
use crate::shared::{
    Outcome,
    args::spec_name,
    connection::{Connection, block_on},
    credspecs::{findings, is_credential_spec, located},
    directory::{DirectoryOptions, opened},
    input, names,
    output::{Filter, Format, Report},
    world::World,
};
use gmsa_accounts::lint::credential_spec;
use gmsa_cluster::{
    manifests::{Document, Manifests},
    resolver::live::collection,
};
use gmsa_core::credspec::{GROUP, KIND, SpecName, VERSION, lint};

const EXAMPLES: &str = "Examples:
  # Lint files
  kubectl gmsa credspec lint -f manifests/

  # Compare with the domain
  kubectl gmsa credspec lint -f webapp1.yaml --from-ad domain.json

  # Lint a credential spec of the cluster
  kubectl gmsa credspec lint webapp1";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Options {
    /// A credential spec of the cluster; repeatable
    #[arg(value_name = "NAME", value_parser = spec_name)]
    names: Vec<SpecName>,
    /// A file, a folder, or - for stdin; repeatable
    #[arg(long = "filename", short, value_name = "FILE", required_unless_present = "names")]
    files: Vec<PathBuf>,
    /// Compare with Get-ADDomain | ConvertTo-Json
    ///
    /// A file with its output
    #[arg(long, value_name = "FILE", conflicts_with = "directory")]
    from_ad: Option<PathBuf>,
    /// Print table, json, sarif or github
    #[arg(long, short, value_enum, default_value = "table", hide_possible_values = true)]
    output: Format,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    directory: DirectoryOptions,
}

pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let sources = options.directory.sources()?;
    let mut read = input::manifests(&options.files, "credspec lint -f -", None);
    if !options.names.is_empty() {
        read.extend(block_on(of_cluster(&options.names, connection))?);
    }
    let Manifests { documents, mut problems, .. } = read;
    let specs: Vec<&Document> = documents.iter().filter(|document| is_credential_spec(document)).collect();
    input::expect(specs.len(), "credential spec", &mut problems, &options.files);
    let domain = options.from_ad.as_deref().map(domain).transpose()?;
    let mut report = Report { documents: specs.len(), findings: problems, ..Report::default() };
    for document in &specs {
        let spec = document.value();
        report.findings.extend(findings(document, &spec));
        let against = domain.iter().flat_map(|domain| lint::against(&spec, domain));
        report.findings.extend(located(document, &spec, against));
    }
    if !sources.is_empty() {
        report.findings.extend(block_on(async {
            let (mut directories, mut list) = (opened(sources).await?, Vec::new());
            for document in specs {
                let spec = document.value();
                let (found, _) = credential_spec(&mut directories, &spec, UtcDateTime::now()).await?;
                list.extend(located(document, &spec, found));
            }
            anyhow::Ok(list)
        })?);
    }
    report.print(options.output, &options.filter)
}

/// Credential specs of the cluster, as documents with their names.
async fn of_cluster(names: &[SpecName], connection: &Connection) -> anyhow::Result<Manifests> {
    let (world, list) = (World::of(connection.cluster().await?), collection());
    let mut all = Manifests::default();
    for name in names {
        names::expect(&world, &format!("credential spec {name} in the cluster"), &list, name.as_str()).await?;
        let spec: Value = world.get(&format!("{list}/{name}")).await?;
        let mut document = Document::of_api(name.as_str(), &format!("{GROUP}/{VERSION}"), KIND, &spec);
        // An object of the API has no line number.
        document.location.position = None;
        all.documents.push(document);
    }
    Ok(all)
}
