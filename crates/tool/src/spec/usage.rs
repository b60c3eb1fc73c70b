//! The usage of a tool in the emoji syntax.

use std::fmt;

use crate::{Parameter, ParameterKind, ToolSpec};

/// The usage of a tool in the emoji syntax: the parameters on the line and in the body (`spec/emoji.md`, binding to
/// named parameters).
///
/// The tool's definition determines it. `Display` writes `run-query file limit?`: a question mark follows an optional
/// parameter, and an ellipsis a last parameter that takes the rest of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage<'s> {
    /// The tool's name.
    pub name: &'s str,
    /// The parameters on the line after the name, in order.
    pub line: Vec<UsageItem<'s>>,
    /// The content of the body.
    pub body: UsageBody<'s>,
}

/// A parameter on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageItem<'s> {
    /// The parameter.
    pub parameter: &'s Parameter,
    /// Whether the parameter takes the rest of the line, including blanks: the last one does if it is a string.
    pub takes_rest: bool,
}

/// The content of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageBody<'s> {
    /// No content: it must be blank.
    Nothing,
    /// The text of this parameter.
    Parameter(&'s Parameter),
    /// One JSON object with all arguments.
    Json,
}

impl ToolSpec {
    /// Returns the usage of the tool in the emoji syntax.
    pub fn usage(&self) -> Usage<'_> {
        let body = self.body.as_deref().and_then(|name| self.get(name));
        let declares_form = self.positional.is_some() || self.body.is_some();
        if !declares_form && !self.fits_line() {
            return Usage {
                name: &self.name,
                line: Vec::new(),
                body: UsageBody::Json,
            };
        }
        let parameters: Vec<&Parameter> = match &self.positional {
            Some(names) => names.iter().filter_map(|name| self.get(name)).collect(),
            None => self.default_line(),
        };
        let last = parameters.len().saturating_sub(1);
        let line = parameters
            .into_iter()
            .enumerate()
            .map(|(index, parameter)| UsageItem {
                parameter,
                takes_rest: index == last && parameter.kind == ParameterKind::String,
            })
            .collect();
        Usage {
            name: &self.name,
            line,
            body: body.map_or(UsageBody::Nothing, UsageBody::Parameter),
        }
    }

    /// Returns `true` if all arguments fit on the line by default.
    fn fits_line(&self) -> bool {
        let texts = self
            .parameters()
            .iter()
            .filter(|parameter| parameter.is_free_text());
        self.has_one_form()
            && self.parameters().iter().all(Parameter::is_scalar)
            && texts.count() <= 1
    }

    /// Returns the required parameters, then the optional scalars, without the body.
    fn default_line(&self) -> Vec<&Parameter> {
        let on_line = |parameter: &&Parameter| self.body.as_deref() != Some(&parameter.name);
        let required = self
            .parameters()
            .iter()
            .filter(|parameter| parameter.required);
        let optional = self
            .parameters()
            .iter()
            .filter(|parameter| !parameter.required && parameter.is_scalar());
        required.chain(optional).filter(on_line).collect()
    }
}

impl fmt::Display for Usage<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)?;
        for item in &self.line {
            write!(formatter, " {}", item.parameter.name)?;
            if item.takes_rest {
                formatter.write_str("...")?;
            }
            if !item.parameter.required {
                formatter.write_str("?")?;
            }
        }
        match self.body {
            UsageBody::Nothing => Ok(()),
            UsageBody::Parameter(parameter) => write!(formatter, " (body: {})", parameter.name),
            UsageBody::Json => formatter.write_str(" (body: one JSON object)"),
        }
    }
}
