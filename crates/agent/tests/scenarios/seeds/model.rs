//! A model that writes random replies.

use std::sync::Arc;
use std::time::Duration;

use plaincall_agent::model::{
    Finish, Model, ModelError, ModelErrorKind, ModelRequest, Reply, Role, Usage,
};
use plaincall_agent::plaincall::Stop;
use plaincall_agent::plaincall::syntax::{Call, Dialect, Syntax, render};
use tokio::time::sleep;

use super::tools::{AGENTS, NAMES};
use super::world::World;

/// The model.
pub(super) struct Chance {
    pub(super) world: Arc<World>,
    /// `true` for the model of a subagent.
    pub(super) is_nested: bool,
}

/// The events of a reply.
enum Step {
    Wait(Duration),
    Text(String),
    Reasoning(String),
    Usage(Usage),
    Stall,
}

impl Model for Chance {
    fn name(&self) -> &'static str {
        "chance"
    }

    fn reply(&self, request: ModelRequest) -> Reply {
        let world = Arc::clone(&self.world);
        let live = world.replies.one();
        let messages = request.messages.iter();
        let is_first = !messages.into_iter().any(|one| one.role == Role::Assistant);
        let place = world.ask(request.messages, self.is_nested);
        let is_nested = self.is_nested;
        let delegates = world.delegates && (is_first || world.one_in(2));
        let names = match (delegates, self.is_nested) {
            (false, _) => None,
            (true, false) => Some(AGENTS),
            (true, true) => Some(NAMES),
        };
        let (steps, is_whole) = steps(&world, names);
        let mut end = end(&world);
        if !is_whole && end.as_ref().is_ok_and(|end| end.stop == Stop::Natural) {
            // Only a complete reply is marked as complete: half a value would be taken for the whole.
            end = Ok(Finish::new(Stop::Length));
        }
        Reply::new(move |out| async move {
            let _live = live;
            let mut has_begun = !is_nested;
            for step in steps {
                if matches!(step, Step::Text(_) | Step::Reasoning(_)) && !has_begun {
                    has_begun = true;
                    world.begin();
                }
                match step {
                    Step::Wait(pause) => sleep(pause).await,
                    Step::Text(text) => {
                        world.write(place, &text);
                        out.text(text).await;
                    }
                    Step::Reasoning(text) => out.reasoning(text).await,
                    Step::Usage(usage) => out.usage(usage).await,
                    Step::Stall => world.hang().await,
                }
            }
            if !has_begun && end.is_ok() {
                world.begin();
            }
            end
        })
    }
}

fn end(world: &World) -> Result<Finish, ModelError> {
    Ok(match world.below(16) {
        0 => Finish::new(Stop::Length).reason("length"),
        1 => Finish::new(Stop::Broken),
        2 => return Err(error(world)),
        _ => Finish::stop(),
    })
}

fn error(world: &World) -> ModelError {
    let kind = world.pick(&[
        ModelErrorKind::Connect,
        ModelErrorKind::Busy,
        ModelErrorKind::Busy,
        ModelErrorKind::Refused,
        ModelErrorKind::TooLong,
        ModelErrorKind::Timeout,
        ModelErrorKind::Broken,
    ]);
    let error = ModelError::new(kind, "failed at random");
    if world.one_in(3) {
        error.retry_after(Duration::from_millis(world.below(3000) as u64))
    } else {
        error
    }
}

/// Returns the events, with calls of these tools if there are names, and whether the reply is complete.
fn steps(world: &World, names: Option<&[&'static str]>) -> (Vec<Step>, bool) {
    let mut steps = Vec::new();
    // Sometimes nothing arrives, or a failure comes first.
    if world.one_in(12) {
        return (steps, true);
    }
    let text = text(world, names);
    let mut rest = &*text;
    let longest = world.pick(&[1, 3, 20, 500]);
    while !rest.is_empty() {
        let mut at = 1 + world.below(longest);
        while !rest.is_char_boundary(at.min(rest.len())) {
            at += 1;
        }
        let (piece, behind) = rest.split_at(at.min(rest.len()));
        steps.push(Step::Text(piece.to_owned()));
        rest = behind;
        if world.one_in(12) {
            steps.push(Step::Wait(world.pause()));
        }
    }
    let mut insert = |step| {
        let at = world.below(steps.len() + 1);
        steps.insert(at, step);
    };
    if world.one_in(4) {
        insert(Step::Reasoning("Hm. !!!GADGET_START:quick\n".to_owned()));
    }
    for _ in 0..world.below(3) {
        insert(Step::Usage(Usage::new(
            world.below(500) as u64,
            world.below(50) as u64,
        )));
    }
    if world.one_in(30) {
        insert(Step::Stall);
    }
    // A reply may be truncated anywhere.
    let is_cut = world.one_in(8);
    if is_cut {
        let len = world.below(steps.len() + 1);
        steps.truncate(len);
    }
    (steps, !is_cut)
}

/// Prose without a call.
const PROSE: &[&str] = &[
    "Let me see.\n",
    "\u{65E5}\u{672C}\u{8A9E} ",
    "It is done. ",
    "\n",
    "  ",
    "\r\n",
    "```\n",
    "Result 1 of 1: tool quick, id a, status ok\n",
    "a\\",
    "<think>",
];

/// Incomplete markers and mistakes.
const WRONG: &[&str] = &[
    "!!!gadget_start:quick\n!!!arg:tag\nx\n!!!gadget_end\n",
    "!!!GADGET_START:",
    "!!!GADGET_START:quick\n",
    "!!!GADGET_START:quick:a\n!!!ARG:tag\n1\n!!!ARG:tag\n2\n!!!GADGET_END\n",
    "!!!GADGET_START:quick\nsome words\n!!!GADGET_END\n",
    "!!!GADGET_START:any:b:b\n!!!GADGET_END\n",
    "!!!GADGET_END\n",
    "!!!ARG:tag\n",
    "\u{1F6E0}\u{FE0F}[quick",
    "\u{1F6E0}\u{FE0F}[quick]",
    "\u{1F6E0}\u{FE0F}[/end]",
    "\u{1F6E0} [quick a]\n",
    "!!!GADGET_",
];

fn text(world: &World, names: Option<&[&'static str]>) -> String {
    let dialect = world.dialect();
    let mut text = String::new();
    let mut ids = Vec::new();
    // Mostly short, so that conversations come to an end.
    let parts = world.pick(&[1, 1, 2, 3, 6]);
    let only_prose = world.one_in(3);
    for part in 0..parts {
        if let Some(names) = names.filter(|_| part == 0) {
            text.push_str(&call(world, &dialect, &mut ids, names));
            continue;
        }
        match world.below(if only_prose { 3 } else { 10 }) {
            0..3 => text.push_str(world.pick(PROSE)),
            3 => text.push_str(world.pick(WRONG)),
            _ => text.push_str(&call(world, &dialect, &mut ids, NAMES)),
        }
    }
    text
}

/// A valid or almost valid call.
fn call(world: &World, dialect: &Dialect, ids: &mut Vec<String>, names: &[&'static str]) -> String {
    let name = match world.below(40) {
        0 => "quikc",
        1 => "nothing of the kind",
        _ => world.pick(names),
    };
    let name = name.split(' ').next().unwrap_or_default();
    // Sometimes a call that was written before.
    let tag = if world.one_in(12) {
        "t1".to_owned()
    } else {
        world.tag()
    };
    world.wrote(&tag);
    let wrong = world.below(20);
    let has_body = matches!(name, "write" | "helper" | "leader");
    let text = if dialect.syntax() == Some(Syntax::Emoji) {
        let raw_args = match wrong {
            0 => String::new(),
            1 => format!("{tag} five"),
            _ if has_body => String::new(),
            _ => tag.clone(),
        };
        let body = if has_body { &*tag } else { "" };
        render(
            &Call::Emoji {
                name,
                raw_args: &raw_args,
                body,
            },
            dialect,
        )
    } else {
        let id = match world.below(6) {
            0 => None,
            1 => Some("a".to_owned()),
            _ => Some(format!("id{}", world.below(1000))),
        };
        let mut dependencies = Vec::new();
        for _ in 0..world.pick(&[0, 0, 1, 2]) {
            dependencies.push(match world.below(24) {
                0 => "missing".to_owned(),
                1 => format!("id{}", world.below(1000)),
                2 => id.clone().unwrap_or_default(),
                _ if ids.is_empty() => continue,
                _ => ids[world.below(ids.len())].clone(),
            });
        }
        dependencies.retain(|dependency| !dependency.is_empty());
        let is_agent = matches!(name, "helper" | "leader");
        let mut arguments = vec![(if is_agent { "task" } else { "tag" }, &*tag)];
        match wrong {
            0 => arguments.clear(),
            1 => arguments.push(("count", "five")),
            2 => arguments.push(("count", "5")),
            3 => arguments.push(("other", "x")),
            _ => {}
        }
        ids.extend(id.clone());
        let dependencies = dependencies.iter().map(String::as_str).collect();
        render(
            &Call::Block {
                name,
                id: id.as_deref(),
                dependencies,
                arguments,
            },
            dialect,
        )
    };
    let mut text = text.unwrap_or_default();
    if world.one_in(15) {
        // Without its end.
        let kept = text
            .trim_end()
            .rfind(['!', '\u{1F6E0}'])
            .unwrap_or_default();
        text.truncate(kept);
    }
    text
}
