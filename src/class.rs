//! What a failure is: the error classes, what they speak of, and what follows from each.

use crate::time::Millis;
use alloc::borrow::Cow;

/// What a failed call is. Decisions look at the class and at nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorClass {
    /// The request itself is at fault; sent again it fails again.
    BadRequest,
    /// The credential is missing, malformed, expired or revoked.
    AuthError,
    /// The credential is known but may not do this (role, region, IP, model access).
    PermissionError,
    /// The model, deployment or URL does not exist.
    NotFound,
    /// Too many bytes or tokens for the model or for the bucket as a whole.
    RequestTooLarge,
    /// A safety system refused the input or the output.
    ContentFiltered,
    /// A short-window limit: waiting helps.
    RateLimited,
    /// Money or a long-window quota is used up: waiting minutes does not help.
    QuotaExhausted,
    /// The provider has no capacity for the model right now.
    Overloaded,
    /// The provider failed.
    ServerError,
    /// No answer in time, ours or theirs.
    Timeout,
    /// The connection could not be made or broke before an answer.
    ConnectionError,
    /// A stream or body ended before its meaning did.
    StreamInterrupted,
    /// The caller gave up. Never a failure of the provider.
    Cancelled,
    /// Nothing is known about it.
    Unknown,
}

/// What a failure speaks of: decides what cools, and what else may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// This payload.
    Request,
    /// The credential, or its billing account.
    Key,
    /// What the provider counts the limit against: organisation (or project) and model.
    Bucket,
    /// The model at that provider.
    Model,
    /// Everything behind the base URL.
    Provider,
}

/// Whether the request of an attempt reached the provider: what a second try may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Delivery {
    /// It did not: the connection was refused, never made, or the stream was refused. Sending it again is free.
    #[default]
    NotSent,
    /// It may have: a reset or a timeout after the request went out. Sending it again may pay twice.
    MaybeSent,
    /// It did, and was answered.
    Answered,
}

impl Delivery {
    /// The public name: `not_sent`, `maybe_sent` or `answered`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotSent => "not_sent",
            Self::MaybeSent => "maybe_sent",
            Self::Answered => "answered",
        }
    }
}

/// The verdict on one failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classification {
    /// What it is.
    pub class: ErrorClass,
    /// Whether the same call to the same target would plausibly succeed soon (after `wait_hint`, if there is one).
    pub retryable: bool,
    /// What it speaks of.
    pub scope: Scope,
    /// How long the provider says to wait, uncapped. `None`: it gave no usable hint.
    pub wait_hint: Option<Millis>,
    /// A short machine-readable reason in snake case, e.g. `insufficient_quota`.
    pub reason: Cow<'static, str>,
    /// The rule that matched, e.g. `openai.insufficient_quota`, so that anyone can find it.
    pub rule: Cow<'static, str>,
}

const CLASSES: &[(ErrorClass, &str)] = &[
    (ErrorClass::BadRequest, "bad_request"),
    (ErrorClass::AuthError, "auth_error"),
    (ErrorClass::PermissionError, "permission_error"),
    (ErrorClass::NotFound, "not_found"),
    (ErrorClass::RequestTooLarge, "request_too_large"),
    (ErrorClass::ContentFiltered, "content_filtered"),
    (ErrorClass::RateLimited, "rate_limited"),
    (ErrorClass::QuotaExhausted, "quota_exhausted"),
    (ErrorClass::Overloaded, "overloaded"),
    (ErrorClass::ServerError, "server_error"),
    (ErrorClass::Timeout, "timeout"),
    (ErrorClass::ConnectionError, "connection_error"),
    (ErrorClass::StreamInterrupted, "stream_interrupted"),
    (ErrorClass::Cancelled, "cancelled"),
    (ErrorClass::Unknown, "unknown"),
];

const SCOPES: &[(Scope, &str)] = &[
    (Scope::Request, "request"),
    (Scope::Key, "key"),
    (Scope::Bucket, "bucket"),
    (Scope::Model, "model"),
    (Scope::Provider, "provider"),
];

impl ErrorClass {
    /// Every class, in the order of the documentation.
    pub fn all() -> impl Iterator<Item = Self> {
        CLASSES.iter().map(|(c, _)| *c)
    }

    /// The public name, e.g. `rate_limited`.
    #[must_use]
    pub fn name(self) -> &'static str {
        CLASSES.iter().find_map(|(c, n)| (*c == self).then_some(*n)).unwrap_or("unknown")
    }

    /// The class of a public name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        CLASSES.iter().find_map(|(c, n)| (*n == name).then_some(*c))
    }

    /// Whether a failure of this class may be sent to the same target again at all.
    ///
    /// the table of the README: what the request, the key or the bill is to blame for never is; `unknown` is not, since
    /// repeating what nobody understands is how money is burned.
    #[must_use]
    pub const fn may_retry_same_target(self) -> bool {
        matches!(
            self,
            Self::RateLimited
                | Self::Overloaded
                | Self::ServerError
                | Self::Timeout
                | Self::ConnectionError
                | Self::StreamInterrupted
        )
    }

    /// Whether it counts as a failure of the provider's health (the breaker). A 429 feeds the bucket instead; what
    /// the request is to blame for touches neither.
    #[must_use]
    pub const fn is_health_failure(self) -> bool {
        matches!(
            self,
            Self::Overloaded | Self::ServerError | Self::Timeout | Self::ConnectionError | Self::StreamInterrupted
        )
    }
}

impl Scope {
    /// The public name, e.g. `bucket`.
    #[must_use]
    pub fn name(self) -> &'static str {
        SCOPES.iter().find_map(|(s, n)| (*s == self).then_some(*n)).unwrap_or("request")
    }

    /// The scope of a public name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        SCOPES.iter().find_map(|(s, n)| (*n == name).then_some(*s))
    }
}
