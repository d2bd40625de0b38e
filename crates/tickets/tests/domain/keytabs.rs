//! Web servers with the keytab of their pod let a user of the domain in, also while the domain changes the password; pods without the right to
//! a keytab get none.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gmsa_test_support::{
    control_plane::{Process, SPECS, create_role},
    domain::{administer, prints, root, user},
    memory::holds,
    until,
};
use serde_json::{Value, json};

use crate::{
    clients::WebServer,
    controllers::with_clock,
    memory::key_in,
    world::{Pod, World, audience, of_user},
};

const HOST: &str = "keytabs.contoso.com";
const USER: &str = "Keytabsuser";
const PASSWORD: &str = "Passw0rd!Keytabs";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings";

/// What a command of a user prints, who logs on first.
fn as_user(user: &str, password: &str, realm: (&str, &str), environment: &[(&str, &str)], command: &str) -> String {
    let (realm, kdc) = realm;
    let conf = format!(
        "[libdefaults]\ndefault_realm = {realm}\ndns_canonicalize_hostname = false\nrdns = false\n[realms]\n{realm} = {{\nkdc = {kdc}\n}}\n\
         [domain_realm]\n.{} = {realm}\n",
        realm.to_lowercase()
    );
    fs::write(root().join(format!("tmp/{user}.conf")), conf).unwrap();
    let own = [format!("KRB5_CONFIG=/tmp/{user}.conf"), format!("KRB5CCNAME=FILE:/tmp/{user}.cc")];
    let given = environment.iter().map(|(name, value)| format!("{name}={value}"));
    let environment: Vec<String> = own.into_iter().chain(given).collect();
    let logon =
        if password.is_empty() { String::new() } else { format!("echo '{password}' | kinit {user} >/dev/null && ") };
    let script = format!("{logon}{command}");
    let words = ["env"].into_iter().chain(environment.iter().map(String::as_str)).chain(["sh", "-c", &script]);
    prints(&words.collect::<Vec<_>>(), "")
}

fn as_keytabs_user(command: &str) -> String {
    as_user(USER, PASSWORD, ("CONTOSO.COM", "10.0.0.1"), &[], command)
}

/// Lets a service account export a credential spec.
async fn export(world: &World, service_account: &str, spec: &str) {
    let rules = json!([{
        "apiGroups": ["windows.k8s.io"], "resources": ["gmsacredentialspecs"], "resourceNames": [spec], "verbs": ["export"],
    }]);
    let subject = ("shop", service_account);
    create_role(&world.plane.client, "/namespaces/shop", "Role", &format!("export-{spec}"), rules, subject).await;
}

fn keytab_audience(spec: &str) -> String {
    format!("gmsa-keytab/{spec}")
}

/// A pod with tokens for tickets and for a keytab.
async fn pod(world: &World, name: &str, service_account: &str, spec: &str) -> Pod {
    let volume = |name: &str, audience: &str| {
        let token = json!({"serviceAccountToken": {"audience": audience, "expirationSeconds": 600, "path": "token"}});
        json!({"name": name, "projected": {"sources": [token]}})
    };
    let volumes = [volume("gmsa-tickets-token", &audience(spec)), volume("gmsa-keytab-token", &keytab_audience(spec))];
    world.pod_with(name, service_account, Value::from(volumes.to_vec())).await
}

/// Apache with `mod_auth_gssapi` and this keytab, which lets this user in, and curl's arguments for it.
async fn apache(
    world: &World,
    host: &str,
    user: &str,
    keytab: &str,
    environment: &[(&str, &str)],
) -> (Process, String) {
    let port = TcpListener::bind("10.0.0.1:0").unwrap().local_addr().unwrap().port();
    let modules = ["mpm_event", "authn_core", "authz_core", "authz_user", "auth_gssapi"];
    let modules = modules.map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"));
    let rest = format!(
        "Listen 10.0.0.1:{port}\nServerName {host}\nUser www-data\nGroup www-data\nPidFile /tmp/apache-{port}.pid\nErrorLog /tmp/apache-{port}.log\n\
         DocumentRoot /tmp/apache\n<Location />\nAuthType GSSAPI\nAuthName x\nGssapiCredStore keytab:{keytab}\nRequire user {user}\n</Location>\n"
    );
    fs::create_dir_all(root().join("tmp/apache")).unwrap();
    fs::write(root().join("tmp/apache/index.html"), "let in\n").unwrap();
    let configuration = format!("/tmp/apache-{port}.conf");
    fs::write(root().join(&configuration[1..]), modules.concat() + &rest).unwrap();
    let mut command = Command::new("chroot");
    command.arg(root()).args(["apache2", "-f", &configuration, "-DFOREGROUND"]);
    command.envs(environment.iter().copied());
    let process = Process::start("apache", world.temporary.path(), &mut command);
    until("Apache listens", async || TcpStream::connect(("10.0.0.1", port)).ok()).await;
    let curl = format!(
        "curl --silent --fail --negotiate -u : --resolve {host}:{port}:10.0.0.1 http://{host}:{port}/index.html"
    );
    (process, curl)
}

#[tokio::test]
async fn web_servers_with_the_keytab_of_their_pod_let_a_user_in() {
    user(USER, PASSWORD, None);
    let mut world = World::start("Keytabs").await;
    administer(&format!("spn add HTTP/{HOST} KeytabsApp$"));
    let mut spec = World::spec_object("web", "KeytabsApp", None);
    spec["metadata"]["annotations"] = json!({"gmsa-webhook/keytab": format!("HTTP/{HOST}")});
    world.plane.client.create(SPECS, &spec).await.unwrap();
    world.user_of("web", &["web"]).await;
    let pod = pod(&world, "web", "web", "web").await;
    let tickets = world.token_of(&pod, "web").await;
    let token = world.token("web", &keytab_audience("web"), pod.reference()).await;
    let answer = async |world: &World, path: &str, token: &str| {
        let answer = world.asked_at(path, token, "web").await.unwrap();
        (answer.status.as_u16(), answer.json()["reason"].as_str().unwrap_or_default().to_owned())
    };
    let refused = |status: u16, reason: &str| (status, reason.to_owned());
    // `use` is not `export`.
    assert_eq!(answer(&world, "/v1/keytab", &token).await, refused(403, "not-authorized"));
    export(&world, "web", "web").await;
    // The domain of the broker gives none yet.
    until("the domain decides", async || {
        Some(answer(&world, "/v1/keytab", &token).await).filter(|answer| *answer == refused(403, "keytab-domain"))
    })
    .await;
    world.restart(|domain| domain["keytabs"] = json!(true)).await;
    assert_eq!(answer(&world, "/v1/keytab", &tickets).await, refused(401, "ticket-token"));
    assert_eq!(answer(&world, "/v1/tickets", &token).await, refused(401, "ticket-token"));

    let file = world.file_of(&pod, "keytab-token", &token);
    let agent = world.agent_with(&pod, &["--keytab", "web", "--keytab-token-file", &file]);
    until("there is a keytab", async || agent.file("keytab")).await;
    let keytab = agent.path("keytab");
    let server = WebServer::with(&world, &keytab, &[]).await;
    assert_eq!(as_keytabs_user(&server.curl(HOST, "")), format!("{USER}@CONTOSO.COM\n"), "{}", world.logs());
    let (_apache, curl) = apache(&world, HOST, &format!("{USER}@CONTOSO.COM"), &keytab, &[]).await;
    assert_eq!(as_keytabs_user(&curl), "let in\n");
    // Names, numbers and types are those of the domain.
    let kvno = of_user("KeytabsApp$", "msDS-KeyVersionNumber").unwrap();
    let listed = prints(&["klist", "-ke", &keytab], "");
    for name in ["KeytabsApp$".to_owned(), format!("HTTP/{HOST}")] {
        for etype in ["aes256-cts-hmac-sha1-96", "aes128-cts-hmac-sha1-96"] {
            assert!(listed.contains(&format!("{kvno:>4} {name}@CONTOSO.COM ({etype})")), "{listed}");
        }
    }
    assert!(!listed.contains("arcfour"), "{listed}");
    let given = world.logs().lines().filter(|line| line.contains("keytabs given")).count();
    assert!(given > 0 && world.logs().contains("kvno="), "{}", world.logs());

    let whole = agent.file("keytab").unwrap();
    assert!(!world.logs().contains(&BASE64_STANDARD.encode(&whole)[..40]));

    // The file goes once the right has, and the agent keeps no key; a core would hold what it has.
    world.plane.client.delete(&format!("{ROLES}/export-web")).await.unwrap();
    agent.file_goes("keytab").await;
    assert!(!holds(agent.process.id(), &key_in(&whole)));
    let limits = fs::read_to_string(format!("/proc/{}/limits", agent.process.id())).unwrap();
    let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().collect::<Vec<_>>(), ["0", "0", "bytes"]);
}

const ROLL_HOST: &str = "webapp.roll.test";
/// The clock of what is started in [`FAKED`], in seconds ahead.
const CLOCK: &str = "tmp/roll.time";
const FAKED: [(&str, &str); 4] = [
    ("LD_PRELOAD", "/usr/$LIB/faketime/libfaketimeMT.so.1"),
    ("FAKETIME_TIMESTAMP_FILE", "/tmp/roll.time"),
    ("FAKETIME_NO_CACHE", "1"),
    ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
];

/// An attribute of the account in the second domain: its number, or its password.
fn of_account(attribute: &str) -> Option<String> {
    let base = "CN=webapp,CN=Managed Service Accounts,DC=roll,DC=test";
    let login = ["-H", "ldaps://dc1.roll.test", "-x", "-D", "broker@roll.test", "-w", crate::world::PASSWORD];
    let search = [&["ldapsearch", "-LLL", "-o", "ldif-wrap=no", "-b", base, "-s", "base"][..], &login, &[attribute]];
    let shown = prints(&search.concat(), "");
    shown.lines().find_map(|line| Some(line.strip_prefix(attribute)?.trim_start_matches(':').trim().to_owned()))
}

/// Puts the clocks so many seconds ahead.
fn ahead(seconds: u64) {
    fs::write(root().join("tmp/roll.new"), format!("+{seconds}\n")).unwrap();
    fs::rename(root().join("tmp/roll.new"), root().join(CLOCK)).unwrap();
}

/// A domain of its own, whose clock the test moves to five minutes before the change, and then to a few seconds before it.
#[tokio::test]
async fn a_change_of_the_password_costs_no_client() {
    const ADDRESS: &str = "10.0.0.5";
    ahead(0);
    assert!(
        Command::new("ip").args(["address", "add", &format!("{ADDRESS}/32"), "dev", "lo"]).status().unwrap().success()
    );
    fs::write(root().join("tmp/roll-domain.sh"), include_str!("roll-domain.sh")).unwrap();
    prints(&["sh", "/tmp/roll-domain.sh", ADDRESS, "webapp"], "");
    let mut world = World::start("Roll").await;
    let mut samba = Command::new("chroot");
    samba.arg(root()).args(["samba", "-s", "/roll/etc/smb.conf", "-F", "-M", "single"]).envs(FAKED);
    let _samba = Process::start("samba", world.temporary.path(), samba.stdin(Stdio::null()));
    until("the second domain answers", async || TcpStream::connect((ADDRESS, 636)).ok()).await;
    let blob = BASE64_STANDARD.decode(of_account("msDS-ManagedPassword").unwrap());
    let blob = blob.unwrap();
    // [MS-ADTS] 2.2.19: the offset of the query interval is at byte 12; it counts 100 ns.
    let at = usize::from(u16::from_le_bytes([blob[12], blob[13]]));
    let left = u64::from_le_bytes(blob[at..at + 8].try_into().unwrap()) / 10_000_000;
    let (changes, number) = (Instant::now() + Duration::from_secs(left), || of_account("msDS-KeyVersionNumber"));
    let until_change = |now: Instant| changes.saturating_duration_since(now).as_secs();
    ahead(until_change(Instant::now()) - 345);

    let mut command = with_clock(&world.command, "");
    command.env_remove("FAKETIME").env("FAKETIME_TIMESTAMP_FILE", root().join(CLOCK)).env("FAKETIME_NO_CACHE", "1");
    world.command = command;
    world
        .restart(|domain| {
            domain["name"] = json!("roll.test");
            domain["controllers"] = json!(["dc1.roll.test"]);
            domain["user"] = json!("broker@roll.test");
            domain["keytabs"] = json!(true);
        })
        .await;
    let mut spec = World::spec_object("roll", "webapp", None);
    spec["metadata"]["annotations"] = json!({"gmsa-webhook/keytab": format!("HTTP/{ROLL_HOST}")});
    spec["credspec"]["DomainJoinConfig"]["DnsName"] = json!("roll.test");
    let sid =
        prints(&["ldbsearch", "-H", "/roll/private/sam.ldb", "-s", "base", "-b", "DC=roll,DC=test", "objectSid"], "");
    let sid = sid.lines().find_map(|line| line.strip_prefix("objectSid: ")).unwrap();
    spec["credspec"]["DomainJoinConfig"]["Sid"] = json!(sid);
    world.plane.client.create(SPECS, &spec).await.unwrap();
    world.user_of("web", &[]).await;
    export(&world, "web", "roll").await;
    let pod = pod(&world, "web", "web", "roll").await;
    // By the broker's clock, a token of ten minutes has expired.
    let token = world.token_for("web", &keytab_audience("roll"), pod.reference(), 86_400).await;
    let file = world.file_of(&pod, "keytab-token", &token);
    let mut agent = world.agent_with(&pod, &["--keytab", "roll", "--keytab-token-file", &file]);
    until("there is a keytab", async || {
        agent.process.must_run();
        agent.file("keytab")
    })
    .await;

    let keytab = agent.path("keytab");
    let server = WebServer::with(&world, &keytab, &FAKED).await;
    let (_apache, curl) = apache(&world, ROLL_HOST, "visitor@ROLL.TEST", &keytab, &FAKED).await;
    let visit = |password: &str| {
        let as_visitor = |command: &str| as_user("visitor", password, ("ROLL.TEST", ADDRESS), &FAKED, command);
        assert_eq!(as_visitor(&server.curl(ROLL_HOST, "")), "visitor@ROLL.TEST\n");
        assert_eq!(as_visitor(&curl), "let in\n");
    };
    let has = |kvno: u32| {
        let listed = prints(&["klist", "-k", &keytab], "");
        listed.contains(&format!("{kvno:>4} HTTP/{ROLL_HOST}@ROLL.TEST"))
    };
    let kvno: u32 = number().unwrap().parse().unwrap();
    visit("Passw0rd!Visitor");
    assert!(has(kvno) && !has(kvno + 1), "{}", world.logs());
    // A ticket of before the change, for later.
    prints(&["cp", "/tmp/visitor.cc", "/tmp/before.cc"], "");

    until("the next key is given out", async || has(kvno + 1).then_some(())).await;
    visit("Passw0rd!Visitor");
    assert_eq!(number().unwrap(), kvno.to_string());
    // The clocks of what runs go on from here.
    ahead(until_change(Instant::now()) - 5);
    let moved = Instant::now();
    while moved.elapsed() < Duration::from_secs(20) {
        visit("Passw0rd!Visitor");
    }
    assert_eq!(number().unwrap(), (kvno + 1).to_string());
    assert!(has(kvno) && has(kvno + 1));
    // A broker that has started since does not know the former key, which the directory does not show for the first change of an account.
    world.restart(|_| ()).await;
    let shows = format!("\"kvno\":{}", kvno + 1);
    until("the new broker has answered", async || {
        String::from_utf8(agent.file("keytab.json")?).unwrap().contains(&shows).then_some(())
    })
    .await;
    prints(&["cp", "/tmp/before.cc", "/tmp/visitor.cc"], "");
    visit("");
    visit("Passw0rd!Visitor");
}
