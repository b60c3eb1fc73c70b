//! Comparisons of models with known skills.

mod effects;
mod failing;
mod references;
mod results;
