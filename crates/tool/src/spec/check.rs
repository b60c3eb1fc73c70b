//! Consistency checks of a tool's definition.

use std::collections::HashSet;

use plaincall_syntax::is_blank;
use serde_json::{Map, Value};

use crate::Arguments;
use crate::CallExample;
use crate::SpecError;
use crate::bind_arguments;
use crate::flatten::flatten_call;
use crate::invisible::in_name;
use crate::pointer::unusable_key;
use crate::{ParameterKind, ToolSpec};
use plaincall_names::pointers::escape;

impl ToolSpec {
    /// Checks that the definition is consistent, so that its tool can be called in both syntaxes.
    ///
    /// # Errors
    /// Returns the first problem: a name that no call can express, a schema that is not an object's, a duplicate
    /// parameter, a name in `positional` or `body` that is not a parameter or has the wrong kind, a required list or
    /// object that has no room on the line of an emoji call, a schema that cannot be validated, or an example with
    /// arguments that no call can have.
    pub fn check(&self) -> Result<(), SpecError> {
        check_tool_name(&self.name)?;
        self.schema().parameters()?;
        let mut seen = HashSet::new();
        for parameter in self.parameters() {
            let at = format!("/parameters/{}", escape(&parameter.name));
            if let Some(reason) = unusable_key(&parameter.name) {
                return Err(SpecError::new(
                    at,
                    format!("the name of a parameter {reason}"),
                ));
            }
            if let Some(message) = in_name(&parameter.name) {
                return Err(SpecError::new(at, message));
            }
            if !seen.insert(parameter.name.as_str()) {
                return Err(SpecError::new(at, "duplicate parameter name"));
            }
        }
        self.check_body()?;
        self.check_positional()?;
        self.validator().check(self.schema())?;
        self.check_examples()
    }

    fn check_examples(&self) -> Result<(), SpecError> {
        for (index, example) in self.examples.iter().enumerate() {
            let checked = example.arguments_for(self);
            checked.map_err(|problem| {
                SpecError::new(format!("/examples/{index}/arguments"), problem)
            })?;
            let given = [
                ("question", example.question.is_some()),
                ("answer", example.answer.is_some()),
            ];
            if let [(given, true), (missing, false)] | [(missing, false), (given, true)] = given {
                let message = format!("an example with `{given}` needs `{missing}` too");
                return Err(SpecError::new(
                    format!("/examples/{index}/{given}"),
                    message,
                ));
            }
        }
        Ok(())
    }

    fn check_body(&self) -> Result<(), SpecError> {
        let Some(name) = &self.body else {
            return Ok(());
        };
        match self.get(name) {
            Some(parameter) if parameter.kind == ParameterKind::String => Ok(()),
            Some(parameter) => Err(SpecError::new(
                "/body",
                format!(
                    "`{name}` is {}, but the body is text, so its parameter must be a string",
                    parameter.kind.in_words()
                ),
            )),
            None => Err(SpecError::new(
                "/body",
                format!("`{name}` is not a parameter of this tool"),
            )),
        }
    }

    fn check_positional(&self) -> Result<(), SpecError> {
        let Some(names) = &self.positional else {
            return self.check_default_line();
        };
        let mut seen = HashSet::new();
        for (index, name) in names.iter().enumerate() {
            let problem = match self.get(name) {
                None => Some("is not a parameter of this tool".to_owned()),
                Some(_) if self.body.as_ref() == Some(name) => {
                    Some("is already the body".to_owned())
                }
                Some(_) if !seen.insert(name) => Some("is listed twice".to_owned()),
                Some(parameter) if !parameter.is_scalar() => Some(format!(
                    "is {}, but the line takes single values only",
                    parameter.kind.in_words()
                )),
                Some(_) => None,
            };
            if let Some(problem) = problem {
                return Err(SpecError::new(
                    format!("/positional/{index}"),
                    format!("`{name}` {problem}"),
                ));
            }
        }
        let is_placed = |name: &String| names.contains(name) || self.body.as_ref() == Some(name);
        match self
            .parameters()
            .iter()
            .find(|one| one.required && !is_placed(&one.name))
        {
            Some(parameter) => Err(SpecError::new(
                "/positional",
                format!(
                    "`{}` is required, but is neither listed here nor the body",
                    parameter.name
                ),
            )),
            None => Ok(()),
        }
    }

    /// A list contains `]`, which ends the line of an emoji call, and most objects do too.
    fn check_default_line(&self) -> Result<(), SpecError> {
        let has_parts = |kind| matches!(kind, ParameterKind::Array | ParameterKind::Object);
        let usage = self.usage();
        let mut line = usage.line.iter().map(|item| item.parameter);
        match line.find(|parameter| has_parts(parameter.kind)) {
            Some(parameter) => Err(SpecError::new(
                format!("/parameters/{}", escape(&parameter.name)),
                format!(
                    "`{}` is {} and required, but with `body` it would have to be on the line of an emoji call, which takes single values only: make it optional, or remove `body`, so that all arguments are one JSON object",
                    parameter.name,
                    parameter.kind.in_words()
                ),
            )),
            None => Ok(()),
        }
    }
}

impl CallExample {
    #[doc(hidden)]
    /// Returns the arguments if a call of the tool can have them.
    ///
    /// # Errors
    /// Returns the problem.
    pub fn arguments_for(&self, tool: &ToolSpec) -> Result<&Map<String, Value>, String> {
        self.bound_for(tool)?;
        self.object()
    }

    fn object(&self) -> Result<&Map<String, Value>, String> {
        let arguments = self.arguments.as_object();
        arguments.ok_or_else(|| "the arguments of an example must be an object".to_owned())
    }

    #[doc(hidden)]
    /// Returns the arguments that the tool would get.
    ///
    /// # Errors
    /// Returns the problem.
    pub fn bound_for(&self, tool: &ToolSpec) -> Result<Arguments, String> {
        let pairs = flatten_call(self.object()?, tool)?;
        let pairs = pairs.iter().map(|(pointer, text)| (&**pointer, &**text));
        let written = Arguments::from_pairs_for(tool, pairs).map_err(|error| error.to_string())?;
        bind_arguments(tool, &written).map_err(|errors| {
            let messages: Vec<_> = errors.into_iter().map(|error| error.message).collect();
            messages.join("; ")
        })
    }
}

fn check_tool_name(name: &str) -> Result<(), SpecError> {
    if let Some(message) = in_name(name) {
        return Err(SpecError::new("/name", message));
    }
    let begins_well = name.starts_with(|first: char| first.is_alphanumeric() || first == '_');
    let is_wrong =
        |c: char| is_blank(c) || c.is_control() || c.is_whitespace() || "\"'`:[]".contains(c);
    if begins_well && !name.contains(is_wrong) {
        return Ok(());
    }
    Err(SpecError::new(
        "/name",
        format!(
            "invalid tool name {name:?}: a name begins with a letter, a digit or `_`, and contains no whitespace, quotes, colons or brackets"
        ),
    ))
}
