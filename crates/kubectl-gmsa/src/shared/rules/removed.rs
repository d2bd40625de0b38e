//! Rules of earlier versions: their ids stay valid for `--ignore`, and `explain` says what takes their place.

/// Each id, and what a user has instead.
static REMOVED: [(&str, &str); 12] = [
    (
        "linux-image",
        "This rule was removed: `kubectl gmsa check --live` compares the builds of images and nodes, and a node reports an image for Linux.",
    ),
    ("dns-zone", DNS),
    ("dns-servers", DNS),
    ("dns-resolvers", DNS),
    ("dns-configuration", DNS),
    ("node-resources", KUBERNETES),
    ("probe-failed", KUBERNETES),
    ("object-missing", KUBERNETES),
    ("already-exists", KUBERNETES),
    ("object-changed", KUBERNETES),
    ("release-stuck", KUBERNETES),
    ("chart-missing", KUBERNETES),
];

const DNS: &str = "This rule was removed: `kubectl gmsa verify` and `kubectl gmsa probe` query the domain in a container, and docs/windows-pods.md has \
    the zone for each platform.";

const KUBERNETES: &str = "This rule was removed: its messages are not about GMSA. It is shown as it stands.";

/// What a user has instead of a removed rule.
pub fn removed(id: &str) -> Option<&'static str> {
    REMOVED.iter().find(|(removed, _)| *removed == id).map(|(_, instead)| *instead)
}
