//! The walk of `docs/linux-pods.md`, and `docs/broker.md` from the first account to the end, block by block as they are printed.

use std::fs;

use gmsa_test_support::{
    control_plane::{SPECS, namespace, service_account},
    domain::{administer, of_domain, root, user},
    repository, until,
};
use serde_json::json;

use crate::world::{ACCOUNT, WHO, World};

/// The blocks of a page in a language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let start = format!("```{language}\n");
    page.split(&start).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// What runs before: the webhook, a credential spec of Windows pods, and an application of Linux pods.
async fn before(world: &World) {
    world.run(
        "helm install gmsa-webhook charts/gmsa-webhook --namespace gmsa-webhook --create-namespace \
         --set image.repository=registry.example.com/gmsa-webhook",
    );
    world.rolled_out("gmsa-webhook", "gmsa-webhook");
    world.run("helm test gmsa-webhook -n gmsa-webhook");
    let accounts = ["contoso.com", "CONTOSO"].map(|scope| json!({"Name": "WebApp1", "Scope": scope}));
    let spec = json!({
        "apiVersion": "windows.k8s.io/v1",
        "kind": "GMSACredentialSpec",
        "metadata": {"name": "webapp1"},
        "credspec": {
            "ActiveDirectoryConfig": {"GroupManagedServiceAccounts": accounts},
            "CmsPlugins": ["ActiveDirectory"],
            "DomainJoinConfig": {
                "DnsName": "contoso.com",
                "DnsTreeName": "contoso.com",
                "Guid": of_domain("objectGUID"),
                "MachineAccountName": "WebApp1",
                "NetBiosName": "CONTOSO",
                "Sid": of_domain("objectSid"),
            },
        },
    });
    until("credential specs are served", async || world.client().create(SPECS, &spec).await.ok()).await;
    namespace(world.client(), "shop", &json!({})).await;
    service_account(world.client(), "shop", "web").await;
    let web = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {selector: {matchLabels: {app: web}}, \
               template: {metadata: {labels: {app: web}}, spec: {serviceAccountName: web, terminationGracePeriodSeconds: 1, \
               containers: [{name: app, image: 'registry.example.com/app:1', command: [sleep, infinity]}]}}}}";
    world.run(&format!("kubectl apply -f - <<<\"{web}\""));
    world.rolled_out("shop", "web");
}

/// The page up to its walk from a keytab to a web server, and that walk.
fn page() -> (String, String) {
    let page = fs::read_to_string(repository().join("docs/linux-pods.md")).unwrap();
    let (page, apache) = page.split_once("\n### Apache\n").unwrap();
    (page.to_owned(), apache.to_owned())
}

pub async fn from_an_account_of_windows_pods_to_linux_pods(world: &mut World) {
    before(world).await;
    let (page, _) = page();
    world.write("domains.yaml", &blocks(&page, "yaml")[0]);
    let printed: Vec<_> = blocks(&page, "sh").iter().map(|block| world.run(block)).collect();
    let shown = printed.last().unwrap();
    for line in ["Default principal: WebApp1$@CONTOSO.COM\n", "HTTP/app.contoso.com@CONTOSO.COM\n"] {
        assert!(shown.contains(line), "{shown}");
    }
    // The page's list has no directory, and a running pod would hear of another list in minutes.
    world.run(
        "kubectl annotate gmsacredentialspec webapp1 --overwrite gmsa-webhook/services=ldap/dc1.contoso.com
         kubectl -n shop rollout restart deployment/web",
    );
    world.rolled_out("shop", "web");
}

/// A user of the domain logs on to Apache in a pod that has the keytab of its account. The image is the node's, which has Apache and its module.
pub async fn from_a_keytab_to_a_web_server(world: &mut World) {
    const HOST: &str = "web1.contoso.com";
    administer(&format!("spn add HTTP/{HOST} WebApp1$"));
    user("visitor", "Passw0rd!Visitor", None);
    let (page, apache) = page();
    let apache = apache.replace("app.contoso.com", HOST);
    world.write("domains.yaml", &(blocks(&page, "yaml")[0].clone() + "  keytabs: true\n"));
    let [give, ask] = &blocks(&apache, "sh")[..] else { panic!("other blocks") };
    world.run(give);
    world.rolled_out("gmsa-tickets", "gmsa-tickets");
    world.write("gssapi.conf", &blocks(&apache, "apache")[0]);
    let template = blocks(&apache, "yaml")[0]
        .replace("    annotations", "    labels: {app: site}\n    annotations")
        .replace('\n', "\n  ");
    let site = format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: site, namespace: shop}}
spec:
  selector: {{matchLabels: {{app: site}}}}
  {template}    terminationGracePeriodSeconds: 1
      volumes: [{{name: conf, configMap: {{name: site}}}}]
      containers:
      - name: app
        image: registry.example.com/app:1
        command: [sh, -exc, 'mkdir -p /var/tmp /var/lock /var/run/apache2 /var/log/apache2 /var/www/html; chmod 1777 /var/tmp; echo in >/var/www/html/index.html; cp /conf/gssapi.conf /etc/apache2/conf-enabled/; exec apache2ctl -D FOREGROUND']
        volumeMounts: [{{name: conf, mountPath: /conf}}]
"
    );
    world.write("site.yaml", &site);
    world.run("kubectl -n shop create configmap site --from-file=gssapi.conf; kubectl apply -f site.yaml");
    world.rolled_out("shop", "site");
    let address = world.run("kubectl -n shop get pods -l app=site -o 'jsonpath={.items[0].status.podIP}'");
    let root = root().display();
    let curl = ask
        .trim()
        .replace("https://", "http://")
        .replace("curl", &format!("curl -sf -o /dev/null -w '%{{http_code}}' --resolve {HOST}:80:{address}"));
    let realm = "[libdefaults]\\ndefault_realm = CONTOSO.COM\\n[realms]\\nCONTOSO.COM = {\\nkdc = 10.0.0.1\\n}\\n";
    let shown = format!(
        "chroot {root} sh -c \"printf '{realm}' >/tmp/visitor.conf; export KRB5_CONFIG=/tmp/visitor.conf KRB5CCNAME=FILE:/tmp/visitor.cc
         echo 'Passw0rd!Visitor' | kinit visitor >/dev/null && {curl}\""
    );
    world.shows(&shown, "200").await;
    let verified = world.run("kubectl gmsa verify deploy/site -n shop");
    let expected = format!(
        "pass  pod     container app mounts the keytab of webapp1\npass  keytab  version 1: HTTP/{HOST}, WebApp1$@CONTOSO.COM\n"
    );
    assert_eq!(verified, expected);
    world.run("kubectl -n shop delete deployment/site configmap/site; kubectl annotate gmsacredentialspec webapp1 gmsa-webhook/keytab-");
}

/// The CAs that agents are to trust: how many there are, once this many are.
async fn cas(world: &World, number: usize) {
    let of_secret = "kubectl -n gmsa-tickets get secret gmsa-tickets-tls -o 'go-template={{index .data \"ca.crt\" | base64decode}}' | grep -c BEGIN";
    world.shows(of_secret, &format!("{number}\n")).await;
}

/// A new pod trusts the broker, and logs on.
fn a_new_pod_logs_on(world: &World) {
    world.run("kubectl -n shop rollout restart deployment/web");
    world.rolled_out("shop", "web");
    assert_eq!(world.run(&format!("kubectl -n shop exec deployment/web -c app -- {WHO}")), ACCOUNT);
}

pub async fn of_the_broker_from_an_account_to_its_end(world: &mut World) {
    let page = fs::read_to_string(repository().join("docs/broker.md")).unwrap();
    let blocks = blocks(&page, "sh");
    let [account, password, rotate, give, leak, uninstall, rest] = &blocks[..] else { panic!("other blocks") };
    for block in [account, password, rotate] {
        world.run(block);
    }
    cas(world, 2).await;
    world.run(give);
    a_new_pod_logs_on(world);
    world.run(leak);
    cas(world, 1).await;
    world.run(give);
    a_new_pod_logs_on(world);
    world.run(uninstall);
    // No sidecar any more.
    world.run("kubectl -n shop rollout restart deployment/web");
    world.rolled_out("shop", "web");
    world.shows("kubectl -n shop get pods -l app=web -o 'jsonpath={.items[*].spec.initContainers}'", "").await;
    world.run(rest);
}
