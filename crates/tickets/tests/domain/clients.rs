//! Clients that log on to a web server which checks their tickets, and one that runs while the tickets are renewed.

use std::{
    fs::{self, File},
    process::{Command, Stdio},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gmsa_test_support::{
    control_plane::Process,
    domain::{administer, prints, root, user},
    until,
};

use crate::world::World;

/// A web server with the keys of a service, where MIT's library is installed.
struct WebServer {
    _process: Process,
    port: u16,
    world: std::path::PathBuf,
}

impl WebServer {
    async fn start(world: &World, service: &str) -> Self {
        let principal = format!("--principal={service}");
        let keytab = ["samba-tool", "domain", "exportkeytab", "/tmp/clients.keytab", &principal];
        prints(&[&keytab[..], &["--configfile=/dc/etc/smb.conf"]].concat(), "");
        fs::write(root().join("tmp/negotiate.py"), include_str!("negotiate.py")).unwrap();
        let mut command = Command::new("chroot");
        command
            .arg(root())
            .args(["python3", "/tmp/negotiate.py", "10.0.0.1"])
            .env("KRB5_KTNAME", "/tmp/clients.keytab");
        let folder = world.temporary.path().to_owned();
        let process = Process::start("web", &folder, &mut command);
        let mut server = Self { _process: process, port: 0, world: folder };
        server.port = until("the web server listens", async || server.log().lines().next()?.parse().ok()).await;
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
    fn curl(&self, host: &str, rest: &str) -> String {
        let port = self.port;
        format!("curl --silent --fail{rest} --negotiate -u : --resolve {host}:{port}:10.0.0.1 http://{host}:{port}/")
    }
}

/// The end of the only ticket of a cache: its ciphertext, behind which is the length of a second ticket, which is none.
fn ticket(cache: &[u8]) -> Vec<u8> {
    cache[cache.len() - 68..cache.len() - 4].to_vec()
}

#[tokio::test]
async fn a_client_logs_on_to_a_web_server_before_and_after_its_tickets_are_renewed() {
    const HOST: &str = "clients.contoso.com";
    user("Clientsservice", "Passw0rd!Service", None);
    administer(&format!("spn add HTTP/{HOST} Clientsservice"));
    let world = World::start("Clients").await;
    let server = WebServer::start(&world, &format!("HTTP/{HOST}")).await;
    world.spec("web", "ClientsApp", Some(&format!("HTTP/{HOST}"))).await;
    world.user_of("web", &["web"]).await;
    let pod = world.pod("web", "web", "web").await;
    let agent = world.agent(&pod, "web").await;
    agent.ready().await;
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
