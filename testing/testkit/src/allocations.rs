//! The number of allocations.

use alloc_tracker::Session;

/// Returns the number of allocations of a function in this thread. The program needs `alloc_tracker`'s allocator.
pub fn allocations(run: impl FnOnce()) -> u64 {
    let session = Session::new().no_stdout().no_file();
    let operation = session.operation("run");
    {
        let _span = operation.measure_thread().iterations(1);
        run();
    }
    let report = session.to_report();
    let counts = report
        .operations()
        .map(|(_, operation)| operation.total_allocations_count());
    counts.sum()
}
