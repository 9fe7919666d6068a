//! A provider, clients with policies, and a clock that jumps from event to event.
//!
//! The provider has a token bucket of requests (a minute's worth deep, as OpenAI's), latency with a tail, outages and
//! brownouts; a 429 comes with or without a hint, answers with or without headers. Clients arrive at random at a given
//! rate, each logical request with a deadline. Everything follows from one seed.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a simulation: it stops at anything odd, and its numbers are small"
)]

use evenkeel::backoff::{Backoff, Jitter};
use evenkeel::class::{ErrorClass, Scope};
use evenkeel::control::{
    Admission, Ask, CallId, Control, ControlConfig, LimitKind, LimitWindow, Outcome, Permit, Priority, RetryCost,
    VendorLimit,
};
use evenkeel::time::{Instant, Millis};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What clients do about failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The loop that everybody has written: 4 attempts, full jitter, no hints.
    Helper,
    /// The official SDKs: 2 retries after 0.5 to 8 s less up to a quarter; a hint of up to 60 s is followed.
    Sdk,
    /// Three layers that each make three attempts.
    Nested,
    /// One control plane for all clients.
    Evenkeel,
    /// A control plane for each client: isolates that know nothing of each other.
    EvenkeelAlone,
}

pub const POLICIES: [Policy; 5] =
    [Policy::Helper, Policy::Sdk, Policy::Nested, Policy::Evenkeel, Policy::EvenkeelAlone];

impl Policy {
    pub fn name(self) -> &'static str {
        match self {
            Self::Helper => "helper loop",
            Self::Sdk => "SDK default",
            Self::Nested => "three nested layers",
            Self::Evenkeel => "evenkeel",
            Self::EvenkeelAlone => "evenkeel, one per client",
        }
    }
}

/// Who sends what.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Logical requests a second, all of these clients together.
    pub per_second: f64,
    pub clients: u64,
    pub priority: Priority,
    pub tenant: &'static str,
    /// From a logical request's arrival, ms.
    pub deadline: u64,
}

#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    /// Length, ms.
    pub length: u64,
    /// What the provider allows, requests a minute.
    pub limit_per_minute: u64,
    pub outage: Option<(u64, u64)>,
    /// From, to, share of failures.
    pub brownout: Option<(u64, u64, f64)>,
    pub hints: bool,
    pub headers: bool,
    pub loads: Vec<Load>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Ok,
    Failed,
    RateLimited(Option<u64>),
}

/// Percentiles and counts of one run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub logical: u64,
    /// Logical requests by load.
    pub arrived: [u64; 2],
    pub sent: u64,
    pub succeeded: u64,
    pub rejected: u64,
    pub wasted: u64,
    pub latencies: Vec<(u64, usize, u64)>,
    /// Requests that reached the provider, each second.
    pub sent_series: Vec<u64>,
    /// Logical requests that succeeded, each second.
    pub good_series: Vec<u64>,
    pub arrived_series: Vec<u64>,
    pub rejected_series: Vec<u64>,
}

impl Report {
    pub fn percentile(&self, load: usize, per_mille: usize, from: u64, to: u64) -> u64 {
        let within = |(at, of, _): &&(u64, usize, u64)| *of == load && (from..to).contains(at);
        let mut sorted: Vec<u64> = self.latencies.iter().filter(within).map(|(_, _, latency)| *latency).collect();
        sorted.sort_unstable();
        if sorted.is_empty() { 0 } else { sorted[(sorted.len() * per_mille / 1_000).min(sorted.len() - 1)] }
    }

    pub fn sum(series: &[u64], from: u64, to: u64) -> u64 {
        series[(from / 1_000) as usize..(to / 1_000) as usize].iter().sum()
    }

    /// Share of a load's logical requests that succeeded.
    pub fn answered(&self, load: usize) -> f64 {
        let good = self.latencies.iter().filter(|(_, of, _)| *of == load).count();
        good as f64 / self.arrived[load].max(1) as f64
    }

    /// Requests sent for each logical request, over a span.
    pub fn per_logical(&self, from: u64, to: u64) -> f64 {
        Self::sum(&self.sent_series, from, to) as f64 / Self::sum(&self.arrived_series, from, to).max(1) as f64
    }

    /// Seconds after `from` from which on 95 % of what arrives within a second is answered, for three of them in a row.
    pub fn recovery(&self, from: u64) -> Option<u64> {
        let mut good = vec![0_u64; self.arrived_series.len()];
        for (at, _, _) in &self.latencies {
            good[(at / 1_000) as usize] += 1;
        }
        let well = |second: usize| good[second] as f64 >= 0.95 * self.arrived_series[second] as f64;
        let start = (from / 1_000) as usize;
        (start..good.len() - 3).find(|second| (*second..second + 3).all(well)).map(|second| (second - start) as u64)
    }
}

struct Call {
    load: usize,
    client: u64,
    arrived: u64,
    deadline: u64,
    attempts: u32,
    /// Its own, so that a call meets the same latencies whoever else is there.
    rng: fastrand::Rng,
    permit: Option<Permit>,
    backoff: Backoff,
    done: bool,
    /// The ask that counts; an earlier timer is void.
    ask: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrive(usize),
    Ask(usize, u64),
    Send(usize),
    End(usize, u8, u64, u64, u64),
}

struct Run<'a> {
    scenario: &'a Scenario,
    policy: Policy,
    rng: fastrand::Rng,
    arrivals: Vec<fastrand::Rng>,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    calls: Vec<Call>,
    controls: Vec<Control>,
    level_milli: u64,
    refilled_at: u64,
    report: Report,
}

/// Plays a scenario with a policy.
pub fn play(scenario: &Scenario, policy: Policy) -> Report {
    let clients: u64 = scenario.loads.iter().map(|load| load.clients).sum();
    let planes = match policy {
        Policy::Evenkeel => 1,
        Policy::EvenkeelAlone => clients,
        _ => 0,
    };
    let seconds = (scenario.length / 1_000 + 60) as usize;
    let mut run = Run {
        scenario,
        policy,
        rng: fastrand::Rng::with_seed(scenario.seed),
        arrivals: (0..2).map(|load| fastrand::Rng::with_seed(scenario.seed * 2 + load)).collect(),
        now: 0,
        events: BinaryHeap::new(),
        sequence: 0,
        calls: Vec::new(),
        controls: (0..planes).map(|_| Control::new(ControlConfig::default()).unwrap()).collect(),
        level_milli: scenario.limit_per_minute * 1_000,
        refilled_at: 0,
        report: Report {
            sent_series: vec![0; seconds],
            good_series: vec![0; seconds],
            arrived_series: vec![0; seconds],
            rejected_series: vec![0; seconds],
            ..Report::default()
        },
    };
    for load in 0..scenario.loads.len() {
        run.next_arrival(load);
    }
    while let Some(Reverse((at, _, event))) = run.events.pop() {
        run.now = at;
        run.handle(event);
    }
    run.report
}

impl Run<'_> {
    fn push(&mut self, at: u64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    fn second(&self) -> usize {
        ((self.now / 1_000) as usize).min(self.report.sent_series.len() - 1)
    }

    fn next_arrival(&mut self, load: usize) {
        let mean = 1_000.0 / self.scenario.loads[load].per_second;
        let gap = -mean * (1.0 - self.arrivals[load].f64()).ln();
        let at = self.now + (gap.round() as u64);
        if at < self.scenario.length {
            self.push(at, Event::Arrive(load));
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive(load) => self.arrive(load),
            Event::Ask(call, ask) if self.calls[call].ask == ask && !self.calls[call].done => self.ask(call),
            Event::Ask(..) => {}
            Event::Send(call) => self.send(call),
            Event::End(call, kind, hint, remaining, reset) => self.end(call, kind, hint, remaining, reset),
        }
    }

    fn arrive(&mut self, load: usize) {
        self.next_arrival(load);
        let of = self.scenario.loads[load];
        let before: u64 = self.scenario.loads[..load].iter().map(|load| load.clients).sum();
        let client = before + self.arrivals[load].u64(0..of.clients);
        let second = self.second();
        self.report.logical += 1;
        self.report.arrived[load] += 1;
        self.report.arrived_series[second] += 1;
        self.calls.push(Call {
            load,
            client,
            arrived: self.now,
            deadline: self.now + of.deadline,
            attempts: 0,
            rng: self.arrivals[load].fork(),
            permit: None,
            backoff: Backoff::new(Millis(500), Millis(8_000), Jitter::Full),
            done: false,
            ask: 0,
        });
        let call = self.calls.len() - 1;
        if self.controls.is_empty() {
            self.send(call);
        } else {
            let now = Instant(self.now);
            self.control(call).on_first_attempt("p", now);
            self.ask(call);
        }
    }

    fn control(&mut self, call: usize) -> &mut Control {
        let index = if self.policy == Policy::EvenkeelAlone { self.calls[call].client as usize } else { 0 };
        &mut self.controls[index]
    }

    fn ask(&mut self, call: usize) {
        let of = self.scenario.loads[self.calls[call].load];
        let ask = Ask {
            call: CallId(call as u64),
            provider: "p",
            model: "m",
            account: None,
            tenant: of.tenant,
            priority: of.priority,
            input_tokens: 0,
            output_tokens: 0,
            deadline: Instant(self.calls[call].deadline),
            min_attempt: Millis(1_000),
            avoid: &[],
        };
        self.calls[call].ask += 1;
        let now = Instant(self.now);
        match self.control(call).admit(&ask, now) {
            Admission::Granted(permit) => {
                self.calls[call].permit = Some(permit);
                self.send(call);
            }
            Admission::Wait { until, .. } => {
                let ask = self.calls[call].ask;
                self.push(until.0, Event::Ask(call, ask));
            }
            Admission::Refused { .. } => self.calls[call].done = true,
        }
        self.wake(call);
    }

    /// Those whose turn has come ask at once.
    fn wake(&mut self, call: usize) {
        while let Some(CallId(woken)) = self.control(call).take_woken() {
            let woken = woken as usize;
            let ask = self.calls[woken].ask;
            self.push(self.now, Event::Ask(woken, ask));
        }
        while self.control(call).take_notice().is_some() {}
    }

    fn send(&mut self, call: usize) {
        self.calls[call].attempts += 1;
        self.report.sent += 1;
        let second = self.second();
        self.report.sent_series[second] += 1;
        let rng = &mut self.calls[call].rng;
        let slow = if rng.u32(0..100) < 2 { 5.0 } else { 1.0 };
        let latency = (300.0 + 500.0 * -(1.0 - rng.f64()).ln()) * slow;
        let luck = rng.f64();
        let within = |span: Option<(u64, u64)>| span.is_some_and(|(from, to)| (from..to).contains(&self.now));
        let (answer, took) = if within(self.scenario.outage) {
            (Answer::Failed, 50)
        } else if !self.take_token() {
            let wait = (1_000 - self.level_milli.min(1_000)) * 60_000 / (self.scenario.limit_per_minute * 1_000);
            let hint = wait.div_ceil(1_000) * 1_000; // whole seconds, as the header has them
            self.report.rejected += 1;
            self.report.rejected_series[second] += 1;
            (Answer::RateLimited(self.scenario.hints.then_some(hint)), 30)
        } else {
            match self.scenario.brownout {
                Some((from, to, share)) if (from..to).contains(&self.now) && luck < share => {
                    (Answer::Failed, latency as u64)
                }
                _ => (Answer::Ok, latency as u64),
            }
        };
        let at = (self.now + took).min(self.calls[call].deadline.max(self.now + 1));
        let (kind, hint) = match answer {
            _ if at < self.now + took => (3, u64::MAX), // the deadline came first
            Answer::Ok => (0, u64::MAX),
            Answer::Failed => (1, u64::MAX),
            Answer::RateLimited(hint) => (2, hint.unwrap_or(u64::MAX)),
        };
        let deficit = self.scenario.limit_per_minute * 1_000 - self.level_milli;
        let reset = deficit * 60 / self.scenario.limit_per_minute.max(1);
        self.push(at, Event::End(call, kind, hint, self.level_milli / 1_000, reset));
    }

    fn take_token(&mut self) -> bool {
        let whole = self.scenario.limit_per_minute * 1_000;
        let gained = (self.now - self.refilled_at) * self.scenario.limit_per_minute / 60;
        if gained > 0 {
            self.level_milli = (self.level_milli + gained).min(whole);
            self.refilled_at = self.now;
        }
        if self.level_milli < 1_000 {
            return false;
        }
        self.level_milli -= 1_000;
        true
    }

    fn end(&mut self, call: usize, kind: u8, hint: u64, remaining: u64, reset: u64) {
        let now = self.now;
        if let Some(permit) = self.calls[call].permit.take() {
            let limit = VendorLimit {
                kind: LimitKind::Requests,
                window: LimitWindow::Minute,
                limit: Some(self.scenario.limit_per_minute),
                remaining: Some(remaining),
                reset_at: Some(Instant(now + reset)),
            };
            let limits = [limit];
            let class = match kind {
                0 => None,
                1 => Some(ErrorClass::ServerError),
                2 => Some(ErrorClass::RateLimited),
                _ => Some(ErrorClass::Timeout),
            };
            let scope = class.map(|class| if class == ErrorClass::RateLimited { Scope::Bucket } else { Scope::Model });
            let told = self.scenario.headers && kind != 3 && kind != 1;
            let outcome = Outcome {
                class,
                scope,
                wait_hint: (hint != u64::MAX).then_some(Millis(hint)),
                limits: if told { &limits } else { &[] },
                ..Outcome::default()
            };
            self.control(call).settle(permit.id, &outcome, Instant(now));
            self.wake(call);
        }
        if kind == 0 {
            let of = &mut self.calls[call];
            of.done = true;
            let (load, latency) = (of.load, now - of.arrived);
            let arrived = of.arrived;
            self.report.succeeded += 1;
            self.report.latencies.push((arrived, load, latency));
            let second = self.second();
            self.report.good_series[second] += 1;
            return;
        }
        self.report.wasted += 1;
        if kind == 3 {
            self.calls[call].done = true;
            return;
        }
        self.retry(call, (hint != u64::MAX).then_some(hint));
    }

    fn retry(&mut self, call: usize, hint: Option<u64>) {
        let attempts = self.calls[call].attempts;
        let exponential = |base: u64, n: u32| (base << n.min(10)).min(8_000);
        let delay = match self.policy {
            Policy::Helper if attempts < 4 => Some(self.rng.u64(0..=exponential(500, attempts - 1))),
            Policy::Sdk if attempts < 3 => {
                let own = exponential(500, attempts - 1);
                let own = own - self.rng.u64(0..=own / 4);
                Some(hint.filter(|hint| (1..=60_000).contains(hint)).unwrap_or(own))
            }
            Policy::Nested if attempts < 27 => {
                // The innermost layer retries after half a second, the next after one, the outermost after two.
                let layer = if attempts.is_multiple_of(9) { 2 } else { u32::from(attempts.is_multiple_of(3)) };
                let own = 500 << layer;
                Some(own - self.rng.u64(0..=own / 4))
            }
            Policy::Evenkeel | Policy::EvenkeelAlone if attempts < 3 => {
                let wait = self.calls[call].backoff.next(attempts, hint.map(Millis), &mut self.rng);
                let fits = self.now + wait.0 + 1_000 <= self.calls[call].deadline;
                let now = Instant(self.now);
                (fits && self.control(call).may_retry("p", RetryCost::Plain, now)).then_some(wait.0)
            }
            _ => None,
        };
        let delay = delay.filter(|delay| self.now + delay < self.calls[call].deadline);
        match delay {
            None => self.calls[call].done = true,
            Some(delay) if self.controls.is_empty() => self.push(self.now + delay, Event::Send(call)),
            Some(delay) => {
                self.calls[call].ask += 1;
                let ask = self.calls[call].ask;
                self.push(self.now + delay, Event::Ask(call, ask));
            }
        }
    }
}

fn load(per_second: f64) -> Load {
    Load { per_second, clients: 1_000, priority: Priority::Interactive, tenant: "", deadline: 30_000 }
}

/// 1,000 clients, 200 requests a second, and a minute without a provider.
pub fn outage(seed: u64) -> Scenario {
    Scenario {
        seed,
        length: 240_000,
        limit_per_minute: 18_000,
        outage: Some((60_000, 120_000)),
        brownout: None,
        hints: true,
        headers: true,
        loads: vec![load(200.0)],
    }
}

/// The same clients, and a minute in which three requests in ten fail.
pub fn brownout(seed: u64) -> Scenario {
    Scenario { outage: None, brownout: Some((60_000, 120_000, 0.3)), ..outage(seed) }
}

/// Three times the limit.
pub fn overload(seed: u64, hints: bool, headers: bool) -> Scenario {
    let loads = vec![load(30.0)];
    Scenario { length: 360_000, limit_per_minute: 600, outage: None, hints, headers, loads, ..outage(seed) }
}

/// Interactive work well below the limit.
pub fn quiet(seed: u64) -> Scenario {
    let loads = vec![Load { clients: 100, ..load(8.0) }];
    Scenario { length: 360_000, limit_per_minute: 1_200, outage: None, loads, ..outage(seed) }
}

/// The same, and another tenant's batch work of ten times the limit.
pub fn flood(seed: u64) -> Scenario {
    let mut scenario = quiet(seed);
    let batch = Load { clients: 10, priority: Priority::Batch, tenant: "flood", ..load(200.0) };
    scenario.loads.push(batch);
    scenario
}

/// Successes of the steady state, as a share of what the limit allows.
pub fn steady_goodput(run: &Report) -> f64 {
    Report::sum(&run.good_series, 60_000, 360_000) as f64 / 3_000.0
}

/// Share of requests answered 429 in the steady state.
pub fn steady_rejected(run: &Report) -> f64 {
    let sent = Report::sum(&run.sent_series, 60_000, 360_000).max(1);
    Report::sum(&run.rejected_series, 60_000, 360_000) as f64 / sent as f64
}

pub fn mean(runs: &[Report], of: impl Fn(&Report) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len() as f64
}

/// One client with a request every four seconds and a fallback, through an outage of a minute: what reaches the dead
/// primary, and how long after its recovery it is used again. Failover Bench's question.
pub fn failover(phase: u64, jitter: u64, seed: u64) -> (u64, u64) {
    let mut control = Control::new(ControlConfig::default()).unwrap();
    let mut rng = fastrand::Rng::with_seed(seed);
    let outage = (20_000 + phase, 80_000 + phase);
    let (mut dead, mut used_again) = (0, None);
    for call in 0..60_u64 {
        let now = 1_000_000 + call * 4_000 + rng.u64(0..=jitter);
        let ask = Ask {
            call: CallId(call),
            provider: "p",
            model: "m",
            account: None,
            tenant: "",
            priority: Priority::Interactive,
            input_tokens: 0,
            output_tokens: 0,
            deadline: Instant(now + 30_000),
            min_attempt: Millis(1_000),
            avoid: &[],
        };
        control.on_first_attempt("p", Instant(now));
        let Admission::Granted(permit) = control.admit(&ask, Instant(now)) else { continue }; // to the fallback
        let down = (outage.0..outage.1).contains(&(now - 1_000_000));
        let outcome = Outcome {
            class: down.then_some(ErrorClass::ServerError),
            scope: down.then_some(Scope::Model),
            ..Outcome::default()
        };
        control.settle(permit.id, &outcome, Instant(now + if down { 50 } else { 800 }));
        if down {
            dead += 1; // and to the fallback with it
        } else if now - 1_000_000 >= outage.1 && used_again.is_none() {
            used_again = Some(now - 1_000_000 - outage.1);
        }
    }
    (dead, used_again.unwrap_or(u64::MAX))
}
