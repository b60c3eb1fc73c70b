//! All measures, one after another.

use std::time::Duration;

use crate::options::Options;
use crate::process::{Server, raise_open_files};
use crate::rate::ask_for;
use crate::streams::{Found, read_for};
use crate::way::Way;

/// The share of the bare proxy's requests a second that the gateway must reach.
const LEAST_SHARE: f64 = 0.6;
/// The most resident memory that the gateway may have had, in bytes.
const MOST_MEMORY: u64 = 60 << 20;
/// The most that may be added to a streamed answer, in microseconds: to the first token, to a delta, to an argument.
const MOST_ADDED: [f64; 3] = [300.0, 50.0, 200.0];
/// From one delta of a stream to the next, in microseconds.
const PACE: u32 = 20_000;
/// How many streams there are at once.
const MANY: u32 = 2_000;
/// From one delta of many streams to the next, in microseconds: each stream then takes six seconds.
const SLOW_PACE: u32 = 500_000;

/// Measures what is to be measured.
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
    let gateway = Server::start(&options.gateway, |address| {
        let words = [
            "serve",
            "--upstream",
            &url,
            "--listen",
            &address.to_string(),
        ];
        words.map(str::to_owned).to_vec()
    })?;
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
    let mut broken = Vec::new();
    println!(
        "plaincall serve: {} at its start",
        megabytes(gateway.memory().0)
    );
    if options.has("rate") {
        rates(options, &ways, &mut broken).await?;
        println!(
            "plaincall serve: {} at most after it",
            megabytes(gateway.memory().1)
        );
    }
    if options.has("streams") {
        for streams in [1, 100] {
            added(options, &ways, streams, &mut broken).await?;
        }
        println!(
            "plaincall serve: {} at most after it",
            megabytes(gateway.memory().1)
        );
    }
    if options.has("many") {
        many(&ways, files).await?;
        println!(
            "plaincall serve: {} at most after it",
            megabytes(gateway.memory().1)
        );
    }
    let most = gateway.memory().1;
    if most > MOST_MEMORY {
        broken.push(format!("plaincall has taken {}", megabytes(most)));
    }
    if broken.is_empty() || !options.is_checked {
        Ok(())
    } else {
        Err(broken.join("\n"))
    }
}

/// Requests that are not streamed.
async fn rates(options: &Options, ways: &[Way], broken: &mut Vec<String>) -> Result<(), String> {
    let time = Duration::from_secs_f64(options.seconds);
    let mut rates = vec![Vec::new(); ways.len()];
    let mut medians = vec![Vec::new(); ways.len()];
    for _ in 0..options.turns {
        for (place, way) in ways.iter().enumerate() {
            let times = ask_for(way, 32, time).await?;
            #[allow(clippy::cast_precision_loss, reason = "far less than 2^52")]
            rates[place].push(times.len() as f64 / options.seconds);
            let mut alone = ask_for(way, 1, time / 4).await?;
            medians[place].push(median(&mut alone));
        }
    }
    println!(
        "\n{:<16} {:>14} {:>10} {:>14} {:>12}",
        "", "req/s, 32", "of bare", "median, 1", "added"
    );
    // What else the machine does can only slow a turn down, so the best one tells most.
    let best = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let least = |values: &[f64]| values.iter().copied().fold(f64::MAX, f64::min);
    let direct = least(&medians[0]);
    for (place, way) in ways.iter().enumerate() {
        let share = best(&rates[place]) / best(&rates[1]);
        // The share in each turn, of which the middle one is less a matter of luck.
        let mut shares: Vec<f64> = rates[place]
            .iter()
            .zip(&rates[1])
            .map(|(one, bare)| one / bare)
            .collect();
        println!(
            "{:<16} {:>14.0} {:>5.2}/{:.2} {:>11.0} µs {:>9.0} µs",
            way.name,
            best(&rates[place]),
            share,
            median(&mut shares),
            least(&medians[place]),
            least(&medians[place]) - direct
        );
        if way.has_calls && share.max(median(&mut shares)) < LEAST_SHARE {
            broken.push(format!(
                "plaincall has {share:.2} of the requests a second of the bare proxy"
            ));
        }
        if place > 2 && best(&rates[place]) > best(&rates[2]) {
            broken.push(format!("{} answers more requests than plaincall", way.name));
        }
    }
    Ok(())
}

/// Streams, as they come beside those without a proxy.
async fn added(
    options: &Options,
    ways: &[Way],
    streams: u32,
    broken: &mut Vec<String>,
) -> Result<(), String> {
    pace(&ways[0], PACE).await?;
    let mut found = vec![Found::default(); ways.len()];
    let time = Duration::from_secs_f64(2.0 * options.seconds);
    for _ in 0..options.turns {
        for (place, way) in ways.iter().enumerate() {
            found[place].add(read_for(way, streams, Duration::from_millis(240), time).await?);
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
                broken.push(format!(
                    "with {streams} streams plaincall adds {added:.0} µs to {name}"
                ));
            }
        }
        println!();
    }
    Ok(())
}

/// Many streams at once through the gateway.
async fn many(ways: &[Way], files: u64) -> Result<(), String> {
    if files < u64::from(MANY) * 3 {
        return Err(format!(
            "{MANY} streams need more open files than the {files} that are allowed: raise `ulimit -n`"
        ));
    }
    pace(&ways[0], SLOW_PACE).await?;
    let spread = Duration::from_secs(2);
    let found = read_for(&ways[2], MANY, spread, Duration::ZERO).await?;
    let mut deltas = found.deltas;
    println!(
        "\n{MANY} streams at once: all whole, a delta takes {:.0} µs in the middle",
        median(&mut deltas)
    );
    Ok(())
}

/// Sets the time from one delta to the next.
async fn pace(model: &Way, microseconds: u32) -> Result<(), String> {
    let stream = tokio::net::TcpStream::connect(model.address).await;
    let stream = stream.map_err(|error| error.to_string())?;
    let request = format!("POST /pace/{microseconds} HTTP/1.1\r\ncontent-length: 0\r\n\r\n");
    crate::http::write(&stream, request.as_bytes()).await?;
    crate::http::read_message(&stream, &mut Vec::new()).await?;
    Ok(())
}

/// The value in the middle.
fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes >> 20)
}
