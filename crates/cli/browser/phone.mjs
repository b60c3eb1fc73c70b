// Opens pages in Chromium with the screen of a phone, and checks that they can be read, and which call is selected, also on a wide screen: node phone.mjs CHROMIUM FOLDER PAGE…
// Saves a screenshot of every state into the folder. Prints the problems and exits with status 1 if there are any.

import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";

const [program, folder, ...pages] = process.argv.slice(2);
const SCREEN = { width: 390, height: 844, deviceScaleFactor: 2, mobile: true };
const WIDE = { width: 1280, height: 800, deviceScaleFactor: 1, mobile: false };
// The time limit for one answer of the browser.
const PATIENCE = 30_000;

// DevTools messages end with a zero byte. The browser reads them from descriptor 3 and writes them to descriptor 4.
const options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"];
options.push(`--user-data-dir=${folder}/profile`, "--remote-debugging-pipe");
const browser = spawn(program, options, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
process.on("exit", () => browser.kill());
const fail = (message) => {
  console.error(message);
  process.exit(2);
};
browser.on("error", (error) => fail(`${program}: ${error.message}`));
browser.on("exit", (status) => fail(`${program} ended with status ${status}`));

const waiting = new Map();
let last = 0;
let received = "";
browser.stdio[4].setEncoding("utf8").on("data", (piece) => {
  const messages = (received + piece).split("\0");
  received = messages.pop();
  for (const { id, method, result, error } of messages.map((message) => JSON.parse(message))) {
    const key = id ?? method;
    waiting.get(key)?.(error ? { error } : result);
    waiting.delete(key);
  }
});

const answer = (key) => new Promise((resolve) => {
  const limit = setTimeout(() => fail(`no answer of the browser: ${key}`), PATIENCE);
  waiting.set(key, (result) => {
    clearTimeout(limit);
    if (result?.error) fail(`${key}: ${result.error.message}`);
    resolve(result);
  });
});
let sessionId;
function send(method, params = {}) {
  last += 1;
  browser.stdio[3].write(`${JSON.stringify({ id: last, method, params, sessionId })}\0`);
  return answer(last);
}

async function run(script, ...values) {
  const expression = `(${script})(...${JSON.stringify(values)})`;
  const { result, exceptionDetails: mistake } = await send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
  if (mistake) fail(mistake.exception?.description ?? mistake.text);
  return result.value;
}

// In the page: what cannot be read on this screen. `least` is the smallest size of text.
function unreadable(width, least) {
  const problems = [];
  if (document.documentElement.scrollWidth > width) problems.push(`the page is ${document.documentElement.scrollWidth} pixels wide`);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility({ contentVisibilityAuto: true })) continue;
    range.selectNodeContents(walker.currentNode);
    const box = range.getBoundingClientRect();
    if (box.width === 0) continue;
    const text = walker.currentNode.data.trim().slice(0, 40);
    const size = parseFloat(getComputedStyle(element).fontSize);
    if (size < least) problems.push(`text of ${size} pixels: ${text}`);
    // A wide table scrolls, and a title that ends in "…" is in full elsewhere. Nothing else may hide a part of its text.
    if (element.closest(".spoken, .scroll, .row > .id, .row > .name, .call .reason")) continue;
    let [left, right] = [0, width];
    for (let outer = element; outer !== document.body; outer = outer.parentElement) {
      const edge = outer.getBoundingClientRect();
      if (getComputedStyle(outer).overflowX !== "visible") [left, right] = [Math.max(left, edge.left), Math.min(right, edge.right)];
    }
    if (box.left < left - 1 || box.right > right + 1) problems.push(`truncated text: ${text}`);
  }
  return problems;
}

// In the page: where the critical path in the timeline has a gap. Bars and lines that touch must lead from the start of each call on
// the path to its end, and to the next call.
function gaps() {
  const found = (selector) => [...document.querySelectorAll(selector)].map((element) => element.getBoundingClientRect());
  const touch = (one, other) => one.left <= other.right + 1 && other.left <= one.right + 1
    && one.top <= other.bottom + 1 && other.top <= one.bottom + 1;
  const reached = (starts, others) => {
    const open = [...starts];
    for (const box of open) open.push(...others.filter((other) => !open.includes(other) && touch(box, other)));
    return open;
  };
  const lines = found(".hand-over");
  const problems = [];
  for (const { number, is_critical: isCritical, critical_cause: cause } of calls) {
    const bars = found(`#row-${number} .critical`);
    if (isCritical && reached(bars.slice(0, 1), bars).length < bars.length) problems.push(`call ${number} has a gap between its attempts`);
    if (cause === null) continue;
    const path = reached(found(`#row-${cause} .critical`), lines);
    if (!bars.some((bar) => path.some((box) => touch(box, bar)))) {
      problems.push(`the critical path has a gap between the calls ${cause} and ${number}`);
    }
  }
  return problems;
}

// In the page: shows a state, and waits until it is drawn.
async function show(name, call) {
  view(name);
  choose(call, "address");
  for (let frames = 0; frames < 3; frames += 1) await new Promise(requestAnimationFrame);
}

// In the page: whether this call is selected, and in the address only if that named it. `first` is the first that failed, or the first one.
function selection(expected) {
  const first = calls.find(({ status }) => status === "error") ?? calls[0];
  const call = expected === "first" ? first?.number ?? null : expected;
  const isNamed = location.hash.includes("/call-");
  return state.chosen === call && isNamed === Number.isInteger(expected) ? [] : [`call ${state.chosen} is selected at ${location.hash}, not ${call}`];
}

async function load(url) {
  const loaded = answer("Page.loadEventFired");
  await send("Page.navigate", { url });
  await loaded;
}

async function open(page, screen, fragment = "") {
  await send("Emulation.setDeviceMetricsOverride", screen);
  // Another fragment alone does not load the page again.
  await load("about:blank");
  await load(pathToFileURL(page).href + fragment);
}

let problems = 0;
async function check(name, scripts) {
  const found = [];
  for (const [script, ...values] of scripts) found.push(...await run(script, ...values));
  const { data } = await send("Page.captureScreenshot", { format: "png" });
  writeFileSync(`${folder}/${name}.png`, data, "base64");
  for (const problem of new Set(found)) console.log(`${name}: ${problem}`);
  problems += found.length;
}

const { targetId } = await send("Target.createTarget", { url: "about:blank" });
({ sessionId } = await send("Target.attachToTarget", { targetId, flatten: true }));
await send("Page.enable");
for (const page of pages) {
  const name = basename(page, ".html");
  await open(page, SCREEN);
  const readable = [unreadable, SCREEN.width, 12];
  // Only the page of a run has data. If its scripts do not run, there is no `calls`, which is an error.
  const number = await run(() => (document.getElementById("data") === null ? null : calls.length));
  if (number === null) {
    await check(name, [readable]);
    await run(() => {
      document.querySelectorAll("details").forEach((details) => { details.open = true; });
      return null;
    });
    await check(`${name}-open`, [readable]);
    continue;
  }
  await check(name, [[selection, null]]);
  await open(page, WIDE);
  await check(`${name}-wide`, [[selection, "first"]]);
  await run(() => view("graph") ?? null);
  await check(`${name}-wide-graph`, [[selection, "first"]]);
  if (number > 0) {
    await open(page, WIDE, `#timeline/call-${number}`);
    await check(`${name}-address`, [[selection, number - 1]]);
  }
  await open(page, SCREEN);
  for (const [name_of_view, scripts] of [["transcript", [readable]], ["timeline", [readable, [gaps]]], ["graph", [readable]]]) {
    await run(show, name_of_view, null);
    await check(`${name}-${name_of_view}`, scripts);
  }
  for (let call = 0; call < number; call += 1) {
    await run(show, "timeline", call);
    await check(`${name}-call-${call}`, [readable]);
  }
}
const result = problems === 0 ? "they are readable, and the right calls are selected" : `${problems} problems`;
console.log(`${pages.length} pages on a screen of ${SCREEN.width} × ${SCREEN.height} and on a wide one: ${result}`);
browser.removeAllListeners("exit");
process.exit(problems === 0 ? 0 : 1);
