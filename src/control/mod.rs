//! What outlives a call: retry budgets, breakers, buckets and their keys, vendor state, tenants, queues and leases.
//!
//! Everything is synchronous and keyed by plain ids; `now` is the last argument. The caller's part of the contract:
//! [`Control::admit`] before each attempt, [`Control::settle`] after it (a permit that is never settled comes back at
//! its lease's end), [`Control::take_woken`] and [`Control::take_notice`] drained after each of them, and
//! [`Control::leave`] when a call that waits gives up. Spurious calls are harmless.

mod breaker;
mod concurrency;
mod feasibility;
mod hold;
mod names;
mod retry_budget;
mod terms;
mod vendor;

use crate::time::Instant;
pub use breaker::{Breaker, BreakerConfig, Change, Gate, Signal};
pub use concurrency::ConcurrencyConfig;
pub use feasibility::Feasibility;
pub use retry_budget::{RetryBudget, RetryBudgetConfig, RetryBudgets, RetryCost};
pub use terms::{
    Admission, Ask, BucketId, CallId, KeyId, LimitKind, LimitWindow, Outcome, Permit, PermitId, Priority, Reason,
    VendorLimit,
};
pub use vendor::{Known, Vendor};

/// The state that all calls of a keel share.
#[derive(Debug)]
pub struct Control {
    budget: RetryBudgets,
}

impl Control {
    /// A control plane that knows nobody yet. Admits everything until the governors are in.
    #[must_use]
    pub fn new(budget: Option<RetryBudgetConfig>) -> Self {
        Self { budget: RetryBudgets::new(budget, 128) }
    }

    /// Asks for a permit to make one attempt.
    pub fn admit(&mut self, ask: &Ask<'_>, _now: Instant) -> Admission {
        Admission::Granted(Permit {
            id: PermitId(0),
            bucket: BucketId(0),
            key: None,
            probe: false,
            lease_until: ask.deadline,
        })
    }

    /// Counts the first attempt of a logical request, which pays for its share of a retry.
    pub fn on_first_attempt(&mut self, provider: &str, now: Instant) {
        self.budget.on_first_attempt(provider, now);
    }

    /// Draws a retry from the budget; says whether it may be made.
    pub fn may_retry(&mut self, provider: &str, cost: RetryCost, now: Instant) -> bool {
        self.budget.may_retry(provider, cost, now)
    }
}
