//! llguidance, with one token for each byte.

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, TokEnv};
use llguidance::{Matcher, ParserFactory};

use plaincall_oracle::arbitrary_texts::Random;

/// The longest walk, in bytes.
const LONGEST: usize = 6000;

pub(super) struct Engine {
    factory: ParserFactory,
    eos: u32,
}

impl Engine {
    pub(super) fn new() -> Self {
        let tokens: TokEnv = ApproximateTokEnv::single_byte_env();
        let mut factory = ParserFactory::new_simple(&tokens).unwrap();
        factory.quiet();
        Self {
            eos: tokens.tok_trie().eos_token(),
            factory,
        }
    }

    pub(super) fn compile(&self, lark: &str) -> Matcher {
        let grammar = TopLevelGrammar::from_lark(lark.to_owned());
        let matcher = Matcher::new(self.factory.create_parser(grammar));
        if let Some(error) = matcher.get_error() {
            panic!("{}", error.lines().take(3).collect::<Vec<_>>().join("\n"));
        }
        matcher
    }

    /// Writes a random text of the grammar; `None` if it does not end in time, or if the lexer has too many states, which the
    /// matcher keeps for the next walk. It often tries one of `wishes`, so that it comes near markers, and later one of `ends`.
    pub(super) fn walk(
        &self,
        matcher: &mut Matcher,
        random: &mut Random,
        wishes: &[String],
        ends: &[String],
    ) -> Option<String> {
        matcher.reset().unwrap();
        let mut text: Vec<u8> = Vec::new();
        let mut wish: Vec<u8> = Vec::new();
        let limit = random.pick(&[60, 200, 500]);
        while text.len() < LONGEST {
            let mask = matcher.compute_mask_or_eos().ok()?;
            let is_late = text.len() > limit;
            if mask.is_allowed(self.eos) && (is_late || random.one_in(30)) {
                return String::from_utf8(text).ok();
            }
            let allowed: Vec<u8> = (0..=255)
                .filter(|byte| mask.is_allowed(u32::from(*byte)))
                .collect();
            if allowed.is_empty() {
                return mask
                    .is_allowed(self.eos)
                    .then(|| String::from_utf8(text).ok())?;
            }
            if wish.is_empty() && (random.one_in(7) || (is_late && !random.one_in(10))) {
                let from = if is_late { ends } else { wishes };
                wish = random.pick(from).bytes().rev().collect();
            }
            let wanted = wish.pop().filter(|byte| allowed.contains(byte));
            let byte = wanted.unwrap_or_else(|| {
                wish.clear();
                let is_plain = |byte: &u8| (32..127).contains(byte) || *byte == b'\n';
                let plain: Vec<u8> = allowed.iter().copied().filter(is_plain).collect();
                let is_rare = random.one_in(40);
                random.pick(if plain.is_empty() || is_rare {
                    &allowed
                } else {
                    &plain
                })
            });
            matcher.consume_token(u32::from(byte)).unwrap();
            text.push(byte);
        }
        None
    }

    /// Returns whether the grammar accepts a complete text.
    pub(super) fn accepts(start: &Matcher, text: &str) -> bool {
        let mut matcher = start.deep_clone();
        text.bytes().all(|byte| {
            // A server computes the mask before each token, which fails if the lexer has too much work.
            matcher.compute_mask_or_eos().unwrap();
            matcher.try_consume_tokens(&[u32::from(byte)]).unwrap() == 1
        }) && matcher.is_accepting().unwrap()
    }
}
