// What the page shows without a reply, with a mistake, and when its window changes.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { drop, inspect, LOGS, SIZES, tooWide, violations, withPage } from "./browser.mjs";

const REPLY = "Hello.\n!!!GADGET_START:Look:a\n!!!ARG:at\nhere\n!!!GADGET_END\n";
const TOOLS = '[{"name": "Look", "parameters": {"type": "object", "properties": {"at": {"type": "integer"}}, "required": ["at"]}}]';
const log = () => readFileSync(`${LOGS}/everything.log`);
const mode = (page, name) => page.waitForFunction((wanted) => document.body.dataset.mode === wanted, name);
const tabs = (page) => page.locator("[role=tab]:visible").allTextContents();

/** Neighbours in the input whose boxes overlap. */
const overlaps = (page) => page.evaluate(() => {
  const boxes = [...document.querySelectorAll("#input .label, #input label, #input textarea, #input .hint, #input legend, #input button")].filter((it) => it.checkVisibility() && it.getBoundingClientRect().height > 0);
  const found = [];
  for (const [at, one] of boxes.entries()) {
    for (const other of boxes.slice(at + 1)) {
      if (one.contains(other) || other.contains(one)) continue;
      const [a, b] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
      const isOver = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1 && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1;
      if (isOver) found.push(`${one.tagName} ${one.textContent.slice(0, 20)} and ${other.tagName} ${other.textContent.slice(0, 20)}`);
    }
  }
  return found;
});

for (const size of [{ width: 390, height: 844 }, { width: 320, height: 568 }, { width: 1024, height: 600 }]) {
  test(`nothing overlaps in the input, ${size.width} pixels`, () => withPage({ size }, async (page) => {
    await page.click("#tab-input");
    assert.deepEqual(await overlaps(page), []);
    await inspect(page, `${REPLY}\\n!!!GADGET_EN\\D`, TOOLS);
    const cut = await page.evaluate(() => [...document.querySelectorAll("#settings select")].filter((it) => {
      const pen = document.createElement("canvas").getContext("2d");
      pen.font = getComputedStyle(it).font;
      // The padding, and the sign that it can be opened.
      return pen.measureText(it.selectedOptions[0].text).width > it.clientWidth - 32;
    }).map((it) => it.name));
    assert.deepEqual(cut, []);
    assert.deepEqual(await overlaps(page), []);
    assert.deepEqual(await tooWide(page), []);
  }));
}

for (const [name, size] of Object.entries({ ...SIZES, small: { width: 768, height: 900 } })) {
  test(`the first screen explains itself with an example, ${name}`, () => withPage({ size, isOpen: false }, async (page) => {
    const inSight = async (selector) => {
      const box = await page.locator(selector).boundingBox();
      assert.ok(box !== null && box.y >= 0 && box.y + box.height <= size.height, selector);
    };
    for (const selector of ["#about b", "[data-sample=valid]", "[data-sample=invalid]", "[data-sample=truncated]", "#own"]) await inSight(selector);
    assert.match(await page.locator("#about").textContent(), /without native tool calls writes them as text.*Paste a reply anywhere/);
    assert.match(await page.locator("#meta").textContent(), /^3 calls · 0 errors · 0 warnings · 2 tools/);
    assert.equal(new URL(page.url()).hash, "");
    const verdicts = async (sample) => {
      await page.evaluate(() => isNarrow.matches && view("transcript"));
      await page.click(`[data-sample=${sample}]`);
      // The result is shown at once.
      await inSight(".bytes.header >> nth=0");
      await page.click("#tab-calls");
      return page.locator(".call-node .verdict").allTextContents();
    };
    assert.deepEqual(await verdicts("valid"), ["may run", "may run", "may run"]);
    assert.equal((await verdicts("invalid")).filter((verdict) => verdict === "rejected").length, 1);
    assert.deepEqual(await verdicts("truncated"), ["may run", "rejected"]);
    await page.click("#tab-input");
    assert.equal(await page.isVisible("[name=detect]"), false);
    assert.deepEqual(await tooWide(page), []);
    assert.deepEqual(await violations(page), []);
    await page.fill("#reply", "My own.");
    await page.locator("#about").waitFor({ state: "hidden" });
  }));
}

test("a truncated call of a tool that writes never may run", () => withPage({}, async (page) => {
  for (const size of [10, 30, 60, 90]) {
    await inspect(page, `Sure.\n!!!GADGET_START:Send\n!!!ARG:text\n${"Dear Ann, I am writing to you about the ".repeat(3).slice(0, size)}`, TOOLS.replace("Look", "Send"));
    await page.click("#tab-calls");
    assert.deepEqual(await page.locator(".call-node .verdict").allTextContents(), ["rejected"]);
  }
}));

/** Pastes a text where the focus is. */
async function paste(page, text) {
  await page.evaluate((it) => navigator.clipboard.writeText(it), text);
  await page.keyboard.press("Control+v");
}

test("another reply has no tools of an example", () => withPage({}, async (page) => {
  const isAlone = () => page.waitForFunction(() => document.getElementById("meta").textContent.startsWith("1 call · 0 errors · 0 warnings · no tools"));
  await page.click("#own");
  assert.equal(await page.locator("#input").isVisible(), true);
  await paste(page, REPLY);
  await isAlone();
  await page.click("#example");
  await page.click("#tab-input");
  await page.click("#clear");
  await paste(page, REPLY);
  await isAlone();
  // Tools of a person stay.
  await inspect(page, REPLY, TOOLS);
  await page.focus("#reply");
  await page.keyboard.press("Control+a");
  await paste(page, `${REPLY}\n`);
  await page.waitForFunction((length) => document.getElementById("reply-note").textContent.startsWith(`${length} bytes`), REPLY.length + 1);
  assert.equal(await page.inputValue("#definitions"), TOOLS);
}));

test("a reply is pasted anywhere, and cleared without its tools", () => withPage({}, async (page) => {
  await page.click("#tab-calls");
  await page.locator("#meta").click();
  await paste(page, REPLY);
  await page.waitForFunction((text) => document.getElementById("reply").value === text, REPLY);
  assert.equal(await page.inputValue("#reply"), REPLY);
  assert.equal(await page.locator("#calls").isVisible(), true);
  await page.click("#tab-input");
  const tools = await page.inputValue("#definitions");
  await page.click("#clear");
  assert.deepEqual([await page.inputValue("#reply"), await page.inputValue("#definitions")], ["", tools]);
  await page.click("#tab-input");
  await page.click("#undo");
  assert.deepEqual([await page.inputValue("#reply"), await page.inputValue("#definitions")], [REPLY, tools]);
  assert.equal(await page.isVisible("#undo"), false);
  // Definitions of tools are not a reply.
  await page.locator("#meta").click();
  await paste(page, TOOLS);
  await page.waitForFunction((text) => document.getElementById("definitions").value === text, TOOLS);
  assert.equal(await page.inputValue("#reply"), REPLY);
}));

test("a reply that is typed over an example has none of its tools", () => withPage({}, async (page) => {
  const example = [await page.inputValue("#reply"), await page.inputValue("#definitions")];
  assert.notEqual(example[1], "");
  await page.click("#own");
  await page.keyboard.type("I");
  const input = async () => [await page.inputValue("#reply"), await page.inputValue("#definitions")];
  assert.deepEqual(await input(), ["I", ""]);
  await page.keyboard.press("Control+z");
  assert.deepEqual(await input(), example);
  await page.keyboard.press("Control+Shift+z");
  assert.deepEqual(await input(), ["I", ""]);
}));

const CONTENT = "I look.\n!!!GADGET_START:Look\n!!!ARG:at\nhere\n!!!GADGET_END\n";
const pieces = CONTENT.match(/[^]{1,7}/g);
const stream = (event) => pieces.map((piece) => `data: ${JSON.stringify(event(piece))}\n\n`).join("");
const RESPONSES = {
  "chat completion": JSON.stringify({ choices: [{ message: { role: "assistant", content: CONTENT }, finish_reason: "stop" }] }),
  "stream of chat completions": `${stream((content) => ({ choices: [{ delta: { content } }] }))}data: [DONE]\n\n`,
  message: JSON.stringify({ type: "message", content: [{ type: "text", text: CONTENT }], stop_reason: "end_turn" }),
  "stream of a message": `event: message_start\n${stream((text) => ({ type: "content_block_delta", delta: { type: "text_delta", text } }))}`,
  response: JSON.stringify({ output: [{ type: "message", content: [{ type: "output_text", text: CONTENT }] }] }),
  "stream of a response": stream((delta) => ({ type: "response.output_text.delta", delta })),
  "answer of Ollama": pieces.map((content) => JSON.stringify({ message: { content }, done: false })).join("\n"),
};
for (const [name, text] of Object.entries(RESPONSES)) {
  test(`the text of a ${name} is offered`, () => withPage({}, async (page) => {
    await inspect(page, text);
    assert.match(await page.locator("#offer").textContent(), /the response of an API/);
    await page.click("#tab-diagnostics");
    assert.doesNotMatch(await page.locator("#diagnostics").textContent(), /without the escapes/);
    await page.click("#offer-use");
    assert.equal(await page.inputValue("#reply"), CONTENT);
    assert.match(await page.locator("#meta").textContent(), /^1 call · 0 errors/);
    assert.equal(await page.isVisible("#offer"), false);
  }));
}

const windows1252 = (text) => Buffer.from(text).toString("latin1").replace("\x9f", "\u0178").replace("\x9b", "\u203a").replace("\x80", "\u20ac");
const EMOJI = "🛠️[Look a]\nhere\n🛠️[/end]\n";
test("a text without a call is explained", () => withPage({}, async (page) => {
  const cases = {
    "Thought: I look.\nAction: Look\nAction Input: {}\n": /looks like ReAct/,
    "\\ud83d\\udee0\\ufe0f[Look]": /inside of a JSON string/,
    "??[Look]\n": /wrong encoding/,
    [Buffer.from(EMOJI).toString("latin1")]: /wrong encoding.*unknown marker/,
    [windows1252(EMOJI)]: /wrong encoding.*unknown marker/,
    [windows1252(windows1252(EMOJI))]: /wrong encoding.*unknown marker/,
    '{"choices": [{"message": {"content": null, "tool_calls": [{"function": {"name": "Look", "arguments": "{}"}}]}}]}': /native tool calls in JSON/,
    "I cannot help.": /system prompt of the tab Prompt/,
  };
  for (const [text, expected] of Object.entries(cases)) {
    await page.evaluate(() => document.activeElement.blur());
    await page.setViewportSize(text.length % 2 === 0 ? SIZES.phone : SIZES.desktop);
    await paste(page, text);
    // It is what the page shows then.
    await page.locator("#diagnostics .message").first().waitFor();
    await page.waitForFunction((it) => document.getElementById("reply").value === it, text);
    assert.match(await page.locator("#meta").textContent(), /^0 calls · 0 errors · \d warnings? · no tools$/);
    const found = await page.locator("#diagnostics").textContent();
    await page.click("#tab-calls");
    assert.match(await page.locator("#calls").textContent(), /^No call was found/);
    assert.match(found, /^No call was found\. A call begins with !!!GADGET_START:/);
    assert.match(found, expected);
    assert.doesNotMatch(found, /No errors|`/);
  }
}));

test("one number for a call, and no text in backticks", () => withPage({}, async (page) => {
  await page.click("[data-sample=invalid]");
  await page.locator(".bytes.value").filter({ hasText: "a week" }).click();
  assert.match(await page.locator("#interpretation").textContent(), /of call 2, ReadStation/);
  await page.click("#tab-graph");
  assert.match(await page.locator("#details .facts").textContent(), /call 2/);
  assert.match(await page.locator("#details .message").textContent(), /days: expected/);
  // A reply that has not run has no times.
  assert.doesNotMatch(await page.locator("#details").textContent(), /Times/);
  assert.match(page.url(), /\/graph\/call-2$/);
  for (const tab of await page.locator("[role=tab]:visible").all()) {
    await tab.click();
    const texts = await page.locator("main p:visible, main li:visible, main dd:not(:has(pre)):visible").allTextContents();
    assert.deepEqual(texts.filter((text) => text.includes("`")), []);
  }
  await drop(page, [{ name: "run.log", bytes: log() }]);
  await mode(page, "log");
  assert.match(await page.locator("#transcript").textContent(), /unknown tool nosuch/);
}));

for (const size of [...Object.values(SIZES), { width: 1024, height: 700 }]) {
  test(`the chosen tab moves no other, ${size.width} pixels`, () => withPage({ size }, async (page) => {
    const places = () => page.evaluate(() => [...document.querySelectorAll("[role=tab]")].filter((tab) => tab.offsetParent).map((tab) => {
      const { x, y } = tab.getBoundingClientRect();
      return [x + document.getElementById("views").scrollLeft, y];
    }));
    const move = async (...names) => {
      const before = await places();
      for (const name of names) {
        await page.click(`#tab-${name}`);
        assert.deepEqual(await places(), before, name);
      }
    };
    await move("input", "graph", "diagnostics");
    await drop(page, [{ name: "run.log", bytes: log() }]);
    await mode(page, "log");
    await move("input", "timeline", "graph");
  }));
}

test("fixes name the controls of the page", () => withPage({}, async (page) => {
  const call = "!!!GADGET_START:Look\n!!!GADGET_END\n";
  for (const [reply, controls] of [
    [`<think>\n${call}</think>\n`, ["“The reply has no reasoning”"]],
    ["!!!GADGET_START:Look\n!!!ARG:at\nx !!!GADGET_START:Look\n!!!GADGET_END\n", ["“Markers count anywhere in a line”"]],
  ]) {
    await inspect(page, reply);
    await page.click("#tab-diagnostics");
    for (const control of controls) {
      await page.locator("#diagnostics", { hasText: control }).waitFor();
      assert.ok(await page.locator("#options label", { hasText: control.slice(1, -1) }).count(), control);
    }
    assert.doesNotMatch(await page.locator("#diagnostics").textContent(), /--[a-z]/);
  }
}));

test("an empty page", () => withPage({}, async (page) => {
  await inspect(page, "");
  await mode(page, "empty");
  assert.deepEqual(await tabs(page), ["Input"]);
  assert.deepEqual(await violations(page), []);
  await page.click("#example");
  await mode(page, "reply");
  await page.setViewportSize(SIZES.phone);
  await inspect(page, "");
  await page.click("#tab-transcript");
  assert.equal(await page.isVisible("#about b"), true);
}));

test("tools alone have a prompt and a grammar", () => withPage({}, async (page) => {
  await inspect(page, "", TOOLS);
  await mode(page, "tools");
  assert.deepEqual(await tabs(page), ["Input", "Prompt", "Grammar"]);
  await page.click("#tab-grammar");
  assert.match(await page.locator("#grammar pre").textContent(), /root ::=/);
  await page.click("#tab-prompt");
  assert.match(await page.locator("#prompt pre").textContent(), /Look/);
  assert.deepEqual(await violations(page), []);
  await page.click("#tab-input");
  await page.fill("#definitions", "[{]");
  await page.getByRole("alert").waitFor();
  for (const view of ["prompt", "grammar"]) {
    await page.click(`#tab-${view}`);
    assert.match(await page.locator(`#${view}`).textContent(), /line 1|column/);
  }
}));

test("nothing of an earlier reply stays with a mistake", () => withPage({}, async (page) => {
  await inspect(page, REPLY, TOOLS);
  await page.click("#tab-prompt");
  await page.click("#tab-input");
  await page.uncheck("[name=detect]");
  await page.fill("[name=reasoning_open]", "<r>");
  await page.getByRole("alert").waitFor();
  assert.equal(await page.locator("#meta").textContent(), "The input cannot be shown.");
  for (const id of ["transcript", "calls", "diagnostics", "prompt", "replay-text"]) assert.equal(await page.locator(`#${id}`).textContent(), "", id);
  await page.fill("[name=reasoning_close]", "</r>");
  await mode(page, "reply");
  await page.click("#tab-calls");
  assert.match(await page.locator("#calls").textContent(), /Look/);
}));

test("files are told apart by their content", () => withPage({}, async (page) => {
  await drop(page, [{ name: "reply.json", bytes: Buffer.from(REPLY) }, { name: "tools.txt", bytes: Buffer.from(TOOLS) }]);
  await page.waitForFunction(() => document.getElementById("meta").textContent.includes("1 tool "));
  assert.equal(await page.inputValue("#reply"), REPLY);
  await drop(page, [{ name: "run.json", bytes: log() }]);
  await mode(page, "log");
}));

test("broken tools are no reply", () => withPage({}, async (page) => {
  await inspect(page, REPLY);
  const files = { "broken.json": TOOLS.slice(0, -3), "tools.toml": '[tools.Look]\ncommand = ["ls"]\n' };
  const reasons = { "broken.json": /broken\.json cannot be read: .*(line|column|EOF)/, "tools.toml": /-t tools\.toml/ };
  for (const [name, text] of Object.entries(files)) {
    await drop(page, [{ name, bytes: Buffer.from(text) }]);
    await page.getByRole("alert").filter({ hasText: name }).waitFor();
    assert.match(await page.getByRole("alert").textContent(), reasons[name]);
    assert.equal(await page.inputValue("#reply"), REPLY);
    assert.equal(await page.inputValue("#definitions"), "");
  }
  // An edit that the page has not shown yet is not lost, nor is the error.
  await page.fill("#reply", `${REPLY}More.`);
  await drop(page, [{ name: "tools.toml", bytes: Buffer.from("") }]);
  await page.getByRole("alert").filter({ hasText: "tools.toml" }).waitFor();
  await page.waitForTimeout(300);
  assert.ok(await page.getByRole("alert").isVisible());
  assert.match(await page.locator("#transcript").textContent(), /More\.$/);
  // A reply may begin like JSON, and quote a table. A call in another format may be cut off.
  const begun = '{"name": "Look", "parameters": {"at": "Par';
  for (const [name, text] of [["a", '{"a": 1'], ["b.txt", `[tools.Look]\n${REPLY}`], ["c.txt", begun], ["d.json", `{"tools": 1}\n${REPLY}`], ["e.md", "[tools.Look]\n"]]) {
    await drop(page, [{ name, bytes: Buffer.from(text) }]);
    await page.waitForFunction((it) => document.getElementById("reply").value === it, text);
  }
}));

test("what cannot be read is reported", () => withPage({}, async (page) => {
  await inspect(page, REPLY);
  await page.evaluate(() => { File.prototype.arrayBuffer = () => Promise.reject(new DOMException("a folder", "NotReadableError")); });
  await drop(page, [{ name: "folder", bytes: Buffer.from("") }]);
  await page.getByRole("alert").waitFor();
  assert.match(await page.getByRole("alert").textContent(), /folder cannot be read/);
  assert.equal(await page.inputValue("#reply"), REPLY);
}));

test("a log with other line ends", () => withPage({}, async (page) => {
  await drop(page, [{ name: "run.log", bytes: Buffer.from(log().toString("utf8").replaceAll("\n", "\r\n")) }]);
  await mode(page, "log");
  assert.match(await page.locator("#problems").textContent(), /CR LF/);
  assert.ok(await page.evaluate(() => calls.length > 0));
}));

test("details of a log on a phone, and its views", () => withPage({ size: SIZES.phone }, async (page) => {
  await drop(page, [{ name: "x", bytes: log() }]);
  await mode(page, "log");
  assert.equal(await page.evaluate(() => document.body.dataset.view), "transcript");
  await page.locator("#transcript .call").first().click();
  assert.equal(await page.locator("#details h2").isVisible(), true);
  await page.click("#tab-input");
  assert.equal(await page.locator("#details").isVisible(), false);
}));

test("a wider window shows the first view", () => withPage({ size: SIZES.phone }, async (page) => {
  await inspect(page, REPLY);
  await page.click("#tab-transcript");
  await page.setViewportSize(SIZES.desktop);
  await page.waitForFunction(() => document.body.dataset.view === "calls");
  assert.equal(await page.locator("#timeline").isVisible(), false);
  assert.equal(await page.locator("#calls").isVisible(), true);
}));

test("the search opens a view that has it", () => withPage({}, async (page) => {
  await inspect(page, REPLY);
  await page.click("#tab-calls");
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.id), "search");
  assert.equal(await page.locator("#graph").isVisible(), true);
}));

test("the chosen tab is in sight", () => withPage({ size: SIZES.phone }, async (page) => {
  await inspect(page, REPLY, TOOLS);
  await page.evaluate(() => view("grammar"));
  // It may scroll there.
  await page.waitForFunction((width) => {
    const { left, right } = document.getElementById("tab-grammar").getBoundingClientRect();
    return left >= 0 && right <= width;
  }, SIZES.phone.width);
}));

test("diagnostics at the end of the reply have a place", () => withPage({}, async (page) => {
  await inspect(page, "!!!GADGET_START:Look:a\n!!!ARG:at\nhere", TOOLS);
  await page.click("#tab-diagnostics");
  const count = await page.locator("#diagnostics .diagnostic").count();
  assert.ok(count > 0);
  assert.equal(await page.locator("#transcript .flag").count(), count);
  for (let at = 0; at < count; at += 1) {
    const message = await page.locator(".diagnostic .message").nth(at).textContent();
    await page.locator(".diagnostic button").nth(at).click();
    assert.ok((await page.locator("#interpretation").textContent()).includes(message), message);
    assert.equal(await page.evaluate(() => document.activeElement.id), "transcript");
  }
}));

test("values are named, and those that are missing are no values", () => withPage({}, async (page) => {
  await inspect(page, REPLY, TOOLS);
  await page.click("#tab-calls");
  assert.equal(await page.getByRole("button", { name: "show in the reply: at" }).count(), 1);
  assert.match(await page.locator(".value-of").textContent(), /no value, because the call is not valid/);
  assert.equal(await page.locator(".value-of .json").count(), 0);
  await page.getByRole("button", { name: "show in the reply: at" }).click();
  assert.match(await page.locator("#interpretation .spoken").textContent(), /^here/);
  const [value, lineEnd] = await page.evaluate(() => [getComputedStyle(document.querySelector("#transcript .value")).textDecorationLine, getComputedStyle(document.querySelector("#transcript .line_end"), "::before").content]);
  assert.equal(value, "underline");
  assert.match(lineEnd, /↵/);
}));

test("without calls, the words are those of a reply", () => withPage({}, async (page) => {
  await inspect(page, "Hello.");
  await page.click("#tab-graph");
  assert.equal(await page.locator("#details").textContent(), "This reply has no calls.");
}));

test("a browser without WebAssembly", () => withPage({ without: "WebAssembly" }, async (page) => {
  assert.match(await page.getByRole("alert").textContent(), /needs WebAssembly/);
}));
