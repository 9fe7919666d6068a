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

#[cfg(test)]
mod tests {
    use crate::call::{Action, Input};
    use crate::control::{Control, ControlConfig};
    use crate::engine::{Begin, Engine};
    use crate::headers::Headers;
    use crate::ledger::FIELD;
    use crate::policy::Policy;
    use crate::prelude::*;
    use crate::time::Instant;

    #[test]
    fn a_flight_tells_of_the_call_and_of_the_attempt_that_is_under_way() {
        let mut engine = Engine::new(1, None, Policy::STANDARD, Control::new(ControlConfig::default()).unwrap());
        let begin = Begin {
            url: "https://api.openai.com/v1/chat/completions",
            method: "POST",
            tenant: "acme",
            logical_request_id: "own-1",
            replayable: true,
            ..Begin::default()
        };
        engine.request_body(br#"{"model":"gpt-5","max_tokens":7}"#);
        let (id, action) = engine.begin(&begin, Instant(1_000));
        assert_eq!(action, Action::Send);
        let fields = |engine: &Engine| -> Vec<String> {
            engine.call(id).unwrap().flight().split(FIELD).map(str::to_owned).collect()
        };
        let sent = fields(&engine);
        assert_eq!(sent.len(), 21);
        assert_eq!(sent[..6], ["own-1", "acme", "", "openai", "openai.chat", "gpt-5"]);
        assert_eq!(sent[7..15], ["8", "7", "1000", "601000", "1", "0", "0", "1"]);
        assert_eq!(
            (sent[15].len(), &sent[16..]),
            (26, &["1", "openai/gpt-5", "600000", "1000", "0"].map(str::to_owned)[..])
        );

        engine.handle(id, Input::Head { status: 503, headers: Headers("") }, Instant(1_100));
        let action = engine.handle(id, Input::Body { bytes: b"{}", complete: true }, Instant(1_200));
        assert_eq!(action, Action::Sleep);
        let waiting = fields(&engine);
        assert_eq!((waiting.len(), &waiting[11]), (15, &"1".to_owned()), "it has no attempt, and had one");
    }
}
