//! The rules of the core, the directory, the server and the broker. Rules of `kubectl gmsa` alone, and the words of all, are in `crates/rules`;
//! `CONTRIBUTING.md` says how to add a rule. The tests of `crates/rules` make `docs/rules.md` of all rules.
//!
//! A remedy is a template: `kubectl gmsa` fills in the names that it knows for `SPEC`, `NAMESPACE`, `NODE` and others in its commands.

use super::Severity::{self, Error, Note, Warning};

/// Something that must or should hold.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name in output: lower-case words joined by hyphens. It never changes.
    pub id: &'static str,
    pub severity: Severity,
    /// The fault, in one sentence.
    pub title: &'static str,
    pub remedy: &'static str,
}

/// The broker's refusals after which the agent removes the tickets, or the keytab, that it has: the pod's right to them has ended. A refusal about the pod's
/// life is not among them, because a pod needs its tickets until it ends.
pub static END_OF_TICKETS: [&Rule; 4] = [&NOT_AUTHORIZED, &TICKET_SERVICES, &KEYTAB_NAMES, &SPEC_MISSING];

/// The page that explains the rules, from the root of the repository.
pub const PAGE: &str = "docs/rules.md";

impl Rule {
    /// The anchor of the rule on [`PAGE`].
    pub fn page(&self) -> String {
        format!("{PAGE}#{}", self.id)
    }
}

macro_rules! rules {
    ($($group:literal { $($name:ident: $id:literal, $severity:ident, $title:literal, $remedy:literal;)* })*) => {
        $($(
            #[doc = $title]
            pub static $name: Rule = Rule { id: $id, severity: $severity, title: $title, remedy: $remedy };
        )*)*

        /// All rules, in groups with a heading, as the page shows them.
        pub static RULES: &[(&str, &[&Rule])] = &[$(($group, &[$(&$name),*])),*];
    };
}

rules! {
    "Files" {
        UNREADABLE: "unreadable", Error, "A file, or a document in it, cannot be read.",
            "Correct the syntax on the line that the message names. A template must be rendered first.";
        DUPLICATE_KEY: "duplicate-key", Warning, "An object in a file has the same key twice.",
            "Remove one of them. kubectl and the API server take the last.";
        NOT_KUBERNETES: "not-kubernetes", Note, "A document has neither `apiVersion` nor `kind`, so it is skipped.",
            "If it is meant for Kubernetes, add both. Otherwise ignore it.";
        REFUSED_OBJECT: "refused-object", Error, "The API server would refuse a credential spec, role or binding, so it has no effect.",
            "Correct the field that the message names.";
        NOT_A_POD: "not-a-pod", Error, "The API server would refuse the Pod, or the Pod template.",
            "Correct the field that the message names.";
    }
    "Credential specs" {
        OBJECT: "object", Error, "The credential spec is not an object.",
            "Make a new one with `kubectl gmsa credspec new`.";
        API_VERSION: "api-version", Warning, "The credential spec has a wrong or deprecated `apiVersion`, or a wrong `kind`.",
            "Write `apiVersion: windows.k8s.io/v1` and `kind: GMSACredentialSpec`.";
        NAME: "name", Error, "The credential spec has no name, or one that Kubernetes refuses.",
            "Use a lower-case DNS name.";
        CREDSPEC: "credspec", Error, "The credential spec has no `credspec` object.",
            "Make a new one with `kubectl gmsa credspec new`.";
        SIZE: "size", Error, "The contents are longer than a Pod may carry (64 KiB).",
            "List fewer accounts, or use a shorter `PluginInput`.";
        UNKNOWN_KEY: "unknown-key", Warning, "A field is not one of a credential spec; the API server drops it.",
            "Correct its spelling or remove it.";
        CMS_PLUGINS: "cms-plugins", Error, "`CmsPlugins` does not enable Active Directory.",
            "Write `CmsPlugins: [ActiveDirectory]`.";
        SECTION: "section", Error, "`DomainJoinConfig` or `ActiveDirectoryConfig` is missing.",
            "Make a new credential spec with `kubectl gmsa credspec new`.";
        SID: "sid", Error, "`Sid` is not the SID of the domain.",
            "Take it from `(Get-ADDomain).DomainSID.Value`.";
        GUID: "guid", Error, "`Guid` is not the GUID of the domain.",
            "Take it from `(Get-ADDomain).ObjectGUID`, without braces.";
        ACCOUNT: "account", Error, "An account is not written as its SAM name alone.",
            "Write the SAM name without `$` and without the domain.";
        DNS_NAME: "dns-name", Error, "`DnsName` is not the DNS name of the domain.",
            "Take it from `(Get-ADDomain).DNSRoot`.";
        DNS_TREE_NAME: "dns-tree-name", Error, "`DnsTreeName` is not the DNS name of the root of the forest.",
            "Take it from `(Get-ADDomain).Forest`.";
        NETBIOS_NAME: "netbios-name", Error, "`NetBiosName` is not the NetBIOS name of the domain.",
            "Take it from `(Get-ADDomain).NetBIOSName`.";
        ACCOUNTS: "accounts", Error, "`GroupManagedServiceAccounts` does not list the account under both names of the domain.",
            "List it twice: with the DNS name and with the NetBIOS name of the domain as `Scope`.";
        PLUGIN: "plugin", Error, "`HostAccountConfig` is not an object.",
            "Give it `PluginGUID`, `PluginInput` and `PortableCcgVersion`, or remove it.";
        PLUGIN_VERSION: "plugin-version", Error, "`PortableCcgVersion` is not the string `\"1\"`.",
            "Write `PortableCcgVersion: \"1\"`.";
        PLUGIN_GUID: "plugin-guid", Error, "`PluginGUID` is not a GUID in braces.",
            "Take it from the maker of the plugin, and keep the braces.";
        PLUGIN_INPUT: "plugin-input", Error, "`PluginInput` is missing, is not a string, or is not what its plugin takes.",
            "Write one string, as the maker of the plugin documents it.";
        PLUGIN_PASSWORD: "plugin-password", Error, "`PluginInput` seems to hold a password, and everybody who may read a credential spec or a Pod can read it.",
            "Keep the password in the vault of the plugin, name the vault, and change the password.";
        PLACEHOLDER: "placeholder", Error, "A value is still a placeholder, such as `<GMSA_NAME>` or `${GMSA}`.",
            "Write the value, or have the tool write it that fills placeholders in, and check what comes out.";
    }
    "Accounts in the directory" {
        ACCOUNT_INCOMPLETE: "account-incomplete", Warning, "The printed account lacks properties that the check needs.",
            "Print it with `Get-ADServiceAccount NAME -Properties * | ConvertTo-Json`.";
        ACCOUNT_UNKNOWN: "account-unknown", Error, "The domain does not know the account.",
            "`Get-ADServiceAccount NAME -Server DOMAIN` shows whether it is there: correct `MachineAccountName` in the credential spec, or create the account.";
        ACCOUNT_NAME: "account-name", Error, "The SAM name of the account is longer than 15 characters.",
            "Make an account with a shorter name.";
        ACCOUNT_CLASS: "account-class", Error, "The account is not a group Managed Service Account.",
            "Make one with `New-ADServiceAccount`.";
        ACCOUNT_DISABLED: "account-disabled", Error, "The account is disabled.",
            "Enable it: `Set-ADServiceAccount NAME -Enabled $true`.";
        ACCOUNT_EXPIRED: "account-expired", Error, "The account has expired, or expires within 30 days.",
            "Remove the date: `Clear-ADAccountExpiration -Identity 'NAME$'`.";
        ACCOUNT_DELETED: "account-deleted", Error, "The account is a deleted object, or a conflict of replication.",
            "Use the account that is there, or restore this one: `Get-ADObject -IncludeDeletedObjects`, `Restore-ADObject`.";
        ACCOUNT_LOGON: "account-logon", Error, "The account gets no ticket: a smart card is required, or its logon hours allow none.",
            "Clear the flag or the hours; the output shows the command.";
        ACCOUNT_SUPERSEDED: "account-superseded", Warning, "A delegated Managed Service Account (dMSA) takes the place of the account.",
            "Undo the migration, or use another group Managed Service Account: Windows containers cannot use a dMSA.";
        ACCOUNT_PROTECTED: "account-protected", Warning, "The account is a member of Protected Users.",
            "Remove it from the group: `Remove-ADGroupMember 'Protected Users' -Members 'NAME$'`.";
        ACCOUNT_WEAKENED: "account-weakened", Warning, "A flag, a group or a delegation makes the account easier to abuse, or worth more to an attacker, such as unconstrained delegation or Domain Admins.",
            "Remove it; the output shows the command. Where services must be called as the user, use constrained delegation.";
        ACCOUNT_USER_NAME: "account-user-name", Warning, "A user or a computer has the name of the account.",
            "Rename one of them: a name without `$` means the user first, so that a logon as the account may become one as the user.";
        ACCOUNT_HOSTS: "account-hosts", Error, "No host may retrieve the password of the account.",
            "Set `PrincipalsAllowedToRetrieveManagedPassword` to a group that holds the nodes, or the user that the plugin or the broker logs on as.";
        ACCOUNT_SPN: "account-spn", Warning, "The account lacks the service principal name of a service that it runs.",
            "Add it: `Set-ADServiceAccount NAME -ServicePrincipalNames @{Add='host/HOST'}`. An account that only calls other services needs none.";
        ACCOUNT_ENCRYPTION: "account-encryption", Warning, "The account supports no AES encryption of Kerberos tickets, or does not say what it supports.",
            "Set `-KerberosEncryptionType AES128,AES256`. Domain controllers are being moved off RC4 (Microsoft KB5073381).";
        ACCOUNT_TRUST: "account-trust", Warning, "`userAccountControl` lacks the flag `WORKSTATION_TRUST_ACCOUNT`.",
            "Set the flag; the output shows the command.";
        ACCOUNT_DIFFERS: "account-differs", Error, "The account and the credential spec name different accounts or domains.",
            "Correct the credential spec, or use the account that it names.";
        ACCOUNT_HOSTS_EMPTY: "account-hosts-empty", Warning, "A group that may retrieve the password of the account has no members, or none that can log on over the network.",
            "Add the nodes, or the user that the plugin or the broker logs on as: `Add-ADGroupMember`. A node learns of its groups when it restarts.";
        ACCOUNT_HOSTS_DISTRIBUTION: "account-hosts-distribution", Warning, "A distribution group is listed to retrieve the password, but it gives no access.",
            "Make it a security group: `Set-ADGroup GROUP -GroupCategory Security`. A node learns of its groups when it restarts.";
        ACCOUNT_HOSTS_DENIED: "account-hosts-denied", Warning, "An entry denies the password to a principal that a later entry allows.",
            "Write the list again without denials: `Set-ADServiceAccount NAME -PrincipalsAllowedToRetrieveManagedPassword GROUP`.";
        ACCOUNT_HOSTS_ORPHANED: "account-hosts-orphaned", Warning, "A principal that may retrieve the password of the account no longer exists.",
            "Set `PrincipalsAllowedToRetrieveManagedPassword` again, to a group that exists.";
        ACCOUNT_HOSTS_UNKNOWN: "account-hosts-unknown", Warning, "An entry in the list of principals that may retrieve the password cannot be interpreted.",
            "Inspect it: `(Get-ADServiceAccount NAME -Properties msDS-GroupMSAMembership).'msDS-GroupMSAMembership'.Access`. `Set-ADServiceAccount NAME -PrincipalsAllowedToRetrieveManagedPassword GROUP` writes the list again, without it.";
        ACCOUNT_HOSTS_WIDE: "account-hosts-wide", Warning, "Too many principals may retrieve the password of the account, such as all users or all computers of the domain.",
            "Set `PrincipalsAllowedToRetrieveManagedPassword` to a group that holds the nodes, or the user that the plugin or the broker logs on as, and no other.";
        ACCOUNT_SPN_DUPLICATE: "account-spn-duplicate", Error, "Several accounts have the same service principal name.",
            "Keep it only on the account that serves it: `setspn -X -F` lists duplicates, `setspn -D NAME ACCOUNT` removes one.";
        ACCOUNT_PASSWORD: "account-password", Error, "The user may not retrieve the password of the account, or the domain makes none.",
            "Make the user a member of a group in `PrincipalsAllowedToRetrieveManagedPassword`.";
        KDS_ROOT_KEY: "kds-root-key", Error, "The forest has no KDS root key that can be used, so no group Managed Service Account has a password.",
            "`Add-KdsRootKey -EffectiveImmediately`, once per forest, then wait 10 hours.";
        DIRECTORY_LEVEL: "directory-level", Error, "The domain controller is older than Windows Server 2012, the first that makes passwords of group Managed Service Accounts.",
            "Ask a newer one, and have one in each domain.";
        DIRECTORY_QUOTA: "directory-quota", Warning, "Every user of a domain may create computer objects (`ms-DS-MachineAccountQuota`), so a Linux Pod with a ticket for the directory can too.",
            "Let administrators alone create them: `Set-ADDomain DOMAIN -Replace @{'ms-DS-MachineAccountQuota'=0}`.";
        DIRECTORY_CLOCK: "directory-clock", Warning, "The clocks of this machine and of the domain controller differ by more than the 5 minutes that Kerberos allows.",
            "Compare both with a time server. If the domain controller is wrong, run `w32tm /resync` on it.";
    }
    "Denials" {
        UNEXPECTED_KIND: "unexpected-kind", Error, "A webhook is registered for a kind that it does not review.",
            "Install the webhook configurations of the chart.";
        CREDENTIAL_SPEC_WRONG: "credential-spec-wrong", Error, "A credential spec cannot work, and the webhook is configured to refuse it.",
            "Correct it: `kubectl gmsa credspec lint` lists what is wrong.";
        UNEXPECTED_OPERATION: "unexpected-operation", Error, "A webhook is registered for an operation that it does not review.",
            "Install the webhook configurations of the chart.";
        NO_OBJECT: "no-object", Error, "An AdmissionReview has no object.",
            "Send reviews from an API server only.";
        INVALID_NAMESPACE: "invalid-namespace", Error, "An AdmissionReview has no valid namespace.",
            "Use the name of a namespace: a DNS label.";
        INVALID_SPEC_NAME: "invalid-spec-name", Error, "`gmsaCredentialSpecName` is not a lower-case DNS name, so no credential spec can have it.",
            "Correct the name.";
        INVALID_SERVICE_ACCOUNT: "invalid-service-account", Error, "`serviceAccountName` is not a lower-case DNS name.",
            "Correct the name.";
        TOO_MANY_SLOTS: "too-many-slots", Error, "A Pod has more containers than are allowed.",
            "Split the Pod.";
        TOO_MANY_SPECS: "too-many-specs", Error, "A Pod names more credential specs than are allowed.",
            "Split the Pod.";
        PATCH_TOO_LARGE: "patch-too-large", Error, "The contents would make the Pod too large.",
            "Use fewer containers, or name the credential spec on the Pod instead of on each container.";
        SPEC_MISSING: "spec-missing", Error, "The credential spec does not exist.",
            "`kubectl gmsa credspec new SPEC --account NAME --from-ad FILE | kubectl apply -f -`, or use the name of one that exists: `kubectl get gmsacredentialspecs`.";
        SPEC_UNUSABLE: "spec-unusable", Error, "The credential spec has no `credspec` object.",
            "Make a new one: `kubectl gmsa credspec new SPEC --account NAME --from-ad FILE | kubectl apply -f -`.";
        SPEC_UNREADABLE: "spec-unreadable", Error, "The credential spec could not be read.",
            "Try again; `kubectl gmsa doctor` checks the permissions of the webhook and its connection to the API server.";
        CONTENTS_WITHOUT_NAME: "contents-without-name", Error, "`gmsaCredentialSpec` is set without `gmsaCredentialSpecName`, so it cannot be checked.",
            "Set the name instead of the contents.";
        NOT_AUTHORIZED: "not-authorized", Error, "The service account of the Pod may not use the credential spec.",
            "Grant it: `kubectl gmsa grant --credspec SPEC --serviceaccount NAMESPACE:SERVICEACCOUNT --apply`.";
        AUTHORIZATION_FAILED: "authorization-failed", Error, "The permission to use the credential spec could not be checked.",
            "Try again; `kubectl gmsa doctor` checks the permissions of the webhook and its connection to the API server.";
        CONTENTS_DIFFER: "contents-differ", Error, "`gmsaCredentialSpec` differs from the credential spec.",
            "Remove `gmsaCredentialSpec`: the webhook fills it in.";
        NAME_WITHOUT_CONTENTS: "name-without-contents", Error, "A Pod names a credential spec and does not carry its contents.",
            "Run the mutating webhook after every webhook that adds the name; on a Linux Pod, remove the name.";
        MODIFIED: "modified", Error, "An update changes the GMSA settings of an existing Pod.",
            "Delete the Pod and create it with the new settings.";
        TICKETS_IMPOSSIBLE: "tickets-impossible", Error, "A Pod cannot have the tickets that it asks for.",
            "Correct what the message names: a Pod for Windows, a name or path that tickets need, a cluster older than Kubernetes 1.29.";
        TICKETS_NOT_ENABLED: "tickets-not-enabled", Error, "A Pod asks for tickets, and the webhook is installed without them, or is being rolled out with them.",
            "Install the chart `gmsa-tickets`, and upgrade the chart of the webhook with `tickets.enabled=true`.";
        TICKETS_UNAVAILABLE: "tickets-unavailable", Error, "The webhook does not know the version of the cluster or the CA of the broker.",
            "Correct what the message names, then try again.";
    }
    "Pods" {
        LINUX_NODE: "linux-node", Warning, "A Pod that uses GMSA may be scheduled to a Linux node.",
            "Set `spec.os.name: windows` and the node selector `kubernetes.io/os: windows`.";
        OS_SELECTOR: "os-selector", Warning, "A Pod selects nodes of an operating system that no node has.",
            "Write the label and its value in lower case: `kubernetes.io/os: windows`.";
        HOST_PROCESS: "host-process", Warning, "A hostProcess container acts as the account of the host, not as the gMSA.",
            "Remove `hostProcess`, or the credential spec.";
        RUN_AS_USER: "run-as-user", Warning, "Only SYSTEM and NETWORK SERVICE act as the gMSA on the network.",
            "Set `runAsUserName: NT AUTHORITY\\NETWORK SERVICE`, or remove it.";
        LINUX_ONLY: "linux-only", Warning, "A Pod that uses GMSA sets a field that Windows does not have.",
            "Remove the field. docs/windows-pods.md lists these fields, and what happens instead.";
        NANO_SERVER: "nano-server", Warning, "A container on Nano Server runs as `ContainerUser`, which cannot use Kerberos.",
            "Set `runAsUserName: NT AUTHORITY\\NETWORK SERVICE`, or use an image on Server Core.";
        SHARED_HOSTNAME: "shared-hostname", Warning, "Several Pods with one account have the same host name, or the same first 15 characters of it.",
            "Remove `hostname`, and have the webhook give random host names: by `randomHostname` in the chart, or by the annotation `gmsa-webhook/random-hostname: \"true\"` of the \
             Pod template. A StatefulSet sets the host names of its Pods itself: give it a name of at most 12 characters.";
        TICKETS_OTHER_CACHE: "tickets-other-cache", Warning, "A container sets `KRB5CCNAME` or `KRB5_KTNAME` itself, so it does not use the tickets or the keytab of its Pod; or its `envFrom` may, without effect.",
            "Remove it, or set `KRB5CCNAME` to `FILE:/var/run/gmsa/krb5cc`, `KRB5_KTNAME` to `FILE:/var/run/gmsa/keytab`.";
    }
    "Installation" {
        WEBHOOK_MISSING: "webhook-missing", Error, "No webhook configuration sends Pods to the webhook.",
            "Install the chart: `helm install gmsa-webhook charts/gmsa-webhook -n gmsa-webhook --create-namespace`.";
        NOT_CHECKED: "not-checked", Warning, "A part of the cluster could not be checked.",
            "Run the command as a user with read access (`--as`, `--context`).";
    }
    "Certificates" {
        CA_BUNDLE: "ca-bundle", Error, "A webhook configuration has no usable `caBundle`.",
            "The CA injector of cert-manager, or the webhook itself, must write it. See docs/certificates.md.";
        CERTIFICATE_EXPIRY: "certificate-expiry", Error, "A certificate has expired, or expires soon.",
            "Renew it. See docs/certificates.md.";
        CERTIFICATE_UNUSABLE: "certificate-unusable", Error, "The serving certificate cannot be read, is for no host, or is not valid yet.",
            "Issue another one: X.509 in PEM, with the names of the Service as subject alternative names. See docs/certificates.md.";
        PRIVATE_KEY: "private-key", Error, "The private key cannot be used, or is not the key of the serving certificate.",
            "Use the key that was made with the certificate: in PEM, without a password.";
        CERTIFICATE_NOT_TRUSTED: "certificate-not-trusted", Error, "The API server, or a client with the given CA, does not accept the serving certificate.",
            "Put the CA that signed it into every `caBundle`, and issue it for the name by which the API server calls.";
    }
    "Tickets" {
        TICKET_REQUEST: "ticket-request", Error, "A request to the broker of tickets cannot be read.",
            "Send `POST /v1/tickets` with `{\"credentialSpec\": \"NAME\"}`, as `gmsa-tickets agent` does.";
        TICKET_TOKEN: "ticket-token", Error, "The token of the request is missing, or is not that of a Pod for this credential spec.",
            "Mount a projected token with the audience `gmsa-tickets/SPEC`, for a keytab `gmsa-keytab/SPEC`, into the sidecar, and send it.";
        TICKET_POD: "ticket-pod", Error, "The Pod of the token is gone, has ended, is another one, or has no token of this audience in its volumes.",
            "Create the Pod with a projected token whose audience is `gmsa-tickets/SPEC`, for a keytab `gmsa-keytab/SPEC`: volumes of a Pod cannot change.";
        TICKET_SERVICES: "ticket-services", Error, "The credential spec lists no services, or not in the right form, so there are no tickets of its account.",
            "List them: `kubectl annotate gmsacredentialspec SPEC --overwrite gmsa-webhook/services=HTTP/app.contoso.com`.";
        KEYTAB_NAMES: "keytab-names", Error, "The credential spec lists no names for a keytab, or not in the right form, so there is no keytab of its account.",
            "List the names under which clients ask for the service: `kubectl annotate gmsacredentialspec SPEC --overwrite gmsa-webhook/keytab=HTTP/app.contoso.com`.";
        KEYTAB_DOMAIN: "keytab-domain", Error, "The broker is configured to give no keytabs of the domain.",
            "Where its accounts may leave the broker as keytabs, set `keytabs: true` for the domain in the configuration of the broker.";
        KEYTAB_KEYS: "keytab-keys", Error, "The keys of the account do not open the tickets that the domain gives for a name in its keytab.",
            "For RC4 (23), `Set-ADServiceAccount NAME -KerberosEncryptionType AES128,AES256`. Otherwise give the name to this account alone (`setspn -X -F` lists duplicates), and leave its password to the domain. With `fKVNOEmuW2K` in `dSHeuristics` there are no keytabs.";
        TICKET_SERVICE: "ticket-service", Warning, "The credential spec lists a service by a name that clients do not ask for, or that no account has.",
            "List it as the client asks for it: class `HTTP` in capitals, the full DNS name of the host, and a port for SQL Server alone.";
        TICKET_CONTROLLER: "ticket-controller", Warning, "The credential spec lists a service of a domain controller.",
            "Remove it from the list. Where an application must read the directory, give it an account that no other application uses.";
        TICKET_ANY: "ticket-any", Warning, "The credential spec gives Pods a ticket-granting ticket (`*`), also for services of the same account as any user.",
            "List services instead: `kubectl annotate gmsacredentialspec SPEC --overwrite gmsa-webhook/services=HTTP/app.contoso.com`. Or use an account without service principal names.";
        TICKET_SIDECAR: "ticket-sidecar", Error, "The parts of a sidecar for tickets that was written by hand do not fit together.",
            "Correct what the message names, or have the webhook inject the sidecar: annotation `gmsa-webhook/tickets: SPEC`. See docs/linux-pods.md.";
        TICKET_ACCOUNT: "ticket-account", Error, "The broker is configured to give no tickets or keytabs of the account.",
            "Add it to `accounts` of its domain in the configuration of the broker.";
        TICKET_DOMAIN: "ticket-domain", Error, "The broker is not configured for the domain of the credential spec.",
            "Add the domain to the configuration of the broker.";
        TICKET_REFERRAL: "ticket-referral", Error, "The broker gets no ticket for a service of another domain: a referral leads to a domain that is not listed, or the trust does not work.",
            "Add the other domain to `referrals` of the account's domain in the configuration of the broker. Otherwise look at the trust: `Get-ADTrust -Filter *`.";
        TICKET_RATE: "ticket-rate", Error, "A Pod asks for tickets or keytabs too often.",
            "Ask again at `renewAfter`, as `gmsa-tickets agent` does.";
        TICKET_BUSY: "ticket-busy", Error, "The broker answers as many requests as it has room for.",
            "Try again. If it stays so, give the broker more memory or more replicas.";
        TICKET_CHECK: "ticket-check", Error, "The broker could not check the token or the Pod: the API server did not answer, or refused.",
            "Try again. Install the roles of the chart, which let the broker create TokenReviews and read Pods.";
        TICKET_ANSWER: "ticket-answer", Error, "A domain controller answers the broker with what cannot be read, or cannot be trusted.",
            "Look at what is between the broker and the domain controller that the message names.";
        TICKET_SIZE: "ticket-size", Error, "The tickets are larger than an answer may be (128 KiB).",
            "List fewer services, or make the account a member of fewer groups.";
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_rules_under_denials_are_those_of_the_denials() {
        let (_, rules) = RULES.iter().find(|(group, _)| *group == "Denials").unwrap();
        assert_eq!(**rules, crate::admission::Denial::RULES);
    }

    #[test]
    fn every_rule_has_a_name_of_its_own_and_two_sentences() {
        let rules: Vec<_> = RULES.iter().flat_map(|(_, rules)| rules.iter()).collect();
        assert_eq!(rules.iter().map(|rule| rule.id).collect::<BTreeSet<_>>().len(), rules.len());
        for rule in rules {
            assert!(rule.id.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{}", rule.id);
            assert!(rule.title.ends_with('.') && rule.remedy.ends_with('.'), "{}", rule.id);
        }
    }
}
