/** Fixes of the command line, and the controls of this page for them. */
const CONTROLS: [RegExp, string][] = [
  [/`--no-reasoning`/g, "“The reply has no reasoning”"],
  [/`--in-reasoning`/g, "“The reply starts inside reasoning”"],
  [/`--markers anywhere`/g, "“Markers count anywhere in a line”"],
  [/`--self-closing`/g, "“Self-closing emoji calls”"],
  [/`--escaped`/g, "“Escaped markers are content”"],
  [/`--strict`/g, "“Only the canonical emoji marker”"],
  [/`--complete`/g, "“It ended naturally”"],
  [/`--unclosed run`/g, "“Calls without an end marker: run”"],
  [/`--key`/g, "“Key”"],
  [/`--reasoning`/g, "“Reasoning begins with” and “ends with”"],
];

/** Long texts are split after about as many bytes, so that parts out of sight cost nothing. */
export const SLICE = 4000;
/** The height of a line, in pixels. */
const LINE = 20;

/** A part of a long text, whose layout waits until it comes into sight. */
export function slice(className: string, text: string): HTMLElement {
  const element = make("div", `slice ${className}`, text);
  element.style.containIntrinsicBlockSize = `auto ${text.split("\n").length * LINE}px`;
  return element;
}

/** A sentence: what stands between backticks is code, and options of the command line are controls of this page. */
export function prose<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, className: string, text: string, ...before: (globalThis.Node | string)[]): HTMLElementTagNameMap[Tag] {
  const worded = CONTROLS.reduce((all, [option, control]) => all.replace(option, control), text);
  const parts = worded.split("`");
  // An odd one out is a character of the text.
  if (parts.length % 2 === 0) parts.push(parts.splice(-2).join("`"));
  return make(tag, className, null, ...before, ...parts.map((part, at) => (at % 2 === 0 ? part : make("code", "", part))));
}
