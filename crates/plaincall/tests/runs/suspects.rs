//! Calls with a near miss of their end marker in a value wait for the gate, and for nothing else.

use std::sync::{Arc, Mutex};

use plaincall::events::HeldReason;
use plaincall::gate::GateFuture;
use plaincall::policy::Echoes;
use plaincall::prompt::history::{ResultMessage, Status, results};
use plaincall::reply::{Document, ReplyCheck, Unclosed, Untrusted};
use plaincall::rules::Rule;
use plaincall::tool::NoTools;
use plaincall::{
    AllowAll, Decision, Dialect, Effect, Gate, Policy, ReadOnly, Request, Rules, Run, RunBuilder,
    Stop, Tool, Toolbox,
};
use plaincall_plan::{PlannedCall, ReplyAction, ReplyPlan};

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

/// Returns the error of the one call of a reply, as the model reads it.
async fn read_error(reply: &str, stop: Stop, dialect: &Dialect) -> String {
    let builder = builder(Effect::Write).gate(AllowAll);
    let mut run = builder.dialect(dialect.clone()).build().unwrap();
    let mut turn = run.turn();
    turn.feed(reply);
    let message = turn.finish(stop).await.message(dialect).unwrap();
    let error = message.text().split_once("Error: ").unwrap().1;
    error.lines().next().unwrap().to_owned()
}

/// A marker that the model is to write is never escaped. What it wrote itself is.
#[tokio::test(start_paused = true)]
async fn the_model_reads_the_marker_as_it_must_write_it() {
    let (block, emoji) = (Dialect::block().escaped(), Dialect::emoji().escaped());
    let keyed = [block.clone(), emoji.clone()].map(|dialect| dialect.keyed("k3v9"));
    let custom = block.clone().end("<<<DONE");
    let open = "!!!GADGET_START:save\n!!!ARG:text\nhello\nmore\n";
    for (dialect, reply, stop, end) in [
        (&block, open.to_owned(), Stop::Length, "!!!GADGET_END"),
        (&block, open.to_owned(), Stop::Broken, "!!!GADGET_END"),
        (&block, open.to_owned(), Stop::EndOfFile, "!!!GADGET_END"),
        (&custom, open.to_owned(), Stop::Length, "<<<DONE"),
        (
            &block,
            format!("{open}{}", CALLS[0].0),
            Stop::Natural,
            "!!!GADGET_END",
        ),
        (
            &block,
            format!("{open}!!!GADGT_END\n"),
            Stop::Natural,
            "!!!GADGET_END",
        ),
        (
            &block,
            CALLS[0].0.to_owned(),
            Stop::Natural,
            "!!!GADGET_END",
        ),
        (
            &emoji,
            "🛠️[save]\nhello\n".to_owned(),
            Stop::Natural,
            "🛠️[/end]",
        ),
        (&emoji, CALLS[1].0.to_owned(), Stop::Natural, "🛠️[/end]"),
        (
            &keyed[0],
            "!!!GADGET_STARTk3v9:save\n!!!ARGk3v9:text\nhello\n!!!GADGET_END\n!!!GADGET_ENDk3v9\n"
                .to_owned(),
            Stop::Natural,
            "!!!GADGET_ENDk3v9",
        ),
        (
            &keyed[1],
            "🛠️k3v9[save]\nhello\n🛠️[/end]\n".to_owned(),
            Stop::Length,
            "🛠️k3v9[/end]",
        ),
        // A last value of several lines, and one with an end of another format.
        (&block, open.to_owned(), Stop::Natural, "!!!GADGET_END"),
        (
            &block,
            format!("{open}</tool_call>\n"),
            Stop::Natural,
            "!!!GADGET_END",
        ),
        (
            &block,
            format!("{open}see !!!GADGET_START:save\n !!!GADGET_END\n"),
            Stop::Natural,
            "!!!GADGET_END",
        ),
        (
            &emoji,
            "🛠️[save /]\nhello\n🛠️[/end]\n".to_owned(),
            Stop::Natural,
            "🛠️[/end]",
        ),
        (
            &block,
            format!("!!!GADGET_SART:save\n{open}!!!GADGET_END\n"),
            Stop::Natural,
            "!!!GADGET_START:",
        ),
    ] {
        let error = read_error(&reply, stop, dialect).await;
        assert!(error.contains(&format!("`{end}`")), "{error}");
        assert!(!error.contains('\\'), "{error}");
    }
    // Its own text.
    let broken = format!("!!!GADGET_START: a call\n{open}!!!GADGET_END\n");
    let error = read_error(&broken, Stop::Natural, &block).await;
    assert!(error.starts_with("`!!!GADGET_START\\: a call`"), "{error}");
    assert!(error.contains("with `!!!GADGET_START:`,"), "{error}");
    let call = "🛠️[🛠️[/end] x]\n🛠️[/end]";
    for dialect in [&emoji, &Dialect::auto().escaped()] {
        let error = read_error(call, Stop::Natural, dialect).await;
        assert!(error.contains("`🛠️\\[/end`"), "{error}");
    }
}

/// The text of a program that runs the calls itself.
#[test]
fn a_plan_names_the_end_marker_as_it_must_be_written() {
    let dialect = Dialect::block().escaped();
    let check = ReplyCheck::new(&dialect, Unclosed::Reject).unwrap();
    let read = Document::read(CALLS[0].0, &dialect, NoTools, check, Stop::Natural);
    let read = read.unwrap();
    let mut call = PlannedCall::new("a");
    let held = read.decided().next().and_then(|read| read.held());
    call.held = held.map(ToString::to_string);
    let mut plan = ReplyPlan::new(None).unwrap();
    plan.add(call).unwrap();
    let Some(ReplyAction::Rejected(_, reason)) = plan.next_action() else {
        panic!("a held call is rejected");
    };
    let result = ResultMessage::new(Untrusted::new("save"), Untrusted::new("a"));
    let result = result
        .status(Status::Rejected)
        .error(Untrusted::new(reason));
    let message = results(&[result], &dialect).unwrap();
    let expected = "the end marker `!!!GADGET_END`; send it again\n";
    assert!(message.text().ends_with(expected), "{}", message.text());
}
