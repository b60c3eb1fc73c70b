// Search and filters: which calls are shown.

/** @type {string[]} */
let texts = [];
/** @param {Call} call */
function text(call) {
  const found = texts[call.number] ?? [
    call.id,
    call.name,
    call.source,
    call.output,
    call.error,
    call.note,
    ...(call.replies ?? []).map((reply) => reply.text),
    ...(call.arguments ?? []).flat(),
    ...(call.edited ?? []).flat(),
  ].filter(Boolean).join("\n").toLowerCase();
  texts[call.number] = found;
  return found;
}

function filter() {
  /** @param {Call} call */
  const isFound = (call) => (!state.onlyCritical || call.is_critical)
    && (state.kinds.size === 0 || state.kinds.has(kind(call)))
    && state.words.every((word) => text(call).includes(word));
  state.shown = [];
  for (const number of order) {
    const found = isFound(calls[number]);
    state.isShown[number] = found ? 1 : 0;
    if (found) state.shown.push(number);
  }
  const isAll = state.shown.length === calls.length;
  byId("found").textContent = isAll ? "" : `${state.shown.length.toLocaleString("en")} of ${count(calls.length, "call")}`;
  notify("shown");
}

/** @param {string} className @param {string} sign @param {string} words @param {() => boolean} change returns whether it is on */
function chip(className, sign, words, change) {
  const button = make("button", `chip ${className}`, null, make("b", "sign", sign), words);
  button.type = "button";
  button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", () => {
    button.setAttribute("aria-pressed", String(change()));
    filter();
  });
  byId("statuses").append(button);
}

// The filters of the trace.
function offerFilters() {
  texts = [];
  state.isShown = new Uint8Array(calls.length);
  byId("statuses").replaceChildren();
  /** @type {Record<string, number>} */
  const numbers = {};
  for (const call of calls) numbers[kind(call)] = (numbers[kind(call)] ?? 0) + 1;
  for (const [name, [sign, word]] of Object.entries(KINDS)) {
    if (!numbers[name]) continue;
    chip(name, sign, `${numbers[name].toLocaleString("en")} ${word}`, () => {
      const isOn = !state.kinds.delete(name);
      if (isOn) state.kinds.add(name);
      return isOn;
    });
  }
  const critical = calls.filter((call) => call.is_critical).length;
  if (critical > 0) {
    chip("critical", "◆", `${critical.toLocaleString("en")} on the critical path`, () => {
      state.onlyCritical = !state.onlyCritical;
      return state.onlyCritical;
    });
  }
}

function buildFilters() {
  listeners.opened.push(offerFilters);
  const search = byId("search");
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let waiting;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      state.words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      filter();
    }, calls.length > 500 ? 120 : 0);
  });
}

