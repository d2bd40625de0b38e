//! The commands of PowerShell in fixes, done to the domain with the tools of Samba, word for word.

use crate::{
    broken::modify,
    domain::{add, administer, prints},
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
        member(group, "delete", &format!("CN={account},CN=Managed Service Accounts,DC=contoso,DC=com"));
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
    } else if let Some(attribute) = what.strip_prefix("-Clear ") {
        modify(account, &format!("delete: {attribute}"));
    } else if what.starts_with("-ServicePrincipalNames @{Add=") {
        modify(account, &format!("add: servicePrincipalName\nservicePrincipalName: {}", quoted(what)));
    } else if what.starts_with("-ServicePrincipalNames @{Remove=") {
        modify(account, &format!("delete: servicePrincipalName\nservicePrincipalName: {}", quoted(what)));
    } else {
        assert!(what.starts_with("-PrincipalsAllowedToRetrieveManagedPassword GROUP, "), "{what}");
        modify(account, "delete: msDS-GroupMSAMembership");
        administer(&format!(
            "service-account group-msa-membership add --name={account} --principal=CN=BrokenHosts,CN=Users,DC=contoso,DC=com"
        ));
    }
}

/// Commands for a user or a group.
fn of_others(fix: &str) {
    let mut parts = fix.split('\'');
    let (Some(command), Some(name), Some(rest)) = (parts.next(), parts.next(), parts.next()) else { panic!("{fix}") };
    let change = |what: &str| {
        add(&format!("dn: CN={name},CN=Users,DC=contoso,DC=com\nchangetype: modify\n{what}\n"));
    };
    match (command, rest) {
        ("Enable-ADAccount -Identity ", "") => administer(&format!("user enable {name}")),
        ("Unlock-ADAccount -Identity ", "") => administer(&format!("user unlock {name}")),
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

fn member(group: &str, change: &str, member: &str) {
    add(&format!(
        "dn: CN={group},CN=Users,DC=contoso,DC=com\nchangetype: modify\n{change}: member\nmember: {member}\n"
    ));
}

/// Changes `userAccountControl` by an expression of PowerShell, whose operators are all of one rank.
fn control(account: &str, expression: &str) {
    let shown = prints(
        &["ldbsearch", "-H", "/dc/private/sam.ldb", &format!("sAMAccountName={account}$"), "userAccountControl"],
        "",
    );
    let line = shown.lines().find_map(|line| line.strip_prefix("userAccountControl: ")).unwrap();
    let (mut value, mut words) = (line.parse::<u32>().unwrap(), expression.split(' '));
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
