// The reply, with its calls in their places.

/** @type {Map<number, HTMLElement>} */
const cards = new Map();

/** @param {Call} call */
function card(call) {
  const button = make("button", `call ${kind(call)}`, null,
    make("span", "sign", KINDS[kind(call)][0]),
    make("span", "title", null, make("span", "name", call.name), " ", make("span", "id", tag(call))),
  );
  button.type = "button";
  button.dataset.call = String(call.number);
  if (call.dependencies.length > 0) {
    button.append(make("span", "needs", `← ${call.dependencies.map(({ id }) => id).join(", ")}`));
  }
  button.append(make("span", "took", took(call)));
  const reason = why(call);
  if (reason) button.append((kind(call) === "error" ? make : sentence)("span", "reason", reason));
  cards.set(call.number, button);
  return button;
}

// The card of a call, and those of the calls that it submitted.
/** @param {Call} call @returns {HTMLElement[]} */
function cardsOf(call) {
  const own = card(call);
  const indent = `${depth[call.number] * 16}px`;
  own.style.marginLeft = indent;
  own.style.width = `calc(100% - ${indent})`;
  return [own, ...children[call.number].flatMap((child) => cardsOf(calls[child]))];
}

// Why a call has no good end, on a line.
/** @param {Call} call @returns {string | undefined} */
function why(call) {
  if (call.because) {
    const { call: direct, id, root } = call.because;
    return root.call === direct ? `because of ${id}` : `because of ${id}, which goes back to ${root.id}`;
  }
  if (call.open) return STATES[call.open.state];
  return call.error?.split("\n", 1)[0].slice(0, 300);
}

/** @param {Turn} turn */
function ending(turn) {
  const notes = [];
  if (turn.over_ms === null) notes.push("the log ends before the reply");
  if (turn.stop === "length") notes.push("the reply reached its length limit");
  if (turn.stop === "broken") notes.push("the reply was truncated, or its end is unknown");
  if (turn.cancel) notes.push(`all calls were cancelled at ${time(turn.cancel.t_ms)}: ${turn.cancel.reason}`);
  if (!turn.is_exact && turn.segments.length > 1) {
    notes.push("the reply is shown as received: its calls could not be located");
  }
  return notes.map((note) => make("p", "note", note));
}

function showReply() {
  // Parts that are out of sight cost no layout.
  const PART = 40;
  const parts = [];
  for (const turn of trace.turns) {
    if (trace.turns.length > 1) {
      parts.push(make("h2", "", `Turn ${turn.number + 1}`, make("small", "", [`at ${time(turn.opened_ms)}`, turn.usage && tokens(turn.usage)].filter(Boolean).join(" · "))));
    }
    let isBehindCall = false;
    for (let at = 0; at < turn.segments.length; at += PART) {
      const part = make("div", "part");
      for (const segment of turn.segments.slice(at, at + PART)) {
        if (segment.type === "call") {
          const call = calls[segment.call];
          if (call) part.append(...cardsOf(call));
        } else {
          // The line end behind a call belongs to its end marker.
          const shown = isBehindCall ? segment.text.replace(/^\r?\n/, "") : segment.text;
          if (shown) part.append(make("div", segment.type, shown));
        }
        isBehindCall = segment.type === "call";
      }
      parts.push(part);
    }
    parts.push(...ending(turn));
  }
  byId("transcript").replaceChildren(...parts);
}

function buildTranscript() {
  const transcript = byId("transcript");
  listeners.opened.push(() => cards.clear());
  transcript.addEventListener("click", (event) => {
    const button = around(event, "[data-call]");
    if (button) choose(Number(button.dataset.call), "transcript");
  });
  /** @type {HTMLElement | undefined} */
  let last;
  listeners.chosen.push((number, from) => {
    last?.removeAttribute("aria-current");
    last = number === null ? undefined : cards.get(number);
    last?.setAttribute("aria-current", "true");
    if (from !== "transcript") last?.scrollIntoView({ block: "center" });
  });
  listeners.shown.push(() => {
    for (const [number, button] of cards) button.classList.toggle("off", !state.isShown[number]);
  });
}

