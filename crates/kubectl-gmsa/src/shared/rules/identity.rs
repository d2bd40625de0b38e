//! Identity in a container.

use gmsa_core::diagnostic::Severity;

#[allow(clippy::wildcard_imports, reason = "a table")]
use super::code::*;
use super::{
    Family, Rule, RuleEntry,
    Words::{Codes, Message, RunningCodes},
    family,
};

family! { "Identity in a container" {
    EXEC_REFUSED: "exec-refused", Error, "The API server does not run a command in the container.",
        "Use a user who may create `pods/exec` in the namespace (`--as`, `--context`), and a node that the API server reaches.";
    NO_ANSWER: "no-answer", Error, "A command in the container did not end in time: a firewall drops its packets, or a server does not answer.",
        "Let the Pod network reach the domain controllers: TCP and UDP 53, 88 and 389, TCP 135, 445 and the dynamic ports. `--timeout` waits longer.";
    NO_CREDENTIALS: "no-credentials", Error, "Windows gave the container no credential spec, or no logon session of the account.",
        "Create the Pod again. If that does not help, the log Microsoft-Windows-Containers-CCG/Admin of the node says why. See docs/troubleshooting.md.",
        words: [RunningCodes(&[ERROR_NO_SUCH_LOGON_SESSION, SEC_E_NO_CREDENTIALS, STATUS_NO_SUCH_LOGON_SESSION])];
    DOMAIN_DNS: "domain-dns", Error, "The container finds no domain controller in DNS.",
        "Forward the domain to its DNS servers in the DNS of the cluster (CoreDNS: a stub domain), and let UDP 53 through.";
    DOMAIN_DNS_TCP: "domain-dns-tcp", Error, "The container finds the domain controllers over UDP, but not over TCP.",
        "Let TCP 53 through: Windows repeats long answers over TCP.";
    NO_DOMAIN_CONTROLLER: "no-domain-controller", Error, "No domain controller answers the container.",
        "Let the Pod network reach the domain controllers (TCP and UDP 88 and 389, TCP 135, 445 and the dynamic ports), without NAT.",
        words: [
            RunningCodes(&[
                ERROR_BAD_NETPATH, ERROR_NO_LOGON_SERVERS, ERROR_NO_SUCH_DOMAIN, EPT_S_NOT_REGISTERED,
                ERROR_DOMAIN_CONTROLLER_NOT_FOUND, NERR_DCNotFound, SEC_E_NO_AUTHENTICATING_AUTHORITY,
                STATUS_NO_LOGON_SERVERS, STATUS_NO_SUCH_DOMAIN,
            ]),
        ];
    NO_SECURE_CHANNEL: "no-secure-channel", Error, "The container has not logged on to the domain.",
        "Run `nltest /sc_reset:DOMAIN` in it. If that helps, its network came up after its logon; otherwise compare the credential spec with the domain: `kubectl gmsa credspec lint`, `kubectl gmsa account lint`.",
        words: [
            RunningCodes(&[
                RPC_S_SERVER_UNAVAILABLE, RPC_S_CALL_FAILED, RPC_NT_SERVER_UNAVAILABLE, RPC_NT_CALL_FAILED,
                ERROR_NETLOGON_NOT_STARTED, STATUS_NETLOGON_NOT_STARTED,
            ]),
        ];
    LOGON_DENIED: "logon-denied", Error, "The domain denies the logon of the account.",
        "Run `Test-ADServiceAccount NAME` on the node. If it says False, add the node, or the user of the plugin, to `PrincipalsAllowedToRetrieveManagedPassword`, and restart the node. Status 5 of `nltest /sc_verify` says so to administrators alone; to NETWORK SERVICE it says nothing of the account.",
        words: [
            Message("kdc_err_preauth_failed"),
            RunningCodes(&[
                ERROR_ACCESS_DENIED, ERROR_LOGON_FAILURE, SEC_E_LOGON_DENIED, STATUS_ACCESS_DENIED,
                STATUS_WRONG_PASSWORD, STATUS_LOGON_FAILURE,
            ]),
        ];
    ACCOUNT_LOCKED: "account-locked", Error, "The account is locked out.",
        "Unlock it: `Unlock-ADAccount -Identity 'NAME$'`. Its password is made by the domain controllers: somebody tries to guess it, or a node uses an old one.",
        words: [Codes(&[ERROR_ACCOUNT_LOCKED_OUT, STATUS_ACCOUNT_LOCKED_OUT])];
    ACCOUNT_EXPIRED: "account-expired", Error, "The account has expired.",
        "Remove the date: `Clear-ADAccountExpiration -Identity 'NAME$'`.",
        words: [Codes(&[STATUS_ACCOUNT_EXPIRED])];
    TRUST_FAILED: "trust-failed", Error, "The domain controller does not trust the container.",
        "Compare `Sid`, `Guid` and `MachineAccountName` of the credential spec with the domain: `kubectl gmsa account lint --credspec`. Where several Pods with one account fail by turns, set `randomHostname` in the chart.",
        words: [
            Codes(&[
                ERROR_NO_TRUST_LSA_SECRET, ERROR_NO_TRUST_SAM_ACCOUNT, ERROR_TRUSTED_DOMAIN_FAILURE,
                ERROR_TRUSTED_RELATIONSHIP_FAILURE, STATUS_NO_TRUST_LSA_SECRET, STATUS_NO_TRUST_SAM_ACCOUNT,
                STATUS_TRUSTED_DOMAIN_FAILURE, STATUS_TRUSTED_RELATIONSHIP_FAILURE,
            ]),
        ];
    CLOCK_SKEW: "clock-skew", Error, "The clocks of the node and of the domain controller differ too much for Kerberos.",
        "Correct the clock of the node: `w32tm /query /status`, `w32tm /resync`. Kerberos allows 5 minutes.",
        words: [Message("krb_ap_err_skew"), Codes(&[ERROR_TIME_SKEW, SEC_E_TIME_SKEW, STATUS_TIME_DIFFERENCE_AT_DC])];
    PRINCIPAL_UNKNOWN: "principal-unknown", Error, "The domain does not know the service that a ticket is asked for, or knows it twice.",
        "Register the service principal name of the service, once only: `setspn -Q SPN` finds it, `setspn -X` lists duplicates.",
        words: [
            Message("kdc_err_s_principal_unknown"),
            Message("kdc_err_principal_not_unique"),
            Codes(&[ERROR_WRONG_TARGET_NAME, SEC_E_TARGET_UNKNOWN, SEC_E_WRONG_PRINCIPAL]),
        ];
    TICKET_ENCRYPTION: "ticket-encryption", Error, "The account and the domain controller have no encryption type in common.",
        "`Set-ADServiceAccount NAME -KerberosEncryptionType AES128,AES256`, and compare with the policy of the domain controllers.",
        words: [Message("kdc_err_etype_notsupp"), Codes(&[SEC_E_KDC_UNKNOWN_ETYPE, STATUS_KDC_UNKNOWN_ETYPE])];
    OTHER_DOMAIN: "other-domain", Error, "The container is in another domain than its credential spec says.",
        "Create the Pod again. If it is a hostProcess Pod, it has the domain of its node: remove `hostProcess`.";
    OTHER_ACCOUNT: "other-account", Error, "The tickets in the container are not those of the account.",
        "Create the Pod again. If it is a hostProcess Pod, it has the tickets of its node: remove `hostProcess`.";
    UNKNOWN_STATUS: "unknown-status", Error, "A command in the container failed with a status that is not known here.",
        "Run the command by hand: `kubectl exec`. `net helpmsg CODE` explains a decimal code.";
} }
