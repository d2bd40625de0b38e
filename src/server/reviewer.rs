//! One review: the look-ups that its decision asks for, then its metrics, its log line and its span. It knows neither HTTP requests nor a cluster.

use std::{sync::Arc, time::Duration};

use gmsa_cluster::{authorizer::Authorizer, resolver::Resolver};
use gmsa_core::{
    admission::{
        Decision, Denial, Enforcement, Fact, Failure, FailureKind, Known, Question, Review, Settings, Source, SpecFact,
        Step, TicketSettings, UseFact, Verdict, Webhook, pod::Pod,
    },
    credspec::SpecName,
    quote::{MESSAGE, shorten},
};
use gmsa_edge::telemetry::{cut, cut_message, otlp};
use tokio::{sync::watch, time::Instant};
use tracing::{Instrument as _, Level, Span};

use super::{random_hostname::random_hostname, thread::Thread};
use crate::{
    PROGRAM,
    limits::ADVICE_TIMEOUT,
    metrics::{self, Metrics},
};

/// The sources of credential specs and of permissions.
#[derive(Clone)]
pub struct LookUpSources {
    pub resolver: Arc<dyn Resolver>,
    pub authorizer: Arc<dyn Authorizer>,
}

/// Decides reviews.
#[derive(Clone)]
pub struct Reviewer {
    pub for_decisions: LookUpSources,
    /// For warnings alone, with limits of its own.
    pub for_advice: LookUpSources,
    /// Whether pods that use GMSA and have no host name are given one, also where they do not ask for it.
    pub random_hostname: bool,
    /// Whether credential specs that cannot work are refused rather than warned of.
    pub strict_credential_specs: bool,
    /// Whether pods that ask for what they cannot have are denied, or admitted with a warning.
    pub enforcement: Enforcement,
    /// The namespaces in which `enforcement` is [`Enforcement::Warn`], whatever it is elsewhere.
    pub warn_namespaces: Arc<[String]>,
    /// Whether Linux pods get tickets, as it is at the moment.
    pub tickets: watch::Receiver<TicketSettings>,
    /// Counts the reviews, and what the resolver and the authorizer answer.
    pub metrics: Metrics,
}

impl Reviewer {
    /// Decides a review, and makes the answer, both on `thread`; its request began at `started`. A look-up without an answer by the deadline is a denial that says
    /// so; for workloads, as a warning. `None` where no thread was free.
    pub async fn decide(
        &self,
        webhook: Webhook,
        review: &Arc<Review>,
        thread: &Thread,
        started: Instant,
        deadline: Instant,
    ) -> Option<Vec<u8>> {
        let (settings, mut look_ups) = self.prepare(webhook, review, deadline);
        let (begun, answered) = (Arc::clone(review), Arc::clone(review));
        let mut step = thread.run(deadline, move || Decision::begin(begun, webhook, settings)).await?;
        let decision = loop {
            match step {
                Step::Done(decision) => break decision,
                Step::Ask(undecided) => {
                    let fact = look_ups.answer(undecided.question()).await;
                    step = thread.run(deadline, move || undecided.tell(fact)).await?;
                }
            }
        };
        let (answer, decision) = thread.run(deadline, move || (answered.answer(&decision), decision)).await?;
        self.report(webhook, review, &decision, started.elapsed());
        Some(answer)
    }

    /// Counts, logs and traces a decision.
    fn report(&self, webhook: Webhook, review: &Review, decision: &Decision, duration: Duration) {
        let outcome = outcome(decision);
        self.metrics.review(webhook, review.operation, outcome, decision.reason, duration);
        log(webhook, review, decision, duration);
        record_on_span(review, decision, outcome);
    }

    /// The settings for this review, with a random host name if it needs one, and its look-ups.
    fn prepare(&self, webhook: Webhook, review: &Review, deadline: Instant) -> (Settings, LookUps<'_>) {
        let warns = self.warn_namespaces.contains(&review.namespace);
        let asks = || review.object.as_ref().is_some_and(Pod::asks_for_random_hostname);
        let takes_hostname = webhook == Webhook::Mutate && (self.random_hostname || asks());
        let settings = Settings {
            enforcement: if warns { Enforcement::Warn } else { self.enforcement },
            strict_credential_specs: self.strict_credential_specs,
            hostname: takes_hostname.then(random_hostname).flatten(),
            tickets: self.tickets.borrow().clone(),
        };
        let is_advice = settings.facts_only_warn(webhook);
        let look_ups = LookUps {
            sources: if is_advice { &self.for_advice } else { &self.for_decisions },
            metrics: &self.metrics,
            deadline,
            advice_until: is_advice.then(|| Instant::now() + ADVICE_TIMEOUT),
            given_up: None,
        };
        (settings, look_ups)
    }
}

/// The look-ups of a review, one after the other: so a review never has more than one call in flight, and the reviews in flight bound all
/// calls. Nearly every pod names one credential spec, which is in memory.
struct LookUps<'r> {
    sources: &'r LookUpSources,
    metrics: &'r Metrics,
    deadline: Instant,
    /// The deadline of look-ups for warnings; `None` where a decision needs them.
    advice_until: Option<Instant>,
    /// Why no more of them are made.
    given_up: Option<Failure>,
}

impl LookUps<'_> {
    async fn answer(&mut self, question: &Question) -> Fact {
        // A review that waits holds a connection that a decision may need.
        if self.given_up.is_none() && self.advice_until.is_some_and(|until| Instant::now() >= until) {
            let cause = format!("the look-ups for warnings took longer than {ADVICE_TIMEOUT:?}");
            self.given_up = Some(Failure { kind: FailureKind::NotAsked, ..Failure::new(cause) });
        }
        if let Some(failure) = self.given_up.clone() {
            let source = Source::Api;
            return match question {
                Question::Contents(..) => Fact::Contents(Known { fact: failure.into(), source }),
                Question::Use(..) => Fact::Use(Known { fact: failure.into(), source }),
            };
        }
        let LookUpSources { resolver, authorizer } = self.sources;
        let (fact, failure) = match question {
            Question::Contents(spec, freshness) => {
                let span = tracing::info_span!(target: PROGRAM.spans, "look-up", %spec);
                let known = resolver.resolve(spec, *freshness, self.deadline).instrument(span).await;
                self.metrics.spec_lookup(&known);
                let failure = if let SpecFact::Failed(failure) = &known.fact { Some(failure.clone()) } else { None };
                (Fact::Contents(known), failure)
            }
            Question::Use(account, verb, spec) => {
                let span = tracing::info_span!(target: PROGRAM.spans, "access review", %spec);
                let known = authorizer.may(account, *verb, spec, self.deadline).instrument(span).await;
                self.metrics.access_review(&known);
                let failure = if let UseFact::Failed(failure) = &known.fact { Some(failure.clone()) } else { None };
                (Fact::Use(known), failure)
            }
        };
        self.given_up = failure.filter(|failure| failure.kind == FailureKind::NotAsked);
        fact
    }
}

fn outcome(decision: &Decision) -> metrics::ReviewOutcome {
    match &decision.verdict {
        Verdict::Allowed => metrics::ReviewOutcome::Allowed,
        Verdict::WouldDeny(_) => metrics::ReviewOutcome::WouldDeny,
        Verdict::Denied(denial) if denial.code() >= 500 => metrics::ReviewOutcome::Error,
        Verdict::Denied(_) => metrics::ReviewOutcome::Denied,
    }
}

/// Records the decision on the review's span, if it is traced.
fn record_on_span(review: &Review, decision: &Decision, outcome: metrics::ReviewOutcome) {
    if !tracing::enabled!(target: PROGRAM.spans, Level::INFO) {
        return;
    }
    let span = Span::current();
    let code = match &decision.verdict {
        Verdict::Allowed | Verdict::WouldDeny(_) => 200,
        Verdict::Denied(denial) => denial.code(),
    };
    span.record("uid", cut(&review.uid)).record("namespace", cut(&review.namespace)).record("code", i64::from(code));
    span.record("outcome", outcome.as_str()).record("reason", decision.reason);
    if code >= 500 {
        otlp::fail(&span, decision.reason);
    }
}

/// One line per decision: failures at warn, denials at info, and each pod that `/validate` admits with GMSA at info, because the log is an
/// audit. What else is admitted, dry runs included, is at debug. Never a body or contents.
fn log(webhook: Webhook, review: &Review, decision: &Decision, duration: Duration) {
    let is_audited = webhook == Webhook::Validate && !decision.specs.is_empty() && !review.dry_run;
    if decision.verdict == Verdict::Allowed && !is_audited && !tracing::enabled!(Level::DEBUG) {
        return;
    }
    let (path, operation, reason) = (webhook.as_str(), review.operation.as_str(), decision.reason);
    let pod = review.object.as_ref().or(review.old_object.as_ref());
    let (name, service_account) = pod.map_or(("", ""), |pod| (cut(pod.name()), cut(pod.service_account())));
    let (uid, namespace) = (cut(&review.uid), cut(&review.namespace));
    let duration_seconds = duration.as_secs_f64();
    let specs = match &review.credential_spec {
        Some(spec) => cut(spec.name()).to_owned(),
        // Four names of the greatest length fit.
        None => {
            shorten(&decision.specs.iter().map(SpecName::as_str).collect::<Vec<_>>().join(","), MESSAGE).into_owned()
        }
    };
    let denied = match &decision.verdict {
        Verdict::Denied(denial) | Verdict::WouldDeny(denial) => Some(denial),
        Verdict::Allowed => None,
    };
    let (code, text) = (denied.map(Denial::code), denied.map(ToString::to_string));
    let denial = text.as_deref().map(cut_message);
    let message = match &decision.verdict {
        Verdict::Denied(_) => "denied",
        Verdict::WouldDeny(_) => "would deny, not enforced",
        Verdict::Allowed if !is_audited && decision.patch.is_some() => "filled in",
        Verdict::Allowed => "allowed",
    };
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                path, operation, uid, namespace, pod = name, service_account, %specs, reason, code, denial,
                duration_seconds, "{message}"
            )
        };
    }
    match code {
        // A failure of the webhook or its cluster shows at `logLevel: warn` too.
        Some(500..) => line!(warn),
        None if !is_audited => line!(debug),
        _ => line!(info),
    }
}

#[cfg(test)]
mod tests;
