//! The types of a tool's function, with compiler messages for wrong ones.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// The arguments of a [`Tool`](crate::Tool): any type that implements `serde::Deserialize` and `schemars::JsonSchema`.
///
/// Derive both on a struct whose fields are the parameters, as in the example of [`Tool::new`](crate::Tool::new). A tool
/// without parameters takes `()`.
///
/// [`ToolSpec::of`](plaincall_tool::ToolSpec::of) describes how the two must agree if you implement one of them by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used as the arguments of a tool",
    label = "`{Self}` lacks `Deserialize`, `JsonSchema` or both",
    note = "write `#[derive(serde::Deserialize, schemars::JsonSchema)]` above `{Self}`",
    note = "`cargo add serde --features derive` and `cargo add schemars@1` add both crates",
    note = "for a type that cannot derive them, use `Tool::raw`"
)]
pub trait ToolArguments: DeserializeOwned + JsonSchema + 'static {}

// Otherwise the compiler names one missing trait, and 150 types that implement it.
#[diagnostic::do_not_recommend]
impl<A: DeserializeOwned + JsonSchema + 'static> ToolArguments for A {}

/// The return type of a tool's function: a future, such as an `async` block, of a [`ToolResult`](crate::ToolResult).
#[diagnostic::on_unimplemented(
    message = "the function of a tool must be async",
    label = "the function returns `{Self}` itself, not a future",
    note = "write `async move` in front of its body: `|arguments: Arguments, context| async move {{ Ok(text) }}`; or pass the name of an `async fn`"
)]
pub trait ToolFuture: Future {}

#[diagnostic::do_not_recommend]
impl<R: Future> ToolFuture for R {}
