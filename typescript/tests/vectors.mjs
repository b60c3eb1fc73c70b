// Compares the events and calls of this package with vectors, for every split. It runs in every runtime.

const DELTAS = ["text", "reasoning", "value_delta", "ignored"];
// Longer texts are split at some positions only.
const EVERY_SPLIT = 300;

/** Joins adjacent deltas. */
function merged(events) {
  const merged = [];
  for (const event of events) {
    const last = merged.at(-1);
    if (DELTAS.includes(event.type) && last?.type === event.type && last.end === event.start) {
      merged[merged.length - 1] = { ...last, end: event.end, text: last.text + event.text, source: last.source + event.source };
    } else {
      merged.push(event);
    }
  }
  return merged;
}

/** Returns an event in the form of `plaincall parse --events`. */
function line({ start, end, source, ...event }) {
  const line = { type: event.type, span: [start, end] };
  for (const [name, value] of Object.entries(event)) {
    const isOfOther = name === (event.syntax === "emoji" ? "id" : "rawArgs") || (event.syntax === "emoji" && name === "dependencies");
    if (isOfOther || (name === "pointer" && value === null)) continue;
    line[name === "rawArgs" ? "raw_args" : name] = value;
  }
  if (["call_start", "value_start", "value_end", "call_end"].includes(event.type)) line.source = source;
  return line;
}

/** Returns a text with its keys in one order. */
function ordered(value) {
  return JSON.stringify(value, (_, inner) =>
    inner !== null && typeof inner === "object" && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

function equal(id, found, expected) {
  const [left, right] = [ordered(found), ordered(expected)];
  if (left !== right) throw new Error(`${id}\nfound    ${left}\nexpected ${right}`);
}

function read(api, chunks, dialect) {
  const parser = new api.Parser(dialect);
  return [...chunks.flatMap((chunk) => parser.feed(chunk)), ...parser.finish()];
}

async function all(events) {
  const found = [];
  for await (const event of events) found.push(event);
  return found;
}

function streamOf(chunks) {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
}

/** Checks one vector, and returns the number of splits. */
async function check(api, { id, text, dialect, events, document }) {
  const bytes = new TextEncoder().encode(text);
  const whole = read(api, [text], dialect);
  if (events !== undefined) equal(id, whole.map(line), events);
  let at = 0;
  for (const event of whole) {
    if (event.type === "diagnostic") continue;
    const source = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.slice(event.start, event.end));
    equal(`${id}: source`, [event.start, event.source], [at, source]);
    at = event.end;
  }
  equal(`${id}: end`, at, bytes.length);
  const expected = merged(whole);
  let splits = 0;
  const split = (chunks) => {
    splits++;
    equal(`${id}: split ${chunks[0]?.length}`, merged(read(api, chunks, dialect)), expected);
  };
  for (const content of [bytes, text]) {
    const step = Math.max(1, Math.floor(content.length / EVERY_SPLIT));
    for (let place = 0; place <= content.length; place += step) split([content.slice(0, place), content.slice(place)]);
    split(Array.from({ length: content.length }, (_, place) => content.slice(place, place + 1)));
  }
  // Most short chunks do not enter the module, so what comes before and after them varies.
  for (let seed = 1; seed <= 8; seed++) split(cut(seed, text, bytes));
  if (api.Toolbox !== undefined) checkReader(api, id, text, dialect, bytes);
  const characters = [...text];
  equal(`${id}: events`, merged(await all(api.events(characters, dialect))), expected);
  equal(`${id}: stream`, merged(await all(api.events(streamOf(characters), dialect))), expected);
  const piped = streamOf([bytes]).pipeThrough(new api.EventStream(dialect));
  equal(`${id}: pipe`, merged(await all(piped)), expected);
  if (document !== undefined) checkDocument(id, api.parse(text, dialect), document);
  return splits;
}

/** Compares the items of a reader in chunks with those of the whole text. */
function checkReader(api, id, text, dialect, bytes) {
  const box = new api.Toolbox([{ name: "add", input_schema: { type: "object" } }], { dialect });
  const reader = box.reader();
  const items = (chunks) => {
    const found = [...chunks.flatMap((chunk) => reader.feed(chunk)), ...reader.finish({ stop: "stop" })];
    reader.beginReply();
    return found.map((item) => ({ ...item, id: null, index: 0 }));
  };
  const calls = box.parse(text, { stop: "stop" }).calls.map(({ argumentsJson, body, start }) => [argumentsJson, body, start]);
  for (let seed = 1; seed <= 8; seed++) {
    // A reasoning end marker without a beginning rejects the calls of its chunk only.
    const found = items(cut(seed, text, bytes)).filter(({ type }) => type === "call");
    equal(`${id}: reader`, found.map(({ argumentsJson, body, start }) => [argumentsJson, body, start]), calls);
  }
  const events = (chunks) => merged(items(chunks).filter(({ type }) => type !== "call" && type !== "diagnostic"));
  equal(`${id}: reader's events`, events(cut(3, text, bytes)), events([text]));
  reader[Symbol.dispose]();
  box[Symbol.dispose]();
}

/** Cuts a text at random into chunks of up to 8 characters, some of them as bytes, and between the halves of characters. */
function cut(seed, text, bytes) {
  let state = seed;
  const below = (most) => ((state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0) >>> 16) % most;
  const chunks = [];
  const content = seed % 4 === 0 ? bytes : text;
  for (let at = 0; at < content.length; ) {
    const end = at + 1 + below(8);
    const chunk = content.slice(at, end);
    // The halves of a character are joined in text only.
    const isBytes = typeof chunk === "string" && chunk.isWellFormed() && below(6) === 0;
    chunks.push(isBytes ? new TextEncoder().encode(chunk) : chunk);
    at = end;
  }
  return chunks;
}

function checkDocument(id, found, expected) {
  const spans = (segments) => segments.map(({ type, span, start, end }) => [type, ...(span ?? [start, end])]);
  equal(`${id}: segments`, spans(found.segments), spans(expected.segments));
  const calls = expected.segments.filter(({ type }) => type === "call");
  equal(
    `${id}: calls`,
    found.calls.map(({ name, id, dependencies, arguments: given, syntax, termination, rawArgs, body }) =>
      syntax === "emoji" ? { name, rawArgs, body, termination } : { name, id, dependencies, given, termination },
    ),
    calls.map(({ call, termination }) => {
      const { tool_name: tool, raw_args: rawArgs, body } = call;
      if (tool !== undefined) return { name: tool, rawArgs, body, termination };
      const { gadgetName: name, invocationId: id, dependencies, parameters, parseError } = call;
      return { name, id, dependencies, given: parseError === undefined ? parameters : null, termination };
    }),
  );
  const codes = (diagnostics) => diagnostics.map(({ code, message }) => [code, message]);
  equal(`${id}: diagnostics`, codes(found.diagnostics), codes(expected.diagnostics));
}

/** Checks all vectors. Returns their number and that of the splits. */
export async function checkVectors(api, vectors) {
  let splits = 0;
  for (const vector of vectors) splits += await check(api, vector);
  return `${vectors.length} texts, ${splits} splits`;
}
