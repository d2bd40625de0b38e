//! The identity of a pod: its service account.

use std::sync::Arc;

use super::{Denial, Review, pod::Pod};
use crate::{
    credspec::{is_dns_label, is_dns_subdomain},
    quote::Quoted,
};

/// The service account that a pod runs as, in the namespace of the review.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceAccount {
    /// The namespace: a DNS label.
    pub namespace: Arc<str>,
    /// The service account's name: a DNS subdomain.
    pub name: Arc<str>,
}

impl ServiceAccount {
    /// The user name under which the API server knows the service account.
    pub fn user(&self) -> String {
        ["system:serviceaccount:", &self.namespace, ":", &self.name].concat()
    }

    /// The groups that an access review names: exactly these two.
    pub fn groups(&self) -> [String; 2] {
        ["system:serviceaccounts".to_owned(), ["system:serviceaccounts:", &self.namespace].concat()]
    }

    /// The service account of a pod of this review.
    pub(super) fn of(review: &Review, pod: &Pod) -> Result<Self, Denial> {
        if !is_dns_label(&review.namespace) {
            return Err(Denial::InvalidNamespace(Quoted::new(&review.namespace)));
        }
        let name = pod.service_account();
        if !is_dns_subdomain(name) {
            return Err(Denial::InvalidServiceAccount(Quoted::new(name)));
        }
        Ok(Self { namespace: Arc::from(&*review.namespace), name: Arc::from(name) })
    }
}
