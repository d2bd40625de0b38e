//! Windows statuses: their forms and messages. Names and values are in [`super::symbols`].
//!
//! Sources of their meanings: the troubleshooting pages of Kubernetes and Microsoft on gMSA for Windows containers, and Microsoft's page
//! on the error codes of the Host Compute System.

use super::{
    Rule, VAGUE, Words,
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
        VAGUE.contains(&self.name())
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
        for name in of_rules.chain(super::super::WINDOWS.iter().map(|(name, _)| *name)) {
            let status = WindowsStatus(symbols::value(name).unwrap_or_else(|| panic!("{name}")));
            assert_eq!(status.normal(), status.0, "{name}");
            assert!(status.explain(None).is_some(), "{name}");
        }
    }
}
