//! Clients that log on to a web server which checks their tickets, and one that runs while the tickets are renewed.

use std::{
    fs::{self, File},
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gmsa_test_support::{
    control_plane::Process,
    domain::{prints, root},
    until,
};

use crate::world::{World, name_ldap, service};

/// A web server with the keys of a service, where MIT's library is installed.
pub struct WebServer {
    _process: Process,
    port: u16,
    world: std::path::PathBuf,
}

impl WebServer {
    async fn start(world: &World, service: &str) -> Self {
        Self::start_in("/dc", world, service).await
    }

    /// The same, for a service of the domain in this folder.
    pub async fn start_in(domain: &str, world: &World, service: &str) -> Self {
        Self::with(world, &keytab(domain, service), &[]).await
    }

    /// With the keys of this file, in this environment.
    pub async fn with(world: &World, keytab: &str, environment: &[(&str, &str)]) -> Self {
        fs::write(root().join("tmp/negotiate.py"), include_str!("negotiate.py")).unwrap();
        let mut command = Command::new("chroot");
        command.arg(root()).args(["python3", "/tmp/negotiate.py", "10.0.0.1"]).env("KRB5_KTNAME", keytab);
        command.envs(environment.iter().copied());
        let folder = world.temporary.path().to_owned();
        let process = Process::start("web", &folder, &mut command);
        let mut server = Self { _process: process, port: 0, world: folder };
        server.port =
            until("the web server listens", async || server.log().lines().find_map(|line| line.parse().ok())).await;
        server
    }

    fn log(&self) -> String {
        fs::read_to_string(self.world.join("web.log")).unwrap_or_default()
    }

    /// How many of the tokens that it took hold these bytes.
    fn took(&self, ticket: &[u8]) -> usize {
        let log = self.log();
        let tokens = log.lines().filter_map(|line| BASE64_STANDARD.decode(line.strip_prefix("taken: ")?).ok());
        tokens.filter(|token| token.windows(ticket.len()).any(|window| window == ticket)).count()
    }

    /// What curl's arguments are for it.
    pub fn curl(&self, host: &str, rest: &str) -> String {
        let port = self.port;
        format!("curl --silent --fail{rest} --negotiate -u : --resolve {host}:{port}:10.0.0.1 http://{host}:{port}/")
    }
}

/// The file with the keys of a service, where MIT's library is installed.
fn keytab(domain: &str, service: &str) -> String {
    let file = format!("/tmp/{}.keytab", service.replace('/', "-"));
    fs::remove_file(root().join(&file[1..])).ok();
    let principal = format!("--principal={service}");
    let configuration = format!("--configfile={domain}/etc/smb.conf");
    prints(&["samba-tool", "domain", "exportkeytab", &file, &principal, &configuration], "");
    file
}

/// The end of the only ticket of a cache: its ciphertext, behind which is the length of a second ticket, which is none.
fn ticket(cache: &[u8]) -> Vec<u8> {
    cache[cache.len() - 68..cache.len() - 4].to_vec()
}

#[tokio::test]
async fn a_client_logs_on_to_a_web_server_before_and_after_its_tickets_are_renewed() {
    const HOST: &str = "clients.contoso.com";
    service("Clients", &[&format!("HTTP/{HOST}")]);
    let world = World::start("Clients").await;
    let server = WebServer::start(&world, &format!("HTTP/{HOST}")).await;
    world.web("ClientsApp", &format!("HTTP/{HOST}")).await;
    let pod = world.pod("web", "web", "web").await;
    let agent = world.agent(&pod, "web").await;
    assert_eq!(agent.prints(&server.curl(HOST, "")), "ClientsApp$@CONTOSO.COM\n");
    // Without tickets, and to a service that is not listed.
    assert!(agent.fails(&server.curl("other.contoso.com", "")));

    // One process that logs on twice a second, for each connection.
    let urls = server.curl(HOST, " --rate 2/s");
    let mut running = Command::new("chroot");
    running.arg(root()).args(format!("{urls}[1-600]").split(' '));
    running.env("KRB5_CONFIG", agent.path("krb5.conf")).env("KRB5CCNAME", format!("FILE:{}", agent.path("krb5cc")));
    let out = File::create(world.temporary.path().join("curl.out")).unwrap();
    let mut running = Process::spawn("curl", world.temporary.path(), running.stdout(out).stderr(Stdio::null()));
    let mut caches = Vec::new();
    for _ in 0..2 {
        let cache =
            until("there are other tickets", async || agent.file("krb5cc").filter(|cache| !caches.contains(cache)));
        let cache = cache.await;
        until("the running client uses them", async || {
            running.must_run();
            Some(()).filter(|()| server.took(&ticket(&cache)) > 0)
        })
        .await;
        caches.push(cache);
    }
    assert_ne!(ticket(&caches[0]), ticket(&caches[1]));
    let said = fs::read_to_string(world.temporary.path().join("curl.out")).unwrap();
    assert!(said.lines().all(|line| line == "ClientsApp$@CONTOSO.COM"), "{said}");
}

/// `PostgreSQL` with the keys of a service, which lets an account in by Kerberos alone.
async fn database(world: &World, service: &str, account: &str) -> (Process, u16) {
    const FOLDER: &str = "/tmp/database";
    const PROGRAMS: &str = "/usr/lib/postgresql/17/bin";
    let keytab = keytab("/dc", service);
    let as_postgres = |command: String, stdin: &str| {
        prints(&["su", "postgres", "-s", "/bin/sh", "-c", &command], stdin);
    };
    prints(&["chown", "postgres", &keytab], "");
    prints(&["rm", "-rf", FOLDER], "");
    as_postgres(format!("{PROGRAMS}/initdb --no-sync -D {FOLDER}"), "");
    as_postgres(
        format!("{PROGRAMS}/postgres --single -D {FOLDER} postgres"),
        &format!("create role \"{account}\" login\n"),
    );
    fs::write(root().join(&FOLDER[1..]).join("pg_hba.conf"), "host all all all gss include_realm=0\n").unwrap();
    let port = TcpListener::bind("10.0.0.1:0").unwrap().local_addr().unwrap().port();
    let serve = format!(
        "exec {PROGRAMS}/postgres -D {FOLDER} -k '' -h 10.0.0.1 -p {port} -c krb_server_keyfile={keytab} -c fsync=off"
    );
    let mut command = Command::new("chroot");
    command.arg(root()).args(["su", "postgres", "-s", "/bin/sh", "-c", &serve]);
    let process = Process::start("database", world.temporary.path(), &mut command);
    until("the database listens", async || TcpStream::connect(("10.0.0.1", port)).ok()).await;
    (process, port)
}

/// Those of `docs/linux-clients.md` that Debian has, with the settings of the page.
#[tokio::test]
async fn the_recipes_of_the_page_log_on() {
    const HOST: &str = "recipes.contoso.com";
    const NAME: &str = "RecipesApp$";
    service("Recipes", &["HTTP", "postgres"].map(|class| format!("{class}/{HOST}")));
    name_ldap();
    let world = World::start("Recipes").await;
    let server = WebServer::start(&world, &format!("HTTP/{HOST}")).await;
    let (_database, port) = database(&world, &format!("postgres/{HOST}"), NAME).await;
    let services = format!("HTTP/{HOST}, postgres/{HOST}, ldap/dc1.contoso.com");
    world.spec("services", "RecipesApp", Some(&services)).await;
    world.spec("everything", "RecipesApp", Some("*")).await;
    world.user_of("web", &["services", "everything"]).await;
    let url = format!("http://{HOST}:{}/", server.port);
    let connect = format!("host={HOST} port={port} dbname=postgres user={NAME} sslmode=disable");
    fs::write(root().join("tmp/Get.java"), include_str!("Get.java")).unwrap();
    let principal = format!("{NAME}@CONTOSO.COM\n");
    let java = "java -Djavax.security.auth.useSubjectCredsOnly=false";
    let recipes = [
        ("services", format!("curl --silent --fail --negotiate -u : {url}"), principal.clone()),
        ("services", "ldapwhoami -Q -Y GSSAPI -N -H ldap://dc1.contoso.com".to_owned(), format!("u:CONTOSO\\{NAME}\n")),
        (
            "services",
            format!(
                "python3 - <<'E'\nimport base64, gssapi, urllib.request\n\
                 name = gssapi.Name('HTTP@{HOST}', gssapi.NameType.hostbased_service)\n\
                 token = base64.b64encode(gssapi.SecurityContext(name=name, usage='initiate').step()).decode()\n\
                 request = urllib.request.Request('{url}', headers={{'Authorization': 'Negotiate ' + token}})\n\
                 print(urllib.request.urlopen(request).read().decode(), end='')\nE"
            ),
            principal.clone(),
        ),
        ("services", format!("psql '{connect}' -Atc 'select current_user'"), format!("{NAME}\n")),
        (
            "services",
            format!(
                "python3 - <<'E'\nimport psycopg\nprint(psycopg.connect('{connect}').execute('select current_user').fetchone()[0])\nE"
            ),
            format!("{NAME}\n"),
        ),
        ("services", format!("{java} -Dsun.security.jgss.native=true /tmp/Get.java {url}"), principal.clone()),
        (
            "everything",
            format!("{java} -Djava.security.krb5.conf=${{KRB5_CONFIG}} /tmp/Get.java {url}"),
            principal.clone(),
        ),
    ];
    for spec in ["services", "everything"] {
        let pod = world.pod(spec, "web", spec).await;
        let agent = world.agent(&pod, spec).await;
        for (_, command, expected) in recipes.iter().filter(|(needs, ..)| *needs == spec) {
            let output = agent.run("sh", command);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(String::from_utf8_lossy(&output.stdout), *expected, "{command}: {errors}");
        }
    }
}
