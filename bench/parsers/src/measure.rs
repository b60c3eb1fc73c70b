//! The measurement of time.

use std::time::Duration;

use crate::clock;

/// The minimum time of a sample; shorter runs are repeated within the sample.
const SAMPLE: Duration = Duration::from_millis(20);
/// The number of samples of each run, in turn.
const ROUNDS: usize = 7;
/// Slower inputs are read only twice.
const SLOW: Duration = Duration::from_millis(500);

/// Returns the minimum processor time of each run, in seconds.
///
/// The runs take turns, so that temporary load on the machine affects all of them.
pub fn best(runs: &mut [Box<dyn FnMut() + '_>]) -> Vec<f64> {
    let mut times: Vec<Duration> = runs.iter_mut().map(|run| sample(run, 1)).collect();
    let repeats: Vec<u32> = times.iter().map(|once| repeats(*once)).collect();
    for round in 0..ROUNDS {
        for ((run, repeats), best) in runs.iter_mut().zip(&repeats).zip(&mut times) {
            if round == 0 || *best < SLOW {
                *best = sample(run, *repeats).min(*best);
            }
        }
    }
    times.iter().map(Duration::as_secs_f64).collect()
}

fn repeats(once: Duration) -> u32 {
    let once = once.as_nanos().max(1);
    u32::try_from(SAMPLE.as_nanos().div_ceil(once)).unwrap_or(u32::MAX)
}

fn sample(run: &mut Box<dyn FnMut() + '_>, repeats: u32) -> Duration {
    let start = clock::now();
    for _ in 0..repeats {
        run();
    }
    clock::now().saturating_sub(start) / repeats
}
