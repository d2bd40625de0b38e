//! Texts without a fault: steps that succeeded, and context around a cause.

use super::Words::{self, Event, Message};

/// Parts of a message whose words are ignored.
pub(super) static SURROUNDINGS: &[&str] = &[
    // The search list of a pod appends the domain of the cluster to each name.
    "srv in _ldap._tcp*.cluster.local. * nxdomain",
    "srv in _kerberos._tcp*.cluster.local. * nxdomain",
    "any in _ldap._tcp*.cluster.local. * nxdomain",
    // By `KRB5_TRACE`: the library looks for settings in its cache, and few caches have them.
    "krb5_ccache_conf_data*not found",
];

/// Texts of a successful step, or of every logon.
pub(super) static NO_FAULTS: &[(&[Words], &str)] = &[
    (
        &[Message("credential guard instantiated the plugin"), Event("containers-ccg", &[1])],
        "The plugin is registered on the node and was started.",
    ),
    (
        &[Message("\"tickets written\""), Message("info tickets written"), Message("tickets written services=")],
        "The agent has written the tickets of the Pod. It proves no logon: `klist` in another container shows them.",
    ),
    (
        &[Message("the broker answers, and refuses a request without a token")],
        "The agent reaches the broker and trusts its certificate. It proves no permission.",
    ),
    (
        &[Message("fetched gmsa credentials for"), Event("containers-ccg", &[2])],
        "The node has the password of the account.",
    ),
    (
        &[Message("is refetching the credentials"), Event("containers-ccg", &[7])],
        "The password of the account has changed, and the node retrieves the new one.",
    ),
    (
        &[Message("nt authority\\network service"), Message("nt authority\\system"), Message("iis apppool\\")],
        "On the network, such a process acts as the gMSA: `klist` and `nltest /sc_verify:DOMAIN` show it. The name alone proves no logon.",
    ),
    (
        &[Message("tls handshake error from *: eof")],
        "A client connected and sent nothing, as TCP health checks of load balancers do.",
    ),
    (
        &[Message("trust verification status = 0 0x0 nerr_success")],
        "The secure channel works: the domain trusts the container. It proves no right on a service.",
    ),
    (
        &[Message("connection status = 0 0x0 nerr_success"), Message("connection status status = 0 0x0 nerr_success")],
        "The container has a secure channel to its domain. `nltest /sc_verify:DOMAIN` asks whether the domain still trusts it.",
    ),
    (
        &[Message(" (1) the command completed successfully")],
        "The container has a credential spec, and Netlogon knows its domain. It proves no logon: `nltest /sc_verify:DOMAIN` does.",
    ),
    (
        &[Message("dom guid: *dom name: "), Message("our site name: "), Message("get list of dcs in domain *[pdc]")],
        "DNS finds a domain controller, and it answers. It proves no logon: `nltest /sc_verify:DOMAIN` does.",
    ),
    (
        &[
            Message("udp * noerror qr,tc"),
            Message("udp * noerror qr,aa,tc"),
            Message("truncated, retrying in tcp mode"),
        ],
        "The answer is too long for UDP and was cut off (`tc`), so the client repeats its query over TCP: TCP 53 must be open on the whole way to the DNS servers of the domain.",
    ),
    (
        &[Message("in _ldap._tcp*.cluster.local. * nxdomain"), Message("in _kerberos._tcp*.cluster.local. * nxdomain")],
        "The search list of the Pod appends the domain of the cluster to the name, and nothing has that name. The query for the name without it counts.",
    ),
    (
        &[
            Message("svr hostname = "),
            Message("srv service location: "),
            Message("in srv *389"),
            Message("has srv record"),
            Message("nametarget *priority"),
            Message("in _ldap._tcp*noerror"),
            Message("in _kerberos._tcp*noerror"),
            Message("_msdcs*noerror"),
        ],
        "DNS answers with domain controllers. It does not prove that they are reached: `nltest /dsgetdc:DOMAIN` does.",
    ),
    (
        &[Message("server: *address: *name: *address")],
        "DNS answers with addresses of the name. Whether it knows the domain controllers, `nslookup -type=SRV _ldap._tcp.dc._msdcs.DOMAIN` shows.",
    ),
    (
        &[Message("tcptestsucceeded : true")],
        "The port is reached over TCP. UDP, and what answers there, are not tested by it.",
    ),
    (
        &[Message("> client: *server: "), Message("default principal: *krbtgt/")],
        "The process has a Kerberos ticket, so the domain took its logon. The client is its identity: the account of the credential spec with `$` in a Pod; the name \
         of the node says that the command ran on the node, or in a hostProcess container.",
    ),
    (
        &[Message("kerbticket encryption type: rsadsi rc4-hmac"), Message("ticket encryption type: 0x17")],
        "A ticket is encrypted by RC4, which updated domain controllers refuse: `Set-ADServiceAccount NAME -KerberosEncryptionType AES128,AES256`.",
    ),
    (
        &[Message("test-adserviceaccount *true")],
        "This machine can retrieve the password of the account. It says nothing about other nodes.",
    ),
    (
        &[Message("last successful sync time: "), Message("sending resync command*completed successfully")],
        "The clock follows the source that `w32tm /query /status` names: it must agree with the domain controllers within 5 minutes.",
    ),
    (&[Message("test-computersecurechannel*true")], "The machine has a secure channel to its domain."),
    (
        &[
            Message("received the request to fetch the credentials from azure keyvault"),
            Event("aksgmsaplugin", &[1012]),
        ],
        "The plugin was started, and was asked for the user. The events after this one say how it went on.",
    ),
    (
        &[Message("access token has been retrieved for the provided managed identi"), Event("aksgmsaplugin", &[1017])],
        "The plugin has a token of the managed identity, and asks the Key Vault next.",
    ),
    (
        &[
            Message("completed processing the request to fetch the credentials from the azure keyvault"),
            Event("aksgmsaplugin", &[1011]),
        ],
        "The plugin has ended; status 0 means that it gave the node the user of the secret.",
    ),
    (
        &[Message("preparing to make request: using secret"), Message("got response with content of")],
        "The plugin was started, and asked its account provider for the Secret.",
    ),
    (
        &[Message("no files matching import glob pattern")],
        "CoreDNS imports no file there, as where nobody wrote zones of their own. On AKS, a key of `coredns-custom` must end with `.server` or `.override`.",
    ),
    (
        &[Message("[info] reloading complete"), Message("plugin/reload: running configuration")],
        "CoreDNS has read its configuration.",
    ),
    (
        &[Message("no_client_site: "), Event("netlogon", &[5807])],
        "The address of a client belongs to no site of the domain. It works, and may take a distant domain controller.",
    ),
    (
        &[Message("group key distribution service created a master root key"), Event("kdssvc", &[4004])],
        "The forest has a root key. Passwords can be made ten hours later.",
    ),
    (
        &[Message("a ticket to krbtgt has been retrieved successfully")],
        "The container logs on to the domain as the account.",
    ),
    (
        &[
            Message("successfully fetched the password of a group managed"),
            Message("kennwort eines gruppenverwalteten dienstkontos abgerufen"),
            Event("directoryservice", &[2946]),
            Event("activedirectory_domainservice", &[2946]),
        ],
        "A domain controller sent a client the password of the account.",
    ),
    (
        &[Message("kdc_err_preauth_required"), Message("additional pre-authentication required")],
        "The first answer of every Kerberos logon: the client repeats its request with a proof of its password.",
    ),
    (
        &[Message("ip addresses don't map to any of the existing sites")],
        "The addresses of some clients belong to no site of the domain. It works, and they may take a distant domain controller.",
    ),
    (
        &[Message("current logged-on user is not a domain user")],
        "A local user of the container has no such name. SYSTEM and NETWORK SERVICE act as the gMSA on the network all the same: `klist` shows it.",
    ),
    (
        &[Message("krb5_ccache_conf_data")],
        "The Kerberos library looks for a setting in its cache, which few caches have. It goes on without.",
    ),
    (&[Message("krb_err_response_too_big")], "The client repeats its request over TCP: let TCP 88 through."),
];
