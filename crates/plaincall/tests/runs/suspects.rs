//! Calls with a near miss of their end marker in a value wait for the gate, and for nothing else.

use std::sync::{Arc, Mutex};

use plaincall::{
    AllowAll, Decision, Effect, Gate, Policy, ReadOnly, Request, Rules, Run, RunBuilder, Stop,
    Tool, Toolbox, call::Unclosed, events::HeldReason, gate::GateFuture, policy::Echoes,
    rules::Rule,
};

/// A call for each syntax that probably ended at `end`, and the reason in its error.
const CALLS: [(&str, &str); 3] = [
    (
        "!!!GADGET_START:save\n!!!ARG:text\nhello\n!!!GADGT_END\nprose\n!!!GADGET_END\n",
        "this call may have been meant to end earlier (line 4 of the call, in `text`: `!!!GADGT_END` looks like the end marker `!!!GADGET_END`)",
    ),
    (
        "🛠️[save]\nhello\n🛠️ [/end]\nprose\n🛠️[/end]\n",
        "this call may have been meant to end earlier (line 3 of the call: `🛠️ [/end]` looks like the end marker `🛠️[/end]`)",
    ),
    (
        "🛠️[save]\nhello\n🛠️[save]\nprose\n🛠️[/end]\n",
        "this call may have been meant to end earlier (line 3 of the call: `🛠️[save]` begins a call, so the end marker before it may be missing)",
    ),
];

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

fn builder(effect: Effect) -> RunBuilder {
    // Its text mentions no call.
    let save = Tool::new("save", |arguments: Text, _| async move {
        Ok(arguments.text.len().to_string())
    });
    let save = save.body("text").effect(effect);
    Run::builder(Toolbox::new([save]).unwrap())
}

/// Returns the result of the one call of a reply.
async fn end(builder: RunBuilder, reply: &str) -> String {
    let mut run = builder.build().unwrap();
    let mut turn = run.turn();
    turn.feed(reply);
    let results = turn.finish(Stop::Natural).await;
    let text = results[0].output.as_ref().or(results[0].error.as_ref());
    format!("{} {}", results[0].status, text.unwrap())
}

#[tokio::test(start_paused = true)]
async fn rules_do_not_approve_held_calls() {
    let allow = || Rules::new([Rule::allow(["*"])]);
    for effect in [Effect::Read, Effect::Idempotent, Effect::Write] {
        let builder = || builder(effect);
        let ignored = Policy::default()
            .echoes(Echoes::Ignored)
            .unclosed(Unclosed::Run);
        for (call, reason) in CALLS {
            for builder in [
                builder(),
                builder().gate(ReadOnly),
                builder().gate(AllowAll),
                builder().rules(allow()),
                builder().rules(allow()).gate(AllowAll),
                builder().gate(AllowAll).policy(ignored),
            ] {
                let end = end(builder, call).await;
                let expected = format!("rejected {reason}. Such a call runs only with approval");
                assert!(end.starts_with(&expected), "{end}");
                assert!(
                    end.contains("no one can be asked. Otherwise write"),
                    "{end}"
                );
            }
        }
    }
}

/// Approves all calls of the tool, and records the requests.
#[derive(Clone, Default)]
struct Person(Arc<Mutex<Vec<Option<HeldReason>>>>);

impl Gate for Person {
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a> {
        self.0.lock().unwrap().push(request.held.clone());
        Box::pin(async { Ok(Decision::Always) })
    }
}

#[tokio::test(start_paused = true)]
async fn the_gate_decides_about_this_very_call() {
    for (call, reason) in CALLS {
        let person = Person::default();
        let mut run = builder(Effect::Read).gate(person.clone()).build().unwrap();
        for _ in 0..2 {
            let mut turn = run.turn();
            turn.feed(call);
            assert!(turn.finish(Stop::Natural).await.all_ok());
        }
        let asked = std::mem::take(&mut *person.0.lock().unwrap());
        let asked: Vec<String> = asked
            .iter()
            .map(|held| format!("this call {}", held.as_ref().unwrap()))
            .collect();
        assert_eq!(asked, [reason, reason]);
    }
}
