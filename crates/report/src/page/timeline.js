// The timeline: a row a call, of which only those in sight exist, and above them a strip with all of them.
// A row is 24 pixels high; on a narrow screen 44, with the bars below the names.
const rowHeight = () => (isNarrow.matches ? 44 : 24);
// The part of the time that is shown.
const span = { from: 0, to: 1, first: 0, last: 1 };

// The pieces of a call's row: what it did, from when to when.
/** @param {Call} call */
function pieces(call) {
  const kindOfCall = kind(call);
  const complete = call.complete_ms ?? end(call);
  /** @type {[string, number, number][]} */
  const found = [["writing", call.appeared_ms, complete]];
  let free = complete;
  const path = call.is_critical ? " critical" : "";
  for (const [place, attempt] of call.attempts.entries()) {
    found.push([`waiting${place > 0 ? path : ""}`, free, attempt.started_ms]);
    const isLast = attempt === call.attempts.at(-1);
    const ended = attempt.ended_ms ?? call.attempts[place + 1]?.started_ms ?? end(call);
    const how = attempt.error !== null ? "error" : isLast ? kindOfCall : "interrupted";
    found.push([`running ${how}${path}`, attempt.started_ms, ended]);
    free = ended;
  }
  if (call.status === null && call.attempts.at(-1)?.error) found.push(["waiting", free, end(call)]);
  if (call.attempts.length === 0 && call.complete_ms !== null) found.push(["waiting", complete, end(call)]);
  if (call.attempts.length === 0) found.push([`ended ${kindOfCall}`, end(call), end(call)]);
  return found.filter(([name, from, to]) => to > from || !/^w/.test(name));
}

/** @param {number} at */
const share = (at) => ((at - span.from) / (span.to - span.from)) * 100;

/** @param {string} className @param {number} from @param {number} to */
function bar(className, from, to) {
  if (to < span.from || from > span.to) return null;
  const left = Math.max(share(from), 0);
  const element = make("i", className);
  element.style.left = `${left}%`;
  element.style.width = `${Math.min(share(to), 100) - left}%`;
  return element;
}

/** @param {number} place */
function row(place) {
  const call = calls[state.shown[place]];
  const track = make("span", "track");
  const over = trace.turns[call.turn].over_ms;
  if (over !== null) track.append(bar("mark", over, over) ?? "");
  for (const [name, from, to] of pieces(call)) track.append(bar(`piece ${name}`, from, to) ?? "");
  const sign = make("span", "sign", KINDS[kind(call)][0]);
  sign.setAttribute("aria-hidden", "true");
  const id = make("span", "id", tag(call) || call.name);
  id.style.paddingLeft = `${depth[call.number] * 12}px`;
  const element = make("div", `row ${kind(call)}${call.is_critical ? " critical" : ""}`, null,
    sign,
    make("span", "spoken", statusText(call)),
    id,
    make("span", "name", call.name),
    track,
    make("span", "took", took(call)),
  );
  element.id = `row-${call.number}`;
  element.style.top = `${place * rowHeight()}px`;
  element.setAttribute("role", "option");
  element.setAttribute("aria-posinset", String(place + 1));
  element.setAttribute("aria-setsize", String(state.shown.length));
  element.setAttribute("aria-selected", String(call.number === state.chosen));
  element.title = seen(`${called(call)}: ${statusText(call)}, ${took(call)}\n${why(call) ?? ""}`);
  return element;
}

// The lines from a call on the critical path to the next one: the wait between them, in the row of the first, and the way across the
// rows to the start of the next.
/** @type {Call[]} */
let steps = [];
/** @type {Map<number, number>} */
const rowOf = new Map();
/** @param {Call} call @param {number} from @param {number} to */
function handOver(call, from, to) {
  const cause = call.critical_cause;
  const rows = [cause, call.number].flatMap((number) => (number === null ? [] : rowOf.get(number) ?? []));
  const at = firstStart(call);
  const [first, last] = [Math.min(...rows), Math.max(...rows)];
  if (cause === null || rows.length < 2 || at === undefined || last < from || first > to) return [];
  // The middle of a bar.
  /** @param {number} place */
  const middle = (place) => `${place * rowHeight() + (isNarrow.matches ? 32 : 12)}px`;
  const wait = bar("hand-over", Math.min(end(calls[cause]), at), at);
  if (wait) wait.style.top = middle(rows[0]);
  const line = bar("hand-over across", at, at);
  if (line) {
    line.style.top = middle(first);
    line.style.height = `${(last - first) * rowHeight()}px`;
  }
  return [wait, line].flatMap((one) => one ?? []);
}

function drawRows() {
  const rows = byId("rows");
  const from = Math.max(Math.floor(rows.scrollTop / rowHeight()) - 4, 0);
  const to = Math.min(Math.ceil((rows.scrollTop + rows.clientHeight) / rowHeight()) + 4, state.shown.length);
  const elements = [];
  for (let place = from; place < to; place += 1) elements.push(row(place));
  const track = make("div", "track", null, ...steps.flatMap((call) => handOver(call, from, to)));
  const lines = make("div", "hand-overs", null, track);
  byId("space").style.height = `${state.shown.length * rowHeight()}px`;
  byId("space").replaceChildren(lines, ...elements);
  if (state.chosen !== null && elements.some(({ id }) => id === `row-${state.chosen}`)) rows.setAttribute("aria-activedescendant", `row-${state.chosen}`);
  else rows.removeAttribute("aria-activedescendant");
}

// 1, 2 or 5 times a power of ten, so that labels do not touch.
/** @param {number} length @param {number} most */
function tick(length, most) {
  for (let power = 1; ; power *= 10) {
    for (const factor of [1, 2, 5]) {
      if (length / (power * factor) <= most) return power * factor;
    }
  }
}

/** @param {number} ms */
function label(ms) {
  if (ms === 0) return "0";
  if (ms % 1000 === 0) return `${ms / 1000} s`;
  return ms < 1000 ? `${ms} ms` : `${Number((ms / 1000).toFixed(3))} s`;
}

function drawAxis() {
  const axis = byId("axis");
  const track = document.querySelector("#space .row .track");
  const frame = axis.getBoundingClientRect();
  const box = track?.getBoundingClientRect() ?? frame;
  const step = tick(span.to - span.from, Math.max(Math.floor(box.width / 70), 1));
  const marks = [];
  for (let at = Math.ceil(span.from / step) * step; at <= span.to; at += step) {
    const mark = make("span", "", label(at));
    const left = box.left - frame.left + (share(at) / 100) * box.width;
    mark.style.left = `${left}px`;
    if (left + 44 < frame.width) marks.push(mark);
  }
  axis.replaceChildren(...marks);
}

function drawStrip() {
  const drawn = canvas(byId("strip"));
  if (drawn === null) return;
  const { context, width, height } = drawn;
  const scale = width / (span.last - span.first);
  /** @param {number} at */
  const x = (at) => (at - span.first) * scale;
  const thickness = Math.min((height - 4) / Math.max(state.shown.length, 1), 6);
  state.shown.forEach((number, place) => {
    const call = calls[number];
    const y = 2 + place * thickness;
    const started = firstStart(call);
    context.globalAlpha = 0.35;
    context.fillStyle = colors.waiting;
    context.fillRect(x(call.appeared_ms), y, Math.max(x(started ?? end(call)) - x(call.appeared_ms), 0.5), Math.max(thickness * 0.8, 0.5));
    context.globalAlpha = call.is_critical ? 1 : 0.6;
    context.fillStyle = colors[kind(call)];
    const from = started ?? end(call);
    context.fillRect(x(from), y, Math.max(x(end(call)) - x(from), 1), Math.max(thickness * 0.8, 0.7));
  });
  context.globalAlpha = 1;
  context.fillStyle = colors.faint;
  for (const turn of trace.turns) {
    if (turn.over_ms !== null) context.fillRect(x(turn.over_ms), 0, 1, height);
  }
  if (span.from > span.first || span.to < span.last) {
    context.globalAlpha = 0.45;
    context.fillStyle = colors.page;
    context.fillRect(0, 0, x(span.from), height);
    context.fillRect(x(span.to), 0, width, height);
    context.globalAlpha = 1;
    context.strokeStyle = colors.accent;
    context.strokeRect(x(span.from) + 0.5, 0.5, Math.max(x(span.to) - x(span.from) - 1, 2), height - 1);
  }
}

function drawTimeline() {
  // It needs no layout, which takes long for a long reply.
  if (getComputedStyle(byId("timeline")).display === "none") return;
  drawRows();
  drawAxis();
  drawStrip();
}

/** @param {number} from @param {number} to */
function setSpan(from, to) {
  const least = Math.max((span.last - span.first) / 100000, 2);
  const length = Math.min(Math.max(to - from, least), span.last - span.first);
  span.from = Math.min(Math.max(from, span.first), span.last - length);
  span.to = span.from + length;
  drawTimeline();
}

// The middle of the chosen call, or of what is shown.
function middle() {
  const call = state.chosen === null ? null : calls[state.chosen];
  return call ? ((firstStart(call) ?? call.appeared_ms) + end(call)) / 2 : (span.from + span.to) / 2;
}

// Makes the part of the time that is shown larger or smaller around a moment.
/** @param {number} factor */
function zoomTime(factor, around = middle()) {
  const half = (span.to - span.from) / 2;
  // A moment that is out of sight comes into the middle.
  const isInSight = around >= span.from && around <= span.to;
  const [from, to] = isInSight ? [span.from, span.to] : [around - half, around + half];
  setSpan(around - (around - from) * factor, around + (to - around) * factor);
}

function buildStrip() {
  const strip = byId("strip");
  /** @param {PointerEvent} event */
  const at = (event) => {
    const box = strip.getBoundingClientRect();
    return span.first + ((event.clientX - box.left) / box.width) * (span.last - span.first);
  };
  /** @type {number | null} */
  let begun = null;
  strip.addEventListener("pointerdown", (event) => {
    begun = at(event);
    strip.setPointerCapture(event.pointerId);
  });
  strip.addEventListener("pointermove", (event) => {
    if (begun === null) return;
    const now = at(event);
    if (Math.abs(now - begun) * strip.clientWidth > (span.last - span.first) * 4) {
      setSpan(Math.min(begun, now), Math.max(begun, now));
    }
  });
  for (const name of ["pointerup", "pointercancel"]) strip.addEventListener(name, () => { begun = null; });
  strip.addEventListener("dblclick", () => setSpan(span.first, span.last));
}

function buildTimeline() {
  listeners.opened.push(() => {
    steps = calls.filter((call) => call.critical_cause !== null);
    span.from = span.first;
    span.to = Math.max(trace.end_ms, 1);
    span.last = span.to;
  });
  const rows = byId("rows");
  rows.addEventListener("scroll", () => requestAnimationFrame(drawRows), { passive: true });
  rows.addEventListener("click", (event) => {
    const found = around(event, ".row");
    if (found) choose(Number(found.id.slice(4)), "timeline");
  });
  rows.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const box = document.querySelector("#space .row .track")?.getBoundingClientRect();
    if (!box) return;
    const place = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    zoomTime(Math.exp(event.deltaY * 0.004), span.from + place * (span.to - span.from));
  }, { passive: false });
  const page = () => Math.max(Math.floor(rows.clientHeight / rowHeight()) - 1, 1);
  rows.addEventListener("keydown", (event) => {
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page(), PageUp: -page(), Home: -Infinity, End: Infinity };
    const by = steps[event.key];
    if (by !== undefined) step(by, "key");
    else if (event.key === "+") zoomTime(0.5);
    else if (event.key === "-") zoomTime(2);
    else if (event.key === "0") setSpan(span.first, span.last);
    else return;
    event.preventDefault();
  });
  byId("time-in").addEventListener("click", () => zoomTime(0.5));
  byId("time-out").addEventListener("click", () => zoomTime(2));
  byId("time-all").addEventListener("click", () => setSpan(span.first, span.last));
  buildStrip();
  listeners.chosen.push((number, from) => {
    const place = number === null ? -1 : state.shown.indexOf(number);
    const top = place * rowHeight();
    const isInSight = top >= rows.scrollTop && top + rowHeight() <= rows.scrollTop + rows.clientHeight;
    if (place >= 0 && from !== "timeline" && !isInSight) rows.scrollTop = top - rows.clientHeight / 2;
    drawTimeline();
  });
  listeners.shown.push(() => {
    rowOf.clear();
    state.shown.forEach((number, place) => rowOf.set(number, place));
    drawTimeline();
  });
  listeners.view.push(drawTimeline);
  listeners.resized.push(drawTimeline);
}
