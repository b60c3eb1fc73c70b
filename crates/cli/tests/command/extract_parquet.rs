//! `plaincall extract` with Parquet files.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Array as _, ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::command::process::run;

fn write(path: &Path, texts: Vec<Option<String>>) {
    let ids = Int64Array::from_iter_values(0..i64::try_from(texts.len()).unwrap());
    let texts = StringArray::from(texts);
    let columns: [(&str, ArrayRef); 2] = [("id", Arc::new(ids)), ("text", Arc::new(texts))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// Returns the texts of a column of calls and the ids, content and errors of each row.
fn read(path: &Path) -> Vec<Value> {
    let file = File::open(path).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let mut rows = Vec::new();
    for batch in reader.build().unwrap() {
        let batch = batch.unwrap();
        let column = |name: &str| batch.column_by_name(name).unwrap();
        let (ids, lists) = (
            column("id").as_primitive::<Int64Type>(),
            column("calls").as_list::<i32>(),
        );
        for row in 0..batch.num_rows() {
            let text = |name: &str| {
                let texts = column(name).as_string::<i32>();
                texts.is_valid(row).then(|| texts.value(row).to_owned())
            };
            let calls = lists.is_valid(row).then(|| {
                let calls = lists.value(row);
                let calls = calls.as_struct();
                let texts = |field: &str, call| {
                    let texts = calls.column_by_name(field).unwrap().as_string::<i32>();
                    texts.is_valid(call).then(|| texts.value(call).to_owned())
                };
                let names = ["name", "id", "arguments", "syntax", "termination", "error"];
                let call = |call| names.map(|field| texts(field, call));
                (0..calls.len()).map(call).collect::<Vec<_>>()
            });
            rows.push(json!([
                ids.value(row),
                text("content"),
                calls,
                text("error")
            ]));
        }
    }
    rows
}

/// The rows are those of JSON Lines.
#[test]
fn rows_equal_those_of_lines() {
    let folder = tempfile::tempdir().unwrap();
    let texts = [
        Some("Look.\n!!!GADGET_START:read:a\n!!!ARG:path\na.txt\n!!!GADGET_END\nDone."),
        None,
        Some("!!!GADGET_START:read\n!!!ARG:path\nb"),
        Some("No call."),
    ];
    // More than one batch.
    let texts = texts.iter().cycle().take(3001);
    let texts: Vec<Option<String>> = texts.map(|text| text.map(str::to_owned)).collect();
    write(&folder.path().join("in.parquet"), texts.clone());
    let options = ["extract", "in.parquet", "--to", "out.parquet"];
    let ran = run(folder.path(), &options, b"");
    let (lines, messages) = (
        texts.iter().map(|text| json!({"text": text}).to_string()),
        ran.stderr(),
    );
    assert_eq!(ran.status, Some(1), "{messages}");
    let summary = "3001 rows, 750 invalid (25.0 %); 1501 calls, 750 that may not run (50.0 %)";
    assert!(messages.contains(summary), "{messages}");
    let rows = read(&folder.path().join("out.parquet"));

    let lines = lines.collect::<Vec<String>>().join("\n");
    let ran = run(
        folder.path(),
        &["extract", "-", "--to", "out.jsonl"],
        lines.as_bytes(),
    );
    assert!(
        ran.stderr().contains(&summary.replace("rows", "lines")),
        "{}",
        ran.stderr()
    );
    let lines = fs::read_to_string(folder.path().join("out.jsonl")).unwrap();
    assert_eq!((rows.len(), lines.lines().count()), (3001, 3001));
    for (number, (row, line)) in rows.iter().zip(lines.lines()).enumerate() {
        let line: Value = serde_json::from_str(line).unwrap();
        let fields = ["name", "id", "arguments", "syntax", "termination", "error"];
        let calls = line["calls"].as_array().map(|calls| {
            let call = |call: &Value| fields.map(|field| call[field].clone());
            calls.iter().map(call).collect::<Vec<_>>()
        });
        let error = line["error"].is_string().then_some("the text is null");
        assert_eq!(*row, json!([number, line["content"], calls, error]));
    }
}

#[test]
fn errors_name_the_columns_and_the_file() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder.path().join("in.parquet"),
        vec![Some("a".to_owned())],
    );
    fs::write(folder.path().join("text.parquet"), "text").unwrap();
    let extract = |input: &str, column: &str| {
        let options = ["extract", input, "--to", "out.parquet", "--column", column];
        let ran = run(folder.path(), &options, b"");
        assert_ne!(ran.status, Some(0));
        assert!(!folder.path().join("out.parquet").exists());
        ran.stderr()
    };
    let message = "in.parquet: the table has no column `txt`; its columns are `id`, `text`; name another column with `--column`";
    assert!(extract("in.parquet", "txt").contains(message));
    let message = extract("in.parquet", "id");
    assert!(
        message.contains("the column `id` has the type Int64; it must have text"),
        "{message}"
    );
    let message = extract("text.parquet", "text");
    assert!(
        message.contains("text.parquet is not a readable Parquet file"),
        "{message}"
    );
    let message = extract("no.parquet", "text");
    assert!(message.contains("no.parquet"), "{message}");
}
