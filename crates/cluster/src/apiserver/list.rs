//! Lists of objects, read in pages.
//!
//! A page that is too large is requested again with fewer objects. After an expired continue token the list starts again, a few times.
//! The server's watch has its own list, which stores each page as it arrives and uses the connection of the watch.

use http::{Request, header::ACCEPT};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::Instant;

use super::{ApiServer, CallError};

/// The objects on one page of a list, unless they are large.
const PAGE: usize = 500;

/// How many times a list is started again. A token to continue is valid for five minutes, by default.
const RESTARTS: usize = 3;

/// The objects, each with its type.
pub const OBJECTS: &str = "application/json";
/// The metadata of the objects alone.
pub const METADATA: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

#[derive(Deserialize)]
struct ListPage<T> {
    // An answer without metadata is not a list; it can be from a proxy.
    metadata: ListMeta,
    // A list without items is null.
    items: Option<Vec<T>>,
}

impl ApiServer {
    /// Reads the collection at `path`, as [`OBJECTS`] or [`METADATA`]. `deadline` says when the next page must be there, given how many
    /// objects were read.
    ///
    /// # Errors
    /// Where a page does not come by its deadline, or cannot be read.
    pub async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        accept: &str,
        deadline: impl FnMut(usize) -> Instant,
    ) -> Result<Vec<T>, CallError> {
        self.pages(path, accept, deadline, async |page| page).await
    }

    /// Reads a collection as [`Self::list`] does, and holds of each page only what `keep` returns.
    ///
    /// # Errors
    /// Those of [`Self::list`].
    pub async fn pages<T: DeserializeOwned, K>(
        &self,
        path: &str,
        accept: &str,
        mut deadline: impl FnMut(usize) -> Instant,
        mut keep: impl AsyncFnMut(Vec<T>) -> Vec<K>,
    ) -> Result<Vec<K>, CallError> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let (mut kept, mut read, mut from, mut limit, mut restarts) = (Vec::new(), 0, String::new(), PAGE, RESTARTS);
        loop {
            let page = Request::get(format!("{path}{separator}limit={limit}{from}")).header(ACCEPT, accept);
            let page = self.read(page.body(Vec::new()), deadline(read), "a list of that kind").await;
            let ListPage { metadata, items } = match page {
                Ok(page) => page,
                Err(CallError::TooLarge(_)) if limit > 1 => {
                    limit = (limit / 4).max(1);
                    continue;
                }
                Err(error) if error.code() == Some(410) && !from.is_empty() && restarts > 0 => {
                    restarts -= 1;
                    read = 0;
                    kept.clear();
                    from.clear();
                    continue;
                }
                Err(error) => return Err(error),
            };
            let items = items.unwrap_or_default();
            read += items.len();
            kept.extend(keep(items).await);
            // The token is made of letters, digits, `-` and `_`.
            match metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => from = format!("&continue={token}"),
                None => return Ok(kept),
            }
        }
    }
}
