//! Requests of an agent with a grammar, in both syntaxes.

use plaincall_agent::model::{Constrain, OpenAi};
use plaincall_agent::plaincall::tool::{Arguments, Parameter, ParameterKind, ToolSpec};
use plaincall_agent::plaincall::{Context, Dialect, Tool, Toolbox};
use plaincall_agent::{Agent, AgentBuilder, AgentErrorKind, Scripted};
use plaincall_grammar::Engine;
use plaincall_testkit::model_server::{ModelServer, Script};
use serde_json::json;

use crate::scenarios::neutral::spelled;

const ALWAYS: Constrain = Constrain::For(Engine::LlamaCpp);

/// A tool with one parameter, which is also its body.
fn tool(name: &str, kind: Parameter) -> Tool {
    let body = kind.name.clone();
    let spec = ToolSpec::new(name).parameter(kind).body(body);
    Tool::raw(spec, |arguments: Arguments, _: Context| async move {
        Ok(arguments.iter().map(|one| one.text).collect())
    })
}

fn echo(name: &str) -> Tool {
    tool(name, Parameter::new("text", ParameterKind::String))
}

/// A tool whose only value is a marker.
fn inexpressible(dialect: &Dialect) -> Tool {
    let end = dialect.end_marker(dialect.syntax().unwrap());
    tool(
        "fixed",
        Parameter::from_schema("text", json!({"enum": [end]})),
    )
}

fn tools(all: impl IntoIterator<Item = Tool>) -> Toolbox {
    Toolbox::new(all).unwrap()
}

fn reply(text: &str) -> Script {
    Script::stream(&[text], "stop")
}

fn syntaxes() -> [Dialect; 2] {
    [Dialect::block(), Dialect::emoji()]
}

struct Scene {
    server: ModelServer,
    dialect: Dialect,
}

impl Scene {
    async fn new(dialect: Dialect, scripts: Vec<Script>) -> Self {
        let server = ModelServer::start(scripts).await;
        Self { server, dialect }
    }

    fn model(&self, constrain: Constrain) -> OpenAi {
        OpenAi::new(self.server.url(), "m").constrain(constrain)
    }

    fn agent(&self, constrain: Constrain, all: impl IntoIterator<Item = Tool>) -> AgentBuilder {
        Agent::builder(self.model(constrain))
            .tools(tools(all))
            .dialect(self.dialect.clone())
            .allow_all()
    }

    /// The grammars of all requests.
    fn grammars(&self) -> Vec<Option<String>> {
        let requests = self.server.seen().requests;
        let grammars = requests.iter().map(|request| {
            let body = request.json();
            body["grammar"].as_str().map(str::to_owned)
        });
        grammars.collect()
    }
}

#[tokio::test]
async fn every_request_of_a_conversation_has_the_same_grammar() {
    for dialect in syntaxes() {
        let call = spelled("@echo text=hi\n", &dialect, &tools([echo("echo")]));
        let scripts = vec![reply(&call), reply("It is hi."), reply("Bye.")];
        let scene = Scene::new(dialect, scripts).await;
        let agent = scene.agent(ALWAYS, [echo("echo")]).build().unwrap();
        assert!(agent.check_grammar().await.unwrap().is_none());
        let mut talk = agent.conversation().unwrap();
        let answer = talk.ask("Say hi.").await.unwrap();
        assert_eq!((&*answer.text, answer.progress.calls.ok), ("It is hi.", 1));
        talk.ask("Bye.").await.unwrap();
        let grammars = scene.grammars();
        let first = grammars[0].clone().unwrap();
        assert!(first.contains("echo"), "{first}");
        assert_eq!(grammars, vec![Some(first); 3]);
    }
}

#[tokio::test]
async fn a_keyed_conversation_has_its_own_grammar() {
    for dialect in syntaxes() {
        let syntax = dialect.syntax().unwrap();
        let replies = ["One.", "Two.", "Three."].map(reply);
        let scene = Scene::new(dialect, replies.to_vec()).await;
        let agent = scene.agent(ALWAYS, [echo("echo")]).keyed().build().unwrap();
        let mut talks = [agent.conversation().unwrap(), agent.conversation().unwrap()];
        for index in [0, 1, 0] {
            talks[index].ask("Hi.").await.unwrap();
        }
        let grammars = scene.grammars();
        assert_eq!(grammars[0], grammars[2]);
        for (talk, grammar) in talks.iter().zip(&grammars) {
            let end = talk.dialect().end_marker(syntax);
            assert_ne!(end, scene.dialect.end_marker(syntax));
            let grammar = grammar.as_ref().unwrap();
            assert!(grammar.contains(&end), "{end}: {grammar}");
        }
        assert_ne!(grammars[0], grammars[1]);
    }
}

#[tokio::test]
async fn a_subagent_has_the_grammar_of_its_tools() {
    for dialect in syntaxes() {
        let task = Parameter::new("task", ParameterKind::String);
        let start = tools([tool("helper", task)]);
        let start = spelled("@helper task=look\n", &dialect, &start);
        let inner = spelled("@inner text=seen\n", &dialect, &tools([echo("inner")]));
        let texts = [&*start, &inner, "I saw it.", "Done."];
        let scene = Scene::new(dialect, texts.map(reply).to_vec()).await;
        let helper = scene.agent(ALWAYS, [echo("inner")]).build().unwrap();
        let agent = scene.agent(ALWAYS, [echo("outer")]);
        let agent = agent.subagent("helper", "Helps.", helper).build().unwrap();
        assert_eq!(agent.ask("Look.").await.unwrap().text, "Done.");
        let names = scene.grammars().into_iter().map(|grammar| {
            let grammar = grammar.unwrap();
            ["outer", "helper", "inner"].map(|name| grammar.contains(name))
        });
        let names: Vec<_> = names.collect();
        let (own, below) = ([true, true, false], [false, false, true]);
        assert_eq!(names, [own, below, below, own]);
    }
}

#[tokio::test]
async fn tools_without_a_grammar() {
    for dialect in syntaxes() {
        let scene = Scene::new(dialect, vec![reply("One.")]).await;
        let error = "no call of `fixed` can be part of a grammar";
        let agent = scene
            .agent(ALWAYS, [inexpressible(&scene.dialect)])
            .build()
            .unwrap();
        for failed in [
            agent.check_grammar().await.map(drop).unwrap_err(),
            agent.ask("Hi.").await.map(drop).unwrap_err(),
        ] {
            assert!(matches!(failed.kind, AgentErrorKind::Settings(_)));
            let text = failed.to_string();
            assert!(text.contains(error), "{text}");
        }
        assert!(scene.grammars().is_empty());

        let agent = scene
            .agent(Constrain::Auto, [inexpressible(&scene.dialect)])
            .build()
            .unwrap();
        let missing = agent.check_grammar().await.unwrap().unwrap().to_string();
        assert!(missing.contains(error), "{missing}");
        assert_eq!(agent.ask("Hi.").await.unwrap().text, "One.");
        assert_eq!(scene.grammars(), [None]);
        // There is nothing to constrain.
        scene.server.play([reply("Two."), reply("Three.")]);
        for (constrain, all) in [
            (ALWAYS, Vec::new()),
            (Constrain::Never, vec![inexpressible(&scene.dialect)]),
        ] {
            let agent = scene.agent(constrain, all).build().unwrap();
            assert!(agent.check_grammar().await.unwrap().is_none());
            agent.ask("Hi.").await.unwrap();
        }
        assert_eq!(scene.grammars(), [None, None, None]);
    }
}

/// Other models ignore the setting.
#[tokio::test]
async fn a_switch_of_the_model_switches_the_grammar() {
    for dialect in syntaxes() {
        let scene = Scene::new(dialect, vec![reply("One."), reply("Two.")]).await;
        let model = Scripted::new(["Zero."]);
        let agent = Agent::builder(model.clone()).tools(tools([echo("echo")]));
        let agent = agent.dialect(scene.dialect.clone()).build().unwrap();
        let mut talk = agent.conversation().unwrap();
        talk.ask("Hi.").await.unwrap();
        assert!(model.requests()[0].grammar.is_none());
        for constrain in [ALWAYS, Constrain::Never] {
            talk.set_model(scene.model(constrain));
            talk.ask("Hi.").await.unwrap();
        }
        let has: Vec<bool> = scene.grammars().iter().map(Option::is_some).collect();
        assert_eq!(has, [true, false]);
    }
}

#[tokio::test]
async fn a_model_can_be_checked_before_a_switch() {
    for dialect in syntaxes() {
        let scene = Scene::new(dialect, Vec::new()).await;
        let agent = scene.agent(Constrain::Never, [inexpressible(&scene.dialect)]);
        let talk = agent.build().unwrap().conversation().unwrap();
        for (constrain, is_missing) in [(Constrain::Never, false), (Constrain::Auto, true)] {
            let checked = talk.check_grammar(&scene.model(constrain)).await;
            assert_eq!(checked.unwrap().is_some(), is_missing, "{constrain:?}");
        }
        let failed = talk.check_grammar(&scene.model(ALWAYS)).await.unwrap_err();
        assert!(matches!(failed.kind, AgentErrorKind::Settings(_)));
        assert!(scene.server.seen().requests.is_empty());
    }
}
