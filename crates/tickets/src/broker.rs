//! The broker's decision: who asks, whether the pod may have the identity, and then its tickets or its keytab.
//!
//! Invariants: the checks run in one order, and the first that fails ends the request: form of the request (`routes.rs`), token, rate of the pod, pod,
//! `use` or `export`, credential spec, domain, the domain's list of accounts, room, tickets, keys. Nothing about a credential spec is said to a pod that
//! may not use it.
//! The directory is asked only for a pod that may have the identity, so nobody else costs it anything.
//!
//! A new refusal is a [`Reason`] in `api.rs`, where the constructors of `Refusal` have the common statuses, and `Refusal::new` takes any; the step that
//! returns it; and a row in `tests/broker/statuses.rs`.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gmsa_cluster::{apiserver::ApiServer, authorizer::Authorizer};
use gmsa_core::{
    admission::Denial,
    credspec::{SpecName, Verb, services::Services},
    quote::Quoted,
};
use gmsa_kerberos::{Error as KerberosError, KdcRefusal, PrincipalName, Ticket, ccache, krb5_conf};
use http::StatusCode;
use time::{UtcDateTime, format_description::well_known::Rfc3339};
use tokio::time::Instant;

mod accounts;
mod caller;
mod controller_failures;
mod domain;
mod keytab;
mod pod_limits;
mod referrals;
mod room;
pub mod routes;
mod spec;

use accounts::{Accounts, KeptAccount, Logon};
use caller::Caller;
pub use domain::TicketDomain;
use keytab::AccountKeys;
use pod_limits::PodLimits;
use referrals::ServiceError;
use room::{Room, RoomPlace};
use routes::Audit;
use spec::{SpecAccount, Specs};

use crate::{
    api::{CCACHE, Given, GivenProduct, MAX_RESPONSE, RESERVE, Reason, Refusal},
    domains::DomainConfig,
    limits::{BrokerLimits, Times},
    metrics::{BrokerMetrics, Exchange},
};

/// Decides requests for tickets and keytabs.
pub struct Broker {
    api: Arc<ApiServer>,
    /// Whether a service account may `use` or `export` a credential spec.
    authorizer: Arc<dyn Authorizer>,
    specs: Specs,
    domains: BTreeMap<String, Arc<TicketDomain>>,
    accounts: Accounts,
    pods: PodLimits,
    metrics: BrokerMetrics,
    /// How long a request may take.
    time_allowed: Duration,
}

impl Broker {
    pub fn new(
        api: Arc<ApiServer>,
        authorizer: Arc<dyn Authorizer>,
        domains: Vec<DomainConfig>,
        limits: BrokerLimits,
        times: Times,
        metrics: BrokerMetrics,
    ) -> Self {
        let room = limits.of_domain(domains.len());
        let domains = domains.into_iter().map(|config| {
            let name = config.kdcs.name.clone();
            (name, Arc::new(TicketDomain::new(config, times, Room::new(room, limits.of_namespace()))))
        });
        let accounts = Accounts::new(metrics.clone());
        let (domains, time_allowed) = (domains.collect(), times.request);
        let specs = Specs::new(Arc::clone(&api));
        Self { api, authorizer, specs, domains, accounts, pods: PodLimits::default(), metrics, time_allowed }
    }

    /// How many requests are given tickets of a domain at the moment.
    pub fn taken(&self, domain: &str) -> usize {
        self.domains.get(domain).map_or(0, |domain| domain.room.taken())
    }

    /// The tickets for the pod of a token, or its keytab.
    ///
    /// # Errors
    /// The refusal that the agent gets.
    async fn given(
        &self,
        verb: Verb,
        caller: &Caller,
        name: &SpecName,
        audit: &mut Audit,
        deadline: Instant,
    ) -> Result<Given, Refusal> {
        self.pods.admit(&caller.uid)?;
        caller::check_pod(&self.api, caller, verb, name, deadline).await?;
        self.may(verb, caller, name, deadline).await?;
        let spec = self.specs.read(verb, name, &caller.account, deadline).await?;
        audit.account = Some(format!("{}@{}", spec.account.sam, spec.account.domain));
        let domain = self.domain(name, &spec.account)?;
        let (product, of_domain) = (verb.product().name, &domain.config.kdcs.name);
        if !domain.config.gives(verb) {
            let message = format!("the broker gives no {product} of {of_domain}");
            return Err(Refusal::forbidden(Reason::KeytabDomain, message));
        }
        if !domain.config.allows(&spec.account.sam) {
            let message = format!("the broker gives no {product} of {} in {of_domain}", Quoted::new(&spec.account.sam));
            return Err(Refusal::forbidden(Reason::TicketAccount, message));
        }
        let place = domain.room.enter(&caller.account.namespace, deadline).await;
        let place = Arc::new(place.map_err(|expected| {
            let message = format!(
                "too many requests wait for the domain controllers of {of_domain}: this namespace has its share"
            );
            Refusal::unavailable(Reason::TicketBusy, message).after(expected)
        })?);
        let account = self.accounts.get(domain, &spec.account)?;
        let (logon, tickets) = self.issue(domain, &account, &spec.services, &place, deadline).await?;
        let keys = match verb {
            Verb::Use => return Ok(answer(name, &spec.services, &logon, &tickets)),
            Verb::Export => opening(&account, &tickets, deadline).await?,
        };
        self.metrics.keytab(&caller.account.namespace);
        let left = keys.next.saturating_duration_since(Instant::now());
        Ok(Given {
            credential_spec: name.to_string(),
            principal: keys.client.to_string(),
            renew_after: second(UtcDateTime::now() + left),
            product: GivenProduct::Keytab {
                names: spec.services.list(),
                kvno: keys.kvno,
                keytab: STANDARD.encode(&*keys.keytab(tickets.into_iter().map(|ticket| ticket.service.name))),
            },
        })
    }

    fn domain(&self, name: &SpecName, account: &SpecAccount) -> Result<&Arc<TicketDomain>, Refusal> {
        self.domains.get(&account.domain).ok_or_else(|| {
            let message = format!(
                "cred spec {name} is of the domain {}, which the broker does not have",
                Quoted::new(&account.domain)
            );
            Refusal::new(StatusCode::NOT_IMPLEMENTED, Reason::TicketDomain, message)
        })
    }

    /// Whether the pod's service account may `use` or `export` the credential spec, in the webhook's words.
    async fn may(&self, verb: Verb, caller: &Caller, name: &SpecName, deadline: Instant) -> Result<(), Refusal> {
        let fact = self.authorizer.may(&caller.account, verb, name, deadline).await.fact;
        fact.allows(&caller.account.name, verb, name).map_err(|denial| match denial {
            Denial::NotAuthorized { .. } => Refusal::forbidden(Reason::NotAuthorized, denial.to_string()),
            _ => Refusal::unavailable(Reason::AuthorizationFailed, denial.to_string()),
        })
    }

    /// Logs on as the account. For `*` the pod gets a ticket-granting ticket of its own; otherwise a shared one stays here, and yields a
    /// ticket for each listed service.
    async fn issue(
        &self,
        domain: &TicketDomain,
        account: &Arc<KeptAccount>,
        services: &Services,
        place: &Arc<RoomPlace>,
        deadline: Instant,
    ) -> Result<(Arc<Logon>, Vec<Ticket>), Refusal> {
        let asked = Instant::now();
        loop {
            let logon = account.log_on(*services == Services::Any, place, deadline).await?;
            let Services::Listed(services) = services else { return Ok((logon, Vec::new())) };
            match self.service_tickets(domain, &logon, services, deadline).await {
                Ok(tickets) => return Ok((logon, tickets)),
                Err(ServiceError::Refused(refusal)) => return Err(refusal),
                Err(ServiceError::Home(error, refusal)) => {
                    let is_final = match &error {
                        KerberosError::Refused(error) => error.refusal() == KdcRefusal::UnknownService,
                        error => !error.is_unanswered(),
                    };
                    if is_final {
                        return Err(refusal);
                    }
                    // The ticket-granting ticket may be to blame, or its KDCs are down: the next one is new, of any KDC that the DNS names, or says why
                    // there is none.
                    account.forget(&logon, error.is_unanswered());
                    if logon.is_since(asked) {
                        return Err(refusal);
                    }
                }
            }
        }
    }

    async fn service_tickets(
        &self,
        domain: &TicketDomain,
        logon: &Logon,
        services: &[String],
        deadline: Instant,
    ) -> Result<Vec<Ticket>, ServiceError> {
        let (mut tickets, mut bytes) = (Vec::with_capacity(services.len()), 0);
        for service in services {
            let service = PrincipalName::service(service).ok_or_else(|| ServiceError::Refused(no_name(service)))?;
            let ticket = domain.service_ticket(logon, &service, deadline).await;
            let ticket = self.metrics.exchange(Exchange::ServiceTicket, ticket)?;
            bytes += ticket.encoded.len() * ticket.realms().count();
            if bytes > MAX_RESPONSE / 4 * 3 {
                return Err(ServiceError::Refused(too_large()));
            }
            tickets.push(ticket);
        }
        Ok(tickets)
    }
}

/// The keys of an account that open the tickets that the KDC gives for each of its names.
async fn opening(
    account: &Arc<KeptAccount>,
    tickets: &[Ticket],
    deadline: Instant,
) -> Result<Arc<AccountKeys>, Refusal> {
    let asked = Instant::now();
    let opens = |keys: &AccountKeys| tickets.iter().try_for_each(|ticket| keys.open(ticket));
    let mut keys = account.keys(None, deadline).await?;
    if opens(&keys).is_err() && !keys.is_since(asked) {
        // The password may have changed since.
        keys = account.keys(Some(&keys), deadline).await?;
    }
    opens(&keys)?;
    Ok(keys)
}

fn no_name(service: &str) -> Refusal {
    let message = format!("{} is not the name of a service in Kerberos", Quoted::new(service));
    Refusal::forbidden(Reason::TicketServices, message)
}

fn too_large() -> Refusal {
    let message =
        "the tickets take more than 128 KiB: list fewer services, or make the account a member of fewer groups";
    Refusal::bad_gateway(Reason::TicketSize, message)
}

fn answer(name: &SpecName, services: &Services, logon: &Logon, tickets: &[Ticket]) -> Given {
    // A list never leads to the ticket-granting ticket, which the account's other pods have in common.
    let (tickets, kdcs) = match services {
        Services::Any => (std::slice::from_ref(&logon.tgt), &*logon.kdcs.addresses),
        Services::Listed(_) => (tickets, &[][..]),
    };
    let now = UtcDateTime::now();
    let expires = tickets.iter().map(|ticket| ticket.endtime).min().unwrap_or(now);
    let left = Duration::try_from(expires - now).unwrap_or_default();
    let renew_after = now + (left / 2).min(left.saturating_sub(RESERVE));
    Given {
        credential_spec: name.to_string(),
        principal: logon.client.to_string(),
        renew_after: second(renew_after),
        product: GivenProduct::Tickets {
            services: services.list(),
            expires: second(expires),
            ccache: STANDARD.encode(&*ccache(tickets)),
            krb5_conf: krb5_conf(&logon.client.realm, CCACHE, kdcs),
        },
    }
}

/// A time to the second: what a ticket holds.
fn second(time: UtcDateTime) -> String {
    time.replace_nanosecond(0).unwrap_or(time).format(&Rfc3339).unwrap_or_default()
}
