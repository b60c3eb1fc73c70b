// A program without the types of a browser or of Node.

import { EventStream, Parser, Toolbox, events, parse, tool, type Call, type ParserEvent } from "plaincall";
import { plaincallFetch } from "plaincall/openai";
import { parse as small } from "plaincall/parse";

const add = tool({
  name: "add",
  input: { type: "object", properties: { a: { type: "number" } }, additionalProperties: false },
  execute: (given) => given["a"],
});
const toolbox = new Toolbox([add]);
const calls: readonly Call[] = toolbox.parse("text").calls;
const parser = new Parser({ syntax: "block" });
const found: ParserEvent[] = [...parser.feed("a"), ...parser.finish()];
for await (const event of events(["a", "b"])) found.push(event);
export const all = [calls, found, parse("a"), small("a"), plaincallFetch({ repairRounds: 1 }), new EventStream()];
parser[Symbol.dispose]();

// Its own type with a name of newer libraries.
declare global {
  interface Disposable {
    dispose(): void;
  }
}
export const own: Disposable = { dispose: () => undefined };
