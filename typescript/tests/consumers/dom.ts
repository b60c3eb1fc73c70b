// A program with the types of a browser or of Node.

import { EventStream, Toolbox, events, type ParserEvent } from "plaincall";
import { plaincallFetch } from "plaincall/openai";

const global: typeof fetch = plaincallFetch({ fetch });
const response: Response = await global("http://localhost", { method: "POST" });
const body: ReadableStream<Uint8Array> = response.body!;
const piped: ReadableStream<ParserEvent> = body.pipeThrough(new EventStream({ syntax: "block" }));
for await (const event of events(body)) console.log(event.type);
for await (const event of events(new Blob(["a"]).stream())) console.log(event.type);
using toolbox = new Toolbox([]);
export const all = [piped, toolbox];
