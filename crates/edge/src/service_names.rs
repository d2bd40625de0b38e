//! The DNS names that a serving certificate needs: the names of the Service in front of the program.

use gmsa_core::credspec::is_dns_subdomain;

/// The names that the API server and the pods of the cluster use for a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceNames(pub Vec<String>);

impl ServiceNames {
    /// Reads `NAME.NAMESPACE`.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('.') {
            Some((name, namespace)) if is_dns_subdomain(name) && is_dns_subdomain(namespace) => {
                Ok(Self(vec![format!("{text}.svc"), text.to_owned(), name.to_owned()]))
            }
            _ => Err("expected NAME.NAMESPACE, both lower-case DNS names".to_owned()),
        }
    }
}
