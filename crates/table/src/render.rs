//! Calls of a table written as text.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema};
use plaincall_prompt::render::{JsonCall, render_call};
use plaincall_reply::{Stop, Unclosed, extract::Extractor};
use plaincall_syntax::{Dialect, DialectError};
use plaincall_tool::{ToolSet, json::parse};
use serde_json::{Map, Value};

use crate::BATCH_BYTES;
use crate::column::{ColumnError, check_column, column};
use crate::lists::{TextLists, items, list_column, structs, texts};
use crate::made::{CancelCheck, Columns};
use crate::texts::Texts;

/// The columns `text` and `error`, from a column of calls and a column of content: the inverse of [`Extract`](crate::Extract).
///
/// The calls are those of `Extract`, or in the format of the `OpenAI` API. Each text is parsed again: if other content or other
/// calls come back, the row has an error and no text.
pub struct Render {
    calls: String,
    content: String,
    dialect: Dialect,
    tools: Option<Arc<ToolSet>>,
    /// Reads the rendered text.
    extractor: Extractor,
}

/// A call of the table.
struct Call<'t> {
    name: &'t str,
    id: Option<&'t str>,
    dependencies: Vec<&'t str>,
    arguments: Map<String, Value>,
}

/// The fields of calls, of `table` or in the format of the `OpenAI` API.
struct Fields {
    names: Texts,
    ids: Option<Texts>,
    dependencies: Option<TextLists>,
    arguments: Texts,
    may_run: Option<BooleanArray>,
}

impl Render {
    /// Reads these columns. That of the content may be missing. The texts are replies in this dialect ([`Dialect::for_reply`]).
    ///
    /// # Errors
    ///
    /// If the dialect is unusable.
    pub fn new(
        calls: impl Into<String>,
        content: impl Into<String>,
        dialect: Dialect,
        tools: Option<&Arc<ToolSet>>,
    ) -> Result<Self, DialectError> {
        let dialect = dialect.for_reply();
        let tools = tools.cloned();
        let extractor = Extractor::new(&dialect, Unclosed::Reject, tools.clone(), Stop::Natural)?;
        Ok(Self {
            calls: calls.into(),
            content: content.into(),
            extractor,
            dialect,
            tools,
        })
    }

    fn text(
        &self,
        content: &str,
        calls: &[Call<'_>],
        cancel: &mut CancelCheck<'_>,
    ) -> Result<String, String> {
        cancel.check(content.len())?;
        // Ids that parsing assigns again need not be written.
        let used = calls.iter().flat_map(|other| &other.dependencies);
        let used: HashSet<&str> = used.copied().collect();
        let is_used = |call: &Call<'_>| call.id.is_some_and(|id| used.contains(id));
        match self.written(content, calls, is_used, cancel) {
            Ok(text) => Ok(text),
            Err(_) => self.written(content, calls, |_| true, cancel),
        }
    }

    /// Renders a row, and parses it to verify that its content and its calls come back.
    fn written(
        &self,
        content: &str,
        calls: &[Call<'_>],
        has_id: impl Fn(&Call<'_>) -> bool,
        cancel: &mut CancelCheck<'_>,
    ) -> Result<String, String> {
        let mut text = content.to_owned();
        if !(calls.is_empty() || text.is_empty() || text.ends_with('\n')) {
            text.push('\n');
        }
        let content = text.len();
        for call in calls {
            let mut json = JsonCall::new(call.name, &call.arguments);
            json.id = call.id.filter(|_| has_id(call));
            json.dependencies.clone_from(&call.dependencies);
            let tool = self.tools.as_ref().and_then(|tools| tools.get(call.name));
            let rendered = render_call(&json, tool, &self.dialect);
            let rendered = rendered.map_err(|error| format!("call `{}`: {error}", call.name))?;
            cancel.check(rendered.len())?;
            text += &rendered;
        }
        let check = |bytes| cancel.check(bytes);
        let row = self.extractor.row_with_check(&text, check)?;
        // The line end after an end marker is content.
        let added = text
            .get(..content)
            .and_then(|before| row.content.strip_prefix(before));
        if !added.is_some_and(|added| added.trim_end_matches('\n').is_empty()) {
            return Err(
                "the content has text that would be parsed as a call or as reasoning".to_owned(),
            );
        }
        let is_same = row.calls.len() == calls.len()
            && row.calls.iter().zip(calls).all(|(read, call)| {
                let arguments = read.arguments.as_deref().map(serde_json::from_str::<Value>);
                let arguments = arguments.and_then(Result::ok);
                let length = read.arguments.as_ref().map_or(0, String::len);
                cancel.check(length).is_ok()
                    && read.name == call.name
                    && call.id.is_none_or(|id| id == read.id)
                    && read.dependencies == call.dependencies
                    && arguments.as_ref().and_then(Value::as_object) == Some(&call.arguments)
            });
        if is_same {
            Ok(text)
        } else {
            Err("the rendered calls would be parsed differently".to_owned())
        }
    }
}

impl Columns for Render {
    fn fields(&self) -> Vec<FieldRef> {
        let text = |name| Arc::new(Field::new(name, DataType::Utf8, true));
        vec![text("text"), text("error")]
    }

    fn check(&self, schema: &Schema) -> Result<(), ColumnError> {
        check_column(schema, &self.calls).map(drop)
    }

    fn make(
        &self,
        batch: &RecordBatch,
        cancel: &mut CancelCheck<'_>,
    ) -> Result<(Vec<ArrayRef>, usize), ArrowError> {
        let lists = list_column(&self.calls, column(batch, &self.calls)?)?;
        let contents = batch.column_by_name(&self.content);
        let contents = contents.map(|contents| Texts::new(&self.content, contents));
        let contents = contents.transpose()?;
        let is_null = lists.null_count() == lists.len();
        let fields = (!is_null)
            .then(|| Fields::new(&self.calls, &lists))
            .transpose()?;
        let (mut written, mut errors) = (StringBuilder::new(), StringBuilder::new());
        let (mut bytes, mut rows) = (0, 0);
        for row in 0..batch.num_rows() {
            rows += 1;
            let content = contents.as_ref().and_then(|contents| contents.text(row));
            let calls = items(&lists, row).zip(fields.as_ref());
            let calls = calls.ok_or_else(|| "the calls are null".to_owned());
            let calls = calls.and_then(|(calls, fields)| {
                let calls = calls.map(|call| fields.call(call, cancel));
                calls.collect::<Result<Vec<_>, _>>()
            });
            let text =
                calls.and_then(|calls| self.text(content.unwrap_or_default(), &calls, cancel));
            bytes += text.as_ref().map_or_else(String::len, String::len);
            written.append_option(text.as_ref().ok());
            errors.append_option(text.as_ref().err());
            if bytes > BATCH_BYTES {
                break;
            }
        }
        Ok((
            vec![Arc::new(written.finish()), Arc::new(errors.finish())],
            rows,
        ))
    }
}

impl Fields {
    fn new(column: &str, lists: &arrow_array::ListArray) -> Result<Self, ArrowError> {
        let calls = structs(column, lists)?;
        let function = calls.column_by_name("function");
        let named = function
            .and_then(|function| function.as_struct_opt())
            .unwrap_or(calls);
        let missing = |field| {
            ArrowError::SchemaError(format!(
                "the calls of the column `{column}` must have the field `{field}`"
            ))
        };
        Ok(Self {
            names: texts(named, "name")?.ok_or_else(|| missing("name"))?,
            arguments: texts(named, "arguments")?.ok_or_else(|| missing("arguments"))?,
            ids: texts(calls, "id")?,
            dependencies: TextLists::new(calls, "dependencies")?,
            may_run: calls
                .column_by_name("may_run")
                .and_then(|may_run| may_run.as_boolean_opt().cloned()),
        })
    }

    fn call(&self, call: usize, cancel: &mut CancelCheck<'_>) -> Result<Call<'_>, String> {
        let name = self.names.text(call).ok_or("a call has no name")?;
        // Written with its end marker, it would look valid.
        if self
            .may_run
            .as_ref()
            .is_some_and(|may_run| !may_run.value(call))
        {
            return Err(format!("call `{name}` may not run"));
        }
        let arguments = self.arguments.text(call);
        let arguments = arguments.ok_or_else(|| format!("call `{name}` has no arguments"))?;
        cancel.check(arguments.len())?;
        let invalid = |why| format!("the arguments of call `{name}` are not a JSON object: {why}");
        let arguments = match parse(arguments) {
            Ok(Value::Object(arguments)) => arguments,
            Ok(other) => return Err(invalid(other.to_string())),
            Err(why) => return Err(invalid(why)),
        };
        let dependencies = self.dependencies.iter().flat_map(|ids| ids.of(call));
        Ok(Call {
            name,
            id: self.ids.as_ref().and_then(|ids| ids.text(call)),
            dependencies: dependencies.collect(),
            arguments,
        })
    }
}
