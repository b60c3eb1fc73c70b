// The details of the chosen call.

// How much of a long text is shown at first.
const LONG = 20000;
// How many calls are named in one place.
const MANY = 200;
// More about a call, instead of its arguments: the inspector adds its own parts.
/** @type {((call: Call) => HTMLElement[])[]} */
const moreDetails = [];

/** @param {string} content @param {string} [className] */
function value(content, className = "") {
  const pre = make("pre", className, content.length > LONG ? content.slice(0, LONG) : content);
  if (content === "") pre.classList.add("empty");
  if (content.length <= LONG) return [pre];
  const more = make("button", "more", `show all ${content.length.toLocaleString("en")} characters`);
  more.type = "button";
  more.addEventListener("click", () => {
    pre.textContent = seen(content);
    more.remove();
  });
  return [pre, more];
}

// Why a call failed: the output of its tool, or a sentence.
/** @param {string} content @param {string} className */
function reason(content, className) {
  return className === "error" || content.length > LONG ? value(content, className) : [sentence("p", `message ${className}`, content)];
}

/** @param {string} title @param {...(Node | string)} children */
function part(title, ...children) {
  return make("section", "", null, make("h3", "", title), ...children);
}

/** @param {[string, string][]} list */
function argumentList(list) {
  if (list.length === 0) return [make("p", "hint", "none")];
  return [make("dl", "arguments", null, ...list.flatMap(([pointer, content]) => [
    make("dt", "", pointer),
    make("dd", "", null, ...value(content)),
  ]))];
}

/** @param {number | null} number @param {string} id */
function link(number, id) {
  const call = number === null ? undefined : calls[number];
  if (!call) return make("span", "link gone", `${id} (no such call)`);
  const button = make("button", `link ${kind(call)}`, null, make("span", "sign", KINDS[kind(call)][0]), id);
  button.type = "button";
  button.addEventListener("click", () => choose(number, "details"));
  return button;
}

/** @param {Call} call @param {Attempt} attempt @param {boolean} isLast */
function attemptRow(call, attempt, isLast) {
  const length = attempt.ended_ms === null ? null : attempt.ended_ms - attempt.started_ms;
  const outcome = attempt.error ?? (attempt.is_interrupted ? "interrupted" : isLast ? KINDS[kind(call)][1] : "");
  const wait = attempt.wait_ms === null ? "" : `then waits ${time(attempt.wait_ms)}`;
  return make("tr", "", null,
    make("th", "", String(attempt.number)),
    make("td", "", moment(attempt.started_ms)),
    make("td", "", length === null ? "no end" : time(length)),
    make("td", "wide", outcome),
    make("td", "", wait),
  );
}

/** @param {Call} call */
function attemptTable(call) {
  const rows = call.attempts.map((attempt, at) => attemptRow(call, attempt, at === call.attempts.length - 1));
  const titles = ["", "started", "took", "outcome", ""].map((title) => make("th", "", title));
  return make("table", "", null, make("thead", "", null, make("tr", "", null, ...titles)), make("tbody", "", null, ...rows));
}

/** @param {Call} call */
function stations(call) {
  /** @type {[string, number | null | undefined][]} */
  const times = [
    ["appeared", call.appeared_ms],
    ["complete", call.complete_ms],
    ["ready", call.ready_ms],
    ["admitted", call.admission?.t_ms],
    ["started", lastStart(call)],
    ["ended", call.ended_ms],
  ];
  return make("ol", "stations", null, ...times.flatMap(([name, at]) => (typeof at === "number" ? [make("li", "", null, make("b", "", name), moment(at))] : [])));
}

/** @param {NonNullable<Call["because"]>} because */
function skipped({ link: tie, call: direct, id, root }) {
  const sentence = make("p", "sentence", null, tie === "order" ? "It follows " : "It depends on ", link(direct, id));
  if (root.call !== direct) sentence.append("; the first failure was ", link(root.call, root.id));
  return part("Why it was skipped", sentence);
}

/** @param {NonNullable<Call["admission"]>} admission @param {number | null} ready */
function allowed({ by, reason, always, t_ms }, ready) {
  const waited = ready === null ? 0 : t_ms - ready;
  const sentence = `by ${ADMITTED_BY[by] ?? by}${waited > 0 ? ` after ${time(waited)}` : ""}`;
  const scope = always ? ", with all later calls of this tool" : "";
  return part("Allowed", make("p", "", sentence + scope + (reason ? `: ${reason}` : "")));
}

/** @param {number | null} number */
function details(number) {
  const panel = byId("details");
  const call = number === null ? undefined : calls[number];
  panel.classList.toggle("open", Boolean(call));
  if (!call) {
    panel.replaceChildren(make("p", "hint", calls.length === 0
      ? `This ${trace.begin ? "run" : "reply"} has no calls.`
      : "Select a call to see its arguments, its result and its status. Keys: j and k for the next and previous call, / to search, and the numbers for the views."));
    return;
  }
  const close = make("button", "close", "×");
  close.type = "button";
  close.setAttribute("aria-label", "Close the details");
  close.addEventListener("click", () => choose(null, "details"));
  const facts = [`call ${call.number + 1}`, call.effect, trace.turns.length > 1 ? `turn ${trace.turns[call.turn].number + 1}` : null];
  if (call.is_critical) facts.push("on the critical path");
  /** @type {HTMLElement[]} */
  const parts = [
    make("h2", "", null, make("span", "name", call.name), make("span", "id", tag(call)), close),
    make("p", "facts", null,
      make("b", `badge ${kind(call)}`, `${KINDS[kind(call)][0]} ${statusText(call)}${took(call) === statusText(call) ? "" : ` · ${took(call)}`}`),
      make("span", "", facts.filter(Boolean).join(" · "))),
  ];
  if (call.open) parts.push(part("Interrupted", make("p", "", `The log ends ${STATES[call.open.state]}. Resuming the run (plaincall run --resume) ${call.open.resume}.`)));
  if (call.because) parts.push(skipped(call.because));
  if (call.error !== null) parts.push(part("Error", ...reason(call.error, kind(call))));
  if (call.output !== null) parts.push(part("Output", ...value(call.output)));
  if (call.note !== null) parts.push(part("Note", ...value(call.note)));
  const more = moreDetails.flatMap((make) => make(call));
  if (call.arguments && more.length === 0) parts.push(part("Arguments", ...argumentList(call.arguments)));
  parts.push(...more);
  const replies = call.replies ?? [];
  for (const [at, reply] of replies.entries()) {
    const title = replies.length > 1 ? `Reply ${at + 1} of the subagent` : "Reply of the subagent";
    parts.push(part(reply.usage ? `${title} · ${tokens(reply.usage)}` : title, ...value(reply.text)));
  }
  const parent = call.parent === null ? undefined : calls[call.parent];
  if (parent) parts.push(part("Submitted by", make("p", "links", null, link(parent.number, called(parent)))));
  if (children[call.number].length > 0) {
    const links = children[call.number].slice(0, MANY).map((child) => link(child, called(calls[child])));
    parts.push(part("Submitted calls", make("p", "links", null, ...links)));
  }
  if (call.edited) parts.push(part("Edited arguments", ...argumentList(call.edited)));
  if (call.source) parts.push(part(call.parent === null ? "As written" : "As submitted", ...value(call.source)));
  if (call.dependencies.length > 0) {
    parts.push(part("Depends on", make("p", "links", null, ...call.dependencies.map(({ id, call: cause }) => link(cause, id)))));
  }
  const needing = dependents[call.number];
  if (needing.length > 0) {
    const more = needing.length > MANY ? [`and ${count(needing.length - MANY, "more call")}`] : [];
    const links = needing.slice(0, MANY).map((other) => link(other, calls[other].id));
    parts.push(part("Needed by", make("p", "links", null, ...links, ...more)));
  }
  if (call.held) parts.push(part("Held", sentence("p", "", `It ${call.held}.`)));
  if (call.admission) parts.push(allowed(call.admission, call.ready_ms));
  if (call.attempts.length > 1 || call.attempts.some(({ error, is_interrupted }) => error !== null || is_interrupted)) {
    parts.push(part("Attempts", attemptTable(call)));
  }
  // A reply that has not run has no times.
  if (trace.begin) parts.push(part("Times", stations(call)));
  panel.replaceChildren(...parts);
  panel.scrollTop = 0;
}

