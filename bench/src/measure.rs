//! The measurement of time and allocations.

use std::time::Duration;

use alloc_tracker::{Allocator, Session};

use crate::clock;

/// Counts every allocation of the process; see [`allocations`].
#[global_allocator]
static ALLOCATOR: Allocator<std::alloc::System> = Allocator::system();

/// The minimum time and the number of samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// The minimum time of a sample; a shorter run is repeated within the sample.
    pub(crate) sample: Duration,
    /// The number of samples of each run, in turn with the samples of the others.
    pub(crate) rounds: usize,
}

/// Takes samples of all `runs` in turn, and returns for each run the time of one execution, round by round.
///
/// They take turns, so that temporary load on the machine affects all of them.
pub(crate) fn interleaved(effort: Effort, runs: &[&dyn Fn()]) -> Vec<Vec<Duration>> {
    let repeats: Vec<u32> = runs
        .iter()
        .map(|run| {
            // The first execution warms the caches, the second shows how long one takes.
            run();
            let once = sample(run, 1).max(Duration::from_nanos(1));
            let count = effort.sample.as_nanos().div_ceil(once.as_nanos());
            u32::try_from(count).unwrap_or(u32::MAX).max(1)
        })
        .collect();
    let mut times = vec![Vec::with_capacity(effort.rounds); runs.len()];
    for _ in 0..effort.rounds {
        for ((run, repeats), times) in runs.iter().zip(&repeats).zip(&mut times) {
            times.push(sample(run, *repeats));
        }
    }
    times
}

fn sample(run: &dyn Fn(), repeats: u32) -> Duration {
    let start = clock::now();
    for _ in 0..repeats {
        run();
    }
    clock::now().saturating_sub(start) / repeats
}

/// Returns the number of allocations of `run`. Each growth of a string counts.
pub(crate) fn allocations(run: impl FnOnce()) -> u64 {
    let session = Session::new().no_stdout().no_file();
    let operation = session.operation("run");
    {
        let _span = operation.measure_thread().iterations(1);
        run();
    }
    session
        .to_report()
        .operations()
        .map(|(_, operation)| operation.total_allocations_count())
        .sum()
}

/// Returns the median of `numbers`, the lower one of two; 0 if there are none.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len().saturating_sub(1) / 2;
    numbers.get(middle).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::{allocations, median};

    #[test]
    fn allocations_are_counted() {
        let count = |count: u8| {
            allocations(|| {
                for byte in 0..count {
                    drop(black_box(Box::new(byte)));
                }
            })
        };
        assert_eq!((count(0), count(1), count(100)), (0, 1, 100));
    }

    #[test]
    fn the_median_is_the_middle_one() {
        let check = |numbers: &[f64], expected: f64| {
            assert!((median(numbers.to_vec()) - expected).abs() < f64::EPSILON);
        };
        check(&[3.0, 1.0, 2.0], 2.0);
        check(&[4.0, 1.0, 3.0, 2.0], 2.0);
        check(&[100.0, 1.0, 1.0], 1.0);
        check(&[], 0.0);
    }
}
