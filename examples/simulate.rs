//! Plays the simulations and prints the raw numbers.
#[path = "../tests/simulated/mod.rs"]
mod simulated;
use evenkeel::control::Priority;
use simulated::*;
fn load(per_second: f64) -> Load {
    Load { per_second, clients: 1_000, priority: Priority::Interactive, tenant: "", deadline: 30_000 }
}
fn main() {
    let base = Scenario {
        seed: 1,
        length: 240_000,
        limit_per_minute: 18_000,
        outage: Some((60_000, 120_000)),
        brownout: None,
        hints: true,
        headers: true,
        loads: vec![load(200.0)],
    };
    for p in POLICIES {
        let t = std::time::Instant::now();
        let r = play(&base, p);
        println!(
            "outage {:<26} per logical {:.3} good {} recov {:?} peak {} p99 {} {:?}",
            p.name(),
            r.per_logical(60_000, 120_000),
            r.succeeded,
            r.recovery(120_000, 200.0),
            r.sent_series[120..150].iter().max().unwrap(),
            r.percentile(0, 990, 0, 300_000),
            t.elapsed()
        );
    }
    for (hints, headers) in [(true, true), (true, false), (false, false)] {
        let s = Scenario {
            seed: 1,
            length: 360_000,
            limit_per_minute: 600,
            outage: None,
            hints,
            headers,
            loads: vec![load(30.0)],
            ..base.clone()
        };
        for p in POLICIES {
            let r = play(&s, p);
            let sent = Report::sum(&r.sent_series, 60_000, 360_000);
            println!(
                "3x {hints} {headers} {:<26} goodput {:.3} rejected {:.3} p50 {} p99 {}",
                p.name(),
                Report::sum(&r.good_series, 60_000, 360_000) as f64 / 3000.0,
                Report::sum(&r.rejected_series, 60_000, 360_000) as f64 / sent as f64,
                r.percentile(0, 500, 60_000, 360_000),
                r.percentile(0, 990, 60_000, 360_000)
            );
        }
    }
    let s = Scenario { outage: None, brownout: Some((60_000, 120_000, 0.3)), ..base.clone() };
    for p in POLICIES {
        let r = play(&s, p);
        println!(
            "brownout {:<26} per logical {:.3} goodput {:.3}",
            p.name(),
            r.per_logical(60_000, 120_000),
            Report::sum(&r.good_series, 60_000, 120_000) as f64
                / Report::sum(&r.arrived_series, 60_000, 120_000) as f64
        );
    }
    for p in POLICIES {
        let quiet = Scenario {
            seed: 1,
            length: 360_000,
            limit_per_minute: 1200,
            outage: None,
            loads: vec![Load { per_second: 8.0, clients: 100, ..load(8.0) }],
            ..base.clone()
        };
        let mut flood = quiet.clone();
        flood.loads.push(Load {
            per_second: 200.0,
            clients: 10,
            priority: Priority::Batch,
            tenant: "flood",
            deadline: 30_000,
        });
        let (a, b) = (play(&quiet, p), play(&flood, p));
        println!(
            "flood {:<26} p50 {} -> {} p99 {} -> {} success {:.3} -> {:.3}",
            p.name(),
            a.percentile(0, 500, 60_000, 360_000),
            b.percentile(0, 500, 60_000, 360_000),
            a.percentile(0, 990, 60_000, 360_000),
            b.percentile(0, 990, 60_000, 360_000),
            a.latencies.iter().filter(|l| l.1 == 0).count() as f64 / 2880.0,
            b.latencies.iter().filter(|l| l.1 == 0).count() as f64 / 2880.0
        );
    }
    for ph in [0, 500, 1000, 2000, 3000, 3900] {
        println!("failover phase {ph}: {:?} {:?}", failover(ph, 0, 1), failover(ph, 100, 1));
    }
}
