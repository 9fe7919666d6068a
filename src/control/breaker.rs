//! The circuit breaker of one provider, or of one model at a provider.
//!
//! ```text
//!            failure rate, or a streak                cooldown over: one caller becomes the probe
//!   Closed ───────────────────────────▶ Open ───────────────────────────────────▶ HalfOpen
//!      ▲                                 ▲  ▲      cancelled, or its lease ended      │  │
//!      │                                 │  └───────────────────────────────────────┘  │
//!      │                                 └──────────────── the probe failed ────────────┤
//!      └──────────────────────────── the probe was answered ───────────────────────────┘
//! ```
//!
//! The rate over a rolling window with a minimum volume is resilience4j's and Polly's; the minimum is small because an
//! isolate sees few calls. Absolute counts trip a busy client on noise, so the streak that opens a breaker grows with
//! the logarithm of the traffic: 5 for a quiet one, 14 at 200 calls a second, where an outage shows in a tenth of a
//! second all the same. One probe only, on a lease, so that a lost one cannot close the breaker for good.

use super::hold::Hold;
use crate::class::ErrorClass;
use crate::time::{Instant, Millis};

/// The settings of the breakers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Share of failures in the window that opens it, in thousandths. Range `1..=1_000`, default 500.
    pub failure_rate_per_mille: u32,
    /// Requests in the window below which the rate means nothing. Range `1..=1_000_000`, default 10.
    pub minimum_requests: u32,
    /// Length of the rolling window. Range `1_000..=3_600_000` ms, default `30_000`.
    pub window: Millis,
    /// Failures in a row that open it: this many up to `minimum_requests` in the window, and one more for each doubling
    /// of the traffic beyond that. Range `1..=1_000_000`, default 5.
    pub consecutive_failures: u32,
    /// How long failures in a row, without a success among them, must go on to open it when there are fewer requests
    /// than `minimum_requests` in the window. Range `0..=3_600_000` ms, default `3_000`.
    ///
    /// Two failures some seconds apart are all that a client with a call every few seconds gets to see of an outage.
    /// The retries of a single call are too close together to count as that.
    pub sparse_span: Millis,
    /// How long it stays open at first; doubles each time that the probe fails. Range `1..=3_600_000` ms, default
    /// `7_500`.
    pub cooldown: Millis,
    /// The longest it stays open by its own reckoning; a wait hint may be longer. Default `30_000` ms.
    pub max_cooldown: Millis,
    /// A probe is also due after this many refusals, if the breaker has been open for `early_probe_gap`. Default 50,
    /// 0 for never.
    ///
    /// The cooldown bounds what probing costs a quiet client; for a busy one, one request in fifty that it would have
    /// sent is no cost, and it learns of the recovery within a second or so.
    pub early_probe_refusals: u32,
    /// The least time between probes that are due to refusals. Default `1_000` ms.
    pub early_probe_gap: Millis,
    /// After this time a probe that has not settled is given up. It is never longer than its call's deadline. Range
    /// `1..=3_600_000` ms, default `60_000`.
    pub probe_lease: Millis,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            failure_rate_per_mille: 500,
            minimum_requests: 10,
            window: Millis(30_000),
            consecutive_failures: 5,
            sparse_span: Millis(3_000),
            cooldown: Millis(7_500),
            max_cooldown: Millis(30_000),
            early_probe_refusals: 50,
            early_probe_gap: Millis(1_000),
            probe_lease: Millis(60_000),
        }
    }
}

/// Number of parts that the window is remembered in.
const SLICES: usize = 10;

#[derive(Clone, Copy, Debug, Default)]
struct Slice {
    answered: u32,
    failed: u32,
}

/// Where a breaker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed { since: Instant },
    Open { cooling: Hold, hinted: Hold, since: Instant, refused: u32 },
    HalfOpen { probe: u64, lease: Instant },
}

/// What a breaker says to a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Go.
    Pass,
    /// Go, as the probe: [`Breaker::take_probe`] makes it so.
    Probe,
    /// No, for about this long.
    Shut {
        /// The class of the failure that opened it.
        class: ErrorClass,
        /// When it may be worth asking again.
        retry_after: Millis,
    },
}

/// What an outcome did to a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It opened, or opened again, until then.
    Opened(Instant),
    /// The probe was answered.
    Closed,
}

/// What an attempt's end means to a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The upstream answered: success.
    Answered,
    /// The upstream failed in a way that counts.
    Failed {
        /// As what.
        class: ErrorClass,
        /// How long it says to wait.
        hint: Option<Millis>,
    },
    /// It answered with something that the request, the key or the bucket is to blame for. Counts as neither, but as a
    /// probe it shows that the upstream is there.
    Refused,
    /// Nothing was learned: cancelled, lost, or not understood.
    Nothing,
}

/// One breaker.
#[derive(Clone, Debug)]
pub struct Breaker {
    state: State,
    slices: [Slice; SLICES],
    current: usize,
    slice_start: Instant,
    streak: u32,
    streak_since: Instant,
    openings: u32,
    class: ErrorClass,
}

impl Breaker {
    /// A closed one, without a history.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            state: State::Closed { since: Instant(0) },
            slices: [Slice::default(); SLICES],
            current: 0,
            slice_start: now,
            streak: 0,
            streak_since: now,
            openings: 0,
            class: ErrorClass::Unknown,
        }
    }

    /// Whether a caller may go. Asking changes nothing but the count of those refused.
    pub fn gate(&mut self, config: &BreakerConfig, now: Instant) -> Gate {
        let class = self.class;
        match &mut self.state {
            State::Closed { .. } => Gate::Pass,
            State::HalfOpen { lease, .. } if *lease <= now => Gate::Probe,
            State::HalfOpen { lease, .. } => {
                Gate::Shut { class, retry_after: now.until(*lease).min(config.early_probe_gap).max(Millis(1)) }
            }
            State::Open { cooling, hinted, since, refused } => {
                *since = (*since).min(now);
                let (cooling, hinted) = (cooling.left(now), hinted.left(now));
                let early = config.early_probe_refusals > 0
                    && *refused >= config.early_probe_refusals
                    && now.since(*since) >= config.early_probe_gap;
                if hinted == Millis::ZERO && (cooling == Millis::ZERO || early) {
                    Gate::Probe
                } else {
                    *refused = refused.saturating_add(1);
                    Gate::Shut { class, retry_after: cooling.max(hinted) }
                }
            }
        }
    }

    /// Makes the holder of `permit` the probe. Call it after [`Gate::Probe`], before anybody else can ask.
    pub fn take_probe(&mut self, permit: u64, config: &BreakerConfig, deadline: Instant, now: Instant) {
        let lease = now.plus(config.probe_lease).min(deadline);
        self.state = State::HalfOpen { probe: permit, lease };
    }

    /// Gives the probe more time, if `permit` is still it.
    pub fn extend_probe(&mut self, permit: u64, until: Instant) {
        if let State::HalfOpen { probe, lease } = &mut self.state
            && *probe == permit
        {
            *lease = until;
        }
    }

    /// Takes in how an attempt ended that was granted at `granted_at` under `permit`.
    pub fn on_outcome(
        &mut self,
        permit: u64,
        granted_at: Instant,
        signal: Signal,
        config: &BreakerConfig,
        now: Instant,
    ) -> Option<Change> {
        match self.state {
            State::HalfOpen { probe, .. } if probe == permit => match signal {
                Signal::Answered | Signal::Refused => {
                    self.close(now);
                    Some(Change::Closed)
                }
                Signal::Failed { class, hint } => Some(self.open(class, hint, config, now)),
                Signal::Nothing => {
                    self.release_probe(now);
                    None
                }
            },
            // What was sent before it opened says nothing new.
            State::HalfOpen { .. } | State::Open { .. } => {
                if let (State::Open { hinted, .. }, Signal::Failed { hint: Some(hint), .. }) = (&mut self.state, signal)
                {
                    hinted.extend(hint, now);
                }
                None
            }
            State::Closed { since } => self.on_closed(granted_at < since, signal, config, now),
        }
    }

    fn on_closed(&mut self, stale: bool, signal: Signal, config: &BreakerConfig, now: Instant) -> Option<Change> {
        self.advance(config, now);
        match signal {
            Signal::Answered => {
                self.streak = 0;
                if let Some(slice) = self.slices.get_mut(self.current) {
                    slice.answered = slice.answered.saturating_add(1);
                }
                None
            }
            Signal::Failed { class, hint } if !stale => {
                if let Some(slice) = self.slices.get_mut(self.current) {
                    slice.failed = slice.failed.saturating_add(1);
                }
                if self.streak == 0 || now < self.streak_since {
                    self.streak_since = now;
                }
                self.streak = self.streak.saturating_add(1);
                self.must_open(config, now).then(|| self.open(class, hint, config, now))
            }
            Signal::Failed { .. } | Signal::Refused | Signal::Nothing => None,
        }
    }

    fn must_open(&self, config: &BreakerConfig, now: Instant) -> bool {
        let (answered, failed) = self.counts();
        let volume = answered.saturating_add(failed);
        let minimum = u64::from(config.minimum_requests).max(1);
        let doublings = volume.checked_div(minimum).and_then(u64::checked_ilog2).unwrap_or(0);
        if self.streak >= config.consecutive_failures.saturating_add(doublings) {
            return true;
        }
        if volume < minimum {
            return self.streak >= 2 && now.since(self.streak_since) >= config.sparse_span;
        }
        failed.saturating_mul(1_000) >= volume.saturating_mul(u64::from(config.failure_rate_per_mille))
    }

    fn open(&mut self, class: ErrorClass, hint: Option<Millis>, config: &BreakerConfig, now: Instant) -> Change {
        if let State::Closed { since } = self.state
            && now.since(since) >= config.window
        {
            self.openings = 0; // it was well for a while: start small again
        }
        let growth = 1_u64.checked_shl(self.openings).unwrap_or(u64::MAX);
        let length = config.cooldown.times(growth).min(config.max_cooldown.max(config.cooldown));
        self.openings = self.openings.saturating_add(1);
        self.class = class;
        let (mut cooling, mut hinted) = (Hold::default(), Hold::default());
        cooling.extend(length, now);
        hinted.extend(hint.unwrap_or(Millis::ZERO), now);
        self.state = State::Open { cooling, hinted, since: now, refused: 0 };
        Change::Opened(cooling.until().max(hinted.until()))
    }

    fn close(&mut self, now: Instant) {
        self.state = State::Closed { since: now };
        self.slices = [Slice::default(); SLICES];
        self.streak = 0;
    }

    /// The probe's place is free again: the next caller is the probe.
    fn release_probe(&mut self, now: Instant) {
        let hold = Hold::default();
        self.state = State::Open { cooling: hold, hinted: hold, since: now, refused: 0 };
    }

    fn counts(&self) -> (u64, u64) {
        self.slices.iter().fold((0, 0), |(answered, failed), slice| {
            (answered.saturating_add(u64::from(slice.answered)), failed.saturating_add(u64::from(slice.failed)))
        })
    }

    fn advance(&mut self, config: &BreakerConfig, now: Instant) {
        if now < self.slice_start {
            self.slice_start = now;
            return;
        }
        let width = config.window.0.div_ceil(SLICES as u64).max(1);
        let passed = now.since(self.slice_start).0.checked_div(width).unwrap_or(0);
        for _ in 0..passed.min(SLICES as u64) {
            self.current = self.current.saturating_add(1) % SLICES;
            if let Some(slice) = self.slices.get_mut(self.current) {
                *slice = Slice::default();
            }
        }
        self.slice_start = self.slice_start.plus(Millis(passed.saturating_mul(width)));
    }

    /// Whether a fresh one would behave the same.
    pub(crate) fn is_idle(&self, config: &BreakerConfig, now: Instant) -> bool {
        matches!(self.state, State::Closed { .. }) && now.since(self.slice_start) >= config.window
    }

    /// `closed`, `open` or `half_open`.
    #[must_use]
    pub fn state(&self) -> &'static str {
        match self.state {
            State::Closed { .. } => "closed",
            State::Open { .. } => "open",
            State::HalfOpen { .. } => "half_open",
        }
    }

    /// Until when it is open, and as what; `None` if it is closed.
    #[must_use]
    pub fn open_until(&self) -> Option<(Instant, ErrorClass)> {
        match self.state {
            State::Closed { .. } => None,
            State::Open { cooling, hinted, .. } => Some((cooling.until().max(hinted.until()), self.class)),
            State::HalfOpen { lease, .. } => Some((lease, self.class)),
        }
    }

    /// Answers and failures in the window.
    #[must_use]
    pub fn window_counts(&self) -> (u64, u64) {
        self.counts()
    }

    /// Times that it opened without having been well for a window in between.
    #[must_use]
    pub fn openings(&self) -> u32 {
        self.openings
    }

    /// Opens it as a snapshot says.
    pub(crate) fn restore(&mut self, class: ErrorClass, openings: u32, left: Millis, now: Instant) {
        let mut cooling = Hold::default();
        cooling.extend(left, now);
        self.class = class;
        self.openings = openings;
        self.state = State::Open { cooling, hinted: Hold::default(), since: now, refused: 0 };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;

    const FAILED: Signal = Signal::Failed { class: ErrorClass::ServerError, hint: None };

    struct Rig(Breaker, BreakerConfig);

    impl Rig {
        fn new() -> Self {
            Self(Breaker::new(Instant(0)), BreakerConfig::default())
        }
        fn end(&mut self, signal: Signal, now: u64) -> Option<Change> {
            self.0.on_outcome(1, Instant(now), signal, &self.1, Instant(now))
        }
        fn gate(&mut self, now: u64) -> Gate {
            self.0.gate(&self.1, Instant(now))
        }
        fn opened(at: u64) -> Self {
            let mut rig = Self::new();
            for _ in 0..5 {
                rig.end(FAILED, at);
            }
            assert_eq!(rig.0.state(), "open");
            rig
        }
        fn probe(&mut self, permit: u64, now: u64) {
            assert_eq!(self.gate(now), Gate::Probe);
            self.0.take_probe(permit, &self.1, Instant::NEVER, Instant(now));
        }
    }

    #[test]
    fn five_failures_in_a_row_open_it_and_four_do_not() {
        let mut rig = Rig::new();
        for _ in 0..4 {
            assert_eq!(rig.end(FAILED, 10), None);
        }
        assert_eq!(rig.end(FAILED, 10), Some(Change::Opened(Instant(7_510))));
        assert!(matches!(rig.gate(11), Gate::Shut { class: ErrorClass::ServerError, .. }));
    }

    #[test]
    fn two_failures_some_seconds_apart_are_enough_for_a_quiet_client() {
        let mut rig = Rig::new();
        assert_eq!((rig.end(FAILED, 0), rig.end(FAILED, 900)), (None, None));
        assert!(rig.end(FAILED, 4_000).is_some());
    }

    #[test]
    fn f8_a_busy_client_is_not_opened_by_noise_but_by_the_rate() {
        let mut rig = Rig::new();
        let mut rng = fastrand::Rng::with_seed(7);
        for n in 0..6_000_u64 {
            let failed = rng.u32(0..100) < 30;
            assert_eq!(rig.end(if failed { FAILED } else { Signal::Answered }, n * 5), None, "30 % failures, call {n}");
        }
        let opened = (0..3_000_u64).any(|n| {
            let failed = rng.u32(0..100) < 70;
            rig.end(if failed { FAILED } else { Signal::Answered }, 30_000 + n * 5).is_some()
        });
        assert!(opened, "70 % failures");
    }

    #[test]
    fn what_the_request_is_to_blame_for_neither_opens_it_nor_heals_a_streak() {
        let mut rig = Rig::new();
        for _ in 0..1_000 {
            rig.end(Signal::Refused, 5);
            rig.end(Signal::Nothing, 5);
        }
        assert_eq!(rig.0.window_counts(), (0, 0));
        for _ in 0..4 {
            rig.end(FAILED, 6);
            rig.end(Signal::Refused, 6);
        }
        assert!(rig.end(FAILED, 6).is_some());
    }

    #[test]
    fn f2_two_callers_in_one_tick_only_one_becomes_the_probe() {
        let mut rig = Rig::opened(0);
        rig.probe(7, 7_500);
        assert!(matches!(rig.gate(7_500), Gate::Shut { .. }));
    }

    #[test]
    fn f1_a_probe_that_never_settles_gives_its_place_back_at_its_leases_end() {
        let mut rig = Rig::opened(0);
        rig.probe(7, 8_000);
        assert!(matches!(rig.gate(67_999), Gate::Shut { .. }));
        rig.probe(8, 68_000);
        rig.end(Signal::Answered, 68_001);
        assert_eq!(rig.0.state(), "half_open", "the lost probe's late answer is not the new one's");
    }

    #[test]
    fn a_cancelled_probe_frees_its_place_at_once() {
        let mut rig = Rig::opened(0);
        rig.probe(1, 8_000);
        rig.end(Signal::Nothing, 8_001);
        assert_eq!(rig.gate(8_001), Gate::Probe);
    }

    #[test]
    fn the_cooldown_doubles_with_each_failed_probe_up_to_its_cap() {
        let mut rig = Rig::opened(0);
        let mut now = 7_500;
        for length in [15_000, 30_000, 30_000, 30_000] {
            rig.probe(1, now);
            assert_eq!(rig.end(FAILED, now), Some(Change::Opened(Instant(now + length))));
            now += length;
        }
    }

    #[test]
    fn f3_failures_while_open_neither_reopen_it_nor_put_off_the_probe() {
        let mut rig = Rig::opened(0);
        for at in 1..6_000 {
            assert_eq!(rig.end(FAILED, at), None);
        }
        rig.probe(9, 7_500);
    }

    #[test]
    fn a_wait_hint_longer_than_the_cooldown_wins_even_over_an_early_probe() {
        let mut rig = Rig::new();
        let hint = Some(Millis(20_000));
        for _ in 0..5 {
            rig.end(Signal::Failed { class: ErrorClass::Overloaded, hint }, 0);
        }
        for now in 0..200 {
            assert!(matches!(rig.gate(now * 99), Gate::Shut { .. }));
        }
        assert_eq!(rig.gate(20_000), Gate::Probe);
    }

    #[test]
    fn a_busy_client_probes_once_a_second_and_a_quiet_one_waits_for_the_cooldown() {
        let mut rig = Rig::opened(0);
        for n in 0..50 {
            assert!(matches!(rig.gate(n), Gate::Shut { .. }));
        }
        assert!(matches!(rig.gate(999), Gate::Shut { .. }));
        assert_eq!(rig.gate(1_000), Gate::Probe);
    }

    #[test]
    fn failures_of_before_it_closed_do_not_open_it_again() {
        let mut rig = Rig::opened(0);
        rig.probe(1, 7_500);
        rig.end(Signal::Answered, 7_600);
        for _ in 0..100 {
            assert_eq!(rig.0.on_outcome(2, Instant(0), FAILED, &rig.1.clone(), Instant(7_700)), None);
        }
    }

    #[test]
    fn a_clock_that_goes_back_neither_opens_nor_sticks() {
        let mut rig = Rig::opened(1_000_000);
        assert!(matches!(rig.gate(5), Gate::Shut { .. }));
        assert_eq!(rig.gate(7_505), Gate::Probe);
    }
}
