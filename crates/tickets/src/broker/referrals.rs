//! Tickets for services, of other domains too: the referrals of KDCs (RFC 6806, 8) are followed.
//!
//! Invariants: only KDCs of listed domains are asked, so another domain's administrators do not choose where the broker connects; no realm is asked
//! twice for a service, and at most [`MAX_REFERRALS`] others are. Tickets between realms are not kept: another domain goes on taking one after the
//! account is disabled at home. After no KDC of a realm answered, it is not asked for [`Times::pause`](crate::limits::Times::pause).

use std::sync::Arc;

use gmsa_kerberos::{Error as KerberosError, KdcRefusal, Kdcs, PrincipalName, Ticket};
use tokio::time::{Instant, timeout_at};

use super::{
    accounts::{LIFE, Logon},
    controller_failures,
    domain::{OtherRealm, TicketDomain},
};
use crate::{
    api::{Reason, Refusal},
    limits::MAX_REFERRALS,
};

/// Why there is no ticket for a service.
pub enum ServiceError {
    /// The account's own realm gives none, and the logon may be to blame.
    Home(KerberosError, Refusal),
    Refused(Refusal),
}

impl OtherRealm {
    /// The ticket of one of its KDCs, which are located with the first.
    async fn ticket(
        &self,
        home: &TicketDomain,
        tgt: &Ticket,
        service: &PrincipalName,
        deadline: Instant,
    ) -> Result<Ticket, Refusal> {
        let realm = &self.domain.realm;
        let mut known = self.kdcs.lock().await;
        let kdcs = match &*known {
            Some(Ok(kdcs)) => Arc::clone(kdcs),
            Some(Err((since, refusal))) if since.elapsed() < home.times.pause => {
                return Err(refusal.clone().after(home.times.pause.saturating_sub(since.elapsed())));
            }
            _ => Arc::new(Kdcs::new(home.located_kdcs(&self.domain).await, home.times.kdc)),
        };
        *known = Some(Ok(Arc::clone(&kdcs)));
        drop(known);
        let (refusal, is_unanswered) = match timeout_at(deadline, kdcs.service_ticket(tgt, service, true, LIFE)).await {
            Ok(Ok(ticket)) => return Ok(ticket),
            Ok(Err(error)) => {
                (controller_failures::of_service(&error, realm, tgt, service, None), error.is_unanswered())
            }
            Err(_) => (controller_failures::late_kdc(realm), true),
        };
        if is_unanswered {
            *self.kdcs.lock().await = Some(Err((Instant::now(), refusal.clone())));
        }
        Err(refusal)
    }
}

impl TicketDomain {
    /// A ticket for a service, of this domain or of one that its KDCs refer to.
    ///
    /// # Errors
    /// Why there is none, with the realm that answered.
    pub async fn service_ticket(
        &self,
        logon: &Logon,
        service: &PrincipalName,
        deadline: Instant,
    ) -> Result<Ticket, ServiceError> {
        let (realm, with_referrals) = (&logon.client.realm, !self.referrals.is_empty());
        let at_home = async |name: &PrincipalName| {
            let answer = timeout_at(deadline, logon.kdcs.service_ticket(&logon.tgt, name, with_referrals, LIFE)).await;
            answer.map_err(|_| ServiceError::Refused(controller_failures::late_kdc(realm)))
        };
        let mut answer = at_home(service).await?;
        let other = self.config.referral_of(&service.to_string()).map(|other| &other.realm);
        // KDCs do not refer every name, such as one with a port.
        if let (Err(KerberosError::Refused(error)), Some(other)) = (&answer, other)
            && error.refusal() == KdcRefusal::UnknownService
        {
            answer = at_home(&PrincipalName::krbtgt(other)).await?;
        }
        let mut ticket = answer.map_err(|error| {
            let refusal = controller_failures::of_service(&error, realm, &logon.tgt, service, other);
            ServiceError::Home(error, refusal)
        })?;
        let mut visited = vec![realm.clone()];
        while let Some(realm) = ticket.granting_realm() {
            let why = match self.referrals.iter().find(|other| other.domain.realm == realm) {
                _ if visited.contains(&realm) => "which was asked already".to_owned(),
                _ if visited.len() > MAX_REFERRALS => {
                    format!("after {MAX_REFERRALS} other realms: the broker asks no more")
                }
                None => format!("which `referrals` of {} does not list", self.config.kdcs.name),
                Some(other) => {
                    visited.push(realm);
                    ticket = other.ticket(self, &ticket, service, deadline).await.map_err(ServiceError::Refused)?;
                    continue;
                }
            };
            let message = format!("the KDC of {} refers {service} to {realm}, {why}", ticket.service.realm);
            return Err(ServiceError::Refused(Refusal::bad_gateway(Reason::TicketReferral, message)));
        }
        Ok(ticket)
    }
}
