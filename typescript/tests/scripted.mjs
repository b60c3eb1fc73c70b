// A scripted model as a `fetch`.

import assert from "node:assert/strict";

export const CALL = "I look.\n!!!GADGET_START:get_weather\n!!!ARG:city\nParis\n!!!ARG:days\n2\n!!!GADGET_END\n";
export const TWO = `${CALL}!!!GADGET_START:get_weather\n!!!ARG:city\nOslo\n!!!ARG:days\n1\n!!!GADGET_END\n`;
export const INVALID = "!!!GADGET_START:get_weather\n!!!ARG:city\nParis\n!!!ARG:days\ntwo\n!!!GADGET_END\n";
export const QUESTION = "The weather in Paris?";
export const WEATHER = {
  name: "get_weather",
  description: "Gets the weather.",
  parameters: {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "integer" } },
    required: ["city", "days"],
    additionalProperties: false,
  },
};

const usage = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 };

function chunksOf(text, hasUsage) {
  const head = { id: "1", object: "chat.completion.chunk", created: 1, model: "m" };
  const choice = (delta, finish_reason = null) => ({ ...head, choices: [{ index: 0, delta, finish_reason }] });
  const deltas = text.match(/[\s\S]{1,7}/g).map((content) => choice({ role: "assistant", content }));
  const last = hasUsage ? [{ ...head, choices: [], usage }] : [];
  return [...deltas, choice({}, "stop"), ...last].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).concat("data: [DONE]\n\n");
}

function completionOf(content) {
  const choices = [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }];
  return { id: "1", object: "chat.completion", created: 1, model: "m", choices, usage };
}

/** Answers each request with the next reply, and checks that it is plain text. A reply is a text, or a status and a body. */
export class Model {
  requests = [];
  paths = [];
  headers = [];
  cancelled = 0;
  sent = 0;

  constructor(...replies) {
    this.replies = replies;
  }

  fetch = async (input, init) => {
    const request = new Request(input, init);
    const body = await request.json();
    const url = new URL(request.url);
    assert.ok(url.pathname.endsWith("/chat/completions"), url.pathname);
    assert.ok(!("tools" in body) && !("functions" in body));
    this.requests.push(body);
    this.paths.push(url.pathname + url.search);
    this.headers.push(Object.fromEntries(request.headers));
    const reply = this.replies.shift();
    assert.ok(reply !== undefined, "no further request is expected");
    if (Array.isArray(reply)) {
      const [status, answer] = reply;
      return Response.json(answer, { status, headers: { "retry-after": "7", "x-request-id": "r1" } });
    }
    if (!body.stream) return Response.json(completionOf(reply), { headers: { "x-request-id": "r1" } });
    const chunks = chunksOf(reply, body.stream_options?.include_usage);
    const encoder = new TextEncoder();
    const stream = new ReadableStream(
      {
        pull: async (controller) => {
          // Timers can run between two chunks.
          await new Promise((resolve) => setTimeout(resolve));
          request.signal.throwIfAborted();
          const chunk = chunks.shift();
          if (chunk === undefined) return controller.close();
          this.sent++;
          controller.enqueue(encoder.encode(chunk));
        },
        cancel: () => {
          this.cancelled++;
        },
      },
      { highWaterMark: 0 },
    );
    return new Response(stream, { headers: { "content-type": "text/event-stream", "x-request-id": "r1" } });
  };
}
