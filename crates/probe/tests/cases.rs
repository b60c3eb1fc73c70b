//! Settings chosen by a user's own cases.

use std::sync::{Arc, Mutex};

use plaincall::prompt::few_shot::FewShotExample;
use plaincall::tool::{Parameter, ParameterKind, ToolSpec};
use plaincall_agent::model::{Constrain, Model, ModelRequest, Piece, Reply};
use plaincall_agent::{Finish, Role};
use plaincall_probe::{Case, CaseProbe, Setup};
use serde_json::json;

/// Calls in the emoji syntax, and only if it has read two examples. It greets with a grammar that it is not asked for.
struct NeedsExamples(Arc<Mutex<u32>>);

impl Model for NeedsExamples {
    fn name(&self) -> &'static str {
        "needs examples"
    }

    fn reply(&self, request: ModelRequest) -> Reply {
        *self.0.lock().unwrap() += 1;
        let last = request.messages.last().unwrap().text.to_string();
        let town = last
            .trim()
            .trim_start_matches("How warm is it in ")
            .trim_end_matches('?')
            .to_owned();
        let of_model = request
            .messages
            .iter()
            .filter(|message| message.role == Role::Assistant);
        let calls = of_model
            .filter(|message| message.text.contains("[weather"))
            .count();
        let text = if calls < 2 || last.starts_with("Hello") {
            "I do not know.".to_owned()
        } else {
            format!("🛠️[weather {town}]\n🛠️[/end]\n")
        };
        Reply::new(|out| async move {
            out.piece(Piece::Text(text)).await;
            Ok(Finish::stop())
        })
    }

    fn constrains(&self) -> Constrain {
        Constrain::Always
    }
}

fn examples() -> Vec<FewShotExample> {
    let of = |town: &str| json!({"question": format!("And in {town}?"), "tool": "weather", "arguments": {"town": town}, "result": "3", "answer": "3."});
    let hello = json!({"question": "Good morning!", "answer": "Good morning."});
    serde_json::from_value(json!([of("Oslo"), of("Bonn"), hello])).unwrap()
}

fn cases() -> Vec<Case> {
    let towns = ["Rome", "Bern", "Kyiv", "Lima", "Nice", "Graz"];
    let asked = towns.map(|town| json!({"question": format!("How warm is it in {town}?"), "calls": [{"tool": "weather", "arguments": {"town": town}}]}));
    let hello = json!({"question": "Hello there!", "calls": []});
    let wrong = json!({"question": "How warm is it in Pisa?", "calls": [{"tool": "weather", "arguments": {"town": "Paris"}}]});
    serde_json::from_value(json!([asked.to_vec(), vec![hello, wrong]].concat())).unwrap()
}

#[tokio::test]
async fn the_best_settings_are_found_and_reported_with_other_cases() {
    let asked = Arc::default();
    let model: Arc<dyn Model> = Arc::new(NeedsExamples(Arc::clone(&asked)));
    let tool = ToolSpec::new("weather")
        .parameter(Parameter::new("town", ParameterKind::String))
        .positional(["town"]);
    let probe = CaseProbe::new(model, vec![tool], examples(), cases());
    assert_eq!(probe.setups().len(), 12);
    let mut outcomes = Vec::new();
    let report = probe.run(|setup, case, is_right| {
        outcomes.push((setup.to_string(), case.question.clone(), is_right));
    });
    let report = report.await.unwrap();
    // Half of four cases with twelve settings, and then with six, three and two; four cases with two settings.
    assert_eq!(outcomes.len(), 12 + 6 + 3 + 2 + 8);
    assert_eq!(*asked.lock().unwrap(), 31);
    assert_eq!(report.chosen_from.len(), 12);
    assert_eq!(report.best.setup.to_string(), "emoji, 3 examples");
    assert_eq!((report.best.right, report.best.cases), (3, 4));
    assert_eq!(report.default.setup, Setup::default());
    assert_eq!((report.default.right, report.default.cases), (0, 4));
    let missed = &report.missed[0];
    assert_eq!(missed.case.question, "How warm is it in Pisa?");
    assert_eq!(missed.calls[0].arguments["town"], "Pisa");
    assert_eq!(report.missed.len(), 1);
}
