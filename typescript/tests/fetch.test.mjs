// Requests through the `fetch` of this package, as clients send them.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";

import { plaincallFetch } from "plaincall/openai";

import { CALL, INVALID, Model, QUESTION, TWO, WEATHER } from "./scripted.mjs";

const URL_ = "http://localhost:8000/v1/chat/completions";
const BODY = {
  model: "m",
  messages: [{ role: "user", content: QUESTION }],
  tools: [{ type: "function", function: WEATHER }],
};

function post(body, more = {}) {
  const headers = { "content-type": "application/json", authorization: "Bearer k", ...more.headers };
  return { method: "POST", body: JSON.stringify(body), ...more, headers };
}

/** Returns the data of the events of a stream. */
async function dataOf(response) {
  const text = await response.text();
  const lines = text.split("\n").filter((line) => line.startsWith("data: {"));
  return lines.map((line) => JSON.parse(line.slice("data: ".length)));
}

/** Returns the tables of models in a file whose lines are tables, items of arrays, and keys with JSON values. */
function modelsOf(text) {
  const models = {};
  let table = {};
  for (const line of text.split("\n")) {
    const [, item, names] = /^\[(\[?)(.+?)\]+$/.exec(line) ?? [];
    const [key, value] = line.split(/ = (.*)/);
    if (names) {
      table = names.match(/"[^"]+"|[^.]+/g).reduce((at, name, index, all) => {
        if (item && index === all.length - 1) (at[name] ??= []).push({});
        const found = (at[name] ??= {});
        return Array.isArray(found) ? found.at(-1) : found;
      }, models);
    } else if (value) table[key] = JSON.parse(value);
  }
  return models.models;
}

test("every key of a model", async () => {
  const text = await readFile(join(process.env.ROOT, "testing/every_key.toml"), "utf8");
  const tables = modelsOf(text.replaceAll("{url}", URL_).replace("${TEAM}", "blue"));
  assert.ok("extra" in tables.full && "replay" in tables.recorded);
  for (const settings of Object.values(tables)) {
    const model = new Model("Hello.");
    const fetch = plaincallFetch({ ...settings, fetch: model.fetch });
    assert.equal((await fetch(URL_, post(BODY))).status, 200);
    if (settings.model === "small") {
      const { model: name, temperature, max_tokens, top_k } = model.requests[0];
      assert.deepEqual([name, temperature, max_tokens, top_k], ["small", 0.5, 9, 3]);
      assert.equal(model.headers[0]["x-team"], "of blue");
    }
  }
});

test("two parallel calls, whole and streamed", async () => {
  const model = new Model(TWO, TWO);
  const fetch = plaincallFetch({ fetch: model.fetch });
  const response = await fetch(URL_, post(BODY));
  assert.equal(response.headers.get("content-type"), "application/json");
  assert.equal(response.headers.get("x-request-id"), "r1");
  const { choices, usage } = await response.json();
  const { message, finish_reason } = choices[0];
  assert.equal(finish_reason, "tool_calls");
  assert.equal(usage.total_tokens, 12);
  const given = (calls) => calls.map(({ function: called }) => JSON.parse(called.arguments));
  const expected = [{ city: "Paris", days: 2 }, { city: "Oslo", days: 1 }];
  assert.deepEqual(given(message.tool_calls), expected);
  assert.match(message.content, /^I look\./);
  assert.match(model.requests[0].messages[0].content, /!!!GADGET_START/);
  assert.equal(model.headers[0].authorization, "Bearer k");

  const streamed = await fetch(new Request(URL_, post({ ...BODY, stream: true })));
  assert.match(streamed.headers.get("content-type"), /^text\/event-stream/);
  const deltas = (await dataOf(streamed)).flatMap(({ choices }) => choices).flatMap(({ delta }) => delta.tool_calls ?? []);
  assert.deepEqual(given(deltas.filter(({ function: called }) => called.arguments)), expected);
});

test("an invalid call is repaired", async () => {
  for (const stream of [false, true]) {
    const model = new Model(INVALID, CALL);
    const response = await plaincallFetch({ fetch: model.fetch })(URL_, post({ ...BODY, stream }));
    assert.match(await response.text(), /"tool_calls"/);
    assert.equal(model.requests.length, 2);
    assert.match(JSON.stringify(model.requests[1].messages.at(-1)), /expected an integer/);
  }
});

test("errors of the model server reach the client", async () => {
  for (const stream of [false, true]) {
    const model = new Model([429, { error: { message: "slow down" } }]);
    const response = await plaincallFetch({ fetch: model.fetch })(URL_, post({ ...BODY, stream }));
    assert.equal(response.status, 429);
    assert.equal(response.headers.get("retry-after"), "7");
    assert.equal((await response.json()).error.message, "slow down");
  }
  const failing = plaincallFetch({ fetch: () => Promise.reject(new TypeError("fetch failed")) });
  await assert.rejects(failing(URL_, post(BODY)), /fetch failed/);
});

test("other requests are passed on", async () => {
  const seen = [];
  const inner = async (input, init) => {
    const request = new Request(input, init);
    seen.push([request.method, new URL(request.url).pathname, await request.text()]);
    return new Response("ok");
  };
  const fetch = plaincallFetch({ fetch: inner });
  const { tools: _, ...plain } = BODY;
  await fetch("http://localhost/v1/models");
  await fetch("http://localhost/v1/embeddings", post({ input: "a" }));
  await fetch(URL_, post(plain));
  assert.deepEqual(seen, [
    ["GET", "/v1/models", ""],
    ["POST", "/v1/embeddings", '{"input":"a"}'],
    ["POST", "/v1/chat/completions", JSON.stringify(plain)],
  ]);
});

test("requests of other programs are passed on with their body and type", async () => {
  const seen = [];
  const inner = async (input, init) => {
    const request = new Request(input, init);
    seen.push([request.headers.get("content-type")?.split(";")[0] ?? null, await request.clone().text()]);
    if (seen.at(-1)[0] === "multipart/form-data") assert.equal((await request.formData()).get("a"), "b");
    return new Response("ok");
  };
  const fetch = plaincallFetch({ fetch: inner });
  const form = new FormData();
  form.set("a", "b");
  await fetch("http://h/rooms/5/messages", { method: "POST", body: form });
  await fetch("http://h/rooms/5/messages", { method: "POST", body: "hello" });
  await fetch(new Request("http://h/rooms/5/messages", { method: "POST", body: '{"tools":["hammer"]}' }));
  await fetch("http://h/rooms/5/messages", { method: "POST", body: new Uint8Array([65]) });
  await fetch("http://h/rooms/5/Messages", { method: "POST", body: "{}" });
  assert.deepEqual(seen.slice(1), [
    ["text/plain", "hello"],
    ["text/plain", '{"tools":["hammer"]}'],
    [null, "A"],
    ["text/plain", "{}"],
  ]);
  assert.equal(seen[0][0], "multipart/form-data");
});

test("requests with tools are translated or rejected, whatever their type and path", async () => {
  const tool = { type: "function", ...WEATHER };
  const body = JSON.stringify({ model: "m", input: QUESTION, tools: [tool] });
  const inits = [
    { method: "POST", body },
    { method: "POST", body: new TextEncoder().encode(body) },
    { method: "post", body, headers: { "content-type": "text/plain" } },
  ];
  const model = new Model(...Array(6).fill(CALL));
  const fetch = plaincallFetch({ fetch: model.fetch });
  for (const init of inits) {
    for (const request of [init, new Request("http://h/base/responses", init)]) {
      const response = await (request === init ? fetch("http://h/base/responses", init) : fetch(request));
      assert.equal((await response.json()).output.at(-1).type, "function_call");
      assert.equal(model.headers.at(-1)["content-type"], "application/json");
    }
    for (const path of ["/v1/Responses", "/v1/%72esponses", "/v1/r1/%6Dessages", "/V1/CHAT/COMPLETIONS"]) {
      const response = await fetch(`http://h${path}`, init);
      assert.equal(response.status, 404);
      assert.ok((await response.json()).error.message.includes(`${path} is not supported`));
    }
  }
  assert.equal(model.requests.length, 6);
});

test("headers that describe another body do not reach the client", async () => {
  const wrong = ["etag", "content-md5", "location", "content-encoding", "content-location", "last-modified", "digest"];
  for (const stream of [false, true]) {
    const model = new Model(CALL);
    const inner = async (...request) => {
      const response = await model.fetch(...request);
      for (const name of wrong) response.headers.set(name, "x");
      response.headers.set("content-length", "7");
      response.headers.set("x-ratelimit-remaining", "5");
      return response;
    };
    const { headers } = await plaincallFetch({ fetch: inner })(URL_, post({ ...BODY, stream }));
    assert.deepEqual([...headers.keys()].sort(), ["content-type", "x-ratelimit-remaining", "x-request-id"]);
  }
});

test("an answer that stays open after its end is complete after some seconds", async () => {
  for (const withoutEnd of [false, true]) {
    let cancelled = 0;
    const model = new Model(CALL);
    const inner = async (...request) => {
      const answer = await (await model.fetch(...request)).text();
      const begin = answer.slice(0, answer.indexOf("data: ", answer.indexOf('"finish_reason":"stop"')));
      const body = new ReadableStream({
        start: (controller) => controller.enqueue(new TextEncoder().encode(begin)),
        cancel: () => {
          cancelled++;
          // Nor does it end when it is cancelled.
          return withoutEnd ? new Promise(() => {}) : undefined;
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    };
    const response = await plaincallFetch({ fetch: inner })(URL_, post({ ...BODY, stream: true, stream_options: { include_usage: true } }));
    assert.match(await response.text(), /"finish_reason":"tool_calls"[^]*data: \[DONE\]/);
    assert.equal(cancelled, 1);
  }
});

test("a connection that breaks after the end of a reply is no error, before it is one", async () => {
  const usage = { ...BODY, stream: true, stream_options: { include_usage: true } };
  for (const [most, isComplete] of [[Infinity, true], [1, false]]) {
    const scripted = new Model(CALL);
    const inner = async (...request) => {
      const source = (await scripted.fetch(...request)).body.getReader();
      let count = 0;
      const body = new ReadableStream({
        async pull(controller) {
          const { value } = await source.read();
          // The finish reason has been read; the usage and `[DONE]` never arrive.
          const isLast = new TextDecoder().decode(value).includes('"usage"');
          if (isLast || count++ >= most) controller.error(new TypeError("terminated"));
          else controller.enqueue(value);
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    };
    const response = await plaincallFetch({ fetch: inner })(URL_, post(usage));
    if (!isComplete) {
      await assert.rejects(response.text(), /terminated/);
      continue;
    }
    const text = await response.text();
    assert.match(text, /"get_weather"/);
    assert.match(text, /"finish_reason":"tool_calls"/);
    assert.ok(text.endsWith("data: [DONE]\n\n"), text);
  }
});

test("Responses and Messages become chat completions", async () => {
  const model = new Model(CALL, CALL);
  const fetch = plaincallFetch({ fetch: model.fetch });
  const tool = { type: "function", ...WEATHER };
  const response = await fetch("http://h/v1/responses", post({ model: "m", input: QUESTION, tools: [tool] }));
  assert.equal((await response.json()).output.at(-1).type, "function_call");
  const { parameters: input_schema, ...named } = WEATHER;
  const body = { model: "m", max_tokens: 50, messages: BODY.messages, tools: [{ ...named, input_schema }] };
  const headers = { "x-api-key": "secret", authorization: "" };
  const init = post(body, { headers });
  delete init.headers.authorization;
  const message = await (await fetch("http://h/v1/messages?beta=true", init)).json();
  assert.equal(message.content.at(-1).type, "tool_use");
  assert.deepEqual(model.paths, ["/v1/chat/completions", "/v1/chat/completions"]);
  assert.equal(model.headers[1].authorization, "Bearer secret");
  const rejected = await fetch("http://h/v1/responses/compact", post({ model: "m", input: QUESTION, tools: [tool] }));
  assert.equal(rejected.status, 404);
});

test("a client that stops reading stops the model server", async () => {
  const model = new Model(`${CALL}${"word ".repeat(1000)}`);
  const response = await plaincallFetch({ fetch: model.fetch })(URL_, post({ ...BODY, stream: true }));
  const reader = response.body.getReader();
  await reader.read();
  await reader.cancel();
  assert.equal(model.cancelled, 1);
  assert.ok(model.sent < 100, `${model.sent}`);

  const other = new Model("word ".repeat(1000));
  const abort = new AbortController();
  const init = post({ ...BODY, stream: true }, { signal: abort.signal });
  const aborted = await plaincallFetch({ fetch: other.fetch })(URL_, init);
  const body = aborted.body.getReader();
  await body.read();
  abort.abort();
  await assert.rejects(async () => {
    while (!(await body.read()).done);
  });
  assert.ok(other.sent < 100, `${other.sent}`);
});

test("cancelling stops in the middle of a call, and repairs nothing", async () => {
  const model = new Model(`${CALL.slice(0, -14)}\n${"word ".repeat(100_000)}`, CALL);
  const response = await plaincallFetch({ fetch: model.fetch })(URL_, post({ ...BODY, stream: true }));
  const reader = response.body.getReader();
  await reader.read();
  const pending = reader.read();
  const sent = model.sent;
  while (model.sent < sent + 10) await new Promise((resolve) => setTimeout(resolve));
  await reader.cancel();
  await pending;
  assert.ok(model.sent < 50_000, `${model.sent}`);
  assert.equal(model.requests.length, 1);
});

test("options outside the standard and the client's signal reach the inner fetch", async () => {
  const seen = [];
  const model = new Model(CALL);
  const inner = (input, init) => {
    seen.push([typeof input, init?.dispatcher, init?.signal?.aborted]);
    return model.fetch(input, init);
  };
  const { signal } = new AbortController();
  const fetch = plaincallFetch({ fetch: inner });
  await (await fetch(URL_, post(BODY, { signal, dispatcher: "proxy" }))).text();
  assert.deepEqual(seen, [["string", "proxy", false]]);
});

const COUNT = "http://localhost:8000/v1/messages/count_tokens";
const COUNTED = { model: "m", messages: [{ role: "user", content: QUESTION }], tools: [{ name: "a", input_schema: { type: "object" } }] };

test("tokens are counted by the server, or estimated", async () => {
  const counting = (input) =>
    String(input).endsWith("tokenize") ? Response.json({ count: 7, max_model_len: 100, tokens: [1, 2, 3, 4, 5, 6, 7] }) : Response.json({ prompt: "hi" });
  const counted = await plaincallFetch({ fetch: async (input) => counting(input) })(COUNT, post(COUNTED));
  assert.equal((await counted.json()).input_tokens, 7);
  assert.equal(counted.headers.get("x-plaincall-token-count"), null);
  const reset = async () => new Response(new ReadableStream({ pull: (controller) => controller.error(new TypeError("reset")) }));
  const estimated = await plaincallFetch({ fetch: reset })(COUNT, post(COUNTED));
  assert.ok((await estimated.json()).input_tokens > 0);
  assert.equal(estimated.headers.get("x-plaincall-token-count"), "estimate");
});

test("no unreadable request with tools is passed on", async () => {
  const sent = [];
  const inner = async (input, init) => {
    sent.push(new Uint8Array(await new Request(input, init).arrayBuffer()));
    return Response.json({});
  };
  const fetch = plaincallFetch({ fetch: inner });
  const body = JSON.stringify({ input: QUESTION, ...BODY });
  const requests = [
    ["/base/responses", body.replace("Paris", "\\ud83d")],
    ["/v1/Responses", Buffer.from(body, "utf16le")],
    ["/v1/CHAT/completions", new Uint8Array([31, 139, 8, 0, 0])],
    ["/v1/chat/completions;a=b", body],
    ["/v1/chat/completions", body.replace("{", '{"tools":[],')],
    ["/v1/chat/completions", `${body.slice(0, -1)},"tools":[]}`],
  ];
  for (const [path, body] of requests) {
    const response = await fetch(`http://localhost:8000${path}`, { method: "POST", body, headers: { "content-type": "multipart/x" } });
    assert.ok(response.status >= 400, path);
    for (const bytes of sent.splice(0)) assert.doesNotMatch(new TextDecoder().decode(bytes), /^[^{]|"tools"/, path);
  }
  const form = new FormData();
  form.set("file", new Blob(["{}"]), "a.json");
  for (const path of ["/rooms/5/messages", "/v1/files"]) {
    await fetch(`http://localhost:8000${path}`, { method: "POST", body: form });
    assert.match(new TextDecoder().decode(sent.pop()), /name="file"/);
  }
});

test("a callback that throws ends the request", async () => {
  const parameters = { type: "object", properties: { a: { type: "nothing" } } };
  const tools = [{ type: "function", function: { ...WEATHER, parameters } }];
  const onChangedTool = () => {
    throw new Error("no");
  };
  await assert.rejects(plaincallFetch({ fetch: new Model().fetch, onChangedTool })(URL_, post({ ...BODY, tools })), /^Error: no$/);
});

test("settings", async () => {
  assert.throws(() => plaincallFetch({ secret: new Uint8Array(3) }), /`secret` has 3 bytes, and needs at least 16/);
  assert.throws(() => plaincallFetch({ repairRound: 1 }), /^PlaincallError: unknown key `repairRound`; did you mean `repair_rounds`\?$/);
  assert.throws(() => plaincallFetch({ constrain: "unknown" }), /`constrain` cannot be `unknown`/);
  const model = new Model(INVALID);
  const fetch = plaincallFetch({ fetch: model.fetch, repairRounds: 0, model: "n", syntax: undefined });
  const { error } = await (await fetch(URL_, post(BODY))).json();
  assert.equal(error.code, "invalid_tool_call");
  assert.equal(model.requests[0].model, "n");
  const changed = [];
  const loosened = { ...WEATHER, parameters: { type: "object", properties: { a: { type: "nothing" } } } };
  const tools = [{ type: "function", function: loosened }];
  const other = new Model("ok");
  const onChangedTool = (tool) => changed.push(tool);
  await (await plaincallFetch({ fetch: other.fetch, onChangedTool })(URL_, post({ ...BODY, tools }))).text();
  assert.equal(changed.length, 1);
});

test("a connection that breaks in a repair round", async () => {
  const near = "!!!gadget_start:get_weather\n!!!gadget_end\n";
  const head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 99\r\n\r\n";
  for (const broken of ["", `${head}{"choices"`, head.replace("200 OK", "503 Overloaded")]) {
    for (const stream of [false, true]) {
      const model = new Model(near);
      const server = createServer((socket) => {
        socket.once("data", () => socket.end(broken));
        socket.on("error", () => undefined);
      });
      await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
      const place = `http://127.0.0.1:${server.address().port}/`;
      const inner = (input, init) => (model.replies.length > 0 ? model.fetch(input, init) : fetch(place, { method: "POST", body: init.body }));
      try {
        // The first reply is the answer.
        const response = await plaincallFetch({ fetch: inner })(URL_, post({ ...BODY, stream }));
        assert.equal(response.status, 200);
        const text = await response.text();
        const { content } = stream ? { content: contentOf(text) } : JSON.parse(text).choices[0].message;
        assert.match(content, /^!!!gadget_start:get_weather/);
        assert.doesNotMatch(text, /error/);
        // The client gets the error of its own library if there is no reply.
        await assert.rejects(async () => (await plaincallFetch({ fetch: inner })(URL_, post({ ...BODY, stream }))).text(), TypeError);
      } finally {
        server.close();
      }
    }
  }
});

/** Returns the text of a stream. */
function contentOf(text) {
  const chunks = text.split("\n").filter((line) => line.startsWith("data: {"));
  return chunks.map((line) => JSON.parse(line.slice(6)).choices[0]?.delta.content ?? "").join("");
}

test("a redirect that is not followed leads to the API of the client", async () => {
  const headers = { location: "/new/v1/chat/completions?a=b" };
  const fetch = plaincallFetch({ fetch: async () => new Response(null, { status: 307, headers }) });
  const { parameters: input_schema, ...named } = WEATHER;
  const body = { model: "m", max_tokens: 50, messages: BODY.messages, tools: [{ ...named, input_schema }] };
  const response = await fetch("http://h/v1/messages", post(body));
  assert.deepEqual([response.status, response.headers.get("location")], [307, "/new/v1/messages?a=b"]);
});
