//! Plays the simulations and writes `docs/simulation.md` and `docs/simulation.svg`.
//!
//! `cargo run --release --example simulate [-- SEEDS]`: the mean over that many seeds (default 10).
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::cast_precision_loss,
    clippy::too_many_lines,
    reason = "an example that writes a document stops at anything odd"
)]

#[path = "../tests/simulated/mod.rs"]
mod simulated;

use simulated::{
    POLICIES, Policy, Report, brownout, failover, flood, mean, outage, overload, quiet, steady_goodput, steady_rejected,
};
use std::fmt::Write;

fn main() {
    let seeds: u64 = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(10);
    let mut text = String::from(INTRODUCTION);
    write!(text, "\nEvery number is the mean over {seeds} seeds.\n").expect("a string takes it");

    text.push_str(
        "\n## An outage of a minute\n\n1,000 clients with 200 requests a second between them, a provider that \
         allows 300 a second and answers 503 from second 60 to second 120.\n\n\
         | policy | requests per logical request, during it | most in a second after it, of the limit | seconds until 95 % of what arrives is answered again | wasted requests | p50 / p99 of successes |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    let mut lines = Vec::new();
    for policy in POLICIES {
        let runs = play_all(seeds, outage, policy);
        let sent = mean(&runs, |run| run.per_logical(60_000, 120_000));
        let peak = mean(&runs, |run| *run.sent_series[120..150].iter().max().unwrap_or(&0) as f64 / 300.0);
        let back = mean(&runs, |run| run.recovery(120_000).unwrap_or(120) as f64);
        let wasted = mean(&runs, |run| run.wasted as f64);
        let (p50, p99) = percentiles(&runs, 0, 0, 240_000);
        let name = policy.name();
        writeln!(text, "| {name} | {sent:.3} | {peak:.2} | {back:.1} | {wasted:.0} | {p50:.0} / {p99:.0} ms |")
            .expect("a string takes it");
        lines.push((policy, runs[0].sent_series[40..160].to_vec()));
    }
    text.push_str(ALONE);
    text.push_str("\n![Requests that reach the provider, each second](simulation.svg)\n");

    text.push_str(
        "\n## One client with a fallback, one request every 4 s\n\nThe same outage for a client that sends a request \
         every four seconds, and to a fallback while the primary is out, at 40 phases of the outage and with up to a \
         tenth of a second of jitter.\n\n",
    );
    let runs: Vec<(u64, u64)> = (0..40).map(|phase| failover(phase * 100, 100, phase)).collect();
    let most = runs.iter().map(|run| run.0).max().unwrap_or(0);
    let longest = runs.iter().map(|run| run.1).max().unwrap_or(0);
    writeln!(
        text,
        "At most {most} requests reach the dead primary; it is used again at most {:.1} s after its recovery.",
        longest as f64 / 1_000.0
    )
    .expect("a string takes it");

    text.push_str(
        "\n## Three times what the provider allows\n\n30 requests a second for five minutes against a limit of 600 a \
         minute, deadline 30 s. Measured once the minute's worth in the provider's bucket is used up. Who queues \
         has its answer late; who does not has it early or never.\n\n\
         | provider | policy | goodput, of the limit | requests answered 429 | p50 / p99 of successes |\n\
         | --- | --- | ---: | ---: | ---: |\n",
    );
    for (told, hints, headers) in [("hints and headers", true, true), ("hints", true, false), ("nothing", false, false)]
    {
        for policy in POLICIES {
            let runs = play_all(seeds, |seed| overload(seed, hints, headers), policy);
            let goodput = mean(&runs, steady_goodput) * 100.0;
            let rejected = mean(&runs, steady_rejected) * 100.0;
            let (p50, p99) = percentiles(&runs, 0, 60_000, 330_000);
            let name = policy.name();
            writeln!(text, "| {told} | {name} | {goodput:.1} % | {rejected:.1} % | {p50:.0} / {p99:.0} ms |")
                .expect("a string takes it");
        }
    }

    text.push_str(
        "\n## A brownout\n\nThe clients of the outage; three requests in ten fail for a minute. A retry budget of a \
         fifth is less than this would take: that is its price, and the reason why the outage above is survived.\n\n\
         | policy | requests per logical request | answered |\n| --- | ---: | ---: |\n",
    );
    for policy in POLICIES {
        let runs = play_all(seeds, brownout, policy);
        let sent = mean(&runs, |run| run.per_logical(60_000, 120_000));
        let good = mean(&runs, |run| {
            let arrived = Report::sum(&run.arrived_series, 60_000, 120_000);
            Report::sum(&run.good_series, 60_000, 120_000) as f64 / arrived as f64 * 100.0
        });
        writeln!(text, "| {} | {sent:.3} | {good:.1} % |", policy.name()).expect("a string takes it");
    }

    text.push_str(
        "\n## One tenant's batch flood\n\nInteractive work of 8 requests a second from 100 clients against a limit of \
         20 a second; then a tenant adds batch work of ten times the limit.\n\n\
         | policy | interactive p99 without | with the flood | ratio | interactive calls answered, with the flood |\n\
         | --- | ---: | ---: | ---: | ---: |\n",
    );
    for policy in POLICIES {
        let (calm, busy) = (play_all(seeds, quiet, policy), play_all(seeds, flood, policy));
        let (_, without) = percentiles(&calm, 0, 60_000, 330_000);
        let (_, with) = percentiles(&busy, 0, 60_000, 330_000);
        let answered = mean(&busy, |run| run.answered(0) * 100.0);
        let ratio = with / without;
        let name = policy.name();
        writeln!(text, "| {name} | {without:.0} ms | {with:.0} ms | {ratio:.2} | {answered:.1} % |")
            .expect("a string takes it");
    }
    std::fs::write("docs/simulation.md", text).expect("docs/ can be written");
    std::fs::write("docs/simulation.svg", chart(&lines)).expect("docs/ can be written");
}

const INTRODUCTION: &str = "# Simulation\n\n\
Generated by `cargo run --release --example simulate`; do not edit.\n\n\
A provider with a token bucket of requests a minute deep, latency with a tail (median 650 ms, two in a hundred five \
times as slow), and clients that arrive at random. Five ways to deal with failures: the loop that everybody has \
written (4 attempts, full jitter, no hints), the default of the official SDKs (2 retries, 0.5 to 8 s, hints of up to \
60 s), three layers that make three attempts each, and evenkeel with its defaults, once with one control plane for all \
clients (a server, a busy isolate) and once with one for each client, which knows nothing of the others (the worst \
case of many isolates). evenkeel here is the control plane and the backoff with a short loop around them.\n";

const ALONE: &str = "\nWhy the clients that know nothing of each other come back late: each has its own requests to learn from, one in \
five seconds. To be back five seconds after the recovery each would have to send every one of them to the dead \
provider, that is to have no breaker; the client of the next section may spend four on the whole minute. Cooldowns of \
7.5, 15 and 30 s are what these four allow, and most clients come upon the recovery within the last of them. A breaker \
that sees more traffic does not wait for its cooldown: once it has refused fifty calls it probes each second, which is \
why the one control plane is back within two seconds.\n";

fn play_all(seeds: u64, scenario: impl Fn(u64) -> simulated::Scenario, policy: Policy) -> Vec<Report> {
    (1..=seeds).map(|seed| simulated::play(&scenario(seed), policy)).collect()
}

fn percentiles(runs: &[Report], load: usize, from: u64, to: u64) -> (f64, f64) {
    let at = |per_mille| mean(runs, |run| run.percentile(load, per_mille, from, to) as f64);
    (at(500), at(990))
}

/// Requests a second over time, on a logarithmic scale.
fn chart(lines: &[(Policy, Vec<u64>)]) -> String {
    let (width, height, left, top) = (760.0, 300.0, 60.0, 20.0);
    let x = |second: f64| left + second * (width / 120.0);
    let y = |rate: f64| top + height - (rate + 1.0).log10() / 4.0 * height;
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1000 370\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"1000\" height=\"370\" fill=\"#ffffff\"/>\n",
    );
    let (from, to) = (x(20.0), x(80.0));
    writeln!(
        svg,
        "<rect x=\"{from:.0}\" y=\"{top}\" width=\"{:.0}\" height=\"{height}\" fill=\"#f3e3e0\"/><text x=\"{:.0}\" y=\"35\" fill=\"#803020\">outage</text>",
        to - from,
        from + 6.0
    )
    .expect("a string takes it");
    for rate in [0.0, 9.0, 99.0, 999.0, 9_999.0] {
        let at = y(rate);
        let label = if rate == 0.0 { 0.0 } else { rate + 1.0 };
        writeln!(
            svg,
            "<line x1=\"{left}\" x2=\"{:.0}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/><text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#444444\">{label}</text>",
            left + width,
            left - 6.0,
            at + 4.0
        )
        .expect("a string takes it");
    }
    let limit = y(300.0);
    writeln!(svg, "<line x1=\"{left}\" x2=\"{:.0}\" y1=\"{limit:.1}\" y2=\"{limit:.1}\" stroke=\"#888888\" stroke-dasharray=\"4 4\"/>", left + width)
        .expect("a string takes it");
    let colours = ["#b07aa1", "#f28e2b", "#c03030", "#1f6f4a", "#4e79a7"];
    for ((index, (policy, series)), colour) in lines.iter().enumerate().zip(colours) {
        let points: Vec<String> =
            series.iter().enumerate().map(|(s, rate)| format!("{:.1},{:.1}", x(s as f64), y(*rate as f64))).collect();
        let at = 40.0 + 20.0 * index as f64;
        writeln!(
            svg,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\" points=\"{}\"/>\n<text x=\"835\" y=\"{at:.0}\" fill=\"{colour}\">{}</text>",
            points.join(" "),
            policy.name()
        )
        .expect("a string takes it");
    }
    for second in (0..=120).step_by(20) {
        let at = x(f64::from(second));
        writeln!(svg, "<text x=\"{at:.0}\" y=\"338\" text-anchor=\"middle\" fill=\"#444444\">{} s</text>", second + 40)
            .expect("a string takes it");
    }
    svg.push_str(
        "<text x=\"60\" y=\"360\" fill=\"#444444\">requests that reach the provider, each second (logarithmic; dashed: its limit)</text>\n</svg>\n",
    );
    svg
}
