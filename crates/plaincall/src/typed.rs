//! What the function of a tool takes and returns, and what the compiler says of one that does not fit.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// A type that can be the arguments of a [`Tool`](crate::Tool): it says what it takes (`JsonSchema`, of schemars) and
/// is made of what a model has written (`Deserialize`, of serde).
///
/// Nobody implements it by hand: derive both on a struct whose fields are the parameters, as for
/// [`Tool::new`](crate::Tool::new).
///
/// `()` is for tools that take nothing. [`ToolSpec::of`](plaincall_call::ToolSpec::of) says how the two must agree where a type
/// has attributes or code of its own.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used as the arguments of a tool",
    label = "`{Self}` lacks `Deserialize`, `JsonSchema` or both",
    note = "write `#[derive(serde::Deserialize, schemars::JsonSchema)]` above `{Self}`",
    note = "`cargo add serde --features derive` and `cargo add schemars@1` add both crates",
    note = "for a type that cannot derive them, use `Tool::raw`"
)]
pub trait ToolArguments: DeserializeOwned + JsonSchema + 'static {}

// Else the compiler would name one trait that is missing, and 150 types that have it.
#[diagnostic::do_not_recommend]
impl<A: DeserializeOwned + JsonSchema + 'static> ToolArguments for A {}

/// What the function of a tool returns: a future, such as an `async` block, of a
/// [`ToolResult`](crate::ToolResult).
#[diagnostic::on_unimplemented(
    message = "the function of a tool must be async",
    label = "the function returns `{Self}` itself, not a future",
    note = "write `async move` in front of its body: `|arguments: Arguments, context| async move {{ Ok(text) }}`; or pass the name of an `async fn`"
)]
pub trait ToolFuture: Future {}

#[diagnostic::do_not_recommend]
impl<R: Future> ToolFuture for R {}
