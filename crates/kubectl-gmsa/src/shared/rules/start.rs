//! Containers that do not start.

use gmsa_core::diagnostic::Severity;

#[allow(clippy::wildcard_imports, reason = "a table")]
use super::code::*;
use super::{
    Family, Rule, RuleEntry,
    Words::{Start, StartCodes},
    family,
};

family! { "Containers that do not start" {
    CONTENTS_REJECTED: "contents-rejected", Error, "The node cannot parse the contents of the credential spec.",
        "Run `kubectl gmsa credspec lint` on the credential spec, correct it, and create the Pod again.",
        words: [Start("failed to parse the credential spec")];
    PLUGIN_NOT_STARTED: "plugin-not-started", Error, "The node cannot start the plugin that the credential spec names.",
        "Register the plugin on the node: its GUID must be a key of `HKLM:\\SYSTEM\\CurrentControlSet\\Control\\CCG\\COMClasses`, and its COM server must start as the user that it is registered with.",
        words: [
            Start("failed to instantiate the plugin"),
            StartCodes(&[CO_E_RUNAS_LOGON_FAILURE, REGDB_E_CLASSNOTREG, CO_E_SERVER_EXEC_FAILURE]),
        ];
    PLUGIN_FAILED: "plugin-failed", Error, "The plugin gave the node no user to retrieve the password of the account with.",
        "Correct `PluginInput` of the credential spec, and let the node read the secret that it names: its managed identity or role needs that right.",
        words: [Start("failed to fetch credentials from the plugin")];
    PASSWORD_NOT_RETRIEVED: "password-not-retrieved", Error, "The node could not retrieve the password of the account from the domain.",
        "Add the user of the plugin, or the node where there is no plugin, to `PrincipalsAllowedToRetrieveManagedPassword`, and let the node reach a domain controller.",
        words: [Start("failed to fetch gmsa credentials")];
    NODE_CREDENTIALS: "node-credentials", Error, "The node could not set up the credentials of the container.",
        "The log Microsoft-Windows-Containers-CCG/Admin of the node says which step failed; `kubectl gmsa explain` reads its messages. Without a message there, the credential spec, its plugin or the path to a domain controller is at fault.",
        words: [
            Start("failed to setup the external credentials"),
            Start("container credential guard instance"),
            StartCodes(&[
                RPC_S_SERVER_UNAVAILABLE, RPC_S_CALL_FAILED, RPC_NT_SERVER_UNAVAILABLE, RPC_NT_CALL_FAILED,
                ERROR_NETLOGON_NOT_STARTED, STATUS_NETLOGON_NOT_STARTED, ERROR_NO_SUCH_LOGON_SESSION,
                SEC_E_NO_CREDENTIALS, STATUS_NO_SUCH_LOGON_SESSION,
            ]),
        ];
    NODE_NO_DOMAIN_CONTROLLER: "node-no-domain-controller", Error, "The node finds no domain controller, or reaches none.",
        "Run `nltest /dsgetdc:DOMAIN` on the node: it must name a domain controller. Let the node resolve the domain by its DNS servers, and reach TCP and UDP 53, 88, 389 and 464, TCP 135, 445 and the dynamic ports.",
        words: [
            StartCodes(&[
                ERROR_BAD_NETPATH, ERROR_NO_LOGON_SERVERS, ERROR_NO_SUCH_DOMAIN, EPT_S_NOT_REGISTERED,
                ERROR_DOMAIN_CONTROLLER_NOT_FOUND, NERR_DCNotFound, SEC_E_NO_AUTHENTICATING_AUTHORITY,
                STATUS_NO_LOGON_SERVERS, STATUS_NO_SUCH_DOMAIN,
            ]),
        ];
    START_LOGON: "start-logon", Error, "Windows could not log on the user of a container.",
        "Compare `runAsUserName` with the users of the image. If it is right, run `Test-ADServiceAccount NAME` on the node: it must say True.",
        words: [
            Start("createprocess*user name or password is incorrect"),
            StartCodes(&[
                ERROR_LOGON_FAILURE, SEC_E_LOGON_DENIED, STATUS_WRONG_PASSWORD, STATUS_LOGON_FAILURE,
                ERROR_NONE_MAPPED,
            ]),
        ];
    IMAGE_MISMATCH: "image-mismatch", Error, "The build of Windows on the node does not run the image.",
        "Use the tag of the image for the build of the node, or a node for the image. See docs/windows-placement.md.",
        words: [Start("operating system does not match the host"), StartCodes(&[HCS_E_IMAGE_MISMATCH])];
    START_EXITED: "start-exited", Error, "The container, or the virtual machine around it, exited while Windows started it.",
        "Read the log Microsoft-Windows-Hyper-V-Compute-Admin of the node. Too little memory on the node ends so too.",
        words: [StartCodes(&[HCS_E_TERMINATED_DURING_START, HCS_E_UNEXPECTED_EXIT])];
    START_COMMAND: "start-command", Error, "The command of a container is not in its image.",
        "Correct `command`, or its path in the image.",
        words: [
            Start("createprocess*cannot find the file specified"),
            Start("createprocess*cannot find the path specified"),
        ];
    COMPUTE_SERVICE: "compute-service", Error, "The service of Windows that runs containers does not answer, or is not there.",
        "Restart the service `vmcompute` on the node, or the node: drain it before.",
        words: [StartCodes(&[HCS_E_CONNECT_FAILED, HCS_E_CONNECTION_TIMEOUT, HCS_E_CONNECTION_CLOSED])];
} }
