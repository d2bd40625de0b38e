//! Status codes: the table, and the forms in which the same status is written.
//!
//! The codes are those of `winerror.h` (Win32, SSPI, COM), `lmerr.h`, `ntstatus.h` ([MS-ERREF] 2.3.1) and Microsoft's page on the error
//! codes of the Host Compute System; what they mean here is from the troubleshooting pages of Kubernetes and Microsoft on gMSA for
//! Windows containers. `tests/windows.sh` compares the values with the headers of mingw-w64, which lack those of the Host Compute System.
//! Codes that say nothing of GMSA are in [`symbols`](super::symbols), with their names alone.

use super::{
    Rule, Words,
    meaning::{Explanation, Meaning, Phase},
    symbols, words,
};

/// A status as a text writes it, in any of its forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub u32);

/// A status that is known here.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    pub(super) value: u32,
    pub name: &'static str,
    /// A part of its message, in lower case; empty where it is not recognized by it.
    pub(super) message: &'static str,
}

/// In an HRESULT, says that the rest is an NTSTATUS: `FACILITY_NT_BIT`.
const NT_BIT: u32 = 0x1000_0000;
/// The upper half of an HRESULT whose lower half is a Win32 code: severity error, `FACILITY_WIN32`.
const WIN32: u32 = 0x8007_0000;
/// The upper half of the codes of the Host Compute System, as HRESULT and as NTSTATUS.
const COMPUTE: (u32, u32) = (0x8037_0000, 0xc037_0000);
const UPPER: u32 = 0xffff_0000;

impl Status {
    /// The form that the table has: a Win32 code and an NTSTATUS as such, everything else as an HRESULT.
    fn normal(self) -> u32 {
        match self.0 {
            value if value & UPPER == WIN32 => value & !UPPER,
            value if value & 0xf000_0000 == 0xc000_0000 | NT_BIT => Self(value & !NT_BIT).normal(),
            value if value & UPPER == COMPUTE.1 => COMPUTE.0 | value & !UPPER,
            value => value,
        }
    }

    /// The code, where it is known here.
    pub fn code(self) -> Option<&'static Code> {
        let value = self.normal();
        CODES.iter().find(|code| code.value == value)
    }

    /// What it means in one phase, or in both.
    pub(super) fn explain(self, phase: Option<Phase>) -> Option<Explanation> {
        if self.0 == 0 {
            return Some(Explanation {
                found: "0: success".to_owned(),
                meaning: Meaning::NoFault("The step succeeded."),
            });
        }
        let code = self.code()?;
        let rules: Vec<_> = match (code.rule_in(Phase::Start), code.rule_in(Phase::Running)) {
            (Some(start), Some(running)) if start == running => vec![(None, start)],
            (start, running) => {
                let known = [(Phase::Start, start), (Phase::Running, running)];
                let known = known.into_iter().filter_map(|(of, rule)| Some((Some(of), rule?)));
                // A code that has no meaning in the phase of the text keeps that of the other, which is named.
                let other = known.clone().all(|(of, _)| of != phase);
                known.filter(|(of, _)| phase.is_none() || other || *of == phase).collect()
            }
        };
        let found = format!("{}: {}{}", self.written(), code.name, self.form());
        Some(Explanation { found, meaning: Meaning::Fault(rules) })
    }

    /// Whether anything can fail with it, so that it says something only where a logon or the start of a container failed.
    pub(super) fn is_vague(self) -> bool {
        [
            ERROR_ACCESS_DENIED,
            STATUS_ACCESS_DENIED,
            ERROR_INVALID_PARAMETER,
            STATUS_INVALID_PARAMETER,
            ERROR_BAD_NETPATH,
        ]
        .contains(&self.normal())
    }

    /// Whether it has the form of a failed HRESULT or NTSTATUS, so that it is one wherever it stands.
    pub(super) fn is_failure(self) -> bool {
        self.0 > i32::MAX as u32
    }

    /// Its name, or which part of Windows makes such statuses.
    pub fn name(self) -> &'static str {
        let value = self.normal();
        symbols::name(value).unwrap_or_else(|| symbols::facility(value))
    }

    /// What can be said of any status: its name where Microsoft has one, what makes such codes, and where to look.
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
            found: format!("{}: {}{}", self.written(), self.name(), self.form()),
            meaning: Meaning::Unknown(format!(
                "{what}No cause is known here. {how} The node has the rest: the logs Microsoft-Windows-Containers-CCG/Admin and \
                 Microsoft-Windows-Hyper-V-Compute-Admin, whose messages `kubectl gmsa explain` reads."
            )),
        }
    }

    fn written(self) -> String {
        if self.0 <= 0xffff { self.0.to_string() } else { format!("{:#010x}", self.0) }
    }

    /// Which other status it stands for.
    fn form(self) -> String {
        match self.normal() {
            value if value == self.0 => String::new(),
            value @ 0..=0xffff => format!(" (Win32 {value})"),
            value if value & UPPER == COMPUTE.0 => format!(" (HRESULT {value:#010x})"),
            value => format!(" (NTSTATUS {value:#010x})"),
        }
    }
}

/// The statuses whose names a text holds: `nltest` prints them.
pub(super) fn named(text: &str) -> impl Iterator<Item = Status> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.contains('_')).filter_map(|word| {
        // As Samba writes them.
        let name = if word.starts_with("NT_STATUS_") { word.trim_start_matches("NT_") } else { word };
        symbols::value(name).map(Status)
    })
}

macro_rules! codes {
    ($($value:literal $name:ident: $message:literal;)*) => {
        $(
            #[allow(non_upper_case_globals, reason = "names of Windows")]
            pub(super) const $name: u32 = $value;
        )*

        pub(super) static CODES: &[Code] = &[$(Code { value: $value, name: stringify!($name), message: $message }),*];
    };
}

/// What Windows writes in German for the most common of them, in lower case: its messages are in its own language.
pub(super) static GERMAN: &[(&str, u32)] = &[
    ("vertrauensstellung zwischen dieser arbeitsstation und der primären domäne", ERROR_TRUSTED_RELATIONSHIP_FAILURE),
    ("rpc-server ist nicht verfügbar", RPC_S_SERVER_UNAVAILABLE),
    ("benutzername oder das kennwort ist falsch", ERROR_LOGON_FAILURE),
    ("unbekannter benutzername oder falsches kennwort", ERROR_LOGON_FAILURE),
    ("keine anmeldeserver", ERROR_NO_LOGON_SERVERS),
    ("angegebene domäne ist nicht vorhanden", ERROR_NO_SUCH_DOMAIN),
    ("zielprinzipalname ist falsch", SEC_E_WRONG_PRINCIPAL),
];

// With the message of Windows, which `net helpmsg` prints, as far as it is recognized: a part of it in lower case.
codes! {
    5 ERROR_ACCESS_DENIED: "";
    86 ERROR_INVALID_PASSWORD: "specified network password is not correct";
    1326 ERROR_LOGON_FAILURE: "the user name or password is incorrect";
    0x8009_030c SEC_E_LOGON_DENIED: "the logon attempt failed";
    0xc000_0022 STATUS_ACCESS_DENIED: "";
    0xc000_006a STATUS_WRONG_PASSWORD: "";
    0xc000_006d STATUS_LOGON_FAILURE: "the attempted logon is invalid";
    1909 ERROR_ACCOUNT_LOCKED_OUT: "referenced account is currently locked out";
    0xc000_0234 STATUS_ACCOUNT_LOCKED_OUT: "";
    0xc000_0193 STATUS_ACCOUNT_EXPIRED: "";
    1331 ERROR_ACCOUNT_DISABLED: "account is currently disabled";
    0xc000_0072 STATUS_ACCOUNT_DISABLED: "";
    1935 ERROR_AUTHENTICATION_FIREWALL_FAILED: "";
    0xc000_0413 STATUS_AUTHENTICATION_FIREWALL_FAILED: "";
    0x8009_0350 SEC_E_DOWNGRADE_DETECTED: "detected a possible attempt to compromise security";
    0xc000_0388 STATUS_DOWNGRADE_DETECTED: "";
    64 ERROR_NETNAME_DELETED: "specified network name is no longer available";
    1225 ERROR_CONNECTION_REFUSED: "";
    1231 ERROR_NETWORK_UNREACHABLE: "network location cannot be reached";
    1232 ERROR_HOST_UNREACHABLE: "";
    10051 WSAENETUNREACH: "";
    10054 WSAECONNRESET: "";
    10061 WSAECONNREFUSED: "";
    10065 WSAEHOSTUNREACH: "";
    11001 WSAHOST_NOT_FOUND: "";
    12002 ERROR_WINHTTP_TIMEOUT: "";
    12007 ERROR_WINHTTP_NAME_NOT_RESOLVED: "";
    12029 ERROR_WINHTTP_CANNOT_CONNECT: "";
    12175 ERROR_WINHTTP_SECURE_FAILURE: "";
    53 ERROR_BAD_NETPATH: "network path was not found";
    1311 ERROR_NO_LOGON_SERVERS: "no logon servers available";
    1355 ERROR_NO_SUCH_DOMAIN: "domain either does not exist or could not be contacted";
    1753 EPT_S_NOT_REGISTERED: "no more endpoints available from the endpoint mapper";
    1908 ERROR_DOMAIN_CONTROLLER_NOT_FOUND: "could not find the domain controller for this domain";
    2453 NERR_DCNotFound: "";
    0x8009_0311 SEC_E_NO_AUTHENTICATING_AUTHORITY: "no authority could be contacted for authentication";
    0xc000_005e STATUS_NO_LOGON_SERVERS: "";
    0xc000_00df STATUS_NO_SUCH_DOMAIN: "";
    1722 RPC_S_SERVER_UNAVAILABLE: "rpc server is unavailable";
    1726 RPC_S_CALL_FAILED: "remote procedure call failed";
    0xc002_0017 RPC_NT_SERVER_UNAVAILABLE: "";
    0xc002_001b RPC_NT_CALL_FAILED: "";
    1792 ERROR_NETLOGON_NOT_STARTED: "attempt was made to logon, but the network logon service was not started";
    0xc000_0192 STATUS_NETLOGON_NOT_STARTED: "";
    1317 ERROR_NO_SUCH_USER: "specified account does not exist";
    121 ERROR_SEM_TIMEOUT: "semaphore timeout period has expired";
    1460 ERROR_TIMEOUT: "";
    10060 WSAETIMEDOUT: "connected party did not properly respond after a period of time";
    0x8004_d01b XACT_E_TMNOTAVAILABLE: "";
    0x8004_d01c XACT_E_CONNECTION_DOWN: "";
    0x8004_d024 XACT_E_NETWORK_TX_DISABLED: "";
    0x8004_d025 XACT_E_PARTNER_NETWORK_TX_DISABLED: "";
    0x8004_d02a XACT_E_PUSH_COMM_FAILURE: "";
    0x8004_d02b XACT_E_PULL_COMM_FAILURE: "";
    1067 ERROR_PROCESS_ABORTED: "process terminated unexpectedly";
    1332 ERROR_NONE_MAPPED: "no mapping between account names and security ids";
    0xc000_0064 STATUS_NO_SUCH_USER: "";
    1786 ERROR_NO_TRUST_LSA_SECRET: "workstation does not have a trust secret";
    1787 ERROR_NO_TRUST_SAM_ACCOUNT: "does not have a computer account for this workstation trust relationship";
    1788 ERROR_TRUSTED_DOMAIN_FAILURE: "trust relationship between the primary domain and the trusted domain failed";
    1789 ERROR_TRUSTED_RELATIONSHIP_FAILURE: "trust relationship between this workstation and the primary domain failed";
    0xc000_018a STATUS_NO_TRUST_LSA_SECRET: "";
    0xc000_018b STATUS_NO_TRUST_SAM_ACCOUNT: "";
    0xc000_018c STATUS_TRUSTED_DOMAIN_FAILURE: "";
    0xc000_018d STATUS_TRUSTED_RELATIONSHIP_FAILURE: "";
    1398 ERROR_TIME_SKEW: "time and/or date difference between the client and server";
    0x8009_0324 SEC_E_TIME_SKEW: "clocks on the client and server machines are skewed";
    0xc000_0133 STATUS_TIME_DIFFERENCE_AT_DC: "";
    1396 ERROR_WRONG_TARGET_NAME: "target account name is incorrect";
    0x8009_0303 SEC_E_TARGET_UNKNOWN: "specified target is unknown or unreachable";
    0x8009_0322 SEC_E_WRONG_PRINCIPAL: "target principal name is incorrect";
    0x8009_0342 SEC_E_KDC_UNKNOWN_ETYPE: "encryption type requested is not supported by the kdc";
    0xc000_02fd STATUS_KDC_UNKNOWN_ETYPE: "";
    1312 ERROR_NO_SUCH_LOGON_SESSION: "specified logon session does not exist";
    0x8009_030e SEC_E_NO_CREDENTIALS: "no credentials are available in the security package";
    0xc000_005f STATUS_NO_SUCH_LOGON_SESSION: "";
    0x8000_401a CO_E_RUNAS_LOGON_FAILURE: "server process could not be started because the configured identity is incorrect";
    0x8004_0154 REGDB_E_CLASSNOTREG: "class not registered";
    0x8008_0005 CO_E_SERVER_EXEC_FAILURE: "server execution failed";
    1450 ERROR_NO_SYSTEM_RESOURCES: "insufficient system resources exist";
    1455 ERROR_COMMITMENT_LIMIT: "paging file is too small for this operation";
    0xc000_0017 STATUS_NO_MEMORY: "";
    0xc000_009a STATUS_INSUFFICIENT_RESOURCES: "";
    0xc000_012d STATUS_COMMITMENT_LIMIT: "";
    87 ERROR_INVALID_PARAMETER: "";
    0x803b_0001 HCN_E_NETWORK_NOT_FOUND: "the network was not found";
    0x803b_0002 HCN_E_ENDPOINT_NOT_FOUND: "the endpoint was not found";
    0x803b_0010 HCN_E_NETWORK_ALREADY_EXISTS: "a network with this name already exists";
    0x803b_0014 HCN_E_ENDPOINT_ALREADY_ATTACHED: "";
    0x803b_002e HCN_E_NAMESPACE_ATTACH_FAILED: "requested operation for attach namespace failed";
    0xc000_000d STATUS_INVALID_PARAMETER: "";
    0xc000_00a7 STATUS_BAD_VALIDATION_CLASS: "";
    0xc000_0142 STATUS_DLL_INIT_FAILED: "";
    1114 ERROR_DLL_INIT_FAILED: "a dynamic link library (dll) initialization routine failed";
    0xc000_0135 STATUS_DLL_NOT_FOUND: "";
    0xc000_0138 STATUS_ORDINAL_NOT_FOUND: "";
    0xc000_0139 STATUS_ENTRYPOINT_NOT_FOUND: "";
    0xc000_007b STATUS_INVALID_IMAGE_FORMAT: "";
    126 ERROR_MOD_NOT_FOUND: "specified module could not be found";
    193 ERROR_BAD_EXE_FORMAT: "not a valid win32 application";
    0xc000_0005 STATUS_ACCESS_VIOLATION: "";
    0xc000_00fd STATUS_STACK_OVERFLOW: "";
    0xc000_0374 STATUS_HEAP_CORRUPTION: "";
    0xc000_0409 STATUS_STACK_BUFFER_OVERRUN: "";
    0xe043_4352 CLR_EXCEPTION: "";
    0xe043_4f4d EXCEPTION_COMPLUS: "";
    0xe06d_7363 EXCEPTION_MSC: "";
    0x8013_1623 COR_E_FAILFAST: "";
    0x8000_0003 STATUS_BREAKPOINT: "";
    0xc000_001d STATUS_ILLEGAL_INSTRUCTION: "";
    0xc000_0094 STATUS_INTEGER_DIVIDE_BY_ZERO: "";
    0xc000_0417 STATUS_INVALID_CRUNTIME_PARAMETER: "";
    0xc000_0420 STATUS_ASSERTION_FAILURE: "";
    0xc000_0602 STATUS_FAIL_FAST_EXCEPTION: "";
    0xc000_013a STATUS_CONTROL_C_EXIT: "";
    0x4001_0004 DBG_TERMINATE_PROCESS: "";
    1330 ERROR_PASSWORD_EXPIRED: "password for this account has expired";
    1907 ERROR_PASSWORD_MUST_CHANGE: "password must be changed before";
    0xc000_0071 STATUS_PASSWORD_EXPIRED: "";
    0xc000_0224 STATUS_PASSWORD_MUST_CHANGE: "";
    1327 ERROR_ACCOUNT_RESTRICTION: "account restrictions are preventing";
    1329 ERROR_INVALID_WORKSTATION: "";
    0xc000_006e STATUS_ACCOUNT_RESTRICTION: "";
    0xc000_0070 STATUS_INVALID_WORKSTATION: "";
    1385 ERROR_LOGON_TYPE_NOT_GRANTED: "has not been granted the requested logon type";
    0xc000_015b STATUS_LOGON_TYPE_NOT_GRANTED: "";
    1069 ERROR_SERVICE_LOGON_FAILED: "service did not start due to a logon failure";
    1793 ERROR_ACCOUNT_EXPIRED: "user's account has expired";
    1717 RPC_S_UNKNOWN_IF: "";
    0xc002_0012 RPC_NT_UNKNOWN_IF: "";
    8250 ERROR_DS_SERVER_DOWN: "the server is not operational";
    8207 ERROR_DS_UNAVAILABLE: "the directory service is unavailable";
    0xc000_0233 STATUS_DOMAIN_CONTROLLER_NOT_FOUND: "";
    0xc000_00be STATUS_BAD_NETWORK_PATH: "";
    8240 ERROR_DS_NO_SUCH_OBJECT: "there is no such object on the server";
    8333 ERROR_DS_OBJ_NOT_FOUND: "directory object not found";
    8344 ERROR_DS_INSUFF_ACCESS_RIGHTS: "insufficient access rights to perform the operation";
    8232 ERROR_DS_STRONG_AUTH_REQUIRED: "";
    9002 DNS_ERROR_RCODE_SERVER_FAILURE: "dns server failure";
    9003 DNS_ERROR_RCODE_NAME_ERROR: "dns name does not exist";
    9005 DNS_ERROR_RCODE_REFUSED: "dns operation refused";
    9501 DNS_INFO_NO_RECORDS: "no records found for given dns query";
    9852 DNS_ERROR_NO_DNS_SERVERS: "no dns servers configured for local system";
    67 ERROR_BAD_NET_NAME: "network name cannot be found";
    0xc000_00cc STATUS_BAD_NETWORK_NAME: "";
    1219 ERROR_SESSION_CREDENTIAL_CONFLICT: "multiple connections to a server or shared resource by the same user";
    0xc000_0073 STATUS_NONE_MAPPED: "";
    0x8009_000d NTE_NO_KEY: "key does not exist";
    0x8009_0317 SEC_E_CONTEXT_EXPIRED: "";
    0x8009_0325 SEC_E_UNTRUSTED_ROOT: "certificate chain was issued by an authority that is not trusted";
    0x8009_0328 SEC_E_CERT_EXPIRED: "received certificate has expired";
    0x800b_0109 CERT_E_UNTRUSTEDROOT: "";
    0x8009_0348 SEC_E_NO_KERB_KEY: "";
    0xc000_0418 STATUS_NTLM_BLOCKED: "since ntlm was blocked";
    0x8004_01f3 CO_E_CLASSSTRING: "";
    0x8004_0111 CLASS_E_CLASSNOTAVAILABLE: "";
    0x8037_0100 HCS_E_TERMINATED_DURING_START: "exited unexpectedly while it was being started";
    0x8037_0101 HCS_E_IMAGE_MISMATCH: "";
    0x8037_0106 HCS_E_UNEXPECTED_EXIT: "compute system exited unexpectedly";
    0x8037_0102 HCS_E_HYPERV_NOT_INSTALLED: "";
    0x8037_0105 HCS_E_INVALID_STATE: "operation is not valid in the current state";
    0x8037_010e HCS_E_SYSTEM_NOT_FOUND: "";
    0x8037_0110 HCS_E_SYSTEM_ALREADY_STOPPED: "";
    0x8037_0108 HCS_E_CONNECT_FAILED: "";
    0x8037_0109 HCS_E_CONNECTION_TIMEOUT: "response was not received from the virtual machine";
    0x8037_010a HCS_E_CONNECTION_CLOSED: "";
}

impl Code {
    /// The rule that it breaks in a phase.
    pub(super) fn rule_in(&self, phase: Phase) -> Option<&'static Rule> {
        let is_of = |words: &Words| match words {
            Words::Codes(codes) => codes.contains(&self.value),
            Words::StartCodes(codes) => phase == Phase::Start && codes.contains(&self.value),
            Words::RunningCodes(codes) => phase == Phase::Running && codes.contains(&self.value),
            _ => false,
        };
        words().find(|(_, words)| is_of(words)).map(|(rule, _)| rule)
    }

    /// The rule that it breaks in a container that runs.
    pub fn running(&self) -> Option<&'static Rule> {
        self.rule_in(Phase::Running)
    }
}

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
            assert_eq!(Status(written).code().map(|code| code.name), Some(name), "{written:#x}");
        }
        for unknown in [1, 0x0001_0005, 0x8007_0001, 0xd000_00ff, u32::MAX] {
            assert_eq!(Status(unknown).code(), None, "{unknown:#x}");
        }
    }

    #[test]
    fn no_code_is_listed_twice_and_each_means_something() {
        for (index, code) in CODES.iter().enumerate() {
            assert_eq!(Status(code.value).normal(), code.value, "{}", code.name);
            assert!(code.rule_in(Phase::Start).or(code.rule_in(Phase::Running)).is_some(), "{}", code.name);
            let others = &CODES[index + 1..];
            assert!(others.iter().all(|other| other.value != code.value && other.name != code.name), "{}", code.name);
            assert_eq!(symbols::name(code.value), Some(code.name), "{}", code.name);
        }
    }
}
