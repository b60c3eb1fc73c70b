//! Typed tools in a run, in both syntaxes.

use plaincall::tool::definitions::read_tool_definitions;
use plaincall::{
    AllowAll, Context, Effect, ReadOnly, Run, RunBuilder, Stop, Tool, ToolResult, Toolbox,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// Orders something.
#[derive(Debug, Deserialize, JsonSchema)]
struct Order {
    /// The ordered item.
    item: Item,
    #[serde(default = "one")]
    count: u8,
    note: Option<String>,
}

fn one() -> u8 {
    1
}

/// A number in the catalogue: three digits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
struct Item(String);

impl TryFrom<String> for Item {
    type Error = String;

    fn try_from(number: String) -> Result<Self, String> {
        if number.len() == 3 && number.bytes().all(|digit| digit.is_ascii_digit()) {
            Ok(Self(number))
        } else {
            Err(format!(
                "`{number}` is not in the catalogue: its numbers have three digits"
            ))
        }
    }
}

async fn order(order: Order, context: Context) -> ToolResult {
    let note = order.note.unwrap_or_default();
    Ok(format!(
        "{} {}x{} {note}",
        context.id(),
        order.count,
        order.item.0
    ))
}

fn run(tool: Tool) -> Run {
    Run::new(Toolbox::new([tool]).unwrap()).unwrap()
}

/// Runs a reply and compares each result: its output, or its status and error.
async fn check(run: &mut Run, reply: &str, expected: &[&str]) {
    let mut turn = run.turn();
    turn.feed(reply);
    let results = turn.finish(Stop::Natural).await;
    let found: Vec<String> = results
        .iter()
        .map(|result| match (&result.output, &result.error) {
            (Some(output), None) => output.to_string(),
            (_, error) => format!(
                "{}: {}",
                result.status,
                error.as_deref().unwrap_or_default()
            ),
        })
        .collect();
    assert_eq!(found, expected, "{reply}");
}

#[tokio::test]
async fn a_function_gets_arguments_of_its_type() {
    // A named function is also a tool.
    let tool = || Tool::new("order", order).effect(Effect::Read);
    assert_eq!(tool().spec().description, "Orders something.");
    let block = "!!!GADGET_START:order:a\n!!!ARG:item\n007\n!!!GADGET_END\n\
        !!!GADGET_START:order:b\n!!!ARG:item\n007\n!!!ARG:count\n+02\n!!!ARG:note\n5\n!!!GADGET_END\n\
        !!!GADGET_START:order:c\n!!!ARG:item\n7\n!!!GADGET_END\n\
        !!!GADGET_START:order:d\n!!!ARG:item\n007\n!!!ARG:count\nmany\n!!!GADGET_END\n";
    check(
        &mut run(tool()),
        block,
        &[
            "a 1x007 ",
            "b 2x007 5",
            "error: `item`: `7` is not in the catalogue: its numbers have three digits",
            "rejected: invalid arguments: `count`: expected an integer from 0 to 255, found `many`",
        ],
    )
    .await;
    let emoji = "🛠️[order]{\"item\": \"007\", \"note\": null}🛠️[/end]\n🛠️[order]{\"item\": \"x\"}🛠️[/end]\n";
    let wrong = "error: `item`: `x` is not in the catalogue: its numbers have three digits";
    check(&mut run(tool()), emoji, &["call_1 1x007 ", wrong]).await;
    let emoji = "🛠️[order 007 2]null🛠️[/end]\n🛠️[order 007]🛠️[/end]\n";
    let tool = tool().positional(["item", "count"]).body("note");
    check(
        &mut run(tool),
        emoji,
        &["call_1 2x007 null", "call_2 1x007 "],
    )
    .await;
}

#[test]
fn a_type_that_is_not_an_object_is_rejected_by_the_toolbox() {
    let tool = Tool::new("sum", |numbers: Vec<i64>, _| async move {
        Ok(numbers.iter().sum::<i64>().to_string())
    });
    let error = Toolbox::new([tool]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the tool `sum`: at /type: the arguments of a tool must be an object with named fields, but this is a list: write `\"type\": \"object\"`"
    );
}

/// The annotations of a server approve no calls.
#[tokio::test]
async fn hints_relax_nothing() {
    let definitions =
        r#"[{"name": "wipe", "annotations": {"readOnlyHint": true, "idempotentHint": true}}]"#;
    let spec = read_tool_definitions(definitions).unwrap().remove(0);
    assert_eq!(spec.hinted_effect, Some(Effect::Read));
    let wipe = || Tool::raw(spec.clone(), |_, _| async { Ok("wiped".to_owned()) });
    let call = "!!!GADGET_START:wipe\n!!!GADGET_END\n";
    let refused =
        "rejected: the tool `wipe` may change something, and this run does not allow changes";
    check(&mut run(wipe()), call, &[refused]).await;
    let gated = |builder: RunBuilder| builder.build().unwrap();
    let builder = || Run::builder(Toolbox::new([wipe()]).unwrap());
    check(&mut gated(builder().gate(ReadOnly)), call, &[refused]).await;
    check(&mut gated(builder().gate(AllowAll)), call, &["wiped"]).await;
    // The program's own setting counts.
    check(&mut run(wipe().effect(Effect::Read)), call, &["wiped"]).await;
}
