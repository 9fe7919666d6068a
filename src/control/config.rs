//! The settings of the control plane, with their defaults, and what is wrong with them.

use super::breaker::BreakerConfig;
use super::concurrency::ConcurrencyConfig;
use super::retry_budget::RetryBudgetConfig;
use crate::prelude::*;
use crate::text::{decimal, joined, push_number};
use crate::time::Millis;
use core::fmt;

/// All settings. The default is what a keel without any options has: it refuses nothing until a vendor does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlConfig {
    /// The retry budget; `None`: every retry is allowed.
    pub retry_budget: Option<RetryBudgetConfig>,
    /// The breakers; `None`: there are none.
    pub breaker: Option<BreakerConfig>,
    /// Breakers of providers that have their own settings; `None`: that provider has none.
    pub breakers: Vec<(String, Option<BreakerConfig>)>,
    /// The concurrency limits; `None`: there are none.
    pub concurrency: Option<ConcurrencyConfig>,
    /// Limits of tenants that are not named. Default: none.
    pub default_tenant: TenantLimits,
    /// Limits of tenants by name.
    pub tenants: Vec<(String, TenantLimits)>,
    /// Keys by organisation.
    pub pools: Vec<PoolConfig>,
    /// Most calls that may wait at once. Range `0..=1_000_000`, default `10_000`.
    pub max_queued: usize,
    /// Longest that a call may wait for its turn; its deadline bounds it as well. Default none.
    pub max_queue_wait: Option<Millis>,
    /// How long a bucket cools after `quota_exhausted` without a hint. Default 15 min.
    pub quota_cooling: Millis,
    /// First cooling of a pool's bucket after a server or connection failure; doubles up to `max_failure_cooling` and
    /// ends with a success. Default `2_000` ms.
    pub failure_cooling: Millis,
    /// Longest cooling after failures. Default `60_000` ms.
    pub max_failure_cooling: Millis,
    /// Tenants remembered. Those that do not fit share one entry. Range `1..=1_000_000`, default `1_000`.
    pub max_tenants: usize,
    /// Provider and model pairs remembered, each with its buckets. Those that do not fit are let through untracked.
    /// Range `1..=1_000_000`, default 500.
    pub max_targets: usize,
    /// How long a freed place is kept for the waiter that it was offered to. Default `2_000` ms.
    pub offer: Millis,
}

impl Default for ControlConfig {
    fn default() -> Self {
        Self {
            retry_budget: Some(RetryBudgetConfig::default()),
            breaker: Some(BreakerConfig::default()),
            breakers: Vec::new(),
            concurrency: Some(ConcurrencyConfig::default()),
            default_tenant: TenantLimits::default(),
            tenants: Vec::new(),
            pools: Vec::new(),
            max_queued: 10_000,
            max_queue_wait: None,
            quota_cooling: Millis(900_000),
            failure_cooling: Millis(2_000),
            max_failure_cooling: Millis(60_000),
            max_tenants: 1_000,
            max_targets: 500,
            offer: Millis(2_000),
        }
    }
}

/// What a tenant may. `None` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantLimits {
    /// Calls in flight or in the queue of a bucket. Range `1..`.
    pub concurrency: Option<u32>,
    /// Requests a minute. Range `1..`.
    pub requests_per_minute: Option<u64>,
    /// Tokens a minute, input and output; reserved by estimate and settled by what was used. Range `1..`.
    pub tokens_per_minute: Option<u64>,
    /// Most of a target's concurrency limit, where it has one, in thousandths. Range `1..=1_000`.
    pub share_per_mille: Option<u32>,
    /// Turns for each turn of a tenant with weight 1, when both wait. Range `1..=1_000`, default 1.
    pub weight: u32,
}

impl Default for TenantLimits {
    fn default() -> Self {
        Self { concurrency: None, requests_per_minute: None, tokens_per_minute: None, share_per_mille: None, weight: 1 }
    }
}

/// The keys of one organisation (or project) at one provider: what the provider counts its limits against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// The provider's name.
    pub provider: String,
    /// The organisation's name.
    pub organisation: String,
    /// Names of the keys, never the keys. Not empty; each name once in all pools.
    pub keys: Vec<String>,
    /// Models that it serves; `None`: all.
    pub models: Option<Vec<String>>,
    /// Turns for each turn of a pool with weight 1. Range `1..=1_000`.
    pub weight: u32,
    /// Whether the first call through each of its buckets goes alone, and the others only once that one was answered
    /// well. Asked again after five minutes without a good answer.
    pub preflight: bool,
}

/// A setting that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Where, as the option is named, e.g. `breaker.windowMs`.
    pub path: String,
    /// What it is.
    pub got: String,
    /// What it should be.
    pub expected: &'static str,
}

impl ConfigError {
    /// The whole of it in a sentence.
    #[must_use]
    pub fn message(&self) -> String {
        joined(&[&self.path, " is ", &self.got, ", expected ", self.expected])
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}

impl core::error::Error for ConfigError {}

fn range(path: &str, got: u64, low: u64, high: u64, expected: &'static str) -> Result<(), ConfigError> {
    if (low..=high).contains(&got) {
        return Ok(());
    }
    Err(ConfigError { path: path.into(), got: decimal(Some(got)), expected })
}

fn wrong(path: String, got: &str, expected: &'static str) -> ConfigError {
    ConfigError { path, got: got.into(), expected }
}

impl ControlConfig {
    /// The breaker settings of a provider.
    #[must_use]
    pub fn breaker_of(&self, provider: &str) -> Option<BreakerConfig> {
        self.breakers.iter().find(|(name, _)| name == provider).map_or(self.breaker, |(_, own)| *own)
    }

    /// Checks every range, that no key id appears twice and that no organisation is split over two pools.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if let Some(budget) = self.retry_budget {
            range("retry.budget.ratio", budget.ratio_per_mille.into(), 0, 10_000, "0 to 10_000 thousandths")?;
            let floor = budget.min_per_second_milli.into();
            range("retry.budget.minPerSecond", floor, 0, 1_000_000, "0 to 1_000_000 thousandths")?;
            range("retry.budget.windowMs", budget.window.0, 1_000, 60_000, "1_000 to 60_000 ms")?;
        }
        if let Some(breaker) = self.breaker {
            range("breaker.failureRate", breaker.failure_rate_per_mille.into(), 1, 1_000, "1 to 1_000 thousandths")?;
            range("breaker.minimumRequests", breaker.minimum_requests.into(), 1, 1_000_000, "1 to 1_000_000")?;
            range("breaker.windowMs", breaker.window.0, 1_000, 3_600_000, "1_000 to 3_600_000 ms")?;
            range("breaker.consecutiveFailures", breaker.consecutive_failures.into(), 1, 1_000_000, "1 to 1_000_000")?;
            range("breaker.cooldownMs", breaker.cooldown.0, 1, 3_600_000, "1 to 3_600_000 ms")?;
            range("breaker.probeLeaseMs", breaker.probe_lease.0, 1, 3_600_000, "1 to 3_600_000 ms")?;
        }
        if let Some(concurrency) = self.concurrency {
            let max = concurrency.max.map_or(1_000_000, u64::from);
            range("concurrency.max", max, 1, 1_000_000, "1 to 1_000_000")?;
            range("concurrency.min", concurrency.min.into(), 1, max, "1 to concurrency.max")?;
            let decrease = concurrency.decrease_per_mille.into();
            range("concurrency.decrease", decrease, 1, 999, "1 to 999 thousandths")?;
        }
        range("concurrency.maxQueued", self.max_queued as u64, 0, 1_000_000, "0 to 1_000_000")?;
        range("maxTenants", self.max_tenants as u64, 1, 1_000_000, "1 to 1_000_000")?;
        range("maxTargets", self.max_targets as u64, 1, 1_000_000, "1 to 1_000_000")?;
        let named = self.tenants.iter().map(|(name, limits)| (name.as_str(), limits));
        for (name, limits) in named.chain([("default", &self.default_tenant)]) {
            limits.validate(name)?;
        }
        self.validate_pools()
    }

    fn validate_pools(&self) -> Result<(), ConfigError> {
        let mut seen: Vec<&str> = Vec::new();
        for (index, pool) in self.pools.iter().enumerate() {
            let path = |member: &str| {
                let mut path = String::from("pools[");
                push_number(&mut path, index as u64);
                path.push_str("].");
                path.push_str(member);
                path
            };
            if pool.keys.is_empty() {
                return Err(wrong(path("keys"), "empty", "at least one key"));
            }
            range(&path("weight"), pool.weight.into(), 1, 1_000, "1 to 1_000")?;
            for key in &pool.keys {
                if seen.contains(&key.as_str()) {
                    return Err(wrong(path("keys"), key, "a key id that no other key has"));
                }
                seen.push(key);
            }
            let same = |other: &&PoolConfig| {
                other.provider == pool.provider && other.organisation == pool.organisation && overlap(other, pool)
            };
            if self.pools.iter().take(index).any(|other| same(&other)) {
                let expected = "an organisation that is in one pool only: its keys share one rate limit";
                return Err(wrong(path("organisation"), &pool.organisation, expected));
            }
        }
        Ok(())
    }
}

impl PoolConfig {
    /// Whether it serves a model of a provider.
    #[must_use]
    pub fn serves(&self, provider: &str, model: &str) -> bool {
        let listed = self.models.as_ref().is_none_or(|models| models.iter().any(|own| own == model));
        self.provider == provider && listed
    }
}

/// Whether two pools serve a model in common.
fn overlap(a: &PoolConfig, b: &PoolConfig) -> bool {
    match (&a.models, &b.models) {
        (Some(a), Some(b)) => a.iter().any(|model| b.contains(model)),
        _ => true,
    }
}

impl TenantLimits {
    fn validate(&self, name: &str) -> Result<(), ConfigError> {
        let path = |member: &str| {
            let mut path = String::from("tenants.");
            path.push_str(name.get(..64).unwrap_or(name));
            path.push('.');
            path.push_str(member);
            path
        };
        range(&path("weight"), self.weight.into(), 1, 1_000, "1 to 1_000")?;
        let positive = [
            ("concurrency", self.concurrency.map(u64::from)),
            ("requestsPerMinute", self.requests_per_minute),
            ("tokensPerMinute", self.tokens_per_minute),
        ];
        for (member, got) in positive {
            range(&path(member), got.unwrap_or(1), 1, 1_000_000_000_000, "1 to 1_000_000_000_000")?;
        }
        let share = self.share_per_mille.map_or(1, u64::from);
        range(&path("share"), share, 1, 1_000, "1 to 1_000 thousandths")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(organisation: &str, keys: &[&str]) -> PoolConfig {
        PoolConfig {
            provider: "openai".into(),
            organisation: organisation.into(),
            keys: keys.iter().map(|key| (*key).into()).collect(),
            models: None,
            weight: 1,
            preflight: false,
        }
    }

    fn error(config: &ControlConfig) -> String {
        config.validate().unwrap_err().to_string()
    }

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(ControlConfig::default().validate(), Ok(()));
    }

    #[test]
    fn two_keys_with_one_id_are_refused() {
        let config = ControlConfig { pools: vec![pool("a", &["k1"]), pool("b", &["k2", "k1"])], ..Default::default() };
        assert_eq!(error(&config), "pools[1].keys is k1, expected a key id that no other key has");
    }

    #[test]
    fn an_organisation_split_over_two_pools_is_refused_unless_their_models_differ() {
        let mut config = ControlConfig { pools: vec![pool("a", &["k1"]), pool("a", &["k2"])], ..Default::default() };
        assert!(error(&config).starts_with("pools[1].organisation is a, expected an organisation that is in one pool"));
        for (pool, model) in config.pools.iter_mut().zip(["gpt-5", "gpt-5-mini"]) {
            pool.models = Some(vec![model.into()]);
        }
        assert_eq!(config.validate(), Ok(()));
    }

    #[test]
    fn a_value_out_of_range_is_named_with_what_it_is_and_should_be() {
        let breaker = BreakerConfig { failure_rate_per_mille: 0, ..BreakerConfig::default() };
        let config = ControlConfig { breaker: Some(breaker), ..Default::default() };
        assert_eq!(error(&config), "breaker.failureRate is 0, expected 1 to 1_000 thousandths");
        let tenant = TenantLimits { concurrency: Some(0), ..TenantLimits::default() };
        let config = ControlConfig { tenants: vec![("acme".into(), tenant)], ..Default::default() };
        assert_eq!(error(&config), "tenants.acme.concurrency is 0, expected 1 to 1_000_000_000_000");
    }
}
