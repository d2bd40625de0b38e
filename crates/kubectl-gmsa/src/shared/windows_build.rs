//! Windows builds of nodes and images, and the images that each node can run.
//!
//! The rule is Microsoft's (Windows container version compatibility), as hcsshim enforces it (`CheckHostAndContainerCompat` in
//! `osversion/platform_compat_windows.go`): before Windows Server 2022 both builds must be equal; since then a node runs images
//! from the long-term release before its own up to its own build, and never a newer one. It holds for process isolation.

use std::fmt;

use gmsa_core::admission::pod::{Pod, Slot, VERSION_LABELS};
use serde_json::Value;

/// A build of Windows 10.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Build(u32);

/// The label of a node that holds its build, which the kubelet sets.
pub const LABEL: &str = "node.kubernetes.io/windows-build";

/// Windows Server 2022: its images are the first that also run on later releases.
const LTSC2022: Build = Build(20348);

/// The long-term releases that Kubernetes runs on.
const LONG_TERM: [Build; 3] = [Build(17763), LTSC2022, Build(26100)];

/// The words of a tag that name a release. Versions of Windows Server, which begin with a digit, are ambiguous alone.
const RELEASES: [(&str, u32); 14] = [
    ("ltsc2016", 14393),
    ("sac2016", 14393),
    ("ltsc2019", 17763),
    ("ltsc2022", 20348),
    ("ltsc2025", 26100),
    ("1607", 14393),
    ("1709", 16299),
    ("1803", 17134),
    ("1809", 17763),
    ("1903", 18362),
    ("1909", 18363),
    ("2004", 19041),
    ("20h2", 19042),
    ("23h2", 25398),
];

impl Build {
    /// Reads the value of [`LABEL`]: `10.0.20348`.
    pub fn of_label(value: &str) -> Option<Self> {
        let build = value.strip_prefix("10.0.")?.split('.').next()?;
        build.parse().ok().map(Self)
    }

    /// The build that a text means, in any form: `10.0.20348.2762`, `20348`, `ltsc2022`.
    pub fn of_text(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        Self::of_label(&text).or_else(|| Self::of_word(&text, true))
    }

    /// The build from a node label: [`LABEL`], or a label of AKS or GKE that ends with the version.
    pub fn of_node_label(key: &str, value: &str) -> Option<Self> {
        if key == LABEL {
            return Self::of_label(value);
        }
        let mut years = Self::years().filter(|_| VERSION_LABELS.contains(&key));
        years.find(|(year, _)| value.ends_with(year)).map(|(_, build)| build)
    }

    /// The years of the long-term releases, with their builds.
    fn years() -> impl Iterator<Item = (&'static str, Self)> {
        RELEASES.iter().filter_map(|(name, build)| Some((name.strip_prefix("ltsc")?, Self(*build))))
    }

    /// The value of the same label for nodes of this build. `value` shows its format.
    pub fn label_value(self, key: &str, value: &str) -> Option<String> {
        if key == LABEL {
            return Some(self.to_string());
        }
        let (year, _) = Self::years().find(|(_, build)| *build == self)?;
        Some(format!("{}{year}", value.trim_end_matches(|c: char| c.is_ascii_digit())))
    }

    /// The build in the tag of an image: `ltsc2022`, `8.0-nanoserver-1809`, `10.0.26100.1742-amd64`. `None` without a build, or with two.
    pub fn of_image(image: &str) -> Option<Self> {
        let image = image.split_once('@').map_or(image, |(name, _digest)| name).to_ascii_lowercase();
        let (name, tag) = image.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'))?;
        // Only beside one of these words is a number a version of Windows.
        let is_windows =
            ["windows", "nanoserver", "servercore"].iter().any(|word| name.contains(word) || tag.contains(word));
        let mut builds = tag.split(['-', '_']).filter_map(|word| Self::of_word(word, is_windows));
        let first = builds.next()?;
        builds.all(|other| other == first).then_some(first)
    }

    fn of_word(word: &str, is_windows: bool) -> Option<Self> {
        let is_alone = |word: &str| is_windows || word.starts_with(|c: char| c.is_ascii_alphabetic());
        let named = RELEASES.iter().find(|(name, _)| *name == word && is_alone(name)).map(|(_, build)| Self(*build));
        let number = || word.parse().ok().map(Self).filter(|build| is_windows && LONG_TERM.contains(build));
        // Since the first release with containers, builds have five digits.
        let of_label = || Self::of_label(word).filter(|build| build.0 >= 10_000);
        named.or_else(number).or_else(of_label)
    }

    /// Whether a node of this build runs an image of build `image`.
    pub fn runs(self, image: Self) -> bool {
        // The previous long-term release, from 2022 on.
        let previous = LONG_TERM.into_iter().rfind(|release| LTSC2022 <= *release && *release < self);
        previous.unwrap_or(self) <= image && image <= self
    }

    /// The newest image that nodes of all these builds run.
    pub fn image_for_all(mut nodes: impl Iterator<Item = Self> + Clone) -> Option<Self> {
        let image = nodes.clone().min()?;
        nodes.all(|node| node.runs(image)).then_some(image)
    }

    /// The tag of the newest long-term release of Windows Server Core that a node of this build runs.
    pub fn server_core(self) -> Option<&'static str> {
        let is_run = |(name, build): &&(&str, u32)| name.starts_with("ltsc") && self.runs(Self(*build));
        RELEASES.iter().filter(is_run).max_by_key(|(_, build)| *build).map(|(name, _)| *name)
    }

    /// The long-term releases that run an image of this build.
    pub fn nodes(self) -> impl Iterator<Item = Self> {
        LONG_TERM.into_iter().filter(move |node| node.runs(self))
    }
}

/// The handler of a runtime class that isolates containers by Hyper-V, so they do not depend on the build of the node: containerd's is
/// `runhcs-wcow-hypervisor` (containerd: cri, Windows).
pub fn hyper_v(class: &Value) -> Option<&str> {
    class.get("handler")?.as_str().filter(|handler| handler.contains("hypervisor"))
}

/// The containers of a pod that depend on the build of their node: all but hostProcess containers.
pub fn built_containers(pod: &Pod) -> impl Iterator<Item = Slot<'_>> {
    let mut slots = pod.slots();
    let of_pod = slots.next().and_then(|slot| slot.host_process);
    slots.filter(move |slot| slot.host_process.or(of_pod) != Some(true))
}

/// The format of the label.
impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "10.0.{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Build;

    #[test]
    fn a_node_runs_what_hcsshim_lets_it_run() {
        for (node, image, runs) in [
            // Those of hcsshim's own test.
            (17763, 17763, true),
            (17763, 20348, false),
            (20348, 17763, false),
            (20348, 20348, true),
            (22621, 17763, false),
            (22621, 20348, true),
            // Microsoft's page.
            (26100, 20348, true),
            (26100, 26100, true),
            (26100, 17763, false),
            (20348, 26100, false),
            (25398, 20348, true),
            (25398, 26100, false),
            (26100, 25398, true),
            // Versions after 2025 run 2025 images, and no longer 2022 ones.
            (29000, 26100, true),
            (29000, 20348, false),
        ] {
            assert_eq!(Build(node).runs(Build(image)), runs, "{image} on {node}");
        }
    }

    #[test]
    fn a_tag_says_its_build() {
        for (image, build) in [
            ("mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2022", Some(20348)),
            ("mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-1809", Some(17763)),
            ("mcr.microsoft.com/windows/nanoserver:1809-amd64", Some(17763)),
            ("mcr.microsoft.com/windows/servercore:20H2", Some(19042)),
            ("mcr.microsoft.com/windows/servercore:10.0.26100.1742-amd64", Some(26100)),
            ("registry:5000/shop:4.2-ltsc2025@sha256:0123", Some(26100)),
            ("registry/windows/shop:20348", Some(20348)),
            ("registry/shop:LTSC2019", Some(17763)),
            // Numbers of anything else.
            ("registry/shop:1809", None),
            ("registry/shop:20348", None),
            ("registry/windows/shop:20220809", None),
            ("registry/shop:10.0.1", None),
            ("registry/shop:ltsc2022-ltsc2025", None),
            ("registry:5000/windows/shop", None),
            ("registry/shop@sha256:0123", None),
            ("registry/windows/shop:latest", None),
            ("", None),
        ] {
            assert_eq!(Build::of_image(image), build.map(Build), "{image}");
        }
    }

    #[test]
    fn a_label_says_its_build() {
        assert_eq!(Build::of_label("10.0.20348"), Some(Build(20348)));
        assert_eq!(Build::of_label("10.0.20348.2113"), Some(Build(20348)));
        for other in ["", "20348", "10.0.", "10.0.x", "6.3.9600"] {
            assert_eq!(Build::of_label(other), None, "{other}");
        }
        assert_eq!(Build(20348).to_string(), "10.0.20348");
    }

    #[test]
    fn labels_of_clouds_say_a_build() {
        for (key, value, build) in [
            ("kubernetes.azure.com/os-sku", "Windows2025", Some(26100)),
            ("kubernetes.azure.com/os-sku", "Windows2019", Some(17763)),
            ("kubernetes.azure.com/os-sku-effective", "Windows2022", Some(20348)),
            ("cloud.google.com/gke-windows-os-version", "2022", Some(20348)),
            ("kubernetes.azure.com/os-sku", "WindowsAnnual", None),
            ("kubernetes.azure.com/os-sku", "Ubuntu2204", None),
            ("cloud.google.com/gke-os-distribution", "windows_ltsc", None),
            (super::LABEL, "10.0.20348", Some(20348)),
        ] {
            assert_eq!(Build::of_node_label(key, value), build.map(Build), "{key} {value}");
        }
        assert_eq!(
            Build(17763).label_value("kubernetes.azure.com/os-sku", "Windows2025").as_deref(),
            Some("Windows2019")
        );
        assert_eq!(Build(26100).label_value(super::LABEL, "10.0.20348").as_deref(), Some("10.0.26100"));
        assert_eq!(Build(25398).label_value("kubernetes.azure.com/os-sku", "Windows2025"), None);
    }

    #[test]
    fn a_node_has_an_image_of_server_core() {
        for (node, tag) in [
            (17763, Some("ltsc2019")),
            (20348, Some("ltsc2022")),
            (25398, Some("ltsc2022")),
            (26100, Some("ltsc2025")),
            (18362, None),
        ] {
            assert_eq!(Build(node).server_core(), tag, "{node}");
        }
    }

    #[test]
    fn nodes_of_several_builds_have_an_image_for_all_or_none() {
        let of = |builds: &[u32]| Build::image_for_all(builds.iter().copied().map(Build));
        assert_eq!(of(&[20348, 26100]), Some(Build(20348)));
        assert_eq!(of(&[17763, 20348]), None);
        assert_eq!(of(&[17763]), Some(Build(17763)));
        assert_eq!(of(&[]), None);
        let nodes = |image| Build(image).nodes().map(|node| node.0).collect::<Vec<_>>();
        assert_eq!(nodes(17763), [17763]);
        assert_eq!(nodes(20348), [20348, 26100]);
        assert_eq!(nodes(26100), [26100]);
        assert_eq!(nodes(19042), [0; 0]);
    }
}
