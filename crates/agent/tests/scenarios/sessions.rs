//! Conversations that are resumed from their log.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use plaincall_agent::model::ScriptedReply;
use plaincall_agent::plaincall::{Dialect, Effect, Log, Policy, Tool, Toolbox};
use plaincall_agent::{Agent, AgentLimits, Conversation, Message, Role, Scripted, Usage};
use serde_json::json;

/// The replies of the model, in order.
const REPLIES: &[&str] = &[
    "I look.\n!!!GADGET_START:Look:a\n!!!ARG:at\nthe sky\n!!!GADGET_END\n!!!GADGET_START:Look\n!!!GADGET_END\n",
    "!!!GADGET_START:Write:w:a\n!!!ARG:text\nblue !!!ARG\\:x\n!!!GADGET_END\n",
    "It is blue.",
    "!!!GADGET_START:Look\n!!!ARG:at\nthe sea\n!!!GADGET_END",
    "Grey.",
];

const QUESTIONS: &[&str] = &["What colour is the !!!ARG:sky?", "And the sea?"];

#[derive(Clone, Default)]
struct Counts {
    writes: Arc<AtomicU32>,
}

fn agent(model: Scripted, counts: &Counts, is_keyed: bool) -> Agent {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Look {
        at: String,
    }
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Write {
        text: String,
    }
    let look = Tool::new("Look", |look: Look, _| async move {
        Ok(format!("{}: {}", look.at, "x".repeat(2_000)))
    });
    let writes = Arc::clone(&counts.writes);
    let write = Tool::new("Write", move |write: Write, _| {
        let writes = Arc::clone(&writes);
        async move {
            writes.fetch_add(1, Ordering::Relaxed);
            Ok(write.text)
        }
    });
    let tools = [look.effect(Effect::Read), write, Tool::read_result()];
    let mut builder = Agent::builder(model)
        .tools(Toolbox::new(tools).unwrap())
        .dialect(Dialect::block())
        .system("Be short.")
        .limits(AgentLimits::default())
        .policy(Policy::default().result_limit(500))
        .allow_all();
    if is_keyed {
        builder = builder.keyed();
    }
    builder.build().unwrap()
}

async fn talk(agent: &Agent, path: &Path) -> Conversation {
    let log = Log::create(path).unwrap();
    let mut talk = agent
        .session(log, json!({"title": "colours"}))
        .await
        .unwrap();
    for question in QUESTIONS {
        talk.ask(question).await.unwrap();
    }
    talk
}

/// Wherever the log ends, the conversation contains the messages until then, and continues.
#[tokio::test]
async fn a_session_resumes_wherever_its_log_ends() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    let counts = Counts::default();
    let first = agent(Scripted::new(REPLIES.iter().copied()), &counts, false);
    let talk = talk(&first, &whole).await;
    let messages = talk.messages();
    talk.close().await.unwrap();
    assert_eq!(counts.writes.load(Ordering::Relaxed), 1);
    assert_eq!(messages.len(), 11);

    let text = std::fs::read(&whole).unwrap();
    let line_ends = (1..=text.len()).filter(|&end| text[end - 1] == b'\n');
    for (number, end) in line_ends.enumerate() {
        let cut = folder.path().join(number.to_string());
        std::fs::write(&cut, &text[..end]).unwrap();
        let kept = String::from_utf8_lossy(&text[..end]);
        let counts = Counts::default();
        let again = agent(Scripted::new(["Let us continue."]), &counts, false);
        let log = Log::resume(&cut).unwrap();
        let mut talk = again.session(log, json!(null)).await.unwrap();
        // The model's text is there byte for byte, and results are reported in the same form.
        let resumed = talk.messages();
        let is_whole_turn = !kept.contains("\"event\":\"turn\"")
            || kept.rfind("\"event\":\"turn_end\"") > kept.rfind("\"event\":\"turn\"");
        for (message, before) in resumed.iter().zip(&*messages) {
            assert_eq!(message.role, before.role, "line {number}");
            if is_whole_turn || message.role == Role::System {
                assert!(
                    before.text.starts_with(&*message.text),
                    "line {number}: {message:?}"
                );
            }
        }
        let answer = talk.ask("Well?").await.unwrap();
        assert_eq!(answer.text, "Let us continue.");
        talk.close().await.unwrap();
        assert!(
            counts.writes.load(Ordering::Relaxed) == 0,
            "line {number}: a call was run that the model wrote before"
        );

        // And that is in the log too.
        let once_more = agent(Scripted::new(["Yes."]), &counts, false);
        let log = Log::resume(&cut).unwrap();
        let messages = once_more
            .session(log, json!(null))
            .await
            .unwrap()
            .messages();
        let last: Vec<&str> = messages
            .iter()
            .rev()
            .take(2)
            .map(|message| &*message.text)
            .collect();
        assert_eq!(last[0], "Let us continue.", "line {number}");
        assert!(last[1].ends_with("Well?"), "line {number}: {}", last[1]);
    }
}

/// The complete log restores the whole conversation, message for message.
#[tokio::test]
async fn a_resumed_session_sends_the_same_messages() {
    for is_keyed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let counts = Counts::default();
        let first = agent(Scripted::new(["Hello.", "Good night."]), &counts, is_keyed);
        let talk = talk(&first, &path).await;
        let messages: Vec<Message> = talk.messages().to_vec();
        let dialect = talk.dialect().clone();
        talk.close().await.unwrap();

        let again = agent(Scripted::new(["I am back."]), &counts, is_keyed);
        let log = Log::resume(&path).unwrap();
        let talk = again.session(log, json!(null)).await.unwrap();
        assert_eq!(talk.messages().to_vec(), messages);
        assert_eq!(talk.dialect(), &dialect);
        assert_eq!(talk.turns(), 2);
    }
}

/// The process dies after the question, in both syntaxes. Asked again, the model reads it once; a later one is new.
#[tokio::test]
async fn a_question_without_a_reply_is_not_repeated() {
    for dialect in [Dialect::block(), Dialect::emoji()] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let build = |model: Scripted| {
            let builder = Agent::builder(model).dialect(dialect.clone());
            builder.build().unwrap()
        };
        // The model has no reply.
        let agent = build(Scripted::new(Vec::<String>::new()));
        let log = Log::create(&path).unwrap();
        let mut talk = agent.session(log, json!(null)).await.unwrap();
        talk.attach("a.txt", "a document");
        talk.ask("What is it?").await.unwrap_err();
        talk.close().await.unwrap();

        let again = build(Scripted::new(["A text.", "Still a text."]));
        let log = Log::resume(&path).unwrap();
        let mut talk = again.session(log, json!(null)).await.unwrap();
        let before = talk.messages();
        talk.attach("a.txt", "a document");
        talk.ask("What is it?").await.unwrap();
        let messages = talk.messages();
        assert_eq!(messages.len(), before.len() + 1);
        assert_eq!(messages[0], before[0]);
        assert_eq!(messages[0].text.matches("What is it?").count(), 1);
        talk.ask("What is it?").await.unwrap();
        assert_eq!(talk.messages().len(), before.len() + 3);
        talk.close().await.unwrap();

        // The log contains it twice: once for each reply.
        let text = std::fs::read_to_string(&path).unwrap();
        let asked = text
            .lines()
            .filter(|line| line.contains("\"event\":\"message\"") && line.contains("What is it?"));
        assert_eq!(asked.count(), 2);
    }
}

/// The tokens of replies are in the log, and those of an interrupted subagent count again when it continues.
#[tokio::test]
async fn tokens_in_the_log_count_again() {
    const LOOK: &str = "!!!GADGET_START:Look\n!!!ARG:at\nthe sky\n!!!GADGET_END\n";
    const TASK: &str = "!!!GADGET_START:Scout\n!!!ARG:task\nLook.\n!!!GADGET_END\n";
    let reply = |(text, input): (&str, u64)| {
        ScriptedReply::new()
            .text(text)
            .usage(Usage::new(input, 10).cached(7))
    };
    let lead = |own: &[(&str, u64)], of_scout: &[(&str, u64)]| {
        let scout = Scripted::new(of_scout.iter().copied().map(reply));
        let scout = agent(scout, &Counts::default(), false);
        let model = Scripted::new(own.iter().copied().map(reply));
        let lead = Agent::builder(model).subagent("Scout", "Looks.", scout);
        lead.build().unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let whole = lead(
        &[(TASK, 100), ("Blue.", 400)],
        &[(LOOK, 200), ("It is blue.", 300)],
    );
    let log = Log::create(&path).unwrap();
    let mut talk = whole.session(log, json!(null)).await.unwrap();
    let answer = talk.ask("What colour is it?").await.unwrap();
    assert_eq!(answer.progress.usage, Usage::new(1000, 40).cached(28));
    talk.close().await.unwrap();

    let text = std::fs::read_to_string(&path).unwrap();
    for input in [100, 200, 300, 400] {
        let usage = format!(r#","usage":{{"input":{input},"cached":7,"output":10}},"#);
        assert_eq!(text.matches(&usage).count(), 1, "{usage}: {text}");
    }
    let is_before = |line: &&str| !line.contains(r#""event":"result","call":0,"#);
    let cut: String = text.split_inclusive('\n').take_while(is_before).collect();
    std::fs::write(&path, cut).unwrap();
    let rest = lead(&[("Blue.", 400)], &[]);
    let log = Log::resume(&path).unwrap();
    let mut talk = rest.session(log, json!(null)).await.unwrap();
    let answer = talk.resume().answer().await.unwrap();
    assert_eq!(answer.text, "Blue.");
    assert_eq!(answer.progress.usage, Usage::new(900, 30).cached(21));
    assert!(!answer.progress.is_usage_estimated);
}

/// An interrupted turn continues without tools that are gone: the user, the model and the subagent learn which. The subagent has
/// another effect without its tool that writes.
#[tokio::test]
async fn an_interrupted_turn_continues_without_gone_tools() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Text {
        text: String,
    }
    const TASK: &str = "!!!GADGET_START:Look\n!!!ARG:text\nsky\n!!!GADGET_END\n!!!GADGET_START:Scout\n!!!ARG:task\nWrite.\n!!!GADGET_END\n";
    const WRITE: &str = "!!!GADGET_START:Write\n!!!ARG:text\nblue\n!!!GADGET_END\n";
    const GONE: &str = "Tools that are no longer available: ";
    let tool = |name: &str| Tool::new(name, |text: Text, _| async move { Ok(text.text) });
    let every = ["Look", "Keep"].map(|name| tool(name).effect(Effect::Read));
    let every = every.into_iter().chain([tool("Write")]);
    let every = Toolbox::new(every).unwrap();
    let lead = |own: &[&str], of_scout: &[&str], tools: [&[&str]; 2]| {
        let model = Scripted::new(of_scout.iter().copied());
        let [own_tools, tools] = tools.map(|names| {
            Toolbox::new(names.iter().map(|name| every.get(name).unwrap().clone())).unwrap()
        });
        let scout = Agent::builder(model.clone()).tools(tools).build().unwrap();
        let lead = Agent::builder(Scripted::new(own.iter().copied())).tools(own_tools);
        let lead = lead.subagent("Scout", "Works.", scout).allow_all();
        (lead.build().unwrap(), model)
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let all: [&[&str]; 2] = [&["Look", "Keep"], &["Write", "Keep"]];
    let (first, _) = lead(&[TASK, "Blue."], &[WRITE, "Done."], all);
    let log = Log::create(&path).unwrap();
    let mut talk = first.session(log, json!(null)).await.unwrap();
    talk.ask("What colour is it?").await.unwrap();
    talk.close().await.unwrap();

    let text = std::fs::read_to_string(&path).unwrap();
    let is_before = |line: &&str| !line.contains("Done.");
    let cut: String = text.split_inclusive('\n').take_while(is_before).collect();
    std::fs::write(&path, cut).unwrap();
    let (rest, model) = lead(&["Blue."], &["Enough."], [&["Keep"]; 2]);
    let log = Log::resume(&path).unwrap();
    let mut talk = rest.session(log, json!(null)).await.unwrap();
    assert_eq!(talk.gone_tools(), ["Look", "Write"]);
    assert_eq!(talk.resume().answer().await.unwrap().text, "Blue.");
    let told = |messages: &[Message]| {
        let lines = messages.iter().flat_map(|message| message.text.lines());
        let told = lines.filter_map(|line| line.strip_prefix(GONE));
        told.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(told(&talk.messages()), ["Look"]);
    assert_eq!(told(&model.requests()[0].messages), ["Write"]);
    talk.close().await.unwrap();

    let (again, _) = lead(&[], &[], all);
    let log = Log::resume(&path).unwrap();
    let talk = again.session(log, json!(null)).await.unwrap();
    assert_eq!(talk.gone_tools(), [""; 0]);
    assert_eq!(told(&talk.messages()), ["Look", "none"]);
}
