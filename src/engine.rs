//! Everything one keel holds: the calls under way, what outlives them, and the queue of records.
//!
//! The host side (`src/host`) is a flat face of this; natively it is driven by tests under a simulated clock. Calls live
//! here under a number, not as objects of their own, since a host may kill a request without running its `finally`: a
//! sweep ends what was abandoned (as `lost`) once its deadline is well past.

use crate::call::{Action, Call, CallSpec, Input, Method, World};
use crate::class::Classification;
use crate::classify::{CustomRule, providers};
use crate::control::{CallId, Control, Notice, NoticeKind};
use crate::drift::Drift;
use crate::joins::{Ended, Joins};
use crate::ledger::{CallFacts, FIELD, RECORD, clean, pack_notice};
use crate::policy::Policy;
use crate::prelude::*;
use crate::protocol::Protocol;
use crate::request::{self, BodyReader};
use crate::text::{self, decimal, hex_digit, joined, push_ascii, push_number};
use crate::time::{Instant, Millis};
use crate::ulid::ulid;
use alloc::rc::Rc;

/// How long past its deadline a call is left alone before the sweep ends it.
const GRACE: Millis = Millis(60_000);
/// The sweep runs once in so many new calls.
const SWEEP_EVERY: u32 = 256;

/// A provider of the user's own, or other limits for a built-in one.
#[derive(Debug, Default)]
pub struct CustomProvider {
    /// Its name in records.
    pub name: String,
    /// Hosts (`llm.acme.io`, `*.acme.io`, `127.0.0.1:8080`) or URL prefixes that it answers at.
    pub matches: Vec<String>,
    /// The protocol it speaks, where the path does not tell.
    pub protocol: Option<Protocol>,
    /// Rules that are tried before the built-in ones.
    pub rules: Rc<[CustomRule]>,
    /// Its own limits.
    pub policy: Option<Policy>,
}

/// What the driver knows of a call before its body was read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Begin<'a> {
    /// The URL that is called.
    pub url: &'a str,
    /// HTTP method.
    pub method: &'a str,
    /// The caller's tenant; empty for none.
    pub tenant: &'a str,
    /// The caller's name for the operation; empty for none.
    pub operation: &'a str,
    /// Id given by the caller; empty for one of ours.
    pub logical_request_id: &'a str,
    /// Batch work.
    pub batch: bool,
    /// Whether the request can be sent again.
    pub replayable: bool,
    /// Whether a layer above says that it retries by itself, and on which retry it is.
    pub layer_above: Option<u32>,
    /// The time that the layer above gives this request.
    pub layer_timeout: Option<Millis>,
    /// The caller's own deadline, from now.
    pub deadline: Option<Millis>,
    /// The key that the request carries, of which only a keyed hash is kept; empty for none.
    pub credential: &'a str,
    /// Tokens as the user's own estimator counts them.
    pub token_estimate: Option<u64>,
    /// Whether the driver has a hook that may overrule verdicts.
    pub judged_by_user: bool,
}

#[derive(Debug)]
struct Entry {
    id: u32,
    call: Call,
    /// Set where a layer above may repeat this call.
    fingerprint: Option<u128>,
    joined: u32,
    began: Instant,
}

/// One keel.
#[derive(Debug)]
pub struct Engine {
    /// In order of their numbers.
    #[allow(clippy::vec_box, reason = "sorted by number: an insertion moves pointers, not whole calls")]
    calls: Vec<Box<Entry>>,
    next: u32,
    control: Control,
    rng: fastrand::Rng,
    outbox: String,
    policy: Policy,
    providers: Vec<CustomProvider>,
    hash_key: [u8; 16],
    joins: Joins,
    doubled_layer_told: bool,
    body: Option<BodyReader>,
    drift: Drift,
}

impl Engine {
    /// An engine with a random seed from the host; the same seed, inputs and clock give the same decisions.
    #[must_use]
    pub fn new(seed: u64, hash_secret: Option<&str>, policy: Policy, control: Control) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let hash_key = hash_secret.map_or_else(
            || {
                let mut key = [0; 16];
                rng.fill(&mut key);
                key
            },
            request::hash_key,
        );
        Self {
            calls: Vec::new(),
            next: 1,
            control,
            rng,
            outbox: String::new(),
            policy,
            providers: Vec::new(),
            hash_key,
            joins: Joins::default(),
            doubled_layer_told: false,
            body: None,
            drift: Drift::default(),
        }
    }

    /// Adds a provider of the user's own; earlier ones are matched first.
    pub fn add_provider(&mut self, provider: CustomProvider) {
        self.providers.push(provider);
    }

    /// The limits where no provider has its own.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The control plane.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The control plane, for what a person does to it (enabling a key) and what a restart brings back.
    pub fn control_mut(&mut self) -> &mut Control {
        &mut self.control
    }

    /// Enables a key that was disabled; false if there is none of that id.
    pub fn enable_key(&mut self, id: &str, now: Instant) -> bool {
        let known = self.control.enable_key(id, now);
        self.pass_notices_on();
        known
    }

    fn pass_notices_on(&mut self) {
        while let Some(notice) = self.control.take_notice() {
            pack_notice(notice.kind.name(), notice.at, &clean(&notice.subject), &detail(&notice), &mut self.outbox);
        }
    }

    /// A waiting call that should ask again now.
    pub fn take_woken(&mut self) -> Option<u32> {
        while let Some(call) = self.control.take_woken() {
            if let Ok(id) = u32::try_from(call.0)
                && self.place(id).is_ok()
            {
                return Some(id);
            }
        }
        None
    }

    /// Takes a part of the request body of the call that begins next.
    pub fn request_body(&mut self, part: &[u8]) {
        let key = &self.hash_key;
        self.body.get_or_insert_with(|| BodyReader::new(key)).feed(part);
    }

    /// Begins a call with the body given before, and says its number and what to do.
    pub fn begin(&mut self, begin: &Begin<'_>, now: Instant) -> (u32, Action) {
        let has_body = self.body.is_some();
        let body = self.body.take().unwrap_or_else(|| BodyReader::new(&self.hash_key)).finish();
        let target = request::target(begin.url);
        let custom = self.providers.iter().find(|p| p.answers(begin.url, &target.host));
        let builtin = providers::by_host(&target.host);
        let provider = match (custom, builtin) {
            (Some(custom), _) => custom.name.clone(),
            (None, Some(builtin)) => builtin.name.to_owned(),
            (None, None) => clean(&target.host),
        };
        let named = custom.or_else(|| self.providers.iter().find(|p| p.matches.is_empty() && p.name == provider));
        let mut protocol = target.protocol;
        if let Some(own) = named.and_then(|p| p.protocol)
            && protocol == Protocol::Unknown
        {
            protocol = own;
        }
        let policy = named.and_then(|p| p.policy).unwrap_or(self.policy);
        let rules = named.map_or_else(|| Rc::from([]), |p| Rc::clone(&p.rules));

        let mut deadline = now.plus(policy.total);
        if let Some(own) = begin.deadline {
            deadline = deadline.min(now.plus(own));
        }
        if let Some(layer) = begin.layer_timeout {
            // A little earlier than the layer above, so that it gets our answer and not its own timer.
            let margin = Millis((layer.0 / 20).min(500));
            deadline = deadline.min(now.plus(layer.minus(margin)));
        }
        let fingerprint = begin.layer_above.map(|_| fingerprint(begin, body.hash));
        let repeated = match (begin.layer_above, fingerprint) {
            (Some(retry), Some(key)) if retry > 0 => self.joins.join(key, now),
            _ => None,
        };
        if repeated.is_some() && !self.doubled_layer_told {
            self.doubled_layer_told = true;
            pack_notice(
                NoticeKind::DoubledRetryLayer.name(),
                now,
                &provider,
                "{\"advice\":\"the SDK retries too; set its maxRetries to 0\"}",
                &mut self.outbox,
            );
        }
        if let Some(earlier) = &repeated
            && earlier.deadline > now.plus(policy.min_attempt)
        {
            deadline = deadline.min(earlier.deadline);
        }
        let logical_request_id = match (&repeated, begin.logical_request_id) {
            (Some(earlier), _) => earlier.logical_request_id.clone(),
            (None, "") => ulid(now, &mut self.rng),
            (None, given) => clean(given),
        };
        let account = if self.control.has_pool(&provider) { None } else { Some(self.account(begin.credential)) };
        let estimate = begin.token_estimate.or_else(|| has_body.then(|| body.bytes.div_ceil(4)));
        let joined = repeated.as_ref().map_or(0, |e| e.joined.saturating_add(1));
        let idempotent = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"];
        let repeatable = named.is_some()
            || builtin.is_some()
            || protocol != Protocol::Unknown
            || body.model.is_some()
            || begin.layer_above.is_some() // a model SDK's own request, such as an upload
            || idempotent.iter().any(|method| method.eq_ignore_ascii_case(begin.method));
        let spec = CallSpec {
            facts: CallFacts {
                logical_request_id,
                tenant: clean(begin.tenant),
                operation: clean(begin.operation),
                provider,
                protocol: protocol.name(),
                model: body.model.or(target.model).map_or_else(String::new, |m| clean(&m)),
                prompt_hash: if has_body { hex(body.hash) } else { String::new() },
                input_token_estimate: estimate,
                max_output_tokens: body.max_output_tokens,
            },
            protocol,
            stream: body.stream || target.stream,
            replayable: begin.replayable,
            repeatable,
            batch: begin.batch,
            policy,
            rules,
            started_at: now,
            deadline,
            earlier_attempts: repeated.as_ref().map_or(0, |e| e.attempts),
            earlier_class: repeated.as_ref().and_then(|e| e.class),
            earlier_records: repeated.map_or_else(String::new, |e| e.records),
            method: match begin.method {
                "GET" | "get" => Method::Reads,
                "HEAD" | "head" | "OPTIONS" | "options" => Method::Bodiless,
                _ => Method::Asks,
            },
            joined,
            judged_by_user: begin.judged_by_user,
            account,
        };
        let id = self.free_number();
        let call = Call::new(CallId(u64::from(id)), spec);
        let place = self.place(id).unwrap_or_else(|place| place);
        self.calls.insert(place, Box::new(Entry { id, call, fingerprint, joined, began: now }));
        if id.is_multiple_of(SWEEP_EVERY) {
            self.sweep(now);
        }
        let action = self.handle(id, Input::Start, now);
        (id, action)
    }

    /// Gives a call what happened. A number that is not (or no longer) in use does nothing.
    pub fn handle(&mut self, id: u32, input: Input<'_>, now: Instant) -> Action {
        let Some(entry) = self.place(id).ok().and_then(|place| self.calls.get_mut(place)) else {
            return Action::Continue;
        };
        let mut world =
            World { control: &mut self.control, rng: &mut self.rng, outbox: &mut self.outbox, drift: &mut self.drift };
        let action = entry.call.handle(now, input, &mut world);
        if matches!(action, Action::Return | Action::Fail | Action::Reject)
            && let Some(key) = entry.fingerprint
        {
            let call = &entry.call;
            let ended = Ended {
                logical_request_id: call.facts().logical_request_id.clone(),
                attempts: call.attempts(),
                joined: entry.joined,
                deadline: call.deadline(),
                class: call.ending().map(|ending| ending.class),
                records: call.failed_attempts().into(),
            };
            self.joins.on_end(key, ended, now);
        }
        if matches!(action, Action::Deliver) {
            self.forget(id);
        }
        self.pass_notices_on();
        action
    }

    /// A call under way.
    #[must_use]
    pub fn call(&self, id: u32) -> Option<&Call> {
        self.calls.get(self.place(id).ok()?).map(|entry| &entry.call)
    }

    /// Forgets a call whose end the driver has dealt with.
    pub fn forget(&mut self, id: u32) -> Option<Call> {
        Some(self.calls.remove(self.place(id).ok()?).call)
    }

    /// Calls under way.
    #[must_use]
    pub fn active(&self) -> usize {
        self.calls.len()
    }

    /// Calls that a retry of a layer above could still join.
    #[must_use]
    pub fn joinable(&self) -> usize {
        self.joins.len()
    }

    /// The packed records that wait to be handed out.
    pub fn take_records(&mut self) -> String {
        core::mem::take(&mut self.outbox)
    }

    /// Whether records wait.
    #[must_use]
    pub fn has_records(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Ends calls that their host abandoned: those whose deadline is long past.
    pub fn sweep(&mut self, now: Instant) {
        let mut place = 0;
        while let Some(entry) = self.calls.get(place) {
            if entry.began >= now || entry.call.deadline().plus(GRACE) >= now {
                place = place.saturating_add(1);
            } else {
                let mut call = self.calls.remove(place).call;
                let mut world = World {
                    control: &mut self.control,
                    rng: &mut self.rng,
                    outbox: &mut self.outbox,
                    drift: &mut self.drift,
                };
                call.abandon(now, &mut world);
            }
        }
    }

    /// The verdict that waits for the user's hook.
    #[must_use]
    pub fn verdict(&self, id: u32) -> Option<&Classification> {
        self.call(id).and_then(Call::verdict)
    }

    /// How a call ended, packed: class, reason, retryable, retry after, retry at, attempts, logical request, provider,
    /// protocol, model; then the records of its failed attempts. The call is forgotten.
    pub fn ending(&mut self, id: u32) -> String {
        let Some(call) = self.forget(id) else { return String::new() };
        let mut out = String::new();
        if let Some(ending) = call.ending() {
            let facts = call.facts();
            let fields: [&str; 10] = [
                ending.class.name(),
                &ending.reason,
                if ending.retryable { "1" } else { "0" },
                &decimal(ending.retry_after.map(|m| m.0)),
                &decimal(ending.retry_at.map(|t| t.0)),
                &decimal(Some(call.attempts().into())),
                &facts.logical_request_id,
                &facts.provider,
                facts.protocol,
                &facts.model,
            ];
            for (at, field) in fields.iter().enumerate() {
                if at > 0 {
                    out.push(FIELD);
                }
                out.push_str(field);
            }
        }
        out.push(RECORD);
        out.push_str(call.failed_attempts());
        out
    }

    /// A short name for whoever a key belongs to: tells keys apart, and tells nothing of them.
    fn account(&self, credential: &str) -> String {
        if credential.is_empty() {
            return String::new();
        }
        let hash = hex(keyed_hash(&self.hash_key, &[credential.as_bytes()]));
        joined(&["key-", hash.get(26..).unwrap_or_default()])
    }

    /// Where a call stands, or belongs.
    fn place(&self, id: u32) -> Result<usize, usize> {
        self.calls.binary_search_by(|entry| entry.id.cmp(&id))
    }

    fn free_number(&mut self) -> u32 {
        loop {
            let id = self.next;
            // 23 bits, so that number and action fit one 32-bit value; a number in use is passed over.
            self.next = if id >= 0x7F_FFFF { 1 } else { id.saturating_add(1) };
            if self.place(id).is_err() {
                return id;
            }
        }
    }
}

impl CustomProvider {
    /// Whether a URL is this provider's.
    fn answers(&self, url: &str, host: &str) -> bool {
        self.matches.iter().any(|pattern| {
            if text::has(pattern, "://") {
                begins_with(url, pattern)
            } else if let Some(suffix) = pattern.strip_prefix('*') {
                host.ends_with(suffix) || text::before(host, ":").ends_with(suffix)
            } else {
                host == pattern || (!text::has(pattern, ":") && text::before(host, ":") == pattern)
            }
        })
    }
}

/// Whether a URL is at or below another one: the same up to a boundary, so that `https://llm.acme.io` is neither
/// `https://llm.acme.io.evil.com` nor `https://llm.acme.io@evil.com`, and no key of a pool goes there.
fn begins_with(url: &str, prefix: &str) -> bool {
    let prefix = prefix.as_bytes();
    let Some((start, rest)) = url.as_bytes().split_at_checked(prefix.len()) else { return false };
    start.eq_ignore_ascii_case(prefix) && (prefix.ends_with(b"/") || matches!(rest, [] | [b'/' | b'?' | b'#', ..]))
}

/// Tells whose request it is and what it asks for: another tenant's or key's same bytes are another request.
fn fingerprint(begin: &Begin<'_>, body: u128) -> u128 {
    let parts = [begin.method, "\n", begin.url, "\n", begin.tenant, "\n", begin.credential];
    keyed_hash(&body.to_le_bytes(), &parts.map(str::as_bytes))
}

/// Keyed 128-bit SipHash-1-3 of all parts in a row.
fn keyed_hash(key: &[u8; 16], parts: &[&[u8]]) -> u128 {
    use core::hash::Hasher;
    use siphasher::sip128::{Hasher128, SipHasher13};
    let mut hasher = SipHasher13::new_with_key(key);
    for part in parts {
        hasher.write(part);
    }
    hasher.finish128().as_u128()
}

/// The detail of a notice as JSON: class, until when, and the new value, as far as they are known.
fn detail(notice: &Notice) -> String {
    let mut out = String::from("{");
    if let Some(class) = notice.class {
        out.push_str("\"class\":\"");
        out.push_str(class.name());
        out.push('"');
    }
    for (name, value) in [("until_ms", notice.until.map(|at| at.0)), ("value", notice.value)] {
        if let Some(value) = value {
            if out.len() > 1 {
                out.push(',');
            }
            out.push('"');
            out.push_str(name);
            out.push_str("\":");
            push_number(&mut out, value);
        }
    }
    out.push('}');
    out
}

fn hex(value: u128) -> String {
    let mut digits = [0; 32];
    for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(value.to_be_bytes()) {
        *pair = [hex_digit(byte >> 4), hex_digit(byte)];
    }
    let mut out = String::new();
    push_ascii(&mut out, &digits);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::ControlConfig;
    use crate::headers::Headers;

    fn engine() -> Engine {
        Engine::new(1, Some("k"), Policy::STANDARD, Control::new(ControlConfig::default()).unwrap())
    }

    #[test]
    fn a_url_prefix_ends_at_a_boundary() {
        let own = CustomProvider {
            matches: vec!["https://llm.acme.io".into(), "https://gw.io/v1/".into()],
            ..CustomProvider::default()
        };
        for (url, is) in [
            ("https://llm.acme.io", true),
            ("https://LLM.acme.io/v1/x", true),
            ("https://llm.acme.io?x", true),
            ("https://llm.acme.io.evil.com/v1", false),
            ("https://llm.acme.io@evil.com/v1", false),
            ("https://llm.acme.io:8443/v1", false),
            ("https://gw.io/v1/chat", true),
            ("https://gw.io/v10/chat", false),
        ] {
            assert_eq!(own.answers(url, &request::target(url).host), is, "{url}");
        }
    }

    #[test]
    fn a_retry_joins_nobody_elses_request() {
        let fail = |engine: &mut Engine, tenant: &str, credential: &str, retry: u32| {
            let begin = Begin {
                url: "https://api.openai.com/v1/chat/completions",
                method: "POST",
                tenant,
                credential,
                replayable: true,
                layer_above: Some(retry),
                ..Begin::default()
            };
            engine.request_body(b"{}");
            let (id, _) = engine.begin(&begin, Instant(1_000));
            let logical = engine.call(id).map(|call| call.facts().logical_request_id.clone());
            engine.handle(id, Input::Head { status: 401, headers: Headers("") }, Instant(1_001));
            engine.handle(id, Input::Body { bytes: b"{}", complete: true }, Instant(1_002));
            engine.forget(id);
            logical
        };
        let mut engine = engine();
        let first = fail(&mut engine, "a", "key-1", 0);
        assert_ne!(fail(&mut engine, "b", "key-1", 1), first);
        assert_ne!(fail(&mut engine, "a", "key-2", 1), first);
        assert_eq!(fail(&mut engine, "a", "key-1", 1), first);
    }

    #[test]
    fn reading_a_stored_failure_is_no_failure_and_head_has_no_body() {
        let mut engine = engine();
        for (method, action) in [("GET", Action::Deliver), ("POST", Action::Sleep)] {
            let begin =
                Begin { url: "https://api.openai.com/v1/responses", method, replayable: true, ..Begin::default() };
            let (id, _) = engine.begin(&begin, Instant(1_000));
            engine.handle(
                id,
                Input::Head { status: 200, headers: Headers("content-type:application/json") },
                Instant(1_001),
            );
            let bytes = br#"{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"x"}}"#;
            assert_eq!(engine.handle(id, Input::Body { bytes, complete: true }, Instant(1_002)), action, "{method}");
            engine.forget(id);
        }
        let begin =
            Begin { url: "https://api.openai.com/v1/models", method: "HEAD", replayable: true, ..Begin::default() };
        let (id, _) = engine.begin(&begin, Instant(1_000));
        assert_eq!(
            engine.handle(id, Input::Head { status: 200, headers: Headers("") }, Instant(1_001)),
            Action::Deliver
        );
    }
}
