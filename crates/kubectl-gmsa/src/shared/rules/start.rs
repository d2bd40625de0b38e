//! Containers that do not start.

use gmsa_core::diagnostic::Severity;

use super::{
    Family, Rule, RuleEntry,
    Words::{Codes, Event, Exit, General, Start, StartCodes},
    family,
};

family! { "Containers that do not start" {
    CONTENTS_REJECTED: "contents-rejected", Error, "The node cannot parse the contents of the credential spec.",
        "Run `kubectl gmsa credspec lint` on the credential spec, correct it, and create the Pod again.",
        words: [Start("failed to parse the credential spec"), Start("failed to parse credential spec"), Event("containers-ccg", &[3]), Start("error parsing credential spec")];
    CREDENTIAL_SPEC_FILE: "credential-spec-file", Error, "Docker does not find the credential spec, or its option is written wrongly.",
        "Write `--security-opt \"credentialspec=file://NAME.json\"`: NAME.json is in the folder `CredentialSpecs` of Docker (`C:\\ProgramData\\docker\\CredentialSpecs`), and never an absolute path.",
        words: [
            Start("credential spec '*' for container"),
            Start("credential spec '*' could not be read"),
            Start("failed setting credential spec"),
            Start("unsupported config option*credential_spec"),
            Start("invalid credential spec security option"),
            Start("credential spec security option must be prefixed"),
            Start("credentialspec must be prefixed"),
            Start("path must be under"),
            Start("path cannot be absolute"),
            Start("registry entry * was not found"),
            Start("credential spec * was not found in registry"),
        ];
    START_PARAMETER: "start-parameter", Error, "Windows refuses a parameter of the container. In a Pod with GMSA it is mostly a field of the credential spec.",
        "Run `kubectl gmsa credspec lint` on the credential spec: `PluginGUID` with braces, `Guid` without, `Sid` of the domain. Without GMSA, look at its mounts and devices.",
        words: [StartCodes(&["ERROR_INVALID_PARAMETER", "STATUS_INVALID_PARAMETER"]), Start("createcomputesystem*the parameter is incorrect")];
    NODE_OUTDATED: "node-outdated", Error, "Windows on the node lacks updates that the container runtime needs, or a folder of the container is missing on it.",
        "Install the updates of Windows on the node: containerd needs 17763.1817 or later on Windows Server 2019. If it has them, look at the mounts of the Pod.",
        words: [Start("createcomputesystem*the directory name is invalid")];
    PLUGIN_NOT_STARTED: "plugin-not-started", Error, "The node cannot start the plugin that the credential spec names.",
        "Register the plugin on the node: its GUID must be a key of `HKLM:\\SYSTEM\\CurrentControlSet\\Control\\CCG\\COMClasses`, and its COM server must start as the user that it is registered with.",
        words: [
            Start("failed to instantiate the plugin"),
            Event("containers-ccg", &[4]),
            StartCodes(&["CO_E_RUNAS_LOGON_FAILURE", "REGDB_E_CLASSNOTREG", "CO_E_SERVER_EXEC_FAILURE", "CLASS_E_CLASSNOTAVAILABLE"]),
        ];
    PLUGIN_FAILED: "plugin-failed", Error, "The plugin gave the node no user to retrieve the password of the account with.",
        "Correct `PluginInput` of the credential spec, and let the node read the secret that it names: its managed identity or role needs that right.",
        words: [Start("failed to fetch credentials from the plugin"), Event("containers-ccg", &[6]),
            Start("does not have secrets get permission"),
            Start("not authorized to perform: secretsmanager:getsecretvalue"),
            Start("not authorized to perform: ssm:getparameter"),
            Start("managedidentitycredential authentication"),
            Start("no managed identity endpoint found"),
            Start("was not found in this key vault"),
            Start("microsoft.keyvault/vaults/secrets/getsecret"),
            Start("not authorized to perform: kms:decrypt"),
            Start("secrets manager can't find the specified secret"),
        ],
        remedies: {
            "vaults/secrets/getsecret" => "Give the identity of the nodes the role `Key Vault Secrets User` on the Key Vault that `PluginInput` names.",
            "kms:decrypt" => "Give the role of the nodes `kms:Decrypt` for the key of the secret, besides `secretsmanager:GetSecretValue`.",
            "does not have secrets get permission" => "Give the identity of the nodes the right `get` on secrets of the Key Vault that `PluginInput` names.",
            "managed" => "Assign the managed identity that `PluginInput` names to the virtual machine scale set of the nodes, and give it `get` on secrets of the Key Vault.",
            "failed to fetch credentials from the plugin*access is denied" => "Let the node read the secret that `PluginInput` names: its managed identity or role needs that right, such as `get` on secrets of the Key Vault.",
        };
    PLUGIN_USER: "plugin-user", Error, "The domain refuses the user that the plugin gave, so the node cannot retrieve the password of the account with it.",
        "Correct the secret of the plugin, for Azure Key Vault `DOMAIN\\USER:PASSWORD` with the DNS name of the domain, and the password in it. `Get-ADUser USER -Properties Enabled,LockedOut,PasswordExpired` says whether the user may log on.",
        words: [
            Start("failed to fetch gmsa credentials*attempted logon is invalid"),
            Start("failed to fetch gmsa credentials*user name or password is incorrect"),
            Start("failed to fetch gmsa credentials*the logon attempt failed"),
            Start("failed to fetch gmsa credentials*invalid credentials"),
            Start("failed to fetch gmsa credentials*currently locked out"),
            Start("failed to fetch gmsa credentials*account is currently disabled"),
            Start("failed to fetch gmsa credentials*password for this account has expired"),
            Start("failed to fetch gmsa credentials*password must be changed"),
            Start("failed to fetch gmsa credentials*account has expired"),
            Start("failed to fetch gmsa credentials*account restrictions"),
            Start("failed to fetch gmsa credentials*network password is not correct"),
            Start("failed to fetch gmsa credentials*credentials supplied to the package were not recognized"),
            Start("failed to fetch gmsa credentials*0x8007052e"),
            Start("failed to fetch gmsa credentials*0x8009030c"),
        ];
    NODE_DNS_TCP: "node-dns-tcp", Error, "The node gets no whole answer from DNS, so it finds no directory service: TCP 53 is closed.",
        "Let TCP 53 through, besides UDP, from the nodes to the DNS servers of the domain (security group, firewall): Windows repeats long answers over TCP. On the node, `Resolve-DnsName -Type SRV _ldap._tcp.dc._msdcs.DOMAIN -TcpOnly` tests it.",
        words: [Start("directory service is not available")];
    PASSWORD_NOT_RETRIEVED: "password-not-retrieved", Error, "The node could not retrieve the password of the account from the domain.",
        "Add the user of the plugin, or the node where there is no plugin, to `PrincipalsAllowedToRetrieveManagedPassword`, and let the node reach a domain controller.",
        words: [
            General("failed to fetch gmsa credentials"),
            General("cannot get gmsa krb ticket"),
            Start("failed to fetch gmsa credentials*access is denied"),
            Start("failed to fetch gmsa credentials*insufficient access rights to perform the operation"),
            Start("failed to fetch gmsa credentials*insufficient rights"),
            Start("netlogon failed to retrieve the password for account"),
            Start("cannot be used as managed service account on the local"),
            Event("containers-ccg", &[8]),
            Event("netlogon", &[9000]),
        ],
        remedies: {
            "failed to fetch gmsa credentials*local error" => "The LDAP client of the node failed before the domain controller answered. Write the user in the secret of the plugin with the DNS name of the domain (`contoso.com\\USER`), compare the clocks, and let the node reach a domain controller: `nltest /dsgetdc:DOMAIN`, TCP and UDP 88 and 389.",
        };
    NODE_CREDENTIALS: "node-credentials", Error, "The node could not set up the credentials of the container.",
        "The log Microsoft-Windows-Containers-CCG/Admin of the node says which step failed; `kubectl gmsa explain` reads its messages. Without a message there, the credential spec, its plugin or the path to a domain controller is at fault.",
        words: [
            General("failed to setup the external credentials"),
            Event("hyper-v-compute", &[11507]),
            General("container credential guard instance"),
            StartCodes(&[
                "RPC_S_SERVER_UNAVAILABLE", "RPC_S_CALL_FAILED", "RPC_NT_SERVER_UNAVAILABLE", "RPC_NT_CALL_FAILED",
                "ERROR_NETLOGON_NOT_STARTED", "STATUS_NETLOGON_NOT_STARTED", "ERROR_NO_SUCH_LOGON_SESSION", "SEC_E_NO_CREDENTIALS",
                "STATUS_NO_SUCH_LOGON_SESSION", "STATUS_BAD_VALIDATION_CLASS",
            ]),
        ];
    NODE_NO_DOMAIN_CONTROLLER: "node-no-domain-controller", Error, "The node finds no domain controller, or reaches none.",
        "Run `nltest /dsgetdc:DOMAIN` on the node: it must name a domain controller. Let the node resolve the domain by its DNS servers, and reach TCP and UDP 53, 88, 389 and 464, TCP 135, 445 and the dynamic ports.",
        words: [
            StartCodes(&[
                "ERROR_BAD_NETPATH", "ERROR_NO_LOGON_SERVERS", "ERROR_NO_SUCH_DOMAIN", "EPT_S_NOT_REGISTERED",
                "ERROR_DOMAIN_CONTROLLER_NOT_FOUND", "NERR_DCNotFound", "SEC_E_NO_AUTHENTICATING_AUTHORITY", "STATUS_NO_LOGON_SERVERS",
                "STATUS_NO_SUCH_DOMAIN", "STATUS_DOMAIN_CONTROLLER_NOT_FOUND", "STATUS_BAD_NETWORK_PATH", "ERROR_DS_SERVER_DOWN",
                "ERROR_DS_UNAVAILABLE", "SEC_E_DOWNGRADE_DETECTED", "STATUS_DOWNGRADE_DETECTED",
            ]),
            Start("failed to fetch gmsa credentials*the rpc server is unavailable"),
            Start("failed to fetch gmsa credentials*ldap server is unavailable"),
            Start("failed to fetch gmsa credentials*server down"),
            Start("failed to fetch gmsa credentials*no such host"),
            Start("failed to fetch gmsa credentials*local security authority cannot be contacted"),
            Start("failed to fetch gmsa credentials*timeout"),
        ];
    START_LOGON: "start-logon", Error, "Windows could not log on the user of a container.",
        "Compare `runAsUserName` with the users of the image. If it is right, run `Test-ADServiceAccount NAME` on the node: it must say True.",
        words: [
            Start("createprocess*user name or password is incorrect"),
            Start("createcomputesystem*unknown user name or bad password"),
            StartCodes(&[
                "ERROR_LOGON_FAILURE", "SEC_E_LOGON_DENIED", "STATUS_WRONG_PASSWORD", "STATUS_LOGON_FAILURE", "ERROR_NONE_MAPPED",
                "STATUS_NONE_MAPPED",
            ]),
            Start("failed to map user name to sid"),
            Start("container_user*not found"),
        ];
    IMAGE_MISMATCH: "image-mismatch", Error, "The build of Windows on the node does not run the image.",
        "Use the tag of the image for the build of the node, or a node for the image. See docs/windows-pods.md.",
        words: [
            Start("operating system does not match the host"),
            Start("is incompatible with a * host"),
            Start("no matching manifest for windows"),
            Start("no match for platform in manifest"),
            StartCodes(&["HCS_E_IMAGE_MISMATCH"]),
        ],
        remedies: {
            "failed to get sandbox image" => "The pause image has no build for the Windows of this node: set `sandbox_image` in the config.toml of containerd to a version that has, and restart containerd.",
        };
    START_EXITED: "start-exited", Error, "The container, or the virtual machine around it, exited while Windows started it.",
        "Read the log Microsoft-Windows-Hyper-V-Compute-Admin of the node. Too little memory on the node ends so too.",
        words: [
            Start("virtual machine or container exited unexpectedly"),
            StartCodes(&["HCS_E_TERMINATED_DURING_START", "HCS_E_UNEXPECTED_EXIT"]),
            Codes(&["HCS_E_INVALID_STATE", "HCS_E_SYSTEM_NOT_FOUND", "HCS_E_SYSTEM_ALREADY_STOPPED"]),
        ],
        remedies: {
            "hcs_e_invalid_state" | "hcs_e_system_" => "The container has ended, or has not started yet, so nothing can run in it: `kubectl describe pod POD --namespace NAMESPACE` and `kubectl logs POD --namespace NAMESPACE --previous` say why it ended.",
        };
    START_COMMAND: "start-command", Error, "The command of a container is not in its image.",
        "Correct `command`, or its path in the image.",
        words: [
            Start("createprocess*cannot find the file specified"),
            Start("createprocess*cannot find the path specified"),
            Start("createprocess*directory name is invalid"),
            Start("exec: \"*\": executable file not found"),
            Exit(&[126, 127]),
        ],
        remedies: {
            "exit code 126" => "The shell found the command and cannot execute it: correct its permissions, or its format, in the image.",
            "exit code 127" => "The shell did not find the command: correct its name, or install it in the image. On Windows, Nano Server has few commands.",
        };
    IMAGE_LAYER: "image-layer", Error, "The node cannot unpack or mount the layers of an image.",
        "Look at the free space of its disk, and exclude the folders of containerd from virus scans. If one image alone fails, remove it from the node (`crictl rmi`), so that it is pulled again.",
        words: [
            Start("hcsshim::activatelayer"),
            Start("hcsshim::preparelayer"),
            Start("hcsshim::importlayer"),
            Start("hcsshim::createlayer"),
            Start("hcsshim::createsandboxlayer"),
            Start("hcsshim::processbaselayer"),
            Start("failed to register layer"),
            Start("failed to extract layer"),
            Start("no space left on device"),
            Start("there is not enough space on the disk"),
        ];
    COMPUTE_SERVICE: "compute-service", Error, "The service of Windows that runs containers does not answer, or is not there.",
        "Restart the service `vmcompute` on the node, or the node: drain it before.",
        words: [
            Start("timeout waiting for notification"),
            Start("hcs::*context deadline exceeded"),
            Start("hcsshim::*context deadline exceeded"),
            Start("failed to connect to the host compute service"),
            Start("createcomputesystem*the service cannot be started"),
            StartCodes(&["HCS_E_CONNECT_FAILED", "HCS_E_CONNECTION_TIMEOUT", "HCS_E_CONNECTION_CLOSED"]),
        ];
} }
