//! The program as a kubelet runs it: certificate files, probes, metrics, the log, signals, memory, and errors at the start.

use std::{fs, io::Read as _, process::Command};

use gmsa_kerberos::{EncryptionType, Password};
use gmsa_test_support::{Fault, Verb, directory::DirectoryAccount, memory::holds, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{
    started::{Started, next, probe, program},
    world::World,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_program_serves_and_leaves_a_line_for_each_answer() {
    let world = World::start().await;
    let mut started = Started::new(&world);
    assert!(probe(&started.admin, "/readyz").ends_with("\r\n\r\nok\n"));
    let given = started.ask("token-1").await;
    assert_eq!(given.status, 200);
    let mut line = next(&mut started.log);
    for varies in ["timestamp", "target", "level", "duration_seconds", "time"] {
        line.as_object_mut().unwrap().remove(varies);
    }
    let expires = given.json()["expires"].clone();
    let who = json!({
        "credential_spec": "webapp1", "namespace": "shop", "service_account": "web", "pod": "web-1", "pod_uid": "u1",
        "token_id": "JTI=7c2f", "account": "webapp1@contoso.com",
    });
    let mut expected = who.clone();
    expected["message"] = json!("tickets given");
    expected["services"] = json!("HTTP/app.contoso.com, MSSQLSvc/sql1.contoso.com:1433");
    expected["expires"] = expires;
    assert_eq!(line, expected);

    world.api.grant_only(&[]);
    // What was allowed is remembered for a while.
    assert_eq!(started.ask("token-1").await.status, 200);
    next(&mut started.log);
    world.api.delete("pods", "shop", "web-1");
    assert_eq!(started.ask("token-1").await.status, 403);
    let line = next(&mut started.log);
    assert_eq!(
        [&line["message"], &line["code"], &line["reason"], &line["cause"], &line["pod"]],
        [
            &json!("tickets refused"),
            &json!(403),
            &json!("ticket-pod"),
            &json!("the pod \"web-1\" does not exist any more"),
            &json!("web-1")
        ]
    );
    // Of requests that no token authenticates, a few leave a line, without what was sent.
    for _ in 0..8 {
        assert_eq!(started.ask("a.forged.token").await.status, 401);
    }
    let metrics = probe(&started.admin, "/metrics");
    for series in
        ["gmsa_tickets_requests_total{outcome=\"given\"} 2", "gmsa_tickets_requests_total{outcome=\"ticket-token\"} 8"]
    {
        assert!(metrics.contains(series), "{metrics}");
    }
    let pid = Pid::from_child(&started.child.0);
    kill_process(pid, Signal::TERM).unwrap();
    let mut rest = String::new();
    started.log.read_to_string(&mut rest).unwrap();
    assert_eq!(started.child.0.wait().unwrap().code(), Some(0), "{rest}");
    // Five, and five more where ten seconds ended meanwhile.
    assert!((5..=8).contains(&rest.matches("tickets refused\"").count()), "{rest}");
    assert!(!rest.contains("forged"), "{rest}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_whose_own_token_is_void_is_unready_until_the_api_server_takes_one_again() {
    let world = World::start().await;
    let started = Started::new(&world);
    world.api.fault(Verb::Create, "tokenreviews", 1, Fault::Text(401, "Unauthorized"));
    assert_eq!(started.ask("token-1").await.status, 503);
    let unready = "HTTP/1.1 503 Service Unavailable\r\n";
    let why = "not ready: the API server refuses the token of this replica (401)\n";
    let shown = probe(&started.admin, "/readyz");
    assert!(shown.starts_with(unready) && shown.ends_with(why), "{shown}");
    assert_eq!(started.ask("token-1").await.status, 200);
    assert!(probe(&started.admin, "/readyz").ends_with("\r\n\r\nok\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_at_the_start_is_named() {
    let world = World::start().await;
    let config = world.path("tickets.yaml").display().to_string();
    let ended = |change: &dyn Fn()| {
        change();
        let (code, out, said) = run(&mut program(&world));
        assert_eq!((code, out.as_str()), (2, ""));
        said
    };
    let said = ended(&|| fs::write(&config, "domains: []\n").unwrap());
    let empty = "domains: is empty: name at least one domain, with name, user and passwordFile";
    assert_eq!(said, format!("error: {config}: {empty}\n"));
    let said = ended(&|| fs::write(&config, "domains:\n- name: contoso.com\n  usr: x\n").unwrap());
    assert!(said.starts_with(&format!("error: {config}: ")) && said.contains("usr"), "{said}");
    let said = ended(&|| fs::remove_file(&config).unwrap());
    assert_eq!(
        said,
        format!(
            "error: cannot read {config}: --config names a YAML file with domains: No such file or directory (os error 2)\n"
        )
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_gmsa-tickets"));
    let (code, _, said) = run(command.env_clear().args(["serve", "--config", &config]));
    assert_eq!(code, 2);
    assert!(said.contains("--tls-cert <FILE>"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_password_is_left_in_the_memory_of_the_broker() {
    let world = World::start().await;
    // Characters of one, two and three bytes, none of them twice.
    let units: Vec<u16> = (0..128).map(|number| 0x61 + number * 37).collect();
    let password: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
    let text: String = char::decode_utf16(units).map(Result::unwrap).collect();
    let account = DirectoryAccount { current: Some(password.clone()), ..DirectoryAccount::with_password(1) };
    world.directory.account("WebApp1", account);
    world.kdc.account("WebApp1$", &Password::managed(&password), EncryptionType::Aes256);
    let secret = "The password of the user, which nothing else says";
    world.directory.password_of_user(secret);
    world.write_password(secret);
    let started = Started::new(&world);
    assert_eq!(started.ask("token-1").await.status, 200);
    let holds = |bytes: &[u8]| holds(started.child.0.id(), bytes);
    // What is looked for can be found.
    assert!(holds(b"WebApp1"));
    for part in 0..8 {
        assert!(!holds(&password[part * 32..][..32]), "part {part} of the password");
    }
    for part in [&text.as_bytes()[..32], &text.as_bytes()[text.len() - 32..]] {
        assert!(!holds(part), "the password in UTF-8");
    }
    for part in [&secret[..20], &secret[20..]] {
        assert!(!holds(part.as_bytes()), "the password of the user");
    }
}
