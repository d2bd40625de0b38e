//! The plugin's part of the rules in the core's `diagnostic/rules.rs`: the messages of the webhook that show them, and remedies built from
//! names.

use serde_json::{Value, json};

use super::{
    Family, Fix, Names, RuleEntry,
    Words::{Codes, Event, General, Message, Refusal, RunningCodes, Start, StartCodes},
    family,
};
use crate::shared::{grant::GrantObjects, installer::Installer};
use gmsa_core::{
    admission::pod::{Pod, Slot},
    credspec::{SpecName, is_dns_label, is_dns_subdomain, lint::suggest_name, placeholder::is_placeholder},
};

family! { of the core {
    UNEXPECTED_KIND: [Refusal("expected a *object, got a")];
    CREDENTIAL_SPEC_WRONG: [Refusal("the gmsa cred spec cannot work")];
    UNEXPECTED_OPERATION: [Refusal("expected a create or update operation, got")];
    NO_OBJECT: [Refusal("the admissionreview of a pod * has no request.")];
    INVALID_NAMESPACE: [Refusal("the admissionreview has no valid request.namespace")];
    INVALID_SPEC_NAME: [Refusal("gmsa cred spec name *is not a lower-case dns subdomain")], fix: other_name;
    INVALID_SERVICE_ACCOUNT: [Refusal("service account name *is not a lower-case dns subdomain")];
    TOO_MANY_SLOTS: [Refusal("containers, init containers and ephemeral containers together")];
    TOO_MANY_SPECS: [Refusal("distinct gmsa cred specs"), Refusal("different gmsa cred specs in one pod")];
    PATCH_TOO_LARGE: [Refusal("the gmsa cred spec contents of this pod would take")];
    SPEC_MISSING: [Refusal("cred spec ? does not exist"), Message("gmsacredentialspecs.windows.k8s.io \"*\" not found")], fix: nearest_name;
    SPEC_UNUSABLE: [Refusal("does not have a credspec key")];
    SPEC_UNREADABLE: [Refusal("unable to retrieve the contents of cred spec")], fix: what_is_asked;
    // The second message is from the chart's guard.
    CONTENTS_WITHOUT_NAME: [
        Refusal("but does not define the name of the corresponding resource"),
        Refusal("contents are set without the name of their cred spec"),
    ], fix: name_instead;
    NOT_AUTHORIZED: [
        Refusal("is not authorized to `use`"),
        Refusal("is not authorized `use`"),
        Message("cannot use resource \"gmsacredentialspecs\""),
    ], fix: grant;
    AUTHORIZATION_FAILED: [Refusal("unable to check whether service account")], fix: what_is_asked;
    CONTENTS_DIFFER: [Refusal("does not match the contents of gmsa resource")];
    // The second message is from the chart's guard.
    NAME_WITHOUT_CONTENTS: [Refusal("but does not carry its contents"), Refusal("a gmsa cred spec name has no contents")], fix: with_contents;
    MODIFIED: [Refusal("cannot update an existing pod's gmsa settings")];
    TICKETS_IMPOSSIBLE: [Refusal("this pod cannot have tickets")];
    TICKETS_UNAVAILABLE: [Refusal("unable to give this pod tickets")];
    TICKETS_NOT_ENABLED: [Refusal("tickets are not enabled here, or are being rolled out")];
    TICKET_REQUEST: [
        Message("the body must be {\"credentialspec\": \"name\"} and nothing else"),
        Message("there is no path * tickets are at /v1/tickets"),
        Message("/v1/tickets does not take"),
    ];
    TICKET_TOKEN: [
        Message("the request has no token: send authorization: bearer token"),
        Message("does not accept the token for the audience gmsa-tickets/"),
        Message("the token is not for the audience gmsa-tickets/"),
        Message("the token is not bound to a pod"),
        Message("the token is not one of a service account"),
        Message("no tickets: cannot read the token"),
        Message("no tickets in *: cannot read the token"),
        Message("no tickets: the file * does not hold a token"),
        Message("no tickets in *: the file * does not hold a token"),
    ], remedies: {
        "cannot read the token" | "does not hold a token" => "Mount a projected token with the audience `gmsa-tickets/SPEC` and the path `token` into the sidecar, at `/var/run/secrets/gmsa-tickets`.",
    };
    TICKET_POD: [
        Message("the pod * does not exist any more"),
        Message("has another uid than the token: it was replaced"),
        Message("has another service account than the token"),
        Message("has no projected token with the audience gmsa-tickets/"),
    ];
    TICKET_SERVICES: [Message("cred spec * gives no tickets: its")];
    TICKET_ACCOUNT: [Message("the broker gives no tickets of")];
    TICKET_DOMAIN: [Message("cred spec * is of the domain * which the broker does not have")];
    TICKET_RATE: [
        Message("too many requests of this pod: it has"),
        Message("too many pods ask for tickets at the moment"),
    ];
    TICKET_BUSY: [
        Message("too many requests wait for the domain controllers of"),
        Message("the broker keeps the keys of * has no room for another one"),
    ];
    TICKET_CHECK: [Message("GmsaTicketsRequestsFail"), Message("the token cannot be checked: "), Message("the pod * cannot be read: ")], remedies: {
        "GmsaTicketsRequestsFail" => "The log of the broker names the call of the API server that fails. For the outcome `ticket-busy` raise `resources.limits.memory` or `replicaCount` of the chart.",
    };
    TICKET_ANSWER: [
        Message("the answer of the kdc cannot be read"),
        Message("the answer of the kdc has another"),
        Message("the answer of the kdc does not decrypt"),
        Message("the kdc asks for * iterations"),
        Message("the kdc * answers with * bytes: the limit"),
    ];
    TICKET_SIZE: [Message("the tickets take more than 128 kib")];
    TICKET_SIDECAR: [
        Message("no tickets: cannot write into"),
        Message("no tickets in *: cannot write into"),
        Message("cannot write the status into"),
        Message("--broker * is not a dns name that a certificate can be for"),
    ], remedies: {
        "cannot write" => "Mount an emptyDir in memory into the sidecar at `/var/run/gmsa`, not read-only, with room for the tickets (1 MiB); only the other containers mount it read-only.",
    };
    DIRECTORY_CLOCK: [Message("its clock is * that of the broker")];
    ACCOUNT_CLASS: [Message("is not a group managed service account of")];
    ACCOUNT_DIFFERS: [Message("is in the domain * the cred spec says")];
    LINUX_NODE: [
        Message("windows options cannot be set for a linux pod"),
        Message("os field doesn't match node os"),
        Message("`kubernetes.io/os` label doesn't match node label"),
        General("podosnotsupported"),
        General("podosselectornodelabeldoesnotmatch"),
    ], fix: on_windows;
    PLUGIN_INPUT: [
        Message("failed to parse the plugininput parameter"),
        Message("failed to parse the secreturi field value"),
        Event("aksgmsaplugin", &[1013, 1014, 1015, 1016, 1018]),
        Message("invalid plugin input format"),
    ], remedies: {
        "invalid plugin input format" => "For Rancher's plugin write `PluginInput` as `NAMESPACE:SECRET`, the namespace of its account provider and the Secret there.",
        "keyvault resource" | "event 1018 of" => "The host of `SecretUri` must be a Key Vault by its public name, `https://VAULT.vault.azure.net/secrets/NAME`: the plugin takes what follows the first dot as the resource. A private endpoint answers to this name too.",
        "plugininput parameter" | "event 1013 of" | "event 1014 of" | "event 1015 of" | "event 1016 of" => "Write `PluginInput: ObjectId=GUID;SecretUri=https://VAULT.vault.azure.net/secrets/NAME`: the object ID of the managed identity of the nodes, and the address of the secret.",
    };
    PLUGIN_GUID: [Start("failed to parse the plugin guid"), Event("containers-ccg", &[9]), StartCodes(&["CO_E_CLASSSTRING"])];
    ACCOUNT_DISABLED: [
        Message("failure reason: account currently disabled"),
        Message("cannot log on: it is disabled ("),
        Codes(&["ERROR_ACCOUNT_DISABLED", "STATUS_ACCOUNT_DISABLED"]),
    ];
    ACCOUNT_EXPIRED: [
        Message("kdc_err_name_exp"),
        Message("kdc_err_service_exp"),
        Message("entry in database has expired"),
        Message("specified user account has expired"),
        Message("cannot log on: it has expired"),
        Codes(&["STATUS_ACCOUNT_EXPIRED", "ERROR_ACCOUNT_EXPIRED"]),
    ];
    ACCOUNT_UNKNOWN: [
        Message("kdc_err_c_principal_unknown"),
        Message("client not found in kerberos database"),
        Message("client '*' not found in kerberos database"),
        Message("krb5_get_init_creds: client (*) unknown"),
        Message("cannot log on: the kdc does not know it"),
        Message("there is no account \"*\" in"),
        Message("cannot find an object with identity"),
        Message("finddomainforaccount*unable to locate account"),
        Message("group managed service account \"*\" could not be found in the"),
        Message("a referral was returned from the server"),
        Start("failed to fetch gmsa credentials*no such object"),
        Codes(&["ERROR_DS_NO_SUCH_OBJECT", "ERROR_DS_OBJ_NOT_FOUND", "ERROR_DS_REFERRAL"]),
        Codes(&["ERROR_NO_SUCH_USER", "STATUS_NO_SUCH_USER"]),
        RunningCodes(&["ERROR_NONE_MAPPED", "STATUS_NONE_MAPPED"]),
    ], remedies: {
        "samlogon: *logon of" => "The line is about the user that it names, who logs on to this machine, mostly by NTLM: correct the name, the password or the domain that the client sends. The account of the container has no part in it.",
    };
    KDS_ROOT_KEY: [
        Message("no kds root key"),
        Message("add-kdsrootkey : "),
        Message("group key distribution service cannot"),
        Message("group key distribution service failed"),
        Message("encountered an invalid master root key"),
        Event("kdssvc", &[4001, 4005, 4006, 4007, 4008]),
        Codes(&["NTE_NO_KEY"]),
    ], remedies: {
        "nte_no_key" => "`Get-KdsRootKey` shows the keys of the forest. If it lists one, wait until ten hours after its `EffectiveTime`: a second key helps nothing. If it lists none, run `Add-KdsRootKey -EffectiveImmediately`, once per forest, then wait 10 hours.",
        "request is not supported" => "Run `Add-KdsRootKey` on a domain controller, as a member of Domain Admins or Enterprise Admins; elsewhere it answers that the request is not supported.",
        "add-kdsrootkey : access is denied" => "Run `Add-KdsRootKey` on a domain controller as a member of Domain Admins or Enterprise Admins, in a PowerShell that runs as administrator. In a managed domain (Entra Domain Services, AWS Managed Microsoft AD, Google Managed Microsoft AD) nobody is one, and the key is there already: go on with `New-ADServiceAccount`.",
    };
    ACCOUNT_PASSWORD: [
        Message("cannot install service account"),
        Message("provided context did not match the target"),
        Message("may not retrieve the password of * or the domain makes none"),
        Message("test failed for managed service account"),
        Message("permission to use the group msa"),
        Message("not authorized to use the group managed service account"),
        Message("kennwort eines gruppenverwalteten dienstkontos*fehlgeschlagen"),
        Message("kennworts eines gruppenverwalteten dienstkontos"),
        Message("fetch the password of a group managed service account failed"),
        Message("could not retrieve passwords for the group managed service account"),
        Message("test-adserviceaccount*false"),
        Event("directoryservice", &[2947]),
        Event("activedirectory_domainservice", &[2947]),
        Message("das dienstkonto kann nicht installiert werden"),
        Message("impossible d'installer le compte de service"),
    ], remedies: {
        "did not match the target" => "Install the account on a machine of its own domain, whose supported encryption types (`msDS-SupportedEncryptionTypes`) are those of the account.",
        "service account" => "Make the machine a member of a group in `PrincipalsAllowedToRetrieveManagedPassword`, then restart it, or run `klist -li 0x3e7 purge`: it learns of its groups by a new ticket. Compare the encryption types too.",
    };
    ACCOUNT_NAME: [Message("not a properly formed account name")];
    ACCOUNT_SPN_DUPLICATE: [
        Message("duplicate spn found"),
        Message("spn value provided for addition/modification is not unique"),
        Message("groups of duplicate spns"),
        Message("is registered on multiple accounts which"),
        Message("encountered duplicate names while processing a kerberos"),
        Codes(&["ERROR_DS_SPN_VALUE_NOT_UNIQUE_IN_FOREST"]),
    ];
    API_VERSION: [Message("windows.k8s.io/v1alpha1 gmsacredentialspec is deprecated")];
    LINUX_ONLY: [Message("cannot be set for a windows pod")];
    HOST_PROCESS: [Message("contains any hostprocess containers")];
    SIZE: [Message("gmsacredentialspec*size must be under")];
    NOT_A_POD: [General("pod \"*\" is invalid: "), General("the deployment \"*\" is invalid: ")];
    RUN_AS_USER: [
        Message("current security context is not associated with an active directory domain"),
        Message("user manager\\container"),
        Message("nt authority\\iusr"),
        Message("nt authority\\local service"),
        General("containeruser"),
        General("containeradministrator"),
    ];
    CA_BUNDLE: [Message("unable to load root certificates"), Message("invalid value*cabundle")];
    CERTIFICATE_NOT_TRUSTED: [
        Message("GmsaWebhookHandshakesFail"),
        Message("remote error: tls: bad certificate"),
        Message("received fatal alert: badcertificate"),
        Message("received fatal alert: unknownca"),
        Message("tls: unknown certificate authority"),
    ];
    CERTIFICATE_EXPIRY: [Message("GmsaWebhookCertificateExpires"), Message("GmsaTicketsCertificateExpires"), Message("the certificate expired at")];
    CERTIFICATE_UNUSABLE: [
        Message("GmsaWebhookCertificateRefused"),
        Message("the certificate is not valid before"),
        Message("no dns name and no ip address among its subject alternative names"),
        Message("the certificate is not valid pem"),
        Message("is not an x.509 certificate"),
        Message("there is no pem section certificate"),
        Message("the certificate is empty"),
        General("cannot serve the new certificate"),
        Message("GmsaTicketsCertificateRefused"),
    ], remedies: {
        "certificaterefused" => "Do not restart the Pods: a new Pod has no earlier certificate to serve, and is not ready. Their log says what is wrong with the new one. The alert ends when a good pair is in the Secret.",
    };
    PRIVATE_KEY: [
        Message("the private key is "),
        Message("no pem section with a private key"),
        Message("tls: private key does not match public key"),
        Message("tls: failed to find any pem data in key input"),
    ];
    REFUSED_OBJECT: [Message("the gmsacredentialspec \"*\" is invalid")], remedies: {
        "a lowercase rfc 1123" => "Use a lower-case DNS name: letters, digits, `-` and `.`. Pods write the same name in `gmsaCredentialSpecName`.",
    };
} }

/// The grant, as a command and as objects.
fn grant(names: &Names<'_>) -> Option<Fix> {
    let (spec, namespace, service_account) = (SpecName::parse(names.spec?)?, names.namespace?, names.service_account?);
    if !is_dns_label(namespace) || !is_dns_subdomain(service_account) {
        return None;
    }
    let command =
        format!("kubectl gmsa grant --credspec {spec} --serviceaccount {namespace}:{service_account} --apply");
    let yaml = GrantObjects { spec: &spec, namespace, service_account }.yaml();
    Some(Fix::write(format!("# or: {command}\n{yaml}")).or_run(Some(format!("`{command}`."))))
}

/// Corrects an invalid name in its slot.
fn other_name(names: &Names<'_>) -> Option<Fix> {
    let is_wrong = |name: &str| suggest_name(name) != name;
    let mut slots = names.slot.copied().into_iter().chain(names.pod.into_iter().flat_map(Pod::slots));
    let slot = slots.find(|slot| slot.name.is_some_and(is_wrong))?;
    let name = slot.name?;
    let is_name = !is_placeholder(name) && name.contains(|c: char| c.is_ascii_alphanumeric());
    Some(if is_name { renamed(&slot, &suggest_name(name), names) } else { instead_of(name) })
}

/// The remedy that names the most similar credential spec.
fn nearest_name(names: &Names<'_>) -> Option<Fix> {
    let mut slots = names.slot.copied().into_iter().chain(names.pod.into_iter().flat_map(Pod::slots));
    let slot = slots.find(|slot| slot.name == names.spec)?;
    Some(renamed(&slot, names.nearest?, names))
}

/// The change that makes a slot name this credential spec.
fn renamed(slot: &Slot<'_>, name: &str, names: &Names<'_>) -> Fix {
    let context = json!({"windowsOptions": {"gmsaCredentialSpecName": name}});
    let spec = match slot.kind.field() {
        None => json!({"securityContext": context}),
        Some(list) => json!({(list): [{"name": slot.owner, "securityContext": context}]}),
    };
    let fix = Fix::write(format!("gmsaCredentialSpecName: {name}"));
    fix.or_run(names.target.map(|target| target.change(&spec)))
}

/// The replacement for an invalid name.
pub fn instead_of(name: &str) -> Fix {
    if name.contains("{{") {
        return Fix::run(
            "Render the template, and check what comes out: `helm template CHART | kubectl gmsa check -f -`.",
        );
    }
    if is_placeholder(name) {
        return Fix::run(
            "Replace the placeholder, or have the tool that fills it in do so, and check what comes out. \
             `kubectl get gmsacredentialspecs` lists the names.",
        );
    }
    let name = Some(suggest_name(name)).filter(|_| name.contains(|c: char| c.is_ascii_alphanumeric()));
    Fix::write(format!("gmsaCredentialSpecName: {}", name.as_deref().unwrap_or("NAME")))
}

fn name_instead(names: &Names<'_>) -> Option<Fix> {
    // Often the name is in the field for the contents.
    let name = names.slot?.contents.filter(|contents| is_dns_subdomain(contents)).unwrap_or("NAME");
    Some(Fix::write(format!("windowsOptions:\n  gmsaCredentialSpecName: {name}  # instead of gmsaCredentialSpec")))
}

fn with_contents(names: &Names<'_>) -> Option<Fix> {
    let fix = if names.pod.is_some_and(Pod::is_linux) {
        "Remove `spec.os.name: linux`, or the name: the webhook leaves Linux Pods alone."
    } else if names.said.contains("system-namespaces.") {
        "Use another namespace: before Kubernetes 1.28, Pods of `kube-system` and of the webhook's namespace get no contents."
    } else {
        return None;
    };
    Some(Fix::run(fix))
}

fn on_windows(names: &Names<'_>) -> Option<Fix> {
    let mut spec = json!({"os": {"name": "windows"}, "nodeSelector": {"kubernetes.io/os": "windows"}});
    if let (Some(_), Some(spec)) = (names.node, spec.as_object_mut()) {
        // A template with `nodeName` bypasses the scheduler.
        spec.insert("nodeName".to_owned(), Value::Null);
    }
    Some(Fix::run(names.target?.change(&spec)))
}

/// The remedy if the API server refuses a request of the webhook; `None` if only its log tells more. The cause is matched by words,
/// because the webhook is another process and may have another version.
pub(super) fn what_is_asked(names: &Names<'_>) -> Option<Fix> {
    let Names { said, installer, webhook, .. } = names;
    let restore = installer.map_or_else(
        || "`helm upgrade`, or `kubectl apply --server-side -f` with the manifest that installed it,".to_owned(),
        Installer::restore,
    );
    let fix = if said.contains("CustomResourceDefinition") {
        "Install the custom resource again; the check of it in `kubectl gmsa doctor` says how.".to_owned()
    } else if said.contains("answered 401") {
        // The API server does not validate the Service in a configuration.
        let webhook = webhook.filter(|(namespace, name)| is_dns_label(namespace) && is_dns_subdomain(name));
        let restart = webhook.map_or_else(
            || "a restart of its Deployment".to_owned(),
            |(namespace, name)| format!("`kubectl rollout restart deployment/{name} -n {namespace}`"),
        );
        format!(
            "The API server does not accept the token of the webhook's service account. {restore} creates the account again if it was deleted; then \
             {restart} replaces the Pods, whose tokens are dead."
        )
    } else if said.contains("answered 403") {
        format!(
            "The service account of the webhook has lost its permissions: {restore} creates its ClusterRole and the binding again."
        )
    } else {
        return None;
    };
    Some(Fix::run(fix))
}
