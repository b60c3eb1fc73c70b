//! The share of a prompt that is the same as in the request before, for each recorded client.

use plaincall_gateway::translation::{Adapter, Ask, Host};
use plaincall_gateway::{ModelSettings, Secret};
use plaincall_testkit::recordings::{Recording, recordings};
use plaincall_wire::openai::ChatCompletionRequest;

use crate::measure::Verdict;

/// The prompts of a conversation, in bytes.
#[derive(Default)]
struct Sizes {
    /// All prompts after the first.
    all: usize,
    /// The bytes at their beginning that the prompt before had too.
    kept: usize,
    /// The same without the last turn.
    earlier: usize,
    last: usize,
}

/// Prints the share for each client.
pub(crate) fn shares(verdict: &mut Verdict) -> Result<(), String> {
    println!(
        "\n{:<24} {:>9} {:>12} {:>9} {:>22}",
        "text mode", "requests", "last prompt", "kept", "all but the last turn"
    );
    for recording in recordings() {
        let sizes = sizes(&recording)?;
        #[allow(clippy::cast_precision_loss, reason = "far less than 2^52")]
        let share = |part: usize| 100.0 * part as f64 / sizes.all as f64;
        println!(
            "{:<24} {:>9} {:>9} kB {:>7.1} % {:>20.1} %",
            recording.client,
            recording.requests.len(),
            sizes.last / 1000,
            share(sizes.kept),
            share(sizes.earlier)
        );
        if sizes.kept < sizes.earlier {
            let lost = sizes.earlier - sizes.kept;
            verdict.broken.push(format!(
                "{}: {lost} bytes before the last turn change",
                recording.client
            ));
        }
    }
    Ok(())
}

fn sizes(recording: &Recording) -> Result<Sizes, String> {
    let adapter = Adapter::new(Secret::new("secret"), ModelSettings::default());
    let mut sizes = Sizes::default();
    let mut before: Option<String> = None;
    for request in &recording.requests {
        let host = Host::new(Secret::new("seed"), 0);
        let Ask::Asked(asked) = adapter.ask(recording.path, request.as_bytes(), host) else {
            return Err(format!("{}: a request is not converted", recording.client));
        };
        let request = plaincall_wire::read::<ChatCompletionRequest<'_>>(asked.body());
        let request = request.map_err(|error| error.to_string())?;
        // Up to the end of the last message, where the next one is added.
        let mut prompt = plaincall_wire::write(&request.messages);
        prompt.pop();
        if let Some(before) = &before {
            let same = before.bytes().zip(prompt.bytes());
            sizes.kept += same.take_while(|(one, other)| one == other).count();
            sizes.earlier += before.len();
            sizes.all += prompt.len();
        }
        sizes.last = prompt.len();
        before = Some(prompt);
    }
    Ok(sizes)
}
