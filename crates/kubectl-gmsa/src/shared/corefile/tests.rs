//! Corefiles as the platforms ship them, and the odd ones.

use proptest::prelude::*;

use super::*;

const NO_FILES: &dyn Fn(&str) -> Option<Vec<String>> = &|_| None;

fn read(text: &str) -> Corefile {
    Corefile::parse(text, NO_FILES).unwrap()
}

/// With the files of a ConfigMap `coredns-custom`.
fn read_with(text: &str, custom: &[(&str, &str)]) -> Corefile {
    let files = |pattern: &str| {
        let (_, ending) = pattern.rsplit_once("custom/*")?;
        let named = custom.iter().filter(|(name, _)| name.ends_with(ending));
        Some(named.map(|(_, text)| (*text).to_owned()).collect())
    };
    Corefile::parse(text, &files).unwrap()
}

fn forwarded(zone: &str, servers: &[&str]) -> Destination {
    let servers = servers.iter().map(|&server| server.to_owned()).collect();
    Destination::Forwarded(Forward { zone: zone.to_owned(), servers, is_sequential: false })
}

fn names(server: &Server) -> Vec<&str> {
    server.plugins.iter().map(|plugin| plugin.name.as_str()).collect()
}

/// `cmd/kubeadm/app/phases/addons/dns/manifests.go` of Kubernetes 1.33, with a stub domain as its documentation has it:
/// <https://kubernetes.io/docs/tasks/administer-cluster/dns-custom-nameservers/>.
const KUBEADM: &str = ".:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success cluster.local
       disable denial cluster.local
    }
    loop
    reload
    loadbalance
}
contoso.com:53 {
    errors
    cache 30
    forward . 10.0.0.4 10.0.0.5
}
";

#[test]
fn the_corefile_of_kubeadm() {
    let read = read(KUBEADM);
    let all =
        ["errors", "health", "ready", "kubernetes", "prometheus", "forward", "cache", "loop", "reload", "loadbalance"];
    assert_eq!(names(&read.servers[0]), all);
    let health = &read.servers[0].plugins[1];
    assert!(health.arguments.is_empty() && health.block == [["lameduck", "5s"]]);
    assert_eq!(read.answer("contoso.com"), forwarded("contoso.com", &["10.0.0.4", "10.0.0.5"]));
    assert_eq!(read.answer("emea.contoso.com"), forwarded("contoso.com", &["10.0.0.4", "10.0.0.5"]));
    assert_eq!(read.answer("mycontoso.com"), forwarded(".", &["/etc/resolv.conf"]));
    assert_eq!(read.port(), 53);
    assert_eq!(read.unread, [""; 0]);
}

/// The ConfigMap `coredns` of AKS, and what <https://learn.microsoft.com/azure/aks/coredns-custom> puts into `coredns-custom`.
const AKS: &str = r#".:53 {
    errors
    ready
    health {
      lameduck 5s
    }
    kubernetes cluster.local in-addr.arpa ip6.arpa {
      pods insecure
      fallthrough in-addr.arpa ip6.arpa
      ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance
    import custom/*.override
    template ANY ANY internal.cloudapp.net {
      match "^(?:[^.]+\.){4,}internal\.cloudapp\.net\.$"
      rcode NXDOMAIN
      fallthrough
    }
}
import custom/*.server
"#;

#[test]
fn the_corefile_of_aks_with_what_it_imports() {
    let server = "contoso.com:53 {\n    errors\n    cache 30\n    forward . 10.0.0.4 # the first\n}\n";
    let custom = [("log.override", "log"), ("test.server", server), ("notes", "}")];
    let read = read_with(AKS, &custom);
    assert_eq!(read.answer("contoso.com"), forwarded("contoso.com", &["10.0.0.4"]));
    assert_eq!(read.unread, [""; 0]);
    let template = read.servers[0].plugins.last().unwrap();
    assert_eq!(template.block[0], ["match", "^(?:[^.]+\\.){4,}internal\\.cloudapp\\.net\\.$"]);
    assert_eq!(template.arguments, ["ANY", "ANY", "internal.cloudapp.net"]);
    assert!(read.servers[0].has("log"), "{:?}", names(&read.servers[0]));
    // An empty ConfigMap, and none that is known.
    assert_eq!(read_with(AKS, &[]).answer("contoso.com"), forwarded(".", &["/etc/resolv.conf"]));
    assert_eq!(
        super::Corefile::parse(AKS, NO_FILES).unwrap().unread,
        ["import custom/*.override", "import custom/*.server"]
    );
}

/// `manifests/coredns.yaml` of k3s.
#[test]
fn the_corefile_of_k3s() {
    let k3s = ".:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
      pods insecure
      fallthrough in-addr.arpa ip6.arpa
    }
    hosts /etc/coredns/NodeHosts {
      ttl 60
      reload 15s
      fallthrough
    }
    prometheus :9153
    cache 30
    loop
    reload
    loadbalance
    import /etc/coredns/custom/*.override
    forward . /etc/resolv.conf
}
import /etc/coredns/custom/*.server
";
    let custom =
        [("a.server", "contoso.com {\n forward . 10.0.0.4 10.0.0.5\n}"), ("b.override", "forward corp.local 10.1.0.4")];
    let read = read_with(k3s, &custom);
    assert_eq!(read.answer("contoso.com"), forwarded("contoso.com", &["10.0.0.4", "10.0.0.5"]));
    // A `forward` of its own in the block of the root.
    assert_eq!(read.answer("ad.corp.local"), forwarded("corp.local", &["10.1.0.4"]));
    assert_eq!(read.answer("example.com"), forwarded(".", &["/etc/resolv.conf"]));
}

/// As the add-on of EKS creates it.
#[test]
fn the_corefile_of_eks() {
    let eks = ".:53 {
    errors
    health {
        lameduck 5s
      }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
      pods insecure
      fallthrough in-addr.arpa ip6.arpa
    }
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance
}
";
    let read = read(eks);
    assert_eq!(read.servers.len(), 1);
    assert_eq!(read.answer("contoso.com"), forwarded(".", &["/etc/resolv.conf"]));
}

/// `charts/coredns/templates/configmap.yaml` of the CoreDNS chart, rendered by RKE2: the cluster's domain is there twice.
#[test]
fn the_corefile_of_rke2() {
    let rke2 = ".:53 {
    errors 
    health  {
        lameduck 10s
    }
    ready 
    kubernetes   cluster.local  cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    prometheus   0.0.0.0:9153
    forward   . /etc/resolv.conf
    cache   30
    loop 
    reload 
    loadbalance 
}
contoso.com.:53 tls://corp.local {
    forward   . 10.0.0.4 10.0.0.5 {
        policy sequential
    }
}";
    let read = read(rke2);
    assert_eq!(read.servers[0].plugins[3].arguments, ["cluster.local", "cluster.local", "in-addr.arpa", "ip6.arpa"]);
    let Destination::Forwarded(forward) = read.answer("contoso.com") else { panic!("{read:?}") };
    assert!(forward.is_sequential);
    let [contoso, corp] = &read.servers[1].zones[..] else { panic!("{read:?}") };
    assert_eq!((contoso.name.as_str(), contoso.port, contoso.transport), ("contoso.com", 53, "dns"));
    assert_eq!((corp.name.as_str(), corp.port, corp.transport), ("corp.local", 853, "tls"));
    // Pods ask in plain DNS.
    assert_eq!(read.answer("corp.local"), forwarded(".", &["/etc/resolv.conf"]));
}

/// What the operator of OpenShift writes into `openshift-dns/dns-default`:
/// `pkg/operator/controller/controller_dns_configmap.go` of cluster-dns-operator.
#[test]
fn the_corefile_of_openshift() {
    let openshift = "# contoso
contoso.com:5353 emea.contoso.com:5353 {
    prometheus 127.0.0.1:9153
    forward . 10.0.0.4 10.0.0.5:5353 {
        policy random
    }
    errors
    log . {
        class error
    }
    bufsize 512
    cache 900 {
        denial 9984 30
    }
}
.:5353 {
    bufsize 512
    errors
    health {
        lameduck 20s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }
    prometheus 127.0.0.1:9153
    forward . /etc/resolv.conf {
        policy sequential
    }
    cache 900 {
        denial 9984 30
    }
    reload
}
hostname.bind:5353 {
    chaos
}
";
    let read = read(openshift);
    assert_eq!(read.port(), 5353);
    assert_eq!(read.answer("emea.contoso.com"), forwarded("emea.contoso.com", &["10.0.0.4", "10.0.0.5:5353"]));
    assert_eq!(read.answer("hostname.bind"), Destination::NotForwarded("hostname.bind".to_owned()));
    // A zone that was added at the port of DNS.
    let read = super::Corefile::parse(&format!("{openshift}corp.local {{\n forward . 10.0.0.4\n}}"), NO_FILES).unwrap();
    assert_eq!((read.other_port("corp.local"), read.other_port("contoso.com")), (Some(53), None));
}

/// `stubDomains` of kube-dns, which GKE has: <https://cloud.google.com/kubernetes-engine/docs/how-to/kube-dns>.
#[test]
fn the_most_specific_stub_domain_wins() {
    let forward = |zone: &str, server: &str| Forward {
        zone: zone.to_owned(),
        servers: vec![server.to_owned()],
        is_sequential: false,
    };
    let stubs = Corefile::of_forwards([
        forward("com", "10.0.0.1"),
        forward("Contoso.com.", "10.0.0.2"),
        forward("x.contoso.com", "10.0.0.3"),
    ]);
    assert_eq!(stubs.answer("emea.contoso.com"), forwarded("contoso.com", &["10.0.0.2"]));
    assert_eq!(stubs.answer("fabrikam.com"), forwarded("com", &["10.0.0.1"]));
    assert_eq!(stubs.answer("fabrikam.org"), Destination::Nowhere);
}

#[test]
fn snippets_imports_quotes_and_commas() {
    let text = "(forwards) {\n  forward . 10.0.0.4 {\n    except dev.contoso.com\n  }\n  log\n}\n\
        contoso.com,\n\"corp.local:53\" {\n  import forwards\n  errors\n}\n. {\n  import forwards # again\n  import other/*.conf\n  whoami\n}\n";
    let found = read(text);
    assert_eq!(names(&found.servers[0]), ["forward", "log", "errors"]);
    assert_eq!(names(&found.servers[1]), ["forward", "log", "whoami"]);
    assert_eq!(found.answer("corp.local"), forwarded("corp.local", &["10.0.0.4"]));
    assert_eq!(found.answer("dev.contoso.com"), Destination::NotForwarded("contoso.com".to_owned()));
    assert_eq!(found.unread, ["import other/*.conf"]);
    // A variable stays as it is written.
    let found = read("{$DOMAIN}:53 {\n  forward . {$DNS}\n}\n.:53 {\n  forward . {%DNS%} 10.0.0.4\n}");
    assert_eq!(found.unread, ["{$DOMAIN}:53"]);
    assert_eq!(found.answer("contoso.com"), forwarded(".", &["{%DNS%}", "10.0.0.4"]));
}

#[test]
fn a_block_without_braces_reaches_to_the_end() {
    let found = read(".:1053\nforward . 10.0.0.4\n\nlog");
    assert_eq!((names(&found.servers[0]), found.port()), (vec!["forward", "log"], 1053));
    assert_eq!(read("\u{feff}# nothing\r\n"), Corefile::default());
    assert_eq!(read("").answer("contoso.com"), Destination::Nowhere);
}

#[test]
fn words_are_those_of_coredns() {
    let words = |text: &str| lexer::words(text).unwrap().into_iter().map(|word| word.text).collect::<Vec<_>>();
    assert_eq!(words("a#b c\nd \"e # f\"g \"h\\\"i\\j\" \"\" k\rl"), ["a", "d", "e # f", "g", "h\"i\\j", "", "kl"]);
    assert_eq!(words("a \"open\n"), ["a", "open\n"]);
    assert_eq!(words("a \""), ["a"]);
}

#[test]
fn what_coredns_refuses_is_refused_with_its_line() {
    for (text, line, problem) in [
        (". {\n  errors\n", 2, "a server block has no } at its end"),
        (". {\n  forward . 10.0.0.4 }\n", 2, "a } has no {"),
        (". {\n  health {\n    lameduck 5s\n", 3, "a plugin has no } at its end"),
        (". {\n  import\n}", 2, "an import names no file"),
        (". {\n  import a b\n}", 2, "an import names more than one file"),
        ("(a) {\n  log\n", 2, "a snippet has no } at its end"),
        ("(a) {\n}\n(a) {\n}", 4, "a snippet is defined twice"),
        ("(a)\nlog", 1, "a snippet has no { after its name"),
        ("contoso.com, {\n}", 1, "a comma is before a {"),
        ("contoso.com,", 1, "a comma is before the end"),
        ("contoso.com: {\n}", 2, "a zone ends with a colon"),
        ("contoso.com:65536 {\n}", 2, "the port of a zone is larger than 65535"),
    ] {
        assert_eq!(Corefile::parse(text, NO_FILES), Err(CorefileError::Syntax { line, problem }), "{text}");
    }
}

#[test]
fn what_is_too_large_is_not_read() {
    let too_large = Err(CorefileError::TooLarge);
    assert_eq!(Corefile::parse(&" ".repeat(MAX_BYTES + 1), NO_FILES), too_large);
    assert_eq!(Corefile::parse(&"a ".repeat(MAX_WORDS + 1), NO_FILES), too_large);
    // A snippet that imports itself, files that import themselves, and snippets that grow.
    assert_eq!(Corefile::parse("(a) {\n  import a\n}\n. {\n  import a\n}", NO_FILES), too_large);
    assert_eq!(Corefile::parse("import a", &|_| Some(vec!["import a\nimport a".to_owned()])), too_large);
    let grown = (0..20).map(|n| format!("({}) {{\nimport {n}\nimport {n}\n}}\n", n + 1)).collect::<Vec<_>>().concat();
    let grown = format!("(0) {{\nlog\n}}\n{grown}. {{\nimport 20\n}}");
    assert_eq!(Corefile::parse(&grown, NO_FILES), too_large);
}

proptest! {
    /// A text that imports itself: what is read is within its bounds.
    #[test]
    fn any_text_is_read_within_its_bounds(text in "([a-z.:{}\n #\"\\\\/*$%-]|import a\\*|\\(a\\) |forward \\. )*") {
        let files = |pattern: &str| pattern.ends_with('*').then(|| vec![text.clone()]);
        if let Ok(read) = Corefile::parse(&text, &files) {
            let words = |plugin: &DnsPlugin| plugin.arguments.len() + plugin.block.iter().map(Vec::len).sum::<usize>();
            let plugins = read.servers.iter().flat_map(|server| &server.plugins);
            prop_assert!(plugins.map(words).sum::<usize>() <= MAX_WORDS * (MAX_IMPORTS + 1));
            for domain in ["contoso.com", "cluster.local", "."] {
                if let Destination::Forwarded(forward) = read.answer(domain) {
                    let _ = forward.servers.iter().filter(|server| is_public(server) || is_of_node(server)).count();
                }
            }
        }
    }
}
