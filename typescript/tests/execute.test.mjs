// Calls in dependency order: the cases of the Python package.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as plaincall from "plaincall";
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
  assert.deepEqual(results, [["error", "timed out after 20 ms"]]);
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
    ["rejected", "the call could not be approved: RangeError"],
    ["rejected", "this call was not approved"],
    ["skipped", "not run: it depends on `no`, which was rejected"],
  ]);
  assert.deepEqual(log, ["start yes", "end yes"]);
  const throwing = () => {
    throw null;
  };
  assert.deepEqual((await run(text, { approve: throwing }))[0][0], ["rejected", "the call could not be approved: object"]);
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
  assert.deepEqual([result.status, result.error], ["rejected", "the toolbox has no tool `unknown`"]);
});

test("calls of other toolboxes are validated", async () => {
  const seen = [];
  const input = z.object({ a: z.string(), b: z.array(z.number()).default([]) });
  const box = new Toolbox([tool({ name: "t", input, execute: (given) => seen.push(given) && "ok" })]);
  const other = new Toolbox([tool({ name: "t", input: z.object({ a: z.number(), c: z.string().optional() }) })]);
  const invalid = [
    ...other.parse(call("t", "1", { a: 5 })).calls,
    ...other.parse(call("t", "2", { c: "x", a: 1 })).calls,
    ...parse(call("t", "3", { c: "x" })).calls,
    { ...box.parse(call("t", "4", { a: "x" })).calls[0], argumentsJson: "[1]" },
    { ...box.parse(call("t", "5", { a: "x" })).calls[0], argumentsJson: "{" },
  ];
  for (const result of await execute(box, invalid)) assert.equal(result.status, "rejected", JSON.stringify(result));
  assert.deepEqual(seen, []);
  const valid = [...parse(call("t", "6", { a: "x", "b/0": 1 })).calls, ...box.parse(call("t", "7", { a: "5" })).calls];
  for (const result of await execute(box, valid)) assert.equal(result.status, "ok", JSON.stringify(result));
  assert.deepEqual(seen, [{ a: "x", b: [1] }, { a: "5", b: [] }]);
});

test("calls without an end marker that another toolbox has read are validated again", async () => {
  const seen = [];
  const input = { type: "object", properties: { text: { type: "string" } } };
  const save = { name: "save", input, execute: (given) => seen.push(given) && "ok" };
  const box = new Toolbox([plaincall.tool(save)]);
  const reading = new Toolbox([plaincall.tool({ ...save, effect: "read" })]);
  const half = reading.parse("!!!GADGET_START:save\n!!!ARG:text\nHalf of the", { stop: "endOfFile" }).calls;
  const text = "!!!GADGET_START:save\n!!!ARG:text\nAn example:\n" + call("save", "b", { text: "quoted" });
  const quoted = reading.parse(text, { stop: "natural" }).calls;
  for (const { mayRun } of [...half, ...quoted]) assert.ok(mayRun);
  const [truncated] = await execute(box, half);
  assert.equal(truncated.status, "rejected");
  assert.match(truncated.error, /may be truncated/);
  const [first, second] = await execute(box, quoted);
  assert.match(first.error, /the next call begins before/);
  assert.match(second.error, /may be part of its text/);
  assert.deepEqual(seen, []);
});

test("calls after a broken beginning that the toolbox has not read", async () => {
  const seen = [];
  const box = new Toolbox([tool({ name: "save", input: z.object({}), execute: () => seen.push("save") && "ok" })]);
  for (const [name, status] of [["save", "rejected"], ["other", "ok"]]) {
    const text = `${JSON.stringify({ name, arguments: {} })}\n${call("save", "a")}${call("save", "b")}`;
    // Without tools, no candidate names one.
    const { calls } = parse(text);
    assert.deepEqual(calls.map(({ mayRun }) => mayRun), [true, true]);
    for (const result of await execute(box, JSON.parse(JSON.stringify(calls)))) {
      assert.equal(result.status, status, result.error);
      if (name === "save") assert.match(result.error, /looks like the start of a call/);
    }
  }
  assert.deepEqual(seen, ["save", "save"]);
});

test("calls that the toolbox has read are not read again", async () => {
  const add = plaincall.tool({
    name: "any",
    input: { type: "object", properties: { a: {} } },
    execute: (input) => JSON.stringify(input),
  });
  for (const value of ["5", "true", "12345678901234567890"]) {
    const box = new plaincall.Toolbox([add], { dialect: { syntax: "emoji" } });
    const text = `🛠️[any]\n${JSON.stringify({ a: value })}\n🛠️[/end]\n`;
    const reader = box.reader();
    const read = [...reader.feed(text), ...reader.finish({ stop: "natural" })].filter((item) => "argumentsJson" in item);
    for (const calls of [box.parse(text, { stop: "natural" }).calls, read]) {
      const [result] = await execute(box, calls);
      assert.deepEqual([result.status, JSON.parse(result.output)], ["ok", { a: value }], result.error);
    }
  }
});

test("errors that cannot be read, and halves of characters, are results", async () => {
  const fails = () => {
    throw new Error("secret");
  };
  const named = Object.defineProperty(new Error("a"), "name", { get: fails });
  const worded = Object.defineProperty(new Error("a"), "message", { get: fails });
  const proxy = new Proxy({}, { get: fails, getPrototypeOf: fails });
  for (const error of [named, worded, proxy, Object.assign(new Error("a"), { name: Symbol("s") })]) {
    const throws = () => {
      throw error;
    };
    const box = give(throws);
    const { calls } = box.parse(call("give", "g"));
    assert.equal((await execute(box, calls))[0].status, "error");
    assert.equal((await execute(box, calls, { approve: throws }))[0].status, "rejected");
  }
  const box = give(() => "\ud83d");
  const { calls } = box.parse(call("give", "g"));
  const [denied] = await execute(box, calls, { approve: () => "cut: \ud83d" });
  assert.deepEqual([denied.status, denied.error], ["rejected", "cut: \ufffd"]);
  const results = await execute(box, calls);
  assert.match(box.results(results), /\ufffd/);
  const [empty] = await execute(box, calls, { approve: () => "" });
  assert.equal(empty.error, "this call was not approved");
});

test("after an error of the plan nothing goes on", async () => {
  const [box, log] = toolbox();
  const { calls } = box.parse(call("work", "a", { name: "a", seconds: 0.02 }) + call("work", "b", { name: "b" }, "a") + call("late", "c"));
  // A list that changes makes the plan fail.
  const approve = ({ id }) => {
    if (id === "c") {
      box[Symbol.dispose]();
      Object.defineProperty(box.tools, "get", { value: () => assert.fail("broken") });
    }
    return true;
  };
  await assert.rejects(execute(box, calls, { approve }), /broken/);
  await sleep(0.05);
  assert.ok(!log.includes("start b"), `${log}`);
});

test("an abort inside a function stops the rest", async () => {
  for (const inApproval of [false, true]) {
    const abort = new AbortController();
    const log = [];
    const stop = () => {
      log.push("stop");
      abort.abort();
      return true;
    };
    const box = new Toolbox([
      tool({ name: "stop", input: z.object({}), execute: stop }),
      tool({ name: "next", input: z.object({}), execute: () => log.push("next") }),
    ]);
    const { calls } = box.parse(call("stop", "a") + call("next", "b"));
    const approve = inApproval ? stop : undefined;
    await assert.rejects(execute(box, calls, { approve, signal: abort.signal }), { name: "AbortError" });
    await sleep(0.01);
    assert.deepEqual(log, ["stop"]);
  }
});

test("many calls cause no warning, and an abort leaves no timer", async () => {
  const warnings = [];
  const warn = (warning) => warnings.push(warning);
  process.on("warning", warn);
  const box = give(() => new Promise(() => {}));
  const many = Array.from({ length: 20 }, (_, index) => call("give", `g${index}`)).join("");
  const abort = new AbortController();
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  const running = execute(box, box.parse(many).calls, { timeout: 60_000, signal: abort.signal });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(timers(), before + 20);
  abort.abort();
  await assert.rejects(running, { name: "AbortError" });
  assert.equal(timers(), before);
  process.off("warning", warn);
  assert.deepEqual(warnings, []);
});

test("options of other types are errors", async () => {
  const [box] = toolbox();
  for (const options of [{ concurrency: NaN }, { concurrency: 1.5 }, { concurrency: 0 }, { timeout: "5" }, { timeout: NaN }]) {
    await assert.rejects(execute(box, [], options), plaincall.PlaincallError, JSON.stringify(options));
  }
  await assert.rejects(execute([], []), /^PlaincallError: `toolbox`: expected a `Toolbox`, as `new Toolbox\(tools\)` creates it/);
  await assert.rejects(execute(box, box.parse("")), /^PlaincallError: `calls`: expected the calls of a document, `document.calls`, found `{syntax, /);
  assert.deepEqual(await execute(box, [], { concurrency: Infinity }), []);
});

test("arguments of other types are errors", async () => {
  const [box] = toolbox();
  const expected = [
    [[[...box.tools.values()], []], "`toolbox`: expected a `Toolbox`, as `new Toolbox(tools)` creates it, found Array"],
    [[undefined, []], "`toolbox`: expected a `Toolbox`, as `new Toolbox(tools)` creates it, found Undefined"],
    [[box, 5], "`calls`: expected the calls of a document, `document.calls`, found Number"],
    [[box], "`calls`: expected the calls of a document, `document.calls`, found Undefined"],
    [[box, "ab"], "`calls`: expected the calls of a document, `document.calls`, found String"],
    [[box, [null]], "`calls[0]` is null"],
  ];
  for (const [given, message] of expected) await assert.rejects(execute(...given), { name: "PlaincallError", message });
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
    [[NaN, -Infinity], '["NaN","-Infinity"]'],
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
