//! The domain changes the password of an account. Controllers make it of the time: here the account's attributes change instead of the clock.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gmsa_test_support::{
    control_plane::Client,
    domain::{change, prints},
    until,
};

use crate::world::{World, name_ldap, of_user};

const FOLDER: &str = "CN=Managed Service Accounts,DC=contoso,DC=com";
const DATABASE: &str = "/dc/private/sam.ldb.d/DC=CONTOSO,DC=COM.ldb";

/// How long a key of the domain counts, in keys of ten hours each, with the interval of 30 days that `account` sets.
const LIFE: u32 = 72;

/// Makes the account's key so many keys older ([MS-GKDI] 2.2.4: the three indices of a key are at byte 12).
fn age(account: &str, keys: u32) {
    let shown = prints(&["ldbsearch", "-H", DATABASE, &format!("cn={account}"), "msDS-ManagedPasswordId"], "");
    let shown = shown.replace("\n ", "");
    let id = shown.lines().find_map(|line| line.strip_prefix("msDS-ManagedPasswordId:: ")).unwrap();
    let mut id = BASE64_STANDARD.decode(id).unwrap();
    let index = |at: usize| u32::from_le_bytes(id[at..at + 4].try_into().unwrap());
    let key = index(12) * 1024 + index(16) * 32 + index(20) - keys;
    let indices = [key / 1024, key / 32 % 32, key % 32].map(u32::to_le_bytes);
    id[12..24].copy_from_slice(&indices.concat());
    set(account, "msDS-ManagedPasswordId:", &BASE64_STANDARD.encode(id));
}

fn set(account: &str, attribute: &str, value: &str) {
    let name = attribute.trim_end_matches(':');
    change(&format!("dn: CN={account},{FOLDER}\nchangetype: modify\nreplace: {name}\n{attribute}: {value}\n"));
}

/// How often the broker has exchanged what with a controller: reads of a password, logons, logons that failed.
async fn exchanges(world: &World) -> [u64; 3] {
    let logs = world.logs();
    let admin = logs.split("admin=").last().unwrap().split(' ').next().unwrap();
    let metrics = Client::of_port(admin.parse().unwrap()).text("/metrics").await.unwrap();
    [("password", "done"), ("as", "done"), ("as", "failed")].map(|(kind, outcome)| {
        let series = format!("gmsa_tickets_exchanges_total{{kind=\"{kind}\",outcome=\"{outcome}\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&series)).unwrap().parse().unwrap()
    })
}

#[tokio::test]
async fn a_changed_password_costs_one_try_and_one_read() {
    name_ldap();
    let world = World::start("Turn").await;
    // Its key has ended: the controller makes the next one, which has been in use for eight keys.
    age("TurnApp", LIFE + 8);
    world.spec("any", "TurnApp", Some("*")).await;
    world.spec("web", "TurnApp", Some("ldap/dc1.contoso.com")).await;
    world.user_of("web", &["any", "web"]).await;
    let [any, web] = [world.pod("any", "web", "any").await, world.pod("web", "web", "web").await];
    let token = world.token_of(&any, "any").await;
    assert_eq!(world.answer(&token, "any").await, (200, String::new()), "{}", world.logs());
    assert_eq!(world.answer(&token, "any").await.0, 200);
    assert_eq!(exchanges(&world).await, [1, 2, 0]);
    let agent = world.agent(&web, "web").await;
    let who = "ldapwhoami -Q -Y GSSAPI -H ldap://dc1.contoso.com";
    assert_eq!(agent.prints(who), "u:CONTOSO\\TurnApp$\n");

    // With an interval of a day the key has ended long ago.
    let before = of_user("TurnApp$", "pwdLastSet");
    set("TurnApp", "msDS-ManagedPasswordInterval", "1");
    let [reads, logons, failed] = exchanges(&world).await;
    assert_eq!(world.answer(&token, "any").await, (200, String::new()), "{}", world.logs());
    assert_ne!(of_user("TurnApp$", "pwdLastSet"), before);
    assert_eq!(exchanges(&world).await, [reads + 1, logons + 1, failed + 1]);
    assert_eq!(world.answer(&token, "any").await.0, 200);
    assert_eq!(exchanges(&world).await, [reads + 1, logons + 2, failed + 1]);
    let first = agent.file("krb5cc").unwrap();
    until("the tickets are renewed", async || agent.file("krb5cc").filter(|renewed| *renewed != first)).await;
    assert_eq!(agent.prints(who), "u:CONTOSO\\TurnApp$\n");
}
