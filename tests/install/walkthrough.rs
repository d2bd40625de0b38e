//! A new user's way, from an empty folder to a pod that carries its identity, with the tool alone: its files and its messages are what they
//! would be at a desk.

use crate::{
    doctor::{in_order, open, put_in_service},
    nodes::{join, run_pods},
    path::{carried, contents, pods},
    plane::{Plane, printed},
    release::Release,
    tool::Tool,
};

/// What `Get-ADDomain | ConvertTo-Json` prints, the parts that matter and some that do not.
pub const DOMAIN: &str = r#"{
    "AllowedDNSSuffixes":  [],
    "DistinguishedName":  "DC=contoso,DC=com",
    "DNSRoot":  "contoso.com",
    "DomainMode":  7,
    "DomainSID":  {
                      "BinaryLength":  24,
                      "AccountDomainSid":  "S-1-5-21-2126449477-2524075714-3094792973",
                      "Value":  "S-1-5-21-2126449477-2524075714-3094792973"
                  },
    "Forest":  "contoso.com",
    "NetBIOSName":  "CONTOSO",
    "ObjectClass":  "domainDNS",
    "ObjectGUID":  "244818ae-87ac-4fcd-92ec-e79e5252348a"
}
"#;

/// A Deployment as people write it first: with the account's name for the credential spec's, and nothing of Windows.
const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      serviceAccountName: web
      securityContext:
        windowsOptions:
          gmsaCredentialSpecName: WebApp1
      containers:
      - name: iis
        image: mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2022
";

const FIRST_CHECK: &str = "\
OBJECT               SLOT          CREDENTIAL SPEC  RESULT
Deployment shop/web  pod template  WebApp1          refused, 422: invalid-spec-name

note[not-kubernetes] ./domain.json:1
  skipped: it has neither apiVersion nor kind, so it is not a Kubernetes object

warning[linux-node] ./web.yaml:12: Deployment shop/web
  spec.template.spec: the pod uses GMSA but may land on a Linux node: set spec.os.name and nodeSelector kubernetes.io/os: windows
  fix:
    spec:
      os: {name: windows}
      nodeSelector: {kubernetes.io/os: windows}

note[windows-build] ./web.yaml:12: Deployment shop/web
  spec.template.spec: no node.kubernetes.io/windows-build selector: where nodes differ in build, the container may not start
  fix:
    spec:
      nodeSelector: {node.kubernetes.io/windows-build: 10.0.20348}  # Windows Server 2022

error[invalid-spec-name] ./web.yaml:16: Deployment shop/web
  spec.template.spec.securityContext.windowsOptions.gmsaCredentialSpecName: GMSA cred spec name \"WebApp1\" of pod \"web-\" is not a lower-case DNS subdomain
  fix: gmsaCredentialSpecName: webapp1

1 error, 1 warning, 2 notes in 2 objects
";

#[test]
fn from_an_empty_folder_to_a_pod_with_its_identity() {
    let plane = Plane::start();
    let tool = Tool::new(&plane);
    tool.write("domain.json", DOMAIN);
    tool.write("web.yaml", DEPLOYMENT);

    let made = tool.gmsa("credspec new --account WebApp1 --from-ad domain.json --out webapp1.yaml");
    assert_eq!(made, ("webapp1.yaml written\n".to_owned(), 0));
    assert_eq!(tool.gmsa("check -f ."), (FIRST_CHECK.to_owned(), 1));
    tool.write("web.yaml", &corrected());

    let (report, code) = tool.gmsa("check -f .");
    let forbidden = "service account \"web\" is not authorized to `use` GMSA cred spec \"webapp1\"";
    assert!(code == 1 && report.contains(forbidden), "{report}");
    // The fix that it shows is what `grant` prints.
    let (grant, code) = tool.gmsa("grant --credspec webapp1 --serviceaccount shop:web");
    assert_eq!(code, 0);
    let indented: Vec<_> = grant.lines().map(|line| format!("    {line}")).collect();
    assert!(report.contains(&indented.join("\n")), "{report}");
    tool.write("grant.yaml", &grant);

    let clean = "\
OBJECT               SLOT          CREDENTIAL SPEC  RESULT
Deployment shop/web  pod template  webapp1          gets its contents

note[not-kubernetes] ./domain.json:1
  skipped: it has neither apiVersion nor kind, so it is not a Kubernetes object

1 note in 4 objects
";
    assert_eq!(tool.gmsa("check -f ."), (clean.to_owned(), 0));

    in_the_cluster(&plane, &tool, clean);
}

/// The Deployment with the fixes of the findings, and no other change.
pub fn corrected() -> String {
    DEPLOYMENT.replace("gmsaCredentialSpecName: WebApp1", "gmsaCredentialSpecName: webapp1").replace(
        "      serviceAccountName: web\n",
        "      serviceAccountName: web\n      os: {name: windows}\n      nodeSelector: \
         {kubernetes.io/os: windows, node.kubernetes.io/windows-build: 10.0.20348}\n",
    )
}

/// Installs the release with a replica, a Windows node and a namespace for the pods; it runs until it is dropped.
pub fn install<'p>(plane: &'p Plane, tool: &Tool<'_>) -> impl Sized + use<'p> {
    let release = Release::install(plane);
    put_in_service(&release);
    let replica = release.start_replica();
    join(plane, "windows-1", "windows");
    plane.create_namespace("shop");
    printed(tool.kubectl("create serviceaccount web --namespace shop"));
    assert_eq!(tool.gmsa("doctor --wait 60").1, 0);
    (replica, release)
}

fn in_the_cluster(plane: &Plane, tool: &Tool<'_>, clean: &str) {
    let _running = install(plane, tool);

    let applied = printed(tool.kubectl("apply -f webapp1.yaml -f grant.yaml"));
    assert_eq!(
        applied,
        "gmsacredentialspec.windows.k8s.io/webapp1 created\n\
         clusterrole.rbac.authorization.k8s.io/gmsa-use-webapp1 created\n\
         rolebinding.rbac.authorization.k8s.io/gmsa-use-webapp1-web created\n"
    );
    plane.until("the cluster grants it", || tool.gmsa("check --live -f web.yaml").1 == 0);
    let applied = tool.kubectl("apply -f web.yaml");
    assert_eq!(String::from_utf8_lossy(&applied.stderr), "", "there is nothing to warn of");
    assert_eq!(printed(applied), "deployment.apps/web created\n");
    run_pods(plane, "shop", "windows-1", 1);
    let [pod] = pods(plane).try_into().unwrap();
    assert_eq!(carried(&pod), contents(tool));

    assert_eq!(tool.gmsa("check --live -f ."), (clean.to_owned(), 0));
    let who = "\
NAMESPACE  WHO                      BY
*          Group system:masters     ClusterRoleBinding cluster-admin of ClusterRole cluster-admin
shop       ServiceAccount shop:web  RoleBinding gmsa-use-webapp1-web of ClusterRole gmsa-use-webapp1
";
    assert_eq!(tool.gmsa("who-can webapp1"), (who.to_owned(), 0));
    let name = pod["metadata"]["name"].as_str().unwrap();
    let explained = format!(
        "\
pass  admission   the pod carries the contents of its credential spec
pass  permission  shop:web may use webapp1
pass  node        Running on windows-1
pass  in the pod  run: kubectl gmsa verify shop/{name}
"
    );
    assert_eq!(tool.gmsa(&format!("doctor --pod shop/{name}")), (explained, 0));
    let users = "\
pass  credential specs     no problems found in 1 credential spec
pass  pods                 1 uses GMSA, with up-to-date contents
pass  Windows nodes        1 of 10.0.20348
";
    let (report, code) = tool.gmsa("doctor");
    assert_eq!((open(&report), code), (in_order(6, users), 0));
}
