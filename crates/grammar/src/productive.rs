//! Removal of what can never end: a rule that needs itself.

use crate::arguments::{ArgumentValue, Lines};
use crate::emoji::{EmojiBody, EmojiForm};
use crate::error::GrammarError;
use crate::grammar::{Form, Grammar};
use crate::pattern::Pattern;

/// Removes the parts that have no finite text.
///
/// # Errors
/// Returns an error if a tool has no call left.
pub(crate) fn pruned(mut grammar: Grammar) -> Result<Grammar, GrammarError> {
    let mut ends = vec![false; grammar.rules.len()];
    let mut is_done = false;
    while !is_done {
        is_done = true;
        // A rule mostly needs later ones, or those directly before it, so a few passes find all.
        let passes = grammar.rules.iter().enumerate();
        for (index, rule) in passes.clone().rev().chain(passes) {
            if ends.get(index) == Some(&false) && has_text(rule, &ends) {
                if let Some(end) = ends.get_mut(index) {
                    *end = true;
                }
                is_done = false;
            }
        }
    }
    let rules = grammar.rules.iter();
    grammar.rules = rules
        .map(|rule| pattern(rule, &ends).unwrap_or_else(|| Pattern::Choice(Vec::new())))
        .collect();
    for call in &mut grammar.calls {
        let form = match &call.form {
            Form::Block(before) => lines(before, &ends).map(Form::Block),
            Form::Emoji(before) => emoji(before, &ends).map(Form::Emoji),
        };
        call.form = form.ok_or_else(|| GrammarError::NoCall {
            tool: call.name.clone(),
        })?;
    }
    Ok(grammar)
}

fn has_text(pattern: &Pattern, ends: &[bool]) -> bool {
    match pattern {
        Pattern::Rule(rule) => ends.get(*rule).is_some_and(|ends| *ends),
        Pattern::Sequence(parts) => parts.iter().all(|part| has_text(part, ends)),
        Pattern::Choice(options) => options.iter().any(|option| has_text(option, ends)),
        Pattern::Repeat { of, least, .. } => *least == 0 || has_text(of, ends),
        Pattern::Literal(_) | Pattern::Text(_) => true,
        Pattern::Characters(characters) => !characters.is_empty(),
    }
}

fn pattern(before: &Pattern, ends: &[bool]) -> Option<Pattern> {
    match before {
        Pattern::Sequence(parts) => {
            let parts: Option<Vec<Pattern>> =
                parts.iter().map(|part| pattern(part, ends)).collect();
            Some(Pattern::sequence(parts?))
        }
        Pattern::Choice(options) => {
            let options: Vec<Pattern> = options
                .iter()
                .filter_map(|one| pattern(one, ends))
                .collect();
            (!options.is_empty()).then(|| Pattern::choice(options))
        }
        Pattern::Repeat { of, least, most } => match pattern(of, ends) {
            Some(of) => Some(of.repeat(*least, *most)),
            None => (*least == 0).then(|| Pattern::literal("")),
        },
        other => has_text(other, ends).then(|| other.clone()),
    }
}

fn lines(before: &Lines, ends: &[bool]) -> Option<Lines> {
    match before {
        Lines::Argument { pointer, value } => {
            let value = match value {
                ArgumentValue::Pattern(value) => ArgumentValue::Pattern(pattern(value, ends)?),
                text => text.clone(),
            };
            let pointer = pointer.clone();
            Some(Lines::Argument { pointer, value })
        }
        Lines::Sequence(parts) => {
            let mut all = Vec::new();
            for (is_required, part) in parts {
                match lines(part, ends) {
                    Some(part) => all.push((*is_required, part)),
                    None if *is_required => return None,
                    None => {}
                }
            }
            Some(Lines::Sequence(all))
        }
        Lines::Choice(options) => {
            let options: Vec<Lines> = options.iter().filter_map(|one| lines(one, ends)).collect();
            (!options.is_empty()).then_some(Lines::Choice(options))
        }
    }
}

fn emoji(before: &EmojiForm, ends: &[bool]) -> Option<EmojiForm> {
    let body = match &before.body {
        EmojiBody::Pattern(body) => EmojiBody::Pattern(pattern(body, ends)?),
        text @ EmojiBody::Text { .. } => text.clone(),
    };
    Some(EmojiForm {
        line: before.line.clone(),
        body,
    })
}
