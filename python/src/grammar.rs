//! Grammars for constrained decoding.

use plaincall_grammar::{Choice, Engine, GrammarOptions, grammar};
use plaincall_tool::ToolSet;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{self, GrammarError};
use crate::json;

/// A grammar with which an inference engine keeps a model from writing invalid calls.
#[pyclass(frozen, module = "plaincall")]
pub(crate) struct Grammar {
    /// The grammar in the notation of the engine.
    #[pyo3(get)]
    text: String,
    /// The keywords that the grammar does not enforce, one sentence each.
    #[pyo3(get)]
    notes: Vec<String>,
    fields: serde_json::Map<String, serde_json::Value>,
}

#[pymethods]
impl Grammar {
    /// The fields to add to a chat request: `extra_body` of the `openai` client.
    #[getter]
    fn request_fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        json::object_to_python(py, &self.fields)
    }

    fn __repr__(&self) -> String {
        format!("Grammar({} bytes)", self.text.len())
    }
}

/// The options of a grammar as Python gives them.
pub(crate) struct Options<'o> {
    pub(crate) engine: &'o str,
    pub(crate) choice: &'o str,
    pub(crate) only: Option<String>,
    pub(crate) one_call: bool,
    pub(crate) ids: bool,
}

pub(crate) fn engine(name: &str) -> PyResult<Engine> {
    let names = Engine::ALL.map(Engine::name);
    Engine::from_name(name).ok_or_else(|| error::one_of("engine", name, &names))
}

pub(crate) fn new(
    tools: &ToolSet,
    dialect: &plaincall_syntax::Dialect,
    options: Options<'_>,
) -> PyResult<Grammar> {
    let engine = engine(options.engine)?;
    let choice = match (options.only, options.choice) {
        (Some(name), _) => Choice::Tool(name),
        (None, "auto") => Choice::Auto,
        (None, "required") => Choice::Required,
        (None, "none") => Choice::None,
        (None, other) => {
            return Err(error::one_of(
                "choice",
                other,
                &["auto", "required", "none"],
            ));
        }
    };
    let mut settings = GrammarOptions::new().choice(choice);
    if options.one_call {
        settings = settings.one_call();
    }
    if options.ids {
        settings = settings.ids();
    }
    let made = grammar(tools.iter(), dialect, &settings);
    let made = made.map_err(|error| GrammarError::new_err(error.to_string()))?;
    Ok(Grammar {
        text: made.text(engine),
        notes: made
            .unheld_by(engine)
            .iter()
            .map(ToString::to_string)
            .collect(),
        fields: made.request_fields(engine),
    })
}
