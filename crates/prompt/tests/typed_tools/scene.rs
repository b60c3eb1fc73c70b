//! A call of a typed tool, in both syntaxes.

use std::fmt::{Debug, Write};

use plaincall_reply::{Document, bind};
use plaincall_syntax::Dialect;
use plaincall_tool::{Arguments, ToolSpec, usage::UsageBody};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// One parameter of a type.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
pub(crate) struct X<T> {
    pub(crate) x: T,
}

pub(crate) fn tool<T: JsonSchema>() -> ToolSpec {
    let tool = ToolSpec::of::<T>("t");
    assert_eq!(tool.check(), Ok(()), "{:#}", tool.to_schema());
    tool
}

/// Returns the bound arguments of the only call of a text, or its errors.
fn bound(tool: &ToolSpec, text: &str, dialect: &Dialect) -> Result<Arguments, Vec<String>> {
    let document = Document::parse(text, dialect).expect("a dialect that works");
    let call = document.calls().next().expect("a call");
    let bound = bind(tool, call);
    bound.map_err(|problems| problems.into_iter().map(|one| one.message).collect())
}

pub(crate) fn block(tool: &ToolSpec, pairs: &[(&str, &str)]) -> Result<Arguments, Vec<String>> {
    let mut text = "!!!GADGET_START:t\n".to_owned();
    for (pointer, value) in pairs {
        write!(text, "!!!ARG:{pointer}\n{value}\n").expect("a text can be written to");
    }
    text.push_str("!!!GADGET_END");
    bound(tool, &text, &Dialect::block())
}

/// `written` is the line, or the body if the tool takes one JSON object.
pub(crate) fn emoji(tool: &ToolSpec, written: &str) -> Result<Arguments, Vec<String>> {
    let text = match tool.usage().body {
        UsageBody::Json => format!("🛠️[t]{written}🛠️[/end]"),
        _ => format!("🛠️[t {written}]🛠️[/end]"),
    };
    bound(tool, &text, &Dialect::emoji())
}

/// Checks the result of a call, in both syntaxes.
pub(crate) fn check<T>(pairs: &[(&str, &str)], written: &str, expected: &T)
where
    T: DeserializeOwned + JsonSchema + PartialEq + Debug,
{
    let tool = tool::<T>();
    let [one, two] = [block(&tool, pairs), emoji(&tool, written)].map(|arguments| {
        let arguments = arguments.unwrap_or_else(|problems| {
            panic!("{pairs:?} {written}: {problems:?} {:#}", tool.to_schema())
        });
        let found = arguments.to::<T>();
        assert_eq!(found.as_ref(), Ok(expected), "{pairs:?} {written}");
        arguments.to_value()
    });
    assert_eq!(one, two, "{pairs:?} {written}");
    assert_eq!(
        &serde_json::from_value::<T>(one).expect("what serde_json takes too"),
        expected
    );
}

/// Checks the errors of a call, in both syntaxes: the beginning of each message.
pub(crate) fn refused<T>(pairs: &[(&str, &str)], written: &str, expected: &[&str])
where
    T: DeserializeOwned + JsonSchema,
{
    let tool = tool::<T>();
    for arguments in [block(&tool, pairs), emoji(&tool, written)] {
        let problems = arguments.expect_err("a call that is wrong");
        // The message about a missing argument depends on the syntax.
        let begin = |(problem, begin): (&String, &&str)| problem.starts_with(begin);
        let fits = problems.len() == expected.len() && problems.iter().zip(expected).all(begin);
        assert!(fits, "{pairs:?} {written}: {problems:?}, not {expected:?}");
    }
}

/// Checks errors of the type for values that the schema allows, in both syntaxes.
pub(crate) fn refused_by_type<T>(pairs: &[(&str, &str)], written: &str, expected: &str)
where
    T: DeserializeOwned + JsonSchema + Debug,
{
    let tool = tool::<T>();
    for arguments in [block(&tool, pairs), emoji(&tool, written)] {
        let arguments = arguments.expect("a call that the schema allows");
        let error = arguments.to::<T>().expect_err("a type that does not");
        assert_eq!(error.to_string(), expected, "{pairs:?} {written}");
    }
}
