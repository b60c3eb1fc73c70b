//! The tools of `tools.toml` as one program, for systems without a Unix shell. `rustc harbour.rs` builds it.

use std::error::Error;
use std::io::Read as _;
use std::thread::sleep;
use std::time::Duration;
use std::{env, fs, io};

const KNOTS: [f64; 24] = [
    6., 7., 9., 12., 15., 18., 21., 24., 22., 19., 17., 14., 12., 11., 10., 9., 8., 8., 7., 7., 6., 6., 5., 5.,
];

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["tide", hour] => {
            wait(1);
            let hour: f64 = hour.parse()?;
            println!("{:.2} m", 3.1 + 2.4 * ((hour - 2.) * 3.141_592_65 / 6.21).sin());
        }
        ["wind", from, to] => {
            wait(3);
            let hours = KNOTS.get(from.parse()?..=to.parse()?).ok_or("no such hours")?;
            println!("{:.1} knots", hours.iter().sum::<f64>() / hours.len() as f64);
        }
        ["write_manifest", ship, lines] => {
            let file = manifest(ship)?;
            wait(1);
            fs::write(file, format!("{lines}\n"))?;
            println!("{} containers listed", lines.lines().count());
        }
        ["weigh", ship] => {
            let file = manifest(ship)?;
            wait(2);
            let list = fs::read_to_string(file)?;
            let weights = list.lines().filter_map(|line| line.split(' ').nth(1));
            let weights = weights.map(str::parse::<f64>).collect::<Result<Vec<_>, _>>()?;
            println!("{:.1} t", weights.iter().sum::<f64>());
        }
        ["draught", ship, empty, per_centimetre] => {
            wait(1);
            let weight = number(dependencies()?.first().map(|(_, weight)| &**weight), 0)?;
            let draught = empty.parse::<f64>()? + weight / per_centimetre.parse::<f64>()? / 100.;
            println!("{ship} draws {draught:.2} m");
        }
        ["pilot_order", charted, limit] => {
            wait(1);
            print!("{}", order(charted.parse()?, limit.parse()?)?);
        }
        _ => return Err("unknown tool".into()),
    }
    Ok(())
}

/// Makes the tools slow enough to watch.
fn wait(seconds: u64) {
    sleep(Duration::from_secs(seconds));
}

/// Returns the file of a ship. Checks a name before it becomes part of a path.
fn manifest(ship: &str) -> Result<String, &'static str> {
    let is_name = ship.chars().all(|c| c.is_ascii_alphabetic());
    is_name.then(|| format!("{ship}.manifest")).ok_or("a ship's name has letters only")
}

/// The deeper ship takes the higher tide; the berth depends on the wind.
fn order(charted: f64, limit: f64) -> Result<String, Box<dyn Error>> {
    let (mut tides, mut ships, mut wind) = (Vec::new(), Vec::new(), 0.);
    for (id, output) in dependencies()? {
        if let Some(hour) = id.strip_prefix("tide_") {
            tides.push((number(Some(&output), 0)?, hour.to_owned()));
        } else if id.starts_with("draught_") {
            let name = output.split(' ').next().unwrap_or_default().to_owned();
            ships.push((number(Some(&output), 2)?, name));
        } else {
            wind = number(Some(&output), 0)?;
        }
    }
    tides.sort_by(|a, b| b.0.total_cmp(&a.0));
    ships.sort_by(|a, b| b.0.total_cmp(&a.0));
    let pairs = tides.iter().zip(&ships);
    let mut lines: Vec<String> = pairs
        .map(|((height, hour), (draught, ship))| {
            let water = charted + height;
            let under = water - draught;
            format!("{hour}:00  {ship:<7} draws {draught:.2} m in {water:.2} m of water: {under:.2} m under the keel\n")
        })
        .collect();
    lines.push(format!("Wind {wind} knots: berth {}\n", if wind < limit { 2 } else { 4 }));
    lines.sort();
    fs::write("pilot.order", lines.concat())?;
    Ok(lines.concat())
}

fn number(output: Option<&str>, word: usize) -> Result<f64, Box<dyn Error>> {
    let word = output.and_then(|output| output.split(' ').nth(word));
    Ok(word.ok_or("a result is missing")?.parse()?)
}

/// Returns the id and the first line of the output of each dependency, from the JSON on standard input.
fn dependencies() -> io::Result<Vec<(String, String)>> {
    let mut json = String::new();
    io::stdin().read_to_string(&mut json)?;
    let text = |part: &str, key: &str| {
        let (_, value) = part.split_once(&format!("\"{key}\":\""))?;
        let value = value.split('"').next()?.split("\\n").next()?;
        // `println` of Rust ends lines alike everywhere; other programs of Windows write `\r\n`.
        Some(value.trim_end_matches("\\r").to_owned())
    };
    let parts = json.split('{');
    Ok(parts.filter_map(|part| Some((text(part, "id")?, text(part, "output")?))).collect())
}
