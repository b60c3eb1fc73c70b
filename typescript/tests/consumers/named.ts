// Calls and results have the types of their tools; what is no error at run time must be none here, and the other way round.

import { Toolbox, execute, parse, tool, type Call, type ParsedDocument, type ToolDefinition } from "plaincall";
import { init, type ParserEvent } from "plaincall/parse";
import { z } from "zod";

const add = tool({ name: "add", input: z.object({ a: z.number(), b: z.number().optional() }), execute: ({ a, b = 0 }) => a + b });
const find = tool({ name: "find", input: z.object({ at: z.string().transform(Number) }), execute: ({ at }) => ({ found: at + 1 }) });
const listed = new Toolbox([add, find]);
const record = new Toolbox({
  add: tool({ input: z.object({ a: z.number() }), execute: ({ a }) => a }),
  find,
});

for (const toolbox of [listed, record] as const) {
  for (const call of toolbox.parse("", { stop: "tool_calls" }).calls) {
    if (call.name === "add") {
      const a: number | undefined = call.arguments?.a;
      // @ts-expect-error: the arguments of an invalid call are null.
      const b: number = call.arguments.a;
      // @ts-expect-error: an argument of another tool.
      const at = call.arguments?.at;
      console.log(a, b, at);
    }
    if (call.mayRun && call.name === "find") {
      // Before the schema changes it.
      const at: string = call.arguments.at;
      // @ts-expect-error: it is text.
      const wrong: number = call.arguments.at;
      console.log(at, wrong);
    }
    // @ts-expect-error: no tool has this name.
    if (call.mayRun && call.name === "sub") console.log(call);
  }
  for (const item of toolbox.reader().feed("a")) {
    if (item.type === "call" && item.mayRun && item.name === "add") console.log(item.arguments.a.toFixed());
  }
  toolbox.history("a", toolbox.parse("").calls);
}

const results = await execute(listed, listed.parse("").calls, { approve: (call, { effect }) => effect === "read" || call.name });
for (const result of [...results, ...(await execute(record, record.parse("").calls))]) {
  if (result.status === "ok" && result.name === "find") console.log(result.value.found.toFixed());
  // @ts-expect-error: an error has no value of the tool.
  if (result.status === "error") console.log(result.value.found);
}
listed.results(results, listed.parse("").calls);

const definition: ToolDefinition = { name: "c", input_schema: {} };
const any: Toolbox = listed;
const mixed = new Toolbox([add, definition]).parse("").calls;
const general: readonly Call<string, any>[] = mixed;
declare const reason: string | null;
const choice: { finish_reason: "stop" | "length" | "tool_calls" | "content_filter" | null } = { finish_reason: null };
const documents: ParsedDocument[] = [parse("a", {}, { stop: reason }), parse("a", {}, { stop: choice.finish_reason })];
// The names of the DOM are those of the DOM.
const event: Event = new Event("click");
const text: Text = document.createTextNode("a");
declare const own: ParserEvent;
export const all = [any, general, documents, event, text, own, init(await WebAssembly.compile(new Uint8Array()))];
export const errors = [
  // @ts-expect-error: a number is no reason.
  () => parse("a", {}, { stop: 5 }),
  // @ts-expect-error: a record has tools.
  () => new Toolbox({ add: 5 }),
  // @ts-expect-error: a definition in a record has no function.
  () => new Toolbox({ c: definition }),
  // @ts-expect-error: an option that does not exist.
  () => parse("a", { sintax: "block" }),
];
