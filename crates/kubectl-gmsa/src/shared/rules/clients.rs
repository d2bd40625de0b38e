//! Clients and servers that use the identity: Kerberos libraries, SQL Server, HTTP, shares.

use gmsa_core::diagnostic::Severity;

#[allow(clippy::wildcard_imports, reason = "a table")]
use super::code::*;
use super::{
    Family, Rule, RuleEntry,
    Words::{Codes, Event, General, Message},
    family,
};

family! { "Clients of services" {
    KDC_UNREACHABLE: "kdc-unreachable", Error, "A Kerberos client finds no domain controller of the realm, or reaches none.",
        "Ask DNS for `_kerberos._tcp.DOMAIN` (SRV), and let TCP and UDP 88 through. Without these records, `[realms]` of krb5.conf names the domain controllers.",
        words: [
            Message("cannot contact any kdc"),
            Message("cannot find kdc"),
            Message("cannot locate kdc"),
            Message("cannot resolve kdc"),
            Message("cannot resolve network address for kdc"),
            Message("cannot resolve servers for kdc"),
            Message("cannot get kdc for realm"),
            Message("unable to locate kdc"),
            Message("no kdc server found"),
            Message("kdc_err_svc_unavailable"),
            Message("error communicating with kdc"),
            Message("kerberos*receive timed out"),
            Message("icmp port unreachable"),
            Message("krb5_realm_unknown"),
            Message("krb5_realm_cant_resolve"),
            Message("krb5_kdc_unreach"),
            Message("kinit*unable to reach any kdc in realm"),
        ];
    KERBEROS_CONFIGURATION: "kerberos-configuration", Error, "The configuration of a Kerberos client does not lead to the domain.",
        "Write the realm in upper case in krb5.conf: `default_realm = CONTOSO.COM`, and `.contoso.com = CONTOSO.COM` in `[domain_realm]`.",
        words: [
            Message("cannot locate default realm"),
            Message("configuration file does not specify default realm"),
            Message("improper format of * configuration file"),
            Message("cannot determine realm for host"),
            Message("kdc reply did not match expectations"),
            Message("realm not local to kdc"),
            Message("krb5_kdcrep_modified"),
            Message("krb5_config_"),
            Message("kdc_err_wrong_realm"),
            Message("can't open/find * configuration file"),
        ];
    NO_TICKET: "no-ticket", Error, "A client has no Kerberos ticket of a user.",
        "In a container on Windows run the process as NETWORK SERVICE, and see `klist`. On Linux run `kinit`, and let the process read that cache (KRB5CCNAME).",
        words: [
            Message("no credentials cache found"),
            Message("credentials cache file * not found"),
            Message("no credentials cache file found"),
            Message("no kerberos credentials available"),
            Message("failed to find any kerberos "),
            Message("matching credential not found"),
            Message("no credentials were supplied"),
            Message("sspi provider: no kerberos credentials"),
            Message("unable to obtain principal name for authentication"),
            Message("cannot authenticate using kerberos. ensure kerberos has been initialized"),
            Message("krb_ap_err_no_tgt"),
            Message("krb5_cc_notfound"),
            Message("krb5_fcc_nofile"),
            Message("cannot find mechanisms to negotiate"),
            Message("ntlm authentication is not possible with default credentials"),
            General("local error (-2)"),
            General("no valid credentials provided"),
            General("cached tickets: (0)"),
        ];
    TICKET_EXPIRED: "ticket-expired", Error, "A Kerberos ticket has expired.",
        "Get a new one: `klist purge` on Windows, `kinit` elsewhere. A process that runs long renews it itself, or `kinit -R` does. Compare the clocks too.",
        words: [Message("krb_ap_err_tkt_expired"), Message("ticket expired"), Message("ticket has expired"), Codes(&[SEC_E_CONTEXT_EXPIRED])];
    KEYTAB: "keytab", Error, "The keytab of a service lacks the key with which the ticket is encrypted.",
        "Compare `klist -kte` with `msDS-KeyVersionNumber` and the service principal names of the account, and make the keytab again. The keys of a gMSA change with its password, every 30 days.",
        words: [
            Message("no key table entry found"),
            Message("key table entry not found"),
            Message("no suitable keys for"),
            Message("keytab contains no suitable keys"),
            Message("cannot find key of appropriate type to decrypt"),
            Message("cannot find key for type/kvno to decrypt"),
            Message("specified version of key is not available"),
            Message("krb_ap_err_badkeyver"),
            Message("krb_ap_err_nokey"),
            Message("key version*is not available"),
            Message("not found in keytab"),
            Message("krb5_kt_notfound"),
            Message("unable to obtain password from user"),
            Message("keytab file * does not exist"),
            Message("keytab * is nonexistent or empty"),
        ];
    DELEGATION: "delegation", Error, "The account may not act for its users at another service.",
        "Allow it: `Set-ADServiceAccount NAME -TrustedForDelegation`, or better constrained delegation (`msDS-AllowedToDelegateTo`, `PrincipalsAllowedToDelegateToAccount`). Users who are sensitive or in Protected Users cannot be delegated.",
        words: [
            Message("kdc_err_badoption"),
            Message("kdc can't fulfill requested option"),
            Message("kdc cannot accommodate requested option"),
            Message("can't get forwardable tickets"),
            Message("not forwardable"),
        ];
    NTLM_TOKEN: "ntlm-token", Error, "The client sent NTLM where the server takes Kerberos alone.",
        "Use the full DNS name for which a service principal name is registered (`setspn -Q HTTP/NAME`), no address and no alias without one: without a ticket, Windows falls back to NTLM.",
        words: [
            Message("defective token detected"),
            Message("gssheader did not find the right tag"),
            Message("unsupported mechanism was requested"),
            Message("warning: received type 1 ntlm authentication token"),
        ];
    ANONYMOUS_LOGON: "anonymous-logon", Error, "The server saw an anonymous client: its process has no identity on the network, or the identity was lost on a second hop.",
        "In a container run the process as `NT AUTHORITY\\NETWORK SERVICE` (`runAsUserName`), and check `kubectl gmsa verify`. If it acts for its users, give the account delegation, and register its service principal names.",
        words: [Message("nt authority\\anonymous logon"), Message("nt authority\\anonymous"), Message("nt-autorität\\anonymous-anmeldung")];
    UNTRUSTED_LOGIN: "untrusted-login", Error, "SQL Server, or another server, does not accept the identity of the client: it came without one of a domain that the server trusts.",
        "In a container run the process as NETWORK SERVICE (`runAsUserName`) and check `kubectl gmsa verify`. Then look at the service principal name (`setspn -L`), and at the trust between the domains.",
        words: [
            Message("login is from an untrusted domain"),
            Message("sspi handshake failed"),
            Message("server has rejected the client credentials"),
            Message("caller was not authenticated by the service"),
            General("authentication failed on the remote side"),
        ];
    SQL_LOGIN: "sql-login", Error, "SQL Server knows who the client is, and has no login or no right for it.",
        "Create it: `CREATE LOGIN [CONTOSO\\NAME$] FROM WINDOWS`, then a user in the database. If the message names the computer account of the node, the process does not run with the gMSA: `kubectl gmsa verify`.",
        words: [
            General("login failed for user '"),
            General("login failed for user \""),
            Message("cannot open database * requested by the login"),
            Message("cannot open user default database"),
        ],
        remedies: {
            "login failed for user ''" => "The connection string asks for no Windows authentication and has no user: write `Integrated Security=true`.",
            "login failed for user 'sa'" => "The connection string has a user of SQL Server: write `Integrated Security=true` in its place, so that the gMSA logs on.",
        };
    SQL_DRIVER: "sql-driver", Error, "The driver cannot use Windows authentication as it is set up.",
        "On Windows put the DLL of the driver on the PATH (`mssql-jdbc_auth-VERSION.x64.dll` for JDBC). On Linux set `authenticationScheme=JavaKerberos`, and log on with `kinit`.",
        words: [
            Message("driver is not configured for integrated authentication"),
            Message("integrated authentication failed"),
            Message("no mssql-jdbc_auth"),
            Message("no sqljdbc_auth in java.library.path"),
        ];
    SQL_UNREACHABLE: "sql-unreachable", Error, "The client does not reach SQL Server: this is before any logon.",
        "Check the name, the port (TCP 1433; UDP 1434 for a named instance) and the network policy of the Pod: `curl -v --max-time 5 telnet://SERVER:1433`.",
        words: [
            Message("network-related or instance-specific error"),
            Message("error locating server/instance specified"),
            Message("tcp/ip connection to the host * has failed"),
            Message("could not open a connection to sql server"),
            Message("server was not found or was not accessible"),
        ];
    SERVER_CERTIFICATE: "server-certificate", Error, "A client does not trust the certificate of a server that it calls.",
        "Give the client the authority that made it. Current SQL clients encrypt by default: put that authority into the image, or set `TrustServerCertificate=true` for a test.",
        words: [
            General("x509: certificate signed by unknown authority"),
            General("certificate verify failed"),
            General("the ssl connection could not be established"),
            General("could not establish trust relationship for the ssl/tls"),
            General("remote certificate is invalid"),
            General("unable to get local issuer certificate"),
            General("pkix path building failed"),
            General("self-signed certificate"),
            General("could not create ssl/tls secure channel"),
            General("pre-login handshake"),
            General("x509: certificate"),
            Message("is not trusted; --directory-ca"),
            Codes(&[SEC_E_UNTRUSTED_ROOT, SEC_E_CERT_EXPIRED, CERT_E_UNTRUSTEDROOT]),
        ];
    HTTP_UNAUTHORIZED: "http-unauthorized", Error, "A web server answers 401: it got no identity that it takes.",
        "Check `kubectl gmsa verify` for the client, and the service principal name (SPN) `HTTP/NAME` of the server (`setspn -Q`): it must be registered once, for the account that the application runs as.",
        words: [
            Message("unauthorized with client authentication scheme"),
            Message("http error 401"),
            Message("access is denied due to invalid credentials"),
            Message("access is denied due to server configuration"),
            Message("remote server returned an error: (401)"),
            Message("does not indicate success: 401"),
            Message("http/1.1 401 unauthorized"),
            Message("www-authenticate: negotiate"),
            Message("the server committed a protocol violation*negotiate"),
            General("401.1"),
            General("401.2"),
            General("401.3"),
            General("401 unauthorized"),
            General("401 - unauthorized"),
        ],
        remedies: {
            "401.1" => "The logon failed: register `HTTP/NAME` for the account (`setspn -S HTTP/NAME ACCOUNT$`), let the pool run as ApplicationPoolIdentity, and set `useAppPoolCredentials` where kernel mode is on.",
            "401.2" => "The server does not offer what the client sends: enable Windows authentication in IIS for the application (feature Web-Windows-Auth in the image), with the providers Negotiate and NTLM.",
            "401.3" => "The identity is known and may not read the file: give it the right in the file system of the application.",
            "access is denied due to server configuration" => "Enable Windows authentication in IIS for the application (feature Web-Windows-Auth in the image), with the providers Negotiate and NTLM.",
        };
    HTTP_TOKEN_SIZE: "http-token-size", Error, "The Kerberos ticket makes the headers of the request longer than the server takes.",
        "Raise `MaxFieldLength` and `MaxRequestBytes` of HTTP.sys (registry, in the image) or the limit of the proxy, or take the user out of groups.",
        words: [Message("size of the request headers is too long"), Message("request header or cookie too large"),
            Message("generated an output token of size"), Message("request header fields too large")];
    GSS_FAILURE: "gss-failure", Error, "A Kerberos library failed; the words do not say why.",
        "Give the whole message: the reason stands behind `Minor code`. Where it is missing, look at `klist`, the service principal name (`setspn -Q`) and the clocks. `KRB5_TRACE=/dev/stderr` has MIT Kerberos say more.",
        words: [General("unspecified gss failure"), General("gss_init_sec_context() failed"), General("failure unspecified at gss-api level")];
    APPLICATION_POOL: "application-pool", Error, "IIS cannot start an application pool with its identity.",
        "Let the pool run as ApplicationPoolIdentity or NetworkService in the container: both act as the gMSA on the network. The gMSA itself cannot be the identity of a pool there.",
        words: [Message("identity of application pool * is invalid"), Message("application pool * has been disabled"), Message("is being automatically disabled due to a series of failures"), General("http error 503. the service is unavailable"), Event("was", 5021), Event("was", 5057), Event("was", 5059)];
    SHARE_NAME: "share-name", Error, "A share is not found under its name.",
        "Try it by address too. If that alone works on containerd, set `EnableCompartmentNamespace` on the node: docs/troubleshooting.md, Network shares.",
        words: [
            Message("cannot find path '\\\\"),
            Codes(&[ERROR_BAD_NET_NAME, STATUS_BAD_NETWORK_NAME]),
        ];
    SHARE_DENIED: "share-denied", Error, "The identity reaches a share, and may not open it.",
        "Give `CONTOSO\\NAME$` the right in both places: the permissions of the share, and those of the file system behind it. Open it by its DNS name: an address leads to NTLM.",
        words: [Message("access to the path '\\\\*' is denied"), Message("\\\\* is not accessible. you might not have permission")];
    SHARE_SESSIONS: "share-sessions", Error, "Windows is connected to this server already, as another user.",
        "End the other connection (`net use * /delete`), or use another name of the server for the second one.",
        words: [Codes(&[ERROR_SESSION_CREDENTIAL_CONFLICT])];
} }
