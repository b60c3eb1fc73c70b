//! A model that writes calls without end, as weak models do in a loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plaincall::{Effect, Tool, Toolbox};
use plaincall_agent::model::{Finish, Model, ModelRequest, Reply};
use plaincall_agent::{Agent, AgentErrorKind};

const PIECES: usize = 1000;

/// Writes a text first, and counts the pieces that are taken from it.
struct Looping(&'static str, Arc<AtomicUsize>);

impl Model for Looping {
    fn name(&self) -> &'static str {
        "looping"
    }

    fn reply(&self, _: ModelRequest) -> Reply {
        let (first, taken) = (self.0, Arc::clone(&self.1));
        Reply::new(move |out| async move {
            out.text(first).await;
            for _ in 0..PIECES {
                let call = "!!!GADGET_START:nope\n!!!GADGET_END\n";
                out.text(call.repeat(30)).await;
                taken.fetch_add(1, Ordering::Relaxed);
            }
            Ok(Finish::stop())
        })
    }
}

/// The limit of calls is reached after 17 pieces, and 64 KiB are 62 pieces.
#[tokio::test]
async fn a_reply_with_too_many_calls_is_not_read_to_its_end() {
    let taken = Arc::new(AtomicUsize::new(0));
    let agent = Agent::builder(Looping("", Arc::clone(&taken)));
    let error = agent.build().unwrap().ask("Go.").await.unwrap_err();
    assert!(matches!(error.kind, AgentErrorKind::Calls), "{error}");
    let taken = taken.load(Ordering::Relaxed);
    assert!((17..PIECES / 4).contains(&taken), "{taken}");
}

/// The result of the tool counts, however many calls follow it.
#[tokio::test]
async fn a_tool_that_finishes_before_too_many_calls_gives_the_answer() {
    let done = Tool::new("done", |(): (), _| async { Ok("All done.".to_owned()) });
    let tools = Toolbox::new([done.effect(Effect::Read).finishes()]).unwrap();
    let first = "!!!GADGET_START:done\n!!!GADGET_END\n";
    let agent = Agent::builder(Looping(first, Arc::default())).tools(tools);
    let answer = agent.build().unwrap().ask("Go.").await.unwrap();
    assert_eq!(answer.text, "All done.");
    assert_eq!(answer.finished_by.as_deref(), Some("done"));
}
