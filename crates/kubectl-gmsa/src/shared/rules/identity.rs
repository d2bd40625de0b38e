//! Identity in a container.

use gmsa_core::diagnostic::Severity;

use super::{
    Family, Rule, RuleEntry,
    Words::{Codes, Event, General, Message, RunningCodes},
    family,
};

family! { "Identity in a container" {
    EXEC_REFUSED: "exec-refused", Error, "The API server does not run a command in the container.",
        "Have `create` on `pods/exec` granted in the namespace: `kubectl create role gmsa-verify --namespace NAMESPACE --verb=create,get --resource=pods/exec`, then bind it. The API server must also reach the kubelet of the node.",
        words: [Message("is forbidden: user * cannot ? resource \"pods/exec\""), Message("error dialing backend"), Message("unable to upgrade connection"), Message(":10250/containerlogs/*dial tcp")],
        remedies: {
            ":10250/containerlogs" | "dialing backend" => "The API server does not reach the kubelet of the node (TCP 10250): let the firewall between them through, or restart the node's kubelet or its tunnel (konnectivity).",
            "container not found" => "The container does not run: `kubectl get pod` shows its state.",
            "pod does not exist" => "The Pod is gone: its controller has made another one.",
        };
    NO_ANSWER: "no-answer", Error, "A command in the container did not end in time: a firewall drops its packets, or a server does not answer.",
        "Let the Pod network reach the domain controllers: TCP and UDP 53, 88 and 389, TCP 135, 445 and the dynamic ports. `--timeout` waits longer.",
        words: [RunningCodes(&["ERROR_SEM_TIMEOUT", "ERROR_TIMEOUT", "WSAETIMEDOUT"])];
    NO_CREDENTIALS: "no-credentials", Error, "Windows gave the container no credential spec, or no logon session of the account.",
        "Create the Pod again. If that does not help, the log Microsoft-Windows-Containers-CCG/Admin of the node says why. See docs/troubleshooting.md.",
        words: [RunningCodes(&["ERROR_NO_SUCH_LOGON_SESSION", "SEC_E_NO_CREDENTIALS", "STATUS_NO_SUCH_LOGON_SESSION"])];
    DOMAIN_DNS: "domain-dns", Error, "The container finds no domain controller in DNS.",
        "Forward the domain to its DNS servers in the DNS of the cluster (CoreDNS: a stub domain): `kubectl gmsa dns --domain DOMAIN --server IP` prints it. Let UDP 53 through.",
        words: [
            Message("can't find _ldap._tcp"),
            Message("can't find _kerberos._tcp"),
            Message("_msdcs.*dns name does not exist"),
            Message("lookup _ldap._tcp"),
            Message("lookup _kerberos._tcp"),
            Message("cannot find the domain controllers of"),
            General("dns request timed out"),
            General("*** request to * timed-out"),
            General("non-existent domain"),
            General("server can't find *: nxdomain"),
            General("server can't find *: servfail"),
            General("server can't find *: refused"),
            General("no servers could be reached"),
            General("communications error to *timed out"),
            General("returned because the timeout period expired"),
            General("can't find server name for address"),
            General("can't find *: server failed"),
            General("can't find *: query refused"),
            General("can't find *: no response from server"),
            Message("could not resolve the computer name"),
            Message("could not resolve the user name"),
            Codes(&[
                "DNS_ERROR_RCODE_SERVER_FAILURE", "DNS_ERROR_RCODE_NAME_ERROR", "DNS_ERROR_RCODE_REFUSED", "DNS_INFO_NO_RECORDS",
                "DNS_ERROR_NO_DNS_SERVERS",
            ]),
        ],
        remedies: {
            "non-existent domain" => "Forward the domain to its DNS servers in the DNS of the cluster (CoreDNS: a stub domain): `kubectl gmsa dns --domain DOMAIN --server IP` prints it. Let UDP 53 through.",
            "timeout period expired" | "timed out" | "timed-out" => "No DNS server answers: let UDP and TCP 53 through to the DNS of the cluster, and from it to the DNS servers of the domain. `nslookup NAME SERVER` asks each of them.",
        };
    DOMAIN_DNS_TCP: "domain-dns-tcp", Error, "The container finds the domain controllers over UDP, but not over TCP.",
        "Let TCP 53 through: Windows repeats long answers over TCP.",
        words: [Message("-tcponly*timeout period expired"), Message("-vc*timed out")];
    NO_DOMAIN_CONTROLLER: "no-domain-controller", Error, "No domain controller answers the container.",
        "Let the Pod network reach the domain controllers (TCP and UDP 88 and 389, TCP 135, 445 and the dynamic ports), without NAT.",
        words: [
            RunningCodes(&[
                "ERROR_BAD_NETPATH", "ERROR_NO_LOGON_SERVERS", "ERROR_NO_SUCH_DOMAIN", "EPT_S_NOT_REGISTERED",
                "ERROR_DOMAIN_CONTROLLER_NOT_FOUND", "NERR_DCNotFound", "SEC_E_NO_AUTHENTICATING_AUTHORITY", "STATUS_NO_LOGON_SERVERS",
                "STATUS_NO_SUCH_DOMAIN", "STATUS_DOMAIN_CONTROLLER_NOT_FOUND", "STATUS_BAD_NETWORK_PATH", "ERROR_DS_SERVER_DOWN",
                "ERROR_DS_UNAVAILABLE", "SEC_E_DOWNGRADE_DETECTED", "STATUS_DOWNGRADE_DETECTED",
            ]),
            Message("naming information cannot be located"),
            Message("because your domain isn't available"),
            Message("could not locate a domain controller for domain"),
            Message("cannot contact a domain controller to service"),
            Message("domain controller (ad dc) for the domain * could not be contacted"),
            Message("specified domain does not exist or cannot be contacted"),
            Message("set up a secure session with a d*the rpc server is unavailable"),
            Message("5719*the rpc server is unavailable"),
            Message("lack of network connectivity to a domain controller"),
            Message("could not be contacted to service this request"),
            Message("principalserverdownexception"),
            Message("no authentication protocol was available"),
            Message("gpt.ini from a domain controller and was not successful"),
            Message("tcp connect to (* : 389) failed"),
            Message("tcp connect to (* : 88) failed"),
            Message("tcp connect to (* : 135) failed"),
            Message("service): filtered"),
            Message("timed out before it could be sent to domain controller"),
            General("not able to set up a secure session with a domain controller"),
            General("not able to set up a secure session with a dc"),
            General("windows cannot obtain the domain controller name"),
            Event("netlogon", &[5719]),
            Event("grouppolicy", &[1129]),
        ],
        remedies: {
            "timed out before it could be sent" => "The domain controller answers too slowly for the logons that wait: look at its load, and at `MaxConcurrentApi` of Netlogon on both sides. Kerberos in place of NTLM avoids it.",
            "the rpc server is unavailable" => "The domain controller is known, and its RPC is not reached: let TCP 135, 445 and the dynamic ports (49152-65535) through from the Pod network, without NAT.",
            "an internal error occurred" => "If the event stands alone when Netlogon starts on Windows Server 2025, it means nothing: the channel is set up after it. Otherwise let the Pod network reach the domain controllers: TCP and UDP 88 and 389, TCP 135 and 445.",
        };
    NO_SECURE_CHANNEL: "no-secure-channel", Error, "The container has not logged on to the domain.",
        "Run `nltest /sc_reset:DOMAIN` in it. If that helps, its network came up after its logon; otherwise compare the credential spec with the domain: `kubectl gmsa credspec lint`, `kubectl gmsa account lint`.",
        words: [
            RunningCodes(&["RPC_S_SERVER_UNAVAILABLE", "RPC_S_CALL_FAILED", "RPC_NT_SERVER_UNAVAILABLE", "RPC_NT_CALL_FAILED"]),
            Message("local security authority cannot be contacted"),
            Message("nltest*the rpc server is unavailable"),
            Message("is not responsive. the current rpc call"),
            Message("some or all identity references could not be translated"),
            Message("cannot verify the secure channel"),
            Message("test-computersecurechannel*false"),
            Event("netlogon", &[5783]),
        ],
        remedies: {
            "identity references could not be translated" => "Windows translates names by the secure channel: `nltest /sc_verify:DOMAIN` in the container must answer 0. If it does, look for the flag WORKSTATION_TRUST_ACCOUNT of the account: `kubectl gmsa account lint`.",
            "local security authority cannot be contacted" => "Windows could not ask for a ticket: `nltest /sc_verify:DOMAIN` and `klist get krbtgt` in the container say why. On SQL Server for Linux, look at its keytab and at the realm in krb5.conf.",
            "getting parent domain failed" => "The container has no credential spec: `kubectl get pod POD --namespace NAMESPACE -o yaml` must show `gmsaCredentialSpec` with contents. A Pod that is older than the webhook has none: delete it.",
        };
    NETLOGON_STOPPED: "netlogon-stopped", Error, "The service Netlogon does not run in the container.",
        "Start it: `net start netlogon`. It runs in images of Server Core and Server, not of Nano Server, and only where the container has a credential spec: `nltest /parentdomain`.",
        words: [Event("netlogon", &[1717]), RunningCodes(&[
            "ERROR_NETLOGON_NOT_STARTED", "STATUS_NETLOGON_NOT_STARTED", "RPC_S_UNKNOWN_IF", "RPC_NT_UNKNOWN_IF",
        ])];
    LOGON_DENIED: "logon-denied", Error, "The domain denies the logon of the account.",
        "Run `Test-ADServiceAccount NAME` on the node. If it says False, add the node, or the user of the plugin, to `PrincipalsAllowedToRetrieveManagedPassword`, and restart the node. Status 5 of `nltest /sc_verify` says so to administrators alone; to NETWORK SERVICE it says nothing of the account.",
        words: [
            Message("kdc_err_preauth_failed"),
            Message("preauthentication failed"),
            Message("krb5_preauth_failed"),
            Message("pre-authentication information was invalid"),
            Message("kinit: password incorrect"),
            General("unknown user name or bad password"),
            RunningCodes(&[
                "ERROR_ACCESS_DENIED", "ERROR_INVALID_PASSWORD", "ERROR_LOGON_FAILURE", "SEC_E_LOGON_DENIED", "STATUS_ACCESS_DENIED",
                "STATUS_WRONG_PASSWORD", "STATUS_LOGON_FAILURE",
            ]),
            Event("kerberos", &[4771]),
        ],
        remedies: {
            "status_wrong_password" => "The password is not the current one. A gMSA's password changes every 30 days, and nodes fetch it again: run `Test-ADServiceAccount NAME` on the node. Renew each copy of the password, such as a keytab.",
            "pre" => "The password, or the keytab, is not the current one. A gMSA's password changes every 30 days: hosts fetch it again, but you must renew keytabs. On a node, run `Test-ADServiceAccount NAME`.",
        };
    ACCOUNT_REVOKED: "account-revoked", Error, "The account is disabled, locked out or has expired: Kerberos does not say which.",
        "`Get-ADServiceAccount NAME -Properties Enabled,LockedOut,AccountExpirationDate` says it. Then `Enable-ADAccount`, `Unlock-ADAccount` or `Clear-ADAccountExpiration`.",
        words: [
            Message("kdc_err_client_revoked"),
            Message("kdc_err_service_revoked"),
            Message("credentials have been revoked"),
            Message("credentials for server have been revoked"),
        ];
    ACCOUNT_LOCKED: "account-locked", Error, "The account is locked out.",
        "Unlock it: `Unlock-ADAccount -Identity 'NAME$'`. Domain controllers generate its password: an attacker tries to guess it, or a node uses an old one.",
        words: [Message("failure reason: account locked out"), Codes(&["ERROR_ACCOUNT_LOCKED_OUT", "STATUS_ACCOUNT_LOCKED_OUT"])];
    NETLOGON_INSECURE: "netlogon-insecure", Warning, "A client uses Netlogon without secure RPC, which domain controllers refuse, or tolerate for now.",
        "Update the machine that the event names, or replace it: every Windows that runs containers uses secure RPC. `Allow vulnerable Netlogon secure channel connections` in the group policy is for the time until then.",
        words: [
            Message("vulnerable netlogon secure channel connection"),
            Event("netlogon", &[5827, 5828, 5829, 5830, 5831]),
        ];
    TRUST_FAILED: "trust-failed", Error, "The domain controller does not trust the container.",
        "Compare `Sid`, `Guid` and `MachineAccountName` of the credential spec with the domain: `kubectl gmsa account lint --credspec`. Where several Pods with one account fail by turns, set `randomHostname` in the chart.",
        words: [
            Codes(&[
                "ERROR_NO_TRUST_LSA_SECRET", "ERROR_NO_TRUST_SAM_ACCOUNT", "ERROR_TRUSTED_DOMAIN_FAILURE",
                "ERROR_TRUSTED_RELATIONSHIP_FAILURE", "STATUS_NO_TRUST_LSA_SECRET", "STATUS_NO_TRUST_SAM_ACCOUNT",
                "STATUS_TRUSTED_DOMAIN_FAILURE", "STATUS_TRUSTED_RELATIONSHIP_FAILURE",
            ]),
            Message("does not have a local security database account"),
            Message("security database does not contain a trust account"),
            Message("session setup from the computer * failed to authenticate"),
            Message("session setup from computer '*' failed"),
            Message("this computer could not authenticate with"),
            Event("netlogon", &[3210, 5720, 5722, 5723, 5805]),
        ],
        remedies: {
            "session setup from" => "Several containers with one account and one host name displace each other: set `randomHostname` in the chart. If it is always the same one, its password differs from the domain's: `Test-ADServiceAccount NAME` on the node.",
        };
    CLOCK_SKEW: "clock-skew", Error, "The clocks of the node and of the domain controller differ too much for Kerberos.",
        "Correct the clock of the node: `w32tm /query /status`, `w32tm /resync`. Kerberos allows 5 minutes.",
        words: [
            Message("krb_ap_err_skew"),
            Message("krb5_kdcrep_skew"),
            Message("krb_ap_err_tkt_nyv"),
            Message("kdc_err_never_valid"),
            Message("clock skew too great"),
            Message("ticket not yet valid"),
            Message("did not resync because no time data was available"),
            Codes(&["ERROR_TIME_SKEW", "SEC_E_TIME_SKEW", "STATUS_TIME_DIFFERENCE_AT_DC"]),
        ];
    PRINCIPAL_UNKNOWN: "principal-unknown", Error, "The domain does not know the service that a ticket is asked for, knows it twice, or under another account.",
        "Register the service principal name (SPN) of the service, once only: `setspn -Q SPN` finds it, `setspn -X` lists duplicates.",
        words: [
            Message("kdc_err_s_principal_unknown"),
            Message("kdc_err_principal_not_unique"),
            Message("server not found in kerberos database"),
            Message("server * not found in kerberos database"),
            Message("multiple entries in kerberos database"),
            Message("krb_ap_err_modified"),
            Message("message stream modified"),
            Message("krb_ap_err_bad_integrity"),
            Message("decrypt integrity check failed"),
            Message("integrity check on decrypted field failed"),
            Message("krb_ap_err_not_us"),
            Message("krb_ap_err_badmatch"),
            Message("kdc_err_must_use_user2user"),
            Message("wrong principal in request"),
            Message("the ticket isn't for us"),
            Message("failed to decrypt the ticket"),
            Message("could not register the service principal name"),
            Message("service principal name (spn) ? is not registered"),
            General("generate sspi context"),
            General("create sspi context"),
            General("create windows sspi auth"),
            General("could not register the spn"),
            General("no service creds"),
            Event("kdc", &[11]),
            Codes(&["ERROR_WRONG_TARGET_NAME", "SEC_E_TARGET_UNKNOWN", "SEC_E_WRONG_PRINCIPAL"]),
        ],
        remedies: {
            "could not register the service principal name" => "SQL Server may not write its own SPN: register it by hand, `setspn -S MSSQLSvc/HOST.DOMAIN:1433 ACCOUNT`. Until then clients use NTLM.",
            "sspi context" => "Look for the SPN of SQL Server: `setspn -Q MSSQLSvc/HOST.DOMAIN:1433`. It must be registered once, for the account that SQL Server runs as: `setspn -S`. Use the full DNS name in the connection string.",
            "target principal name is incorrect" => "The SPN is registered for another account than the service runs as: `setspn -Q SPN` shows it, `setspn -D` and `setspn -S` move it.",
            "krb_ap_err_modified" | "failed to decrypt the ticket" => "The service cannot decrypt the ticket: the SPN is registered for another account than it runs as (`setspn -Q SPN`, `setspn -X`), or the name leads to another host.",
            "message stream modified" => "The SPN is registered for another account than the service runs as (`setspn -Q SPN`). In Java it also means a realm that is not in upper case in krb5.conf.",
            "integrity check" => "The service cannot decrypt the ticket: its keytab or password is old, or the SPN is registered for another account (`setspn -Q SPN`).",
            "kdc_err_must_use_user2user" => "The SPN belongs to a user, or to no account that runs a service: `setspn -Q SPN`.",
        };
    TICKET_ENCRYPTION: "ticket-encryption", Error, "The account and the domain controller have no encryption type in common.",
        "`Set-ADServiceAccount NAME -KerberosEncryptionType AES128,AES256`, and compare with the policy of the domain controllers.",
        words: [
            Message("kdc_err_etype_no"),
            Message("no support for encryption type"),
            Message("lacks support for encryption type"),
            Message("etype * not supported"),
            Message("encryption type * is not supported"),
            Message("encryption type * not permitted"),
            Message("did not have a suitable key for generating a kerberos ticket"),
            Message("key distribution center lacks strong keys for account"),
            Message("not all the supported encryption types"),
            Message("key distribution center * detected ? usage that will be unsupported"),
            Message("blocked cipher usage"),
            Event("kdcsvc", &[201, 203]),
            Message("kdc_err_null_key"),
            Event("kdc", &[14, 16, 26, 27, 42]),
            Codes(&["SEC_E_KDC_UNKNOWN_ETYPE", "STATUS_KDC_UNKNOWN_ETYPE", "SEC_E_NO_KERB_KEY"]),
        ];
    OTHER_DOMAIN: "other-domain", Error, "The container is in another domain than its credential spec says.",
        "Create the Pod again. If it is a hostProcess Pod, it has the domain of its node: remove `hostProcess`.";
    OTHER_ACCOUNT: "other-account", Error, "The tickets in the container are not those of the account.",
        "Create the Pod again. If it is a hostProcess Pod, it has the tickets of its node: remove `hostProcess`.";
    UNKNOWN_STATUS: "unknown-status", Error, "A command in the container failed with a status whose cause is not known here.",
        "Run the command by hand: `kubectl exec`. `net helpmsg CODE` explains a decimal code.";
} }
