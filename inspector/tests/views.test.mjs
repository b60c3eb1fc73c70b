// Every view at three sizes, in light and dark: accessible, not too wide, and with its content.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SIZES, tooWide, violations, withPage } from "./browser.mjs";

const VIEWS = {
  input: "#reply",
  diagnostics: ".diagnostic.error .facts-of",
  calls: ".call-node .value-of",
  graph: "#plane",
  json: "#json pre",
  replay: "#replay-text",
  prompt: "#prompt pre",
  repair: "#repair pre",
  grammar: "#grammar-text pre",
};

for (const [name, size] of Object.entries(SIZES)) {
  for (const scheme of ["light", "dark"]) {
    test(`views, ${name}, ${scheme}`, () => withPage({ size, scheme }, async (page) => {
      const shoot = (view) => page.screenshot({ path: `pictures/${name}-${scheme}-${view}.png` });
      assert.deepEqual(await violations(page), [], "empty");
      await shoot("empty");
      await page.click("[data-sample=invalid]");
      const isNarrow = await page.locator("#tab-transcript").isVisible();
      const views = isNarrow ? { transcript: "#transcript .bytes.header", ...VIEWS } : VIEWS;
      for (const [view, content] of Object.entries(views)) {
        await page.click(`#tab-${view}`);
        await page.locator(content).first().waitFor();
        if (view === "replay") await page.locator("#replay-at").fill("30");
        if (view === "graph") await page.click("#plane", { position: { x: size.width / 4, y: 150 } });
        assert.deepEqual(await violations(page), [], view);
        assert.deepEqual(await tooWide(page), [], view);
        await shoot(view);
      }
    }));
  }
}

test("the page is shown soon", () => withPage({}, async (page) => {
  const [shown, loop] = await page.evaluate(() => {
    const begun = performance.now();
    let sum = 0;
    for (let at = 0; at < 30_000_000; at++) sum = (sum * 31 + at) | 0;
    return [performance.getEntriesByName("shown")[0].startTime, performance.now() - begun + (sum & 0)];
  });
  // As a ratio, because machines differ.
  console.log(`shown after ${Math.round(shown)} ms, ${(shown / loop).toFixed(1)} times as long as a loop takes`);
  assert.ok(shown < 60 * loop, `${shown} ms, ${loop} ms`);
}));
