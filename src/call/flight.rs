//! What the driver keeps of a call under way, so that a core that doesn't live to record it leaves no gap in the ledger.

use super::Call;
use crate::ledger::Packer;
use crate::prelude::*;

impl Call {
    /// Packs what the records of this call and of its attempt under way would say if both ended now: the nine facts of
    /// [`crate::ledger::CallFacts`], then when the call began, its deadline, attempts, queue and backoff, and revision; then
    /// the attempt's id, number, bucket, timeout, start and queue, where one is under way.
    #[must_use]
    pub fn flight(&self) -> String {
        let facts = &self.spec.facts;
        let mut out = String::with_capacity(256);
        let mut p = Packer::new(&mut out);
        p.text(&facts.logical_request_id).text(&facts.tenant).text(&facts.operation).text(&facts.provider);
        p.text(facts.protocol).text(&facts.model).text(&facts.prompt_hash);
        p.maybe(facts.input_token_estimate).maybe(facts.max_output_tokens);
        p.number(self.spec.started_at.0).number(self.spec.deadline.0).number(self.attempts.into());
        p.number(self.queue.0).number(self.backoff.0).number(self.spec.joined.saturating_add(1).into());
        if let Some(attempt) = &self.attempt {
            p.text(&attempt.attempt_id).number(attempt.attempt_no.into()).text(&attempt.bucket);
            p.number(attempt.client_timeout.0).number(attempt.started_at.0).number(attempt.queue.0);
        }
        out
    }
}
