//! The time of one business request: absolute deadlines, and a budget split over its stages.
//!
//! A relative timeout handed from layer to layer grows with each hop; an instant does not. A [`Budget`] is made once,
//! when the request comes in. What an earlier stage leaves over goes to the later ones, and the model call never takes
//! what postprocessing needs.

use crate::time::{Instant, Millis};

/// The stages of a business request, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Retrieval, templates, whatever makes the prompt.
    InputBuild,
    /// The logical request: every attempt, wait and rung of it.
    ModelCall,
    /// Parsing, checking, storing the answer.
    Postprocess,
}

/// How the time is split. Each part is a wish; the total is the law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetParts {
    /// All of it.
    pub total: Millis,
    /// For building the input; `None`: whatever the model call can spare.
    pub input_build: Option<Millis>,
    /// For the model call; `None`: all that postprocessing leaves.
    pub model_call: Option<Millis>,
    /// For postprocessing; `None` is nothing.
    pub postprocess: Option<Millis>,
}

/// Why parts do not make a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetError {
    /// The total is zero.
    EmptyTotal,
    /// The parts sum up to more than the total.
    PartsExceedTotal {
        /// Their sum.
        parts: Millis,
        /// The total.
        total: Millis,
    },
}

impl core::fmt::Display for BudgetError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::EmptyTotal => f.write_str("budget.total must be more than 0 ms"),
            Self::PartsExceedTotal { parts, total } => {
                write!(f, "the parts of the budget sum up to {parts}, which is more than its total of {total}")
            }
        }
    }
}

impl core::error::Error for BudgetError {}

/// The budget of one business request, in absolute time.
///
/// With 10 s in all, of which 2 s for the input and 1 s for postprocessing: the input must be there at 2 s; the model
/// call may run until 9 s, and starts with 8.5 s if the input took half a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    started: Instant,
    parts: BudgetParts,
}

impl Budget {
    /// Starts a budget now.
    pub fn start(parts: BudgetParts, now: Instant) -> Result<Self, BudgetError> {
        if parts.total == Millis::ZERO {
            return Err(BudgetError::EmptyTotal);
        }
        let sum = [parts.input_build, parts.model_call, parts.postprocess]
            .into_iter()
            .flatten()
            .fold(Millis::ZERO, Millis::plus);
        if sum > parts.total {
            return Err(BudgetError::PartsExceedTotal { parts: sum, total: parts.total });
        }
        Ok(Self { started: now, parts })
    }

    /// When the whole must be done.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.started.plus(self.parts.total)
    }

    /// When `stage` must be done: the total's end, less what the stages after it need.
    #[must_use]
    pub fn stage_deadline(&self, stage: Stage) -> Instant {
        let end = self.deadline();
        let postprocess = self.parts.postprocess.unwrap_or(Millis::ZERO);
        let before_postprocess = end.minus(postprocess).max(self.started);
        match stage {
            Stage::Postprocess => end,
            Stage::ModelCall => before_postprocess,
            Stage::InputBuild => match (self.parts.input_build, self.parts.model_call) {
                (Some(own), _) => self.started.plus(own).min(before_postprocess),
                (None, Some(model)) => before_postprocess.minus(model).max(self.started),
                (None, None) => before_postprocess,
            },
        }
    }

    /// What `stage` has left if it starts or goes on now. What earlier stages left over is in it; what they overdrew is
    /// taken from it.
    #[must_use]
    pub fn left(&self, stage: Stage, now: Instant) -> Millis {
        // A clock that went back behind the start does not make the budget longer.
        now.max(self.started).until(self.stage_deadline(stage))
    }

    /// Whether a wait of `wait` leaves at least `min_attempt` for an attempt of the model call.
    #[must_use]
    pub fn allows_wait(&self, wait: Millis, min_attempt: Millis, now: Instant) -> bool {
        wait.plus(min_attempt) <= self.left(Stage::ModelCall, now)
    }
}

/// Whether a wait of `wait` from `now` leaves `min_attempt` before `deadline`. A wait that does not is never begun.
#[must_use]
pub fn leaves_time(wait: Millis, min_attempt: Millis, deadline: Instant, now: Instant) -> bool {
    now.plus(wait).plus(min_attempt) <= deadline
}

/// When an attempt that starts now must end: its own limit, but never past the call's deadline.
#[must_use]
pub fn attempt_deadline(limit: Option<Millis>, deadline: Instant, now: Instant) -> Instant {
    limit.map_or(deadline, |limit| now.plus(limit).min(deadline))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: BudgetParts = BudgetParts {
        total: Millis(10_000),
        input_build: Some(Millis(2_000)),
        model_call: None,
        postprocess: Some(Millis(1_000)),
    };

    #[test]
    fn what_the_input_leaves_over_goes_to_the_model_call() {
        let budget = Budget::start(PARTS, Instant(0)).unwrap();
        assert_eq!(budget.left(Stage::InputBuild, Instant(0)), Millis(2_000));
        assert_eq!(budget.left(Stage::ModelCall, Instant(500)), Millis(8_500));
        assert_eq!(budget.left(Stage::Postprocess, Instant(4_000)), Millis(6_000));
    }

    #[test]
    fn the_model_call_never_takes_what_postprocessing_needs() {
        let parts = BudgetParts { model_call: Some(Millis(7_000)), ..PARTS };
        let budget = Budget::start(parts, Instant(0)).unwrap();
        assert_eq!(budget.stage_deadline(Stage::ModelCall), Instant(9_000));
        assert!(budget.allows_wait(Millis(3_000), Millis(1_000), Instant(5_000)));
        assert!(!budget.allows_wait(Millis(3_001), Millis(1_000), Instant(5_000)));
        assert_eq!(budget.left(Stage::ModelCall, Instant(9_500)), Millis::ZERO);
    }

    #[test]
    fn an_input_without_a_part_of_its_own_leaves_the_model_call_its_part() {
        let parts = BudgetParts { input_build: None, model_call: Some(Millis(6_000)), ..PARTS };
        let budget = Budget::start(parts, Instant(100)).unwrap();
        assert_eq!(budget.stage_deadline(Stage::InputBuild), Instant(3_100));
    }

    #[test]
    fn parts_that_do_not_fit_are_refused_with_both_numbers() {
        let parts = BudgetParts { model_call: Some(Millis(9_000)), ..PARTS };
        let error = Budget::start(parts, Instant(0)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the parts of the budget sum up to 12000 ms, which is more than its total of 10000 ms"
        );
        assert_eq!(Budget::start(BudgetParts::default(), Instant(0)), Err(BudgetError::EmptyTotal));
    }

    #[test]
    fn a_clock_that_goes_back_does_not_make_time() {
        let budget = Budget::start(PARTS, Instant(50_000)).unwrap();
        assert_eq!(budget.left(Stage::ModelCall, Instant(1)), Millis(9_000));
    }

    #[test]
    fn no_attempt_outlives_its_call() {
        assert_eq!(attempt_deadline(Some(Millis(600_000)), Instant(5_000), Instant(0)), Instant(5_000));
        assert_eq!(attempt_deadline(Some(Millis(10)), Instant(5_000), Instant(0)), Instant(10));
        assert!(!leaves_time(Millis(4_001), Millis(1_000), Instant(5_000), Instant(0)));
        assert!(!leaves_time(Millis::MAX, Millis(1), Instant(5_000), Instant(0)));
    }
}
