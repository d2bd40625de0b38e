//! Status codes: the table, and the forms in which the same status is written.
//!
//! The codes are those of `winerror.h` (Win32, SSPI, COM), `lmerr.h`, `ntstatus.h` ([MS-ERREF] 2.3.1) and Microsoft's page on the error
//! codes of the Host Compute System; what they mean here is from the troubleshooting pages of Kubernetes and Microsoft on gMSA for
//! Windows containers. `tests/windows.sh` compares the values with the headers of mingw-w64, which lack those of the Host Compute System.

use super::{
    Rule, Words,
    meaning::{Explanation, Meaning, Phase},
    words,
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
        let rules = match (code.rule_in(Phase::Start), code.rule_in(Phase::Running)) {
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

    pub(super) fn unknown(self) -> Explanation {
        let how = match self.normal() {
            0..=0xffff => "`net helpmsg CODE` on Windows says what the code means; it takes the decimal code.",
            _ => "`certutil -error CODE` on Windows says what the code means.",
        };
        Explanation {
            found: format!("{}: not known here{}", self.written(), self.form()),
            meaning: Meaning::Unknown(how),
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
        CODES.iter().find(|code| code.name.eq_ignore_ascii_case(word)).map(|code| Status(code.value))
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

// With the message of Windows, which `net helpmsg` prints, as far as it is recognized: a part of it in lower case.
codes! {
    5 ERROR_ACCESS_DENIED: "";
    1326 ERROR_LOGON_FAILURE: "the user name or password is incorrect";
    0x8009_030c SEC_E_LOGON_DENIED: "";
    0xc000_0022 STATUS_ACCESS_DENIED: "";
    0xc000_006a STATUS_WRONG_PASSWORD: "";
    0xc000_006d STATUS_LOGON_FAILURE: "";
    1909 ERROR_ACCOUNT_LOCKED_OUT: "referenced account is currently locked out";
    0xc000_0234 STATUS_ACCOUNT_LOCKED_OUT: "";
    0xc000_0193 STATUS_ACCOUNT_EXPIRED: "";
    1331 ERROR_ACCOUNT_DISABLED: "";
    0xc000_0072 STATUS_ACCOUNT_DISABLED: "";
    53 ERROR_BAD_NETPATH: "";
    1311 ERROR_NO_LOGON_SERVERS: "no logon servers available";
    1355 ERROR_NO_SUCH_DOMAIN: "domain either does not exist or could not be contacted";
    1753 EPT_S_NOT_REGISTERED: "";
    1908 ERROR_DOMAIN_CONTROLLER_NOT_FOUND: "";
    2453 NERR_DCNotFound: "";
    0x8009_0311 SEC_E_NO_AUTHENTICATING_AUTHORITY: "";
    0xc000_005e STATUS_NO_LOGON_SERVERS: "";
    0xc000_00df STATUS_NO_SUCH_DOMAIN: "";
    1722 RPC_S_SERVER_UNAVAILABLE: "rpc server is unavailable";
    1726 RPC_S_CALL_FAILED: "remote procedure call failed";
    0xc002_0017 RPC_NT_SERVER_UNAVAILABLE: "";
    0xc002_001b RPC_NT_CALL_FAILED: "";
    1792 ERROR_NETLOGON_NOT_STARTED: "";
    0xc000_0192 STATUS_NETLOGON_NOT_STARTED: "";
    1317 ERROR_NO_SUCH_USER: "";
    1332 ERROR_NONE_MAPPED: "no mapping between account names and security ids";
    0xc000_0064 STATUS_NO_SUCH_USER: "";
    1786 ERROR_NO_TRUST_LSA_SECRET: "";
    1787 ERROR_NO_TRUST_SAM_ACCOUNT: "does not have a computer account for this workstation trust relationship";
    1788 ERROR_TRUSTED_DOMAIN_FAILURE: "";
    1789 ERROR_TRUSTED_RELATIONSHIP_FAILURE: "trust relationship between this workstation and the primary domain failed";
    0xc000_018a STATUS_NO_TRUST_LSA_SECRET: "";
    0xc000_018b STATUS_NO_TRUST_SAM_ACCOUNT: "";
    0xc000_018c STATUS_TRUSTED_DOMAIN_FAILURE: "";
    0xc000_018d STATUS_TRUSTED_RELATIONSHIP_FAILURE: "";
    1398 ERROR_TIME_SKEW: "time and/or date difference between the client and server";
    0x8009_0324 SEC_E_TIME_SKEW: "";
    0xc000_0133 STATUS_TIME_DIFFERENCE_AT_DC: "";
    1396 ERROR_WRONG_TARGET_NAME: "target account name is incorrect";
    0x8009_0303 SEC_E_TARGET_UNKNOWN: "";
    0x8009_0322 SEC_E_WRONG_PRINCIPAL: "";
    0x8009_0342 SEC_E_KDC_UNKNOWN_ETYPE: "";
    0xc000_02fd STATUS_KDC_UNKNOWN_ETYPE: "";
    1312 ERROR_NO_SUCH_LOGON_SESSION: "specified logon session does not exist";
    0x8009_030e SEC_E_NO_CREDENTIALS: "";
    0xc000_005f STATUS_NO_SUCH_LOGON_SESSION: "";
    0x8000_401a CO_E_RUNAS_LOGON_FAILURE: "server process could not be started because the configured identity is incorrect";
    0x8004_0154 REGDB_E_CLASSNOTREG: "class not registered";
    0x8008_0005 CO_E_SERVER_EXEC_FAILURE: "server execution failed";
    0x8037_0100 HCS_E_TERMINATED_DURING_START: "";
    0x8037_0101 HCS_E_IMAGE_MISMATCH: "";
    0x8037_0106 HCS_E_UNEXPECTED_EXIT: "";
    0x8037_0108 HCS_E_CONNECT_FAILED: "";
    0x8037_0109 HCS_E_CONNECTION_TIMEOUT: "";
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
        for unknown in [1, 0x0001_0005, 0x8007_0001, 0xd000_00a7, u32::MAX] {
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
        }
    }
}
