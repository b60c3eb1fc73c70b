/** Fixes of the command line, and the controls of this page for them. */
const CONTROLS: [RegExp, string][] = [
  [/`--dialect no-reasoning`/g, "“The reply has no reasoning”"],
  [/`--dialect in-reasoning`/g, "“The reply starts inside reasoning”"],
  [/`--dialect anywhere`/g, "“Markers count anywhere in a line”"],
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

/** A sentence whose options of the command line are controls of this page. */
export function prose<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, className: string, text: string, ...before: (globalThis.Node | string)[]): HTMLElementTagNameMap[Tag] {
  return sentence(tag, className, CONTROLS.reduce((all, [option, control]) => all.replace(option, control), text), ...before);
}
