// With forced colours, such as a contrast theme of Windows: what a colour says must be seen without it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { drop, LOGS, violations, withPage } from "./browser.mjs";

/** The elements that this style hides: those whose background is that of the page. */
const hidden = (page, selectors) => page.evaluate((all) => {
  const { backgroundColor } = getComputedStyle(document.documentElement.appendChild(Object.assign(document.createElement("i"), { style: "background: Canvas" })));
  return all.filter((selector) => {
    const [name, pseudo] = selector.split("::");
    const found = [...document.querySelectorAll(name)];
    const isSeen = (element) => getComputedStyle(element, pseudo && `::${pseudo}`).backgroundColor !== backgroundColor;
    return found.length === 0 || !found.every(isSeen);
  });
}, selectors);

/** The distinct colours of a canvas. */
const colours = (page, id) => page.evaluate((name) => {
  const element = document.getElementById(name);
  const { data } = element.getContext("2d").getImageData(0, 0, element.width, element.height);
  const found = new Set();
  for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) found.add(data.slice(at, at + 3).join());
  return [...found];
}, id);

for (const scheme of ["light", "dark"]) {
  test(`forced colours, ${scheme}`, () => withPage({ scheme, forced: "active" }, async (page) => {
    const text = scheme === "dark" ? "255,255,255" : "0,0,0";
    await page.click("[data-sample=invalid]");
    for (const view of ["input", "diagnostics", "calls", "graph", "replay"]) {
      await page.click(`#tab-${view}`);
      assert.deepEqual(await violations(page), [], view);
      const border = await page.evaluate((name) => getComputedStyle(document.getElementById(`tab-${name}`)).borderBottomWidth, view);
      assert.equal(border, "4px");
      if (view !== "graph") continue;
      await page.waitForTimeout(200);
      assert.ok((await colours(page, "plane")).includes(text), "the graph has the colour of texts");
    }
    await page.screenshot({ path: `pictures/forced-${scheme}-replay.png` });
    await drop(page, [{ name: "run.log", bytes: readFileSync(`${LOGS}/everything.log`) }]);
    await page.waitForFunction(() => document.body.dataset.mode === "log");
    await page.click("#tab-timeline");
    // This log has no call that waited for another on the critical path.
    await page.evaluate(() => document.querySelector("#rows .track").append(make("i", "hand-over")));
    assert.deepEqual(await hidden(page, ["#rows .piece.running::before", "#rows .mark", "#legend .piece.running::before", ".hand-over"]), []);
    await page.locator("#rows .row").first().click();
    await page.locator(".chip").first().click();
    for (const selector of [".row[aria-selected='true']", ".chip[aria-pressed='true']"]) {
      assert.equal(await page.evaluate((it) => getComputedStyle(document.querySelector(it)).outlineStyle, selector), "solid", selector);
    }
    await page.screenshot({ path: `pictures/forced-${scheme}-timeline.png` });
  }));
}
