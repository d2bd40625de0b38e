//! Windows statuses: their forms and messages. Names and values are in [`super::symbols`].
//!
//! Sources of their meanings: the troubleshooting pages of Kubernetes and Microsoft on gMSA for Windows containers, and Microsoft's page
//! on the error codes of the Host Compute System.

use super::{
    Rule, Words,
    meaning::{Explanation, Meaning, Phase},
    symbols, words,
};

/// A status in any of its forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowsStatus(pub u32);

/// The bit of an HRESULT that wraps an NTSTATUS: `FACILITY_NT_BIT`.
const NT_BIT: u32 = 0x1000_0000;
/// The upper half of an HRESULT that wraps a Win32 code: severity error, `FACILITY_WIN32`.
const WIN32: u32 = 0x8007_0000;
/// The upper half of the codes of the Host Compute System, as HRESULT and as NTSTATUS.
const COMPUTE: (u32, u32) = (0x8037_0000, 0xc037_0000);
const UPPER: u32 = 0xffff_0000;

impl WindowsStatus {
    /// The form in the table: Win32 codes and NTSTATUS unwrapped, everything else as HRESULT.
    fn normal(self) -> u32 {
        match self.0 {
            value if value & UPPER == WIN32 => value & !UPPER,
            value if value & 0xf000_0000 == 0xc000_0000 | NT_BIT => Self(value & !NT_BIT).normal(),
            value if value & UPPER == COMPUTE.1 => COMPUTE.0 | value & !UPPER,
            value => value,
        }
    }

    /// The rule for it in a phase, if known.
    pub fn rule(self, phase: Phase) -> Option<&'static Rule> {
        let name = symbols::name(self.normal())?;
        let is_of = |words: &Words| match words {
            Words::Codes(names) => names.contains(&name),
            Words::StartCodes(names) => phase == Phase::Start && names.contains(&name),
            Words::RunningCodes(names) => phase == Phase::Running && names.contains(&name),
            _ => false,
        };
        words().find(|(_, words)| is_of(words)).map(|(rule, _)| rule)
    }

    /// Its explanation for one phase, or for both.
    pub(super) fn explain(self, phase: Option<Phase>) -> Option<Explanation> {
        if self.0 == 0 {
            return Some(Explanation {
                found: "0: success".to_owned(),
                meaning: Meaning::NoFault("The step succeeded.".to_owned()),
            });
        }
        let rules: Vec<_> = match (self.rule(Phase::Start), self.rule(Phase::Running)) {
            (None, None) => return None,
            (Some(start), Some(running)) if start == running => vec![(None, start)],
            (start, running) => {
                let known = [(Phase::Start, start), (Phase::Running, running)];
                let known = known.into_iter().filter_map(|(of, rule)| Some((Some(of), rule?)));
                // A code without a meaning in this phase keeps its meaning in the other phase, which is named.
                let other = !self.is_vague() && known.clone().all(|(of, _)| of != phase);
                known.filter(|(of, _)| phase.is_none() || other || *of == phase).collect()
            }
        };
        (!rules.is_empty()).then(|| Explanation { found: self.found(), meaning: Meaning::Fault(rules) })
    }

    /// Whether it is too general: it counts only if a logon or the start of a container failed.
    pub(super) fn is_vague(self) -> bool {
        [
            "ERROR_ACCESS_DENIED",
            "STATUS_ACCESS_DENIED",
            "ERROR_INVALID_PARAMETER",
            "STATUS_INVALID_PARAMETER",
            "ERROR_BAD_NETPATH",
            "ERROR_NOT_SUPPORTED",
            "STATUS_NOT_SUPPORTED",
            "ERROR_FILE_NOT_FOUND",
            "ERROR_PATH_NOT_FOUND",
            "ERROR_DIRECTORY",
            "ERROR_DISK_FULL",
            "ERROR_SERVICE_DISABLED",
            "ERROR_SERVICE_DOES_NOT_EXIST",
            "E_FAIL",
            "E_UNEXPECTED",
            "STATUS_UNSUCCESSFUL",
            "E_NOINTERFACE",
            "ERROR_NOT_FOUND",
            "STATUS_NOT_FOUND",
            "ERROR_INTERNAL_ERROR",
            "STATUS_INTERNAL_ERROR",
        ]
        .contains(&self.name())
    }

    /// Whether Microsoft has a name for it.
    pub(super) fn is_named(self) -> bool {
        symbols::name(self.normal()).is_some()
    }

    /// Whether it has the form of a failed HRESULT or NTSTATUS, so it counts anywhere in a text.
    pub(super) fn is_failure(self) -> bool {
        self.0 > i32::MAX as u32
    }

    /// Whether its upper digits name its speaker: a failed HRESULT or NTSTATUS, or MIT Kerberos. Small negative numbers are errors of others.
    pub(super) fn has_form(self) -> bool {
        matches!(self.0 >> 28, 8 | 0xc | 0xd) || symbols::of_mit(self.0).is_some()
    }

    /// Its name, or the part of Windows that issues such statuses.
    pub fn name(self) -> &'static str {
        let value = self.normal();
        symbols::name(value).unwrap_or_else(|| symbols::facility(value))
    }

    /// The explanation of a small number without words around it.
    pub(super) fn ambiguous(self) -> Explanation {
        let value = self.0;
        let elsewhere = symbols::elsewhere(value);
        let what = format!(
            "{value} has several meanings: the exit code of a program, or a code of Windows (`net helpmsg {value}`){elsewhere}. Give the words beside \
             it, such as `System error {value}`."
        );
        Explanation { found: self.found(), meaning: Meaning::Unknown(what) }
    }

    /// The explanation of an unknown status: its name if Microsoft has one, the source of such codes, and where to look.
    pub(super) fn unknown(self) -> Explanation {
        let value = self.normal();
        let how = match value {
            0..=0xffff => format!("`net helpmsg {value}` on Windows says what it means{}.", symbols::elsewhere(self.0)),
            _ => format!("`certutil -error {value:#010x}` on Windows says what it means."),
        };
        let what = match symbols::name(value) {
            Some(_) if value > 0xffff => {
                format!("It is {} (facility {}). ", symbols::facility(value), (value >> 16) & 0x0fff)
            }
            Some(_) => "It is a Win32 code. ".to_owned(),
            None => String::new(),
        };
        Explanation {
            found: self.found(),
            meaning: Meaning::Unknown(format!(
                "{what}The cause is unknown. {how} The node has the rest: the logs Microsoft-Windows-Containers-CCG/Admin and \
                 Microsoft-Windows-Hyper-V-Compute-Admin, whose messages `kubectl gmsa explain` reads."
            )),
        }
    }

    /// The status as written, with its name and the status that it wraps: `0xd0020017: RPC_NT_SERVER_UNAVAILABLE (NTSTATUS 0xc0020017)`.
    fn found(self) -> String {
        let written = if self.0 <= 0xffff { self.0.to_string() } else { format!("{:#010x}", self.0) };
        let form = match self.normal() {
            value if value == self.0 => String::new(),
            value @ 0..=0xffff => format!(" (Win32 {value})"),
            value if value & UPPER == COMPUTE.0 => format!(" (HRESULT {value:#010x})"),
            value => format!(" (NTSTATUS {value:#010x})"),
        };
        format!("{written}: {}{form}", self.name())
    }
}

/// The statuses named in a text in its normal form: `nltest` prints names.
pub(super) fn named(text: &str) -> impl Iterator<Item = WindowsStatus> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.contains('_')).filter_map(of_name)
}

/// The status of this name.
pub(super) fn of_name(word: &str) -> Option<WindowsStatus> {
    // Samba's notation.
    let name = word.get(3..).filter(|name| {
        let is_of_samba = word.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("nt_"));
        is_of_samba && name.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("status_"))
    });
    symbols::value(name.unwrap_or(word)).map(WindowsStatus)
}

/// Parts of Windows messages that identify statuses, in lower case, from `net helpmsg`. The last are translations of the most common
/// messages, because Windows writes in its own language.
pub(super) static MESSAGES: &[(&str, &str)] = &[
    ("ERROR_NOLOGON_WORKSTATION_TRUST_ACCOUNT", "the account used is a computer account"),
    ("ERROR_LOGIN_WKSTA_RESTRICTION", "account is not authorized to log in from this station"),
    ("ERROR_MUTUAL_AUTH_FAILED", "mutual authentication failed. the server's password is out of date"),
    ("NERR_TimeDiffAtDC", "clock on this system is not synchronized with the primary domain controller"),
    ("ERROR_DS_DNS_LOOKUP_FAILURE", "directory service is unable to proceed because of a dns lookup failure"),
    ("ERROR_DS_DNS_LOOKUP_FAILURE", "dsa operation is unable to proceed because of a dns lookup failure"),
    ("ERROR_INVALID_LOGON_HOURS", "account has time restrictions"),
    ("ERROR_INCORRECT_ACCOUNT_TYPE", "system is not authoritative for the specified account"),
    ("ERROR_DS_OPERATIONS_ERROR", "an operations error occurred"),
    ("SEC_E_INVALID_TOKEN", "token supplied to the function is invalid"),
    ("RPC_S_CALL_FAILED_DNE", "remote procedure call failed and did not execute"),
    ("ERROR_INVALID_PASSWORD", "specified network password is not correct"),
    ("ERROR_LOGON_FAILURE", "the user name or password is incorrect"),
    ("SEC_E_LOGON_DENIED", "the logon attempt failed"),
    ("STATUS_LOGON_FAILURE", "the attempted logon is invalid"),
    ("ERROR_ACCOUNT_LOCKED_OUT", "referenced account is currently locked out"),
    ("ERROR_ACCOUNT_DISABLED", "account is currently disabled"),
    ("SEC_E_DOWNGRADE_DETECTED", "detected a possible attempt to compromise security"),
    ("ERROR_NETNAME_DELETED", "specified network name is no longer available"),
    ("ERROR_NETWORK_UNREACHABLE", "network location cannot be reached"),
    ("ERROR_BAD_NETPATH", "network path was not found"),
    ("ERROR_NO_LOGON_SERVERS", "no logon servers available"),
    ("ERROR_NO_SUCH_DOMAIN", "domain either does not exist or could not be contacted"),
    ("EPT_S_NOT_REGISTERED", "no more endpoints available from the endpoint mapper"),
    ("ERROR_DOMAIN_CONTROLLER_NOT_FOUND", "could not find the domain controller for this domain"),
    ("SEC_E_NO_AUTHENTICATING_AUTHORITY", "no authority could be contacted for authentication"),
    ("RPC_S_SERVER_UNAVAILABLE", "rpc server is unavailable"),
    ("RPC_S_CALL_FAILED", "remote procedure call failed"),
    ("ERROR_NETLOGON_NOT_STARTED", "attempt was made to logon, but the network logon service was not started"),
    ("ERROR_NO_SUCH_USER", "specified account does not exist"),
    ("ERROR_SEM_TIMEOUT", "semaphore timeout period has expired"),
    ("WSAETIMEDOUT", "connected party did not properly respond after a period of time"),
    ("ERROR_PROCESS_ABORTED", "process terminated unexpectedly"),
    ("ERROR_NONE_MAPPED", "no mapping between account names and security ids"),
    ("ERROR_NO_TRUST_LSA_SECRET", "workstation does not have a trust secret"),
    ("ERROR_NO_TRUST_SAM_ACCOUNT", "does not have a computer account for this workstation trust relationship"),
    ("ERROR_TRUSTED_DOMAIN_FAILURE", "trust relationship between the primary domain and the trusted domain failed"),
    ("ERROR_TRUSTED_RELATIONSHIP_FAILURE", "trust relationship between this workstation and the primary domain failed"),
    ("ERROR_TIME_SKEW", "time and/or date difference between the client and server"),
    ("SEC_E_TIME_SKEW", "clocks on the client and server machines are skewed"),
    ("ERROR_WRONG_TARGET_NAME", "target account name is incorrect"),
    ("SEC_E_TARGET_UNKNOWN", "specified target is unknown or unreachable"),
    ("SEC_E_WRONG_PRINCIPAL", "target principal name is incorrect"),
    ("ERROR_NO_SUCH_LOGON_SESSION", "specified logon session does not exist"),
    ("SEC_E_NO_CREDENTIALS", "no credentials are available in the security package"),
    ("CO_E_RUNAS_LOGON_FAILURE", "server process could not be started because the configured identity is incorrect"),
    ("REGDB_E_CLASSNOTREG", "class not registered"),
    ("CO_E_SERVER_EXEC_FAILURE", "server execution failed"),
    ("ERROR_NO_SYSTEM_RESOURCES", "insufficient system resources exist"),
    ("ERROR_COMMITMENT_LIMIT", "paging file is too small for this operation"),
    ("HCN_E_NETWORK_NOT_FOUND", "the network was not found"),
    ("HCN_E_ENDPOINT_NOT_FOUND", "the endpoint was not found"),
    ("HCN_E_NETWORK_ALREADY_EXISTS", "a network with this name already exists"),
    ("HCN_E_NAMESPACE_ATTACH_FAILED", "requested operation for attach namespace failed"),
    ("ERROR_DLL_INIT_FAILED", "a dynamic link library (dll) initialization routine failed"),
    ("ERROR_MOD_NOT_FOUND", "specified module could not be found"),
    ("ERROR_BAD_EXE_FORMAT", "not a valid win32 application"),
    ("ERROR_PASSWORD_EXPIRED", "password for this account has expired"),
    ("ERROR_PASSWORD_MUST_CHANGE", "password must be changed before"),
    ("ERROR_ACCOUNT_RESTRICTION", "account restrictions are preventing"),
    ("ERROR_LOGON_TYPE_NOT_GRANTED", "has not been granted the requested logon type"),
    ("ERROR_SERVICE_LOGON_FAILED", "service did not start due to a logon failure"),
    ("ERROR_ACCOUNT_EXPIRED", "user's account has expired"),
    ("ERROR_DS_SERVER_DOWN", "the server is not operational"),
    ("ERROR_DS_UNAVAILABLE", "the directory service is unavailable"),
    ("ERROR_DS_NO_SUCH_OBJECT", "there is no such object on the server"),
    ("ERROR_DS_OBJ_NOT_FOUND", "directory object not found"),
    ("ERROR_DS_INSUFF_ACCESS_RIGHTS", "insufficient access rights to perform the operation"),
    ("DNS_ERROR_RCODE_SERVER_FAILURE", "dns server failure"),
    ("DNS_ERROR_RCODE_NAME_ERROR", "dns name does not exist"),
    ("DNS_ERROR_RCODE_REFUSED", "dns operation refused"),
    ("DNS_INFO_NO_RECORDS", "no records found for given dns query"),
    ("DNS_ERROR_NO_DNS_SERVERS", "no dns servers configured for local system"),
    ("ERROR_BAD_NET_NAME", "network name cannot be found"),
    ("ERROR_SESSION_CREDENTIAL_CONFLICT", "multiple connections to a server or shared resource by the same user"),
    ("NTE_NO_KEY", "key does not exist"),
    ("NTE_NO_KEY", "schlüssel ist nicht vorhanden"),
    ("NTE_NO_KEY", "la clé n'existe pas"),
    ("NTE_NO_KEY", "la clave no existe"),
    ("ERROR_DS_UNWILLING_TO_PERFORM", "server is unwilling to process the request"),
    ("SEC_E_UNTRUSTED_ROOT", "certificate chain was issued by an authority that is not trusted"),
    ("SEC_E_CERT_EXPIRED", "received certificate has expired"),
    ("STATUS_NTLM_BLOCKED", "since ntlm was blocked"),
    ("HCS_E_TERMINATED_DURING_START", "exited unexpectedly while it was being started"),
    ("HCS_E_UNEXPECTED_EXIT", "compute system exited unexpectedly"),
    ("HCS_E_INVALID_STATE", "operation is not valid in the current state"),
    ("HCS_E_CONNECTION_TIMEOUT", "response was not received from the virtual machine"),
    ("ERROR_TRUSTED_RELATIONSHIP_FAILURE", "vertrauensstellung zwischen dieser arbeitsstation und der primären domäne"),
    ("RPC_S_SERVER_UNAVAILABLE", "rpc-server ist nicht verfügbar"),
    ("ERROR_LOGON_FAILURE", "benutzername oder das kennwort ist falsch"),
    ("ERROR_LOGON_FAILURE", "unbekannter benutzername oder falsches kennwort"),
    ("ERROR_NO_LOGON_SERVERS", "keine anmeldeserver"),
    ("ERROR_NO_SUCH_DOMAIN", "angegebene domäne ist nicht vorhanden"),
    ("SEC_E_WRONG_PRINCIPAL", "zielprinzipalname ist falsch"),
    ("ERROR_INVALID_PASSWORD", "das angegebene netzwerkkennwort ist falsch"),
    ("ERROR_NO_SUCH_LOGON_SESSION", "angegebene anmeldesitzung ist nicht vorhanden"),
    ("ERROR_NO_TRUST_SAM_ACCOUNT", "kein computerkonto für diese arbeitsstationsvertrauensstellung"),
    ("ERROR_ACCOUNT_LOCKED_OUT", "konto ist momentan gesperrt"),
    (
        "ERROR_TRUSTED_RELATIONSHIP_FAILURE",
        "relation d'approbation entre cette station de travail et le domaine principal a échoué",
    ),
    ("RPC_S_SERVER_UNAVAILABLE", "le serveur rpc n'est pas disponible"),
    ("ERROR_LOGON_FAILURE", "nom d'utilisateur ou le mot de passe est incorrect"),
    ("ERROR_NO_SUCH_DOMAIN", "domaine spécifié n'existe pas ou n'a pas pu être contacté"),
    ("ERROR_NO_LOGON_SERVERS", "aucun serveur d'accès n'est actuellement disponible"),
    ("SEC_E_WRONG_PRINCIPAL", "le nom principal de la cible est incorrect"),
    (
        "ERROR_TRUSTED_RELATIONSHIP_FAILURE",
        "relación de confianza entre esta estación de trabajo y el dominio principal",
    ),
    ("RPC_S_SERVER_UNAVAILABLE", "servidor rpc no está disponible"),
    ("ERROR_LOGON_FAILURE", "nombre de usuario o la contraseña no son correctos"),
    ("ERROR_NO_SUCH_DOMAIN", "dominio especificado no existe o no se pudo"),
    ("SEC_E_WRONG_PRINCIPAL", "nombre principal de destino es incorrecto"),
    ("ERROR_TRUSTED_RELATIONSHIP_FAILURE", "relazione di trust tra la workstation e il dominio primario"),
    ("RPC_S_SERVER_UNAVAILABLE", "server rpc non disponibile"),
    ("ERROR_TRUSTED_RELATIONSHIP_FAILURE", "relação de confiança entre esta estação de trabalho e o domínio primário"),
    ("RPC_S_SERVER_UNAVAILABLE", "servidor rpc não está disponível"),
    ("ERROR_TRUSTED_RELATIONSHIP_FAILURE", "vertrouwensrelatie tussen dit werkstation en het primaire domein"),
    ("RPC_S_SERVER_UNAVAILABLE", "rpc-server is niet beschikbaar"),
    ("ERROR_TRUSTED_RELATIONSHIP_FAILURE", "このワークステーションとプライマリ ドメインとの信頼関係に失敗しました"),
    ("RPC_S_SERVER_UNAVAILABLE", "rpc サーバーを利用できません"),
    ("ERROR_LOGON_FAILURE", "ユーザー名またはパスワードが正しくありません"),
    ("ERROR_TRUSTED_RELATIONSHIP_FAILURE", "此工作站和主域间的信任关系失败"),
    ("RPC_S_SERVER_UNAVAILABLE", "rpc 服务器不可用"),
    ("RPC_S_SERVER_UNAVAILABLE", "сервер rpc недоступен"),
    ("ERROR_TRUSTED_RELATIONSHIP_FAILURE", "доверительные отношения между этой рабочей станцией и основным доменом"),
    ("RPC_S_SERVER_UNAVAILABLE", "serwer rpc jest niedostępny"),
    ("ERROR_TRUSTED_RELATIONSHIP_FAILURE", "relacja zaufania między tą stacją roboczą a domeną podstawową"),
    ("ERROR_NO_SUCH_USER", "das angegebene konto ist nicht vorhanden"),
    ("ERROR_LOGON_FAILURE", "用户名或密码不正确"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_status_is_the_same_code() {
        for (written, name) in [
            (0xd002_0017, "RPC_NT_SERVER_UNAVAILABLE"),
            (0xc002_0017, "RPC_NT_SERVER_UNAVAILABLE"),
            (0x8007_06ba, "RPC_S_SERVER_UNAVAILABLE"),
            (1722, "RPC_S_SERVER_UNAVAILABLE"),
            (0xc037_0101, "HCS_E_IMAGE_MISMATCH"),
            (0x8037_0101, "HCS_E_IMAGE_MISMATCH"),
            (0xd037_0101, "HCS_E_IMAGE_MISMATCH"),
            (0xd000_006d, "STATUS_LOGON_FAILURE"),
        ] {
            assert_eq!(WindowsStatus(written).name(), name, "{written:#x}");
            assert!(WindowsStatus(written).explain(None).is_some(), "{written:#x}");
        }
        for unknown in [1, 0x0001_0005, 0x8007_0001, 0xd000_00ff, u32::MAX] {
            assert_eq!(WindowsStatus(unknown).explain(None), None, "{unknown:#x}");
        }
    }

    #[test]
    fn every_name_is_one_of_windows() {
        let of_rules = words().flat_map(|(_, words)| match words {
            Words::Codes(names) | Words::StartCodes(names) | Words::RunningCodes(names) => names.to_vec(),
            _ => Vec::new(),
        });
        for name in of_rules.chain(MESSAGES.iter().map(|(name, _)| *name)) {
            let status = WindowsStatus(symbols::value(name).unwrap_or_else(|| panic!("{name}")));
            assert_eq!(status.normal(), status.0, "{name}");
            assert!(status.explain(None).is_some(), "{name}");
        }
    }
}
