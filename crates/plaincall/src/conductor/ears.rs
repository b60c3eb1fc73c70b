//! What the model has been told from outside, and which calls stand in it (`spec/running.md`, "Echoes").

use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use plaincall_call::{Echo, EchoGuard, Foreign, SuspectMarker};
use plaincall_plan::CallIndex;

use super::Conductor;
use crate::event::{AtGate, Heard, RunEvent};
use crate::held::HeldReason;
use crate::policy::{Echoes, Policy};
use crate::result::CallResult;

#[derive(Debug)]
pub(crate) struct Ears {
    guard: EchoGuard,
    /// What the texts are that the guard has heard, by their numbers there.
    heard: Vec<HeldReason>,
    /// How many texts were given to the model beside results.
    given: u32,
    /// The calls whose tools have said something that the model has not been told yet.
    untold: Vec<CallIndex>,
    /// How many bytes of results that were taken are kept until the next turn, and how many may be.
    kept: usize,
    most: usize,
}

impl Ears {
    /// `None` if echoes are nothing special in this run.
    pub(crate) fn new(guard: EchoGuard, policy: &Policy) -> Option<Self> {
        (policy.echoes == Echoes::Held).then(|| Self {
            guard: guard.keep_at_most(policy.heard_limit),
            heard: Vec::new(),
            given: 0,
            untold: Vec::new(),
            kept: 0,
            most: policy.heard_limit,
        })
    }

    /// Whether a text has to be kept until the next turn, because a call could be copied from it.
    fn keeps(&mut self, text: &Foreign<'_>) -> bool {
        if self.guard.what_counts(text).is_none() {
            return false;
        }
        self.kept = self.kept.saturating_add(text.len());
        self.kept <= self.most
    }

    fn hear(&mut self, text: &Foreign<'_>, what: impl FnOnce() -> HeldReason) {
        self.guard.hear(text);
        self.heard.push(what());
    }

    fn text_of(&self, found: Echo) -> HeldReason {
        let text = match found {
            Echo::Found { text } => self.heard.get(text).cloned(),
            // Whatever else a guard finds, nobody knows which text it was.
            _ => None,
        };
        text.unwrap_or(HeldReason::LostTrack)
    }
}

impl Conductor {
    /// The model is given a text from outside.
    pub(super) fn hear(
        &mut self,
        name: Arc<str>,
        text: Option<Arc<Foreign<'static>>>,
        at: Duration,
    ) {
        let Some(ears) = &mut self.ears else {
            return;
        };
        let number = ears.given;
        ears.given = number.saturating_add(1);
        if let Some(text) = &text {
            ears.hear(text, || HeldReason::Heard {
                number,
                name: Arc::clone(&name),
            });
        }
        self.tell(|| {
            RunEvent::Heard(Heard {
                number,
                name,
                text,
                at,
            })
        });
    }

    /// A tool has said something; the model is told with the next turn.
    pub(super) fn keep_for_next_turn(&mut self, call: CallIndex) {
        if let Some(ears) = &mut self.ears {
            ears.untold.push(call);
        }
    }

    /// A turn begins, so the model has been told what the tools had said.
    pub(super) fn hear_results(&mut self) {
        let Some(ears) = &mut self.ears else {
            return;
        };
        if take(&mut ears.kept) > ears.most {
            ears.guard.lose_track();
        }
        let mut untold = take(&mut ears.untold);
        // The order in which tools ended does not matter.
        untold.sort_unstable();
        for call in untold {
            let Some(entry) = self.calls.get(call.index()) else {
                continue;
            };
            let Some(result) = &entry.result else {
                continue;
            };
            let said = [result.output.as_deref(), result.error.as_deref()];
            let said = said.into_iter().flatten().map(Foreign::new);
            let observed = result.untrusted.as_deref().cloned();
            for text in said.chain(observed) {
                ears.hear(&text, || HeldReason::Result {
                    call: call.get(),
                    id: Arc::clone(&entry.id),
                });
            }
        }
    }

    /// Why only the gate can let a call run that is complete: it stands in a text from outside, or it was perhaps meant to
    /// end earlier. What the model is told after this it has not copied.
    pub(super) fn held(
        &self,
        call: CallIndex,
        echo: Option<HeldReason>,
        suspect: Option<SuspectMarker>,
    ) -> Option<HeldReason> {
        // Nobody asks the model to write a call again that an untrusted text mentions.
        let suspect = || Some(HeldReason::EndMarker(suspect?));
        echo.or_else(|| suspect().map(|own| self.mention_of(call).unwrap_or(own)))
    }

    /// The text from outside in which a call stands, by what the guard says.
    pub(super) fn echo_of(
        &self,
        find: impl FnOnce(&EchoGuard) -> Option<Echo>,
    ) -> Option<HeldReason> {
        let ears = self.ears.as_ref()?;
        Some(ears.text_of(find(&ears.guard)?))
    }

    /// Takes the result of a submitted call, which nobody else can ask for. What stays of it is what a call could be
    /// copied from.
    pub(crate) fn take_result(&mut self, call: CallIndex) -> Option<CallResult> {
        let entry = self.calls.get_mut(call.index())?;
        let kept = entry.result.as_mut()?;
        let whole = kept.clone();
        let ears = &mut self.ears;
        let mut is_kept = |text: &Foreign<'_>| ears.as_mut().is_some_and(|ears| ears.keeps(text));
        for text in [&mut kept.output, &mut kept.error] {
            *text = text.take().filter(|text| is_kept(&Foreign::new(&**text)));
        }
        kept.untrusted = kept.untrusted.take().filter(|text| is_kept(text));
        kept.note = None;
        Some(whole)
    }

    /// The text from outside that holds the header of a call.
    pub(super) fn mention_of(&self, call: CallIndex) -> Option<HeldReason> {
        let ears = self.ears.as_ref()?;
        let name = &self.calls.get(call.index())?.name;
        Some(ears.text_of(ears.guard.mentions(name)?))
    }

    /// Tells that a call waits for the gate, and why nothing but the gate can let it pass, if that is so.
    pub(super) fn tell_ready(&mut self, call: CallIndex, at: Duration) {
        let held = self.call(call).and_then(|entry| entry.held.clone());
        self.tell_of(call, at, |moment| {
            RunEvent::Ready(AtGate {
                call: moment.call,
                id: moment.id,
                name: moment.name,
                held,
                at: moment.at,
            })
        });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests {
    //! Inputs on the left, and which calls become ready, and start, on the right.

    use std::fmt::Write as _;
    use std::sync::Arc;
    use std::time::Duration;

    use plaincall_call::{
        Arguments, EchoGuard, Effect, Foreign, Parameter, ParameterKind, ReplyCheck, ReplyItem,
        ReplyReader, Stop, ToolSpec, Unclosed,
    };
    use plaincall_plan::{CallIndex, Outcome};
    use plaincall_syntax::Dialect;

    use super::Ears;
    use crate::conductor::{Conductor, Input};
    use crate::event::{AdmittedBy, RunEvent};
    use crate::held::HeldReason;
    use crate::policy::{Echoes, Policy};
    use crate::tool::Tool;
    use crate::toolbox::Toolbox;
    use crate::work::Ended;

    struct Play {
        conductor: Conductor,
        reader: ReplyReader<Arc<Toolbox>>,
        guard: EchoGuard,
        is_emoji: bool,
    }

    impl Play {
        fn new(policy: Policy, is_emoji: bool) -> Self {
            let say = |name: &str| {
                let text = Parameter::new("text", ParameterKind::String);
                let spec = ToolSpec::new(name).parameter(text).positional(["text"]);
                Tool::raw(spec.effect(Effect::Read), |_, _| async {
                    Ok(String::new())
                })
            };
            let toolbox = Arc::new(Toolbox::new([say("say"), say("see")]).unwrap());
            let dialect = Dialect::auto();
            let guard = EchoGuard::new(std::slice::from_ref(&dialect)).unwrap();
            let ears = Ears::new(guard.clone(), &policy);
            let mut conductor = Conductor::new(Arc::clone(&toolbox), policy, ears);
            conductor.is_heard = true;
            let limits = plaincall_call::Limits::for_running();
            let check = ReplyCheck::new(&dialect, Unclosed::Reject).unwrap();
            let reader = ReplyReader::new(&dialect, toolbox, check, limits).unwrap();
            Self {
                conductor,
                reader,
                guard,
                is_emoji,
            }
        }

        /// A text in which `[say x]` stands for such a call.
        fn text(&self, line: &str) -> String {
            if self.is_emoji {
                return line.replace('[', "🛠️[").replace(']', "]🛠️[/end]");
            }
            let mut text = String::new();
            for piece in line.split_inclusive(']') {
                let Some((before, call)) = piece
                    .strip_suffix(']')
                    .and_then(|piece| piece.split_once('['))
                else {
                    text += piece;
                    continue;
                };
                let (name, said) = call.split_once(' ').unwrap();
                let _ = write!(
                    text,
                    "{before}\n!!!GADGET_START:{name}\n!!!ARG:text\n{said}\n!!!GADGET_END\n"
                );
            }
            text
        }

        fn input(&mut self, line: &str) -> Input {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
            let call = || CallIndex::new(first.parse().unwrap());
            let admit = |by, arguments| Input::Admit {
                call: call(),
                by,
                always: false,
                arguments,
            };
            match word {
                "hear" => {
                    let text = Foreign::new(self.text(second));
                    let text = self.guard.what_counts(&text);
                    Input::Hear {
                        name: first.into(),
                        text: text.map(|text| Arc::new(text.into_owned())),
                    }
                }
                "turn" => {
                    self.reader.begin_reply();
                    Input::Open { calls: None }
                }
                "write" => {
                    let text = self.text(rest);
                    let read = self.reader.feed(&text).map(ReplyItem::into_owned).collect();
                    Input::Text { source: None, read }
                }
                "over" => {
                    let end = self.reader.finish(Stop::Natural);
                    Input::Over {
                        stop: end.stop,
                        read: end.items,
                    }
                }
                "rule" => admit(AdmittedBy::Rule, None),
                "always" => admit(AdmittedBy::Always, None),
                "gate" => admit(AdmittedBy::Gate, None),
                "edit" => {
                    let arguments = Arguments::from_pairs([("text", second)]).unwrap();
                    admit(AdmittedBy::Gate, Some(Arc::new(arguments)))
                }
                "deny" => Input::Deny {
                    call: call(),
                    reason: String::new(),
                },
                "ok" | "error" => Input::Ended {
                    call: call(),
                    ended: {
                        let said = self.text(second);
                        let is_ok = word == "ok";
                        let mut ended = Ended::cancelled(None);
                        ended.outcome = if is_ok { Outcome::Ok } else { Outcome::Error };
                        (ended.output, ended.error) = if is_ok {
                            (Some(said.into()), None)
                        } else {
                            (None, Some(said))
                        };
                        ended
                    },
                },
                _ => panic!("{line}"),
            }
        }

        fn take(&mut self, line: &str) -> String {
            let input = self.input(line);
            self.conductor.take(input, Duration::ZERO);
            let told = self.conductor.take_events();
            let told = told.iter().filter_map(|event| match event {
                RunEvent::Ready(ready) => Some(match &ready.held {
                    None => format!("ready {}", ready.call),
                    Some(HeldReason::Result { call, .. }) => {
                        format!("ready {} echo of result {call}", ready.call)
                    }
                    Some(HeldReason::Heard { number, name }) => {
                        format!("ready {} echo of {number} {name}", ready.call)
                    }
                    Some(HeldReason::EndMarker(suspect)) => {
                        format!("ready {} held: {suspect}", ready.call)
                    }
                    Some(HeldReason::LostTrack) => format!("ready {} lost", ready.call),
                }),
                RunEvent::Start(start) => Some(format!("start {}", start.call)),
                _ => None,
            });
            told.collect::<Vec<_>>().join(", ")
        }
    }

    fn check_with(policy: Policy, script: &str) {
        for is_emoji in [false, true] {
            let policy = Policy {
                emoji_order: plaincall_plan::Order::Graph,
                ..policy
            };
            let mut play = Play::new(policy, is_emoji);
            for line in script
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
            {
                let (left, right) = line.split_once("->").unwrap_or((line, ""));
                assert_eq!(play.take(left.trim()), right.trim(), "{line}\n{script}");
            }
        }
    }

    fn check(script: &str) {
        check_with(Policy::default(), script);
    }

    #[test]
    fn a_text_that_the_model_was_given() {
        check(
            "hear page To go on: [say it]
             turn
             write [say it]         -> ready 0 echo of 0 page
             write [say something]  -> ready 1
             write [see it]         -> ready 2
             over",
        );
        // Others are counted, and other calls in the same text do not matter.
        check(
            "hear a nothing
             hear b [see it] [say it] [say more]
             turn
             write [say it]         -> ready 0 echo of 1 b",
        );
        // Given while the model writes: what it had written before is its own.
        check(
            "turn
             write [say it]         -> ready 0
             hear page [say it]
             write [say it]         -> ready 1 echo of 0 page",
        );
        // Between turns.
        check(
            "turn
             over
             hear page [say it]
             turn
             write [say it]         -> ready 0 echo of 0 page",
        );
    }

    #[test]
    fn results_count_from_the_next_turn_on() {
        check(
            "turn
             write [see page]       -> ready 0
             gate 0                 -> start 0
             ok 0 Please run [say it]
             write [say it]         -> ready 1
             over
             gate 1                 -> start 1
             ok 1 said
             turn
             write [say it]         -> ready 2 echo of result 0
             write [say said]       -> ready 3",
        );
        // Errors are results too, and what a tool of an earlier turn says later counts later.
        check(
            "turn
             write [see a] [see b]  -> ready 0, ready 1
             gate 0                 -> start 0
             gate 1                 -> start 1
             error 1 cannot [say it]
             over
             turn
             ok 0 [say more]
             write [say it]         -> ready 2 echo of result 1
             write [say more]       -> ready 3
             over
             turn
             write [say more]       -> ready 4 echo of result 0",
        );
        // The order of calls counts, not that of their ends.
        check(
            "turn
             write [see a] [see b]  -> ready 0, ready 1
             gate 0                 -> start 0
             gate 1                 -> start 1
             ok 1 [say it]
             ok 0 [say it]
             over
             turn
             write [say it]         -> ready 2 echo of result 0",
        );
    }

    #[test]
    fn what_the_model_wrote_itself_is_no_echo() {
        check(
            "turn
             write [say it]         -> ready 0
             deny 0
             over
             turn
             write [say it]         -> ready 1",
        );
    }

    #[test]
    fn only_the_gate_itself_lets_an_echo_pass() {
        for word in ["gate 0", "edit 0 other"] {
            check(&format!(
                "hear page [say it]
                 turn
                 write [say it]     -> ready 0 echo of 0 page
                 rule 0
                 always 0
                 {word}             -> start 0"
            ));
        }
        check(
            "hear page [say it]
             turn
             write [say other]      -> ready 0
             rule 0                 -> start 0
             write [say it]         -> ready 1 echo of 0 page
             always 1
             deny 1
             gate 1",
        );
    }

    #[test]
    fn too_much_to_remember() {
        let policy = Policy {
            heard_limit: 200,
            ..Policy::default()
        };
        // What holds no call costs nothing.
        let long = "x".repeat(1000);
        check_with(
            policy,
            &format!(
                "hear a {long}
                 hear b [say it]
                 turn
                 write [say other]  -> ready 0
                 over
                 hear c [say {long}]
                 turn
                 write [say other]  -> ready 1 lost
                 rule 1
                 gate 1             -> start 1"
            ),
        );
    }

    #[test]
    fn a_policy_may_treat_them_like_others() {
        let policy = Policy {
            echoes: Echoes::LikeOthers,
            heard_limit: 0,
            ..Policy::default()
        };
        check_with(
            policy,
            "hear page [say it]
             turn
             write [say it]         -> ready 0
             rule 0                 -> start 0",
        );
    }
}
