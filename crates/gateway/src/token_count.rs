//! The number of tokens of a request to Messages (`spec/gateway.md` 10).

use bytes::Bytes;
use serde_json::{Value, json};

/// The estimated tokens of a message besides its text, and of the beginning of the reply.
const PER_MESSAGE: usize = 4;
/// The estimated tokens of an image or a file.
const PER_PART: usize = 1000;

/// Counts the tokens of a chat completions request with the model server, or estimates their number if it cannot count them.
///
/// Send [`request`](Self::request) to the model server and pass its answer to [`answer`](Self::answer), until there is no further
/// request or one fails.
///
/// ```
/// use plaincall_gateway::translation::TokenCount;
///
/// let mut count = TokenCount::new(br#"{"model":"m","messages":[{"role":"user","content":"Add 2 and 3."}]}"#);
/// assert_eq!((count.tokens(), count.is_estimate()), (11, true));
/// let (path, _) = count.request().expect("the server was not asked yet");
/// assert_eq!(path, "/tokenize");
/// count.answer(br#"{"count":9,"max_model_len":4096}"#);
/// assert_eq!(count.request(), None);
/// assert_eq!((count.tokens(), count.is_estimate()), (9, false));
/// ```
#[derive(Clone, Debug)]
pub struct TokenCount {
    chat: Bytes,
    step: Step,
    estimate: u64,
    counted: Option<u64>,
}

/// The next request to the model server.
#[derive(Clone, Debug)]
enum Step {
    /// vLLM counts the tokens of a chat.
    Chat,
    /// llama.cpp applies the template at another address.
    Template,
    /// llama.cpp counts the tokens of a text.
    Prompt(Bytes),
    Done,
}

impl TokenCount {
    /// The header of a response whose number the model server has not counted, and its value.
    pub const ESTIMATE: (&'static str, &'static str) = ("x-plaincall-token-count", "estimate");

    /// Begins with the body of a chat completions request ([`Asked::body`](super::translation::Asked::body)).
    pub fn new(request: &[u8]) -> Self {
        let request: Value = serde_json::from_slice(request).unwrap_or_default();
        let mut chat = json!({"add_generation_prompt": true});
        for field in ["model", "messages", "tools"] {
            if let Some(value) = request.get(field) {
                chat[field] = value.clone();
            }
        }
        Self {
            chat: chat.to_string().into(),
            step: Step::Chat,
            estimate: estimate(&request),
            counted: None,
        }
    }

    /// Returns the path of the next request to the model server, which is not below `/v1`, and its body. `None` if no further
    /// answer is needed.
    pub fn request(&self) -> Option<(&'static str, Bytes)> {
        match &self.step {
            Step::Chat => Some(("/tokenize", self.chat.clone())),
            Step::Template => Some(("/apply-template", self.chat.clone())),
            Step::Prompt(prompt) => Some(("/tokenize", prompt.clone())),
            Step::Done => None,
        }
    }

    /// Takes the body of the model server's answer to the request. Do not call it for an error.
    pub fn answer(&mut self, answer: &[u8]) {
        let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
        let tokens = answer["tokens"]
            .as_array()
            .map(|tokens| tokens.len() as u64);
        self.step = match std::mem::replace(&mut self.step, Step::Done) {
            Step::Chat => {
                self.counted = answer["count"].as_u64();
                if self.counted.is_none() && tokens.is_some() {
                    Step::Template
                } else {
                    Step::Done
                }
            }
            Step::Template => answer["prompt"].as_str().map_or(Step::Done, |prompt| {
                let text = json!({"content": prompt, "add_special": true, "parse_special": true});
                Step::Prompt(text.to_string().into())
            }),
            Step::Prompt(_) => {
                self.counted = tokens;
                Step::Done
            }
            Step::Done => Step::Done,
        };
    }

    /// Returns the number of tokens.
    pub fn tokens(&self) -> u64 {
        self.counted.unwrap_or(self.estimate)
    }

    /// Returns whether the number is an estimate. Then the response has the header [`ESTIMATE`](Self::ESTIMATE).
    pub fn is_estimate(&self) -> bool {
        self.counted.is_none()
    }

    /// Returns the body of the response to the client.
    pub fn response_body(&self) -> String {
        json!({"input_tokens": self.tokens()}).to_string()
    }
}

/// Estimates the tokens of a request: four ASCII characters or one other character are a token.
fn estimate(request: &Value) -> u64 {
    let of_text = |text: &str| {
        let ascii = text.bytes().filter(u8::is_ascii).count();
        let other = text.chars().filter(|letter| !letter.is_ascii()).count();
        ascii.div_ceil(4) + other
    };
    let of_part = |part: &Value| part["text"].as_str().map_or(PER_PART, of_text);
    let messages = request["messages"].as_array();
    let messages = messages.into_iter().flatten().map(|message| {
        let content = match &message["content"] {
            Value::String(text) => of_text(text),
            Value::Array(parts) => parts.iter().map(of_part).sum(),
            _ => 0,
        };
        let others = ["reasoning_content", "tool_calls"].map(|field| match &message[field] {
            Value::Null => 0,
            Value::String(text) => of_text(text),
            other => of_text(&other.to_string()),
        });
        PER_MESSAGE + content + others.iter().sum::<usize>()
    });
    // In native mode, the model server writes the tools into the prompt.
    let tools = request
        .get("tools")
        .map_or(0, |tools| of_text(&tools.to_string()));
    (PER_MESSAGE + tools + messages.sum::<usize>()) as u64
}
