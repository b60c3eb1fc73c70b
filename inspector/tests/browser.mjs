// Chromium with the page, for the tests. Every page fails its test if it has an error or makes a request.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

export const PAGE = pathToFileURL(process.env.PAGE).href;
/** The page as a website has it. */
export const WEBSITE = "https://plaincall.test/inspector.html";
export const LOGS = process.env.LOGS;
export const SIZES = { phone: { width: 390, height: 844 }, tablet: { width: 820, height: 1180 }, desktop: { width: 1440, height: 900 } };
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
after(() => browser.close());

/** Runs a function with a page of this size and color scheme. */
export async function withPage({ size = SIZES.desktop, scheme = "light", forced = "none", fragment = "", address = PAGE, mayFail = [], without, isOpen = true }, run) {
  const context = await browser.newContext({ viewport: size, colorScheme: scheme, forcedColors: forced, permissions: ["clipboard-read", "clipboard-write"] });
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(`error: ${error.stack ?? error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" && !mayFail.some((part) => message.text().includes(part))) problems.push(`console: ${message.text()}`);
  });
  page.on("dialog", (dialog) => {
    problems.push("a dialog");
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.isNavigationRequest() || !request.url().startsWith(address.split("#")[0])) problems.push(`request: ${request.url().slice(0, 100)}`);
  });
  await page.route(WEBSITE, (route) => route.fulfill({ path: process.env.PAGE }));
  try {
    if (without !== undefined) await page.addInitScript((name) => { delete globalThis[name]; }, without);
    await page.goto(address + fragment);
    if (without === undefined) await isShown(page);
    else await page.getByRole("alert").waitFor();
    // Most tests use the settings.
    if (isOpen) await page.evaluate(() => { document.getElementById("options").open = true; });
    await run(page);
    assert.deepEqual(problems, []);
  } finally {
    await context.close();
  }
}

export const isShown = (page) => page.waitForFunction(() => performance.getEntriesByName("shown").length > 0);

/** Drops files on the page. */
export async function drop(page, files) {
  const data = await page.evaluateHandle((given) => {
    const transfer = new DataTransfer();
    for (const { name, bytes } of given) transfer.items.add(new File([new Uint8Array(bytes)], name));
    return transfer;
  }, files.map(({ name, bytes }) => ({ name, bytes: [...bytes] })));
  await page.dispatchEvent("body", "dragover", { dataTransfer: data });
  await page.dispatchEvent("body", "drop", { dataTransfer: data });
}

/** Types a reply, and waits until it is inspected. */
export async function inspect(page, reply, tools = "") {
  await page.click("#tab-input");
  await page.fill("#definitions", tools);
  await page.fill("#reply", reply);
  const bytes = Buffer.byteLength(reply).toLocaleString("en");
  await page.waitForFunction((words) => document.getElementById("reply-note").textContent.startsWith(words), bytes === "0" ? "" : `${bytes} bytes`);
}

/** The violations that axe finds. The policy of the page does not let it in, so it comes through the debugger. */
export async function violations(page) {
  await page.evaluate(AXE);
  const { violations: found } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  return found.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ target, failureSummary }) => `${target.join(" ")} ${failureSummary}`).join("; ")}`);
}

/** Texts that are too wide for the window. */
export function tooWide(page) {
  return page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    const found = document.documentElement.scrollWidth > width ? [`the page is ${document.documentElement.scrollWidth} pixels wide`] : [];
    for (const element of document.querySelectorAll("main *, header *")) {
      const box = element.getBoundingClientRect();
      const isSeen = box.width > 0 && element.checkVisibility() && !element.closest("#views, .track, .hand-overs, option");
      if (isSeen && box.right > width + 1) found.push(`${element.tagName}.${element.className} ends at ${Math.round(box.right)}`);
    }
    return found.slice(0, 5);
  });
}
