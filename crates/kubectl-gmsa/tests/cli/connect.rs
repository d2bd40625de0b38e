//! How the cluster is found and reached: the kubeconfig, what the flags override, proxies. The proxies are real ones, on the loopback
//! address.

use std::{
    net::SocketAddr,
    path::Path,
    process::Output,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

use super::{
    cluster::run,
    program, simulated,
    support::{Fault, Kind, SimulatedApi, Verb},
    text,
};

const CLEAN: &str = "no problems found in 0 objects\n";

/// What a server heard, in order.
pub type Heard = Arc<Mutex<Vec<String>>>;

pub fn heard(heard: &Heard) -> Vec<String> {
    let mut all = std::mem::take(&mut *heard.lock().unwrap());
    // The clients for calls and for watches are two.
    all.dedup();
    all
}

/// What a proxy says to a client.
#[derive(Clone, Copy)]
pub enum Proxy {
    Http,
    /// It asks for a password.
    Locked,
    Socks,
}

/// A proxy that leads to `api`, whatever it is asked for.
pub async fn proxy(proxy: Proxy, api: SocketAddr) -> (SocketAddr, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, heard) = (listener.local_addr().unwrap(), Heard::default());
    let log = Arc::clone(&heard);
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let log = Arc::clone(&log);
            // A client that goes away is none of its business.
            tokio::spawn(async move { drop(serve(proxy, client, api, &log).await) });
        }
    });
    (address, heard)
}

async fn serve(proxy: Proxy, mut client: TcpStream, api: SocketAddr, log: &Heard) -> std::io::Result<()> {
    match proxy {
        Proxy::Http | Proxy::Locked => {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                head.push(char::from(client.read_u8().await?));
            }
            let wanted = |line: &&str| line.starts_with("CONNECT") || line.starts_with("Proxy-Authorization");
            log.lock().unwrap().push(head.lines().filter(wanted).collect::<Vec<_>>().join(", "));
            if matches!(proxy, Proxy::Locked) {
                return client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await;
            }
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
        }
        Proxy::Socks => {
            let asked = socks(&mut client).await?;
            log.lock().unwrap().push(asked);
        }
    }
    copy_bidirectional(&mut client, &mut TcpStream::connect(api).await?).await?;
    Ok(())
}

/// The server's side of SOCKS5 (RFC 1928, RFC 1929): who asks for which name.
async fn socks(client: &mut TcpStream) -> std::io::Result<String> {
    async fn counted(client: &mut TcpStream) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; client.read_u8().await?.into()];
        client.read_exact(&mut bytes).await?;
        Ok(bytes)
    }
    assert_eq!(client.read_u8().await?, 5);
    let methods = counted(client).await?;
    let mut who = String::new();
    if methods.contains(&2) {
        client.write_all(&[5, 2]).await?;
        assert_eq!(client.read_u8().await?, 1);
        let (user, password) = (counted(client).await?, counted(client).await?);
        who = format!("{}:{}@", text(&user), text(&password));
        client.write_all(&[1, 0]).await?;
    } else {
        client.write_all(&[5, 0]).await?;
    }
    let mut request = [0; 4];
    client.read_exact(&mut request).await?;
    let host = match request {
        [5, 1, 0, 3] => text(&counted(client).await?).to_owned(),
        [5, 1, 0, 1] => std::net::Ipv4Addr::from(client.read_u32().await?).to_string(),
        other => panic!("not CONNECT to a name or an IPv4 address: {other:?}"),
    };
    let port = client.read_u16().await?;
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    Ok(format!("{who}{host}:{port}"))
}

/// A cluster over TLS, with a kind of pods, and its address.
async fn cluster() -> (SimulatedApi, SocketAddr) {
    let api = SimulatedApi::start_with_tls().await;
    api.define(Kind::new("v1", "Pod", "pods"));
    let address = api.url().strip_prefix("https://").unwrap().parse().unwrap();
    (api, address)
}

/// A kubeconfig whose cluster is this one.
fn kubeconfig(cluster: &Value) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": cluster}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    })
    .to_string()
}

/// Runs `outdated` in a folder, with these variables and arguments.
async fn outdated(folder: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = program(folder);
    command.envs(environment.iter().copied()).arg("outdated").args(arguments);
    tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap()
}

/// The same, which reaches the cluster.
async fn clean(folder: &tempfile::TempDir, environment: &[(&str, &str)], arguments: &[&str]) {
    let output = outdated(folder.path(), environment, arguments).await;
    assert_eq!((text(&output.stderr), text(&output.stdout), output.status.code()), ("", CLEAN, Some(0)));
}

/// A proxy to a cluster over TLS.
async fn proxied(kind: Proxy) -> (SimulatedApi, SocketAddr, Heard) {
    let (api, address) = cluster().await;
    let (at, log) = proxy(kind, address).await;
    (api, at, log)
}

/// A folder with a kubeconfig of this server.
fn insecure(server: &str) -> tempfile::TempDir {
    folder_with(&kubeconfig(&json!({"server": server, "insecure-skip-tls-verify": true})))
}

/// A folder with the kubeconfig `config`.
fn folder_with(config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config"), config).unwrap();
    folder
}

const CONFIG: (&str, &str) = ("KUBECONFIG", "config");

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_s_proxy_leads_to_the_server() {
    let (_api, at, log) = proxied(Proxy::Http).await;
    let server = "https://k8s.example.test:6443";
    let folder = insecure(server);
    for (name, url) in [
        ("HTTPS_PROXY", format!("http://{at}")),
        ("https_proxy", format!("http://{at}")),
        ("HTTPS_PROXY", at.to_string()),
    ] {
        clean(&folder, &[CONFIG, (name, &url), ("NO_PROXY", "example.com,10.0.0.0/8")], &[]).await;
        assert_eq!(heard(&log), ["CONNECT k8s.example.test:6443 HTTP/1.1"], "{name}={url}");
    }
    let url = format!("http://user:p%40ss@{at}");
    clean(&folder, &[CONFIG, ("HTTPS_PROXY", &url)], &[]).await;
    assert_eq!(heard(&log), ["CONNECT k8s.example.test:6443 HTTP/1.1, Proxy-Authorization: Basic dXNlcjpwQHNz"]);
}

/// On Unix, 0.0.0.0 is this machine, and no loopback address, which would never be reached by a proxy.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn no_proxy_is_compared_with_the_server() {
    let (_api, address) = cluster().await;
    let (at, log) = proxy(Proxy::Http, address).await;
    let server = format!("https://0.0.0.0:{}", address.port());
    let folder = insecure(&server);
    let url = format!("http://{at}");
    for (no_proxy, used) in [("", true), ("127.0.0.1", true), ("0.0.0.0/8", false), ("0.0.0.0", false), ("*", false)] {
        clean(&folder, &[CONFIG, ("HTTPS_PROXY", &url), ("no_proxy", no_proxy)], &[]).await;
        assert_eq!(heard(&log).len(), usize::from(used), "NO_PROXY={no_proxy}");
    }
    // This machine is never reached by a proxy.
    let server = format!("https://{address}");
    let folder = insecure(&server);
    clean(&folder, &[CONFIG, ("HTTPS_PROXY", &url)], &[]).await;
    assert_eq!(heard(&log).len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kubeconfig_s_proxy_leads_to_every_server() {
    let (_api, at, log) = proxied(Proxy::Socks).await;
    for (url, server, name) in [
        (format!("socks5://{at}"), "https://k8s.example.test:6443", "k8s.example.test:6443"),
        (format!("socks5://me:s%3Acret@{at}"), "https://k8s.example.test:6443", "me:s:cret@k8s.example.test:6443"),
        (format!("socks5://{at}"), "https://127.0.0.1", "127.0.0.1:443"),
    ] {
        let cluster = json!({"server": server, "insecure-skip-tls-verify": true, "proxy-url": url});
        let folder = folder_with(&kubeconfig(&cluster));
        clean(&folder, &[CONFIG, ("NO_PROXY", "*"), ("HTTPS_PROXY", "http://127.0.0.1:1")], &[]).await;
        assert_eq!(heard(&log), [name]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tls_is_reached_by_http_proxy() {
    let api = SimulatedApi::start().await;
    api.define(Kind::new("v1", "Pod", "pods"));
    let address = api.url().strip_prefix("http://").unwrap().parse().unwrap();
    let (at, log) = proxy(Proxy::Http, address).await;
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://{at}");
    let environment = [("HTTP_PROXY", url.as_str()), ("HTTPS_PROXY", "http://127.0.0.1:1")];
    clean(&folder, &environment, &["--server", "http://k8s.example.test"]).await;
    assert_eq!(heard(&log), ["CONNECT k8s.example.test:80 HTTP/1.1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_refuses_is_named() {
    let (_api, at, _) = proxied(Proxy::Locked).await;
    let folder = folder_with(&kubeconfig(&json!({"server": "https://k8s.example.test:6443"})));
    let output = outdated(folder.path(), &[CONFIG, ("HTTPS_PROXY", &format!("http://u:s3cret@{at}"))], &[]).await;
    let said = format!(
        "error: https://k8s.example.test:6443 (context a): the API server cannot be reached: client error (Connect): \
         through the proxy http://{at}: tunnel error: proxy authorization required\n"
    );
    assert_eq!((text(&output.stderr), output.status.code()), (&*said, Some(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_list_may_name_files_that_do_not_exist() {
    let (_api, address) = cluster().await;
    let server = format!("https://{address}");
    let folder = insecure(&server);
    let list = std::env::join_paths(["none", "", "config"]).unwrap();
    clean(&folder, &[("KUBECONFIG", list.to_str().unwrap())], &[]).await;
    std::fs::write(folder.path().join("broken"), "a: [").unwrap();
    let list = std::env::join_paths(["config", "broken"]).unwrap();
    let output = outdated(folder.path(), &[("KUBECONFIG", list.to_str().unwrap())], &[]).await;
    let said = "error: cannot read the kubeconfig broken: line 1 column 4: unclosed bracket";
    assert!(text(&output.stderr).starts_with(said), "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(2));
}

/// Two contexts, clusters and users; only the second cluster exists.
fn two(url: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "one",
        "clusters": [
            {"name": "one", "cluster": {"server": "http://127.0.0.1:1", "tls-server-name": "elsewhere"}},
            {"name": "two", "cluster": {"server": url}},
        ],
        "users": [
            {"name": "one", "user": {"token": "one"}},
            {"name": "two", "user": {"token": "two", "as": "someone"}},
            {"name": "program", "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/nonexistent", "interactiveMode": "Never"}}},
        ],
        "contexts": [
            {"name": "one", "context": {"cluster": "one", "user": "one", "namespace": "shop"}},
            {"name": "two", "context": {"cluster": "two", "user": "two"}},
        ],
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_override_the_kubeconfig() {
    let api = SimulatedApi::start().await;
    for verb in [Verb::Get, Verb::List] {
        api.fault(verb, "", usize::MAX, Fault::Object(json!({"metadata": {}, "items": []})));
    }
    let asked = || {
        let last = api.requests(Verb::Get, "").pop().or_else(|| api.requests(Verb::List, "").pop()).unwrap();
        api.forget_requests();
        let [user, group] = last.impersonates.map(|name| name.unwrap_or_else(|| "-".to_owned()));
        let path = last.path.split('?').next().unwrap();
        format!("{path} {} {user} {group}", last.authorization.unwrap())
    };
    let url = api.url();
    let folder = folder_with(&two(&url));
    let cases: [(&[&str], &str); 8] = [
        (&["--context", "two"], "default/pods Bearer two someone -"),
        (&["--cluster", "two"], "shop/pods Bearer one - -"),
        // Without pods, a namespace that is named is looked for.
        (&["--cluster", "two", "--user", "two", "-n", "b"], "b Bearer two someone -"),
        (&["--server", &url], "shop/pods Bearer one - -"),
        (&["--server", &url, "--token", "mine"], "shop/pods Bearer mine - -"),
        (&["--server", &url, "--user", "program", "--token", "mine"], "shop/pods Bearer mine - -"),
        (&["--context", "two", "--as", "me", "--as-group", "us"], "default/pods Bearer two me us"),
        (&["--context", "two", "-A"], "/pods Bearer two someone -"),
    ];
    for (flags, expected) in cases {
        clean(&folder, &[CONFIG], flags).await;
        let scope = if expected.starts_with('/') { "/api/v1" } else { "/api/v1/namespaces/" };
        assert_eq!(asked(), format!("{scope}{expected}"), "{flags:?}");
    }
    // Without any kubeconfig.
    clean(&folder, &[], &["--server", &url, "--token", "mine"]).await;
    assert_eq!(asked(), "/api/v1/namespaces/default/pods Bearer mine - -");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_verified_unless_it_must_not_be() {
    let (_api, address) = cluster().await;
    let folder =
        folder_with(&kubeconfig(&json!({"server": format!("https://{address}"), "certificate-authority": "none"})));
    clean(&folder, &[CONFIG], &["--insecure-skip-tls-verify"]).await;
    clean(&folder, &[CONFIG], &["--insecure-skip-tls-verify=true"]).await;
    let folder = insecure(&format!("https://{address}"));
    let output = outdated(folder.path(), &[CONFIG], &["--insecure-skip-tls-verify=false"]).await;
    assert!(text(&output.stderr).contains("invalid peer certificate"), "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_through_a_proxy() {
    let api = simulated::cluster(&simulated::folder("verify")).await;
    let direct = run(&api, &["verify", "pod/web", "-n", "shop"]).await;
    let address = api.url().strip_prefix("http://").unwrap().parse().unwrap();
    let (at, log) = proxy(Proxy::Socks, address).await;
    let cluster = json!({"server": "http://k8s.example.test:6443", "proxy-url": format!("socks5://{at}")});
    let folder = folder_with(&kubeconfig(&cluster));
    let mut command = program(folder.path());
    command.args(["--kubeconfig", "config", "verify", "pod/web", "-n", "shop"]);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    assert_eq!((text(&output.stdout), output.status.code()), (text(&direct.stdout), Some(0)));
    assert_eq!(heard(&log), ["k8s.example.test:6443"]);
}
