// Reads each payload with llmist and prints a line of JSON for each size of chunks: node llmist.mjs FOLDER
//
// The folder holds, for each payload, what was written in the block syntax and what is in it.

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

import { GadgetCallParser } from "llmist";

// In bytes; null is the whole text at once.
const SIZES = [4, 64, 4096, null];
const ROUNDS = 5;
// What a sample takes at least; what takes longer than the second of these is read twice and not more often.
const SAMPLE_SECONDS = 0.2;
const SLOW_SECONDS = 0.5;

/** Cuts the bytes into texts of at most `size` bytes, at the edges of characters. */
function cut(bytes, size) {
  if (size === null) return [bytes.toString("utf8")];
  const chunks = [];
  let start = 0;
  while (start < bytes.length) {
    let end = Math.min(start + size, bytes.length);
    while (end < bytes.length && (bytes[end] & 0xc0) === 0x80) end -= 1;
    chunks.push(bytes.subarray(start, end).toString("utf8"));
    start = end;
  }
  return chunks;
}

/** Reads all chunks. A call comes with its parameters as one object; the growing values before it are not needed. */
function read(chunks, text, call) {
  const parser = new GadgetCallParser();
  const take = (event) => {
    if (event.type === "text") text(event.content);
    else if (event.type === "gadget_call") call(event.call);
  };
  for (const chunk of chunks) for (const event of parser.feed(chunk)) take(event);
  for (const event of parser.finalize()) take(event);
}

/** Calls in their order with name and argument, and bytes of stretches of text, one after the other. */
function kept(chunks, expected) {
  const calls = [];
  let rest = "";
  read(
    chunks,
    (text) => (rest += text),
    (call) => calls.push([call.gadgetName, call.parameters?.content]),
  );
  const result = { calls: 0, text: 0 };
  let next = 0;
  for (const [name, argument] of expected.calls) {
    const at = calls.findIndex((call, index) => index >= next && call[0] === name && call[1] === argument);
    if (at < 0) continue;
    result.calls += 1;
    next = at + 1;
  }
  for (const text of expected.texts) {
    const at = rest.indexOf(text);
    if (at < 0) continue;
    result.text += Buffer.byteLength(text);
    rest = rest.slice(at + text.length);
  }
  return result;
}

/** Seconds of processor time of this process, its garbage collector and compiler included. */
function seconds(run, repeats) {
  const before = process.cpuUsage();
  for (let count = 0; count < repeats; count += 1) run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6 / repeats;
}

const folder = process.argv[2];
for (const file of readdirSync(folder).filter((file) => file.endsWith(".txt")).sort()) {
  const payload = file.slice(0, -4);
  const bytes = readFileSync(join(folder, file));
  const expected = JSON.parse(readFileSync(join(folder, `${payload}.json`), "utf8"));
  for (const size of SIZES) {
    const chunks = cut(bytes, size);
    // Keeps the compiler from removing the work.
    let seen = 0;
    const run = () =>
      read(
        chunks,
        (text) => (seen += text.length),
        (call) => (seen += (call.parameters?.content ?? "").length),
      );
    let best = seconds(run, 1);
    const isSlow = best > SLOW_SECONDS;
    const repeats = isSlow ? 1 : Math.ceil(SAMPLE_SECONDS / Math.max(best, 1e-6));
    for (let round = 0; round < (isSlow ? 1 : ROUNDS); round += 1) best = Math.min(best, seconds(run, repeats));
    if (seen === 0) throw new Error(`nothing was read of ${payload}`);
    console.log(JSON.stringify({ payload, size, seconds: best, ...kept(chunks, expected) }));
  }
}
