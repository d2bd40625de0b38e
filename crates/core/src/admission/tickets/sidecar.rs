//! The sidecar with the agent, and what else `/mutate` injects into a pod that asks for tickets.
//!
//! Invariants: what is missing is added and nothing is replaced, so a patched pod sent again yields no patch; the token is mounted in the
//! sidecar alone, and the other containers mount the tickets read-only. Pod Security `restricted` admits the sidecar, and quotas count it: its
//! requests are its limits, so a pod whose containers are as exact stays Guaranteed.

use serde_json::{Value, json};

use super::is_sidecar;
use crate::{
    admission::{
        Denial,
        patch::PatchWriter,
        pod::{
            Pod, SlotKind,
            tickets::{AUDIENCE, CACHE_VARIABLE, CONFIGURATION_VARIABLE, FOLDER, SIDECAR, TOKEN_VOLUME, TicketFields},
        },
    },
    credspec::SpecName,
};

/// Where the sidecar finds its token.
const TOKEN_FOLDER: &str = "/var/run/secrets/gmsa-tickets";

/// What the operator decides about the sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sidecar {
    pub image: String,
    /// The host name that the broker's certificate is for, and the port.
    pub broker: String,
    /// The broker's IP address and port: pods in the network of their node cannot resolve the name of a Service.
    pub broker_address: String,
    /// The CAs of the broker's certificate, in PEM.
    pub broker_ca: String,
}

/// Adds what the pod lacks.
pub(in crate::admission) fn inject(
    pod: &Pod,
    spec: &SpecName,
    sidecar: &Sidecar,
    patch: &mut PatchWriter,
) -> Result<(), Denial> {
    for slot in pod.slots().filter(|slot| !is_sidecar(slot)) {
        let Some(list) = slot.kind.field() else { continue };
        let (container, has) = (format!("/spec/{list}/{}", slot.index), |field| slot.tickets.has(field));
        let cache = json!({"name": CACHE_VARIABLE, "value": format!("FILE:{FOLDER}/krb5cc")});
        let files = json!({"name": CONFIGURATION_VARIABLE, "value": format!("{FOLDER}/krb5.conf:/etc/krb5.conf")});
        let mount = json!({"name": SIDECAR, "mountPath": FOLDER, "readOnly": true});
        let variables = [(has(TicketFields::CACHE), cache), (has(TicketFields::CONFIGURATION), files)];
        append(patch, &format!("{container}/env"), has(TicketFields::ENV), variables)?;
        append(
            patch,
            &format!("{container}/volumeMounts"),
            has(TicketFields::MOUNTS),
            [(has(TicketFields::TICKETS), mount)],
        )?;
    }
    let volumes = pod.volumes();
    let tickets = json!({"name": SIDECAR, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}});
    let token = json!({"audience": format!("{AUDIENCE}{spec}"), "expirationSeconds": 600, "path": "token"});
    let token = json!({"name": TOKEN_VOLUME, "projected": {"sources": [{"serviceAccountToken": token}]}});
    let wanted = [(volumes.is_in_memory.is_some(), tickets), (volumes.token.is_some(), token)];
    append(patch, "/spec/volumes", volumes.are_some, wanted)?;
    // The last operation: it shifts the positions of the other init containers.
    match (pod.slots().any(|slot| is_sidecar(&slot)), SlotKind::InitContainer.field()) {
        (false, Some(list)) if pod.slots().any(|slot| slot.kind == SlotKind::InitContainer) => {
            patch.add(&format!("/spec/{list}/0"), &sidecar.container(spec))
        }
        (false, Some(list)) => patch.add(&format!("/spec/{list}"), &[sidecar.container(spec)]),
        _ => Ok(()),
    }
}

/// Adds the items that a list does not have, each with whether it does; as a new list where that has no items.
fn append<const N: usize>(
    patch: &mut PatchWriter,
    list: &str,
    has_items: bool,
    wanted: [(bool, Value); N],
) -> Result<(), Denial> {
    let missing: Vec<Value> = wanted.into_iter().filter(|(is_there, _)| !is_there).map(|(_, item)| item).collect();
    if has_items {
        missing.iter().try_for_each(|item| patch.add(&format!("{list}/-"), item))
    } else if missing.is_empty() {
        Ok(())
    } else {
        patch.add(list, &missing)
    }
}

impl Sidecar {
    fn container(&self, spec: &SpecName) -> Value {
        let Self { image, broker, broker_address, broker_ca } = self;
        let resources = json!({"cpu": "50m", "memory": "32Mi"});
        json!({
            "name": SIDECAR,
            "image": image,
            "restartPolicy": "Always",
            "args": [
                "agent",
                format!("--credential-spec={spec}"),
                format!("--broker={broker}"),
                format!("--broker-address={broker_address}"),
                format!("--broker-ca={broker_ca}"),
            ],
            // The other containers start when there are tickets; where the broker is away, they wait for ten minutes before the sidecar is restarted.
            "startupProbe": {
                "exec": {"command": ["/gmsa-tickets", "agent", "ready"]},
                "periodSeconds": 1,
                "timeoutSeconds": 5,
                "failureThreshold": 600,
            },
            "resources": {"requests": resources, "limits": resources},
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": 65532,
                "runAsGroup": 65532,
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "volumeMounts": [
                {"name": SIDECAR, "mountPath": FOLDER},
                {"name": TOKEN_VOLUME, "mountPath": TOKEN_FOLDER, "readOnly": true},
            ],
        })
    }
}
