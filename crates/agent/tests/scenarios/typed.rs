//! Typed answers, in both syntaxes.

use plaincall_agent::plaincall::Dialect;
use plaincall_agent::{Agent, AgentErrorKind, Scripted};
use serde::Deserialize;

/// Towns.
#[derive(Debug, PartialEq, Deserialize, schemars::JsonSchema)]
struct Towns {
    /// From north to south.
    towns: Vec<Town>,
}

#[derive(Debug, PartialEq, Deserialize, schemars::JsonSchema)]
struct Town {
    name: String,
    /// Checked by the type alone.
    #[schemars(with = "i64")]
    inhabitants: u16,
}

#[tokio::test]
async fn an_answer_of_a_type() {
    for dialect in [Dialect::block(), Dialect::emoji()] {
        let model = Scripted::new([
            r#"{"towns": [{"name": "Bodø", "inhabitants": 70000}]}"#,
            r#"{"towns": [{"name": "Bodø", "inhabitants": 43000}]}"#,
            r#"{"towns": []}"#,
            "none",
            "none",
        ]);
        let mut limits = plaincall_agent::AgentLimits::default();
        limits.repairs = 1;
        let agent = Agent::builder(model.clone())
            .dialect(dialect)
            .limits(limits);
        let agent = agent.build().unwrap();
        let answer: Towns = agent.ask_as("Which towns?").await.unwrap();
        let [town] = answer.towns.as_slice() else {
            panic!("{answer:?}");
        };
        assert_eq!((town.name.as_str(), town.inhabitants), ("Bodø", 43000));
        let requests = model.requests();
        let question = &*requests[0].messages.last().unwrap().text;
        assert!(question.contains("From north to south."), "{question}");
        assert!(!question.contains("$schema"), "{question}");
        let repair = &*requests[1].messages.last().unwrap().text;
        let problem =
            "- `towns/0/inhabitants`: expected an integer from 0 to 65535, found `70000`\n";
        assert!(repair.contains(problem), "{repair}");

        let mut talk = agent.conversation().unwrap();
        assert_eq!(talk.ask_as::<Towns>("Any?").await.unwrap().towns, []);
        let error = talk.ask_as::<Towns>("And now?").await.unwrap_err();
        assert!(matches!(error.kind, AgentErrorKind::Schema(_)), "{error:?}");
        let text = "the model's answer does not match the schema: invalid JSON: expected ident (line 1, column 2)";
        assert_eq!(error.to_string(), text);
        assert_eq!(error.partial_text, "none");
    }
}
