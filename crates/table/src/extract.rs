//! The columns of extracted calls.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder as _, BooleanBuilder, Int64Builder, ListBuilder, StringBuilder,
};
use arrow_array::{ArrayRef, ListArray, RecordBatch, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema};
use plaincall_reply::extract::{Extractor, Row, RowCall};

use crate::BATCH_BYTES;
use crate::column::{ColumnError, check_column, column};
use crate::made::{self, CancelCheck};
use crate::texts::{Texts, is_text};

/// The most bytes of results of one row: a batch of Arrow strings has at most 2 GiB.
const ROW_BYTES: usize = 1 << 30;

/// The columns `content`, `calls`, `tool_calls` if asked for, and `error`, from the texts of a column.
///
/// A text without a result never stops the job: its row has an `error`.
pub struct Extract {
    column: String,
    extractor: Extractor,
    has_tool_calls: bool,
}

impl Extract {
    /// Reads the column with this name. With `has_tool_calls`, `tool_calls` has the calls that may run, in the format of the
    /// `OpenAI` API.
    pub fn new(column: impl Into<String>, extractor: Extractor, has_tool_calls: bool) -> Self {
        Self {
            column: column.into(),
            extractor,
            has_tool_calls,
        }
    }
}

impl made::Columns for Extract {
    fn fields(&self) -> Vec<FieldRef> {
        let list = |name, fields| field(name, list_type(DataType::Struct(fields)), true);
        let mut fields = vec![text("content", true), list("calls", call_fields())];
        if self.has_tool_calls {
            fields.push(list("tool_calls", tool_call_fields()));
        }
        fields.push(text("error", true));
        fields
    }

    fn check(&self, schema: &Schema) -> Result<(), ColumnError> {
        let data_type = check_column(schema, &self.column)?;
        if is_text(data_type) {
            return Ok(());
        }
        Err(ColumnError::of_type(&self.column, data_type, "text"))
    }

    fn make(
        &self,
        batch: &RecordBatch,
        cancel: &mut CancelCheck<'_>,
    ) -> Result<(Vec<ArrayRef>, usize), ArrowError> {
        let texts = Texts::new(&self.column, column(batch, &self.column)?)?;
        let mut columns = Columns::default();
        let mut bytes = 0;
        let mut rows = 0;
        for row in 0..batch.num_rows() {
            rows += 1;
            let text = texts.get(row).ok_or_else(|| "the text is null".to_owned());
            let check = |bytes| cancel.check(bytes);
            let row = text.and_then(|text| self.extractor.row_with_check(text, check));
            bytes += match row {
                Ok(row) => columns.add(&row),
                Err(error) => columns.failed(&error),
            };
            if bytes > BATCH_BYTES {
                break;
            }
        }
        Ok((columns.finish(self.has_tool_calls)?, rows))
    }
}

fn field(name: &str, data_type: DataType, is_nullable: bool) -> FieldRef {
    Arc::new(Field::new(name, data_type, is_nullable))
}

fn text(name: &str, is_nullable: bool) -> FieldRef {
    field(name, DataType::Utf8, is_nullable)
}

fn list_type(items: DataType) -> DataType {
    DataType::List(field("item", items, true))
}

fn call_fields() -> Fields {
    Fields::from(vec![
        field("index", DataType::Int64, false),
        text("name", false),
        text("id", false),
        field("dependencies", list_type(DataType::Utf8), false),
        text("arguments", true),
        text("syntax", false),
        text("termination", false),
        field("may_run", DataType::Boolean, false),
        text("error", true),
        field("codes", list_type(DataType::Utf8), false),
        field("start", DataType::Int64, false),
        field("end", DataType::Int64, false),
    ])
}

fn tool_call_fields() -> Fields {
    Fields::from(vec![
        text("id", false),
        text("type", false),
        field("function", DataType::Struct(function_fields()), false),
    ])
}

fn function_fields() -> Fields {
    Fields::from(vec![text("name", false), text("arguments", false)])
}

#[derive(Default)]
struct Columns {
    contents: StringBuilder,
    errors: StringBuilder,
    calls: Calls,
    /// Where the calls of each row end, and whether it has a result.
    ends: Vec<usize>,
    has_result: Vec<bool>,
}

#[derive(Default)]
struct Calls {
    indices: Int64Builder,
    names: StringBuilder,
    ids: StringBuilder,
    dependencies: ListBuilder<StringBuilder>,
    arguments: StringBuilder,
    syntaxes: StringBuilder,
    terminations: StringBuilder,
    may_run: BooleanBuilder,
    errors: StringBuilder,
    codes: ListBuilder<StringBuilder>,
    starts: Int64Builder,
    ends: Int64Builder,
    /// The calls that may run, of each row.
    runnable: ToolCalls,
}

#[derive(Default)]
struct ToolCalls {
    count: usize,
    ids: StringBuilder,
    types: StringBuilder,
    names: StringBuilder,
    arguments: StringBuilder,
    ends: Vec<usize>,
}

impl Columns {
    /// Adds a row without a result, and returns its size.
    fn failed(&mut self, error: &str) -> usize {
        self.contents.append_null();
        self.errors.append_value(error);
        self.end_row(false);
        error.len()
    }

    fn add(&mut self, row: &Row) -> usize {
        let bytes = row.content.len() + row.calls.iter().map(size).sum::<usize>();
        if bytes > ROW_BYTES {
            return self.failed("the result has more than 1 GiB");
        }
        self.contents.append_value(&row.content);
        self.errors.append_null();
        for call in &row.calls {
            self.calls.add(call);
        }
        self.end_row(true);
        bytes
    }

    fn end_row(&mut self, has_result: bool) {
        self.ends.push(self.calls.may_run.len());
        self.calls.runnable.ends.push(self.calls.runnable.count);
        self.has_result.push(has_result);
    }

    fn finish(mut self, has_tool_calls: bool) -> Result<Vec<ArrayRef>, ArrowError> {
        let nulls = NullBuffer::from(self.has_result);
        let tool_calls = std::mem::take(&mut self.calls.runnable);
        let calls = lists(self.calls.finish()?, self.ends, nulls.clone())?;
        let mut columns: Vec<ArrayRef> = vec![Arc::new(self.contents.finish()), calls];
        if has_tool_calls {
            let (calls, ends) = tool_calls.finish()?;
            columns.push(lists(calls, ends, nulls)?);
        }
        columns.push(Arc::new(self.errors.finish()));
        Ok(columns)
    }
}

/// The number of bytes of a call in the table.
fn size(call: &RowCall) -> usize {
    /// Of numbers and offsets.
    const FIXED: usize = 80;
    let lengths = [&call.name, &call.id].map(String::len);
    let optional = [&call.arguments, &call.error].map(|it| it.as_ref().map_or(0, String::len));
    let dependencies = call.dependencies.iter().map(|id| id.len() + 4);
    let codes = call.codes.iter().map(|code| code.len() + 4);
    let variable = lengths
        .into_iter()
        .chain(optional)
        .chain(dependencies)
        .chain(codes);
    // `tool_calls` has the name, the id and the arguments again, and the words of a call are at most as long as this.
    FIXED + 2 * variable.sum::<usize>()
}

impl Calls {
    fn add(&mut self, call: &RowCall) {
        self.indices.append_value(number(call.index));
        self.names.append_value(&call.name);
        self.ids.append_value(&call.id);
        self.dependencies
            .append_value(call.dependencies.iter().map(Some));
        self.arguments.append_option(call.arguments.as_ref());
        self.syntaxes.append_value(call.syntax);
        self.terminations.append_value(call.termination);
        self.may_run.append_value(call.may_run);
        self.errors.append_option(call.error.as_ref());
        self.codes.append_value(call.codes.iter().map(Some));
        self.starts.append_value(number(call.start));
        self.ends.append_value(number(call.end));
        if let Some(arguments) = call.arguments.as_ref().filter(|_| call.may_run) {
            let calls = &mut self.runnable;
            calls.count += 1;
            calls.ids.append_value(&call.id);
            calls.types.append_value("function");
            calls.names.append_value(&call.name);
            calls.arguments.append_value(arguments);
        }
    }

    fn finish(mut self) -> Result<StructArray, ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.indices.finish()),
            Arc::new(self.names.finish()),
            Arc::new(self.ids.finish()),
            Arc::new(self.dependencies.finish()),
            Arc::new(self.arguments.finish()),
            Arc::new(self.syntaxes.finish()),
            Arc::new(self.terminations.finish()),
            Arc::new(self.may_run.finish()),
            Arc::new(self.errors.finish()),
            Arc::new(self.codes.finish()),
            Arc::new(self.starts.finish()),
            Arc::new(self.ends.finish()),
        ];
        StructArray::try_new(call_fields(), columns, None)
    }
}

impl ToolCalls {
    fn finish(mut self) -> Result<(StructArray, Vec<usize>), ArrowError> {
        let function: Vec<ArrayRef> = vec![
            Arc::new(self.names.finish()),
            Arc::new(self.arguments.finish()),
        ];
        let function = StructArray::try_new(function_fields(), function, None)?;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.ids.finish()),
            Arc::new(self.types.finish()),
            Arc::new(function),
        ];
        let calls = StructArray::try_new(tool_call_fields(), columns, None)?;
        Ok((calls, self.ends))
    }
}

fn number(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Returns a list for each row, which ends at `ends`.
fn lists(items: StructArray, ends: Vec<usize>, nulls: NullBuffer) -> Result<ArrayRef, ArrowError> {
    let offsets = std::iter::once(0).chain(ends).map(i32::try_from);
    let offsets: Result<Vec<i32>, _> = offsets.collect();
    let offsets = offsets.map_err(|error| ArrowError::InvalidArgumentError(error.to_string()))?;
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    let item = field("item", DataType::Struct(items.fields().clone()), true);
    let lists = ListArray::try_new(item, offsets, Arc::new(items), Some(nulls))?;
    Ok(Arc::new(lists))
}
