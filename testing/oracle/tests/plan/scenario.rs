//! Random conversations: what is written, in which pieces it arrives, and what will become of it.

use std::num::NonZeroU32;

use plaincall_oracle::arbitrary_texts::Random;
use plaincall_oracle::plan_oracle::{Call, Conversation, Fate, Turn};
use plaincall_plan::{Limits, Order, Outcome, Reply, Tool};

/// A part of the model's output. Calls are numbered over the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    BeginTurn(Order),
    /// The call's header.
    Header(usize),
    /// The end of its text.
    Rest(usize),
    EndTurn(Reply),
}

/// When something is cancelled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cancel {
    /// After how many pieces and answers.
    pub(crate) at: usize,
    /// Running calls are out of time: they end `error` at once.
    pub(crate) is_timeout: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) conversation: Conversation,
    pub(crate) limits: Limits,
    pub(crate) tools: Vec<Tool>,
    /// The tool of every call.
    pub(crate) tool_of: Vec<usize>,
    pub(crate) pieces: Vec<Piece>,
    /// How often each call fails before it ends as it is fated to.
    pub(crate) failures: Vec<usize>,
    pub(crate) cancels: Vec<Cancel>,
    /// How often in a hundred steps the text continues, while there is something else to do.
    pub(crate) text_first: usize,
    /// Calls whose text never ends, among the wrong ones.
    pub(crate) unfinished: Vec<usize>,
}

const IDS: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

impl Scenario {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let mut tools = vec![Tool::default(); 5];
        tools[1].max_concurrent = NonZeroU32::new(1);
        tools[2].max_concurrent = NonZeroU32::new(2);
        tools[2].read = true;
        tools[3].read = true;
        tools[4].exclusive = true;
        tools[4].read = random.percent(50);
        let (defers, tolerates) = (random.pick(&[0, 0, 50]), random.pick(&[0, 50]));
        for tool in &mut tools {
            tool.deferred = random.percent(defers);
            tool.tolerated = random.percent(tolerates);
        }
        let calls_per_turn = random
            .percent(15)
            .then(|| u32::try_from(random.below(12)).unwrap());
        let mut limits = Limits::default();
        limits.concurrent = NonZeroU32::new(random.pick(&[0, 0, 1, 2, 3]));
        limits.calls_per_turn = calls_per_turn;
        let mut scenario = Self {
            conversation: Conversation {
                calls_per_turn,
                turns: Vec::new(),
            },
            limits,
            tools,
            tool_of: Vec::new(),
            pieces: Vec::new(),
            failures: Vec::new(),
            cancels: Vec::new(),
            text_first: random.pick(&[10, 50, 90, 100]),
            unfinished: Vec::new(),
        };
        let retries = random.pick(&[0, 0, 50]);
        for _ in 0..random.pick(&[1, 1, 1, 2, 2, 3]) {
            scenario.draw_turn(random, retries);
        }
        // Now and then all of it is cancelled, or twice.
        for chance in [25, 40] {
            if random.percent(chance) {
                scenario.cancels.push(Cancel {
                    at: random.below(2 * scenario.pieces.len()),
                    is_timeout: random.percent(50),
                });
            } else {
                break;
            }
        }
        scenario
    }

    fn draw_turn(&mut self, random: &mut Random, retries: usize) {
        let order = match random.below(10) {
            0 | 1 => Order::Sequential {
                stop_on_error: false,
            },
            2 | 3 => Order::Sequential {
                stop_on_error: true,
            },
            _ => Order::Graph,
        };
        let reply = if random.percent(20) {
            Reply::Truncated
        } else {
            Reply::Complete
        };
        let first = self.tool_of.len();
        let count = random.below(IDS.len() + 1);
        // How tangled a turn is, so that there are also turns in which all goes well.
        let tangle = random.pick(&[0, 10, 40]);
        let trouble = random.pick(&[0, 10, 40]);
        let mut calls = Vec::new();
        let mut pieces = Vec::new();
        for (place, own) in IDS.into_iter().enumerate().take(count) {
            let tool = random.below(self.tools.len());
            let call = Call {
                deferred: self.tools[tool].deferred,
                tolerated: self.tools[tool].tolerated,
                id: if random.percent(tangle / 2) {
                    random.pick(&IDS)
                } else {
                    own
                },
                dependencies: draw_dependencies(random, place, count, order, tangle),
                fate: draw_fate(random, trouble),
            };
            let number = first + place;
            self.tool_of.push(tool);
            self.failures.push(if random.percent(retries) {
                1 + random.below(3)
            } else {
                0
            });
            pieces.push(Piece::Header(number));
            if call.fate == Fate::Wrong && random.percent(30) {
                self.unfinished.push(number);
            } else {
                pieces.push(Piece::Rest(number));
            }
            calls.push(call);
        }
        // Now and then a call appears before the one before it is complete.
        for place in 1..pieces.len() {
            if let (Piece::Rest(_), Piece::Header(_)) = (pieces[place - 1], pieces[place])
                && random.percent(tangle / 2)
            {
                pieces.swap(place - 1, place);
            }
        }
        self.pieces.push(Piece::BeginTurn(order));
        self.pieces.extend(pieces);
        self.pieces.push(Piece::EndTurn(reply));
        self.conversation.turns.push(Turn {
            order,
            reply,
            calls,
        });
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.conversation.turns.iter().flat_map(|turn| &turn.calls)
    }
}

fn draw_dependencies(
    random: &mut Random,
    place: usize,
    count: usize,
    order: Order,
    tangle: usize,
) -> Vec<&'static str> {
    let mut ids = Vec::new();
    let wanted = random.pick(&[0, 1, 1, 2, 3]);
    if order != Order::Graph && !random.percent(30) {
        return ids;
    }
    for _ in 0..wanted {
        if random.percent(tangle / 4) {
            ids.push(random.pick(&["x", IDS[place]]));
        } else if random.percent(tangle) {
            ids.push(IDS[random.below(count)]);
        } else if place > 0 {
            ids.push(IDS[random.below(place)]);
        }
    }
    ids
}

fn draw_fate(random: &mut Random, trouble: usize) -> Fate {
    if !random.percent(trouble) {
        return Fate::Ends(Outcome::Ok);
    }
    match random.below(8) {
        0 | 1 => Fate::Wrong,
        2 => Fate::Denied,
        3 => Fate::Ends(Outcome::Cancelled),
        4 => Fate::Ends(Outcome::Unknown),
        _ => Fate::Ends(Outcome::Error),
    }
}
