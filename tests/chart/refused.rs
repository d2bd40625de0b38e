//! Values that the chart refuses, and the whole message for each.

use crate::helm::{CHART, Helm};

/// What `helm template` complains of, without the frame that Helm puts around it.
fn complaint(args: &[&str]) -> String {
    unframed(&Helm::new().refuses(["template", "gmsa", CHART, "--namespace", "windows"].iter().chain(args).copied()))
}

/// What a chart, or its schema, complains of, without the frame that Helm puts around it.
pub fn unframed(complaint: &str) -> String {
    let complaint = complaint.replace("\nUse --debug flag to render out invalid YAML\n", "");
    let complaint = complaint.trim();
    if complaint.starts_with("Error: execution error at (") {
        return complaint.split_once("): ").unwrap().1.to_owned();
    }
    let of_schema = "Error: values don't meet the specifications of the schema(s) in the following chart(s):\n";
    match complaint.strip_prefix(of_schema) {
        Some(list) => list.split_once(":\n").unwrap().1.to_owned(),
        None => complaint.to_owned(),
    }
}

fn assert_refused(cases: &[(&[&str], &str)]) {
    for (args, expected) in cases {
        assert_eq!(complaint(args), *expected, "{args:?}");
    }
}

#[test]
fn the_schema_refuses_wrong_types_and_words() {
    assert_refused(&[
        (&["--set", "replicaCuont=3"], "- at '': additional properties 'replicaCuont' not allowed"),
        (&["--set", "image.pullPolicy=Always"], "- at '/image': additional properties 'pullPolicy' not allowed"),
        (&["--set", "replicaCount=two"], "- at '/replicaCount': got string, want null or integer"),
        (&["--set", "replicaCount=-1"], "- at '/replicaCount': minimum: got -1, want 0"),
        (&["--set", "containerPort=65536"], "- at '/containerPort': maximum: got 65,536, want 65,535"),
        (&["--set", "adminPort=80"], "- at '/adminPort': minimum: got 80, want 1,024"),
        (&["--set-string", "service.port=443"], "- at '/service/port': got string, want null or integer"),
        (&["--set", "setPodOs=yes-please"], "- at '/setPodOs': got string, want null or boolean"),
        (&["--set", "image.tag=1"], "- at '/image/tag': got number, want null or string"),
        (&["--set", "image.repository="], "- at '/image/repository': minLength: got 0, want 1"),
        (
            &["--set", "image.imagePullPolicy=always"],
            "- at '/image/imagePullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never', <nil>",
        ),
        (
            &["--set", "certificates.mode=self-signed"],
            "- at '/certificates/mode': value must be one of '', 'self-managed', 'cert-manager', 'secret', <nil>",
        ),
        (
            &["--set-string", "certificates.certManager.enabled=true"],
            "- at '/certificates/certManager/enabled': got string, want null or boolean",
        ),
        (&["--set", "logFormat=xml"], "- at '/logFormat': value must be one of 'text', 'json', <nil>"),
        (&["--set", "webhooks.timeoutSeconds=31"], "- at '/webhooks/timeoutSeconds': maximum: got 31, want 30"),
        (
            &["--set", "guard.validationActions={Forbid}"],
            "- at '/guard/validationActions/0': value must be one of 'Deny', 'Warn', 'Audit'",
        ),
        (&["--set", "tolerations=all"], "- at '/tolerations': got string, want null or array"),
        (&["--set", "nodeSelector.disk=1"], "- at '/nodeSelector/disk': got number, want null or string"),
        (&["--set", "imagePullSecrets={pull}"], "- at '/imagePullSecrets/0': got string, want object"),
        (
            &["--set", "credential.domainJoinConfig.netBiosName=CORP-EXAMPLE-COM"],
            "- at '/credential/domainJoinConfig/netBiosName': maxLength: got 16, want 15",
        ),
        (
            &["--set", "autoscaling.targetCPUUtilizationPercentage=0"],
            "- at '/autoscaling/targetCPUUtilizationPercentage': minimum: got 0, want 1",
        ),
    ]);
}

#[test]
fn texts_of_the_wrong_form_are_refused_in_words() {
    assert_refused(&[
        (&["--set", "containerPort=https"], r#"containerPort "https" is not a port: a number from 1 to 65535"#),
        (&["--set-string", "containerPort=70000"], r#"containerPort "70000" is not a port: a number from 1 to 65535"#),
        (
            &["--set", "image.repository=example.com/gmsa:1"],
            r#"image.repository "example.com/gmsa:1" is not an image in lower case, without https://, tag and digest, such as registry.example.com/gmsa-webhook"#,
        ),
        (&["--set", "image.tag=a b"], r#"image.tag "a b" is not an image's tag"#),
        (
            &["--set", "image.digest=sha256:12"],
            r#"image.digest "sha256:12" is not a digest: sha256: and 64 hexadecimal digits"#,
        ),
        (
            &["--set", "certificates.secretName=My_Secret"],
            r#"certificates.secretName "My_Secret" is not a Secret's name"#,
        ),
        (
            &["--set", "credential.domainJoinConfig.guid={0-1}"],
            "- at '/credential/domainJoinConfig/guid': got array, want null or string",
        ),
        (
            &["--set", "credential.domainJoinConfig.guid=0-1"],
            r#"credential.domainJoinConfig.guid "0-1" is not a GUID without braces"#,
        ),
        (
            &["--set", "credential.domainJoinConfig.machineAccountName=web$"],
            r#"credential.domainJoinConfig.machineAccountName "web$" is not an account's name: at most 15 characters, without the trailing $ and without a domain"#,
        ),
        (
            &["--set", "credential.domainJoinConfig.sid=S-1-5-21-1-2-3-1104"],
            r#"credential.domainJoinConfig.sid "S-1-5-21-1-2-3-1104" is not a domain's SID: S-1-5-21 and three numbers (an account's has four)"#,
        ),
        (
            &["--set-string", "credential.hostAccountConfig.portableCcgVersion=2"],
            r#"credential.hostAccountConfig.portableCcgVersion "2" is not "1""#,
        ),
        (
            &["--set", "credential.domainJoinConfig.machineAccountName=web app"],
            r#"credential.domainJoinConfig.machineAccountName "web app" is not an account's name: at most 15 characters, without the trailing $ and without a domain"#,
        ),
        (
            &["--set", "credential.domainJoinConfig.dnsName=corp example"],
            r#"credential.domainJoinConfig.dnsName "corp example" is not a domain's DNS name, such as corp.example.com"#,
        ),
        (
            &["--set", "credential.domainJoinConfig.dnsTreeName=.com"],
            r#"credential.domainJoinConfig.dnsTreeName ".com" is not a domain's DNS name, such as example.com"#,
        ),
        (
            &["--set", "credential.domainJoinConfig.netBiosName=CORP/X"],
            r#"credential.domainJoinConfig.netBiosName "CORP/X" is not a domain's NetBIOS name, such as CORP"#,
        ),
        (&["--set", "logLevel=verbose"], r#"logLevel "verbose" is not a level: error, warn, info, debug or trace"#),
        (
            &["--set", "webhooks.optOutLabel=it's"],
            r#"webhooks.optOutLabel "it's" is not a label's key, such as windows.k8s.io/disabled"#,
        ),
        (
            &["--set-string", "authorizationCacheTtl=10"],
            r#"authorizationCacheTtl "10" is not a duration with units, such as 10s or 1m30s"#,
        ),
        (
            &["--set", "podDisruptionBudget.minAvailable=half"],
            r#"podDisruptionBudget.minAvailable "half" is not a number or a percentage"#,
        ),
        (
            &["--set", "podDisruptionBudget.maxUnavailable=1.5"],
            r#"podDisruptionBudget.maxUnavailable "1.5" is not a number or a percentage"#,
        ),
        (&["--set", "clientCa.configMapName=a/b"], r#"clientCa.configMapName "a/b" is not a ConfigMap's name"#),
        (
            &["--set", "serviceMonitor.interval=soon"],
            r#"serviceMonitor.interval "soon" is not a duration with units, such as 30s or 1m30s"#,
        ),
        (
            &["--set", "prometheusRule.thresholds.slowSeconds=1s"],
            r#"prometheusRule.thresholds.slowSeconds "1s" is not a number"#,
        ),
        (
            &["--set", "podMonitor.scrapeTimeout=soon"],
            r#"podMonitor.scrapeTimeout "soon" is not a duration with units, such as 30s or 1m30s"#,
        ),
        (
            &["--set", "certificates.certManager.duration=90d"],
            r#"certificates.certManager.duration "90d" is not a duration with units, such as 2160h"#,
        ),
        (
            &["--set", "fullnameOverride=gmsa.webhook"],
            r#"the name of all objects "gmsa.webhook" is not a DNS label, which starts with a letter and has no dots: set fullnameOverride"#,
        ),
        (&["--set", "namespaceOverride=a.b"], r#"namespaceOverride "a.b" is not a namespace's name"#),
        (&["--set", "serviceAccount.name=a/b"], r#"serviceAccount.name "a/b" is not a service account's name"#),
        (
            &["--set", "networkPolicy.apiServerCidrs={10.0.0.1}"],
            r#"networkPolicy.apiServerCidrs "10.0.0.1" is not a CIDR, such as 10.0.0.1/32"#,
        ),
    ]);
}

#[test]
fn values_that_do_not_go_together_are_refused_with_the_way_out() {
    assert_refused(&[
        (
            &["--set", "hostNetwork=true"],
            "containerPort is 10250, which is the kubelet's with hostNetwork: set another one, such as containerPort=8443",
        ),
        (
            &["--set", "hostNetwork=true,containerPort=443"],
            "containerPort is 443, which takes root with hostNetwork, and the webhook is not root: set one from 1024, such as containerPort=8443",
        ),
        (&["--set", "containerPort=9090"], "containerPort and adminPort are both 9090: they need different ports"),
        (
            &["--set", "certificates.caBundle=Zm9v"],
            "certificates.caBundle is set, but in mode self-managed the webhook makes its own CA: set certificates.mode=secret to serve your certificate, or remove certificates.caBundle",
        ),
        (
            &["--set", "certificates.mode=secret,certificates.caBundle=Zm9v"],
            "certificates.caBundle holds no certificate: it must be a CA certificate in PEM, or base64 of that",
        ),
        (
            &["--set", "certificates.mode=cert-manager,certificates.formerCaBundle=Zm9v"],
            "certificates.formerCaBundle is for modes in which the webhook publishes its CA: remove it, or the value that says otherwise (certificates.caBundle, certificates.certManager.injectCa)",
        ),
        (
            &["--set", "certificates.formerCaBundle=Zm9v"],
            "certificates.formerCaBundle holds no certificate: it must be a CA certificate in PEM, or base64 of that",
        ),
        (
            &["--set", "prometheusRule.alerts.GmsaWebhookSlwo.enabled=false"],
            "prometheusRule.alerts has \"GmsaWebhookSlwo\", which is no alert: there are GmsaWebhookAbsent, GmsaWebhookCallsFail, GmsaWebhookHandshakesFail, GmsaWebhookReviewsFail, GmsaWebhookSpecsUnreadable, GmsaWebhookRequestsRefused, GmsaWebhookWatchStale, GmsaWebhookWatchLive, GmsaWebhookCertificateExpires, GmsaWebhookCertificateRefused, GmsaWebhookCertificatesNotManaged, GmsaWebhookSlow",
        ),
        (
            &["--set", "prometheusRule.alerts.GmsaWebhookSlow.for=soon"],
            "prometheusRule.alerts.GmsaWebhookSlow.for \"soon\" is not a duration with units, such as 10m or 1h30m",
        ),
        (
            &["--set", "certificates.mode=cert-manager,certificates.certManager.issuerRef.kind=ClusterIssuer"],
            "certificates.certManager.issuerRef has no name: name the Issuer or ClusterIssuer",
        ),
        (
            &["--set", "certificates.mode=cert-manager,certificates.secretName=gmsa-tls"],
            r#"certificates.secretName "gmsa-tls" is the Secret of mode self-managed: choose another one"#,
        ),
        (
            &["--set", "credential.enabled=true"],
            "credential.enabled is true, but credential.domainJoinConfig.dnsName is empty",
        ),
        (
            &["--values", "tests/chart/values/everything.yaml", "--set", "credential.hostAccountConfig.pluginInput="],
            "credential.hostAccountConfig is set, but credential.hostAccountConfig.pluginInput is empty",
        ),
        (
            &[
                "--values",
                "tests/chart/values/everything.yaml",
                "--set",
                "credential.hostAccountConfig=null,credential.enableNonJoined=true",
            ],
            "credential.enableNonJoined is true, but credential.hostAccountConfig.pluginGUID is empty",
        ),
    ]);
}

#[test]
fn settings_that_would_stop_drains_or_webhooks_are_refused_with_the_way_out() {
    assert_refused(&[
        (
            &["--set", "podDisruptionBudget.minAvailable=1,podDisruptionBudget.maxUnavailable=1"],
            "podDisruptionBudget.minAvailable and podDisruptionBudget.maxUnavailable are both set: leave one of them blank",
        ),
        (
            &["--set", "autoscaling.enabled=true,autoscaling.minReplicas=7"],
            "autoscaling.minReplicas (7) is greater than autoscaling.maxReplicas (6)",
        ),
        (
            &["--set", "guard.enabled=true", "--kube-version", "1.29"],
            "guard.enabled needs Kubernetes 1.30 or later, and this is v1.29: set guard.enabled=false",
        ),
        (
            &["--set", "guard.validationActions={Deny,Warn}"],
            "guard.validationActions has Deny and Warn, which Kubernetes does not take together: a denial is a warning already",
        ),
        (
            &["--set", "webhooks.credentialSpecs.enabled=false,webhooks.credentialSpecs.strict=true"],
            "webhooks.credentialSpecs.strict needs webhooks.credentialSpecs.enabled=true",
        ),
        (
            &["--set", "webhooks.first.enabled=false,webhooks.last.enabled=false"],
            "webhooks.first.enabled and webhooks.last.enabled are both false: no pod would get its contents",
        ),
        (
            &["--set", "webhooks.credentialSpecs.strict=true,credential.enabled=true", "--kube-version", "1.29"],
            "webhooks.credentialSpecs.strict and credential.enabled go together from Kubernetes 1.30 on, and this is v1.29: Helm creates the credential spec before the webhook can judge it. Create the credential spec yourself, or set webhooks.credentialSpecs.strict=false",
        ),
        (
            &["--set", "podDisruptionBudget.minAvailable=2"],
            "podDisruptionBudget.minAvailable (2) leaves none of the 2 pods (replicaCount) to evict, so no node that runs one can be drained: set it lower, or leave it blank",
        ),
        (
            &["--set", "podDisruptionBudget.minAvailable=100%"],
            "podDisruptionBudget.minAvailable (100%) leaves none of the 2 pods (replicaCount) to evict, so no node that runs one can be drained: set it lower, or leave it blank",
        ),
        (
            &["--set", "autoscaling.enabled=true,autoscaling.minReplicas=3,podDisruptionBudget.minAvailable=4"],
            "podDisruptionBudget.minAvailable (4) leaves none of the 3 pods (autoscaling.minReplicas) to evict, so no node that runs one can be drained: set it lower, or leave it blank",
        ),
        (
            &["--set", "podDisruptionBudget.maxUnavailable=0%"],
            "podDisruptionBudget.maxUnavailable (0%) lets no pod be evicted, so no node that runs one can be drained: set it higher, or leave it blank",
        ),
        (
            &["--set", "autoscaling.enabled=true,resources.requests.cpu=0"],
            "autoscaling.enabled needs resources.requests.cpu, because it scales by the share of it that is used",
        ),
        (
            &["--set", "terminationGracePeriodSeconds=19"],
            "terminationGracePeriodSeconds (19) is less than the 20 seconds that the webhook takes to stop: 5 until its endpoints are forgotten, 15 for what is in flight",
        ),
        (
            &["--set", "extraEnv[0].name=LOG_LEVEL,extraEnv[0].value=debug"],
            "extraEnv sets LOG_LEVEL, which the chart sets from logLevel: use that value",
        ),
        (
            &["--set", "extraEnv[0].name=A,extraEnv[0].value=a,extraEnv[1].name=A,extraEnv[1].value=b"],
            "extraEnv sets A twice",
        ),
        (
            &["--set", "podLabels.app=web"],
            "podLabels.app would replace the label by which the Service finds the pods: choose another key",
        ),
        (
            &["--set", "commonLabels.app=web"],
            "commonLabels.app would replace the label by which the Service finds the pods: choose another key",
        ),
        (
            &["--kube-version", "1.24"],
            "Error: chart requires kubeVersion: >=1.25.0-0 which is incompatible with Kubernetes v1.24",
        ),
    ]);
}

/// What people write, and what an API server, a node or Prometheus would refuse, or count twice, only after half of the release was changed.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn what_would_be_refused_elsewhere_is_refused_here() {
    let image = "in lower case, without https://, tag and digest, such as registry.example.com/gmsa-webhook";
    let key = "is not one that Kubernetes takes, such as example.com/team: what is before the slash is in lower case";
    let value = "is not a label's value: at most 63 letters, digits and . _ -, with a letter or digit at both ends";
    let address = "is not an address without spaces and #: the alerts add #ALERT";
    for (set, expected) in [
        (
            "serviceMonitor.enabled=true,podMonitor.enabled=true",
            "serviceMonitor.enabled and podMonitor.enabled are both true, so every metric would be read and counted twice: set one of them to false".to_owned(),
        ),
        (
            "serviceMonitor.scrapeTimeout=1m",
            "serviceMonitor.scrapeTimeout (1m) is longer than serviceMonitor.interval (30s), which Prometheus does not take: set it lower, or leave it blank".to_owned(),
        ),
        (
            "podMonitor.interval=500ms,podMonitor.scrapeTimeout=1s",
            "podMonitor.scrapeTimeout (1s) is longer than podMonitor.interval (500ms), which Prometheus does not take: set it lower, or leave it blank".to_owned(),
        ),
        (
            "serviceMonitor.interval=30s1m",
            r#"serviceMonitor.interval "30s1m" is not a duration with units, such as 30s or 1m30s"#.to_owned(),
        ),
        (
            "podMonitor.jobLabel=my label",
            r#"podMonitor.jobLabel "my label" is not a label's key, such as app.kubernetes.io/name"#.to_owned(),
        ),
        (
            "image.repository=https://registry.example.com/gmsa",
            format!(r#"image.repository "https://registry.example.com/gmsa" is not an image {image}"#),
        ),
        (
            "image.repository=registry.example.com/Team/gmsa",
            format!(r#"image.repository "registry.example.com/Team/gmsa" is not an image {image}"#),
        ),
        ("image.repository=Team/gmsa", format!(r#"image.repository "Team/gmsa" is not an image {image}"#)),
        (
            "global.systemDefaultRegistry=https://registry.example.com",
            r#"global.systemDefaultRegistry "https://registry.example.com" is not a registry without https://, such as registry.example.com"#.to_owned(),
        ),
        (
            "global.cattle.systemDefaultRegistry=http://registry",
            r#"global.cattle.systemDefaultRegistry "http://registry" is not a registry without https://, such as registry.example.com"#.to_owned(),
        ),
        ("commonLabels.Example\\.com/team=a", format!(r#"the key in commonLabels "Example.com/team" {key}"#)),
        ("podAnnotations.a b=c", format!(r#"the key in podAnnotations "a b" {key}"#)),
        ("serviceMonitor.labels.release=kube prometheus", format!(r#"serviceMonitor.labels.release "kube prometheus" {value}"#)),
        ("podLabels.team=identity-", format!(r#"podLabels.team "identity-" {value}"#)),
        (
            "prometheusRule.alertLabels.on-call=web",
            r#"the key in prometheusRule.alertLabels "on-call" is not a label of Prometheus: letters, digits and _"#.to_owned(),
        ),
        (
            "prometheusRule.alerts.GmsaWebhookSlow.labels.on-call=web",
            r#"the key in prometheusRule.alerts.GmsaWebhookSlow.labels "on-call" is not a label of Prometheus: letters, digits and _"#.to_owned(),
        ),
        (
            "prometheusRule.runbookUrl=https://wiki.example.com/gmsa #alerts",
            format!(r#"prometheusRule.runbookUrl "https://wiki.example.com/gmsa #alerts" {address}"#),
        ),
        (
            "prometheusRule.runbookUrl=https://wiki.example.com/gmsa#alerts",
            format!(r#"prometheusRule.runbookUrl "https://wiki.example.com/gmsa#alerts" {address}"#),
        ),
        (
            "extraEnv[0].name=A,extraEnv[0].value=1",
            r#"extraEnv: the value of A is a number, and Kubernetes takes text alone: write it in quotes, such as "1""#.to_owned(),
        ),
        (
            "extraEnv[0].name=A,extraEnv[0].value=true",
            r#"extraEnv: the value of A is a boolean, and Kubernetes takes text alone: write it in quotes, such as "true""#.to_owned(),
        ),
        (
            "resources.limits.memory=256m",
            r#"resources.limits.memory "256m" is less than a mebibyte, as m means thousandths of a byte and a number bytes: write 256Mi"#.to_owned(),
        ),
        (
            "resources.requests.memory=64",
            r#"resources.requests.memory "64" is less than a mebibyte, as m means thousandths of a byte and a number bytes: write 64Mi"#.to_owned(),
        ),
        (
            "resources.limits.memory=32Mi",
            "resources.requests.memory (64Mi) is more than resources.limits.memory (32Mi): set both".to_owned(),
        ),
        (
            "dnsPolicy=None",
            "dnsPolicy=None needs dnsConfig.nameservers: name them, or leave dnsPolicy blank".to_owned(),
        ),
        (
            "extraVolumes[0].name=tls",
            "extraVolumes has tls, which the chart has, or which is there twice: choose another name".to_owned(),
        ),
        (
            "extraVolumeMounts[0].name=ca,extraVolumeMounts[0].mountPath=/ca",
            "extraVolumeMounts has ca, which is none of extraVolumes".to_owned(),
        ),
        (
            "networkPolicy.apiServerCidrs={fd00::/64,10.0.0.1/33}",
            r#"networkPolicy.apiServerCidrs "10.0.0.1/33" is not a CIDR, such as 10.0.0.1/32"#.to_owned(),
        ),
        (
            "podDisruptionBudget.maxUnavailable=150%",
            r#"podDisruptionBudget.maxUnavailable "150%" is not a number or a percentage"#.to_owned(),
        ),
        ("updateStrategy.type=Rolling", r#"updateStrategy.type "Rolling" is not RollingUpdate or Recreate"#.to_owned()),
        (
            "probes.liveness.successThreshold=2",
            r#"probes.liveness.successThreshold "2" is not 1, which is all that Kubernetes takes"#.to_owned(),
        ),
        ("priorityClassName=High_1", r#"priorityClassName "High_1" is not a priority class's name"#.to_owned()),
        (
            "webhooks.objectSelector.matchLabels.team=a b",
            format!(r#"webhooks.objectSelector.matchLabels.team "a b" {value}"#),
        ),
        (
            "tolerations[0].effect=Never",
            "- at '/tolerations/0/effect': value must be one of '', 'NoSchedule', 'PreferNoSchedule', 'NoExecute', <nil>".to_owned(),
        ),
        ("tolerations[0].value=1", "- at '/tolerations/0/value': got number, want null or string".to_owned()),
        (
            "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey=kubernetes.io/hostname",
            "affinity.podAntiAffinity has a term without labelSelector, which is about no pod: add labelSelector: {matchLabels: {app: gmsa}}".to_owned(),
        ),
    ] {
        assert_eq!(complaint(&["--set", set]), expected);
    }
}

/// The same of what the chart passes on as Kubernetes has it: a slip there would end an install at the Deployment, after half of the objects.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn what_is_passed_on_is_refused_before_the_api_server_does() {
    for (set, expected) in [
        (
            "lifecycle.preStop.sleep.seconds=30",
            "lifecycle.preStop.sleep.seconds (30) must be less than terminationGracePeriodSeconds (30)",
        ),
        (
            "certificates.mode=cert-manager,certificates.certManager.duration=30m",
            "certificates.certManager.duration (30m) is less than 1h, which cert-manager does not take",
        ),
        (
            "certificates.mode=cert-manager,certificates.certManager.duration=2h,certificates.certManager.renewBefore=3h",
            "certificates.certManager.renewBefore (3h) is not less than certificates.certManager.duration (2h)",
        ),
        (
            "certificates.certManager.issuerRef.name=a,certificates.certManager.issuerRef.kind=issuer",
            r#"certificates.certManager.issuerRef.kind "issuer" is not Issuer or ClusterIssuer: correct it, or set certificates.certManager.issuerRef.group"#,
        ),
        ("clientCa.configMapName=ca,clientCa.key=../ca.crt", r#"clientCa.key "../ca.crt" is not a key of a ConfigMap"#),
        (
            "service.ipFamilies={IPv4,IPv6},service.ipFamilyPolicy=SingleStack",
            "service.ipFamilyPolicy=SingleStack takes one of service.ipFamilies: remove the others, or set PreferDualStack",
        ),
        (
            "networkPolicy.extraEgress[0].ports[0].port=80,networkPolicy.extraEgress[0].ports[0].endPort=70",
            "networkPolicy.extraEgress: endPort (70) needs a port that is a number and not greater",
        ),
        ("podSecurityContext.runAsUser=-1", "- at '/podSecurityContext/runAsUser': minimum: got -1, want 0"),
        (
            "extraVolumes[0].name=a,extraVolumes[0].configMap.optional=true",
            "- at '/extraVolumes/0/configMap': missing property 'name'",
        ),
        ("dnsConfig.nameservers={999.1.1.1}", r#"dnsConfig.nameservers "999.1.1.1" is not an IP address"#),
        ("resources.limits.memory=50%", r#"resources.limits.memory "50%" is not a quantity, such as 100m or 128Mi"#),
        (
            "resources.requests.cpu=2,resources.limits.cpu=500m",
            "resources.requests.cpu (2) is more than resources.limits.cpu (500m): set both",
        ),
        (
            "resources.limits.mem=256Mi",
            r#"the key in resources.limits "mem" is not a resource of a container: cpu, memory, ephemeral-storage, or one with a domain"#,
        ),
        (
            "updateStrategy.type=Recreate",
            "updateStrategy.type=Recreate ends all pods before new ones start, so pods that use GMSA would be refused during every upgrade: leave updateStrategy blank",
        ),
        (
            "updateStrategy.rollingUpdate.maxUnavailable=100%",
            "updateStrategy.rollingUpdate.maxUnavailable (100%) lets an upgrade end all of the 2 pods at once, so pods that use GMSA would be refused meanwhile: set it lower",
        ),
        (
            "updateStrategy.rollingUpdate.maxUnavailable=0,updateStrategy.rollingUpdate.maxSurge=0%",
            "updateStrategy.rollingUpdate has maxSurge and maxUnavailable of 0, so no pod could ever be replaced: set one of them higher",
        ),
        (
            "nameOverride=-a",
            r#"nameOverride "-a" is not a label's value: at most 63 letters, digits and . _ -, with a letter or digit at both ends"#,
        ),
        (
            "credential.domainJoinConfig.machineAccountName=WebApplication01",
            r#"credential.domainJoinConfig.machineAccountName "WebApplication01" is not an account's name: at most 15 characters, without the trailing $ and without a domain"#,
        ),
        ("dnsConfig.nameservers={dns.example.com}", r#"dnsConfig.nameservers "dns.example.com" is not an IP address"#),
        ("dnsConfig.nameServers={10.0.0.10}", "- at '/dnsConfig': additional properties 'nameServers' not allowed"),
        ("securityContext.runAsNonRoot=yes", "- at '/securityContext/runAsNonRoot': got string, want null or boolean"),
        ("podSecurityContext.fsgroup=1", "- at '/podSecurityContext': additional properties 'fsgroup' not allowed"),
        (
            "securityContext.privileged=true",
            "securityContext.privileged and securityContext.allowPrivilegeEscalation=false contradict each other: remove securityContext.privileged, which the webhook does not need",
        ),
        ("affinity.nodeaffinity.a=b", "- at '/affinity': additional properties 'nodeaffinity' not allowed"),
        (
            "tolerations[0].operator=Exists,tolerations[0].value=a",
            r#"tolerations: operator Exists takes no value, and the one of every key has "a": remove the value, or set operator: Equal"#,
        ),
        (
            "tolerations[0].value=a",
            "tolerations has one without a key: name the taint's key, or set operator: Exists to tolerate every taint",
        ),
        (
            "tolerations[0].key=a,tolerations[0].tolerationSeconds=5",
            "tolerations: tolerationSeconds of a is for effect: NoExecute alone",
        ),
        (
            "topologySpreadConstraints[0].topologyKey=zone",
            "- at '/topologySpreadConstraints/0': missing properties 'maxSkew', 'whenUnsatisfiable'",
        ),
        (
            "topologySpreadConstraints[0].topologyKey=zone,topologySpreadConstraints[0].maxSkew=1,topologySpreadConstraints[0].minDomains=2,topologySpreadConstraints[0].whenUnsatisfiable=ScheduleAnyway",
            "topologySpreadConstraints: minDomains of zone is for whenUnsatisfiable: DoNotSchedule alone",
        ),
        (
            "webhooks.namespaceSelector.matchExpressions[0].key=a,webhooks.namespaceSelector.matchExpressions[0].operator=In",
            "webhooks.namespaceSelector: operator In of a takes values: add some, or use Exists",
        ),
        ("extraVolumes[0].name=ca", "extraVolumes: ca needs one source, such as configMap, and has 0"),
        (
            "extraVolumes[0].name=ca,extraVolumes[0].configmap.name=ca",
            "- at '/extraVolumes/0': additional properties 'configmap' not allowed",
        ),
        (
            "extraVolumes[0].name=ca,extraVolumes[0].configMap.name=ca,extraVolumeMounts[0].name=ca,extraVolumeMounts[0].mountPath=/tls",
            "extraVolumeMounts mounts ca at /tls, where the chart or another entry mounts something: choose another mountPath",
        ),
        (
            "extraEnv[0].name=A,extraEnv[0].value=a,extraEnv[0].valueFrom.fieldRef.fieldPath=spec.nodeName",
            "extraEnv sets A by value and by valueFrom: remove one of them",
        ),
        ("lifecycle.prestop.sleep.seconds=5", "- at '/lifecycle': additional properties 'prestop' not allowed"),
        (
            "networkPolicy.metricsFrom[0].podselector.a=b",
            "- at '/networkPolicy/metricsFrom/0': additional properties 'podselector' not allowed",
        ),
    ] {
        assert_eq!(complaint(&["--set", set]), expected);
    }
}

/// What the same checks must go on to take.
#[test]
fn what_only_looks_wrong_is_taken() {
    for set in [
        "image.repository=localhost:5000/gmsa_webhook",
        "image.repository=[fd00::1]:5000/a/b.c/gmsa",
        "image.repository=Registry.Example.com/gmsa",
        "global.systemDefaultRegistry=mirror:5000/proxy/",
        "commonLabels.Team=Identity,podLabels.example\\.com/Cost-Center=A_1",
        "serviceMonitor.interval=1m,serviceMonitor.scrapeTimeout=60s",
        "prometheusRule.runbookUrl=wiki/gmsa.md",
        "resources.limits.memory=134217728",
        "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight=1,affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].key=a,affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].operator=Exists",
        "resources.requests.cpu=0.5,resources.limits.cpu=500m,resources.limits.memory=1e9,resources.limits.example\\.com/gpu=1",
        "updateStrategy.rollingUpdate.maxSurge=0,updateStrategy.rollingUpdate.maxUnavailable=1",
        "podSecurityContext.seccompProfile=null,podSecurityContext.fsGroup=1000,securityContext.seLinuxOptions.level=s0",
        "tolerations[0].operator=Exists,tolerations[1].key=a,tolerations[1].effect=NoExecute,tolerations[1].tolerationSeconds=5",
        "lifecycle.preStop.sleep.seconds=5,dnsConfig.nameservers={10.0.0.10,fd00::10}",
        "extraEnv[0].name=NODE,extraEnv[0].valueFrom.fieldRef.fieldPath=spec.nodeName",
    ] {
        Helm::new().template(["--set", set]);
    }
}

#[test]
fn trials_and_static_policies_that_would_not_hold_are_refused() {
    assert_refused(&[
        (
            &["--set", "webhooks.enforcement=Warn,guard.enabled=true"],
            "webhooks.enforcement=Warn admits what the guard denies: set guard.validationActions={Warn,Audit} too, or guard.enabled=false",
        ),
        (
            &["--set", "webhooks.enforcement=Warn,staticPolicies.enabled=true,staticPolicies.admins.users={a}"],
            "webhooks.enforcement=Warn admits what the guard denies: set guard.validationActions={Warn,Audit} too, or staticPolicies.enabled=false",
        ),
        (
            &["--set", "webhooks.enforcement=Warn,webhooks.warnNamespaces={a}"],
            "webhooks.warnNamespaces has no effect with webhooks.enforcement=Warn, which warns in every namespace: set webhooks.enforcement=Enforce, or remove webhooks.warnNamespaces",
        ),
        (&["--set", "webhooks.warnNamespaces={a,B}"], r#"webhooks.warnNamespaces "B" is not a namespace's name"#),
        (
            &["--set", "staticPolicies.enabled=true"],
            "staticPolicies.admins is empty, so nobody could upgrade or uninstall this release: name the users and groups that may, such as staticPolicies.admins.groups={kubeadm:cluster-admins}",
        ),
        (
            &[
                "--set",
                "staticPolicies.enabled=true,staticPolicies.admins.users={a,system:serviceaccount:windows:gmsa}",
                "-n",
                "windows",
            ],
            r#"staticPolicies.admins has "system:serviceaccount:windows:gmsa", which is what the policies protect against: name the users and groups that upgrade this release"#,
        ),
        (
            &["--set", "staticPolicies.enabled=true,staticPolicies.admins.groups={system:authenticated}"],
            r#"staticPolicies.admins has "system:authenticated", which is what the policies protect against: name the users and groups that upgrade this release"#,
        ),
        (
            &["--set", "staticPolicies.enabled=true,staticPolicies.admins.users={kubeadm:cluster-admins}"],
            r#"staticPolicies.admins.users has "kubeadm:cluster-admins", which is a group: name it in staticPolicies.admins.groups"#,
        ),
        (
            &["--set", "staticPolicies.enabled=true,staticPolicies.admins.users={system:serviceaccounts:argocd}"],
            r#"staticPolicies.admins.users has "system:serviceaccounts:argocd", which is a group: name it in staticPolicies.admins.groups"#,
        ),
        (
            &["--set", "staticPolicies.enabled=true,staticPolicies.admins.groups={a,system:serviceaccount:argocd:b}"],
            r#"staticPolicies.admins.groups has "system:serviceaccount:argocd:b", which is a user: name it in staticPolicies.admins.users"#,
        ),
    ]);
    // Helm warns of it before.
    let list = complaint(&["--set", "staticPolicies.admins={kubeadm:cluster-admins}"]);
    let said = "staticPolicies.admins is a list, in which a user with the name of a group counts as the group: name users in staticPolicies.admins.users, and groups in staticPolicies.admins.groups";
    assert_eq!(list.split_once("): ").unwrap().1, said);
}

#[test]
fn the_image_of_the_go_webhook_is_refused() {
    let fix = "add --set image.repository=REPOSITORY --set image.tag=0.1.0, or change both in your values file";
    for repository in
        ["registry.k8s.io/gmsa-webhook/k8s-gmsa-webhook", "sigwindowstools/k8s-gmsa-webhook", "mirror/k8s-gmsa-webhook"]
    {
        let expected = format!(
            r#"image.repository "{repository}" is the Go webhook's, and this chart runs another program: {fix}"#
        );
        assert_eq!(complaint(&["--set", &format!("image.repository={repository}")]), expected);
    }
    assert_eq!(
        complaint(&["--set", "image.tag=v0.13.0"]),
        format!(r#"image.tag "v0.13.0" is the Go webhook's, and this chart runs another program: {fix}"#)
    );
}
