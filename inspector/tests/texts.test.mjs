// Hostile and large texts, from a person, a file, a link and a log: all of them are texts.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { drop, inspect, isShown, LOGS, PAGE, SIZES, violations, withPage } from "./browser.mjs";

const HOSTILE = [
  "</script><script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "\u202eevil\u2066 \u200b\ufeff",
  "a\0b\u0007\u001b[31m",
  "!!!GADGET_START:<img src=x onerror=alert(1)>:<b>\n!!!ARG:__proto__/constructor\n</pre><script>alert(1)</script>\n!!!GADGET_END\n",
  "\ud83d lone surrogate",
  "@SCRIPT@ @MODULE@ $& $1 {{x}} javascript:alert(1)",
];
const call = (number) => `Text ${number} of the reply, which goes on for a while.\n!!!GADGET_START:Look:l${number}\n!!!ARG:at\nvalue ${number}\n!!!GADGET_END\n`;

/** What the page shows of the reply, with the signs of hidden characters. */
const shown = (page) => page.evaluate(() => [...document.querySelectorAll("#transcript .piece-of-text")].map(({ textContent }) => textContent).join(""));

for (const [at, text] of HOSTILE.entries()) {
  test(`hostile text ${at}`, () => withPage({}, async (page) => {
    await inspect(page, text, JSON.stringify([{ name: "Look", description: text, parameters: { type: "object", properties: { at: { description: text } } } }]));
    assert.equal(await shown(page), await page.evaluate((it) => seen(new TextDecoder("utf-8", { ignoreBOM: true }).decode(new TextEncoder().encode(it))), text));
    for (const tab of await page.locator("[role=tab]:visible").all()) {
      await tab.click();
      assert.equal(await page.locator("main img, main script, main b:not([class]):not(li > b, #about b)").count(), 0);
    }
  }));
}

test("bytes that are not UTF-8, and line ends, of a dropped file", () => withPage({}, async (page) => {
  const bytes = Buffer.concat([Buffer.from("a"), Buffer.from([0xff, 0xc3, 0x28]), Buffer.from("b\r\n!!!GADGET_START:Look\r\n!!!GADGET_END\r\n")]);
  await drop(page, [{ name: "reply.txt", bytes }]);
  await page.waitForFunction(() => document.getElementById("meta").textContent.startsWith("1 call"));
  assert.match(await page.locator("#reply-note").textContent(), new RegExp(`^${bytes.length} bytes`));
  await page.click("#tab-diagnostics");
  assert.match(await page.locator("#diagnostics").textContent(), /not_utf8/);
  assert.equal(await shown(page), "a\ufffd\ufffd(b\r\n!!!GADGET_START:Look\r\n!!!GADGET_END\r\n");
  // A link keeps the bytes.
  await page.waitForFunction(() => state.prefix.length > 0);
  await page.reload();
  await isShown(page);
  assert.match(await page.locator("#reply-note").textContent(), new RegExp(`^${bytes.length} bytes`));
}));

test("files of tools and replies, dropped and opened", () => withPage({}, async (page) => {
  const tools = Buffer.from('[{"name": "Look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}]');
  await drop(page, [{ name: "tools.json", bytes: tools }, { name: "reply", bytes: Buffer.from(call(1)) }]);
  await page.waitForFunction(() => document.getElementById("meta").textContent.includes("1 tool "));
  assert.match(await page.locator("#meta").textContent(), /^1 call · 0 errors/);
  await page.click("#tab-input");
  const chooser = page.waitForEvent("filechooser");
  await page.click("#open");
  await (await chooser).setFiles({ name: "other.txt", mimeType: "text/plain", buffer: Buffer.from(call(1) + call(2)) });
  await page.waitForFunction(() => document.getElementById("meta").textContent.startsWith("2 calls"));
}));

test("a reply of a megabyte", () => withPage({}, async (page) => {
  const parts = [];
  for (let length = 0, number = 0; length < 1_000_000; number += 1) {
    parts.push(call(number) + "x".repeat(900));
    length += parts.at(-1).length;
  }
  await page.setInputFiles("#file", { name: "long.txt", mimeType: "text/plain", buffer: Buffer.from(parts.join("\n")) });
  await page.waitForFunction((words) => document.getElementById("meta").textContent.startsWith(words), `${parts.length.toLocaleString("en")} calls`);
  await page.click("#tab-replay");
  await page.fill("#chunk-size", "100000");
  await page.locator("#replay-at").fill("5");
  assert.match(await page.locator("#replay-note").textContent(), /^5 of 11 chunks, 500,000 of/);
}));

test("a link holds the input", () => withPage({}, async (page) => {
  await page.click("[data-sample=invalid]");
  await page.click("#tab-input");
  await page.uncheck("[name=detect]");
  await page.selectOption("[name=stop]", "length");
  await page.waitForFunction(() => state.prefix.length > 0);
  await page.waitForTimeout(400);
  await page.click("#tab-graph");
  await page.evaluate(() => choose(2, "key"));
  await page.click("#copy-link");
  await page.getByText("copied").waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(link.startsWith(`${PAGE}#`) && link.endsWith("/graph/call-3"), link.slice(-40));
  const input = [await page.inputValue("#reply"), await page.inputValue("#definitions")];
  await withPage({ fragment: link.slice(PAGE.length) }, async (other) => {
    assert.deepEqual([await other.inputValue("#reply"), await other.inputValue("#definitions")], input);
    assert.equal(await other.inputValue("[name=stop]"), "length");
    assert.equal(await other.isChecked("[name=detect]"), false);
    assert.equal(await other.evaluate(() => state.chosen), 2);
    assert.equal(await other.locator("#graph").isVisible(), true);
  });
  await withPage({ fragment: "#AAAAAAAAAAAA/calls" }, async (other) => {
    assert.match(await other.getByRole("alert").textContent(), /damaged/);
  });
}));

for (const name of readdirSync(LOGS).filter((file) => file.endsWith(".log"))) {
  test(`the log ${name} looks like the page of \`show\``, () => withPage({}, async (page) => {
    await drop(page, [{ name, bytes: readFileSync(`${LOGS}/${name}`) }]);
    await page.waitForFunction(() => document.body.dataset.mode === "log");
    await page.click("#tab-timeline");
    assert.match(await page.locator("#title").textContent(), /^Run of 20/);
    const calls = await page.evaluate(() => trace.calls.length);
    assert.equal(await page.locator("#rows .row").count() > 0, calls > 0);
    assert.deepEqual(await violations(page), []);
    if (calls === 0) return;
    await page.locator("#rows .row").first().click();
    assert.equal(await page.locator("#details h2").isVisible(), true);
    await page.locator("#transcript .call").last().click();
    assert.equal(await page.locator("#transcript [aria-current]").count(), 1);
    assert.equal(await page.evaluate(() => `${state.chosen}`), await page.locator("#transcript .call").last().getAttribute("data-call"));
    for (const id of ["time-in", "time-out", "time-all"]) await page.click(`#${id}`);
    await page.screenshot({ path: `pictures/log-${name}.png` });
  }));
}

test("`plaincall inspect` writes a page with its input", async () => {
  const folder = mkdtempSync(join(tmpdir(), "inspect-"));
  const page = async (input, ...options) => {
    const file = join(folder, "page.html");
    execFileSync(process.env.PLAINCALL, ["inspect", "-", "--page", fileURLToPath(PAGE), "--html", file, ...options], { input });
    return pathToFileURL(file).href;
  };
  try {
    const reply = Buffer.concat([Buffer.from(HOSTILE.join("\n")), Buffer.from([0xff])]);
    await withPage({ address: await page(reply, "--dialect", "block") }, async (shownPage) => {
      assert.match(await shownPage.locator("#reply-note").textContent(), new RegExp(`^${reply.length} bytes`));
      assert.equal(await shownPage.inputValue("[name=syntax]"), "block");
      assert.equal(await shownPage.locator("#diagnostics").isVisible(), true);
    });
    await withPage({ address: await page(readFileSync(`${LOGS}/everything.log`)) }, async (shownPage) => {
      assert.equal(await shownPage.evaluate(() => document.body.dataset.mode), "log");
      assert.equal(await shownPage.locator("#timeline").isVisible(), true);
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a log on a phone", () => withPage({ size: SIZES.phone }, async (page) => {
  await drop(page, [{ name: "x", bytes: readFileSync(`${LOGS}/everything.log`) }]);
  await page.waitForFunction(() => document.body.dataset.mode === "log");
  await page.click("#copy-link");
  await page.getByText("copied").waitFor();
  assert.ok((await page.locator("#title").boundingBox()).width > 150);
  for (const view of ["transcript", "timeline", "graph"]) {
    await page.click(`#tab-${view}`);
    assert.deepEqual(await violations(page), [], view);
    await page.screenshot({ path: `pictures/log-phone-${view}.png` });
  }
}));
