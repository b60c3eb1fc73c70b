// Calls in dependency order: the cases of the Python package.

import assert from "node:assert/strict";
import { test } from "node:test";

import { execute, parse, Toolbox, tool } from "plaincall";
import { z } from "zod";

function call(name, id, given = {}, ...dependencies) {
  const header = [name, id, dependencies.join(",")].join(":").replace(/:+$/, "");
  const values = Object.entries(given).map(([key, value]) => `!!!ARG:${key}\n${value}\n`);
  return `!!!GADGET_START:${header}\n${values.join("")}!!!GADGET_END\n`;
}

const sleep = (seconds, signal) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });

function toolbox() {
  const log = [];
  const work = async ({ name, seconds }, { signal }) => {
    log.push(`start ${name}`);
    try {
      await sleep(seconds, signal);
    } catch (error) {
      log.push(`cancelled ${name}`);
      throw error;
    }
    log.push(`end ${name}`);
    return name;
  };
  const fail = ({ message }) => {
    throw new RangeError(message);
  };
  const input = z.object({ name: z.string(), seconds: z.number().default(0) });
  const box = new Toolbox([
    tool({ name: "work", input, execute: work }),
    tool({ name: "alone", input, execute: work, exclusive: true }),
    tool({ name: "fail", input: z.object({ message: z.string() }), execute: fail }),
    tool({ name: "late", input: z.object({}), execute: () => Promise.resolve("late") }),
    tool({ name: "sync", input: z.object({}), execute: () => true }),
  ]);
  return [box, log];
}

async function run(text, options) {
  const [box, log] = toolbox();
  const results = await execute(box, box.parse(text, { stop: "natural" }).calls, options);
  return [results.map(({ status, output, error }) => [status, error ?? output]), log];
}

test("calls run when their dependencies have ended", async () => {
  const text =
    call("work", "c", { name: "c" }, "a", "b") + call("work", "a", { name: "a", seconds: 0.02 }) + call("work", "b", { name: "b" });
  const [results, log] = await run(text);
  assert.deepEqual(results, [["ok", "c"], ["ok", "a"], ["ok", "b"]]);
  assert.deepEqual([log.slice(0, 2), log.slice(-2)], [["start a", "start b"], ["start c", "end c"]]);
});

test("failures are results", async () => {
  const text =
    call("fail", "f", { message: "no" }) +
    call("work", "g", { name: "g" }, "f") +
    call("work", "h", { name: "h" }, "g") +
    call("work", "i", { name: "i" }, "nothing") +
    call("work", "j", { name: "j" }, "j") +
    call("work", "k") +
    call("other", "l");
  const [results, log] = await run(text);
  const statuses = ["error", "skipped", "skipped", "rejected", "rejected", "rejected", "rejected"];
  assert.deepEqual(results.map(([status]) => status), statuses);
  const messages = results.map(([, message]) => message);
  assert.equal(messages[0], "RangeError: no");
  assert.equal(messages[1], "not run: it depends on `f`, which failed");
  assert.equal(messages[2], "not run: it depends on `g`, which was skipped; the first failure was `f`");
  for (const [index, part] of [[3, "`nothing`"], [4, "`j`"], [5, "`name`"], [6, "`other`"]]) {
    assert.ok(messages[index].includes(part), messages[index]);
  }
  assert.deepEqual(log, []);
});

test("functions with and without promises", async () => {
  const [results] = await run(call("sync", "s") + call("late", "l"));
  assert.deepEqual(results, [["ok", "true"], ["ok", "late"]]);
});

test("at most so many calls run at once", async () => {
  const names = ["c0", "c1", "c2", "c3"];
  const text = names.map((name) => call("work", name, { name, seconds: 0.01 })).join("");
  const [, log] = await run(text, { concurrency: 1 });
  assert.deepEqual(log, names.flatMap((name) => [`start ${name}`, `end ${name}`]));
  const [, other] = await run(text, { concurrency: 2 });
  let [open, most] = [0, 0];
  for (const line of other) most = Math.max(most, (open += line.startsWith("start") ? 1 : -1));
  assert.equal(most, 2);
  await assert.rejects(run(text, { concurrency: 0 }), /`concurrency`: .*expected a whole number of at least 1/);
});

test("a call of an exclusive tool runs alone", async () => {
  const text =
    call("work", "a", { name: "a", seconds: 0.01 }) + call("alone", "b", { name: "b", seconds: 0.01 }) + call("work", "c", { name: "c" });
  const [, log] = await run(text);
  const at = log.indexOf("start b");
  assert.equal(log[at + 1], "end b");
  const before = log.slice(0, at);
  assert.equal(before.filter((line) => line.startsWith("start")).length, before.filter((line) => line.startsWith("end")).length);
});

test("a time limit", async () => {
  const [results, log] = await run(call("work", "a", { name: "a", seconds: 60 }), { timeout: 20 });
  assert.deepEqual(results, [["error", "timed out after 0.02 seconds"]]);
  assert.deepEqual(log, ["start a", "cancelled a"]);
  await assert.rejects(run("", { timeout: 0 }), /`timeout` must be/);
  assert.deepEqual(await run(call("work", "a", { name: "a" }), { timeout: 1e12 }), [[["ok", "a"]], ["start a", "end a"]]);
});

test("approval", async () => {
  const approve = async ({ id }, { name }) => {
    assert.equal(name, "work");
    if (id === "error") throw new RangeError("secret");
    return { yes: true, reason: "not today", one: 1 }[id] ?? false;
  };
  const ids = ["yes", "no", "reason", "error", "one"];
  const text = ids.map((id) => call("work", id, { name: id })).join("") + call("work", "after", { name: "after" }, "no");
  const [results, log] = await run(text, { approve });
  assert.deepEqual(results, [
    ["ok", "yes"],
    ["rejected", "this call was not approved"],
    ["rejected", "not today"],
    ["rejected", "the approval of this call failed: RangeError"],
    ["rejected", "this call was not approved"],
    ["skipped", "not run: it depends on `no`, which was rejected"],
  ]);
  assert.deepEqual(log, ["start yes", "end yes"]);
  const throwing = () => {
    throw null;
  };
  assert.deepEqual((await run(text, { approve: throwing }))[0][0], ["rejected", "the approval of this call failed: object"]);
});

test("an approval that waits does not delay other calls", async () => {
  const [box, log] = toolbox();
  const approve = async ({ id }) => {
    while (id === "slow" && !log.includes("end b")) await sleep(0.001);
    return true;
  };
  const text = call("work", "slow", { name: "slow" }) + call("work", "a", { name: "a" }) + call("work", "b", { name: "b" }, "a");
  const results = await execute(box, box.parse(text).calls, { approve });
  assert.deepEqual(results.map(({ status }) => status), ["ok", "ok", "ok"]);
  assert.deepEqual(log, ["start a", "end a", "start b", "end b", "start slow", "end slow"]);
});

test("aborting cancels the approvals and the calls", async () => {
  const [box, log] = toolbox();
  const approval = new AbortController();
  const { calls } = box.parse(call("work", "a", { name: "a", seconds: 60 }) + call("work", "b", { name: "b" }, "a"));
  const waiting = execute(box, calls, { approve: () => sleep(0.05).then(() => true), signal: approval.signal });
  approval.abort(new Error("stopped"));
  await assert.rejects(waiting, /^Error: stopped$/);
  await sleep(0.1);
  assert.deepEqual(log, []);

  const running = new AbortController();
  const executed = execute(box, calls, { signal: running.signal });
  await sleep(0.01);
  running.abort();
  await assert.rejects(executed, { name: "AbortError" });
  assert.deepEqual(log, ["start a", "cancelled a"]);
  await assert.rejects(execute(box, calls, { signal: AbortSignal.abort() }), { name: "AbortError" });
  assert.equal(log.length, 2);
});

const give = (execute) => new Toolbox([tool({ name: "give", input: z.object({}), execute })]);

test("errors of any kind", async () => {
  const own = new Error("no answer of db.test");
  own.name = "TimeoutError";
  const thrown = [
    [own, "TimeoutError: no answer of db.test"],
    [new DOMException("gone", "AbortError"), "AbortError: gone"],
    ["text", "the tool failed: text"],
    [undefined, "the tool failed: undefined"],
    [Object.create(null), "the tool failed"],
  ];
  for (const [error, message] of thrown) {
    for (const timeout of [undefined, 5000]) {
      const box = give(() => Promise.reject(error));
      const { calls } = box.parse(call("give", "g") + call("give", "h", {}, "g"));
      const [first, second] = await execute(box, calls, { timeout });
      assert.deepEqual([first.status, first.error, second.status], ["error", message, "skipped"]);
    }
  }
});

test("held calls need an approval", async () => {
  const text = "!!!GADGET_START:work\n!!!ARG:name\nx\n!!!GADGT_END\n!!!GADGET_END\n";
  const [[[status, message]]] = await run(text);
  assert.equal(status, "rejected");
  assert.match(message, /may have been meant to end earlier/);
  const [[[approved]]] = await run(text, { approve: ({ held }) => held !== null });
  assert.equal(approved, "ok");
});

test("no calls, and calls that were read without tools", async () => {
  assert.deepEqual(await run("Hello."), [[], []]);
  const [box] = toolbox();
  const [emoji] = parse("🛠️[late]\n🛠️[/end]\n", { syntax: "emoji" }).calls;
  assert.equal((await execute(box, [emoji]))[0].status, "rejected");
  const [unknown] = parse(call("unknown", "u"), { syntax: "block" }).calls;
  const [result] = await execute(box, [unknown]);
  assert.deepEqual([result.status, result.error], ["error", "the tool `unknown` has no function"]);
});

test("outputs", async () => {
  const itself = [];
  itself.push(itself);
  const outputs = [
    ["text", "text"],
    [{ ä: [1, null] }, '{"ä":[1,null]}'],
    [undefined, "null"],
    [() => 1, "() => 1"],
    [{ a: 12345678901234567890n, b: new Set([1]), c: new Map([["d", 2]]) }, '{"a":"12345678901234567890","b":[1],"c":{"d":2}}'],
    [new Date(0), '"1970-01-01T00:00:00.000Z"'],
    [itself, ""],
  ];
  for (const [value, output] of outputs) {
    const box = give(() => value);
    const [result] = await execute(box, box.parse(call("give", "g")).calls);
    assert.deepEqual([result.status, result.output], ["ok", output]);
    assert.equal(result.value, value);
    assert.match(box.results([result]), /Output:|Result/);
  }
});

test("a result without a text states that the tool ran", async () => {
  const value = {
    toJSON() {
      throw new RangeError("secret");
    },
    toString() {
      throw new RangeError("secret");
    },
  };
  const box = give(() => value);
  const [first, second] = await execute(box, box.parse(call("give", "g") + call("give", "h", {}, "g")).calls);
  assert.deepEqual([first.status, second.status, first.value === value], ["error", "skipped", true]);
  assert.equal(first.error, "the tool ran, but its result cannot be written as text: RangeError");
  assert.match(box.results([first]), /the tool ran, but/);
});
