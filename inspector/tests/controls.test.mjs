// Every control does what it says, with a pointer and with the keyboard.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect, withPage } from "./browser.mjs";

const call = (start, name, more = "") => `${start}${name}\n!!!ARG:at\n1\n${more}!!!GADGET_END\n`;
const KEYED = "!!!GADGET_STARTk7:Look:a\n!!!ARGk7:at\nx\n!!!GADGET_ENDk7\n";
const meta = (page) => page.locator("#meta").textContent();
/** Waits until the calls have these kinds. The page reads them when it shows them. */
async function haveKinds(page, kinds) {
  await page.click("#tab-calls");
  await page.waitForFunction((wanted) => calls.map(kind).join() === wanted, kinds);
  await page.click("#tab-input");
}
const chosen = (page) => page.evaluate(() => state.chosen);

test("settings decide how the reply is read", () => withPage({}, async (page) => {
  await inspect(page, call("!!!GADGET_START:", "Look"));
  assert.match(await meta(page), /^1 call · 0 errors · 0 warnings · no tools · block syntax$/);
  await page.uncheck("[name=detect]");
  await page.selectOption("[name=syntax]", "emoji");
  await page.waitForFunction(() => document.getElementById("meta").textContent.startsWith("0 calls"));
  await page.selectOption("[name=syntax]", "");
  for (const [name, marker] of [["start_prefix", "@@"], ["arg_prefix", "--arg "], ["end_prefix", "@end"]]) await page.fill(`[name=${name}]`, marker);
  await page.fill("#reply", "@@Look\n--arg at\n1\n@end\n");
  await page.waitForFunction(() => document.getElementById("meta").textContent.startsWith("1 call"));
  for (const name of ["start_prefix", "arg_prefix", "end_prefix"]) await page.fill(`[name=${name}]`, "");
  await page.fill("[name=reasoning_open]", "<r>");
  await page.fill("[name=reasoning_close]", "</r>");
  await page.fill("#reply", `<r>hm</r>${call("!!!GADGET_START:", "Look")}`);
  await page.waitForFunction(() => document.querySelector("#transcript .reasoning") !== null);
  await page.fill("[name=reasoning_open]", "");
  await page.waitForFunction(() => !document.getElementById("problems").hidden);
  await page.fill("[name=reasoning_close]", "");
  await page.check("[name=no_reasoning]");
  await page.fill("#reply", `<think>hm</think>\n${call("!!!GADGET_START:", "Look")}`);
  await page.waitForFunction(() => document.querySelector("#transcript .text") !== null && document.querySelector("#transcript .reasoning") === null);
  await page.uncheck("[name=no_reasoning]");
  await page.waitForFunction(() => document.querySelector("#transcript .reasoning") !== null);
  await page.fill("#reply", "hm</think>\n");
  await page.check("[name=in_reasoning]");
  await page.waitForFunction(() => document.querySelector("#transcript .bytes").classList.contains("reasoning"));
  await page.uncheck("[name=in_reasoning]");
  await page.fill("#reply", "!!!GADGET_START:Look\n!!!ARG:at\na !!!ARG:b\n2\n!!!GADGET_END\n");
  await page.check("[name=markers]");
  await page.waitForFunction(() => document.querySelectorAll("#transcript .argument").length === 2);
  await page.uncheck("[name=markers]");
  await page.fill("#reply", "🛠️[look a /]\n");
  await page.waitForFunction(() => /^1 call · 0 errors · 1 warning /.test(document.getElementById("meta").textContent));
  await page.check("[name=self_closing]");
  await page.waitForFunction(() => /^1 call · 0 errors · 0 warnings /.test(document.getElementById("meta").textContent));
  await page.check("[name=strict]");
  await page.fill("#reply", "🛠[look a]🛠️[/end]\n");
  await page.waitForFunction(() => document.getElementById("meta").textContent.startsWith("0 calls"));
  await page.uncheck("[name=strict]");
  await page.waitForFunction(() => document.getElementById("meta").textContent.startsWith("1 call"));
  await page.fill("#reply", `!!!GADGET_START:Look\n!!!ARG:at\n1\n${call("!!!GADGET_START:", "Write")}`);
  await haveKinds(page, "rejected,rejected");
  await page.selectOption("[name=unclosed]", "run");
  await haveKinds(page, "ready,ready");
  await page.selectOption("[name=stop]", "natural");
  await page.fill("#reply", "!!!GADGET_START:Look\n!!!ARG:at\n1\n");
  await haveKinds(page, "ready");
  await page.selectOption("[name=stop]", "length");
  await haveKinds(page, "rejected");
}));

test("keys, escapes and begun reasoning are detected", () => withPage({}, async (page) => {
  await inspect(page, "hm</think>\n!!!GADGET_START:Look\n!!!GADGET_END\n");
  assert.match(await page.locator("#reply-note").textContent(), /starts inside reasoning/);
  assert.equal(await page.locator("#transcript .reasoning").count(), 1);
  await inspect(page, KEYED);
  assert.match(await page.locator("#reply-note").textContent(), /the key `k7`/);
  assert.equal(await page.inputValue("[name=key]"), "k7");
  await inspect(page, "!!!GADGET_STARTS:Look\n!!!GADGET_END\n");
  assert.equal(await page.inputValue("[name=key]"), "");
  await inspect(page, "!!!GADGET_START:Look\n!!!ARG:at\n!!!GADGET_EN\\D\n!!!GADGET_END\n");
  assert.match(await page.locator("#reply-note").textContent(), /escaped marker/);
  assert.equal(await page.isChecked("[name=escaped]"), true);
  assert.equal(await page.isDisabled("[name=escaped]"), true);
}));

test("other markers are offered, and a person decides", () => withPage({}, async (page) => {
  const other = call("!!!GADGET_START:", "Look").replaceAll("!!!", "@@@");
  await inspect(page, other);
  assert.match(await meta(page), /^0 calls/);
  assert.match(await page.locator("#offer").textContent(), /@@@GADGET_START:/);
  await page.click("#tab-diagnostics");
  assert.match(await page.locator("#diagnostics").textContent(), /^No call was found\..*Use the offer above the tabs\.$/);
  await page.click("#offer-use");
  await page.waitForFunction(() => document.getElementById("meta").textContent.startsWith("1 call · 0 errors"));
  assert.equal(await page.isChecked("[name=detect]"), false);
  assert.equal(await page.inputValue("[name=arg_prefix]"), "@@@ARG:");
  assert.equal(await page.isVisible("#offer"), false);
  assert.equal(await page.evaluate(() => document.activeElement.id), "tab-calls");
  await page.click("#tab-input");
  // What was detected stays, and another beginning before it does not matter.
  await page.check("[name=detect]");
  await inspect(page, `--GADGET_START:\nI think.\n</think>\n${other}`);
  await page.click("#offer-use");
  await page.waitForFunction(() => document.getElementById("meta").textContent.startsWith("1 call · 0 errors · 0 warnings"));
  assert.equal(await page.isChecked("[name=in_reasoning]"), true);
  await page.click("#tab-input");
  // Words, markers that close no call, and texts with a known marker are no markers.
  await page.check("[name=detect]");
  for (const text of ["The GADGET_START: of a call.\nGADGET_END\n", "@@@GADGET_START:Look\n@@@ARG:at\n1\n", other + call("!!!GADGET_START:", "Look")]) {
    await inspect(page, text);
    assert.equal(await page.isVisible("#offer"), false, text);
  }
}));

test("the parts of the reply with the keyboard", () => withPage({}, async (page) => {
  await page.click("[data-sample=invalid]");
  await page.focus("#transcript");
  assert.equal(await page.getByRole("group", { name: "Reply", exact: true }).count(), 1);
  const words = () => page.locator("#interpretation").textContent();
  await page.keyboard.press("ArrowRight");
  assert.match(await words(), /^text .*shown to the user.*line 1, bytes 0 to/s);
  await page.keyboard.press("ArrowRight");
  assert.match(await words(), /^header of call 1, ReadStation oslo: a call begins/);
  assert.equal(await chosen(page), 0);
  for (let step = 0; step < 40 && !/error/.test(await words()); step += 1) await page.keyboard.press("ArrowRight");
  assert.match(await words(), /error: .*expected an integer.*\(spec\//s);
  await page.keyboard.press("ArrowLeft");
  assert.doesNotMatch(await words(), /error/);
  await page.click("#transcript .flag.error");
  assert.equal(await page.locator("#tab-diagnostics").getAttribute("aria-selected"), "true");
  assert.equal(await page.evaluate(() => document.activeElement.closest(".diagnostic") !== null), true);
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("#transcript .current.error").count(), 1);
}));

test("views, calls and graph with the keyboard alone", () => withPage({}, async (page) => {
  await page.focus("[data-sample=invalid]");
  await page.keyboard.press("Enter");
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("3");
  assert.equal(await page.locator("#calls").isVisible(), true);
  await page.focus("#tab-calls");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.evaluate(() => document.activeElement.id), "tab-graph");
  assert.equal(await page.locator("#graph").isVisible(), true);
  await page.focus("#plane");
  await page.keyboard.press("ArrowRight");
  assert.equal(await chosen(page), 0);
  assert.equal(await page.locator("#graph [role=status]").textContent(), "ReadStation oslo, may run");
  await page.keyboard.press("ArrowRight");
  assert.equal(await chosen(page), 2);
  assert.match(await page.locator("#details").textContent(), /skipped.*because|Why it was skipped/s);
  for (const key of ["+", "-", "0"]) await page.keyboard.press(key);
  for (const id of ["graph-in", "graph-out", "graph-all"]) await page.click(`#${id}`);
  await page.keyboard.press("Escape");
  assert.equal(await chosen(page), null);
  await page.keyboard.press("j");
  assert.equal(await chosen(page), 0);
  await page.keyboard.press("/");
  await page.keyboard.type("bergen");
  await page.getByText("2 of 3 calls").waitFor();
  await page.fill("#search", "");
  await page.click(".chip.ready");
  await page.getByText("1 of 3 calls").waitFor();
}));

test("the tree leads to the reply, and every text can be copied", () => withPage({}, async (page) => {
  await page.click("[data-sample=invalid]");
  await page.click("#tab-calls");
  await page.locator(".call-node").nth(2).getByText("line 15").click();
  assert.match(await page.locator("#transcript .current").textContent(), /WriteSummary/);
  await page.getByText("show in the reply").nth(1).click();
  assert.equal((await page.locator("#transcript .current").textContent()).trim(), "07");
  assert.match(await page.locator(".call-node").nth(2).textContent(), /decimals.*a string or an integer.*written1value1because.*exactly/s);
  for (const view of ["json", "prompt", "repair", "grammar"]) {
    await page.click(`#tab-${view}`);
    await page.locator(`#${view} .copy`).click();
    await page.locator(`#${view}`).getByText("Copied").waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(copied, await page.locator(`#${view} pre`).textContent(), view);
  }
  const found = JSON.parse(await page.locator("#json pre").textContent());
  assert.deepEqual(found.map(({ id }) => id), ["oslo", "summary"]);
  assert.equal(found[0].function.arguments, '{"station":"Oslo","days":7}');
  const first = await page.locator("#grammar pre").textContent();
  const engines = await page.locator("#engine option").allTextContents();
  assert.ok(engines.includes("llama.cpp"));
  await page.selectOption("#engine", engines.at(-1));
  await page.selectOption("#engine", "llama.cpp");
  assert.match(await page.locator("#grammar pre").textContent(), /root ::=/);
  assert.ok(first.length > 100);
  await page.click("#tab-input");
  await page.click("#clear");
  assert.equal(await page.inputValue("#reply"), "");
  assert.equal(await page.locator("#tab-calls").isVisible(), false);
}));

test("mistakes are explained", () => withPage({}, async (page) => {
  await page.click("[data-sample=invalid]");
  await page.click("#tab-input");
  await page.fill("#definitions", "[{]");
  await page.getByRole("alert").waitFor();
  assert.match(await page.getByRole("alert").textContent(), /line 1|column/);
  await page.fill("#definitions", "");
  await page.waitForFunction(() => document.getElementById("problems").hidden);
  for (const view of ["prompt", "repair", "grammar"]) {
    await page.click(`#tab-${view}`);
    assert.match(await page.locator(`#${view}`).textContent(), /paste the definitions of the tools/);
  }
}));
