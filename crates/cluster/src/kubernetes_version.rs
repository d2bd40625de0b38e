//! The version of Kubernetes that an API server names.

use http::Request;
use k8s_openapi::apimachinery::pkg::version::Info;
use tokio::time::Instant;

use crate::apiserver::ApiServer;
use gmsa_core::admission::Failure;

/// The first minor version of Kubernetes 1 whose native sidecars are on by default.
pub const NATIVE_SIDECARS: u32 = 29;

/// The version, such as `v1.29.3-eks-1234`.
///
/// # Errors
/// Where the API server does not answer by the deadline, or not with a version.
pub async fn read(api: &ApiServer, deadline: Instant) -> Result<String, Failure> {
    let info: Info = api.read(Request::get("/version").body(Vec::new()), deadline, "a version").await?;
    Ok(info.git_version)
}

/// The major and the minor version in a text such as `v1.29.3-eks-1234`.
pub fn numbers(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim_start_matches('v').split('.').map(|number| {
        let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        number.get(..digits).and_then(|digits| digits.parse::<u32>().ok())
    });
    Some((numbers.next()??, numbers.next()??))
}

/// Whether this version is at least Kubernetes 1.`minor`. An unreadable version counts as new.
pub fn is_at_least(text: &str, minor: u32) -> bool {
    numbers(text).is_none_or(|version| version >= (1, minor))
}
