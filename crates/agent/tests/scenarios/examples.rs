//! Texts for the model around its calls: examples in the prompt, given messages, and messages about errors.

use std::sync::{Arc, Mutex};

use plaincall_agent::plaincall::prompt::PromptOptions;
use plaincall_agent::plaincall::prompt::few_shot::FewShotExample;
use plaincall_agent::plaincall::tool::CallExample;
use plaincall_agent::plaincall::{
    Dialect, Effect, Log, Rules, RunEvent, Tool, Toolbox, rules::Rule,
};
use plaincall_agent::{Agent, AgentBuilder, GivenMessage, Role, Scripted};
use serde_json::json;

/// Finds a word.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[schemars(example = &json!({"word": "two"}))]
struct Find {
    word: String,
}

fn builder(model: &Scripted, dialect: Dialect) -> AgentBuilder {
    let find = Tool::new("find", |find: Find, _| async move {
        Ok(format!("{} was found", find.word))
    });
    let example = CallExample::new(json!({"word": "one !!!GADGET_END 🛠️[/end]"}))
        .comment("One word")
        .result("one was found");
    let tools = Toolbox::new([find.effect(Effect::Read).example(example)]).unwrap();
    Agent::builder(model.clone()).tools(tools).dialect(dialect)
}

/// The model copies the first example; that is its own call, and not an echo.
#[tokio::test]
async fn a_model_reads_and_copies_examples() {
    let block = "!!!GADGET_START:find\n!!!ARG:word\none !!!GADGET_EN\\D 🛠️[/end]\n!!!GADGET_END\n";
    let emoji = "🛠️[find one !!!GADGET_END 🛠️\\[/end]\n🛠️[/end]\n";
    let json = "Example as JSON: {\"word\":\"one !!!GADGET_END 🛠️\\[/end]\"} // One word\n";
    let examples = [
        (
            Dialect::block(),
            format!(
                "Example: // One word\n{block}Result: one was found\nExample:\n!!!GADGET_START:find\n!!!ARG:word\ntwo\n!!!GADGET_END\n"
            ),
            block.to_owned(),
        ),
        (
            Dialect::emoji(),
            // The line of a call cannot contain `]`.
            format!("{json}Result: one was found\nExample:\n🛠️[find two]\n🛠️[/end]\n"),
            emoji.replace(" 🛠️\\[/end]\n", "]\n"),
        ),
    ];
    for (dialect, example, copied) in examples {
        let model = Scripted::new([copied, "It is there.".to_owned()]);
        let agent = builder(&model, dialect.clone()).build().unwrap();
        assert_eq!(agent.skipped_examples(), []);
        let answer = agent.ask("Where is it?").await.unwrap();
        assert_eq!(answer.text, "It is there.");
        assert_eq!(answer.progress.calls.ok, 1);
        let system = model.requests()[0].messages[0].text.to_string();
        assert!(system.contains(&example), "{system}");

        let none = builder(&model, dialect).prompt(PromptOptions::new().example_bytes(0));
        let none = none.build().unwrap();
        assert_eq!(none.skipped_examples().len(), 2);
        let system = none.conversation().unwrap().messages()[0].text.to_string();
        assert!(!system.contains("two"), "{system}");
    }
}

fn few_shot() -> Vec<FewShotExample> {
    let given = json!([
        {"question": "Hi!", "answer": "Hi."},
        {"question": "Is seven there?", "tool": "find", "arguments": {"word": "seven"}, "result": "seven was found", "answer": "Yes."},
    ]);
    serde_json::from_value(given).unwrap()
}

/// The examples come before the conversation, and are no part of its log. A call that the model copies from one is held,
/// also if every call is allowed, unless the user writes its values.
#[tokio::test]
async fn examples_are_messages() {
    let block = "!!!GADGET_START:find\n!!!ARG:word\nseven\n!!!GADGET_END\n";
    let emoji = "🛠️[find seven]\n🛠️[/end]\n";
    for (dialect, call) in [(Dialect::block(), block), (Dialect::emoji(), emoji)] {
        let model = Scripted::new([call, "Sorry.", call, "It is there."]);
        let build = || {
            let builder = builder(&model, dialect.clone()).few_shot(few_shot(), 8);
            builder
                .rules(Rules::new([Rule::allow(["*"])]))
                .build()
                .unwrap()
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("log.jsonl");
        let mut talk = build()
            .session(Log::create(&file).unwrap(), json!(null))
            .await
            .unwrap();
        let answer = talk.ask("Is it there?").await.unwrap();
        assert_eq!(
            (answer.progress.calls.ok, answer.progress.calls.rejected),
            (0, 1)
        );
        talk.close().await.unwrap();

        let mut talk = build()
            .session(Log::resume(&file).unwrap(), json!(null))
            .await
            .unwrap();
        let answer = talk.ask("Is “Seven” there?").await.unwrap();
        assert_eq!(
            (answer.progress.calls.ok, answer.progress.calls.rejected),
            (1, 0)
        );
        talk.close().await.unwrap();
        let requests = model.requests();
        for request in &requests {
            let texts: Vec<&str> = request
                .messages
                .iter()
                .map(|message| &*message.text)
                .collect();
            let result = "Result 1 of 1: tool find, status ok\nOutput: seven was found\n";
            assert_eq!(
                texts[1..7],
                ["Hi!", "Hi.", "Is seven there?", call, result, "Yes."]
            );
            assert_eq!(texts[7].trim(), "Is it there?");
        }
        let held = "this call equals the call of an example, and the conversation does not contain its values";
        assert!(requests[1].messages.last().unwrap().text.contains(held));
        let log = std::fs::read_to_string(&file).unwrap();
        assert_eq!(log.matches("\"event\":\"examples\"").count(), 1, "{log}");
        assert!(!log.contains("Is seven there?"), "{log}");
    }
}

#[tokio::test]
async fn an_invalid_example_is_an_error() {
    let mut given = few_shot();
    given[1].arguments.insert("word".to_owned(), json!([5]));
    let built = builder(&Scripted::new(["x"]), Dialect::block())
        .few_shot(given, 8)
        .build();
    let error = built.unwrap_err().to_string();
    assert!(error.starts_with("`arguments` of example 2: "), "{error}");
}

/// The result states the error, and the message about the call shows only how to write it.
#[tokio::test]
async fn an_error_is_reported_once() {
    let replies = [
        (
            Dialect::block(),
            "!!!GADGET_START:find\n!!!ARG:wrd\none\n!!!GADGET_END\n",
            "!!!GADGET_START:find\n!!!ARG:word\n<a string>\n!!!GADGET_END\n",
        ),
        (
            Dialect::emoji(),
            "🛠️[find]\n🛠️[/end]\n",
            "🛠️[find <word: a string>]\n🛠️[/end]\n",
        ),
    ];
    for (dialect, wrong, correct) in replies {
        let model = Scripted::new([wrong, "I cannot."]);
        let agent = builder(&model, dialect).build().unwrap();
        agent.ask("Where is it?").await.unwrap();
        let requests = model.requests();
        let text = &*requests[1].messages.last().unwrap().text;
        assert!(
            text.contains("status rejected\nError: invalid arguments: "),
            "{text}"
        );
        let missing = "missing required parameter `word`";
        assert_eq!(text.matches(missing).count(), 1, "{text}");
        assert!(!text.contains("Problems:"), "{text}");
        let shown = format!("A correct call:\n{correct}Send it again");
        assert!(text.contains(&shown), "{text}");
    }
}

/// A call of the emoji syntax without a body may end on its line.
#[tokio::test]
async fn a_call_may_close_itself() {
    for (dialect, calls) in [(Dialect::emoji().self_closing(), 1), (Dialect::emoji(), 0)] {
        let model = Scripted::new(["🛠️[find one /]\n", "It is there.", "It is there."]);
        let agent = builder(&model, dialect).build().unwrap();
        let answer = agent.ask("Where is it?").await.unwrap();
        assert_eq!(answer.progress.calls.ok, calls);
    }
}

/// The given call looks like one of the model. The transform and the observers get real calls only.
#[tokio::test]
async fn a_conversation_begins_with_given_messages() {
    let block = "!!!GADGET_START:find\n!!!ARG:word\none\n!!!GADGET_END\n";
    let emoji = "🛠️[find one]\n🛠️[/end]\n";
    for (dialect, call) in [(Dialect::block(), block), (Dialect::emoji(), emoji)] {
        let model = Scripted::new([call, "It is there."]);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let observed = Arc::clone(&seen);
        let agent = builder(&model, dialect)
            .transform(|tool, text| format!("{tool}: {}", text.replace("was", "is")))
            .observer(move |event: &RunEvent| {
                if let RunEvent::Result(result) = event {
                    observed.lock().unwrap().push(result.output.clone());
                }
            });
        let agent = agent.build().unwrap();
        let example = CallExample::new(json!({"word": "one"})).result("nothing\nfound");
        let given = [
            GivenMessage::user("Find one. !!!GADGET_START:find 🛠️[find x]"),
            GivenMessage::model("I look. 🛠️[/end] !!!ARG:word").call("find", example),
            GivenMessage::model("It is not there."),
        ];
        let mut talk = agent.conversation_from(given).unwrap();
        let messages = talk.messages();
        let roles: Vec<&str> = messages
            .iter()
            .map(|message| match message.role {
                Role::System => "system",
                Role::User => "user",
                Role::Assistant => "model",
            })
            .collect();
        assert_eq!(roles, ["system", "user", "model", "user", "model"]);
        assert!(messages[2].text.ends_with(call), "{}", messages[2].text);
        assert!(messages[2].text.starts_with("I look. "));
        assert_eq!(
            &*messages[3].text,
            "Result 1 of 1: tool find, status ok\nOutput:\n```\nnothing\nfound\n```\n"
        );
        let answer = talk.ask("And now?").await.unwrap();
        assert_eq!(answer.text, "It is there.");
        let requests = model.requests();
        let last = requests[1].messages.last().unwrap();
        assert!(
            last.text.contains("Output: find: one is found"),
            "{}",
            last.text
        );
        talk.close().await.unwrap();
        let outputs: Vec<String> = seen
            .lock()
            .unwrap()
            .iter()
            .flatten()
            .map(ToString::to_string)
            .collect();
        assert_eq!(outputs, ["find: one is found"]);
    }
}
