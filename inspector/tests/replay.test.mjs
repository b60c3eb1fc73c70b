// The reply in chunks: what is known at each moment, what is held back, and that splits make no difference.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect, withPage } from "./browser.mjs";

const REPLY = "Hello.\n!!!GADGET_START:Look\n!!!ARG:at\nhere\n!!!GADGET_END\nBye.";
const note = (page) => page.locator("#replay-note").textContent();

test("chunks of any size", () => withPage({}, async (page) => {
  await inspect(page, REPLY);
  await page.click("#tab-replay");
  for (const size of [1, 7, 1000]) {
    await page.fill("#chunk-size", String(size));
    const chunks = Math.ceil(REPLY.length / size);
    assert.equal(await page.getAttribute("#replay-at", "max"), String(chunks + 1));
    for (let at = 0; at <= chunks + 1; at += 1) {
      await page.locator("#replay-at").fill(String(at));
      // Every byte is known, held back or has not arrived.
      const text = await page.evaluate(() => [...document.getElementById("replay-text").childNodes].filter((node) => node.className !== "now").map((node) => node.textContent).join(""));
      assert.equal(text, REPLY, `${size}, ${at}`);
    }
    assert.match(await note(page), /nothing is held back; the text is complete/);
    assert.match(await page.locator("#replay-calls").textContent(), /Look.*complete.*at here/s);
  }
}));

test("what is held back", () => withPage({}, async (page) => {
  await inspect(page, REPLY);
  await page.click("#tab-replay");
  await page.fill("#chunk-size", "1");
  await page.locator("#replay-at").fill("12");
  assert.match(await note(page), /^12 of 61 chunks, 12 of 61 bytes; 5 bytes held back/);
  assert.equal(await page.locator("#replay-text .held-back").textContent(), "!!!GA");
  await page.click("#replay-next");
  assert.match(await note(page), /^13 of 61/);
  await page.click("#replay-back");
  await page.focus("#replay-at");
  await page.keyboard.press("ArrowLeft");
  assert.match(await note(page), /^11 of 61/);
  await page.fill("#chunk-size", "20");
  await page.locator("#replay-at").fill("0");
  await page.click("#replay-play");
  assert.equal(await page.getAttribute("#replay-play", "aria-pressed"), "true");
  await page.waitForFunction(() => document.getElementById("replay-play").textContent === "Play");
  assert.match(await note(page), /the text is complete/);
}));

test("every split", () => withPage({}, async (page) => {
  await inspect(page, REPLY);
  await page.click("#tab-replay");
  await page.click("#splits");
  await page.waitForFunction(() => document.getElementById("splits-note").textContent.startsWith("✓"));
  // Chunks of every size, every place between two bytes, and every pair of them.
  const places = REPLY.length - 1;
  const splits = (places + places + (places * (places - 1)) / 2).toLocaleString("en");
  assert.equal(await page.locator("#splits-note").textContent(), `✓ The result is the same for all chunk boundaries that were tested: ${splits} splits (chunks of 1 to ${places} bytes; every boundary; every pair of boundaries).`);
}));

test("splits of a long reply are samples, can be stopped, and are described", () => withPage({}, async (page) => {
  // The square of this length needs more than 32 bits.
  await inspect(page, "x".repeat(65_600));
  await page.click("#tab-replay");
  // All splits of this reply are tried soon, so that a later click could miss them.
  await page.evaluate(() => {
    document.getElementById("splits").click();
    document.getElementById("splits-stop").click();
  });
  await page.waitForFunction(() => document.getElementById("splits-note").textContent.startsWith("Stopped after"));
  assert.match(await page.locator("#splits-note").textContent(), /^Stopped after \d+ of 3,923 splits: no difference so far\.$/);
  assert.equal(await page.isVisible("#splits-stop"), false);
  await page.click("#splits");
  await page.waitForFunction(() => document.getElementById("splits-note").textContent.startsWith("✓"));
  assert.match(await page.locator("#splits-note").textContent(), /3,923 splits \(chunks of 1 to 64 bytes; every 17th boundary\)/);
  assert.equal(await page.isVisible("#splits-stop"), false);
}));

test("chunks inside characters, and sizes without end", () => withPage({}, async (page) => {
  await inspect(page, "a€b");
  await page.click("#tab-replay");
  await page.fill("#chunk-size", "999999999999");
  assert.equal(await page.getAttribute("#chunk-size", "max"), "5");
  assert.match(await note(page), /^0 of 1 chunk,/);
  for (const [typed, used] of [["0", "1"], ["-3", "1"], ["2.7", "2"], ["7", "5"], ["", "1"]]) {
    await page.fill("#chunk-size", typed);
    await page.locator("#chunk-size").blur();
    assert.equal(await page.inputValue("#chunk-size"), used, typed);
  }
  await page.locator("#replay-at").fill("3");
  assert.equal(await page.locator("#replay-text .held-back").textContent(), "\\xe2\\x82");
  assert.equal(await page.locator("#replay-text .not-arrived").textContent(), "\\xacb");
  // Only the end of a long reply is shown, from a whole character.
  await inspect(page, "€".repeat(5000));
  await page.click("#tab-replay");
  await page.fill("#chunk-size", "9001");
  await page.locator("#replay-at").fill("1");
  const text = await page.locator("#replay-text").textContent();
  assert.match(text, /^…€+\\xe2\\x82\\xac€+$/);
}));

test("a screen reader hears the end of the replay", () => withPage({}, async (page) => {
  await inspect(page, REPLY);
  await page.click("#tab-replay");
  await page.click("#replay-play");
  assert.equal(await page.getAttribute("#replay-note", "aria-live"), "off");
  await page.waitForFunction(() => document.getElementById("replay-play").textContent === "Play");
  assert.equal(await page.getAttribute("#replay-note", "aria-live"), "polite");
  assert.match(await note(page), /the text is complete/);
}));
