import { decode, deflate, encode, fromBase64, inflate, toBase64 } from "./core.js";
import type { Given, Settings } from "./model.js";

/** Longer links are not made: some programs truncate them. */
const LONGEST = 60_000;

/** What a link or the command holds: a text, or its bytes if they are not UTF-8. */
export interface Stored {
  text?: string;
  bytes?: number[];
  tools?: string;
  settings?: Settings | null;
}

export function toGiven({ text, bytes: given, tools, settings }: Stored): Given {
  const bytes = given === undefined ? encode(text ?? "") : Uint8Array.from(given);
  return { bytes, tools: tools ?? "", settings: settings ?? null };
}

function toStored({ bytes, tools, settings }: Given): Stored {
  const text = decode(bytes);
  const isText = encode(text).length === bytes.length && !text.includes("\ufffd");
  return {
    ...(isText ? { text } : { bytes: [...bytes] }),
    ...(tools === "" ? {} : { tools }),
    ...(settings === null ? {} : { settings }),
  };
}

/** The beginning of the page's fragment for this input, or nothing if it would be too long. */
export async function toFragment(given: Given): Promise<string> {
  if (given.bytes.length === 0 && given.tools === "") return "";
  const packed = await deflate(encode(JSON.stringify(toStored(given))) as Uint8Array<ArrayBuffer>);
  const text = toBase64(packed).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return text.length > LONGEST ? "" : `${text}/`;
}

/** What a fragment names: the input, a view and a call. */
export async function fromFragment(fragment: string): Promise<{ given: Given | null; view: string | null; call: number | null }> {
  const [, packed, view = null, call] = /^#(?:([\w-]{8,})\/)?([a-z]+)?(?:\/call-(\d+))?$/.exec(fragment) ?? [];
  const place = { view, call: call === undefined ? null : Number(call) };
  if (packed === undefined) return { given: null, ...place };
  try {
    const bytes = await inflate(fromBase64(packed.replaceAll("-", "+").replaceAll("_", "/")));
    return { given: toGiven(JSON.parse(decode(bytes)) as Stored), ...place };
  } catch {
    throw new Error("This link is damaged: a part of it is missing.");
  }
}
