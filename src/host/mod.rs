//! The wasm side: a flat, synchronous face of the [`Engine`] for the driver in `pkg/src/driver.ts`.
//!
//! Nothing here calls JavaScript, waits, or is waited for. So the object can't be found borrowed when a sink, a hook or
//! a `fetch` calls back into the keel; a trap is a thrown error and not a promise that never settles; and each request
//! is driven in its own async context by its own promises. Why the loop itself is in TypeScript: `docs/decisions`.
//!
//! What crosses: numbers as `f64` (a `u64` would cross as a `BigInt`), strings once, several packed into one. A call's
//! answer to an input is one number: the action in the low five bits, [`RECORDS`] if records wait, [`WOKEN`] if other
//! calls should ask again.

mod classify;

use crate::backoff::Jitter;
use crate::call::{Action, Call, Input};
use crate::class::{Classification, ErrorClass, Scope};
use crate::classify::{CustomRule, TransportError};
use crate::control::Control;
use crate::engine::{Begin, CustomProvider, Engine};
use crate::headers::Headers;
use crate::ledger::FIELD;
use crate::policy::Policy;
use crate::prelude::*;
use crate::protocol::Protocol;
use crate::settings;
use crate::stream::CommitOn;
use crate::text::{self, decimal};
use crate::time::{Instant, Millis};
use alloc::rc::Rc;
use wasm_bindgen::prelude::*;

/// Separates the fields of what comes packed: [`FIELD`].
const FIELDS: &str = "\u{1f}";
/// Set in an answer when records wait to be taken.
const RECORDS: u32 = 32;
/// Set in an answer when other calls should ask again.
const WOKEN: u32 = 64;

/// One keel's core.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Core {
    engine: Engine,
    woken: u32,
}

#[wasm_bindgen]
impl Core {
    /// A core with 64 random bits from the host, the hash secret (empty: random), the limits in the order of
    /// `POLICY_FIELDS`, and the control plane's settings ([`settings`]), all checked by `pkg/src/config.ts`.
    #[wasm_bindgen(constructor)]
    #[must_use]
    pub fn new(seed_low: u32, seed_high: u32, hash_secret: &str, limits: &[f64], control: &str) -> Self {
        let seed = u64::from(seed_high).wrapping_shl(32) | u64::from(seed_low);
        let secret = if hash_secret.is_empty() { None } else { Some(hash_secret) };
        let preset = match limits.get(16).copied().map(to_u32) {
            Some(1) => Policy::INTERACTIVE,
            Some(2) => Policy::BACKGROUND,
            _ => Policy::STANDARD,
        };
        let policy = policy(limits, preset);
        let control = Control::of_checked(settings::read(control));
        Self { engine: Engine::new(seed, secret, policy, control), woken: 0 }
    }

    /// Adds a provider of the user's own: name, match patterns (separated by U+001F), protocol name or "", rules as JSON
    /// or "", and its limits (empty: the keel's). Returns an empty string, or what is wrong with the rules.
    #[wasm_bindgen(js_name = addProvider)]
    pub fn add_provider(&mut self, name: &str, matches: &str, protocol: &str, rules: &str, limits: &[f64]) -> String {
        let rules: Rc<[CustomRule]> = match if rules.is_empty() { Ok(Vec::new()) } else { CustomRule::parse_all(rules) }
        {
            Ok(rules) => rules.into(),
            Err(error) => return error.message(),
        };
        self.engine.add_provider(CustomProvider {
            name: name.to_owned(),
            matches: text::pieces(matches, FIELDS).filter(|m| !m.is_empty()).map(str::to_owned).collect(),
            protocol: Protocol::from_name(protocol),
            rules,
            policy: (!limits.is_empty()).then(|| policy(limits, *self.engine.policy())),
        });
        String::new()
    }

    /// Takes a part of the request body of the call that begins next.
    #[wasm_bindgen(js_name = requestBody)]
    pub fn request_body(&mut self, part: &[u8]) {
        self.engine.request_body(part);
    }

    /// Begins a call. `context` is tenant, operation, logical request id, method and credential, packed; `body` is a body
    /// that is a short string, or empty; `flags` see below; a negative number, or an infinite deadline, stands for "not given". Answers with the
    /// call's number times 128 plus the answer.
    ///
    /// Flags: 1 batch, 2 replayable, 4 a layer above retries, 8 the user has a hook.
    #[allow(clippy::too_many_arguments, reason = "flat values cross the border ten times faster than an object")]
    pub fn begin(
        &mut self,
        now: f64,
        url: &str,
        context: &str,
        body: &str,
        flags: u32,
        layer_retry: u32,
        layer_timeout: f64,
        deadline: f64,
        tokens: f64,
    ) -> u32 {
        let mut fields = text::pieces(context, FIELDS);
        let mut field = || fields.next().unwrap_or("");
        if !body.is_empty() {
            self.engine.request_body(body.as_bytes());
        }
        let begin = Begin {
            url,
            tenant: field(),
            operation: field(),
            logical_request_id: field(),
            method: field(),
            credential: field(),
            batch: flags & 1 != 0,
            replayable: flags & 2 != 0,
            layer_above: (flags & 4 != 0).then_some(layer_retry),
            layer_timeout: (layer_timeout >= 0.0).then(|| Millis(to_u64(layer_timeout))),
            deadline: deadline.is_finite().then(|| Millis(to_u64(deadline))),
            token_estimate: (tokens >= 0.0).then(|| to_u64(tokens)),
            judged_by_user: flags & 8 != 0,
        };
        let now = Instant(to_u64(now));
        let (id, action) = self.engine.begin(&begin, now);
        id.wrapping_shl(7) | self.answer(action)
    }

    /// The response head is there.
    pub fn head(&mut self, id: u32, now: f64, status: u16, headers: &str) -> u32 {
        self.handle(id, now, Input::Head { status, headers: Headers(headers) })
    }

    /// A part of a body too large to be given at once.
    #[wasm_bindgen(js_name = bodyPart)]
    pub fn body_part(&mut self, id: u32, now: f64, part: &[u8]) -> u32 {
        self.handle(id, now, Input::BodyPart(part))
    }

    /// The body, or the rest of it; `complete` is false if it goes on after what was read.
    pub fn body(&mut self, id: u32, now: f64, bytes: &[u8], complete: bool) -> u32 {
        self.handle(id, now, Input::Body { bytes, complete })
    }

    /// What has come of a body that is being read: how many bytes, when the last, and the last that is not blank (negative:
    /// none). Said before what ends the reading, and before the timer's look at it.
    #[wasm_bindgen(js_name = bodyProgress)]
    pub fn body_progress(&mut self, id: u32, now: f64, bytes: f64, last_byte: f64, last_content: f64) {
        let at = |time: f64| (time >= 0.0).then(|| Instant(to_u64(time)));
        let (last_byte, last_content) = (at(last_byte), at(last_content));
        self.engine.handle(id, Input::Progress { bytes: to_u64(bytes), last_byte, last_content }, Instant(to_u64(now)));
    }

    /// The next chunk of a stream.
    pub fn chunk(&mut self, id: u32, now: f64, chunk: &[u8]) -> u32 {
        self.handle(id, now, Input::Chunk(chunk))
    }

    /// The stream ended.
    #[wasm_bindgen(js_name = streamEnd)]
    pub fn stream_end(&mut self, id: u32, now: f64) -> u32 {
        self.handle(id, now, Input::StreamEnd)
    }

    /// Nothing was read for so many milliseconds, since the reader of the answer was slow.
    pub fn idle(&mut self, id: u32, now: f64, idle: f64) -> u32 {
        self.handle(id, now, Input::Idle(Millis(to_u64(idle))))
    }

    /// What ends a broken stream.
    pub fn tail(&self, id: u32) -> Vec<u8> {
        self.engine.call(id).map_or_else(Vec::new, |call| call.tail().to_vec())
    }

    /// How many bytes of the last chunk of a failed stream are the caller's.
    pub fn pass(&self, id: u32) -> f64 {
        self.engine.call(id).map_or(0.0, |call| to_f64(call.pass()))
    }

    /// The transport failed; `chain` is the error and its causes, packed.
    pub fn transport(&mut self, id: u32, now: f64, chain: &str) -> u32 {
        self.handle(id, now, Input::Transport(TransportError(chain)))
    }

    /// The timer fired.
    pub fn timer(&mut self, id: u32, now: f64) -> u32 {
        self.handle(id, now, Input::Timer)
    }

    /// The caller gave up.
    pub fn cancelled(&mut self, id: u32, now: f64) -> u32 {
        self.handle(id, now, Input::Cancelled)
    }

    /// The user's hook has judged: class, scope, reason, packed ("" leaves the verdict), whether it is retryable, and the
    /// wait hint (negative: none).
    pub fn judged(&mut self, id: u32, now: f64, verdict: &str, retryable: bool, wait_hint: f64) -> u32 {
        let mut fields = text::pieces(verdict, FIELDS);
        let overruled = fields.next().and_then(ErrorClass::from_name).map(|class| Classification {
            class,
            retryable,
            scope: fields.next().and_then(Scope::from_name).unwrap_or(Scope::Request),
            wait_hint: (wait_hint >= 0.0).then(|| Millis(to_u64(wait_hint))),
            reason: fields.next().unwrap_or("").to_owned().into(),
            rule: crate::call::USER_RULE.into(),
        });
        self.handle(id, now, Input::Judged(overruled.as_ref()))
    }

    /// The keel's limits as they are in force, in the order of `POLICY_FIELDS` without the preset.
    pub fn limits(&self) -> Vec<f64> {
        let p = self.engine.policy();
        let jitter = match p.jitter {
            Jitter::Full => 0_u32,
            Jitter::Equal => 1,
            Jitter::Decorrelated => 2,
            Jitter::None => 3,
        };
        let commit = match p.commit_on {
            CommitOn::Head => 0_u32,
            CommitOn::FirstEvent => 1,
            CommitOn::FirstContent => 2,
            CommitOn::End => 3,
        };
        let whole = [
            p.max_attempts.into(),
            p.base.0,
            p.cap.0,
            p.max_wait.0,
            jitter.into(),
            p.retry_ambiguous.into(),
            p.total.0,
            p.attempt.0,
            p.first_byte.0,
            p.first_token.0,
            p.chunk_gap.0,
            p.content_gap.0,
            p.min_attempt.0,
            commit.into(),
            p.max_held,
            p.max_body,
        ];
        let mut out = Vec::with_capacity(whole.len());
        for number in whole {
            out.push(to_f64(number));
        }
        out
    }

    /// The verdict that waits for the user's hook, packed: class, retryable, scope, wait hint, reason, rule,
    /// provider, model.
    pub fn verdict(&self, id: u32) -> String {
        let mut out = String::new();
        if let Some(verdict) = self.engine.verdict(id) {
            push_verdict(&mut out, verdict);
        }
        if let Some(call) = self.engine.call(id) {
            out.push_str(&call.facts().provider);
            out.push(FIELD);
            out.push_str(&call.facts().model);
        }
        out
    }

    /// Milliseconds until a call's timer has to fire; infinite if it needs none. Asked by number, since another call may
    /// have been answered between a call's own answer and this.
    #[wasm_bindgen(js_name = wakeIn)]
    pub fn wake_in(&self, id: u32, now: f64) -> f64 {
        match self.engine.call(id).map(Call::wake) {
            Some(wake) if wake != Instant::NEVER => to_f64(Instant(to_u64(now)).until(wake).0),
            _ => f64::INFINITY,
        }
    }

    /// How many bytes of the body to read, after the action that asks for it.
    #[wasm_bindgen(js_name = readCap)]
    pub fn read_cap(&self, id: u32) -> f64 {
        self.engine.call(id).map_or(0.0, |call| to_f64(call.read_cap()))
    }

    /// Which key of the pools to send, after the action that sends: its place among all keys in the order of the options;
    /// negative where the caller's own is sent.
    #[wasm_bindgen(js_name = keyIndex)]
    pub fn key_index(&self, id: u32) -> i32 {
        let key = self.engine.call(id).and_then(Call::permit).and_then(|permit| permit.key);
        key.and_then(|key| i32::try_from(key.0).ok()).unwrap_or(-1)
    }

    /// What a call's records would say if it ended now, packed as [`Call::flight`] says; empty for one that is not under way.
    pub fn flight(&self, id: u32) -> String {
        self.engine.call(id).map_or_else(String::new, Call::flight)
    }

    /// The number of a waiting call that should ask again; 0 if there is none.
    #[wasm_bindgen(js_name = takeWoken)]
    pub fn take_woken(&mut self) -> u32 {
        let next = self.engine.take_woken().unwrap_or(0);
        if self.woken == 0 { next } else { core::mem::replace(&mut self.woken, next) }
    }

    /// A waiting call that was woken asks again.
    pub fn woken(&mut self, id: u32, now: f64) -> u32 {
        self.handle(id, now, Input::Woken)
    }

    /// The control state as JSON.
    pub fn state(&self, now: f64) -> String {
        let mut out = String::new();
        self.engine.control().state_json(Instant(to_u64(now)), &mut out);
        out
    }

    /// Enables a key that was disabled; false if there is none of that id.
    #[wasm_bindgen(js_name = enableKey)]
    pub fn enable_key(&mut self, id: &str, now: f64) -> bool {
        self.engine.enable_key(id, Instant(to_u64(now)))
    }

    /// What should survive a restart.
    pub fn snapshot(&self, now: f64) -> String {
        let mut out = String::new();
        self.engine.control().snapshot(Instant(to_u64(now)), &mut out);
        out
    }

    /// Takes in a snapshot of an earlier core.
    pub fn restore(&mut self, snapshot: &str, now: f64) {
        self.engine.control_mut().restore(snapshot, Instant(to_u64(now)));
    }

    /// The packed records that wait.
    #[wasm_bindgen(js_name = takeRecords)]
    pub fn take_records(&mut self) -> String {
        self.engine.take_records()
    }

    /// How a call ended; forgets it.
    pub fn ending(&mut self, id: u32) -> String {
        self.engine.ending(id)
    }

    /// Ends abandoned calls; returns how many are under way.
    pub fn sweep(&mut self, now: f64) -> u32 {
        self.engine.sweep(Instant(to_u64(now)));
        u32::try_from(self.engine.active()).unwrap_or(u32::MAX)
    }

    /// Traps, in the test build only: how the wrapper treats a poisoned instance has to be tested with one.
    #[cfg(feature = "test-trap")]
    pub fn trap(&self) {
        #[allow(clippy::panic, reason = "this is what the feature is for")]
        {
            panic!("trap asked for by a test");
        }
    }
}

impl Core {
    fn handle(&mut self, id: u32, now: f64, input: Input<'_>) -> u32 {
        let now = Instant(to_u64(now));
        let action = self.engine.handle(id, input, now);
        self.answer(action)
    }

    fn answer(&mut self, action: Action) -> u32 {
        let code = match action {
            Action::Continue => 0,
            Action::Send => 1,
            Action::ReadBody { .. } => 2,
            Action::Sleep => 3,
            Action::Wait => 4,
            Action::Judge => 5,
            Action::Deliver => 6,
            Action::ReadStream => 7,
            Action::Return => 8,
            Action::Fail => 9,
            Action::Reject => 10,
            Action::Commit => 11,
            Action::Break => 12,
        };
        if self.woken == 0 {
            self.woken = self.engine.take_woken().unwrap_or(0);
        }
        let woken = if self.woken == 0 { 0 } else { WOKEN };
        let records = if self.engine.has_records() { RECORDS } else { 0 };
        code | records | woken
    }
}

/// Packs class, retryable, scope, wait hint, reason, rule.
fn push_verdict(out: &mut String, verdict: &Classification) {
    let hint = decimal(verdict.wait_hint.map(|m| m.0));
    let retryable = if verdict.retryable { "1" } else { "0" };
    for field in [verdict.class.name(), retryable, verdict.scope.name(), &hint, &verdict.reason, &verdict.rule] {
        out.push_str(field);
        out.push(FIELD);
    }
}

/// Reads limits in the order of `POLICY_FIELDS` in `pkg/src/config.ts`; NaN leaves the default.
fn policy(limits: &[f64], mut policy: Policy) -> Policy {
    let given = |at: usize| limits.get(at).copied().filter(|n| !n.is_nan());
    let millis = |at: usize, default: Millis| given(at).map_or(default, |n| Millis(to_u64(n)));
    if let Some(n) = given(0) {
        policy.max_attempts = to_u32(n);
    }
    policy.base = millis(1, policy.base);
    policy.cap = millis(2, policy.cap);
    policy.max_wait = millis(3, policy.max_wait);
    if let Some(n) = given(4) {
        policy.jitter = match to_u32(n) {
            1 => Jitter::Equal,
            2 => Jitter::Decorrelated,
            3 => Jitter::None,
            _ => Jitter::Full,
        };
    }
    if let Some(n) = given(5) {
        policy.retry_ambiguous = n != 0.0;
    }
    policy.total = millis(6, policy.total);
    policy.attempt = millis(7, policy.attempt);
    if given(8).is_some() {
        policy.first_byte_always = true;
    }
    policy.first_byte = millis(8, policy.first_byte);
    policy.first_token = millis(9, policy.first_token);
    policy.chunk_gap = millis(10, policy.chunk_gap);
    policy.content_gap = millis(11, policy.content_gap);
    policy.min_attempt = millis(12, policy.min_attempt);
    if let Some(n) = given(13) {
        policy.commit_on = match to_u32(n) {
            0 => CommitOn::Head,
            1 => CommitOn::FirstEvent,
            3 => CommitOn::End,
            _ => CommitOn::FirstContent,
        };
    }
    if let Some(n) = given(14) {
        policy.max_held = to_u64(n);
    }
    if let Some(n) = given(15) {
        policy.max_body = to_u64(n);
    }
    policy
}

/// Whole part of a number that is not negative; the cast saturates and takes NaN for 0.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast saturates, which is what is wanted"
)]
fn to_u64(n: f64) -> u64 {
    n as u64
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast saturates, which is what is wanted"
)]
fn to_u32(n: f64) -> u32 {
    n as u32
}

#[allow(clippy::cast_precision_loss, reason = "milliseconds and bytes stay far below 2^53")]
fn to_f64(n: u64) -> f64 {
    n as f64
}
