//! Whether policies from files of the control plane protect the webhook configurations. Such policies cannot be read; what they refuse shows
//! that they are in force.

use super::{
    found,
    parts::{Judged, Parts},
};
use crate::shared::{not_checked::Unread, rules};
use gmsa_core::diagnostic::Check;

pub(super) const PROTECTION: &str = "protection";

pub(super) fn check(parts: &Parts) -> Judged<'_> {
    parts.webhooks.as_ref()?;
    let Some((release, answer)) = &parts.protection else { return Ok(Vec::new()) };
    let unprotected = |text: &str| {
        found(PROTECTION, &rules::STATIC_POLICIES, format!("{text} the webhook configurations of {release}"))
    };
    Ok(vec![match answer {
        Ok(_) => unprotected("no static policies protect"),
        Err(unread) if refuses(unread) => {
            let text =
                format!("static policies, from files of the control plane, protect the configurations of {release}");
            Check::pass(PROTECTION, text)
        }
        // A user who may not create a configuration cannot try it, and lacks nothing else.
        Err(unread) if unread.is_forbidden() => unprotected(
            "you may not create validatingwebhookconfigurations, so it was not tried whether static policies protect",
        ),
        Err(unread) => unread.check(PROTECTION),
    }])
}

fn refuses(unread: &Unread) -> bool {
    unread.said.contains("the static policies of the GMSA webhook")
}
