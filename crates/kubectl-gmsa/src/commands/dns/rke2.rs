//! RKE2: CoreDNS is a chart, whose values a HelmChartConfig adds to. A list in them replaces that of the chart, so it must hold all
//! server blocks: <https://docs.rke2.io/add-ons/helm#customizing-packaged-components-with-helmchartconfig>.

use anyhow::{Context as _, bail};
use gmsa_core::{
    corefile::{Corefile, Plugin, Server},
    quote::one_line,
};
use serde_json::{Value, json};

use super::{
    change::{new, set},
    wanted::Wanted,
};
use crate::shared::cluster_dns::Object;

/// The HelmChartConfig with one more server block among `servers`.
pub fn values(existing: Option<&Value>, corefile: &Corefile, wanted: &Wanted) -> anyhow::Result<Value> {
    let mut config = existing.cloned().unwrap_or_else(|| new(Object::Rke2Values));
    let place = Object::Rke2Values.place();
    let text = config.pointer("/spec/valuesContent").and_then(Value::as_str).unwrap_or("");
    let mut values: Value = match text.trim() {
        "" => json!({}),
        text => {
            serde_saphyr::from_str(text).with_context(|| format!("spec.valuesContent of {place} cannot be read"))?
        }
    };
    let servers = match values.get("servers").and_then(Value::as_array) {
        Some(servers) => servers.clone(),
        None => of_corefile(corefile)?,
    };
    let is_of_domain = |zone: &Value| {
        let name = zone.get("zone").and_then(Value::as_str).unwrap_or("");
        name.strip_suffix('.').unwrap_or(name).eq_ignore_ascii_case(&wanted.domain)
    };
    let mut zones = servers.iter().filter_map(|server| server.get("zones")?.as_array()).flatten();
    if zones.any(is_of_domain) {
        bail!(
            "{place} has a zone {} already, which is not in the Corefile yet: wait for it, or take it out first",
            wanted.domain
        );
    }
    let added = json!({
        "zones": [{"zone": wanted.domain}],
        "port": corefile.port(),
        "plugins": [
            {"name": "errors"},
            {"name": "cache", "parameters": "30"},
            {"name": "forward", "parameters": format!(". {}", wanted.servers.join(" "))},
        ],
    });
    let servers: Vec<Value> = servers.into_iter().chain([added]).collect();
    let Some(fields) = values.as_object_mut() else { bail!("spec.valuesContent of {place} is no mapping") };
    fields.insert("servers".to_owned(), servers.into());
    set(&mut config, "spec", "valuesContent", serde_saphyr::to_string(&values)?.into());
    Ok(config)
}

/// The server blocks of the Corefile as the chart takes them: `templates/configmap.yaml` of <https://github.com/coredns/helm>.
fn of_corefile(corefile: &Corefile) -> anyhow::Result<Vec<Value>> {
    if let Some(unread) = corefile.unread.first() {
        bail!(
            "the Corefile has {:?}, which cannot be written as values of the chart: add the zone by hand",
            one_line(unread)
        );
    }
    corefile.servers.iter().map(server).collect()
}

fn server(server: &Server) -> anyhow::Result<Value> {
    let port = server.zones.first().context("a server block has no zone")?.port;
    if server.zones.iter().any(|zone| zone.port != port) {
        bail!(
            "a server block of the Corefile has zones at several ports, which the chart cannot write: add the zone by hand"
        );
    }
    let zones = server.zones.iter().map(|zone| match zone.transport {
        "dns" => json!({"zone": zone.name}),
        transport => json!({"zone": zone.name, "scheme": format!("{transport}://")}),
    });
    let plugins: Vec<Value> = server.plugins.iter().map(plugin).collect();
    Ok(json!({"zones": zones.collect::<Vec<_>>(), "port": port, "plugins": plugins}))
}

fn plugin(plugin: &Plugin) -> Value {
    let mut plugin = plugin.clone();
    if plugin.name == "kubernetes" {
        // The chart of RKE2 writes the domain of the cluster before these, once more.
        let mut seen = Vec::new();
        plugin.arguments.retain(|zone| {
            let is_new = !seen.contains(zone);
            seen.push(zone.clone());
            is_new
        });
    }
    let mut written = json!({"name": plugin.name});
    let Some(fields) = written.as_object_mut() else { return written };
    let parameters = plugin.written_arguments();
    if !parameters.is_empty() {
        fields.insert("parameters".to_owned(), parameters.into());
    }
    if let Some(block) = plugin.written_block() {
        fields.insert("configBlock".to_owned(), block.into());
    }
    written
}
