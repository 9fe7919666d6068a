//! The control plane's settings as they cross the border: a packed string, read once.
//!
//! A record a setting (U+001E), fields by U+001F; an empty field keeps the default. The TypeScript side has checked
//! them (`pkg/src/config.ts`), with the option's own path in its error: the same as [`ControlConfig::validate`] does, which
//! would be 2 KB of the download to say it twice.
//!
//! | record | fields |
//! | --- | --- |
//! | `budget` | `off`, or ratio and retries a second, in thousandths |
//! | `breaker` | `off`, or failure rate in thousandths, minimum requests, window, consecutive failures, cooldown; then the provider (empty: all) |
//! | `concurrency` | `off`, or max, min, adaptive (0 or 1), queue ms, max queued |
//! | `tenant` | name (empty: all others), concurrency, requests and tokens a minute, share in thousandths, weight |
//! | `pool` | provider, organisation, weight, models, key ids (the last two separated by U+001D), preflight (1) |

use crate::control::{BreakerConfig, ConcurrencyConfig, ControlConfig, PoolConfig, RetryBudgetConfig, TenantLimits};
use crate::prelude::*;
use crate::text::{self, number};
use crate::time::Millis;

/// Separates the items of a list in one field.
const ITEM: &str = "\u{1d}";
/// Separates the fields of a record: [`crate::ledger::FIELD`].
const FIELD: &str = "\u{1f}";
/// Separates records: [`crate::ledger::RECORD`].
const RECORD: &str = "\u{1e}";

/// Reads packed settings over the defaults; a record that is not known is passed over.
#[must_use]
pub fn read(packed: &str) -> ControlConfig {
    let mut config = ControlConfig::default();
    for record in text::pieces(packed, RECORD) {
        let mut fields = text::pieces(record, FIELD);
        let name = fields.next().unwrap_or("");
        let mut fields = Fields { rest: fields };
        match name {
            "budget" => config.retry_budget = budget(&mut fields),
            "breaker" => {
                let own = breaker(&mut fields);
                match fields.text() {
                    "" => config.breaker = own,
                    provider => config.breakers.push((provider.to_owned(), own)),
                }
            }
            "concurrency" => concurrency(&mut fields, &mut config),
            "tenant" => tenant(&mut fields, &mut config),
            "pool" => config.pools.push(pool(&mut fields)),
            _ => {}
        }
    }
    config
}

struct Fields<'a> {
    rest: text::Pieces<'a>,
}

impl<'a> Fields<'a> {
    fn text(&mut self) -> &'a str {
        self.rest.next().unwrap_or("")
    }

    fn number<N: TryFrom<u64>>(&mut self, default: N) -> N {
        self.maybe().unwrap_or(default)
    }

    fn maybe<N: TryFrom<u64>>(&mut self) -> Option<N> {
        N::try_from(number(self.text())?).ok()
    }

    fn millis(&mut self, default: Millis) -> Millis {
        Millis(self.number(default.0))
    }

    fn list(&mut self) -> Vec<String> {
        let mut items = Vec::new();
        for item in text::pieces(self.text(), ITEM) {
            if !item.is_empty() {
                items.push(item.to_owned());
            }
        }
        items
    }

    fn is_off(&self) -> bool {
        self.rest.clone().next() == Some("off")
    }
}

fn budget(fields: &mut Fields<'_>) -> Option<RetryBudgetConfig> {
    let default = RetryBudgetConfig::default();
    (!fields.is_off()).then(|| RetryBudgetConfig {
        ratio_per_mille: fields.number(default.ratio_per_mille),
        min_per_second_milli: fields.number(default.min_per_second_milli),
        ..default
    })
}

fn breaker(fields: &mut Fields<'_>) -> Option<BreakerConfig> {
    let default = BreakerConfig::default();
    if fields.is_off() {
        fields.text();
        return None;
    }
    let failure_rate_per_mille = fields.number(default.failure_rate_per_mille);
    let minimum_requests = fields.number(default.minimum_requests);
    let window = fields.millis(default.window);
    let consecutive_failures = fields.number(default.consecutive_failures);
    let cooldown = fields.millis(default.cooldown);
    let max_cooldown = default.max_cooldown.max(cooldown);
    Some(BreakerConfig {
        failure_rate_per_mille,
        minimum_requests,
        window,
        consecutive_failures,
        cooldown,
        max_cooldown,
        ..default
    })
}

fn concurrency(fields: &mut Fields<'_>, config: &mut ControlConfig) {
    if fields.is_off() {
        config.concurrency = None;
        return;
    }
    let default = ConcurrencyConfig::default();
    config.concurrency = Some(ConcurrencyConfig {
        max: fields.maybe(),
        min: fields.number(default.min),
        adaptive: fields.number::<u8>(1) != 0,
        ..default
    });
    config.max_queue_wait = fields.maybe().map(Millis);
    config.max_queued = fields.number(config.max_queued);
}

fn tenant(fields: &mut Fields<'_>, config: &mut ControlConfig) {
    let name = fields.text();
    let limits = TenantLimits {
        concurrency: fields.maybe(),
        requests_per_minute: fields.maybe(),
        tokens_per_minute: fields.maybe(),
        share_per_mille: fields.maybe(),
        weight: fields.number(1),
    };
    if name.is_empty() {
        config.default_tenant = limits;
    } else {
        config.tenants.push((name.to_owned(), limits));
    }
}

fn pool(fields: &mut Fields<'_>) -> PoolConfig {
    let provider = fields.text().to_owned();
    let organisation = fields.text().to_owned();
    let weight = fields.number(1);
    let models = fields.list();
    let keys = fields.list();
    let preflight = fields.text() == "1";
    PoolConfig { provider, organisation, keys, models: (!models.is_empty()).then_some(models), weight, preflight }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(records: &[&[&str]]) -> String {
        records.iter().map(|fields| fields.join("\u{1f}")).collect::<Vec<_>>().join("\u{1e}")
    }

    #[test]
    fn nothing_said_means_the_defaults() {
        assert_eq!(read(""), ControlConfig::default());
        assert_eq!(
            read(&packed(&[&["breaker", "", "", "", "", ""], &["budget"], &["what", "ever"]])),
            ControlConfig::default()
        );
    }

    #[test]
    fn what_is_off_is_off() {
        let config = read(&packed(&[&["breaker", "off"], &["budget", "off"], &["concurrency", "off"]]));
        assert_eq!((config.breaker, config.retry_budget, config.concurrency), (None, None, None));
    }

    #[test]
    fn every_field_finds_its_place() {
        let config = read(&packed(&[
            &["budget", "100", "2000"],
            &["breaker", "600", "20", "10000", "7", "45000"],
            &["breaker", "", "", "", "2", "", "groq"],
            &["breaker", "off", "ollama"],
            &["concurrency", "50", "2", "0", "3000", "77"],
            &["tenant", "", "4", "60", "1000", "500", "2"],
            &["tenant", "acme", "", "", "", "", "3"],
            &["pool", "openai", "org-a", "2", "gpt-5\u{1d}gpt-5-mini", "k1\u{1d}k2"],
            &["pool", "openai", "org-b", "", "", "k3", "1"],
        ]));
        assert_eq!((config.pools[0].preflight, config.pools[1].preflight), (false, true));
        assert_eq!(config.retry_budget.map(|b| (b.ratio_per_mille, b.min_per_second_milli)), Some((100, 2_000)));
        let breaker = config.breaker.unwrap();
        assert_eq!(
            (breaker.failure_rate_per_mille, breaker.minimum_requests, breaker.consecutive_failures),
            (600, 20, 7)
        );
        assert_eq!((breaker.window, breaker.cooldown), (Millis(10_000), Millis(45_000)));
        assert!(breaker.max_cooldown >= breaker.cooldown);
        assert_eq!(config.breaker_of("groq").map(|b| b.consecutive_failures), Some(2));
        assert_eq!((config.breaker_of("ollama"), config.breaker_of("openai")), (None, Some(breaker)));
        assert_eq!(config.concurrency.map(|c| (c.max, c.min, c.adaptive)), Some((Some(50), 2, false)));
        assert_eq!((config.max_queue_wait, config.max_queued), (Some(Millis(3_000)), 77));
        assert_eq!((config.default_tenant.concurrency, config.default_tenant.weight), (Some(4), 2));
        assert_eq!(config.tenants.len(), 1);
        assert_eq!(config.pools[0].models.as_deref(), Some(&["gpt-5".to_owned(), "gpt-5-mini".to_owned()][..]));
        assert_eq!((config.pools[0].keys.len(), config.pools[1].weight, &config.pools[1].models), (2, 1, &None));
        assert_eq!(config.validate(), Ok(()));
    }
}
