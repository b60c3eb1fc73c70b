// The graph: calls from left to right, each behind those it depends on. Drawn on a canvas, with as much detail as there
// is room for.
const WIDTH = 150;
const HEIGHT = 34;
const ACROSS = 210;
const DOWN = 46;
// On a narrow screen: how many calls are next to each other, and how far apart.
const IN_ROW = 2;
const TALL_ACROSS = 166;
const TALL_DOWN = 62;

// The colours of the style sheet, for what is drawn.
/** @type {Record<string, string>} */
const colors = {};
function readColors() {
  const style = getComputedStyle(document.body);
  for (const name of ["page", "card", "text", "faint", "line", "accent", "waiting", ...Object.keys(KINDS)]) {
    colors[name] = style.getPropertyValue(`--${name}`).trim();
  }
}

// A canvas ready to be drawn on in its size on the screen; nothing if it is not shown.
/** @param {HTMLCanvasElement} element */
function canvas(element) {
  const width = element.clientWidth;
  const height = element.clientHeight;
  const context = element.getContext("2d");
  if (context === null || width === 0 || height === 0) return null;
  const sharpness = devicePixelRatio || 1;
  if (element.width !== Math.round(width * sharpness) || element.height !== Math.round(height * sharpness)) {
    element.width = Math.round(width * sharpness);
    element.height = Math.round(height * sharpness);
  }
  context.setTransform(sharpness, 0, 0, sharpness, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

// The position of each call, and the edges between them: [cause, call].
/** @type {Point[]} */
const places = [];
/** @type {Edge[]} */
const edges = [];
/** @type {(Point & { name: string })[]} */
const bands = [];
const frame = { right: WIDTH, bottom: HEIGHT, isTall: false };
const camera = { x: 0, y: 0, scale: 1, isFree: false, isWhole: false };
let isLaidOut = false;
// The call to show when the graph is drawn next.
/** @type {number | null} */
let sought = null;

// What ties calls together: dependencies, the call that submitted another, and the order of writing where it was the reason
// that one was skipped.
/** @type {number[][]} */
let before = [];
/** @type {number[][]} */
let behind = [];
function tie() {
  before = calls.map((call) => {
    const found = call.dependencies.map(({ call: cause }) => cause);
    if (call.because?.link === "order") found.push(call.because.call);
    found.push(call.parent);
    const others = found.flatMap((cause) => (cause !== null && cause !== call.number && calls[cause] ? [cause] : []));
    return [...new Set(others)];
  });
  behind = calls.map(() => []);
  before.forEach((causes, number) => causes.forEach((cause) => behind[cause].push(number)));
  isLaidOut = false;
  camera.isFree = camera.isWhole = false;
}

// The same within the turn of a call.
/** @param {number} number @param {number[]} others */
const ofTurn = (number, others) => others.filter((other) => calls[other].turn === calls[number].turn);
/** @param {number} number */
const causes = (number) => ofTurn(number, before[number]);
/** @param {number} number */
const followers = (number) => ofTurn(number, behind[number]);

// The calls of a turn in layers: each behind the last of its causes. A circle is entered at its first call.
/** @param {Call[]} turn */
function layers(turn) {
  const numbers = turn.map((call) => call.number);
  // By the number of a call: how many causes are still open, and how deep it is.
  /** @type {number[]} */
  const open = [];
  /** @type {number[]} */
  const depth = [];
  for (const number of numbers) [open[number], depth[number]] = [causes(number).length, 0];
  const ready = numbers.filter((number) => open[number] === 0);
  /** @type {Set<number>} */
  const done = new Set();
  let stuck = 0;
  while (done.size < numbers.length) {
    let number = ready.pop();
    if (number === undefined) {
      while (done.has(numbers[stuck])) stuck += 1;
      number = numbers[stuck];
    }
    if (done.has(number)) continue;
    done.add(number);
    for (const follower of followers(number)) {
      if (done.has(follower)) continue;
      depth[follower] = Math.max(depth[follower], depth[number] + 1);
      open[follower] -= 1;
      if (open[follower] === 0) ready.push(follower);
    }
  }
  // In a long graph, a call that no other needs is placed near the calls written at the same time, not at the beginning.
  const LONG_GRAPH = 12;
  let reached = 0;
  const length = numbers.reduce((most, number) => Math.max(most, depth[number]), 0) + 1;
  for (const number of numbers) {
    reached = Math.max(reached, depth[number]);
    if (length > LONG_GRAPH && followers(number).length === 0) depth[number] = reached;
  }
  // A call that others need is placed right before the first of them, so that edges are short.
  for (const number of [...done].reverse()) {
    const depths = followers(number).map((follower) => depth[follower]);
    if (depths.length > 0) depth[number] = Math.max(Math.min(...depths) - 1, depth[number]);
  }
  /** @type {number[][]} */
  const found = [];
  for (const number of numbers) (found[depth[number]] ??= []).push(number);
  return found.filter(Boolean);
}

// Puts the calls of each layer near those they are tied to.
/** @param {number[][]} found */
function untangle(found) {
  // By the number of a call: where it is in its layer, and where it would be.
  /** @type {number[]} */
  const at = [];
  /** @type {number[]} */
  const weight = [];
  /** @param {number[]} layer */
  const note = (layer) => layer.forEach((number, place) => { at[number] = (place + 0.5) / layer.length; });
  found.forEach(note);
  /** @param {number[]} layer @param {(number: number) => number[]} tied */
  const sort = (layer, tied) => {
    for (const number of layer) {
      const others = tied(number);
      const sum = others.reduce((total, other) => total + at[other], 0);
      weight[number] = others.length ? sum / others.length : at[number];
    }
    layer.sort((a, b) => weight[a] - weight[b] || a - b);
    note(layer);
  };
  for (let sweep = 0; sweep < 3; sweep += 1) {
    found.forEach((layer) => sort(layer, causes));
    for (const layer of [...found].reverse()) sort(layer, followers);
  }
}

// The maximum number of calls above each other, so that the whole is about as wide as a screen.
/** @param {number[][]} found */
function rowsFor(found) {
  const longest = Math.max(...found.map((layer) => layer.length), 1);
  if (longest <= 14) return longest;
  let best = longest;
  let least = Infinity;
  for (let rows = 8; rows < longest * 1.5; rows = Math.ceil(rows * 1.3)) {
    const columns = found.reduce((sum, layer) => sum + Math.ceil(layer.length / rows), 0);
    const distance = Math.abs(Math.log((columns * ACROSS) / (rows * DOWN) / 1.7));
    if (distance < least) [least, best] = [distance, rows];
  }
  return best;
}

// On a narrow screen, layers follow each other from top to bottom.
/** @param {Call[][]} byTurn */
function layOutTall(byTurn) {
  let top = 0;
  byTurn.forEach((turn, place) => {
    if (turn.length === 0) return;
    const found = layers(turn);
    untangle(found);
    bands.push({ name: `Turn ${trace.turns[place].number + 1}`, x: 0, y: top });
    for (const layer of found) {
      layer.forEach((number, at) => {
        places[number] = { x: (at % IN_ROW) * TALL_ACROSS, y: top + Math.floor(at / IN_ROW) * TALL_DOWN };
        frame.bottom = places[number].y + HEIGHT;
      });
      top += Math.ceil(layer.length / IN_ROW) * TALL_DOWN;
    }
    top += 40;
  });
  frame.right = (IN_ROW - 1) * TALL_ACROSS + WIDTH;
}

/** @param {boolean} isTall */
function layOut(isTall) {
  isLaidOut = true;
  places.length = edges.length = bands.length = 0;
  Object.assign(frame, { right: WIDTH, bottom: HEIGHT, isTall });
  /** @type {Call[][]} */
  const byTurn = trace.turns.map(() => []);
  for (const call of calls) byTurn[call.turn].push(call);
  if (isTall) layOutTall(byTurn);
  else layOutWide(byTurn);
  before.forEach((found, number) => found.forEach((cause) => edges.push([cause, number])));
  // A call on the critical path may have waited for a slot instead of a dependency.
  for (const { number, critical_cause: cause } of calls) {
    if (cause !== null && !before[number].includes(cause)) edges.push([cause, number]);
  }
}

/** @param {Call[][]} byTurn */
function layOutWide(byTurn) {
  let left = 0;
  byTurn.forEach((turn, place) => {
    if (turn.length === 0) return;
    const found = layers(turn);
    untangle(found);
    const rows = rowsFor(found);
    const start = left;
    for (const layer of found) {
      const columns = Math.ceil(layer.length / rows);
      const inColumn = Math.ceil(layer.length / columns);
      layer.forEach((number, at) => {
        const column = Math.floor(at / inColumn);
        const tall = Math.min(inColumn, layer.length - column * inColumn);
        const top = ((rows - tall) / 2) * DOWN;
        places[number] = { x: left + column * ACROSS, y: top + (at % inColumn) * DOWN };
        frame.bottom = Math.max(frame.bottom, places[number].y + HEIGHT);
      });
      left += columns * ACROSS;
    }
    bands.push({ name: `Turn ${trace.turns[place].number + 1}`, x: start, y: 0 });
    frame.right = left - ACROSS + WIDTH;
    left += 40;
  });
}

// Where an edge leaves its cause, where it enters its call, and how it bends. Calls in a column are joined by their sides.
/** @param {Point} from @param {Point} to */
function path(from, to) {
  const middle = HEIGHT / 2;
  if (!frame.isTall && from.x === to.x) {
    const isDown = to.y > from.y;
    const [y1, y2] = isDown ? [from.y + HEIGHT, to.y] : [from.y, to.y + HEIGHT];
    const x = from.x + WIDTH / 2;
    return { x1: x, y1, x2: x, y2, bx: 0, by: (y2 - y1) / 2 };
  }
  if (frame.isTall && from.y !== to.y) {
    const isDown = to.y > from.y;
    const [y1, y2] = isDown ? [from.y + HEIGHT, to.y] : [from.y, to.y + HEIGHT];
    // Between the columns there is room to pass the rows in between.
    const isFar = Math.abs(to.y - from.y) > TALL_DOWN;
    const by = isFar ? Math.sign(y2 - y1) * (TALL_DOWN - HEIGHT) / 2 : (y2 - y1) / 2;
    return { x1: from.x + WIDTH / 2, y1, x2: to.x + WIDTH / 2, y2, bx: 0, by, between: isFar ? (WIDTH + TALL_ACROSS) / 2 : null };
  }
  const isBack = frame.isTall && to.x < from.x;
  const [x1, x2] = isBack ? [from.x, to.x + WIDTH] : [from.x + WIDTH, to.x];
  const bx = frame.isTall ? (x2 - x1) / 2 : Math.max(Math.abs(x2 - x1) / 2, 30);
  return { x1, y1: from.y + middle, x2, y2: to.y + middle, bx, by: 0 };
}

// The calls before and behind the chosen one, all the way.
/** @returns {Set<number>} */
function kin() {
  const { chosen } = state;
  if (chosen === null) return new Set();
  /** @param {number[][]} next */
  const follow = (next) => {
    // The loop includes what is added to the set.
    const found = new Set([chosen]);
    for (const number of found) for (const other of next[number]) found.add(other);
    return found;
  };
  return new Set([...follow(before), ...follow(behind)]);
}

/** @param {CanvasRenderingContext2D} context @param {Edge[]} list @param {Box} sight */
function drawEdges(context, list, sight) {
  context.beginPath();
  for (const [cause, number] of list) {
    const from = places[cause];
    const to = places[number];
    if (Math.max(from.x, to.x) + WIDTH < sight.left || Math.min(from.x, to.x) > sight.right) continue;
    if (Math.max(from.y, to.y) + HEIGHT < sight.top || Math.min(from.y, to.y) > sight.bottom) continue;
    const { x1, y1, x2, y2, bx, by, between = null } = path(from, to);
    context.moveTo(x1, y1);
    if (camera.scale < 0.3) {
      context.lineTo(x2, y2);
    } else {
      if (between === null) {
        context.bezierCurveTo(x1 + bx, y1 + by, x2 - bx, y2 - by, x2, y2);
      } else {
        context.bezierCurveTo(x1, y1 + by, between, y1 + by, between, y1 + 2 * by);
        context.lineTo(between, y2 - 2 * by);
        context.bezierCurveTo(between, y2 - by, x2, y2 - by, x2, y2);
      }
      if (camera.scale > 0.45) {
        const [dx, dy] = [Math.sign(bx) * 7, Math.sign(by) * 7];
        context.moveTo(x2 - dx + dy * 0.57, y2 - dy + dx * 0.57);
        context.lineTo(x2, y2);
        context.lineTo(x2 - dx - dy * 0.57, y2 - dy - dx * 0.57);
      }
    }
  }
  context.stroke();
}

// The text, truncated to so many pixels.
/** @param {CanvasRenderingContext2D} context @param {string} whole @param {number} width */
function fitted(context, whole, width) {
  let content = seen(whole);
  if (content.length > 60) content = `${content.slice(0, 60)}…`;
  if (context.measureText(content).width <= width) return content;
  let length = content.length;
  while (length > 1 && context.measureText(`${content.slice(0, length)}…`).width > width) length -= 1;
  return `${content.slice(0, length)}…`;
}

/** @param {CanvasRenderingContext2D} context @param {Call} call @param {Set<number>} related */
function drawCall(context, call, related) {
  const { x, y } = places[call.number];
  const kindOfCall = kind(call);
  const isChosen = call.number === state.chosen;
  const isOff = !state.isShown[call.number] || (related.size > 1 && !related.has(call.number));
  context.globalAlpha = isOff && !isChosen ? 0.25 : 1;
  if (camera.scale < 0.3) {
    context.fillStyle = colors[kindOfCall];
    context.fillRect(x, y, WIDTH, HEIGHT);
  } else {
    context.fillStyle = colors.card;
    context.strokeStyle = call.is_critical ? colors.accent : colors.line;
    context.lineWidth = call.is_critical ? 2.5 : 1;
    context.beginPath();
    context.roundRect(x, y, WIDTH, HEIGHT, 6);
    context.fill();
    context.stroke();
    context.fillStyle = colors[kindOfCall];
    context.beginPath();
    context.roundRect(x, y, 22, HEIGHT, [6, 0, 0, 6]);
    context.fill();
    if (camera.scale > 0.45) {
      context.fillStyle = colors.page;
      context.font = "bold 13px system-ui, sans-serif";
      context.fillText(KINDS[kindOfCall][0], x + 6, y + 21);
      context.fillStyle = colors.text;
      context.font = "bold 12px ui-monospace, monospace";
      context.fillText(fitted(context, tag(call) || call.name, WIDTH - 32), x + 28, y + 14);
      context.fillStyle = colors.faint;
      context.font = "11px system-ui, sans-serif";
      context.fillText(fitted(context, `${took(call)} · ${call.name}`, WIDTH - 32), x + 28, y + 28);
    }
  }
  if (isChosen) {
    context.strokeStyle = colors.accent;
    context.lineWidth = Math.max(3, 2.5 / camera.scale);
    context.strokeRect(x - 4, y - 4, WIDTH + 8, HEIGHT + 8);
  }
}

function drawGraph() {
  const plane = byId("plane");
  const drawn = canvas(plane);
  if (drawn === null || calls.length === 0) return;
  const { context, width, height } = drawn;
  const isTall = width < 600;
  if (!isLaidOut || frame.isTall !== isTall) layOut(isTall);
  if (!camera.isFree) fit(width, height);
  if (sought !== null) showInGraph(sought);
  sought = null;
  const { scale } = camera;
  const sight = {
    left: -camera.x / scale,
    top: -camera.y / scale,
    right: (width - camera.x) / scale,
    bottom: (height - camera.y) / scale,
  };
  context.translate(camera.x, camera.y);
  context.scale(scale, scale);
  if (bands.length > 1) {
    context.fillStyle = colors.faint;
    context.font = `${Math.min(13 / scale, 60)}px system-ui, sans-serif`;
    for (const { name, x, y } of bands) context.fillText(name, x, y - 12 / Math.max(scale, 0.3));
  }
  const related = kin();
  /** @param {Edge} edge */
  const isRelated = ([cause, number]) => related.has(cause) && related.has(number);
  /** @param {Edge} edge */
  const isCritical = ([cause, number]) => calls[number].critical_cause === cause;
  /** @param {Edge} edge */
  const isReason = ([cause, number]) => calls[number].because?.call === cause;
  const plain = edges.filter((edge) => !isRelated(edge) && !isCritical(edge) && !isReason(edge));
  context.lineWidth = Math.max(1, 0.6 / scale);
  context.globalAlpha = related.size > 1 ? 0.15 : edges.length > 800 && scale < 0.3 ? 0.3 : 0.8;
  context.strokeStyle = colors.waiting;
  drawEdges(context, plain, sight);
  context.strokeStyle = colors.skipped;
  context.setLineDash([6, 4]);
  drawEdges(context, edges.filter((edge) => isReason(edge) && !isRelated(edge)), sight);
  context.setLineDash([]);
  context.lineWidth = Math.max(2.5, 1.2 / scale);
  context.strokeStyle = colors.accent;
  drawEdges(context, edges.filter((edge) => isCritical(edge) && !isRelated(edge)), sight);
  context.globalAlpha = 1;
  context.lineWidth = Math.max(2, 1 / scale);
  context.strokeStyle = colors.text;
  drawEdges(context, edges.filter((edge) => isRelated(edge) && !isReason(edge)), sight);
  context.setLineDash([6, 4]);
  drawEdges(context, edges.filter((edge) => isRelated(edge) && isReason(edge)), sight);
  context.setLineDash([]);
  for (const call of calls) {
    const { x, y } = places[call.number];
    if (x + WIDTH >= sight.left && x <= sight.right && y + HEIGHT >= sight.top && y <= sight.bottom) {
      drawCall(context, call, related);
    }
  }
  context.globalAlpha = 1;
}

// Several changes in one frame are drawn once.
let isWanted = false;
function wantGraph() {
  if (isWanted || document.body.dataset.view !== "graph") return;
  isWanted = true;
  requestAnimationFrame(() => {
    isWanted = false;
    drawGraph();
  });
}

// Shows all of it; at first, if it is too long to be made out so, its beginning.
/** @param {number} width @param {number} height */
function fit(width, height) {
  if (frame.isTall) {
    // All of a long graph is too small to read; its beginning is shown.
    const across = Math.min((width - 24) / frame.right, 1.1);
    camera.scale = camera.isWhole ? Math.min(across, (height - 40) / frame.bottom) : across;
    camera.x = (width - frame.right * camera.scale) / 2;
    camera.y = Math.max((height - frame.bottom * camera.scale) / 2, 20);
    if (!camera.isWhole) camera.y = Math.min(camera.y, 28);
    return;
  }
  const margin = 30;
  const tall = (height - 2 * margin) / frame.bottom;
  const all = Math.min((width - 2 * margin) / frame.right, tall, 1.1);
  const scale = camera.isWhole ? all : Math.max(all, Math.min(tall, 0.5));
  camera.scale = Math.max(scale, 0.005);
  camera.x = Math.max((width - frame.right * camera.scale) / 2, margin);
  camera.y = (height - frame.bottom * camera.scale) / 2;
}

/** @param {number} factor */
function zoomGraph(factor, x = byId("plane").clientWidth / 2, y = byId("plane").clientHeight / 2) {
  const scale = Math.min(Math.max(camera.scale * factor, 0.005), 3);
  camera.x = x - ((x - camera.x) / camera.scale) * scale;
  camera.y = y - ((y - camera.y) / camera.scale) * scale;
  camera.scale = scale;
  camera.isFree = true;
  wantGraph();
}

/** @param {MouseEvent} event */
function callAt(event) {
  const box = byId("plane").getBoundingClientRect();
  const x = (event.clientX - box.left - camera.x) / camera.scale;
  const y = (event.clientY - box.top - camera.y) / camera.scale;
  const slack = Math.min(4 / camera.scale, 40);
  return places.findIndex((place) => place
    && x >= place.x - slack && x <= place.x + WIDTH + slack && y >= place.y - slack && y <= place.y + HEIGHT + slack);
}

// The call next to the chosen one: its first cause, its first dependent, or the nearest above or below.
/** @param {string} key @returns {number | undefined} */
function neighbour(key) {
  if (state.chosen === null) return state.shown[0];
  if (key === "ArrowLeft") return before[state.chosen][0];
  if (key === "ArrowRight") return behind[state.chosen][0];
  const here = places[state.chosen];
  /** @param {Point} place */
  const isBeyond = (place) => place.x === here.x && (key === "ArrowDown" ? place.y > here.y : place.y < here.y);
  /** @param {number} number */
  const distance = (number) => Math.abs(places[number].y - here.y);
  const beyond = [...places.keys()].filter((number) => isBeyond(places[number]));
  return beyond.sort((a, b) => distance(a) - distance(b))[0];
}

/** @param {number} number */
function showInGraph(number) {
  const place = places[number];
  const plane = byId("plane");
  if (!place || plane.clientWidth === 0) return;
  if (camera.scale < 0.3) {
    camera.scale = 0.6;
    camera.x = Infinity;
  }
  const x = camera.x + place.x * camera.scale;
  const y = camera.y + place.y * camera.scale;
  const isInSight = x > 0 && y > 0 && x + WIDTH * camera.scale < plane.clientWidth && y + HEIGHT * camera.scale < plane.clientHeight;
  if (isInSight) return;
  camera.x = plane.clientWidth / 2 - (place.x + WIDTH / 2) * camera.scale;
  camera.y = plane.clientHeight / 2 - (place.y + HEIGHT / 2) * camera.scale;
  camera.isFree = true;
}

// One pointer moves the plane, two make it larger and smaller.
/** @param {HTMLCanvasElement} plane */
function buildPointers(plane) {
  /** @type {Map<number, Point>} */
  const pointers = new Map();
  let moved = 0;
  const distance = () => {
    const [a, b] = [...pointers.values()];
    return Math.hypot(a.x - b.x, a.y - b.y);
  };
  plane.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    plane.setPointerCapture(event.pointerId);
    if (pointers.size === 1) moved = 0;
  });
  plane.addEventListener("pointermove", (event) => {
    const last = pointers.get(event.pointerId);
    if (!last) {
      plane.classList.toggle("over", callAt(event) >= 0);
      return;
    }
    const before = pointers.size === 2 ? distance() : 0;
    const [x, y] = [event.clientX - last.x, event.clientY - last.y];
    moved += Math.abs(x) + Math.abs(y);
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (pointers.size === 2) {
      const box = plane.getBoundingClientRect();
      const [a, b] = [...pointers.values()];
      zoomGraph(distance() / Math.max(before, 1), (a.x + b.x) / 2 - box.left, (a.y + b.y) / 2 - box.top);
    } else if (moved > 4) {
      camera.x += x;
      camera.y += y;
      camera.isFree = true;
      wantGraph();
    }
  });
  /** @param {PointerEvent} event */
  const release = (event) => {
    const wasAlone = pointers.size === 1;
    pointers.delete(event.pointerId);
    if (event.type === "pointerup" && wasAlone && moved <= 4) {
      const number = callAt(event);
      choose(number >= 0 ? number : null, "graph");
    }
  };
  plane.addEventListener("pointerup", release);
  plane.addEventListener("pointercancel", release);
}

function buildGraph() {
  readColors();
  const plane = byId("plane");
  buildPointers(plane);
  plane.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = plane.getBoundingClientRect();
    zoomGraph(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  const all = () => {
    camera.isFree = false;
    camera.isWhole = true;
    wantGraph();
  };
  plane.addEventListener("keydown", (event) => {
    if (event.key.startsWith("Arrow")) {
      const number = neighbour(event.key);
      if (number !== undefined) choose(number, "key");
    } else if (event.key === "+") zoomGraph(1.4);
    else if (event.key === "-") zoomGraph(1 / 1.4);
    else if (event.key === "0") all();
    else return;
    event.preventDefault();
  });
  byId("graph-in").addEventListener("click", () => zoomGraph(1.4));
  byId("graph-out").addEventListener("click", () => zoomGraph(1 / 1.4));
  byId("graph-all").addEventListener("click", all);
  listeners.opened.push(tie, wantGraph);
  listeners.chosen.push((number, from) => {
    if (from !== "graph") sought = from === "opened" ? null : number;
    // A screen reader does not see which call is chosen.
    byId("graph-call").textContent = number === null ? "" : seen(`${called(calls[number])}, ${statusText(calls[number])}`);
    wantGraph();
  });
  listeners.shown.push(wantGraph);
  listeners.view.push(wantGraph);
  listeners.resized.unshift(readColors);
  listeners.resized.push(wantGraph);
}
