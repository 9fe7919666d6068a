//! One call ahead of a run: whether a bucket answers is asked once, before many calls begin through it.
//!
//! ```text
//!           a call goes: it is the preflight                 answered well
//!   Due ──────────────────────────────────────▶ Asking ───────────────────────▶ Passed
//!    ▲  cancelled, lost, the request's own fault   │                              │
//!    ├─────────────────────────────────────────────┤          nothing in flight, and no good answer for 5 minutes
//!    ├─────────────────────────────────────────────│──────────────────────────────┘
//!    │   some time later                           ▼ refused
//!    └────────────────────────────────────────── Refused
//! ```
//!
//! Nothing is made up for it: the first call that comes is the preflight, and the others wait for what becomes of it. If
//! it is refused they are told at once, or go to another bucket. Like a breaker's probe it holds a lease, so that one
//! that was cancelled or killed frees its place. A 400 says nothing of the bucket: the next call asks again.

use super::hold::Hold;
use crate::class::ErrorClass;
use crate::time::{Instant, Millis};

/// After this time without a good answer, and with nothing in flight, a bucket is asked again.
const IDLE: Millis = Millis(300_000);
/// After this time a preflight that has not ended is given up, and the next call is one too.
const LEASE: Millis = Millis(60_000);
/// How long a refusal that time alone does not heal (a key, a permission, a model that is not there) stands.
pub(crate) const LASTING: Millis = Millis(30_000);
/// How long one that passes (an overload, a broken connection) stands at least; longer if the bucket cools for longer.
pub(crate) const PASSING: Millis = Millis(2_000);

/// Where a bucket stands with its preflight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Preflight {
    /// Its pool asks for none.
    #[default]
    Off,
    /// The next call is the preflight.
    Due,
    /// It is under way.
    Asking { permit: u64, lease: Instant },
    /// It was answered well; the last good answer came then.
    Passed { at: Instant },
    /// It was refused.
    Refused { class: ErrorClass, hold: Hold },
}

/// What a call meets there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    /// Go: it passed, this one is it, or there is none.
    Open,
    /// Somebody else is asking.
    Asking,
    /// It was refused; asked again in so long.
    Refused(ErrorClass, Millis),
}

/// What an attempt's end says of its bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// A good answer.
    Well,
    /// Nobody else should begin, for so long.
    Refused(ErrorClass, Millis),
    /// Nothing.
    Nothing,
}

impl Preflight {
    pub(crate) fn meet(&mut self, in_flight: u32, now: Instant) -> Met {
        match self {
            Self::Passed { at } => {
                *at = (*at).min(now);
                if in_flight == 0 && now.since(*at) >= IDLE {
                    *self = Self::Due;
                }
            }
            Self::Asking { lease, .. } if *lease > now => return Met::Asking,
            Self::Asking { .. } => *self = Self::Due,
            Self::Refused { class, hold } => match hold.left(now) {
                Millis::ZERO => *self = Self::Due,
                left => return Met::Refused(*class, left),
            },
            Self::Off | Self::Due => {}
        }
        Met::Open
    }

    /// A call goes; if a preflight is due it is this one.
    pub(crate) fn on_sent(&mut self, permit: u64, deadline: Instant, now: Instant) {
        if *self == Self::Due {
            *self = Self::Asking { permit, lease: now.plus(LEASE).min(deadline) };
        }
    }

    /// An offered permit was taken: its lease runs from its grant on, up to its call's deadline.
    pub(crate) fn extend(&mut self, own: u64, granted_at: Instant, deadline: Instant) {
        if let Self::Asking { permit, lease } = self
            && *permit == own
        {
            *lease = granted_at.plus(LEASE).min(deadline);
        }
    }

    /// Takes in how an attempt ended; says whether that was news: `Some(true)` if it passed, `Some(false)` if it was
    /// refused.
    pub(crate) fn on_end(&mut self, own: u64, said: Said, now: Instant) -> Option<bool> {
        match (*self, said) {
            (Self::Off, _) => None,
            (before, Said::Well) => {
                *self = Self::Passed { at: now };
                (!matches!(before, Self::Passed { .. })).then_some(true)
            }
            // Once a run is under way the usual rules hold: cooling, breakers, disabled keys.
            (Self::Passed { .. }, _) => None,
            (_, Said::Refused(class, length)) => {
                let mut hold = Hold::default();
                hold.extend(length, now);
                *self = Self::Refused { class, hold };
                Some(false)
            }
            (Self::Asking { permit, .. }, Said::Nothing) if permit == own => {
                *self = Self::Due;
                None
            }
            (_, Said::Nothing) => None,
        }
    }

    /// Whether a call that comes now would be refused.
    pub(crate) fn is_refused(&self, now: Instant) -> bool {
        matches!(self, Self::Refused { hold, .. } if hold.clone().left(now) > Millis::ZERO)
    }

    /// What refused may have changed: a person has enabled a key.
    pub(crate) fn ask_again(&mut self) {
        if matches!(self, Self::Refused { .. }) {
            *self = Self::Due;
        }
    }

    /// For [`super::Control::state_json`].
    pub(crate) const fn name(&self) -> Option<&'static str> {
        match self {
            Self::Off => None,
            Self::Due => Some("due"),
            Self::Asking { .. } => Some("asking"),
            Self::Passed { .. } => Some("passed"),
            Self::Refused { .. } => Some("refused"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: Instant = Instant::NEVER;

    #[test]
    fn one_goes_and_the_others_wait_until_it_is_answered() {
        let mut preflight = Preflight::Due;
        assert_eq!(preflight.meet(0, Instant(0)), Met::Open);
        preflight.on_sent(1, NEVER, Instant(0));
        assert_eq!(preflight.meet(1, Instant(1)), Met::Asking);
        assert_eq!(preflight.on_end(1, Said::Well, Instant(2)), Some(true));
        assert_eq!(preflight.meet(1, Instant(2)), Met::Open);
    }

    #[test]
    fn a_refusal_stands_for_its_time_and_then_one_call_asks_again() {
        let mut preflight = Preflight::Due;
        preflight.on_sent(1, NEVER, Instant(0));
        let refused = Said::Refused(ErrorClass::NotFound, Millis(500));
        assert_eq!(preflight.on_end(1, refused, Instant(10)), Some(false));
        assert_eq!(preflight.meet(0, Instant(11)), Met::Refused(ErrorClass::NotFound, Millis(499)));
        assert_eq!(preflight.meet(0, Instant(510)), Met::Open);
        preflight.on_sent(2, NEVER, Instant(510));
        assert_eq!(preflight.meet(1, Instant(511)), Met::Asking);
    }

    #[test]
    fn a_preflight_that_is_lost_or_says_nothing_frees_its_place() {
        let mut preflight = Preflight::Due;
        preflight.on_sent(1, Instant(20_000), Instant(0));
        assert_eq!(preflight.on_end(9, Said::Nothing, Instant(1)), None, "another's end");
        assert_eq!(preflight.meet(1, Instant(2)), Met::Asking);
        assert_eq!(preflight.meet(1, Instant(20_000)), Met::Open, "its lease is over");
        preflight.on_sent(2, NEVER, Instant(20_000));
        assert_eq!(preflight.on_end(2, Said::Nothing, Instant(20_001)), None);
        assert_eq!(preflight, Preflight::Due);
    }

    #[test]
    fn it_is_asked_again_after_five_idle_minutes_and_not_in_a_long_run() {
        let mut preflight = Preflight::Passed { at: Instant(0) };
        assert_eq!(preflight.meet(3, Instant(400_000)), Met::Open);
        assert_eq!(preflight, Preflight::Passed { at: Instant(0) }, "calls are in flight: a run is under way");
        preflight.meet(0, Instant(299_999));
        assert_eq!(preflight.name(), Some("passed"));
        preflight.meet(0, Instant(300_000));
        assert_eq!(preflight.name(), Some("due"));
    }

    #[test]
    fn a_refusal_within_a_run_is_not_its_business() {
        let mut preflight = Preflight::Passed { at: Instant(0) };
        assert_eq!(preflight.on_end(4, Said::Refused(ErrorClass::Overloaded, Millis(9)), Instant(1)), None);
        assert_eq!(preflight.meet(1, Instant(1)), Met::Open);
    }
}
