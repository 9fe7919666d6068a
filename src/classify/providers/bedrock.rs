//! AWS Bedrock: Converse and Invoke, whole and streamed.
//!
//! The error's name stands in `x-amzn-errortype` (with a `:http://…` tail), else in the body's `code` or `__type`; the
//! body is `{"message":…}`. There is no Retry-After. "Too many tokens" is throttling here. Inside a stream exceptions
//! come as frames with an HTTP 200; they mean what their HTTP twins mean. Sources: aws-sdk-js-v3 model-runtime,
//! smithy-typescript, oh-my-pi#12449, docs.aws.amazon.com/bedrock troubleshooting.

use super::Provider;
use crate::class::ErrorClass::{
    AuthError, BadRequest, ContentFiltered, NotFound, Overloaded, PermissionError, QuotaExhausted, RateLimited,
    RequestTooLarge, ServerError, Timeout, Unknown,
};
use crate::class::Scope::{self, Bucket, Key, Model, Request};
use crate::classify::rule::{Rule, on, rule};

const THROTTLES: &str =
    "throttlingexception|throttling|toomanyrequestsexception|requestlimitexceeded|throttledexception";

#[rustfmt::skip] // one rule a line
const RULES: &[Rule] = &[
    rule("throttled_day", on(&[]).code(THROTTLES).text("per day|daily"), QuotaExhausted, Bucket).advice("the day's tokens are used up: ask for more in Service Quotas, or use another region"),
    rule("throttled", on(&[]).code(THROTTLES), RateLimited, Bucket), // also with status 400 from older AWS JSON services
    rule("service_quota", on(&[]).code("servicequotaexceededexception"), QuotaExhausted, Bucket).advice("raise the quota in Service Quotas"),
    rule("model_not_ready", on(&[]).code("modelnotreadyexception"), Overloaded, Model),
    rule("unavailable", on(&[]).code("serviceunavailableexception|serviceunavailable"), Overloaded, Model),
    rule("model_error", on(&[]).code("modelerrorexception|modelstreamerrorexception"), ServerError, Model), // 424 that is a 5xx
    rule("model_timeout", on(&[]).code("modeltimeoutexception"), Timeout, Request).advice("shorten the request, or stream it"),
    rule("internal", on(&[]).code("internalserverexception|internalfailure|internalerror|internalservererror"), ServerError, Scope::Provider),
    rule("too_long", on(&[400, 413, 422]).text("input is too long|prompt is too long|too many input tokens|exceed context limit|maximum context length|exceeds the maximum|input tokens exceeds"), RequestTooLarge, Request),
    rule("on_demand", on(&[400]).text("on-demand throughput|inference profile"), NotFound, Model).advice("use the id of an inference profile, e.g. us.anthropic.…"),
    rule("model_id", on(&[400]).text("model identifier is invalid|model id is invalid|end of its life"), NotFound, Model),
    rule("operation_not_allowed", on(&[400]).text("operation not allowed"), PermissionError, Key),
    rule("blocked", on(&[400]).text("blocked by our content filters|content filtering policy"), ContentFiltered, Request),
    rule("credentials", on(&[400, 401, 403]).code("unrecognizedclientexception|expiredtokenexception|expiredtoken|invalidclienttokenid|missingauthenticationtoken|missingauthenticationtokenexception|incompletesignature|incompletesignatureexception|notauthorized|optinrequired"), AuthError, Key).advice("refresh the AWS credentials"),
    rule("clock_skew", on(&[400, 403]).code("invalidsignatureexception|signaturedoesnotmatch|requestexpired|requesttimetooskewed"), AuthError, Key).advice("set this machine's clock, and check the secret key"),
    rule("credentials_text", on(&[403]).text("security token included in the request|api key is not valid|bearer token"), AuthError, Key),
    rule("model_access", on(&[403]).code("accessdeniedexception|accessdenied").text("access to the model|model access|foundation model"), PermissionError, Model).advice("request access to the model in the Bedrock console"),
    rule("access_denied", on(&[403]).code("accessdeniedexception|accessdenied"), PermissionError, Key).advice("allow bedrock:InvokeModel to this identity"),
    rule("use_case", on(&[403, 404]).text("use case details"), PermissionError, Model).advice("fill out the model's use case form in the Bedrock console"),
    rule("not_found", on(&[404]).code("resourcenotfoundexception"), NotFound, Model),
    rule("conflict", on(&[400, 409]).code("conflictexception"), Unknown, Request).retry(true),
    rule("validation", on(&[400, 422]).code("validationexception|validationerror|validation"), BadRequest, Request),
    rule("throttled_text", on(&[429]).text("per day"), QuotaExhausted, Bucket),
    rule("unavailable_text", on(&[503]), Overloaded, Model),
];

pub(super) const PROVIDER: Provider = Provider {
    name: "bedrock",
    hosts: &[
        "bedrock-runtime.*.amazonaws.com",
        "bedrock-runtime-fips.*.amazonaws.com",
        "*.bedrock-runtime.vpce.amazonaws.com",
    ],
    base: "anthropic",
    rules: RULES,
    request_id: &["x-amzn-requestid", "x-amz-request-id"],
    #[cfg(not(target_arch = "wasm32"))]
    source: "docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html",
    ..Provider::DEFAULT
};
