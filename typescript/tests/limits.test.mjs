// Texts that need much memory: each error is one of this package, and the next text is read.

import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";

/** The memory that the modules may have, in pages of 64 KiB. */
const PAGES = 900;

/** Returns a number as a module has it. */
function unsigned(number) {
  const bytes = [];
  for (; number > 127; number >>= 7) bytes.push((number & 127) | 128);
  return [...bytes, number];
}

/** Reads a number of a module at a place, and returns it with the next place. */
function read(module, at) {
  let number = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = module[at++];
    number |= (byte & 127) << shift;
    if (byte < 128) return [number, at];
  }
}

/** Returns a module whose memory has a maximum. */
function limited(module) {
  for (let at = 8; ; ) {
    const [length, begin] = read(module, at + 1);
    if (module[at] === 5) {
      const [least] = read(module, begin + 2);
      const section = [1, 1, ...unsigned(least), ...unsigned(PAGES)];
      return Buffer.concat([module.subarray(0, at), Buffer.from([5, section.length, ...section]), module.subarray(begin + length)]);
    }
    at = begin + length;
  }
}

const folder = mkdtempSync(join(import.meta.dirname, "../limited-"));
after(() => rmSync(folder, { recursive: true }));
cpSync(join(import.meta.dirname, "../dist"), folder, { recursive: true });
for (const name of ["parse.wasm", "gateway.wasm"]) writeFileSync(join(folder, name), limited(readFileSync(join(folder, name))));
writeFileSync(join(folder, "package.json"), '{"type":"module"}');
const { parse, Parser, PlaincallError, Toolbox } = await import(join(folder, "node/index.js"));
const { plaincallFetch } = await import(join(folder, "node/openai.js"));

const CALL = "!!!GADGET_START:z\n";

test("a document has a maximum number of calls", () => {
  const tools = Array.from({ length: 1000 }, (_, index) => ({ name: `tool_${index}`, input_schema: { type: "object" } }));
  const box = new Toolbox(tools);
  for (const read of [(text) => parse(text), (text) => box.parse(text), (text) => box.repair(text)]) {
    assert.throws(() => read(CALL.repeat(250_000)), { name: "PlaincallError", message: /more than 10000 calls/ });
  }
  assert.equal(box.parse(CALL.repeat(20)).calls.length, 20);
});

test("after there was no memory, texts are read", () => {
  const parser = new Parser();
  assert.equal(parser.feed("a")[0].source, "a");
  assert.throws(() => parse("x".repeat(50 << 20)), PlaincallError);
  // A marker may begin in it, so the module reads it.
  assert.equal(parser.feed("b!d").map(({ source }) => source).join(""), "b!d");
  assert.equal(parse("ok").text, "ok");
});

test("after a module has failed, new objects work", async () => {
  const parser = new Parser();
  parser.feed("x");
  const fetch = plaincallFetch({ fetch: async () => new Response("unchanged") });
  // Its diagnostics need more memory than there is.
  assert.throws(() => parse("!!!ARG:\n".repeat(2 << 20)), { name: "PlaincallError", message: /has failed/ });
  assert.throws(() => parser.feed("a"), { name: "PlaincallError", message: /has failed/ });
  assert.equal(parse("ok").text, "ok");
  assert.equal(new Parser().feed("ok")[0].source, "ok");
  const response = await fetch("http://localhost/v1/chat/completions", { method: "POST", body: '{"messages":[]}' });
  assert.equal(await response.text(), "unchanged");
  parser[Symbol.dispose]();
});
