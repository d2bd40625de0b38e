//! What a status code means for a container that uses GMSA.
//!
//! The codes are those of `winerror.h` (Win32), [MS-ERREF] 2.3.1 (NTSTATUS) and `winerror.h` again (SSPI); what they mean here is
//! from the troubleshooting pages of Kubernetes and Microsoft on gMSA for Windows containers.

use gmsa_core::diagnostic::rules::{self, Rule};

/// The rule that a code breaks, and its name.
pub(super) fn of(code: u32) -> Option<(&'static Rule, &'static str)> {
    Some(match code {
        5 => (&rules::LOGON_DENIED, "ERROR_ACCESS_DENIED"),
        1326 => (&rules::LOGON_DENIED, "ERROR_LOGON_FAILURE"),
        0x8009_030c => (&rules::LOGON_DENIED, "SEC_E_LOGON_DENIED"),
        0xc000_0022 => (&rules::LOGON_DENIED, "STATUS_ACCESS_DENIED"),
        0xc000_006a => (&rules::LOGON_DENIED, "STATUS_WRONG_PASSWORD"),
        0xc000_006d => (&rules::LOGON_DENIED, "STATUS_LOGON_FAILURE"),
        1909 => (&rules::ACCOUNT_LOCKED, "ERROR_ACCOUNT_LOCKED_OUT"),
        0xc000_0234 => (&rules::ACCOUNT_LOCKED, "STATUS_ACCOUNT_LOCKED_OUT"),
        0xc000_0193 => (&rules::ACCOUNT_EXPIRED, "STATUS_ACCOUNT_EXPIRED"),
        1331 => (&rules::ACCOUNT_DISABLED, "ERROR_ACCOUNT_DISABLED"),
        0xc000_0072 => (&rules::ACCOUNT_DISABLED, "STATUS_ACCOUNT_DISABLED"),
        53 => (&rules::NO_DOMAIN_CONTROLLER, "ERROR_BAD_NETPATH"),
        1311 => (&rules::NO_DOMAIN_CONTROLLER, "ERROR_NO_LOGON_SERVERS"),
        1355 => (&rules::NO_DOMAIN_CONTROLLER, "ERROR_NO_SUCH_DOMAIN"),
        1753 => (&rules::NO_DOMAIN_CONTROLLER, "EPT_S_NOT_REGISTERED"),
        1908 => (&rules::NO_DOMAIN_CONTROLLER, "ERROR_DOMAIN_CONTROLLER_NOT_FOUND"),
        2453 => (&rules::NO_DOMAIN_CONTROLLER, "NERR_DCNotFound"),
        0x8009_0311 => (&rules::NO_DOMAIN_CONTROLLER, "SEC_E_NO_AUTHENTICATING_AUTHORITY"),
        0xc000_005e => (&rules::NO_DOMAIN_CONTROLLER, "STATUS_NO_LOGON_SERVERS"),
        1722 => (&rules::NO_SECURE_CHANNEL, "RPC_S_SERVER_UNAVAILABLE"),
        1792 => (&rules::NO_SECURE_CHANNEL, "ERROR_NETLOGON_NOT_STARTED"),
        0xc000_0192 => (&rules::NO_SECURE_CHANNEL, "STATUS_NETLOGON_NOT_STARTED"),
        0xc002_0017 => (&rules::NO_SECURE_CHANNEL, "RPC_NT_SERVER_UNAVAILABLE"),
        1317 => (&rules::ACCOUNT_UNKNOWN, "ERROR_NO_SUCH_USER"),
        1332 => (&rules::ACCOUNT_UNKNOWN, "ERROR_NONE_MAPPED"),
        0xc000_0064 => (&rules::ACCOUNT_UNKNOWN, "STATUS_NO_SUCH_USER"),
        1786 => (&rules::TRUST_FAILED, "ERROR_NO_TRUST_LSA_SECRET"),
        1787 => (&rules::TRUST_FAILED, "ERROR_NO_TRUST_SAM_ACCOUNT"),
        1788 => (&rules::TRUST_FAILED, "ERROR_TRUSTED_DOMAIN_FAILURE"),
        1789 => (&rules::TRUST_FAILED, "ERROR_TRUSTED_RELATIONSHIP_FAILURE"),
        0xc000_018a => (&rules::TRUST_FAILED, "STATUS_NO_TRUST_LSA_SECRET"),
        0xc000_018b => (&rules::TRUST_FAILED, "STATUS_NO_TRUST_SAM_ACCOUNT"),
        0xc000_018c => (&rules::TRUST_FAILED, "STATUS_TRUSTED_DOMAIN_FAILURE"),
        0xc000_018d => (&rules::TRUST_FAILED, "STATUS_TRUSTED_RELATIONSHIP_FAILURE"),
        1398 => (&rules::CLOCK_SKEW, "ERROR_TIME_SKEW"),
        0x8009_0324 => (&rules::CLOCK_SKEW, "SEC_E_TIME_SKEW"),
        0xc000_0133 => (&rules::CLOCK_SKEW, "STATUS_TIME_DIFFERENCE_AT_DC"),
        1396 => (&rules::PRINCIPAL_UNKNOWN, "ERROR_WRONG_TARGET_NAME"),
        0x8009_0303 => (&rules::PRINCIPAL_UNKNOWN, "SEC_E_TARGET_UNKNOWN"),
        0x8009_0322 => (&rules::PRINCIPAL_UNKNOWN, "SEC_E_WRONG_PRINCIPAL"),
        0x8009_0342 => (&rules::TICKET_ENCRYPTION, "SEC_E_KDC_UNKNOWN_ETYPE"),
        0xc000_02fd => (&rules::TICKET_ENCRYPTION, "STATUS_KDC_UNKNOWN_ETYPE"),
        1312 => (&rules::NO_CREDENTIALS, "ERROR_NO_SUCH_LOGON_SESSION"),
        0x8009_030e => (&rules::NO_CREDENTIALS, "SEC_E_NO_CREDENTIALS"),
        0xc000_005f => (&rules::NO_CREDENTIALS, "STATUS_NO_SUCH_LOGON_SESSION"),
        _ => return None,
    })
}
