/** The text of a model in the response of an API, whole or streamed. */

import { decode } from "./core.js";

const MOST = 8 << 20;

/** Returns the model's text in a response of the APIs of OpenAI, Anthropic, Gemini or Ollama, or null if the bytes are none. */
export function contentOf(bytes: Uint8Array): string | null {
  const first = bytes.find((byte) => byte > 32);
  // An object, or a field of an event stream: `data:`, `event:` or `id:`.
  if (bytes.length > MOST || first === undefined || !"{dei".includes(String.fromCharCode(first))) return null;
  const text = decode(bytes);
  const whole = parsed(text);
  const lines = text.split(/\r?\n/).map((line) => line.replace(/^data:\s*/, ""));
  const documents = whole !== undefined ? [whole] : lines.filter((line) => line.startsWith("{")).map(parsed);
  const pieces = documents.flatMap(piecesOf);
  return pieces.length === 0 ? null : pieces.join("");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

const list = (it: unknown): any[] => (Array.isArray(it) ? it : []);

/** The texts of one document: a response, or an event of a stream. */
function piecesOf(document: any): string[] {
  if (typeof document !== "object" || document === null) return [];
  const { choices, content, output, candidates, delta, message, response, type } = document;
  const found: unknown[] = [
    ...list(choices).flatMap((choice) => [choice?.message?.content, choice?.delta?.content, choice?.text]),
    ...(type === "message" || document.stop_reason !== undefined ? list(content).map((block) => block?.text) : []),
    ...list(output).flatMap((item) => list(item?.content).map((part) => part?.text)),
    ...list(candidates).flatMap((candidate) => list(candidate?.content?.parts).map((part) => part?.text)),
    type === "content_block_delta" ? delta?.text : undefined,
    type === "response.output_text.delta" ? delta : undefined,
    document.done === undefined ? undefined : message?.content ?? response,
  ];
  return found.filter((piece): piece is string => typeof piece === "string" && piece !== "");
}
