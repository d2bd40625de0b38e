//! Images for Linux only, judged by their names: Windows nodes cannot run them.
//!
//! An image with an unknown name has no finding, because it may be for Windows or for both.

use gmsa_core::{
    admission::pod::{Pod, Slot},
    diagnostic::{Diagnostic, Severity},
};

use super::template::CheckedPod;
use crate::shared::{rules, windows_build::Build};

/// Linux distributions in names and tags, without their versions.
const DISTRIBUTIONS: [&str; 39] = [
    "almalinux",
    "alpine",
    "amazonlinux",
    "archlinux",
    "azurelinux",
    "bionic",
    "bookworm",
    "bullseye",
    "buster",
    "cbl",
    "centos",
    "chiseled",
    "debian",
    "distroless",
    "fedora",
    "focal",
    "jammy",
    "jessie",
    "linux",
    "mariner",
    "musl",
    "noble",
    "opensuse",
    "oraclelinux",
    "plucky",
    "rhel",
    "rocky",
    "rockylinux",
    "sles",
    "stretch",
    "trixie",
    "trusty",
    "ubi",
    "ubuntu",
    "wolfi",
    "xenial",
    "al2023",
    "photon",
    // Windows has no such variant.
    "slim",
];

/// Repositories with images for Linux only, unless the tag names Windows. A `*` at the end matches any rest.
const OF_LINUX: [&str; 88] = [
    // Microsoft.
    "mcr.microsoft.com/azure-cli",
    "mcr.microsoft.com/azure-functions/*",
    "mcr.microsoft.com/azure-sql-edge",
    "mcr.microsoft.com/azure-storage/azurite",
    "mcr.microsoft.com/cbl-mariner/*",
    "mcr.microsoft.com/devcontainers/*",
    "mcr.microsoft.com/dotnet/monitor",
    "mcr.microsoft.com/dotnet/runtime-deps",
    "mcr.microsoft.com/dotnet/nightly/runtime-deps",
    "mcr.microsoft.com/mssql/*",
    "mcr.microsoft.com/mssql-tools",
    "mcr.microsoft.com/openjdk/*",
    "mcr.microsoft.com/oryx/*",
    "mcr.microsoft.com/playwright*",
    "mcr.microsoft.com/azuredocs/*",
    "mcr.microsoft.com/appsvc/*",
    "microsoft/mssql-server-linux",
    // Other publishers without images for Windows.
    "bitnami/*",
    "bitnamilegacy/*",
    "cgr.dev/*",
    "gcr.io/distroless/*",
    "registry.access.redhat.com/*",
    "registry.redhat.io/*",
    "registry.suse.com/*",
    "public.ecr.aws/amazonlinux/*",
    "public.ecr.aws/lambda/*",
    "container-registry.oracle.com/*",
    "linuxserver/*",
    "lscr.io/*",
    "curlimages/curl",
    "grafana/grafana",
    "grafana/loki",
    "prom/*",
    "nginxinc/*",
    "gitlab/gitlab-ce",
    "gitlab/gitlab-ee",
    "sonatype/nexus3",
    "jenkins/jenkins",
    "jenkins/inbound-agent",
    "jenkins/agent",
    "keycloak/keycloak",
    "quay.io/keycloak/*",
    "portainer/portainer-ce",
    "minio/minio",
    "nicolaka/netshoot",
    // Docker official images without a Windows variant.
    "adminer",
    "alpine",
    "almalinux",
    "amazonlinux",
    "archlinux",
    "busybox",
    "cassandra",
    "couchdb",
    "debian",
    "drupal",
    "elasticsearch",
    "fedora",
    "ghost",
    "haproxy",
    "httpd",
    "kibana",
    "kong",
    "logstash",
    "mariadb",
    "memcached",
    "mysql",
    "neo4j",
    "nextcloud",
    "nginx",
    "node",
    "oraclelinux",
    "perl",
    "php",
    "postgres",
    "rabbitmq",
    "redis",
    "registry",
    "rockylinux",
    "ruby",
    "rust",
    "solr",
    "sonarqube",
    "tomcat",
    "ubuntu",
    "varnish",
    "wordpress",
    "zookeeper",
    "photon",
];

/// .NET repositories: since version 8, tags without a Windows word are for Linux only (dotnet-docker, issue 4492).
const DOTNET: [&str; 3] = ["aspnet", "runtime", "sdk"];

/// The first of these versions.
const DOTNET_OF_LINUX: u32 = 8;

/// The findings on the images of a Windows pod.
pub(super) fn findings(checked: &CheckedPod<'_>, pod: &Pod) -> Vec<Diagnostic> {
    let image = |slot| {
        let Slot { kind, index, owner, .. } = slot;
        let at = format!("/spec/{}/{index}/image", kind.field()?);
        let image = checked.text(&at)?;
        let instead = Name::of(image).windows()?;
        let message = format!("{kind} {owner:?} has an image for Linux, which no Windows node runs: {image}");
        let found = checked.finding(&rules::LINUX_IMAGE, &at, message).with_severity(Severity::Warning);
        Some(Diagnostic { fix: instead, ..found })
    };
    let is_other = pod.is_linux() || !pod.uses_gmsa();
    if is_other { Vec::new() } else { pod.slots().filter_map(image).collect() }
}

/// The name of an image, in lower case.
struct Name {
    /// Without Docker's registry and without `library/`.
    repository: String,
    /// Empty without a tag.
    tag: String,
}

impl Name {
    fn of(image: &str) -> Self {
        let image = image.split('@').next().unwrap_or(image).to_ascii_lowercase();
        let (name, tag) = image.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')).unwrap_or((&image, ""));
        let name = ["docker.io/", "index.docker.io/", "registry-1.docker.io/", "registry.hub.docker.com/"]
            .iter()
            .find_map(|registry| name.strip_prefix(registry))
            .unwrap_or(name);
        Self { repository: name.strip_prefix("library/").unwrap_or(name).to_owned(), tag: tag.to_owned() }
    }

    /// `Some` for a Linux image, with a replacement if one is known.
    #[expect(clippy::option_option, reason = "whether it is for Linux, and what is known instead")]
    fn windows(&self) -> Option<Option<String>> {
        let Self { repository, tag } = self;
        let is_of_windows = |text: &str| ["windows", "nanoserver", "servercore"].iter().any(|word| text.contains(word));
        if is_of_windows(repository) || is_of_windows(tag) || Build::of_image(&format!("{repository}:{tag}")).is_some()
        {
            return None;
        }
        if let Some(version) = self.dotnet() {
            let is_of_linux = version.is_none_or(|version| version >= DOTNET_OF_LINUX);
            let version = version.unwrap_or(DOTNET_OF_LINUX);
            let instead = || format!("image: {repository}:{version}.0-nanoserver-ltsc2022");
            return (is_of_linux || has_distribution(tag)).then(|| Some(instead()));
        }
        let is_known = |known: &&str| match known.strip_suffix('*') {
            Some(start) => repository.starts_with(start),
            None => repository == known,
        };
        // A part of a longer name, such as `linux-tools`, says nothing.
        (OF_LINUX.iter().any(is_known) || has_distribution(tag) || repository.split('/').any(is_distribution))
            .then_some(None)
    }

    /// The version of a .NET image; `Some(None)` for the newest.
    #[expect(clippy::option_option, reason = "whether it is an image of .NET, and the version that its tag names")]
    fn dotnet(&self) -> Option<Option<u32>> {
        let rest = self.repository.strip_prefix("mcr.microsoft.com/dotnet/")?;
        let name = rest.strip_prefix("nightly/").unwrap_or(rest);
        DOTNET.contains(&name).then(|| self.tag.split(['.', '-']).next().and_then(|major| major.parse().ok()))
    }
}

/// Whether it is the name of a distribution, perhaps with a version: `ubuntu`, `ubi9`.
fn is_distribution(word: &str) -> bool {
    DISTRIBUTIONS.contains(&word) || DISTRIBUTIONS.contains(&word.trim_end_matches(|c: char| c.is_ascii_digit()))
}

/// Whether it contains the name of a distribution: `alpine3.20`, `bookworm-slim`, `ubi9-minimal`.
fn has_distribution(text: &str) -> bool {
    text.split(['-', '_', '.', '/']).any(is_distribution)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_for_linux_are_known_by_their_names() {
        for image in [
            "mcr.microsoft.com/dotnet/aspnet:8.0",
            "mcr.microsoft.com/dotnet/aspnet:9.0",
            "mcr.microsoft.com/dotnet/aspnet",
            "mcr.microsoft.com/dotnet/runtime:latest",
            "mcr.microsoft.com/dotnet/sdk:8.0-jammy",
            "mcr.microsoft.com/dotnet/sdk:6.0-alpine",
            "mcr.microsoft.com/dotnet/aspnet:8.0-alpine3.20",
            "mcr.microsoft.com/dotnet/aspnet:10.0-noble-chiseled",
            "mcr.microsoft.com/dotnet/aspnet:8.0-bookworm-slim@sha256:01",
            "mcr.microsoft.com/dotnet/aspnet:8.0-azurelinux3.0",
            "mcr.microsoft.com/dotnet/runtime-deps:8.0",
            "mcr.microsoft.com/mssql/server:2019-latest",
            "mcr.microsoft.com/mssql/server:2022-latest",
            "nginx",
            "nginx:1.27",
            "docker.io/library/nginx:1",
            "docker.io/redis:7",
            "ubuntu:22.04",
            "debian",
            "alpine:3.20",
            "python:3.12-slim-bookworm",
            "python:3.12-alpine",
            "python:3.12-slim",
            "golang:1.23-bullseye",
            "node:20",
            "postgres:16",
            "gcr.io/distroless/static",
            "registry.access.redhat.com/ubi9/ubi-minimal:9.4",
            "quay.io/centos/centos:stream9",
            "bitnami/redis:7",
            "registry:5000/shop/web:1.2-jammy",
            "registry.example.com/base/ubuntu:22.04",
            "registry.example.com/web:1.0-linux-amd64",
            "mcr.microsoft.com/azurelinux/base/core:3.0",
            "mcr.microsoft.com/azure-functions/dotnet:4",
            "jenkins/inbound-agent:latest",
            "busybox:1.36",
        ] {
            assert!(Name::of(image).windows().is_some(), "{image}");
        }
    }

    #[test]
    fn images_that_may_be_for_windows_are_not_named() {
        for image in [
            "mcr.microsoft.com/windows/servercore:ltsc2022",
            "mcr.microsoft.com/windows/nanoserver:1809",
            "mcr.microsoft.com/dotnet/framework/aspnet:4.8",
            "mcr.microsoft.com/dotnet/aspnet:6.0",
            "mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-ltsc2022",
            "mcr.microsoft.com/dotnet/sdk:8.0-windowsservercore-ltsc2022",
            "mcr.microsoft.com/powershell",
            "mcr.microsoft.com/oss/kubernetes/pause:3.9",
            "golang:1.23",
            "python:3.12",
            "python:3.12-windowsservercore",
            "traefik:v3",
            "mongo:7",
            "eclipse-temurin:21",
            "registry.example.com/shop/web:1.0",
            "shop/web:latest",
            "web",
            "",
            "img",
            "registry:5000/shop/nginx:1",
            "jenkins/inbound-agent:latest-windowsservercore-ltsc2022",
            "registry.example.com/linuxlike:1",
            "registry.example.com/linux-tools/web:1",
            "registry.example.com/alpine-web:3",
            "shop/web:ltsc2019",
        ] {
            assert!(Name::of(image).windows().is_none(), "{image}");
        }
    }

    #[test]
    fn dotnet_has_another_tag_for_windows() {
        let instead = Name::of("mcr.microsoft.com/dotnet/aspnet:9.0").windows().flatten();
        assert_eq!(instead.as_deref(), Some("image: mcr.microsoft.com/dotnet/aspnet:9.0-nanoserver-ltsc2022"));
        assert_eq!(Name::of("nginx").windows(), Some(None));
    }
}
