//! What a node does for Services: a connection to one's address goes to one of its pods that are ready.

use std::collections::HashSet;

use gmsa_test_support::control_plane::Client;
use serde_json::Value;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};

use super::{BETWEEN_LOOKS, list, text};

pub async fn serve(client: Client) {
    let mut known = HashSet::new();
    while let Ok(services) = client.get("/api/v1/services").await {
        for service in list(&services, "items").filter(|service| service["spec"]["selector"].is_object()) {
            let [name, namespace] = ["name", "namespace"].map(|field| text(&service["metadata"][field]));
            let address = text(&service["spec"]["clusterIP"]);
            for port in list(&service["spec"], "ports") {
                let address = format!("{address}:{}", port["port"]);
                if !address.starts_with("None") && known.insert(address.clone()) {
                    let slices = format!(
                        "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io/service-name={name}"
                    );
                    tokio::spawn(listen(client.clone(), address, slices, text(&port["name"])));
                }
            }
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

/// What the DNS of a cluster knows, as lines of `/etc/hosts`.
pub async fn names(client: &Client) -> String {
    let services = client.get("/api/v1/services").await.unwrap();
    let line = |service: &Value| {
        let [name, namespace] = ["name", "namespace"].map(|field| text(&service["metadata"][field]));
        format!("{} {name}.{namespace}.svc\n", text(&service["spec"]["clusterIP"]))
    };
    list(&services, "items").map(line).filter(|line| !line.starts_with("None")).collect()
}

async fn listen(client: Client, address: String, slices: String, port: String) {
    let listener = TcpListener::bind(&address).await.unwrap();
    for turn in 0.. {
        let (mut socket, _) = listener.accept().await.unwrap();
        let (client, slices, port) = (client.clone(), slices.clone(), port.clone());
        tokio::spawn(async move {
            let ready = client.get(&slices).await.map_or(Vec::new(), |slices| endpoints(&slices, &port));
            // Without one, the connection ends.
            let Some(pod) = ready.get(turn % ready.len().max(1)) else { return };
            let Ok(mut pod) = TcpStream::connect(pod).await else { return };
            let _ = copy_bidirectional(&mut socket, &mut pod).await;
        });
    }
}

/// The addresses of the pods that are ready.
fn endpoints(slices: &Value, port: &str) -> Vec<String> {
    let of_slice = |slice: &Value| -> Vec<String> {
        let Some(port) = list(slice, "ports").find(|found| found["name"] == port) else { return Vec::new() };
        let ready = list(slice, "endpoints").filter(|endpoint| endpoint["conditions"]["ready"] == true);
        ready.map(|endpoint| format!("{}:{}", text(&endpoint["addresses"][0]), port["port"])).collect()
    };
    list(slices, "items").flat_map(of_slice).collect()
}
