//! Failures of the ticket agent.

use gmsa_core::diagnostic::rules::END_OF_TICKETS;

use super::{BROKER_UNREACHABLE, Phase, Rule, all, recognize};

/// A failed request for tickets, as the agent reports it.
pub struct AgentFailure {
    /// By the id that the broker gives, otherwise by the agent's words.
    pub rule: &'static Rule,
    /// The HTTP status of the broker's refusal; `None` where the broker did not refuse.
    pub status: Option<u16>,
}

impl AgentFailure {
    /// Reads the agent's message: `the broker refused: 403 Forbidden, not-authorized: …`.
    pub fn of(message: &str) -> Self {
        let refusal = message.strip_prefix("the broker refused: ");
        let status = refusal.and_then(|refusal| refusal.split(' ').next()?.parse().ok());
        let id = refusal.and_then(|refusal| refusal.split_once(", ")?.1.split(':').next());
        let named = all().find(|rule| Some(rule.id) == id);
        let of_words = || recognize(&format!("no tickets: {message}"), Phase::Running);
        Self { rule: named.or_else(of_words).unwrap_or(&BROKER_UNREACHABLE), status }
    }

    /// Whether the agent removes the tickets that it has.
    pub fn removes_tickets(&self) -> bool {
        self.status.is_some() && END_OF_TICKETS.contains(&self.rule)
    }
}
