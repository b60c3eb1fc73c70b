//! The grammar of the replies that may call some tools.

use std::collections::HashMap;

use plaincall_syntax::{Dialect, DialectError, Syntax};
use plaincall_tool::ToolSpec;

use crate::automaton::Automaton;
use crate::error::GrammarError;
use crate::exclusion::{self, Exclusion};
use crate::grammar::{CallForm, Form, Grammar, Markers, Reasoning};
use crate::options::GrammarOptions;

use crate::productive;
use crate::schema_values::{MOST_PARTS, Rules, SchemaValues};
use crate::text::Texts;

/// The maximum number of pointer lines of a tool. Other values are JSON.
const MOST_LINES: usize = 2_000;
/// Creates the grammar of the replies that may call these tools (`spec/grammar.md`).
///
/// The grammar accepts prose and calls that parse and bind without a problem, except for keywords of the schemas that
/// [`Grammar::unheld`] names. It accepts fewer texts than the parser: arguments come in declared order, and values contain no
/// markers.
///
/// ```
/// use plaincall_tool::{Parameter, ParameterKind, ToolSpec};
/// use plaincall_grammar::{GrammarOptions, grammar};
/// use plaincall_syntax::Dialect;
///
/// let add = ToolSpec::new("add")
///     .parameter(Parameter::new("a", ParameterKind::Integer))
///     .parameter(Parameter::new("b", ParameterKind::Integer));
/// let grammar = grammar([&add], &Dialect::block(), &GrammarOptions::new().required())?;
/// assert!(grammar.gbnf().contains(r#""add\n" "!!!ARG:a\n""#));
/// assert!(grammar.unheld().is_empty());
/// # Ok::<(), plaincall_grammar::GrammarError>(())
/// ```
///
/// # Errors
/// Returns an error for an invalid dialect or the automatic one, if there is no tool to call, if a name or pointer contains a
/// marker, and if the grammar would be too large.
pub fn grammar<'t>(
    tools: impl IntoIterator<Item = &'t ToolSpec>,
    dialect: &Dialect,
    options: &GrammarOptions,
) -> Result<Grammar, GrammarError> {
    let syntax = dialect.syntax().ok_or(DialectError::NoSyntax)?;
    let all: Vec<&ToolSpec> = tools.into_iter().collect();
    let tools = options.chosen(&all)?;
    let markers = Markers::of(dialect)?;
    let value = Exclusion::of_markers(dialect)?;
    markers.check(syntax)?;
    let escapes = exclusion::escapes(&markers.all, dialect);
    let free_text = Automaton::excluding(&value);
    let json = exclusion::in_json(&markers.all, dialect);
    let mut rules = Rules::new(Texts::new(&value, &escapes, json));
    let mut calls = Vec::new();
    let (mut size, mut largest) = (0, (0, "", None));
    for tool in tools {
        let rules_before = rules.size();
        let reader = tool.schema().reader();
        let mut values = SchemaValues {
            reader: &reader,
            tool: &tool.name,
            rules: &mut rules,
            free_text: &free_text,
            known: HashMap::new(),
            json_depth: 0,
            repeated: None,
            lines_left: MOST_LINES,
            lines_size: 0,
            culprit: None,
            escapes: &escapes,
            is_self_closing: dialect.is_self_closing(),
        };
        let form = match syntax {
            Syntax::Block => values.arguments().map(Form::Block),
            Syntax::Emoji => values.emoji_form(tool).map(Form::Emoji),
        };
        let form_size = match &form {
            Some(Form::Block(lines)) => lines.size(),
            Some(Form::Emoji(form)) => form.size(),
            None => 0,
        };
        let form_size = form_size.max(values.lines_size);
        let (has_no_steps, culprit) = (values.has_no_steps(), values.culprit.take());
        let own = form_size.saturating_add(rules.size() - rules_before);
        largest = largest.max((own, &tool.name, culprit));
        size += form_size;
        if has_no_steps || rules.size().saturating_add(size) > MOST_PARTS {
            let (_, tool, culprit) = largest;
            let (pointer, keyword) = culprit.unwrap_or_default();
            return Err(GrammarError::TooLarge {
                tool: tool.to_owned(),
                pointer,
                keyword,
                most: MOST_PARTS,
            });
        }
        let form = form.filter(|_| free_text.accepts(&format!("{}:", tool.name)));
        let form = form.ok_or_else(|| GrammarError::NoCall {
            tool: tool.name.clone(),
        })?;
        calls.push(CallForm {
            name: tool.name.clone(),
            form,
        });
    }
    let has_ids = options.has_ids && syntax == Syntax::Block;
    let reasoning = dialect.reasoning_markers().map(|[open, close]| Reasoning {
        open: open.to_owned(),
        close: close.to_owned(),
        is_open: dialect.is_in_reasoning(),
    });
    let think = reasoning
        .iter()
        .flat_map(|one| [one.open.clone(), one.close.clone()]);
    let grammar = Grammar {
        prose: value.clone().and(think),
        value,
        free_text,
        texts: rules.texts,
        markers,
        calls,
        rules: rules.all,
        unheld: rules.unheld.into_iter().collect(),
        needs_call: options.needs_call(),
        most: options.most(),
        has_ids,
        reasoning,
    };
    let grammar = productive::pruned(grammar)?;
    match grammar.first_copied_too_often() {
        None => Ok(grammar),
        Some(pointer) => Err(GrammarError::TooLarge {
            tool: largest.1.to_owned(),
            pointer,
            keyword: "$ref",
            most: MOST_PARTS,
        }),
    }
}
