//! The state as plain JSON, for people and their dashboards, and the part of it that should survive a restart.
//!
//! Stable: members are only ever added. Times are milliseconds since the epoch, durations end in `_ms`. Names are those
//! of the configuration and the requests; keys appear by their id only.

use super::names::Entered;
use super::target::Bucket;
use super::terms::{LimitKind, LimitWindow, VendorLimit};
use super::{Breaker, Control};
use crate::class::ErrorClass;
use crate::prelude::*;
use crate::text::{self, hex_digit, number, push_number};
use crate::time::{Instant, Millis};

/// Writes JSON without a tree: members and elements separate themselves.
struct Json<'a>(&'a mut String);

impl Json<'_> {
    fn comma(&mut self) {
        if !matches!(self.0.as_bytes().last(), None | Some(b'{' | b'[' | b':')) {
            self.0.push(',');
        }
    }

    fn open(&mut self, bracket: char) {
        self.comma();
        self.0.push(bracket);
    }

    fn close(&mut self, bracket: char) {
        self.0.push(bracket);
    }

    fn key(&mut self, key: &str) {
        self.text(key);
        self.0.push(':');
    }

    fn text(&mut self, text: &str) {
        self.comma();
        self.0.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => {
                    self.0.push('\\');
                    self.0.push(c);
                }
                c if c < ' ' => {
                    self.0.push_str("\\u00");
                    self.0.push(if c < '\u{10}' { '0' } else { '1' });
                    self.0.push(char::from(hex_digit(c as u8)));
                }
                c => self.0.push(c),
            }
        }
        self.0.push('"');
    }

    fn number(&mut self, number: u64) {
        self.comma();
        push_number(self.0, number);
    }

    fn member(&mut self, key: &str, number: Option<u64>) {
        self.key(key);
        match number {
            Some(number) => self.number(number),
            None => self.0.push_str("null"),
        }
    }

    fn text_member(&mut self, key: &str, text: Option<&str>) {
        self.key(key);
        match text {
            Some(text) => self.text(text),
            None => self.0.push_str("null"),
        }
    }
}

const KINDS: [(LimitKind, &str); 4] = [
    (LimitKind::Requests, "requests"),
    (LimitKind::Tokens, "tokens"),
    (LimitKind::InputTokens, "input_tokens"),
    (LimitKind::OutputTokens, "output_tokens"),
];
const WINDOWS: [(LimitWindow, &str); 3] =
    [(LimitWindow::Minute, "minute"), (LimitWindow::Day, "day"), (LimitWindow::Unknown, "unknown")];

fn kind_name(kind: LimitKind) -> &'static str {
    KINDS.iter().find_map(|(k, name)| (*k == kind).then_some(*name)).unwrap_or("")
}

fn window_name(window: LimitWindow) -> &'static str {
    WINDOWS.iter().find_map(|(w, name)| (*w == window).then_some(*name)).unwrap_or("")
}

impl Control {
    /// Appends the state as one JSON object: `vendor`, `breakers`, `keys`, `tenants`, `retry_budget`, `permits`,
    /// `waiting`.
    pub fn state_json(&self, now: Instant, out: &mut String) {
        let mut json = Json(out);
        json.open('{');
        json.key("vendor");
        json.open('[');
        for (_, index) in self.targets.names.in_order() {
            let Some(target) = self.targets.list.get(index) else { continue };
            for bucket in &target.buckets {
                self.write_bucket(&mut json, bucket, &target.provider, &target.model, now);
            }
        }
        json.close(']');
        json.key("breakers");
        json.open('[');
        for (name, index) in self.breakers.names.in_order() {
            let Some(breaker) = self.breakers.list.get(index) else { continue };
            write_breaker(&mut json, name, breaker);
        }
        json.close(']');
        json.key("keys");
        json.open('[');
        for key in &self.keys {
            json.open('{');
            json.text_member("id", Some(&key.id));
            json.text_member("organisation", self.config.pools.get(key.pool).map(|pool| pool.organisation.as_str()));
            json.text_member("disabled", key.disabled.map(ErrorClass::name));
            json.close('}');
        }
        json.close(']');
        json.key("tenants");
        json.open('[');
        for (name, tenant) in self.tenants.in_order() {
            json.open('{');
            json.text_member("tenant", Some(name));
            json.member("active", Some(tenant.active().into()));
            json.member("waiting", Some(tenant.waits as u64));
            json.close('}');
        }
        json.close(']');
        json.key("retry_budget");
        json.open('{');
        json.member("global_milli", Some(self.budget.global_milli(now)));
        json.key("providers");
        json.open('{');
        for provider in self.budget.providers() {
            json.member(provider, Some(self.budget.balance_milli(provider, now)));
        }
        json.close('}');
        json.close('}');
        let counts = self.permits();
        json.key("permits");
        json.open('{');
        json.member("given", Some(counts.given));
        json.member("returned", Some(counts.returned));
        json.member("expired", Some(counts.expired));
        json.member("held", Some(counts.held));
        json.close('}');
        json.member("waiting", Some(self.waiting() as u64));
        json.close('}');
    }

    fn write_bucket(&self, json: &mut Json<'_>, bucket: &Bucket, provider: &str, model: &str, now: Instant) {
        json.open('{');
        json.text_member("bucket", Some(&bucket.name));
        json.text_member("provider", Some(provider));
        json.text_member("model", Some(model));
        let (until, class) = bucket.cooling_until(now);
        json.member("cooling_until", until.map(|at| at.0));
        json.text_member("cooling_class", until.map(|_| class.name()));
        json.member("in_flight", Some(bucket.concurrency.in_flight().into()));
        let limit = self.config.concurrency.and_then(|config| bucket.concurrency.limit(&config));
        json.member("concurrency_limit", limit.map(u64::from));
        json.member("paced_per_minute", bucket.pace.per_minute());
        json.text_member("preflight", bucket.preflight.name());
        json.member("reserved_tokens", Some(bucket.reserved.input.saturating_add(bucket.reserved.output)));
        json.member("last_429_at", bucket.vendor.last_429_at.map(|at| at.0));
        json.member("last_overload_at", bucket.vendor.last_overload_at.map(|at| at.0));
        let (first_token, tokens_per_second) = bucket.speed.medians();
        json.member("first_token_ms", first_token);
        json.member("tokens_per_second", tokens_per_second);
        json.key("limits");
        json.open('[');
        for known in bucket.vendor.limits() {
            json.open('{');
            json.text_member("kind", Some(kind_name(known.kind)));
            json.text_member("window", Some(window_name(known.window)));
            json.member("limit", known.limit);
            json.member("remaining", Some(known.left(now)));
            json.member("reset_at", known.reset_at.map(|at| at.0));
            json.member("read_at", Some(known.read_at.0));
            json.close('}');
        }
        json.close(']');
        json.close('}');
    }

    /// Appends what should survive a restarted core: open breakers, cooling buckets, disabled keys and vendor limits,
    /// one a line with tabs between its fields. Budgets start anew, with their floor. Give it to [`Self::restore`].
    pub fn snapshot(&self, now: Instant, out: &mut String) {
        for (name, index) in self.breakers.names.in_order() {
            let open = self.breakers.list.get(index).and_then(|breaker| Some((breaker, breaker.open_until()?)));
            if let Some((breaker, (until, class))) = open {
                let numbers = [u64::from(breaker.openings()), until.0.max(now.0)];
                line(out, "breaker", &[class.name(), name], &numbers);
            }
        }
        for key in self.keys.iter().filter(|key| key.disabled.is_some()) {
            line(out, "key", &[key.disabled.map_or("", ErrorClass::name), &key.id], &[]);
        }
        for target in &self.targets.list {
            for bucket in &target.buckets {
                let (until, class) = bucket.cooling_until(now);
                let (provider, model, name) = (&*target.provider, &*target.model, &*bucket.name);
                if let Some(until) = until {
                    line(out, "cooling", &[class.name(), provider, model, name], &[until.0]);
                }
                for known in bucket.vendor.limits() {
                    let texts = [kind_name(known.kind), window_name(known.window), provider, model, name];
                    let numbers = [
                        known.limit.unwrap_or(u64::MAX),
                        known.left(now),
                        known.reset_at.map_or(u64::MAX, |at| at.0),
                        known.read_at.0,
                    ];
                    line(out, "limit", &texts, &numbers);
                }
            }
        }
    }

    /// Takes in a snapshot. Lines that do not fit the configuration, or that are not understood, are passed over.
    pub fn restore(&mut self, snapshot: &str, now: Instant) {
        let mut fields = Vec::new();
        for line in text::pieces(snapshot, "\n") {
            fields.clear();
            for field in text::pieces(line, "\t") {
                fields.push(field);
            }
            match fields.as_slice() {
                ["breaker", class, name, openings, until] => self.restore_breaker(class, name, openings, until, now),
                ["key", class, id] => {
                    let class = ErrorClass::from_name(class).unwrap_or(ErrorClass::AuthError);
                    if let Some(key) = self.keys.iter_mut().find(|key| &*key.id == *id) {
                        key.disabled = Some(class);
                    }
                }
                ["cooling", class, provider, model, name, until] => {
                    let class = ErrorClass::from_name(class).unwrap_or(ErrorClass::Unknown);
                    let (Some(until), Some(bucket)) = (number(until), self.bucket_named(provider, model, name, now))
                    else {
                        continue;
                    };
                    bucket.cool(class, now.until(Instant(until)), now);
                }
                ["limit", kind, window, provider, model, name, limit, remaining, reset_at, read_at] => {
                    let some = |text: &&str| number(text).filter(|number| *number != u64::MAX);
                    let kind = KINDS.iter().find_map(|(k, n)| (n == kind).then_some(*k));
                    let window = WINDOWS.iter().find_map(|(w, n)| (n == window).then_some(*w));
                    let (Some(kind), Some(read_at)) = (kind, number(read_at)) else { continue };
                    let known = VendorLimit {
                        kind,
                        window: window.unwrap_or_default(),
                        limit: some(limit),
                        remaining: some(remaining),
                        reset_at: some(reset_at).map(Instant),
                    };
                    if let Some(bucket) = self.bucket_named(provider, model, name, now) {
                        bucket.vendor.restore(known, Instant(read_at));
                    }
                }
                _ => {}
            }
        }
    }

    fn restore_breaker(&mut self, class: &str, name: &str, openings: &str, until: &str, now: Instant) {
        let (Some(openings), Some(until)) = (number(openings), number(until)) else { return };
        let slot = self.breakers.enter(name, "", &self.config, now);
        let class = ErrorClass::from_name(class).unwrap_or(ErrorClass::Unknown);
        if let Some(breaker) = self.breakers.get(slot) {
            breaker.restore(class, u32::try_from(openings).unwrap_or(u32::MAX), now.until(Instant(until)), now);
        }
    }

    /// The bucket of a name, made if need be: its account is what stands between provider and model.
    fn bucket_named(&mut self, provider: &str, model: &str, name: &str, now: Instant) -> Option<&mut Bucket> {
        let pooled = self.config.pools.iter().any(|pool| pool.serves(provider, model));
        let account = name.strip_prefix(provider)?.strip_suffix(model)?.trim_matches('/');
        let account = (!pooled).then_some(account);
        let slot = self.enter_target(provider, model, account, now).map(Entered::slot)?;
        let target = self.targets.list.get_mut(slot.index as usize)?;
        target.buckets.iter_mut().find(|bucket| &*bucket.name == name)
    }
}

fn write_breaker(json: &mut Json<'_>, name: &str, breaker: &Breaker) {
    let (answered, failed) = breaker.window_counts();
    let open = breaker.open_until();
    json.open('{');
    json.text_member("subject", Some(name));
    json.text_member("state", Some(breaker.state()));
    json.member("until", open.map(|(until, _)| until.0));
    json.text_member("class", open.map(|(_, class)| class.name()));
    json.member("answered", Some(answered));
    json.member("failed", Some(failed));
    json.close('}');
}

/// A line of a snapshot. A name with a tab or a line break in it is left out with its whole line.
fn line(out: &mut String, kind: &str, texts: &[&str], numbers: &[u64]) {
    if texts.iter().any(|text| text.bytes().any(|byte| matches!(byte, b'\t' | b'\n' | b'\r'))) {
        return;
    }
    out.push_str(kind);
    for text in texts {
        out.push('\t');
        out.push_str(text);
    }
    for number in numbers {
        out.push('\t');
        push_number(out, *number);
    }
    out.push('\n');
}

impl Bucket {
    /// How long it cools, for what is shown.
    pub(super) fn cooling_until(&self, now: Instant) -> (Option<Instant>, ErrorClass) {
        let until = self.cools_until();
        (Some(until).filter(|until| now.until(*until) > Millis::ZERO), self.class)
    }
}
