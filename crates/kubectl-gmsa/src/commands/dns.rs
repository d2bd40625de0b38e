//! `dns`: prints the change of the cluster's DNS that forwards a domain to its own DNS servers.
//!
//! Invariants: nothing is changed in the cluster. What is printed is the whole object with all that it held, at the version that was
//! read: `kubectl replace` refuses it where somebody else has changed the object since. What is not a manifest goes to standard error.

use std::{
    io::{self, Write as _},
    path::PathBuf,
};

use anyhow::{Context as _, bail};
use clap::Args;
use k8s_openapi::apimachinery::pkg::version::Info;
use serde_json::Value;

use crate::shared::{
    Outcome,
    cluster_dns::{self, Object, Objects},
    connection::{Connection, block_on},
    input, print,
};
use gmsa_cluster::manifests::Manifests;
use gmsa_core::{corefile::Upstream, quote::one_line};

mod change;
mod platform;
mod rke2;
mod wanted;

use change::Change;
use platform::Platform;
use wanted::Wanted;

#[derive(Debug, Args)]
pub struct Options {
    /// The DNS name of the domain: (Get-ADDomain).DNSRoot
    #[arg(long, value_name = "DNS")]
    domain: String,
    /// The address of a DNS server of the domain, such as 10.0.0.4, with its port where that is not 53; repeatable, and two are advised.
    /// The API server is that of the kubeconfig
    #[arg(long, value_name = "IP", required = true)]
    server: Vec<String>,
    /// How the cluster was made [default: recognized from the cluster]
    #[arg(long, value_enum)]
    platform: Option<Platform>,
    /// A file that holds the objects that configure the DNS, or - for standard input, instead of the cluster; repeatable
    #[arg(long = "filename", short, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let wanted = Wanted::parse(&options.domain, &options.server)?;
    let (objects, version) = if options.files.is_empty() {
        block_on(async {
            // Where no cluster is configured, the cause names the flag that is another one here.
            let cluster = connection.cluster().await;
            let cluster = cluster.context(
                "cannot ask the cluster (--server is a DNS server here; -f FILE reads the objects from a file)",
            )?;
            let (objects, version) = tokio::join!(cluster_dns::objects(&cluster), cluster.get::<Info>("/version"));
            Ok((objects?, version?.git_version))
        })?
    } else {
        (from_files(&options.files)?, String::new())
    };
    let recognized = platform::recognize(&objects, &version);
    let platform = match (options.platform, recognized) {
        (Some(platform), _) => platform,
        (None, Some((platform, by))) => {
            say(&format!("platform: {}, by {}", platform.name(), one_line(&by)))?;
            platform
        }
        (None, None) => bail!(
            "the platform cannot be recognized, as none of the objects that configure a DNS is there: give --platform"
        ),
    };
    let change = change::of(platform, &objects, &wanted)?;
    for server in wanted.servers.iter().filter(|server| Upstream::of(server) == Upstream::Public) {
        say(&format!("note: {server} is a public resolver, which knows no domain of Active Directory"))?;
    }
    match change {
        Change::Nothing(why) => {
            say(&why)?;
            Ok(Outcome::Clean)
        }
        Change::Object { object, exists } => {
            if wanted.servers.len() == 1 {
                say("note: with one server, no pod can log on while it restarts: give a second --server")?;
            }
            let object = writable(object);
            let outcome = print(format!("# {}\n{}", platform.page(), serde_saphyr::to_string(&object)?))?;
            for line in platform.next(&object, exists, &wanted, &objects) {
                say(&line)?;
            }
            Ok(outcome)
        }
    }
}

fn say(line: &str) -> io::Result<()> {
    writeln!(io::stderr(), "{line}")
}

/// The objects in files, as `kubectl get -o yaml` prints them.
fn from_files(files: &[PathBuf]) -> anyhow::Result<Objects> {
    let Manifests { documents, problems, .. } = input::manifests(files);
    if let Some(problem) = problems.as_slice().first() {
        bail!("{problem}");
    }
    let mut objects = Objects::new();
    for document in documents {
        let field = |pointer: &str| document.value.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        let is = |object: &Object| {
            (object.api_version(), object.kind(), object.name())
                == (field("/apiVersion"), field("/kind"), field("/metadata/name"))
                && matches!(field("/metadata/namespace"), "" | "kube-system")
        };
        if let Some(object) = Object::ALL.into_iter().find(is) {
            objects.insert(object, document.value.clone());
        }
    }
    if objects.is_empty() {
        let known: Vec<String> = Object::ALL.into_iter().map(Object::place).collect();
        bail!("the files configure no DNS: expected one of {}", known.join(", "));
    }
    Ok(objects)
}

/// The object without what only the API server writes. Its version stays.
fn writable(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["managedFields", "uid", "creationTimestamp", "generation", "selfLink"] {
            metadata.remove(field);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            // It holds the object as it was before.
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    object
}
