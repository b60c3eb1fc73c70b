// Links: what they hold, and what happens to those that are damaged.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { deflateRawSync } from "node:zlib";
import { drop, inspect, PAGE, WEBSITE, withPage } from "./browser.mjs";

const REPLY = "!!!GADGET_START:Look\n!!!ARG:at\n1\n!!!GADGET_END\n";
const pack = (bytes) => deflateRawSync(bytes).toString("base64url");
const link = (stored) => `#${pack(JSON.stringify(stored))}/calls`;
const problems = (page) => page.locator("#problems").textContent();
const hash = (page) => page.evaluate(() => location.hash);

test("the end of a reply and its reasoning stay while the dialect is detected", () => withPage({}, async (page) => {
  await inspect(page, "!!!GADGET_START:Look\n!!!ARG:at\n1\n");
  await page.selectOption("[name=stop]", "length");
  await page.selectOption("[name=unclosed]", "run");
  await page.check("[name=no_reasoning]");
  assert.equal(await page.isDisabled("[name=key]"), true);
  const kept = async (other) => {
    assert.deepEqual([await other.inputValue("[name=stop]"), await other.inputValue("[name=unclosed]")], ["length", "run"]);
    assert.deepEqual([await other.isChecked("[name=no_reasoning]"), await other.isChecked("[name=detect]")], [true, true]);
  };
  await page.click("#tab-calls");
  await page.waitForFunction(() => calls.length === 1 && kind(calls[0]) === "rejected");
  await page.click("#tab-input");
  await drop(page, [{ name: "x", bytes: Buffer.from('[{"name": "Look", "parameters": {"type": "object", "properties": {"at": {}}}}]') }]);
  await page.waitForFunction(() => document.getElementById("meta").textContent.includes("1 tool "));
  await kept(page);
  await page.focus("#reply");
  await page.keyboard.press("Control+a");
  await page.evaluate(() => {
    const data = new DataTransfer();
    data.setData("text/plain", "hm</think>\r\n!!!GADGET_START:Look\r\n");
    document.getElementById("reply").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, cancelable: true }));
  });
  assert.match(await page.locator("#reply-note").textContent(), /CR LF/);
  assert.doesNotMatch(await page.locator("#reply-note").textContent(), /inside reasoning/);
  await kept(page);
  await page.waitForTimeout(300);
  await withPage({ fragment: await hash(page) }, kept);
}));

test("the website links rules to the specification", async () => {
  for (const [address, link] of [[PAGE, null], [WEBSITE, "spec/common.html#111-with-the-definitions-of-the-tools"]]) {
    await withPage({ address }, async (page) => {
      await page.click("[data-sample=invalid]");
      await page.click("#tab-diagnostics");
      const rule = page.locator("#diagnostics dd", { hasText: /^spec\/common.md 11.1$/ });
      assert.equal(await rule.evaluate((it) => it.querySelector("a")?.getAttribute("href") ?? null), link);
      await page.locator("#transcript .piece-of-text.error").first().click();
      assert.equal(await page.locator("#interpretation a").count(), link === null ? 0 : 1);
    });
  }
});

test("a link of an earlier page", () => withPage({ fragment: link({ text: REPLY, settings: { dialect: { syntax: "block" }, no_reasoning: false, stop: "natural", unclosed: "reject" } }) }, async (page) => {
  assert.equal(await page.isChecked("[name=detect]"), false);
  assert.match(await page.locator("#meta").textContent(), /^1 call/);
}));

const WHOLE = link({ text: REPLY });
for (const [name, fragment] of Object.entries({
  "its end is missing": WHOLE.slice(0, -12),
  "its middle is missing": WHOLE.slice(0, 30) + WHOLE.slice(40),
  "other content": link({ text: 7 }),
  "an unknown member": link({ text: "", more: 1 }),
  "other settings": link({ text: "", settings: { dialect: { key: 3 } } }),
  "other bytes": link({ bytes: [1, 256] }),
  "no object": link([1]),
  "too much": `#${pack(Buffer.alloc(17 << 20, 32))}/calls`,
})) {
  test(`a damaged link: ${name}`, () => withPage({ fragment }, async (page) => {
    assert.match(await problems(page), /^This link is damaged/);
    if (name === "too much") assert.match(await problems(page), /16,777,216 bytes/);
    await page.waitForTimeout(100);
    assert.equal(await hash(page), fragment);
    // The address is that of the next input.
    await page.click("[data-sample=invalid]");
    await page.waitForFunction((old) => location.hash !== old, fragment);
    assert.equal(await page.locator("#problems").isVisible(), false);
  }));
}

test("a page with an input, and links to it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "given-"));
  const file = join(folder, "page.html");
  const element = '<script type="application/json" id="given">null';
  const page = readFileSync(fileURLToPath(PAGE), "utf8");
  assert.ok(page.includes(element));
  writeFileSync(file, page.replace(element, element.replace("null", JSON.stringify({ text: REPLY, settings: { dialect: null, stop: "length" } }).replaceAll("<", "\\u003c"))));
  const address = pathToFileURL(file).href;
  try {
    await withPage({ address, fragment: WHOLE.slice(0, -12) }, async (shown) => {
      assert.match(await problems(shown), /damaged/);
      assert.equal(await shown.inputValue("#reply"), REPLY);
      assert.equal(await shown.inputValue("[name=stop]"), "length");
    });
    await withPage({ address }, async (shown) => {
      await inspect(shown, "Other.");
      // Another view in the address is no other input.
      await shown.evaluate(() => { location.hash = "#graph"; });
      await shown.locator("#graph").waitFor();
      assert.equal(await shown.inputValue("#reply"), "Other.");
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
