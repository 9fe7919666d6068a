//! A control plane with a clock of its own and a caller who asks for one thing.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    reason = "shared by several tests, none uses all"
)]

use evenkeel::class::{ErrorClass, Scope};
use evenkeel::control::{
    Admission, Ask, BucketId, CallId, Control, ControlConfig, NoticeKind, Outcome, Permit, PoolConfig, Priority, Reason,
};
use evenkeel::time::{Instant, Millis};

/// The pools of two organisations, `a` and `b`, with two keys each.
pub fn two_organisations(provider: &str, preflight: bool) -> Vec<PoolConfig> {
    let pool = |organisation: &str| PoolConfig {
        provider: provider.into(),
        organisation: organisation.into(),
        keys: vec![organisation.to_owned() + "1", organisation.to_owned() + "2"],
        models: None,
        weight: 1,
        preflight,
    };
    vec![pool("a"), pool("b")]
}

pub struct Rig {
    pub control: Control,
    pub now: u64,
    pub provider: &'static str,
    pub model: &'static str,
    pub tenant: String,
    pub priority: Priority,
    /// From now.
    pub deadline: u64,
    pub tokens: u64,
    pub avoid: Vec<BucketId>,
    calls: u64,
}

impl Rig {
    pub fn new(config: ControlConfig) -> Self {
        Self {
            control: Control::new(config).expect("the configuration is valid"),
            now: 1_000_000,
            provider: "openai",
            model: "gpt-5",
            tenant: String::new(),
            priority: Priority::Interactive,
            deadline: 600_000,
            tokens: 0,
            avoid: Vec::new(),
            calls: 1_000_000_000,
        }
    }

    /// One whose only model has just failed five times.
    pub fn broken() -> Self {
        let mut rig = Self::new(ControlConfig::default());
        for _ in 0..5 {
            let permit = rig.grant();
            rig.settle(&permit, failed(ErrorClass::ServerError, Scope::Model));
        }
        rig
    }

    pub fn ask(&mut self, call: u64) -> Admission {
        let ask = Ask {
            call: CallId(call),
            provider: self.provider,
            model: self.model,
            account: None,
            tenant: &self.tenant,
            priority: self.priority,
            input_tokens: self.tokens,
            output_tokens: 0,
            deadline: Instant(self.now + self.deadline),
            min_attempt: Millis(1_000),
            avoid: &self.avoid,
        };
        self.control.admit(&ask, Instant(self.now))
    }

    pub fn ask_fresh(&mut self) -> Admission {
        self.calls += 1;
        self.ask(self.calls)
    }

    #[track_caller]
    pub fn grant(&mut self) -> Permit {
        match self.ask_fresh() {
            Admission::Granted(permit) => permit,
            other => panic!("expected a permit, got {other:?}"),
        }
    }

    #[track_caller]
    pub fn refused(&mut self, expected: Reason) {
        match self.ask_fresh() {
            Admission::Refused { reason, .. } if reason == expected => {}
            other => panic!("expected a refusal for {expected:?}, got {other:?}"),
        }
    }

    pub fn settle(&mut self, permit: &Permit, outcome: Outcome<'_>) {
        self.control.settle(permit.id, &outcome, Instant(self.now));
    }

    pub fn bucket(&self, permit: &Permit) -> String {
        self.control.bucket(permit.bucket).unwrap_or_default().to_string()
    }

    pub fn notices(&mut self) -> Vec<NoticeKind> {
        std::iter::from_fn(|| self.control.take_notice()).map(|notice| notice.kind).collect()
    }
}

pub fn answered() -> Outcome<'static> {
    Outcome { latency: Millis(500), first_token: Some(Millis(200)), ..Outcome::default() }
}

pub fn failed(class: ErrorClass, scope: Scope) -> Outcome<'static> {
    Outcome { class: Some(class), scope: Some(scope), ..Outcome::default() }
}

pub fn hinted(class: ErrorClass, scope: Scope, hint: u64) -> Outcome<'static> {
    Outcome { wait_hint: Some(Millis(hint)), ..failed(class, scope) }
}
