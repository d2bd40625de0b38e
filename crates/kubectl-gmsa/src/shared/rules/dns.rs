//! DNS of the cluster.

use gmsa_core::diagnostic::Severity;

use super::{
    Family, Rule, RuleEntry,
    Words::{Event, Message},
    family,
};

family! { "DNS of the cluster" {
    DNS_ZONE: "dns-zone", Note, "No zone of the DNS of the cluster forwards the domain of a credential spec.",
        "`kubectl gmsa dns` prints the change. You can skip it if the servers for all other queries know the domain. See docs/windows-pods.md.";
    DNS_SERVERS: "dns-servers", Warning, "Queries for a domain are forwarded to a single server.",
        "Add a second DNS server of the domain to the `forward` of its zone: with one server, no Pod can log on while that server restarts.";
    DNS_RESOLVERS: "dns-resolvers", Error, "Queries for a domain are forwarded to resolvers that do not know it.",
        "Forward the domain only to its own DNS servers: CoreDNS asks a random server of the list, and accepts NXDOMAIN from any of them.",
        words: [Message("plugin/errors: 2 * i/o timeout"), Message("plugin/errors: 2 * connection refused"), Message("plugin/errors: 2 * no route to host"), Message("plugin/errors: 2 * no upstream host available"), Message("plugin/errors: 2 * no healthy upstream"), Message("no healthy proxies"), Message("plugin/errors: 2 * network is unreachable"), Message("unreachable backend"), Message("_ldap._tcp* udp *\" - - 0 "), Message("_msdcs* udp *\" - - 0 ")],
        remedies: {
            "i/o timeout" | "\" - - 0 " | "no route to host" | "network is unreachable" | "upstream" | "healthy proxies" => "Let CoreDNS reach the DNS servers of the domain over UDP and TCP 53; a NetworkPolicy, firewall or security group drops its packets. `kubectl gmsa dns` prints the zone.",
            "connection refused" => "No DNS server listens at the address that CoreDNS asks: correct the `forward` of its zone.",
        };
    DNS_CONFIGURATION: "dns-configuration", Error, "The configuration of the cluster DNS cannot be parsed.",
        "Correct it: CoreDNS keeps its old configuration while it runs, and does not start again.",
        words: [
            Message("plugin/loop: loop"),
            Message("corefile:* - error during parsing"),
            Message("error during parsing: unknown directive"),
            Message("no nameservers found"),
            Message("plugin/* no valid upstream addresses"),
            Message("corefile changed but reload failed"),
            Message("only be used once per server block"),
            Message("cannot serve dns://*already defined"),
            Message("plugin/* not an ip address or file"),
            Message("wrong argument count or unexpected line ending"),
            Message("plugin/* unknown property"),
            Message("plugin/forward: unknown "),
            Message("plugin/* is not a valid domain name"),
            Message("starting with listener file descriptors"),
            Message("unexpected token '}'"),
            Message("plugin/* unexpected token"),
            Message("corefile:* unexpected eof"),
        ],
        remedies: {
            "only be used once" => "The zone has the same plugin twice, as of two files that are imported into one server block: keep one. On AKS a key of `coredns-custom` that ends with `.override` goes into the block of `.`, `.server` is for a zone of its own.",
            "already defined" => "Two server blocks are for the same zone and port: join them. On AKS the add-on for GMSA writes a block for the domain, and one in `coredns-custom` for the same zone is the second: remove it.",
            "not an ip address or file" => "Write addresses behind `forward . `: CoreDNS takes no names of servers there.",
            "unknown directive" | "unknown property" | "wrong argument count" | "unexpected token" => "Correct the line that the message names: a directive is misspelt, is not built into this CoreDNS, or has a brace or an argument too many.",
            "plugin/loop" => "CoreDNS asks itself: the resolver that `forward . /etc/resolv.conf` leads to is CoreDNS or a stub on the node. Name real DNS servers there.",
        };
    DNS_REGISTRATION: "dns-registration", Warning, "A machine could not write its own records into DNS.",
        "If it is a domain controller, correct its DNS servers and the rights on the zone, then restart Netlogon there: clients find it by these records. If it is a container, ignore it: its address needs no record.",
        words: [
            Message("dynamic registration of the dns record"),
            Message("dynamic deletion of the dns record"),
            Message("dynamic registration or deregistration of one or more dns records failed"),
            Message("failed to register host (a or aaaa) resource records"),
            Message("failed to register pointer (ptr) resource records"),
            Event("netlogon", &[5774, 5775, 5781]),
        ],
        remedies: {
            "resource records" => "In a container ignore it: its address needs no record. On a node, correct its DNS servers and its right to update the zone.",
        };
} }
