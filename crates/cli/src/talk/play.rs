//! One question, from its first event to its answer or to the signal that calls it off.

use std::future::pending;
use std::time::Instant;

use plaincall::Stop;
use plaincall_agent::{AgentError, Answer, Asking};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::run::interrupts::{Interrupt, Interrupts};
use crate::run::news::News;
use crate::talk::build::LONGER;
use crate::talk::stage::Stage;

/// How a question ended.
pub(crate) enum Ended {
    /// With an answer, or with the reason why there is none.
    Settled(Result<Answer, AgentError>, Option<Interrupt>),
    /// Somebody does not want to wait for anything any more.
    AtOnce(Interrupt),
}

/// Plays a question. The first signal cancels it, the second ends it at once.
pub(crate) async fn play(
    mut asking: Asking<'_>,
    stage: &Stage,
    interrupts: &mut Interrupts,
) -> Ended {
    let begun = Instant::now();
    let cancel = asking.cancellation();
    let quit = cancel.clone();
    stage.desk.set_quit(move || quit.cancel());
    stage.show(News::Begin).await;
    let mut frames = stage.frame.map(|frame| {
        let mut frames = interval(frame);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        frames
    });
    let mut first: Option<Interrupt> = None;
    loop {
        tokio::select! {
            biased;
            interrupt = interrupts.next() => {
                if first.is_some() || interrupt.is_urgent() {
                    stage.left();
                    return Ended::AtOnce(interrupt);
                }
                first = Some(interrupt);
                stage.stopping();
                cancel.cancel();
            }
            event = asking.next() => match event {
                Some(event) => stage.tell(event).await,
                None => break,
            },
            () = next(&mut frames) => stage.tick(),
        }
    }
    let ended = asking.answer().await;
    let progress = match &ended {
        Ok(answer) => answer.progress,
        Err(error) => *error.progress,
    };
    let totals = News::Totals {
        progress,
        time: begun.elapsed(),
        is_answered: ended.is_ok(),
    };
    // Where both outputs go to one place, what is written has the order in which it happened.
    let (before, behind) = if stage.draws_beside_the_answer() {
        (Some(totals), None)
    } else {
        (None, Some(totals))
    };
    if let Some(totals) = before {
        stage.show(totals).await;
    }
    stage.caught_up().await;
    if let Ok(answer) = &ended {
        stage.answer(answer).await;
        stage.caught_up().await;
    }
    if let Some(totals) = behind {
        stage.show(totals).await;
    }
    Ended::Settled(ended, first)
}

/// What is to be said about an answer whose reply had no natural end.
pub(crate) fn doubt(answer: &Answer) -> Option<String> {
    let how = match (answer.finish.stop, &answer.finish.reason) {
        (Stop::Natural | Stop::EndOfFile, _) => return None,
        (Stop::Length, _) => "was cut off by its limit of length".to_owned(),
        (Stop::Broken, None) => "ended without a reason".to_owned(),
        (Stop::Broken, Some(reason)) => format!("ended with the reason `{reason}`"),
    };
    let advice = match answer.finish.stop {
        Stop::Length => format!("; {LONGER}"),
        _ => String::new(),
    };
    Some(format!("the reply {how}, so it may not be whole{advice}"))
}

/// Waits for the next frame, if there are any.
async fn next(frames: &mut Option<Interval>) {
    match frames {
        Some(frames) => {
            frames.tick().await;
        }
        None => pending().await,
    }
}
