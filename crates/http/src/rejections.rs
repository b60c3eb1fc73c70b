//! A memory of what a server has rejected recently.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a rejection counts.
const TIME: Duration = Duration::from_mins(10);
/// The maximum number of remembered names. The oldest is forgotten first.
const NAMES: usize = 64;

/// Remembers for ten minutes for which models a server rejected a feature, so that no request tries it in vain.
///
/// ```
/// use plaincall_http::Rejections;
///
/// let rejections = Rejections::default();
/// rejections.add("small");
/// assert!(rejections.contains("small"));
/// assert!(!rejections.contains("large"));
/// ```
#[derive(Debug, Default)]
pub struct Rejections(Mutex<Vec<(String, Instant)>>);

impl Rejections {
    /// Returns whether there was a rejection for this model recently.
    pub fn contains(&self, model: &str) -> bool {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut names = names.iter();
        names.any(|(name, at)| name == model && at.elapsed() < TIME)
    }

    /// Remembers a rejection for this model.
    pub fn add(&self, model: &str) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.retain(|(name, at)| name != model && at.elapsed() < TIME);
        if names.len() >= NAMES {
            names.remove(0);
        }
        names.push((model.to_owned(), Instant::now()));
    }
}
