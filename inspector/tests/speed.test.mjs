// How soon the page shows an edit. The figures are printed; the limits leave room for slow machines.

import assert from "node:assert/strict";
import { test } from "node:test";
import { withPage } from "./browser.mjs";

const TOOLS = '[{"name": "Look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}}]';
const call = (number) => `Text ${number} of the reply, which goes on for a while.\n!!!GADGET_START:Look:l${number}\n!!!ARG:at\nvalue ${number}\n!!!GADGET_END\n`;
const EDITS = 3;

/** A reply of so many bytes whose calls have so many bytes of text between them. */
function reply(size, between) {
  let text = "";
  for (let number = 0; text.length < size; number += 1) text += `${call(number)}${"word ".repeat(between / 5)}\n`;
  return text;
}

/** Types some keys into the reply. Returns for each how long it took until the page showed it, and for how long the page did nothing else. */
async function edits(page) {
  const found = [];
  await page.evaluate(() => {
    const area = document.getElementById("reply");
    area.focus();
    area.setSelectionRange(0, 0);
    globalThis.shows = (key) => new Promise((resolve) => {
      area.addEventListener("input", () => {
        const begun = performance.now();
        const beats = new MessageChannel();
        let [last, longest, isOver] = [begun, 0, false];
        beats.port1.onmessage = () => {
          const now = performance.now();
          longest = Math.max(longest, now - last);
          last = now;
          if (!isOver) beats.port2.postMessage(null);
        };
        beats.port2.postMessage(null);
        const look = () => {
          if (!document.getElementById("transcript").textContent.startsWith(key)) return requestAnimationFrame(look);
          const took = performance.now() - begun;
          // The work behind the frame, such as the link, blocks the page too.
          return setTimeout(() => {
            isOver = true;
            resolve([took, longest]);
          }, 300);
        };
        requestAnimationFrame(look);
      }, { once: true });
    });
  });
  for (let number = 0; number < EDITS; number += 1) {
    // "j" is the next call, but not in a field.
    const key = "jkl"[number];
    await page.keyboard.press("Home");
    await page.evaluate((it) => { globalThis.edit = shows(it); }, key);
    await page.keyboard.type(key);
    found.push(await page.evaluate(() => edit));
  }
  return found;
}

const CASES = [
  { name: "10 kB, 10 calls", size: 10_000, between: 900 },
  { name: "10 kB, 64 calls", size: 10_000, between: 0 },
  { name: "1 MB, 1,000 calls", size: 1_000_000, between: 900 },
  { name: "1 MB, 7,000 calls", size: 1_000_000, between: 0 },
];

for (const { name, size, between } of CASES) {
  test(`an edit of a reply: ${name}`, () => withPage({}, async (page) => {
    await page.click("#tab-input");
    await page.fill("#definitions", TOOLS);
    await page.setInputFiles("#file", { name: "reply.txt", mimeType: "text/plain", buffer: Buffer.from(reply(size, between)) });
    await page.waitForFunction(() => document.body.dataset.mode === "reply");
    await page.click("#tab-input");
    const found = await edits(page);
    // For people: a busy machine delays them, so nothing fails by them.
    const [shown, blocked] = [0, 1].map((at) => Math.min(...found.map((times) => times[at])));
    const elements = await page.evaluate(() => document.querySelectorAll("#transcript *").length);
    console.log(`${name}: an edit is shown after ${Math.round(shown)} ms and blocks the page for ${Math.round(blocked)} ms; the reply has ${elements} elements`);
    assert.ok(elements < 2000, `${elements} elements`);
    // The calls are read when they are shown.
    assert.equal(await page.evaluate(() => calls.length), 0);
    await page.click("#tab-calls");
    const expected = await page.evaluate(() => Number(/^[\d,]+/.exec(document.getElementById("meta").textContent)[0].replaceAll(",", "")));
    // Only those near the sight have elements.
    assert.equal(await page.locator(".call-node").count(), Math.min(expected, 100));
    assert.equal(await page.evaluate(() => calls.length), expected);
  }));
}

test("replacing a long reply takes time in proportion to its length", () => withPage({}, async (page) => {
  const replaced = async (size) => {
    await page.setInputFiles("#file", { name: "reply.txt", mimeType: "text/plain", buffer: Buffer.from(reply(size, 0)) });
    await page.waitForFunction((least) => document.getElementById("reply").value.length >= least, size);
    await page.click("#tab-input");
    await page.focus("#reply");
    await page.keyboard.press("Control+A");
    const begun = performance.now();
    await page.keyboard.type("n");
    await page.waitForFunction(() => document.getElementById("transcript").textContent === "n");
    return performance.now() - begun;
  };
  const times = { 50_000: Infinity, 400_000: Infinity };
  for (let round = 0; round < 3; round += 1) {
    for (const size of [50_000, 400_000]) times[size] = Math.min(times[size], await replaced(size));
  }
  const ratio = times[400_000] / times[50_000];
  console.log(`400 kB are replaced after ${Math.round(times[400_000])} ms, ${ratio.toFixed(1)} times as long as 50 kB`);
  // Eight times the text. With the square of its length it would be 64 times.
  assert.ok(ratio < 24, JSON.stringify(times));
}));

test("a long reply gets its colours where it is looked at", () => withPage({}, async (page) => {
  await page.setInputFiles("#file", { name: "reply.txt", mimeType: "text/plain", buffer: Buffer.from(reply(200_000, 0)) });
  await page.waitForFunction(() => document.body.dataset.mode === "reply");
  const isMarked = (place) => page.waitForFunction((it) => {
    const box = document.getElementById("transcript").getBoundingClientRect();
    const element = document.elementFromPoint(box.left + 30, box.top + box.height * it);
    return Boolean(element?.closest(".piece-of-text"));
  }, place);
  await isMarked(0.2);
  const all = await page.evaluate(() => document.querySelectorAll("#transcript .piece-of-text").length);
  for (const share of [0.5, 1]) {
    await page.evaluate((it) => { const box = document.getElementById("transcript"); box.scrollTop = it * box.scrollHeight; }, share);
    await isMarked(0.5);
  }
  assert.ok(await page.evaluate(() => document.querySelectorAll("#transcript .piece-of-text").length) > all);
  // The text is whole, so that the browser finds words in it.
  assert.equal(await page.evaluate(() => document.getElementById("transcript").textContent), reply(200_000, 0));
  // A call far away is shown from its place.
  await page.click("#tab-calls");
  const last = await page.evaluate(() => calls.length);
  while (!(await page.locator(".call-node .id").last().textContent()).endsWith(`${last - 1}`)) {
    await page.evaluate(() => { const panel = document.getElementById("calls"); panel.scrollTop = panel.scrollHeight; });
  }
  await page.locator(".call-node summary").last().click();
  await page.locator(".call-node").last().getByRole("button", { name: /^line/ }).click();
  assert.match(await page.locator("#transcript .current").textContent(), /^!!!GADGET_START:Look:l\d+\n$/);
  const boxes = await page.evaluate(() => ["#transcript .current", "#transcript"].map((it) => document.querySelector(it).getBoundingClientRect().toJSON()));
  assert.ok(boxes[0].top >= boxes[1].top - 1 && boxes[0].bottom <= boxes[1].bottom + 1, JSON.stringify(boxes));
  assert.ok(await page.locator("#transcript .chosen").count() > 1);
}));

test("9,000 calls that are pasted are shown soon", () => withPage({}, async (page) => {
  const text = Array.from({ length: 9000 }, (_, number) => `!!!GADGET_START:Look:l${number}\n!!!ARG:at\nvalue ${number}\n!!!GADGET_END\n`).join("");
  await page.evaluate((it) => navigator.clipboard.writeText(it), text);
  const pasted = async (calls) => {
    const begun = performance.now();
    await page.keyboard.press("Control+V");
    await page.waitForFunction((it) => document.getElementById("meta").textContent.startsWith(`${it} calls`), calls);
    return Math.round(performance.now() - begun);
  };
  const anywhere = await pasted("9,000");
  await page.click("#tab-input");
  await page.click("#clear");
  const inField = await pasted("9,000");
  // At its end, after what is there.
  await page.keyboard.press("Control+End");
  await pasted("18,000");
  assert.equal(await page.inputValue("#reply"), text + text);
  console.log(`9,000 calls are shown ${anywhere} ms after they are pasted anywhere, and ${inField} ms in the field`);
}));
