import { decode, deflate, encode, fromBase64, inflate, toBase64, TooLong } from "./core.js";
import type { Choices, Given } from "./model.js";

/** Longer links are not made: some programs truncate them. */
const LONGEST = 60_000;

/** The largest input of a link, in bytes. */
const MOST = 16 << 20;

/** The settings of an input that has none. */
export const DEFAULT: Choices = { dialect: null, no_reasoning: false, stop: "broken", unclosed: "reject" };

/** What a link or the command holds: a text, or its bytes if they are not UTF-8. */
interface Stored {
  text?: string;
  bytes?: number[];
  tools?: string;
  settings?: Choices | null;
}

const isText = (it: unknown): boolean => typeof it === "string";
const isSwitch = (it: unknown): boolean => typeof it === "boolean";
const isObject = (it: unknown): boolean => typeof it === "object" && it !== null && !Array.isArray(it);
const isByte = (it: unknown): boolean => Number.isInteger(it) && Number(it) >= 0 && Number(it) <= 255;
const isPair = (it: unknown): boolean => Array.isArray(it) && it.length === 2 && it.every(isText);
const either = (...checks: Check[]): Check => (it) => checks.some((check) => check(it));
const only = (...values: unknown[]): Check => (it) => values.includes(it);
type Check = (it: unknown) => boolean;

const textOrNull = either(isText, only(null));
const DIALECT: Record<string, Check> = {
  syntax: only("block", "emoji", "auto", null), key: textOrNull, start_prefix: textOrNull, arg_prefix: textOrNull, end_prefix: textOrNull,
  markers: only("line-start", "anywhere"), reasoning: either(isPair, only(null)), strict: isSwitch, self_closing: isSwitch, escaped: isSwitch, in_reasoning: isSwitch,
};
const SETTINGS: Record<string, Check> = {
  dialect: either(only(null), (it) => isOf(it, DIALECT)), no_reasoning: isSwitch,
  stop: only("natural", "end_of_file", "length", "broken"), unclosed: only("reject", "run"),
};
const STORED: Record<string, Check> = {
  text: isText, bytes: (it) => Array.isArray(it) && it.every(isByte), tools: isText,
  settings: either(only(null), (it) => isOf(it, SETTINGS)),
};

/** Whether this is an object with only these members, all of them valid. */
function isOf(it: unknown, members: Record<string, Check>): boolean {
  return isObject(it) && Object.entries(it as object).every(([name, member]) => Object.hasOwn(members, name) && members[name]!(member));
}

/** What JSON of a link or of the command holds. An error says that it holds something else. */
export function toGiven(stored: unknown): Given {
  if (!isOf(stored, STORED)) throw new Error("the input has an unknown shape");
  const { text, bytes: given, tools, settings } = stored as Stored;
  const bytes = given === undefined ? encode(text ?? "") : Uint8Array.from(given);
  return { bytes, tools: tools ?? "", settings: { ...DEFAULT, ...settings } };
}

function toStored({ bytes, tools, settings }: Given): Stored {
  const text = decode(bytes);
  const isUtf8 = encode(text).length === bytes.length && !text.includes("\ufffd");
  const isDefault = JSON.stringify(settings) === JSON.stringify(DEFAULT);
  return {
    ...(isUtf8 ? { text } : { bytes: [...bytes] }),
    ...(tools === "" ? {} : { tools }),
    ...(isDefault ? {} : { settings }),
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
export interface Place {
  given: Given | null;
  view: string | null;
  call: number | null;
  /** Why the input cannot be shown. */
  damage: string | null;
}

export async function fromFragment(fragment: string): Promise<Place> {
  const place: Place = { given: null, view: null, call: null, damage: null };
  if (fragment === "" || fragment === "#") return place;
  const [isLink, packed, view = null, call] = /^#(?:([\w-]{8,})\/)?([a-z]{1,12})?(?:\/call-(\d+))?$/.exec(fragment) ?? [];
  if (isLink === undefined) return { ...place, damage: "This link is damaged: its end is missing, or a part was changed." };
  Object.assign(place, { view, call: call === undefined ? null : Number(call) - 1 });
  if (packed === undefined) return place;
  try {
    const bytes = await inflate(fromBase64(packed.replaceAll("-", "+").replaceAll("_", "/")), MOST);
    return { ...place, given: toGiven(JSON.parse(decode(bytes))) };
  } catch (error) {
    const reason = error instanceof TooLong ? `its input has more than ${MOST.toLocaleString("en")} bytes` : "a part of it is missing or was changed";
    return { ...place, damage: `This link is damaged: ${reason}.` };
  }
}
