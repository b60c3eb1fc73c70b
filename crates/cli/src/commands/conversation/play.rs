//! The event loop of a question: from the first event to the answer or its cancellation.

use std::time::{Duration, Instant};

use plaincall::Stop;
use plaincall_agent::{AgentError, AgentEvent, AgentStream, Answer, Progress};

use crate::commands::conversation::build::LONGER;
use crate::terminal::displays::Displays;
use crate::terminal::event::UiEvent;
use crate::terminal::human::{self, count};
use crate::terminal::interrupts::{Interrupt, Interrupts};
use crate::terminal::printer::post;

/// How many characters of a message to the model are shown.
const MAX_SHOWN: usize = 160;

/// How a question ended.
pub(crate) enum Ended {
    /// With an answer or an error.
    Finished(Result<Answer, AgentError>, Option<Interrupt>),
    /// Aborted by a second signal.
    Aborted(Interrupt),
}

/// Runs a question. The first signal cancels it; the second aborts it.
pub(crate) async fn play(
    mut stream: AgentStream<'_>,
    displays: &mut Displays,
    interrupts: &mut Interrupts,
) -> Ended {
    let started = Instant::now();
    let cancel = stream.cancellation();
    let quit = cancel.clone();
    displays.prompter.set_quit(move || quit.cancel());
    displays.show(UiEvent::Start).await;
    let mut ticks = displays.ticks();
    let mut first_interrupt: Option<Interrupt> = None;
    loop {
        tokio::select! {
            biased;
            interrupt = interrupts.next() => {
                if first_interrupt.is_some() || interrupt.is_urgent() {
                    displays.abandon();
                    return Ended::Aborted(interrupt);
                }
                first_interrupt = Some(interrupt);
                post(&displays.events, UiEvent::Stopping);
                cancel.cancel();
            }
            event = stream.next() => match event {
                Some(event) => if let Some(event) = shown(event) {
                    displays.show(event).await;
                },
                None => break,
            },
            () = ticks.next() => displays.tick(),
        }
    }
    let ended = stream.answer().await;
    let progress = match &ended {
        Ok(answer) => &answer.progress,
        Err(error) => &*error.progress,
    };
    let parts = match progress.turns {
        // The error is all that happened.
        0 if ended.is_err() => Vec::new(),
        _ => totals(progress, started.elapsed()),
    };
    let mut totals = Some(UiEvent::Totals {
        parts,
        is_answered: ended.is_ok(),
    });
    // If both outputs go to the same place, the totals precede the answer, in the order of the events.
    if let Some(totals) = totals.take_if(|_| displays.draws_besides_answer()) {
        displays.show(totals).await;
    }
    displays.caught_up().await;
    if let Ok(answer) = &ended {
        displays
            .answer(&answer.text, answer.finished_by.is_some())
            .await;
        displays.caught_up().await;
    }
    if let Some(totals) = totals {
        displays.show(totals).await;
    }
    Ended::Finished(ended, first_interrupt)
}

/// Converts an event for the displays.
fn shown(event: AgentEvent) -> Option<UiEvent> {
    Some(match event {
        AgentEvent::TurnBegin { turn } => UiEvent::TurnStart(turn),
        AgentEvent::Text(text) => UiEvent::Text(text),
        AgentEvent::Reasoning(text) => UiEvent::Reasoning(text),
        AgentEvent::Call { call, id, name } => UiEvent::Call { call, id, name },
        AgentEvent::Value {
            call,
            pointer,
            text,
        } => UiEvent::Value {
            call,
            pointer,
            text,
        },
        AgentEvent::Run(event) => UiEvent::Run(event),
        AgentEvent::TurnEnd { .. } => UiEvent::TurnEnd,
        AgentEvent::Retry(retry) => {
            let retrying = format!(
                "retrying in {} ({} of {})",
                human::time(retry.delay),
                retry.attempt,
                retry.max_retries
            );
            // The reason is shown once, and again at the end if the error persists.
            UiEvent::Note(if retry.attempt == 1 {
                let error = retry.error.to_string();
                let separator = if error.ends_with('?') { "" } else { ";" };
                format!("{error}{separator} {retrying}")
            } else {
                retrying
            })
        }
        AgentEvent::Message { text } => {
            let mut lines = text.trim().lines().filter(|line| !line.is_empty());
            let mut line = lines.next().unwrap_or_default().to_owned();
            if line.ends_with(':') {
                let next = lines.next().unwrap_or_default();
                line = format!("{line} {}", next.trim_start_matches("- "));
            }
            let line: String = line.chars().take(MAX_SHOWN).collect();
            UiEvent::Note(format!("message to the model: {line}"))
        }
        AgentEvent::Shortened { results, bytes } => UiEvent::Note(format!(
            "the conversation is long: {} shortened by {bytes} bytes",
            if results == 1 {
                "1 result was".to_owned()
            } else {
                format!("{results} results were")
            }
        )),
        _ => return None,
    })
}

/// Returns the totals of an answer: `2 turns`, `3 calls (1 failed)`, `1204 input tokens, 56 output tokens`, `3.4 s`.
fn totals(progress: &Progress, time: Duration) -> Vec<String> {
    let calls = progress.calls.total() as usize;
    let not_ok = calls.saturating_sub(progress.calls.ok as usize);
    let mut parts = vec![count(progress.turns as usize, "turn")];
    parts.push(match not_ok {
        0 => count(calls, "call"),
        not_ok => format!("{} ({not_ok} failed)", count(calls, "call")),
    });
    let usage = progress.usage;
    if usage.total() > 0 {
        let prefix = if progress.is_usage_estimated {
            "about "
        } else {
            ""
        };
        parts.push(format!("{prefix}{}", human::tokens(usage)));
    }
    parts.push(human::time(time));
    parts
}

/// Returns the warning about an answer whose reply did not end naturally.
pub(crate) fn warning(answer: &Answer) -> Option<String> {
    let end = match (answer.finish.stop, &answer.finish.reason) {
        (Stop::Natural | Stop::EndOfFile, _) => return None,
        (Stop::Length, _) => "reached its length limit".to_owned(),
        (Stop::Broken, None) => "ended without a reason".to_owned(),
        (Stop::Broken, Some(reason)) => format!("ended with the reason `{reason}`"),
    };
    let advice = match answer.finish.stop {
        Stop::Length => format!("; {LONGER}"),
        _ => String::new(),
    };
    Some(format!("the reply {end} and may be incomplete{advice}"))
}
