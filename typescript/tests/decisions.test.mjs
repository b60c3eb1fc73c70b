// The package decides about the calls of replies as a run does. `replies.json` has the replies, what a run does with their calls,
// and what the package does otherwise.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { execute, Toolbox, tool } from "plaincall";

const { tools, effects, differences, replies } = JSON.parse(
  readFileSync(join(process.env.ROOT, "testing/decisions/replies.json"), "utf8"),
);
/** The names of how a text ended, as this package spells them. */
const STOPS = { natural: "natural", end_of_file: "endOfFile", length: "length", broken: "broken" };

/** The tools of the replies, which return their arguments. */
function toolbox(syntax) {
  const own = tools.map(({ function: { name, parameters } }) => tool({ name, input: parameters, execute: (given) => given }));
  return new Toolbox(own, { dialect: { syntax, escaped: true }, effects });
}
const BOXES = { block: toolbox("block"), emoji: toolbox("emoji") };

/** Returns decision, reason and arguments of a call that was read. */
function ofCall({ rejection, held, mayRun, arguments: given }) {
  if (rejection !== null) return ["rejected", rejection, null];
  assert.equal(mayRun, held === null);
  return [held === null ? "runs" : "held", held, given];
}

/** Reads a complete reply. */
function complete({ syntax, text, stop }) {
  return BOXES[syntax].parse(text, { stop: STOPS[stop] }).calls;
}

/** Reads a reply in pieces. */
function inPieces({ syntax, text, stop }) {
  const reader = BOXES[syntax].reader();
  const items = [];
  for (let at = 0; at < text.length; at += 5) items.push(...reader.feed(text.slice(at, at + 5)));
  items.push(...reader.finish({ stop: STOPS[stop] }));
  return items.filter(({ type }) => type === "call");
}

/** Calls the functions of a complete reply. */
async function executed(reply) {
  const calls = complete(reply);
  const results = await execute(BOXES[reply.syntax], calls, { approve: () => true });
  return results.map(({ status, error, value }, index) => {
    const { held } = calls[index];
    return status === "ok" ? [held === null ? "runs" : "held", held, value] : [status, error, null];
  });
}

/** Compares decisions with those of a run. Each difference is known, and each known difference is found. */
function check(by, found) {
  const known = new Set(differences.filter((one) => one.by === by).map(({ rule }) => rule));
  const different = new Set();
  replies.forEach(({ text, calls }, index) => {
    assert.equal(found[index].length, calls.length, text);
    calls.forEach(({ decision, reason, arguments: given, rule }, place) => {
      try {
        assert.deepEqual(found[index][place], [decision, reason, given]);
      } catch (error) {
        if (!known.has(rule)) throw new Error(text, { cause: error });
        different.add(rule);
      }
    });
  });
  assert.deepEqual([...different].sort(), [...known].sort(), `${by} agrees by now about some rule`);
}

test("documents decide as a run", () => {
  check("document", replies.map((reply) => complete(reply).map(ofCall)));
});

test("readers decide as a run", () => {
  check("reader", replies.map((reply) => inPieces(reply).map(ofCall)));
});

test("execute decides as a run", async () => {
  check("planned", await Promise.all(replies.map(executed)));
});

test("execute runs no held call without approval", async () => {
  let held = 0;
  for (const reply of replies) {
    const calls = complete(reply);
    const results = await execute(BOXES[reply.syntax], calls);
    calls.forEach((call, index) => {
      assert.equal(results[index].status === "ok", call.mayRun);
      held += call.held === null ? 0 : 1;
    });
  }
  assert.ok(held > 0);
});
