//! All tests of the crate that use its public interface, in one program.

use plaincall_gateway::ModelSettings;

mod apis;
mod every_api;
mod invalid_calls;
mod messages;
mod native;
mod ollama;
mod replies;
mod reported;
mod responses;
mod serving;
mod stable_prefix;
mod translate;
mod transport;

/// Changes the default settings.
fn settings(set: impl FnOnce(&mut ModelSettings)) -> ModelSettings {
    let mut settings = ModelSettings::default();
    set(&mut settings);
    settings
}
