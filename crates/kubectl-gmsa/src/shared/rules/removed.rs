//! Rules of earlier versions: their ids stay valid for `--ignore`, and `explain` says what takes their place.

/// Each id, and what a user has instead.
static REMOVED: [(&str, &str); 4] = [
    ("dns-zone", DNS),
    ("dns-servers", DNS),
    ("dns-resolvers", DNS),
    ("dns-configuration", DNS),
];

const DNS: &str = "This rule was removed: `kubectl gmsa verify` and `kubectl gmsa probe` query the domain in a container, and docs/windows-pods.md has \
    the zone for each platform.";

/// What a user has instead of a removed rule.
pub fn removed(id: &str) -> Option<&'static str> {
    REMOVED.iter().find(|(removed, _)| *removed == id).map(|(_, instead)| *instead)
}
