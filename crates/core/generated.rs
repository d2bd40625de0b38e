// Made of `crates/rules/data` by `UPDATE_SNAPSHOTS=1 cargo test -p gmsa-rules --test generated`: do not edit.

#[doc = "What encloses the name of a value that a tool fills in: Helm and Jinja, shells and Kubernetes, ERB, Azure DevOps, Octopus, batch files, autoconf, pages."]
pub static PLACEHOLDER_ENCLOSED: &[&str] = &["{{ }}", "${ }", "$( )", "$[ ]", "<% %>", "« »", "#{ }", "%{ }", "@{ }", "(( ))", "[[ ]]", "__ __", "@@ @@", "< >", "[ ]", "{ }", "@ @", "% %", "~ ~"];
#[doc = "Common names for values that are still to be written, without separators."]
pub static PLACEHOLDER_ASKS: &[&str] = &["replaceme", "replacethis", "replacewith", "changeme", "changeit", "changethis", "fillme", "fillin", "editme", "todo", "fixme", "tbd", "placeholder", "tobedefined", "tobefilled", "tobereplaced", "tobedone"];
#[doc = "Words for a kind of value, which do not name a value."]
pub static PLACEHOLDER_WORDS: &[&str] = &["account", "ad", "credential", "credspec", "directory", "dns", "domain", "enter", "forest", "gmsa", "group", "guid", "here", "id", "identity", "insert", "machine", "managed", "my", "name", "netbios", "object", "plugin", "objectid", "secret", "service", "serviceaccount", "sid", "spec", "the", "uri", "user", "username", "value", "vault"];
#[doc = "The names of fields that hold a secret."]
pub static SECRET_FIELDS: &[&str] = &["accesskey", "accesstoken", "accountkey", "apikey", "clientsecret", "cred", "kennwort", "motdepasse", "pass", "passe", "passphrase", "passwd", "password", "passwort", "plaintextpassword", "pswd", "pw", "pwd", "secret", "sharedaccesskey", "sig", "token", "vaulttoken"];
#[doc = "A webhook is registered for a kind that it does not review."]
pub static UNEXPECTED_KIND: Rule = Rule {
    id: "unexpected-kind",
    severity: Severity::Error,
    title: "A webhook is registered for a kind that it does not review.",
    remedy: "Install the webhook configurations of the chart.",
};
#[doc = "A credential spec cannot work, and the webhook is configured to refuse it."]
pub static CREDENTIAL_SPEC_WRONG: Rule = Rule {
    id: "credential-spec-wrong",
    severity: Severity::Error,
    title: "A credential spec cannot work, and the webhook is configured to refuse it.",
    remedy: "Correct it: `kubectl gmsa credspec lint` lists what is wrong.",
};
#[doc = "A webhook is registered for an operation that it does not review."]
pub static UNEXPECTED_OPERATION: Rule = Rule {
    id: "unexpected-operation",
    severity: Severity::Error,
    title: "A webhook is registered for an operation that it does not review.",
    remedy: "Install the webhook configurations of the chart.",
};
#[doc = "An AdmissionReview has no object."]
pub static NO_OBJECT: Rule = Rule {
    id: "no-object",
    severity: Severity::Error,
    title: "An AdmissionReview has no object.",
    remedy: "Send reviews from an API server only.",
};
#[doc = "An AdmissionReview has no valid namespace."]
pub static INVALID_NAMESPACE: Rule = Rule {
    id: "invalid-namespace",
    severity: Severity::Error,
    title: "An AdmissionReview has no valid namespace.",
    remedy: "Use the name of a namespace: a DNS label.",
};
#[doc = "`gmsaCredentialSpecName` is not a lower-case DNS name, so no credential spec can have it."]
pub static INVALID_SPEC_NAME: Rule = Rule {
    id: "invalid-spec-name",
    severity: Severity::Error,
    title: "`gmsaCredentialSpecName` is not a lower-case DNS name, so no credential spec can have it.",
    remedy: "Correct the name.",
};
#[doc = "`serviceAccountName` is not a lower-case DNS name."]
pub static INVALID_SERVICE_ACCOUNT: Rule = Rule {
    id: "invalid-service-account",
    severity: Severity::Error,
    title: "`serviceAccountName` is not a lower-case DNS name.",
    remedy: "Correct the name.",
};
#[doc = "A Pod has more containers than are allowed."]
pub static TOO_MANY_SLOTS: Rule = Rule {
    id: "too-many-slots",
    severity: Severity::Error,
    title: "A Pod has more containers than are allowed.",
    remedy: "Split the Pod.",
};
#[doc = "A Pod names more credential specs than are allowed."]
pub static TOO_MANY_SPECS: Rule = Rule {
    id: "too-many-specs",
    severity: Severity::Error,
    title: "A Pod names more credential specs than are allowed.",
    remedy: "Split the Pod.",
};
#[doc = "The contents would make the Pod too large."]
pub static PATCH_TOO_LARGE: Rule = Rule {
    id: "patch-too-large",
    severity: Severity::Error,
    title: "The contents would make the Pod too large.",
    remedy: "Use fewer containers, or name the credential spec on the Pod instead of on each container.",
};
#[doc = "The credential spec does not exist."]
pub static SPEC_MISSING: Rule = Rule {
    id: "spec-missing",
    severity: Severity::Error,
    title: "The credential spec does not exist.",
    remedy: "`kubectl gmsa credspec new SPEC --account NAME --from-ad FILE | kubectl apply -f -`, or use the name of one that exists: `kubectl get gmsacredentialspecs`.",
};
#[doc = "The credential spec has no `credspec` object."]
pub static SPEC_UNUSABLE: Rule = Rule {
    id: "spec-unusable",
    severity: Severity::Error,
    title: "The credential spec has no `credspec` object.",
    remedy: "Make a new one: `kubectl gmsa credspec new SPEC --account NAME --from-ad FILE | kubectl apply -f -`.",
};
#[doc = "The credential spec could not be read."]
pub static SPEC_UNREADABLE: Rule = Rule {
    id: "spec-unreadable",
    severity: Severity::Error,
    title: "The credential spec could not be read.",
    remedy: "Try again; `kubectl gmsa doctor` checks the permissions of the webhook and its connection to the API server.",
};
#[doc = "`gmsaCredentialSpec` is set without `gmsaCredentialSpecName`, so it cannot be checked."]
pub static CONTENTS_WITHOUT_NAME: Rule = Rule {
    id: "contents-without-name",
    severity: Severity::Error,
    title: "`gmsaCredentialSpec` is set without `gmsaCredentialSpecName`, so it cannot be checked.",
    remedy: "Set the name instead of the contents.",
};
#[doc = "The service account of the Pod may not use the credential spec."]
pub static NOT_AUTHORIZED: Rule = Rule {
    id: "not-authorized",
    severity: Severity::Error,
    title: "The service account of the Pod may not use the credential spec.",
    remedy: "Grant it: `kubectl gmsa grant --credspec SPEC --serviceaccount NAMESPACE:SERVICEACCOUNT --apply`.",
};
#[doc = "The permission to use the credential spec could not be checked."]
pub static AUTHORIZATION_FAILED: Rule = Rule {
    id: "authorization-failed",
    severity: Severity::Error,
    title: "The permission to use the credential spec could not be checked.",
    remedy: "Try again; `kubectl gmsa doctor` checks the permissions of the webhook and its connection to the API server.",
};
#[doc = "`gmsaCredentialSpec` differs from the credential spec."]
pub static CONTENTS_DIFFER: Rule = Rule {
    id: "contents-differ",
    severity: Severity::Error,
    title: "`gmsaCredentialSpec` differs from the credential spec.",
    remedy: "Remove `gmsaCredentialSpec`: the webhook fills it in.",
};
#[doc = "A Pod names a credential spec and does not carry its contents."]
pub static NAME_WITHOUT_CONTENTS: Rule = Rule {
    id: "name-without-contents",
    severity: Severity::Error,
    title: "A Pod names a credential spec and does not carry its contents.",
    remedy: "Run the mutating webhook after every webhook that adds the name; on a Linux Pod, remove the name.",
};
#[doc = "An update changes the GMSA settings of an existing Pod."]
pub static MODIFIED: Rule = Rule {
    id: "modified",
    severity: Severity::Error,
    title: "An update changes the GMSA settings of an existing Pod.",
    remedy: "Delete the Pod and create it with the new settings.",
};
#[doc = "A Pod cannot have the tickets that it asks for."]
pub static TICKETS_IMPOSSIBLE: Rule = Rule {
    id: "tickets-impossible",
    severity: Severity::Error,
    title: "A Pod cannot have the tickets that it asks for.",
    remedy: "Correct what the message names: a Pod for Windows, a name or path that tickets need, a cluster older than Kubernetes 1.29.",
};
#[doc = "The webhook does not know the version of the cluster or the CA of the broker."]
pub static TICKETS_UNAVAILABLE: Rule = Rule {
    id: "tickets-unavailable",
    severity: Severity::Error,
    title: "The webhook does not know the version of the cluster or the CA of the broker.",
    remedy: "Correct what the message names, then try again.",
};
#[doc = "A Pod asks for tickets, and the webhook is installed without them, or is being rolled out with them."]
pub static TICKETS_NOT_ENABLED: Rule = Rule {
    id: "tickets-not-enabled",
    severity: Severity::Error,
    title: "A Pod asks for tickets, and the webhook is installed without them, or is being rolled out with them.",
    remedy: "Install the chart `gmsa-tickets`, and upgrade the chart of the webhook with `tickets.enabled=true`.",
};
#[doc = "A request to the broker of tickets cannot be read."]
pub static TICKET_REQUEST: Rule = Rule {
    id: "ticket-request",
    severity: Severity::Error,
    title: "A request to the broker of tickets cannot be read.",
    remedy: "Send `POST /v1/tickets` with `{\"credentialSpec\": \"NAME\"}`, as `gmsa-tickets agent` does.",
};
#[doc = "The token of the request is missing, or is not that of a Pod for this credential spec."]
pub static TICKET_TOKEN: Rule = Rule {
    id: "ticket-token",
    severity: Severity::Error,
    title: "The token of the request is missing, or is not that of a Pod for this credential spec.",
    remedy: "Mount a projected token with the audience `gmsa-tickets/SPEC`, for a keytab `gmsa-keytab/SPEC`, into the sidecar, and send it.",
};
#[doc = "The Pod of the token is gone, has ended, is another one, or has no token of this audience in its volumes."]
pub static TICKET_POD: Rule = Rule {
    id: "ticket-pod",
    severity: Severity::Error,
    title: "The Pod of the token is gone, has ended, is another one, or has no token of this audience in its volumes.",
    remedy: "Create the Pod with a projected token whose audience is `gmsa-tickets/SPEC`, for a keytab `gmsa-keytab/SPEC`: volumes of a Pod cannot change.",
};
#[doc = "The credential spec lists no services, or not in the right form, so there are no tickets of its account."]
pub static TICKET_SERVICES: Rule = Rule {
    id: "ticket-services",
    severity: Severity::Error,
    title: "The credential spec lists no services, or not in the right form, so there are no tickets of its account.",
    remedy: "List them: `kubectl annotate gmsacredentialspec SPEC --overwrite gmsa-webhook/services=HTTP/app.contoso.com`.",
};
#[doc = "The credential spec lists no names for a keytab, or not in the right form, so there is no keytab of its account."]
pub static KEYTAB_NAMES: Rule = Rule {
    id: "keytab-names",
    severity: Severity::Error,
    title: "The credential spec lists no names for a keytab, or not in the right form, so there is no keytab of its account.",
    remedy: "List the names under which clients ask for the service: `kubectl annotate gmsacredentialspec SPEC --overwrite gmsa-webhook/keytab=HTTP/app.contoso.com`.",
};
#[doc = "The broker is configured to give no keytabs of the domain."]
pub static KEYTAB_DOMAIN: Rule = Rule {
    id: "keytab-domain",
    severity: Severity::Error,
    title: "The broker is configured to give no keytabs of the domain.",
    remedy: "Where its accounts may leave the broker as keytabs, set `keytabs: true` for the domain in the configuration of the broker.",
};
#[doc = "The keys of the account do not open the tickets that the domain gives for a name in its keytab."]
pub static KEYTAB_KEYS: Rule = Rule {
    id: "keytab-keys",
    severity: Severity::Error,
    title: "The keys of the account do not open the tickets that the domain gives for a name in its keytab.",
    remedy: "For RC4 (23), `Set-ADServiceAccount NAME -KerberosEncryptionType AES128,AES256`. Otherwise give the name to this account alone (`setspn -X -F` lists duplicates), and leave its password to the domain. With `fKVNOEmuW2K` in `dSHeuristics` there are no keytabs.",
};
#[doc = "The broker is configured to give no tickets or keytabs of the account."]
pub static TICKET_ACCOUNT: Rule = Rule {
    id: "ticket-account",
    severity: Severity::Error,
    title: "The broker is configured to give no tickets or keytabs of the account.",
    remedy: "Add it to `accounts` of its domain in the configuration of the broker.",
};
#[doc = "The broker is not configured for the domain of the credential spec."]
pub static TICKET_DOMAIN: Rule = Rule {
    id: "ticket-domain",
    severity: Severity::Error,
    title: "The broker is not configured for the domain of the credential spec.",
    remedy: "Add the domain to the configuration of the broker.",
};
#[doc = "The broker gets no ticket for a service of another domain: a referral leads to a domain that is not listed, or the trust does not work."]
pub static TICKET_REFERRAL: Rule = Rule {
    id: "ticket-referral",
    severity: Severity::Error,
    title: "The broker gets no ticket for a service of another domain: a referral leads to a domain that is not listed, or the trust does not work.",
    remedy: "Add the other domain to `referrals` of the account's domain in the configuration of the broker. Otherwise look at the trust: `Get-ADTrust -Filter *`.",
};
#[doc = "A Pod asks for tickets or keytabs too often."]
pub static TICKET_RATE: Rule = Rule {
    id: "ticket-rate",
    severity: Severity::Error,
    title: "A Pod asks for tickets or keytabs too often.",
    remedy: "Ask again at `renewAfter`, as `gmsa-tickets agent` does.",
};
#[doc = "The broker answers as many requests as it has room for."]
pub static TICKET_BUSY: Rule = Rule {
    id: "ticket-busy",
    severity: Severity::Error,
    title: "The broker answers as many requests as it has room for.",
    remedy: "Try again. If it stays so, give the broker more memory or more replicas.",
};
#[doc = "The broker could not check the token or the Pod: the API server did not answer, or refused."]
pub static TICKET_CHECK: Rule = Rule {
    id: "ticket-check",
    severity: Severity::Error,
    title: "The broker could not check the token or the Pod: the API server did not answer, or refused.",
    remedy: "Try again. Install the roles of the chart, which let the broker create TokenReviews and read Pods.",
};
#[doc = "A domain controller answers the broker with what cannot be read, or cannot be trusted."]
pub static TICKET_ANSWER: Rule = Rule {
    id: "ticket-answer",
    severity: Severity::Error,
    title: "A domain controller answers the broker with what cannot be read, or cannot be trusted.",
    remedy: "Look at what is between the broker and the domain controller that the message names.",
};
#[doc = "The tickets are larger than an answer may be (128 KiB)."]
pub static TICKET_SIZE: Rule = Rule {
    id: "ticket-size",
    severity: Severity::Error,
    title: "The tickets are larger than an answer may be (128 KiB).",
    remedy: "List fewer services, or make the account a member of fewer groups.",
};
#[doc = "The parts of a sidecar for tickets that was written by hand do not fit together."]
pub static TICKET_SIDECAR: Rule = Rule {
    id: "ticket-sidecar",
    severity: Severity::Error,
    title: "The parts of a sidecar for tickets that was written by hand do not fit together.",
    remedy: "Correct what the message names, or have the webhook inject the sidecar: annotation `gmsa-webhook/tickets: SPEC`. See docs/linux-pods.md.",
};
#[doc = "The clocks of this machine and of the domain controller differ by more than the 5 minutes that Kerberos allows."]
pub static DIRECTORY_CLOCK: Rule = Rule {
    id: "directory-clock",
    severity: Severity::Warning,
    title: "The clocks of this machine and of the domain controller differ by more than the 5 minutes that Kerberos allows.",
    remedy: "Compare both with a time server. If the domain controller is wrong, run `w32tm /resync` on it.",
};
#[doc = "The account is not a group Managed Service Account."]
pub static ACCOUNT_CLASS: Rule = Rule {
    id: "account-class",
    severity: Severity::Error,
    title: "The account is not a group Managed Service Account.",
    remedy: "Make one with `New-ADServiceAccount`.",
};
#[doc = "The account and the credential spec name different accounts or domains."]
pub static ACCOUNT_DIFFERS: Rule = Rule {
    id: "account-differs",
    severity: Severity::Error,
    title: "The account and the credential spec name different accounts or domains.",
    remedy: "Correct the credential spec, or use the account that it names.",
};
#[doc = "A Pod that uses GMSA may be scheduled to a Linux node."]
pub static LINUX_NODE: Rule = Rule {
    id: "linux-node",
    severity: Severity::Warning,
    title: "A Pod that uses GMSA may be scheduled to a Linux node.",
    remedy: "Set `spec.os.name: windows` and the node selector `kubernetes.io/os: windows`.",
};
#[doc = "`PluginInput` is missing, is not a string, or is not what its plugin takes."]
pub static PLUGIN_INPUT: Rule = Rule {
    id: "plugin-input",
    severity: Severity::Error,
    title: "`PluginInput` is missing, is not a string, or is not what its plugin takes.",
    remedy: "Write one string, as the maker of the plugin documents it.",
};
#[doc = "`PluginGUID` is not a GUID in braces."]
pub static PLUGIN_GUID: Rule = Rule {
    id: "plugin-guid",
    severity: Severity::Error,
    title: "`PluginGUID` is not a GUID in braces.",
    remedy: "Take it from the maker of the plugin, and keep the braces.",
};
#[doc = "The account is disabled."]
pub static ACCOUNT_DISABLED: Rule = Rule {
    id: "account-disabled",
    severity: Severity::Error,
    title: "The account is disabled.",
    remedy: "Enable it: `Set-ADServiceAccount NAME -Enabled $true`.",
};
#[doc = "The account has expired, or expires within 30 days."]
pub static ACCOUNT_EXPIRED: Rule = Rule {
    id: "account-expired",
    severity: Severity::Error,
    title: "The account has expired, or expires within 30 days.",
    remedy: "Remove the date: `Clear-ADAccountExpiration -Identity 'NAME$'`.",
};
#[doc = "The domain does not know the account."]
pub static ACCOUNT_UNKNOWN: Rule = Rule {
    id: "account-unknown",
    severity: Severity::Error,
    title: "The domain does not know the account.",
    remedy: "`Get-ADServiceAccount NAME -Server DOMAIN` shows whether it is there: correct `MachineAccountName` in the credential spec, or create the account.",
};
#[doc = "The forest has no KDS root key that can be used, so no group Managed Service Account has a password."]
pub static KDS_ROOT_KEY: Rule = Rule {
    id: "kds-root-key",
    severity: Severity::Error,
    title: "The forest has no KDS root key that can be used, so no group Managed Service Account has a password.",
    remedy: "`Add-KdsRootKey -EffectiveImmediately`, once per forest, then wait 10 hours.",
};
#[doc = "The user may not retrieve the password of the account, or the domain makes none."]
pub static ACCOUNT_PASSWORD: Rule = Rule {
    id: "account-password",
    severity: Severity::Error,
    title: "The user may not retrieve the password of the account, or the domain makes none.",
    remedy: "Make the user a member of a group in `PrincipalsAllowedToRetrieveManagedPassword`.",
};
#[doc = "The SAM name of the account is longer than 15 characters."]
pub static ACCOUNT_NAME: Rule = Rule {
    id: "account-name",
    severity: Severity::Error,
    title: "The SAM name of the account is longer than 15 characters.",
    remedy: "Make an account with a shorter name.",
};
#[doc = "Several accounts have the same service principal name."]
pub static ACCOUNT_SPN_DUPLICATE: Rule = Rule {
    id: "account-spn-duplicate",
    severity: Severity::Error,
    title: "Several accounts have the same service principal name.",
    remedy: "Keep it only on the account that serves it: `setspn -X -F` lists duplicates, `setspn -D NAME ACCOUNT` removes one.",
};
#[doc = "The credential spec has a wrong or deprecated `apiVersion`, or a wrong `kind`."]
pub static API_VERSION: Rule = Rule {
    id: "api-version",
    severity: Severity::Warning,
    title: "The credential spec has a wrong or deprecated `apiVersion`, or a wrong `kind`.",
    remedy: "Write `apiVersion: windows.k8s.io/v1` and `kind: GMSACredentialSpec`.",
};
#[doc = "A Pod that uses GMSA sets a field that Windows does not have."]
pub static LINUX_ONLY: Rule = Rule {
    id: "linux-only",
    severity: Severity::Warning,
    title: "A Pod that uses GMSA sets a field that Windows does not have.",
    remedy: "Remove the field. docs/windows-pods.md lists these fields, and what happens instead.",
};
#[doc = "A hostProcess container acts as the account of the host, not as the gMSA."]
pub static HOST_PROCESS: Rule = Rule {
    id: "host-process",
    severity: Severity::Warning,
    title: "A hostProcess container acts as the account of the host, not as the gMSA.",
    remedy: "Remove `hostProcess`, or the credential spec.",
};
#[doc = "The contents are longer than a Pod may carry (64 KiB)."]
pub static SIZE: Rule = Rule {
    id: "size",
    severity: Severity::Error,
    title: "The contents are longer than a Pod may carry (64 KiB).",
    remedy: "List fewer accounts, or use a shorter `PluginInput`.",
};
#[doc = "The API server would refuse the Pod, or the Pod template."]
pub static NOT_A_POD: Rule = Rule {
    id: "not-a-pod",
    severity: Severity::Error,
    title: "The API server would refuse the Pod, or the Pod template.",
    remedy: "Correct the field that the message names.",
};
#[doc = "Only SYSTEM and NETWORK SERVICE act as the gMSA on the network."]
pub static RUN_AS_USER: Rule = Rule {
    id: "run-as-user",
    severity: Severity::Warning,
    title: "Only SYSTEM and NETWORK SERVICE act as the gMSA on the network.",
    remedy: "Set `runAsUserName: NT AUTHORITY\\NETWORK SERVICE`, or remove it.",
};
#[doc = "A webhook configuration has no usable `caBundle`."]
pub static CA_BUNDLE: Rule = Rule {
    id: "ca-bundle",
    severity: Severity::Error,
    title: "A webhook configuration has no usable `caBundle`.",
    remedy: "The CA injector of cert-manager, or the webhook itself, must write it. See docs/certificates.md.",
};
#[doc = "The API server, or a client with the given CA, does not accept the serving certificate."]
pub static CERTIFICATE_NOT_TRUSTED: Rule = Rule {
    id: "certificate-not-trusted",
    severity: Severity::Error,
    title: "The API server, or a client with the given CA, does not accept the serving certificate.",
    remedy: "Put the CA that signed it into every `caBundle`, and issue it for the name by which the API server calls.",
};
#[doc = "A certificate has expired, or expires soon."]
pub static CERTIFICATE_EXPIRY: Rule = Rule {
    id: "certificate-expiry",
    severity: Severity::Error,
    title: "A certificate has expired, or expires soon.",
    remedy: "Renew it. See docs/certificates.md.",
};
#[doc = "The serving certificate cannot be read, is for no host, or is not valid yet."]
pub static CERTIFICATE_UNUSABLE: Rule = Rule {
    id: "certificate-unusable",
    severity: Severity::Error,
    title: "The serving certificate cannot be read, is for no host, or is not valid yet.",
    remedy: "Issue another one: X.509 in PEM, with the names of the Service as subject alternative names. See docs/certificates.md.",
};
#[doc = "The private key cannot be used, or is not the key of the serving certificate."]
pub static PRIVATE_KEY: Rule = Rule {
    id: "private-key",
    severity: Severity::Error,
    title: "The private key cannot be used, or is not the key of the serving certificate.",
    remedy: "Use the key that was made with the certificate: in PEM, without a password.",
};
#[doc = "The API server would refuse a credential spec, role or binding, so it has no effect."]
pub static REFUSED_OBJECT: Rule = Rule {
    id: "refused-object",
    severity: Severity::Error,
    title: "The API server would refuse a credential spec, role or binding, so it has no effect.",
    remedy: "Correct the field that the message names.",
};
#[doc = "A file, or a document in it, cannot be read."]
pub static UNREADABLE: Rule = Rule {
    id: "unreadable",
    severity: Severity::Error,
    title: "A file, or a document in it, cannot be read.",
    remedy: "Correct the syntax on the line that the message names. A template must be rendered first.",
};
#[doc = "An object in a file has the same key twice."]
pub static DUPLICATE_KEY: Rule = Rule {
    id: "duplicate-key",
    severity: Severity::Warning,
    title: "An object in a file has the same key twice.",
    remedy: "Remove one of them. kubectl and the API server take the last.",
};
#[doc = "A document has neither `apiVersion` nor `kind`, so it is skipped."]
pub static NOT_KUBERNETES: Rule = Rule {
    id: "not-kubernetes",
    severity: Severity::Note,
    title: "A document has neither `apiVersion` nor `kind`, so it is skipped.",
    remedy: "If it is meant for Kubernetes, add both. Otherwise ignore it.",
};
#[doc = "The credential spec is not an object."]
pub static OBJECT: Rule = Rule {
    id: "object",
    severity: Severity::Error,
    title: "The credential spec is not an object.",
    remedy: "Make a new one with `kubectl gmsa credspec new`.",
};
#[doc = "The credential spec has no name, or one that Kubernetes refuses."]
pub static NAME: Rule = Rule {
    id: "name",
    severity: Severity::Error,
    title: "The credential spec has no name, or one that Kubernetes refuses.",
    remedy: "Use a lower-case DNS name.",
};
#[doc = "The credential spec has no `credspec` object."]
pub static CREDSPEC: Rule = Rule {
    id: "credspec",
    severity: Severity::Error,
    title: "The credential spec has no `credspec` object.",
    remedy: "Make a new one with `kubectl gmsa credspec new`.",
};
#[doc = "A field is not one of a credential spec; the API server drops it."]
pub static UNKNOWN_KEY: Rule = Rule {
    id: "unknown-key",
    severity: Severity::Warning,
    title: "A field is not one of a credential spec; the API server drops it.",
    remedy: "Correct its spelling or remove it.",
};
#[doc = "`CmsPlugins` does not enable Active Directory."]
pub static CMS_PLUGINS: Rule = Rule {
    id: "cms-plugins",
    severity: Severity::Error,
    title: "`CmsPlugins` does not enable Active Directory.",
    remedy: "Write `CmsPlugins: [ActiveDirectory]`.",
};
#[doc = "`DomainJoinConfig` or `ActiveDirectoryConfig` is missing."]
pub static SECTION: Rule = Rule {
    id: "section",
    severity: Severity::Error,
    title: "`DomainJoinConfig` or `ActiveDirectoryConfig` is missing.",
    remedy: "Make a new credential spec with `kubectl gmsa credspec new`.",
};
#[doc = "`Sid` is not the SID of the domain."]
pub static SID: Rule = Rule {
    id: "sid",
    severity: Severity::Error,
    title: "`Sid` is not the SID of the domain.",
    remedy: "Take it from `(Get-ADDomain).DomainSID.Value`.",
};
#[doc = "`Guid` is not the GUID of the domain."]
pub static GUID: Rule = Rule {
    id: "guid",
    severity: Severity::Error,
    title: "`Guid` is not the GUID of the domain.",
    remedy: "Take it from `(Get-ADDomain).ObjectGUID`, without braces.",
};
#[doc = "An account is not written as its SAM name alone."]
pub static ACCOUNT: Rule = Rule {
    id: "account",
    severity: Severity::Error,
    title: "An account is not written as its SAM name alone.",
    remedy: "Write the SAM name without `$` and without the domain.",
};
#[doc = "`DnsName` is not the DNS name of the domain."]
pub static DNS_NAME: Rule = Rule {
    id: "dns-name",
    severity: Severity::Error,
    title: "`DnsName` is not the DNS name of the domain.",
    remedy: "Take it from `(Get-ADDomain).DNSRoot`.",
};
#[doc = "`DnsTreeName` is not the DNS name of the root of the forest."]
pub static DNS_TREE_NAME: Rule = Rule {
    id: "dns-tree-name",
    severity: Severity::Error,
    title: "`DnsTreeName` is not the DNS name of the root of the forest.",
    remedy: "Take it from `(Get-ADDomain).Forest`.",
};
#[doc = "`NetBiosName` is not the NetBIOS name of the domain."]
pub static NETBIOS_NAME: Rule = Rule {
    id: "netbios-name",
    severity: Severity::Error,
    title: "`NetBiosName` is not the NetBIOS name of the domain.",
    remedy: "Take it from `(Get-ADDomain).NetBIOSName`.",
};
#[doc = "`GroupManagedServiceAccounts` does not list the account under both names of the domain."]
pub static ACCOUNTS: Rule = Rule {
    id: "accounts",
    severity: Severity::Error,
    title: "`GroupManagedServiceAccounts` does not list the account under both names of the domain.",
    remedy: "List it twice: with the DNS name and with the NetBIOS name of the domain as `Scope`.",
};
#[doc = "`HostAccountConfig` is not an object."]
pub static PLUGIN: Rule = Rule {
    id: "plugin",
    severity: Severity::Error,
    title: "`HostAccountConfig` is not an object.",
    remedy: "Give it `PluginGUID`, `PluginInput` and `PortableCcgVersion`, or remove it.",
};
#[doc = "`PortableCcgVersion` is not the string `\"1\"`."]
pub static PLUGIN_VERSION: Rule = Rule {
    id: "plugin-version",
    severity: Severity::Error,
    title: "`PortableCcgVersion` is not the string `\"1\"`.",
    remedy: "Write `PortableCcgVersion: \"1\"`.",
};
#[doc = "`PluginInput` seems to hold a password, and everybody who may read a credential spec or a Pod can read it."]
pub static PLUGIN_PASSWORD: Rule = Rule {
    id: "plugin-password",
    severity: Severity::Error,
    title: "`PluginInput` seems to hold a password, and everybody who may read a credential spec or a Pod can read it.",
    remedy: "Keep the password in the vault of the plugin, name the vault, and change the password.",
};
#[doc = "A value is still a placeholder, such as `<GMSA_NAME>` or `${GMSA}`."]
pub static PLACEHOLDER: Rule = Rule {
    id: "placeholder",
    severity: Severity::Error,
    title: "A value is still a placeholder, such as `<GMSA_NAME>` or `${GMSA}`.",
    remedy: "Write the value, or have the tool write it that fills placeholders in, and check what comes out.",
};
#[doc = "The printed account lacks properties that the check needs."]
pub static ACCOUNT_INCOMPLETE: Rule = Rule {
    id: "account-incomplete",
    severity: Severity::Warning,
    title: "The printed account lacks properties that the check needs.",
    remedy: "Print it with `Get-ADServiceAccount NAME -Properties * | ConvertTo-Json`.",
};
#[doc = "The account is a deleted object, or a conflict of replication."]
pub static ACCOUNT_DELETED: Rule = Rule {
    id: "account-deleted",
    severity: Severity::Error,
    title: "The account is a deleted object, or a conflict of replication.",
    remedy: "Use the account that is there, or restore this one: `Get-ADObject -IncludeDeletedObjects`, `Restore-ADObject`.",
};
#[doc = "The account gets no ticket: a smart card is required, or its logon hours allow none."]
pub static ACCOUNT_LOGON: Rule = Rule {
    id: "account-logon",
    severity: Severity::Error,
    title: "The account gets no ticket: a smart card is required, or its logon hours allow none.",
    remedy: "Clear the flag or the hours; the output shows the command.",
};
#[doc = "A delegated Managed Service Account (dMSA) takes the place of the account."]
pub static ACCOUNT_SUPERSEDED: Rule = Rule {
    id: "account-superseded",
    severity: Severity::Warning,
    title: "A delegated Managed Service Account (dMSA) takes the place of the account.",
    remedy: "Undo the migration, or use another group Managed Service Account: Windows containers cannot use a dMSA.",
};
#[doc = "The account is a member of Protected Users."]
pub static ACCOUNT_PROTECTED: Rule = Rule {
    id: "account-protected",
    severity: Severity::Warning,
    title: "The account is a member of Protected Users.",
    remedy: "Remove it from the group: `Remove-ADGroupMember 'Protected Users' -Members 'NAME$'`.",
};
#[doc = "A flag, a group or a delegation makes the account easier to abuse, or worth more to an attacker, such as unconstrained delegation or Domain Admins."]
pub static ACCOUNT_WEAKENED: Rule = Rule {
    id: "account-weakened",
    severity: Severity::Warning,
    title: "A flag, a group or a delegation makes the account easier to abuse, or worth more to an attacker, such as unconstrained delegation or Domain Admins.",
    remedy: "Remove it; the output shows the command. Where services must be called as the user, use constrained delegation.",
};
#[doc = "A user or a computer has the name of the account."]
pub static ACCOUNT_USER_NAME: Rule = Rule {
    id: "account-user-name",
    severity: Severity::Warning,
    title: "A user or a computer has the name of the account.",
    remedy: "Rename one of them: a name without `$` means the user first, so that a logon as the account may become one as the user.",
};
#[doc = "No host may retrieve the password of the account."]
pub static ACCOUNT_HOSTS: Rule = Rule {
    id: "account-hosts",
    severity: Severity::Error,
    title: "No host may retrieve the password of the account.",
    remedy: "Set `PrincipalsAllowedToRetrieveManagedPassword` to a group that holds the nodes, or the user that the plugin or the broker logs on as.",
};
#[doc = "The account lacks the service principal name of a service that it runs."]
pub static ACCOUNT_SPN: Rule = Rule {
    id: "account-spn",
    severity: Severity::Warning,
    title: "The account lacks the service principal name of a service that it runs.",
    remedy: "Add it: `Set-ADServiceAccount NAME -ServicePrincipalNames @{Add='host/HOST'}`. An account that only calls other services needs none.",
};
#[doc = "The account supports no AES encryption of Kerberos tickets, or does not say what it supports."]
pub static ACCOUNT_ENCRYPTION: Rule = Rule {
    id: "account-encryption",
    severity: Severity::Warning,
    title: "The account supports no AES encryption of Kerberos tickets, or does not say what it supports.",
    remedy: "Set `-KerberosEncryptionType AES128,AES256`. Domain controllers are being moved off RC4 (Microsoft KB5073381).",
};
#[doc = "`userAccountControl` lacks the flag `WORKSTATION_TRUST_ACCOUNT`."]
pub static ACCOUNT_TRUST: Rule = Rule {
    id: "account-trust",
    severity: Severity::Warning,
    title: "`userAccountControl` lacks the flag `WORKSTATION_TRUST_ACCOUNT`.",
    remedy: "Set the flag; the output shows the command.",
};
#[doc = "A group that may retrieve the password of the account has no members, or none that can log on over the network."]
pub static ACCOUNT_HOSTS_EMPTY: Rule = Rule {
    id: "account-hosts-empty",
    severity: Severity::Warning,
    title: "A group that may retrieve the password of the account has no members, or none that can log on over the network.",
    remedy: "Add the nodes, or the user that the plugin or the broker logs on as: `Add-ADGroupMember`. A node learns of its groups when it restarts.",
};
#[doc = "A distribution group is listed to retrieve the password, but it gives no access."]
pub static ACCOUNT_HOSTS_DISTRIBUTION: Rule = Rule {
    id: "account-hosts-distribution",
    severity: Severity::Warning,
    title: "A distribution group is listed to retrieve the password, but it gives no access.",
    remedy: "Make it a security group: `Set-ADGroup GROUP -GroupCategory Security`. A node learns of its groups when it restarts.",
};
#[doc = "An entry denies the password to a principal that a later entry allows."]
pub static ACCOUNT_HOSTS_DENIED: Rule = Rule {
    id: "account-hosts-denied",
    severity: Severity::Warning,
    title: "An entry denies the password to a principal that a later entry allows.",
    remedy: "Write the list again without denials: `Set-ADServiceAccount NAME -PrincipalsAllowedToRetrieveManagedPassword GROUP`.",
};
#[doc = "A principal that may retrieve the password of the account no longer exists."]
pub static ACCOUNT_HOSTS_ORPHANED: Rule = Rule {
    id: "account-hosts-orphaned",
    severity: Severity::Warning,
    title: "A principal that may retrieve the password of the account no longer exists.",
    remedy: "Set `PrincipalsAllowedToRetrieveManagedPassword` again, to a group that exists.",
};
#[doc = "An entry in the list of principals that may retrieve the password cannot be interpreted."]
pub static ACCOUNT_HOSTS_UNKNOWN: Rule = Rule {
    id: "account-hosts-unknown",
    severity: Severity::Warning,
    title: "An entry in the list of principals that may retrieve the password cannot be interpreted.",
    remedy: "Inspect it: `(Get-ADServiceAccount NAME -Properties msDS-GroupMSAMembership).'msDS-GroupMSAMembership'.Access`. `Set-ADServiceAccount NAME -PrincipalsAllowedToRetrieveManagedPassword GROUP` writes the list again, without it.",
};
#[doc = "Too many principals may retrieve the password of the account, such as all users or all computers of the domain."]
pub static ACCOUNT_HOSTS_WIDE: Rule = Rule {
    id: "account-hosts-wide",
    severity: Severity::Warning,
    title: "Too many principals may retrieve the password of the account, such as all users or all computers of the domain.",
    remedy: "Set `PrincipalsAllowedToRetrieveManagedPassword` to a group that holds the nodes, or the user that the plugin or the broker logs on as, and no other.",
};
#[doc = "The domain controller is older than Windows Server 2012, the first that makes passwords of group Managed Service Accounts."]
pub static DIRECTORY_LEVEL: Rule = Rule {
    id: "directory-level",
    severity: Severity::Error,
    title: "The domain controller is older than Windows Server 2012, the first that makes passwords of group Managed Service Accounts.",
    remedy: "Ask a newer one, and have one in each domain.",
};
#[doc = "Every user of a domain may create computer objects (`ms-DS-MachineAccountQuota`), so a Linux Pod with a ticket for the directory can too."]
pub static DIRECTORY_QUOTA: Rule = Rule {
    id: "directory-quota",
    severity: Severity::Warning,
    title: "Every user of a domain may create computer objects (`ms-DS-MachineAccountQuota`), so a Linux Pod with a ticket for the directory can too.",
    remedy: "Let administrators alone create them: `Set-ADDomain DOMAIN -Replace @{'ms-DS-MachineAccountQuota'=0}`.",
};
#[doc = "A Pod selects nodes of an operating system that no node has."]
pub static OS_SELECTOR: Rule = Rule {
    id: "os-selector",
    severity: Severity::Warning,
    title: "A Pod selects nodes of an operating system that no node has.",
    remedy: "Write the label and its value in lower case: `kubernetes.io/os: windows`.",
};
#[doc = "A container on Nano Server runs as `ContainerUser`, which cannot use Kerberos."]
pub static NANO_SERVER: Rule = Rule {
    id: "nano-server",
    severity: Severity::Warning,
    title: "A container on Nano Server runs as `ContainerUser`, which cannot use Kerberos.",
    remedy: "Set `runAsUserName: NT AUTHORITY\\NETWORK SERVICE`, or use an image on Server Core.",
};
#[doc = "Several Pods with one account have the same host name, or the same first 15 characters of it."]
pub static SHARED_HOSTNAME: Rule = Rule {
    id: "shared-hostname",
    severity: Severity::Warning,
    title: "Several Pods with one account have the same host name, or the same first 15 characters of it.",
    remedy: "Remove `hostname`, and have the webhook give random host names: by `randomHostname` in the chart, or by the annotation `gmsa-webhook/random-hostname: \"true\"` of the Pod template. A StatefulSet sets the host names of its Pods itself: give it a name of at most 12 characters.",
};
#[doc = "A container sets `KRB5CCNAME` or `KRB5_KTNAME` itself, so it does not use the tickets or the keytab of its Pod; or its `envFrom` may, without effect."]
pub static TICKETS_OTHER_CACHE: Rule = Rule {
    id: "tickets-other-cache",
    severity: Severity::Warning,
    title: "A container sets `KRB5CCNAME` or `KRB5_KTNAME` itself, so it does not use the tickets or the keytab of its Pod; or its `envFrom` may, without effect.",
    remedy: "Remove it, or set `KRB5CCNAME` to `FILE:/var/run/gmsa/krb5cc`, `KRB5_KTNAME` to `FILE:/var/run/gmsa/keytab`.",
};
#[doc = "No webhook configuration sends Pods to the webhook."]
pub static WEBHOOK_MISSING: Rule = Rule {
    id: "webhook-missing",
    severity: Severity::Error,
    title: "No webhook configuration sends Pods to the webhook.",
    remedy: "Install the chart: `helm install gmsa-webhook charts/gmsa-webhook -n gmsa-webhook --create-namespace`.",
};
#[doc = "A part of the cluster could not be checked."]
pub static NOT_CHECKED: Rule = Rule {
    id: "not-checked",
    severity: Severity::Warning,
    title: "A part of the cluster could not be checked.",
    remedy: "Run the command as a user with read access (`--as`, `--context`).",
};
#[doc = "The credential spec lists a service by a name that clients do not ask for, or that no account has."]
pub static TICKET_SERVICE: Rule = Rule {
    id: "ticket-service",
    severity: Severity::Warning,
    title: "The credential spec lists a service by a name that clients do not ask for, or that no account has.",
    remedy: "List it as the client asks for it: class `HTTP` in capitals, the full DNS name of the host, and a port for SQL Server alone.",
};
#[doc = "The credential spec lists a service of a domain controller."]
pub static TICKET_CONTROLLER: Rule = Rule {
    id: "ticket-controller",
    severity: Severity::Warning,
    title: "The credential spec lists a service of a domain controller.",
    remedy: "Remove it from the list. Where an application must read the directory, give it an account that no other application uses.",
};
#[doc = "The credential spec gives Pods a ticket-granting ticket (`*`), also for services of the same account as any user."]
pub static TICKET_ANY: Rule = Rule {
    id: "ticket-any",
    severity: Severity::Warning,
    title: "The credential spec gives Pods a ticket-granting ticket (`*`), also for services of the same account as any user.",
    remedy: "List services instead: `kubectl annotate gmsacredentialspec SPEC --overwrite gmsa-webhook/services=HTTP/app.contoso.com`. Or use an account without service principal names.",
};
