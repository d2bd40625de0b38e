//! The commands of PowerShell in fixes, done to the domain with the tools of Samba, word for word.

use crate::{
    broken::{descriptor, modify},
    domain::{add, administer, of_domain, prints},
};

/// Bits of `userAccountControl` by the parameters of `Set-ADAccountControl`.
const FLAGS: [(&str, u32); 4] = [
    ("-TrustedForDelegation $false", 0x8_0000),
    ("-PasswordNotRequired $false", 0x20),
    ("-DoesNotRequirePreAuth $false", 0x40_0000),
    ("-UseDESKeyOnly $false", 0x20_0000),
];

/// Follows the fix for an account.
pub fn follow(account: &str, fix: &str) {
    let of_account = format!("Set-ADServiceAccount '{account}' ");
    let of_control = format!(
        "$a = Get-ADServiceAccount '{account}' -Properties userAccountControl; Set-ADObject $a -Replace @{{userAccountControl=$a.userAccountControl "
    );
    let own = format!("'{account}$'");
    if let Some(what) = fix.strip_prefix(&of_account) {
        set(account, what);
    } else if let Some(change) = fix.strip_prefix(&of_control) {
        control(account, change.strip_suffix('}').unwrap());
    } else if let Some(flag) = fix.strip_prefix(&format!("Set-ADAccountControl {own} ")) {
        let (_, bit) = FLAGS.iter().find(|(known, _)| *known == flag).unwrap();
        control(account, &format!("-band -bnot {bit:#x}"));
    } else if fix == format!("Clear-ADAccountExpiration -Identity {own}") {
        modify(account, "replace: accountExpires\naccountExpires: 0");
    } else if let Some(group) = fix.strip_suffix(&format!("' -Members {own}")) {
        let group = group.strip_prefix("Remove-ADGroupMember '").unwrap();
        let member = format!("CN={account},CN=Managed Service Accounts,DC=contoso,DC=com");
        change_of(group, &format!("delete: member\nmember: {member}"));
    } else {
        of_others(fix);
    }
}

/// `Set-ADServiceAccount`.
fn set(account: &str, what: &str) {
    let quoted = |text: &str| text.split('\'').nth(1).unwrap().to_owned();
    if what == "-Enabled $true" {
        control(account, "-band -bnot 0x2");
    } else if what == "-KerberosEncryptionType AES128,AES256" {
        modify(account, "replace: msDS-SupportedEncryptionTypes\nmsDS-SupportedEncryptionTypes: 24");
    } else if what == "-PrincipalsAllowedToDelegateToAccount $null" {
        modify(account, "delete: msDS-AllowedToActOnBehalfOfOtherIdentity");
    } else if let Some(attribute) = what.strip_prefix("-Clear ") {
        modify(account, &format!("delete: {attribute}"));
    } else if what.starts_with("-ServicePrincipalNames @{Add=") {
        modify(account, &format!("add: servicePrincipalName\nservicePrincipalName: {}", quoted(what)));
    } else if what.starts_with("-ServicePrincipalNames @{Remove=") {
        modify(account, &format!("delete: servicePrincipalName\nservicePrincipalName: {}", quoted(what)));
    } else {
        assert!(what.starts_with("-PrincipalsAllowedToRetrieveManagedPassword GROUP, "), "{what}");
        let hosts = descriptor(&format!("A:{}", value("BrokenHosts", "objectSid")), &of_domain("objectSid"));
        modify(account, &format!("replace: msDS-GroupMSAMembership\nmsDS-GroupMSAMembership:: {hosts}"));
    }
}

/// Commands for a user or a group.
fn of_others(fix: &str) {
    let mut parts = fix.split('\'');
    let (Some(command), Some(name), Some(rest)) = (parts.next(), parts.next(), parts.next()) else { panic!("{fix}") };
    let change = |what: &str| change_of(name, what);
    match (command, rest) {
        ("Enable-ADAccount -Identity ", "") => administer(&format!("user enable {name}")),
        ("Clear-ADAccountExpiration -Identity ", "") => change("replace: accountExpires\naccountExpires: 0"),
        ("Set-ADUser ", " -ChangePasswordAtLogon $false") => change("replace: pwdLastSet\npwdLastSet: -1"),
        ("Set-ADUser ", " -SmartcardLogonRequired $false") => {
            change("replace: userAccountControl\nuserAccountControl: 512");
        }
        ("Set-ADUser ", " -Clear logonHours") => change("delete: logonHours"),
        // Another kind of group keeps its scope.
        ("Set-ADGroup ", rest) if rest.starts_with(" -GroupCategory Security") => {
            change("replace: groupType\ngroupType: -2147483646");
        }
        _ => panic!("{fix}"),
    }
}

/// Changes a user or a group.
fn change_of(name: &str, what: &str) {
    add(&format!("dn: CN={name},CN=Users,DC=contoso,DC=com\nchangetype: modify\n{what}\n"));
}

/// An attribute of the object with this SAM name.
fn value(sam: &str, attribute: &str) -> String {
    let name = format!("sAMAccountName={sam}");
    let shown = prints(&["ldbsearch", "-H", "/dc/private/sam.ldb", &name, attribute], "");
    shown.lines().find_map(|line| line.strip_prefix(&format!("{attribute}: "))).unwrap().to_owned()
}

/// Changes `userAccountControl` by an expression of PowerShell, whose operators are all of one rank.
fn control(account: &str, expression: &str) {
    let old = value(&format!("{account}$"), "userAccountControl");
    let (mut value, mut words) = (old.parse::<u32>().unwrap(), expression.split(' '));
    let number = |word: &str| u32::from_str_radix(word.strip_prefix("0x").unwrap(), 16).unwrap();
    while let Some(operator) = words.next() {
        let operand = match words.next().unwrap() {
            "-bnot" => !number(words.next().unwrap()),
            word => number(word),
        };
        value = match operator {
            "-band" => value & operand,
            "-bor" => value | operand,
            _ => panic!("{expression}"),
        };
    }
    modify(account, &format!("replace: userAccountControl\nuserAccountControl: {value}"));
}
