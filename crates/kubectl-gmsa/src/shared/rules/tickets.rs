//! Tickets for Linux pods: messages of the agent, and of the clients that read its tickets. Those of the broker are in `of_core.rs`.

use gmsa_core::diagnostic::Severity;

use super::{
    Family, Rule, RuleEntry,
    Words::{General, Message},
    family,
};

family! { "Tickets" {
    BROKER_UNREACHABLE: "broker-unreachable", Error, "The agent of a Linux Pod does not reach the broker, or something else answers in its place.",
        "Look whether its Pods run (`kubectl get pods --namespace gmsa-tickets`), and let TCP 443 through to them: a NetworkPolicy of either namespace may forbid it. Pods that run keep their tickets meanwhile.",
        words: [
            Message("cannot connect to the broker at"),
            Message("the broker at * did not answer"),
            Message("the broker's answer is"),
            Message("the broker's answer has no"),
            Message("the broker's answer ends too early"),
            General("the broker refused: "),
            Message("no tickets in *: the broker has not answered yet"),
        ],
        remedies: {
            "failed to lookup address" | "name or service not known" | "name does not resolve" => "The Pod does not resolve the name of the broker's Service. Correct `--broker`, or give the address: `--broker-address=IP:443`. Pods with `hostNetwork` need it always.",
            "connection refused" => "Nothing listens at this address: its Service has no Pods, or the address is an old one. `kubectl get service,endpointslices --namespace gmsa-tickets` shows both; a Pod keeps the address that it was created with.",
            "the broker's answer" | "the broker refused: " => "Something else answers at this address, such as a proxy or a service mesh: compare `--broker-address` with the broker's Service, and leave the Pod's traffic to it alone.",
            "the broker has not answered yet" => "Wait a few seconds. If it stays so, the log of the container says why: `kubectl logs POD --namespace NAMESPACE --container gmsa-tickets`.",
        };
    BROKER_UNTRUSTED: "broker-untrusted", Error, "The agent of a Linux Pod does not trust the certificate of the broker.",
        "Put the CA of the broker, `ca.crt` in the Secret `gmsa-tickets-tls`, into `tickets.broker.ca` of the webhook's chart or into `--broker-ca`, then create the Pods again: a Pod keeps the CAs that it was created with.",
        words: [
            Message("tls with the broker at * failed"),
            Message("--broker-ca is not a list of ca certificates"),
            Message("--broker-ca holds a certificate that cannot be trusted"),
        ],
        remedies: {
            "notvalidforname" | "not valid for name" => "The certificate is for another name than `--broker`: write the DNS name of the broker's Service there, `gmsa-tickets.gmsa-tickets.svc`, and the address into `--broker-address`.",
        };
    KERBEROS_LIBRARY: "kerberos-library", Error, "The image of a client has no library of Kerberos, or none for its program.",
        "Install it into the image: `libgssapi-krb5-2` on Debian and Ubuntu, `krb5-libs` on Alpine and Red Hat. LDAP and other clients of SASL need `libsasl2-modules-gssapi-mit` or `cyrus-sasl-gssapi` too.",
        words: [
            Message("cannot load library libgssapi"),
            Message("unable to load shared library 'libgssapi"),
            Message("libgssapi_krb5.so*cannot open shared object file"),
            Message("error loading shared library libgssapi"),
            Message("type initializer for 'netsecuritynative' threw an exception"),
            Message("no j2gss in java.library.path"),
            Message("no worthy mechs found"),
            Message("option --negotiate: the installed libcurl version"),
            Message("gssapi authentication not supported"),
            Message("authentication method \"gss\": not supported by this build"),
            Message("no gssapi provider registered"),
            Message("no provider for sasl mechanism gssapi"),
            Message("provider sunnativegss does not support mechanism"),
            Message("unsupported mechanism requested: 1.2.840.113554.1.2.2"),
            Message("krb5-config: *not found"),
            Message("could not find main gssapi shared library"),
            Message("no module named 'gssapi'"),
            Message("package gssapi * missing"),
            Message("python kerberos library is not installed"),
        ],
        remedies: {
            "no worthy mechs" => "Install the GSSAPI plugin of SASL into the image: `libsasl2-modules-gssapi-mit` on Debian and Ubuntu, `cyrus-sasl-gssapi` on Red Hat, `cyrus-sasl-gssapiv2` on Alpine.",
            "not supported" => "Use a build of the driver or server with GSSAPI, such as that of the distribution: binary packages of `psycopg2` and `postgres` on Alpine have none.",
            "provider registered" => "Import it, as the message says. It is built on gokrb5, which needs a ticket-granting ticket: in a Linux Pod with tickets, read docs/linux-pods.md, Clients.",
            "sasl mechanism" => "Use a librdkafka with SASL: `librdkafka1` of the distribution, or the package of the language that is built with it, and `libsasl2-modules-gssapi-mit`.",
            "krb5-config" | "main gssapi" => "The package is compiled, and lacks the headers: install `libkrb5-dev` (Debian, Ubuntu), `krb5-dev` (Alpine) or `krb5-devel` (Red Hat) into the stage that builds it.",
            "no module named" | "package gssapi" | "python kerberos" => "Install the module of Python into the image: `pip install gssapi`, or `python3-gssapi` of the distribution; for WinRM `pip install 'pywinrm[kerberos]'`.",
            "installed libcurl" => "Use a curl that is built with GSSAPI: `curl --version` lists it among its features.",
        };
    POSTGRES_LOGIN: "postgres-login", Error, "A client of a database (Postgres) names no user, or the server has none for the name in its ticket.",
        "Map the name: `gmsa /^NAME\\$@CONTOSO\\.COM$ webapp1` in pg_ident.conf, and `gss include_realm=1 map=gmsa` in the line of pg_hba.conf. The log of the server names what it saw.",
        words: [
            Message("gssapi authentication failed for user"),
            Message("authenticated user name (*$@*) do not match"),
            Message("no match in usermap * for user"),
            Message("fatal: role \"*$\" does not exist"),
            Message("no username could be found, please specify one explicitly"),
            Message("no postgresql user name specified"),
        ],
        remedies: {
            "no username" | "no postgresql user" => "Name the user of the database in the connection string: `Username=webapp1` for Npgsql, otherwise `user=webapp1` or PGUSER. A user of the container without a line in /etc/passwd has no name to take.",
        };
} }
