//! A model that writes calls without end, as weak models do in a loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plaincall_agent::model::{Finish, Model, ModelRequest, Reply};
use plaincall_agent::{Agent, AgentErrorKind};

const PIECES: usize = 1000;

/// Counts the pieces that are taken from it.
struct Looping(Arc<AtomicUsize>);

impl Model for Looping {
    fn name(&self) -> &'static str {
        "looping"
    }

    fn reply(&self, _: ModelRequest) -> Reply {
        let taken = Arc::clone(&self.0);
        Reply::new(|out| async move {
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
    let agent = Agent::builder(Looping(Arc::clone(&taken)));
    let error = agent.build().unwrap().ask("Go.").await.unwrap_err();
    assert!(matches!(error.kind, AgentErrorKind::Calls), "{error}");
    let taken = taken.load(Ordering::Relaxed);
    assert!((17..PIECES / 4).contains(&taken), "{taken}");
}
