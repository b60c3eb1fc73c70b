// Aborting ends the request to a real model server, also after garbage was collected: Node loses the aborts of objects that are gone.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { plaincallFetch } from "plaincall/openai";

import { QUESTION, WEATHER } from "./scripted.mjs";

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc");
const body = (stream) =>
  JSON.stringify({ model: "m", messages: [{ role: "user", content: QUESTION }], tools: [{ type: "function", function: WEATHER }], stream });
const DELTA = 'data: {"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"word "}}]}\n\n';

let closed;
const server = createServer((request, response) => {
  request.resume();
  response.writeHead(200, { "content-type": "text/event-stream" });
  const timer = setInterval(() => response.write(DELTA), 10);
  response.on("close", () => {
    clearInterval(timer);
    closed();
  });
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
after(() => {
  server.close();
  server.closeAllConnections();
});
const url = `http://127.0.0.1:${server.address().port}/v1/chat/completions`;

async function collect() {
  for (let times = 0; times < 5; times++) {
    gc();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function within(promise, what) {
  const late = new Promise((_, reject) => setTimeout(reject, 120_000, new Error(`${what} took too long`)).unref());
  return Promise.race([promise, late]);
}

// Nothing but the client's controller and what it reads is kept.
const clients = {
  "a signal in the options": (signal, stream) => plaincallFetch()(url, { method: "POST", body: body(stream), signal }),
  "the signal of a request": (signal, stream) => plaincallFetch()(new Request(url, { method: "POST", body: body(stream), signal })),
};

for (const [name, ask] of Object.entries(clients)) {
  test(`${name}, streamed`, async () => {
    const ended = new Promise((resolve) => (closed = resolve));
    const abort = new AbortController();
    const reader = (await ask(abort.signal, true)).body.getReader();
    await reader.read();
    await collect();
    abort.abort();
    await within(ended, "the end of the request");
    const rest = async () => {
      while (!(await reader.read()).done);
    };
    await within(assert.rejects(rest(), { name: "AbortError" }), "the end of the answer");
  });

  test(`${name}, whole`, async () => {
    const ended = new Promise((resolve) => (closed = resolve));
    const abort = new AbortController();
    const answer = ask(abort.signal, false);
    answer.catch(() => undefined);
    await collect();
    abort.abort();
    await within(ended, "the end of the request");
    await within(assert.rejects(answer, { name: "AbortError" }), "the end of the answer");
  });
}

test("an answer that nobody reads or keeps frees the exchange", async () => {
  const ended = new Promise((resolve) => (closed = resolve));
  const ignore = async () => {
    const response = await plaincallFetch()(url, { method: "POST", body: body(true) });
    await response.body.cancel();
  };
  await ignore();
  await collect();
  await within(ended, "the end of the request");
});
