//! All measures, one after another.

use std::time::Duration;

use tokio::net::TcpStream;

use crate::apis;
use crate::http;
use crate::options::Options;
use crate::prefix;
use crate::process::{Server, raise_open_files};
use crate::rate::ask_for;
use crate::streams::{Found, read_for};
use crate::way::Way;

/// The minimum share of the bare proxy's requests per second.
const LEAST_SHARE: f64 = 0.5;
/// The targets: the same share; what is added to a delta and to the first token with one stream, as a multiple of what the bare
/// proxy adds; memory with 100 streams.
const TARGET_SHARE: f64 = 0.7;
const TARGET_DELTA: f64 = 1.25;
const TARGET_FIRST: f64 = 1.4;
/// The maximum resident memory of the gateway before the many streams, in bytes.
const MOST_MEMORY: u64 = 60 << 20;
/// The maximum latency that is added to a streamed answer, in microseconds: to the first token, a delta and an
/// argument.
const MOST_ADDED: [f64; 3] = [300.0, 100.0, 200.0];
/// The time between two deltas of a stream, in microseconds.
pub(crate) const PACE: u32 = 20_000;
/// The number of concurrent streams.
const MANY: u32 = 2_000;
/// The time between two deltas with many streams, in microseconds: each stream then takes six seconds.
const SLOW_PACE: u32 = 500_000;

/// Runs the selected measurements.
pub(crate) async fn measure(options: &Options) -> Result<(), String> {
    let files = raise_open_files();
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let served;
    let model = if let Some(address) = options.model {
        address
    } else {
        served = Server::start(&own, |address| {
            vec!["serve-model".to_owned(), address.to_string()]
        })?;
        served.address
    };
    let url = format!("http://{model}/v1");
    let bare = Server::start(&own, |address| {
        vec!["serve-bare".to_owned(), address.to_string(), url.clone()]
    })?;
    // Otherwise, a call is held back until its end, and the model's pauses would count.
    let configuration = "[models.\"*\"]\narguments = \"stream\"\n";
    let gateway = Server::gateway(&options.gateway, &url, configuration)?;
    let way = |name: &str, address, has_calls| Way {
        name: name.to_owned(),
        address,
        has_calls,
        headers: options.headers.clone(),
    };
    let mut ways = vec![
        way("no proxy", model, false),
        way("bare proxy", bare.address, false),
        way("plaincall", gateway.address, true),
    ];
    let others = options.beside.iter();
    ways.extend(others.map(|(name, address)| way(name, *address, false)));
    let mut verdict = Verdict::default();
    let memory = |when: &str| {
        let (now, most) = gateway.memory();
        let (now, most) = (megabytes(now), megabytes(most));
        println!("resident memory of plaincall {when}: {now}, at most {most}");
    };
    memory("at its start");
    if options.has("prefix") {
        prefix::shares(&mut verdict)?;
    }
    if options.has("agents") {
        apis::prepare(options, &gateway, &mut verdict).await?;
    }
    if options.has("apis") {
        apis::streams(options, &ways[0], &gateway, &mut verdict).await?;
    }
    if options.has("rate") {
        rates(options, &ways, [&bare, &gateway], &mut verdict).await?;
        memory("under these requests");
    }
    if options.has("streams") {
        for streams in [1, 100] {
            added(options, &ways, streams, &mut verdict).await?;
        }
        memory("under these streams");
    }
    let most = gateway.memory().1;
    let is_kept = most <= MOST_MEMORY;
    #[allow(clippy::cast_precision_loss, reason = "far less than 2^52")]
    let used = (most >> 20) as f64;
    verdict.target(
        "memory at most, in MB",
        used,
        is_kept,
        "at most 60, with 100 streams",
    );
    verdict.short.push(format!("{} at most", megabytes(most)));
    if options.has("many") {
        many(&ways, files, &mut verdict).await?;
        memory("under these streams");
        let with_many = megabytes(gateway.memory().1);
        verdict.short.push(format!("{with_many} at most with them"));
    }
    if most > MOST_MEMORY {
        verdict
            .broken
            .push(format!("plaincall has taken {}", megabytes(most)));
    }
    println!("\nplaincall in short: {}", verdict.short.join("; "));
    println!(
        "\ntargets, in text mode with streamed arguments:\n{}",
        verdict.targets.join("\n")
    );
    if verdict.broken.is_empty() || !options.is_checked {
        Ok(())
    } else {
        Err(verdict.broken.join("\n"))
    }
}

/// The figures of the gateway.
#[derive(Default)]
pub(crate) struct Verdict {
    /// The figures in one line.
    short: Vec<String>,
    /// The targets, one in a line.
    targets: Vec<String>,
    /// The promises that the gateway breaks.
    pub(crate) broken: Vec<String>,
}

impl Verdict {
    /// Reports a target. A missed target does not break a promise.
    pub(crate) fn target(&mut self, name: &str, value: f64, is_met: bool, target: &str) {
        let met = if is_met { "met" } else { "missed" };
        self.targets
            .push(format!("{met:<6}  {name}: {value:.2} ({target})"));
    }
}

/// Reports a failure of another gateway and continues. A failure of ours or of the bare proxy ends the measurement.
fn or_report<T: Default>(place: usize, found: Result<T, String>) -> Result<T, String> {
    match found {
        Err(error) if place > 2 => {
            let begin: String = error.chars().take(200).collect();
            println!("!! {begin}");
            Ok(T::default())
        }
        found => found,
    }
}

/// The results of a proxy, one for each round.
#[derive(Default)]
struct Turns {
    /// Requests per second over 32 connections.
    rates: Vec<f64>,
    /// The processor time of a request in the proxy process, in microseconds.
    used: Vec<f64>,
    /// The median time of a request over one connection, in microseconds.
    medians: Vec<f64>,
}

/// Measures requests that are not streamed.
async fn rates(
    options: &Options,
    ways: &[Way],
    servers: [&Server; 2],
    verdict: &mut Verdict,
) -> Result<(), String> {
    let time = Duration::from_secs_f64(options.seconds);
    let mut found: Vec<Turns> = ways.iter().map(|_| Turns::default()).collect();
    for _ in 0..options.turns {
        for (place, way) in ways.iter().enumerate() {
            let server = place.checked_sub(1).and_then(|place| servers.get(place));
            let before = server.map(|server| server.used());
            let times = or_report(place, ask_for(way, 32, time).await)?;
            #[allow(clippy::cast_precision_loss, reason = "far less than 2^52")]
            let count = times.len() as f64;
            let found = &mut found[place];
            found.rates.push(count / options.seconds);
            if let (Some(server), Some(before)) = (server, before) {
                let used = server.used().saturating_sub(before);
                found.used.push(used.as_secs_f64() * 1e6 / count);
            }
            found
                .medians
                .push(median(&mut ask_for(way, 1, time / 4).await?));
        }
    }
    println!(
        "\n{:<16} {:>12} {:>9} {:>9} {:>12} {:>12} {:>12}",
        "not streamed", "req/s, 32", "of bare", "by round", "CPU", "median, 1", "added"
    );
    // Other load can only slow a round down, so the best one is the most accurate.
    let best = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let least = |values: &[f64]| values.iter().copied().fold(f64::MAX, f64::min);
    for (place, way) in ways.iter().enumerate() {
        let share = best(&found[place].rates) / best(&found[1].rates);
        // The share in the same round; the median depends less on chance.
        let turns = found[place].rates.iter().zip(&found[1].rates);
        let mut shares: Vec<f64> = turns.map(|(one, bare)| one / bare).collect();
        let by_turn = median(&mut shares);
        let used = match found[place].used.as_slice() {
            [] => String::new(),
            used => format!("{:.0} µs", least(used)),
        };
        println!(
            "{:<16} {:>12.0} {share:>9.2} {by_turn:>9.2} {used:>12} {:>9.0} µs {:>9.0} µs",
            way.name,
            best(&found[place].rates),
            least(&found[place].medians),
            least(&found[place].medians) - least(&found[0].medians)
        );
        if way.has_calls {
            verdict.short.push(format!(
                "{:.2} of the bare proxy's requests",
                share.min(by_turn)
            ));
        }
        if way.has_calls {
            let share = share.min(by_turn);
            let name = "requests per second, as a share of the bare proxy's";
            verdict.target(name, share, share >= TARGET_SHARE, "at least 0.7");
        }
        if way.has_calls && share.min(by_turn) < LEAST_SHARE {
            verdict.broken.push(format!(
                "plaincall has {share:.2} of the requests a second of the bare proxy, not {LEAST_SHARE}"
            ));
        }
        if place > 2 && best(&found[place].rates) > best(&found[2].rates) {
            verdict
                .broken
                .push(format!("{} answers more requests than plaincall", way.name));
        }
    }
    Ok(())
}

/// Measures streams, relative to those without a proxy.
async fn added(
    options: &Options,
    ways: &[Way],
    streams: u32,
    verdict: &mut Verdict,
) -> Result<(), String> {
    pace(&ways[0], PACE).await?;
    let mut found = vec![Found::default(); ways.len()];
    let time = Duration::from_secs_f64(2.0 * options.seconds);
    for _ in 0..options.turns {
        for (place, way) in ways.iter().enumerate() {
            let spread = Duration::from_millis(240);
            let read = read_for(way, streams, spread, time).await;
            found[place].add(or_report(place, read)?);
        }
    }
    println!(
        "\n{:<16} {:>16} {:>16} {:>16}   (medians, {streams} at once; beside them what is added)",
        "", "first token", "a delta", "end of argument"
    );
    let medians = found.iter_mut().map(|found| {
        [&mut found.first, &mut found.deltas, &mut found.arguments].map(|times| median(times))
    });
    let medians: Vec<[f64; 3]> = medians.collect();
    for (way, medians_of_way) in ways.iter().zip(&medians) {
        print!("{:<16}", way.name);
        for (which, median) in medians_of_way.iter().enumerate() {
            let added = median - medians[0][which];
            print!(" {median:>6.0} {added:>6.0} µs");
            if way.has_calls && added > MOST_ADDED[which] {
                let name = ["the first token", "a delta", "the end of an argument"][which];
                verdict.broken.push(format!(
                    "with {streams} streams plaincall adds {added:.0} µs to {name}"
                ));
            }
        }
        println!();
        if way.has_calls {
            let added = |which: usize| medians_of_way[which] - medians[0][which];
            let (first, delta, end) = (added(0), added(1), added(2));
            let of_bare = |which: usize| added(which) / (medians[1][which] - medians[0][which]);
            if streams == 1 {
                let share = of_bare(1);
                let name = "added to a delta, as a multiple of the bare proxy's";
                verdict.target(name, share, share <= TARGET_DELTA, "at most 1.25");
                let share = of_bare(0);
                let name = "added to the first token, as a multiple of the bare proxy's";
                verdict.target(name, share, share <= TARGET_FIRST, "at most 1.4");
            }
            verdict.short.push(format!(
                "with {streams} streams {first:.0} µs to the first token, {delta:.0} µs to a delta, {end:.0} µs to the end of an argument"
            ));
        }
    }
    Ok(())
}

/// Measures many concurrent streams through the gateway.
async fn many(ways: &[Way], files: u64, verdict: &mut Verdict) -> Result<(), String> {
    if files < u64::from(MANY) * 3 {
        return Err(format!(
            "{MANY} streams need more open files than the {files} that are allowed: raise `ulimit -n`"
        ));
    }
    pace(&ways[0], SLOW_PACE).await?;
    let spread = Duration::from_secs(2);
    let reading = read_for(&ways[2], MANY, spread, Duration::ZERO);
    let counting = async {
        tokio::time::sleep(spread * 2).await;
        active(&ways[2]).await
    };
    let (found, active) = tokio::join!(reading, counting);
    let (mut found, active) = (found?, active?);
    let words = format!("{active} concurrent streams; all {MANY} are complete");
    let delta = median(&mut found.deltas);
    println!("\n{words}; median of a delta: {delta:.0} µs");
    verdict.short.push(words);
    if active < MANY {
        verdict
            .broken
            .push(format!("only {active} of {MANY} streams were concurrent"));
    }
    Ok(())
}

/// Returns the number of active requests of the gateway.
async fn active(gateway: &Way) -> Result<u32, String> {
    let text = asked(gateway, "GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n").await?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("plaincall_requests_active "));
    let number = line.and_then(|line| line.trim().parse().ok());
    number
        .ok_or_else(|| format!("the gateway does not report how many requests it answers: {text}"))
}

/// Sets the time between two deltas.
pub(crate) async fn pace(model: &Way, microseconds: u32) -> Result<(), String> {
    let request = format!("POST /pace/{microseconds} HTTP/1.1\r\ncontent-length: 0\r\n\r\n");
    asked(model, &request).await.map(drop)
}

/// Returns the answer to a request.
async fn asked(way: &Way, request: &str) -> Result<String, String> {
    let stream = TcpStream::connect(way.address).await;
    let stream = stream.map_err(|error| error.to_string())?;
    http::write(&stream, request.as_bytes()).await?;
    let mut answer = Vec::new();
    http::read_message(&stream, &mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Returns the median.
fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes >> 20)
}
