//! Accounts: messages of the cmdlets of Active Directory, of its events and of LDAP.

use gmsa_core::diagnostic::Severity;

use super::{
    Family, Rule, RuleEntry,
    Words::{Codes, General, Message},
    family,
};

family! { "Work on accounts" {
    DIRECTORY_SERVICES: "directory-services", Error, "The cmdlets find no domain controller that runs Active Directory Web Services.",
        "Run them on a machine of the domain, or name a domain controller: `-Server DC`. TCP 9389 must be open to it, and the service ADWS must run there.",
        words: [
            Message("unable to find a default server with active directory web services running"),
            Message("it does not have the active directory web services running"),
            Message("unable to contact the server. this may be because this server does not exist"),
            Message("this computer is not joined to an active directory domain"),
            Message("active directory powershell module cannot reach a domain controller"),
            Message("specified active directory domain * could not be found"),
            Message("while loading information for the computer account's domain"),
        ],
        remedies: {
            "is not joined" => "`New-CredentialSpec` needs a machine of the domain. Make the credential spec without one: `kubectl gmsa credspec new --account NAME --directory DC`, or `--from-ad FILE` with what `Get-ADServiceAccount` and `Get-ADDomain` print elsewhere.",
            "active directory domain" => "Correct the name after `-Domain`: the DNS name of the domain. This machine must find its domain controllers (`nltest /dsgetdc:DOMAIN`), and a trust must lead there.",
            "cannot reach a domain controller" | "computer account's domain" => "The machine reaches no domain controller of its domain: `nltest /dsgetdc:DOMAIN` says why. Without one: `kubectl gmsa credspec new --from-ad FILE`.",
        };
    CMDLET_MISSING: "cmdlet-missing", Error, "The PowerShell module of a cmdlet is not installed.",
        "`Install-WindowsFeature RSAT-AD-PowerShell` brings the cmdlets for accounts, `Install-Module CredentialSpec` those for credential specs of Docker, `Install-Module AksGMSA` those of AKS.",
        words: [
            Message("the term '*adserviceaccount' is not recognized"),
            Message("the term '*credentialspec' is not recognized"),
            Message("the term '*kdsrootkey' is not recognized"),
            Message("the term '*-ad*' is not recognized as the name of a cmdlet"),
            Message("module 'activedirectory' was not loaded"),
            Message("module 'credentialspec' was not loaded"),
            Message("in the module 'activedirectory', but the module could not be loaded"),
            Message("assembly 'microsoft.activedirectory.management"),
            Message("that matches parameter name 'akv"),
            Message("active directory powershell module is required"),
            Message("no match was found for * module name 'credentialspec'"),
            Message("no match was found for * module name 'aksgmsa'"),
            Message("credentialspec.psm1 cannot be loaded"),
            Message("aksgmsa.psm1 cannot be loaded"),
        ],
        remedies: {
            "parameter name 'akv" => "The module is too old for `-AKV`: `Update-Module CredentialSpec`. Without it: `kubectl gmsa credspec new --plugin azure`.",
            "no match was found" => "The machine does not reach the PowerShell Gallery, or asks it without TLS 1.2 (`[Net.ServicePointManager]::SecurityProtocol = 'Tls12'`). Without the module: `kubectl gmsa credspec new --account NAME --directory DC`.",
            "cannot be loaded" => "PowerShell runs no scripts here: `Set-ExecutionPolicy -Scope Process RemoteSigned`. Without the module: `kubectl gmsa credspec new --account NAME --directory DC`.",
        };
    PRINCIPAL_UNRESOLVED: "principal-unresolved", Error, "A group or computer that a cmdlet names for an account does not exist.",
        "Write the name of a group, or of a computer followed by `$`: `-PrincipalsAllowedToRetrieveManagedPassword 'NODE$'`. `Get-ADGroup` and `Get-ADComputer` show names.",
        words: [Message("could not be resolved. reason: 'cannot find an object with identity"), Message("identity info provided in the extended attribute")];
    ACCOUNT_EXISTS: "account-exists", Error, "An account of this name exists already in the domain.",
        "Use it, or choose another name: computers, users and service accounts share one list of names. `Get-ADObject -Filter 'sAMAccountName -like \"NAME*\"'` finds it.",
        words: [Message("specified account already exists"), Message("object already exists"), Message("entryexists"), Message("ldap_already_exists")];
    DIRECTORY_DENIED: "directory-denied", Error, "The user lacks a right in the directory.",
        "Run it as a domain administrator, or as one to whom the container Managed Service Accounts is delegated. In a managed domain nobody is a domain administrator: in Entra Domain Services create the account in an organizational unit of your own (`New-ADServiceAccount ... -Path 'OU=Apps,DC=contoso,DC=com'`); at AWS and Google be in the group `AWS Delegated Managed Service Account Administrators` or `Cloud Service Managed Service Account Administrators`.",
        words: [
            Message("insufficient permissions to join the domain"),
            Message("insuff_access_rights"),
            Message("ldap_insufficient_rights"),
            Message("insufficient access (50)"),
            Message("new-adserviceaccount : access is denied"),
            Message("new-adserviceaccount : zugriff verweigert"),
            Message("new-adserviceaccount : accès refusé"),
            Message("new-adorganizationalunit : access is denied"),
            Message("set-adserviceaccount : access is denied"),
            Message("cn=managed service accounts,*access is denied"),
            Message("access is denied*cn=managed service accounts,"),
            Codes(&["ERROR_DS_INSUFF_ACCESS_RIGHTS"]),
        ];
    DIRECTORY_UNWILLING: "directory-unwilling", Error, "A domain controller does not take a change as it is asked for.",
        "Compare the values: `-ManagedPasswordIntervalInDays` can be set by `New-ADServiceAccount` alone, and a name has at most 15 characters. A domain controller before Windows Server 2012 makes no gMSA: name a newer one, `-Server DC`.",
        words: [
            Message("server is unwilling to perform"),
            Message("will_not_perform"),
            Codes(&["ERROR_DS_UNWILLING_TO_PERFORM"]),
        ];
    LDAP_CREDENTIALS: "ldap-credentials", Error, "A domain controller does not accept the credentials of an LDAP client.",
        "Correct the user and the password. The code after `data` says why: 525 no such user, 52e wrong password, 530 hours, 531 workstation, 532 or 773 password expired, 533 disabled, 701 account expired, 775 locked out.",
        words: [
            Message("acceptsecuritycontext error"),
            Message("supplied credential is invalid"),
            Message("ldap_invalid_credentials"),
            Message("ldap_bind: invalid credentials"),
            Message("invalid credentials (49)"),
            Message("successful bind must be completed"),
            Message("does not let * in: "),
        ],
        remedies: {
            "data 525" => "Correct the name of the user: the domain does not know it. A domain controller takes `USER@DOMAIN`, `DOMAIN\\USER` and a distinguished name.",
            "data 52e" => "Correct the password, or the domain before the user: `DOMAIN\\USER`, `USER@DOMAIN`. Each try counts towards a lockout.",
            "data 530" => "The user may not log on at this hour: change its logon hours.",
            "data 531" => "The user may not log on from this machine: change its logon workstations.",
            "data 532" => "The password of the user has expired: set a new one, and write it where the client reads it.",
            "data 533" => "The user is disabled: `Enable-ADAccount`.",
            "data 701" => "The user has expired: `Clear-ADAccountExpiration`.",
            "data 773" => "The password of the user must be changed before the first logon: set one, without that option.",
            "data 775" => "The user is locked out: `Unlock-ADAccount`, and find the client that tries an old password.",
            "successful bind must be completed" => "Bind with a user: Active Directory answers anonymous clients with its root entry alone.",
        };
    LDAP_SIGNING: "ldap-signing", Error, "The domain controller takes binds only with signing or TLS.",
        "Use `ldaps://` (TCP 636) or StartTLS. Policies on LDAP signing and channel binding of the domain controllers demand it.",
        words: [
            Message("strong(er) authentication required"),
            Message("requires binds to turn on integrity checking"),
            Message("ldap bind without requesting signing"),
            Message("ldap_strong_auth_required"),
            Message("ldap_confidentiality_required"),
            Codes(&["ERROR_DS_STRONG_AUTH_REQUIRED"]),
        ];
    LDAP_UNREACHABLE: "ldap-unreachable", Error, "An LDAP client reaches no domain controller.",
        "Check the name, and TCP 389 or 636: `nltest /dsgetdc:DOMAIN`, `openssl s_client -connect DC:636`. A certificate that is not trusted looks the same to some clients.",
        words: [
            Message("no domain controller of * answers"),
            Message("can't contact ldap server"),
            Message("ldap server is unavailable"),
            Message("ldap_server_down"),
            Message("ldap_unavailable"),
            Message("ldap result code 200 \"network error\""),
            General("cannot connect to ldap"),
        ];
    PASSWORD_EXPIRED: "password-expired", Error, "The password of a user has expired, or must be changed before the first logon.",
        "Set a new one, and write it where it is read: the secret of the CCG plugin, or the configuration of the client. The password of a gMSA never expires for its hosts.",
        words: [
            Message("cannot log on: its password has expired"),
            Message("kdc_err_key_exp"),
            Message("password has expired while getting initial credentials"),
            Message("account's password has expired"),
            Codes(&["ERROR_PASSWORD_EXPIRED", "ERROR_PASSWORD_MUST_CHANGE", "STATUS_PASSWORD_EXPIRED", "STATUS_PASSWORD_MUST_CHANGE"]),
        ];
    LOGON_RESTRICTED: "logon-restricted", Error, "A policy of the domain restricts where or when the account may log on.",
        "Look at its logon workstations and hours, and at authentication policies and silos: `Get-ADServiceAccount NAME -Properties *`. NTLM can be the cause: members of Protected Users can use only Kerberos.",
        words: [
            Message("cannot log on: a policy of the domain refuses it"),
            Message("kdc_err_policy"),
            Message("kdc policy rejects request"),
            Message("domain controller blocked: ntlm authentication"),
            Codes(&["ERROR_INVALID_LOGON_HOURS", "STATUS_INVALID_LOGON_HOURS", "STATUS_SMARTCARD_LOGON_REQUIRED", "SEC_E_SMARTCARD_LOGON_REQUIRED"]),
            Codes(&[
                "ERROR_ACCOUNT_RESTRICTION", "ERROR_INVALID_WORKSTATION", "STATUS_ACCOUNT_RESTRICTION", "STATUS_INVALID_WORKSTATION",
                "STATUS_NTLM_BLOCKED",
            ]),
        ],
        remedies: {
            "smartcard_logon" => "The user may log on with a smart card alone, which no plugin and no container has: `Set-ADUser USER -SmartcardLogonRequired $false`.",
            "logon_hours" | "time restrictions" => "The account may not log on at this hour: change its logon hours (`net user USER /domain /times:all`).",
        };
    LOGON_TYPE: "logon-type", Error, "The account may not log on in this way on this machine.",
        "Give it the right `Log on as a service` (or `as a batch job`) in the local security policy of the machine, and look for a policy that denies it.",
        words: [
            Message("does not have the required user right"),
            Codes(&["ERROR_LOGON_TYPE_NOT_GRANTED", "STATUS_LOGON_TYPE_NOT_GRANTED"]),
            Codes(&["ERROR_NOLOGON_WORKSTATION_TRUST_ACCOUNT", "STATUS_NOLOGON_WORKSTATION_TRUST_ACCOUNT"]),
        ],
        remedies: {
            "nologon_workstation" => "A gMSA is an account of a computer: no user logs on with its name. Name no account (`net use`, `runas`, connection strings); let the process run as the gMSA, in a container as NETWORK SERVICE.",
        };
    SERVICE_LOGON: "service-logon", Error, "A Windows service cannot log on as its account.",
        "Write the account with `$` and without a password (`CONTOSO\\NAME$`), and run `Test-ADServiceAccount NAME` on the machine: it must say True. In a container, run the service as NETWORK SERVICE.",
        words: [Message("service was unable to log on as"), Codes(&["ERROR_SERVICE_LOGON_FAILED", "ERROR_INCORRECT_ACCOUNT_TYPE"])],
        remedies: {
            "incorrect_account_type" => "The account is managed by the domain: nobody sets its password by hand, and this machine may not use it. Allow the machine to retrieve the password, then `Install-ADServiceAccount NAME` and `Test-ADServiceAccount NAME` on it.",
        };
} }
