import { withoutCalls } from "./diagnostics.js";
import { prose } from "./prose.js";
import type { CallView, Shown, Value } from "./model.js";

/** So many calls are open at first. */
const FEW = 40;
/** So many calls are laid out together, when one of them comes into sight. */
const GROUP = 50;

/** The height of a closed call, in pixels. */
const CLOSED = 42;

/** An object, a list or a value of a call's arguments. */
interface Node {
  children: Map<string, Node>;
  value: Value | null;
}

/** The calls as a tree, with their arguments. */
export class Tree {
  readonly #panel = byId("calls");
  readonly #goTo: (byte: number) => void;
  #views: CallView[] = [];
  /** The groups that are not made yet. */
  readonly #fills = new Map<Element, () => void>();
  readonly #observer = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) this.#fill(target);
  }, { rootMargin: "600px" });

  /** `goTo` shows a byte in the source. */
  constructor(goTo: (byte: number) => void) {
    this.#goTo = goTo;
    moreDetails.push((call) => {
      const found = this.#views[call.number];
      return found ? [part("Arguments, and how each value was read", this.#arguments(found))] : [];
    });
  }

  /** Takes the views of calls that are not open yet. */
  prepare(views: CallView[]): void {
    this.#views = views;
  }

  /** Shows the open calls. */
  show(shown: Shown): void {
    const intro = shown.reply.tools === null
      ? "Without tools, values are converted by their text alone, and no argument is checked. Paste the tools anywhere on this page."
      : "A call that may run does so if every call before it succeeds. In a run, calls of tools that may change something also need a rule or an approval.";
    const groups: HTMLElement[] = [];
    for (let at = 0; at < calls.length; at += GROUP) {
      const group = make("div", "call-group");
      const fill = () => group.replaceChildren(...calls.slice(at, at + GROUP).map((call) => this.#call(call, this.#views[call.number]!)));
      // The first groups may be in sight; the others are made when they are.
      if (at < 2 * GROUP) fill();
      else {
        this.#fills.set(group, fill);
        group.style.minHeight = `${Math.min(GROUP, calls.length - at) * CLOSED}px`;
        this.#observer.observe(group);
      }
      groups.push(group);
    }
    this.#panel.replaceChildren(...(calls.length === 0 ? withoutCalls(shown) : [make("p", "hint", intro)]), ...groups);
  }

  #fill(group: Element): void {
    this.#observer.unobserve(group);
    this.#fills.get(group)?.();
    this.#fills.delete(group);
    (group as HTMLElement).style.minHeight = "";
  }

  clear(): void {
    this.#observer.disconnect();
    this.#fills.clear();
    this.#views = [];
    this.#panel.replaceChildren();
  }

  #call(call: Call, found: CallView): HTMLElement {
    const [sign, word] = KINDS[kind(call)]!;
    const summary = make("summary", kind(call), null,
      make("span", "sign", sign), " ", make("span", "name", call.name), " ", make("span", "id", call.id), " ", make("span", "verdict", word));
    const element = make("details", "call-node", null, summary);
    element.open = calls.length <= FEW;
    if (element.open) element.append(...this.#content(call, found));
    else element.addEventListener("toggle", () => element.append(...this.#content(call, found)), { once: true });
    return element;
  }

  #content(call: Call, found: CallView): HTMLElement[] {
    const place = make("button", "link-button", `line ${found.line}`);
    place.type = "button";
    place.addEventListener("click", () => {
      choose(call.number, "tree");
      this.#goTo(found.start);
    });
    const facts = make("p", "hint", null, `${found.syntax} syntax, `, place, `, ${found.is_id_automatic ? "the id is automatic" : "the model wrote the id"}, ${ENDINGS[found.termination] ?? found.termination}`);
    const reason = why(call);
    const dependencies = call.dependencies.map(({ id, call: cause }) => link(cause, id));
    return [
      facts,
      ...(reason ? [prose("p", `message ${kind(call)}`, reason)] : []),
      ...found.problems.filter((problem) => !reason?.includes(problem)).map((problem) => prose("p", "message error", problem)),
      ...(call.held ? [prose("p", "message held", `This call ${call.held}.`)] : []),
      ...(dependencies.length > 0 ? [make("p", "links", null, "depends on ", ...dependencies)] : []),
      this.#arguments(found),
    ];
  }

  #arguments({ values }: CallView): HTMLElement {
    if (values.length === 0) return make("p", "hint", "no arguments");
    const root: Node = { children: new Map(), value: null };
    for (const value of values) {
      let node = root;
      for (const segment of value.pointer.split("/")) {
        const child: Node = node.children.get(segment) ?? { children: new Map(), value: null };
        node.children.set(segment, child);
        node = child;
      }
      node.value = value;
    }
    return this.#members(root);
  }

  #members(node: Node): HTMLElement {
    return make("ul", "members", null, ...[...node.children].map(([segment, child]) => {
      const name = make("span", "pointer", segment.replaceAll("~1", "/").replaceAll("~0", "~"));
      if (child.value === null) return make("li", "", null, name, this.#members(child));
      return make("li", "", null, name, ...this.#value(child.value));
    }));
  }

  #value(found: Value): HTMLElement[] {
    const place = make("button", "link-button", "show in the reply");
    place.type = "button";
    place.setAttribute("aria-label", `show in the reply: ${found.pointer}`);
    place.addEventListener("click", () => this.#goTo(found.start));
    const json = found.json === null ? [make("span", "hint", "no value, because the call is not valid")] : value(found.json, "json");
    const rows: [string, HTMLElement][] = [
      ["declared", found.declared === null ? make("span", "hint", "no type") : make("span", "", found.declared)],
      ["written", make("div", "", null, ...value(found.text))],
      ["value", make("div", "", null, ...json)],
    ];
    if (found.rule !== null) rows.push(["because", make("span", "because", found.rule)]);
    return [place, make("dl", "value-of", null, ...rows.flatMap(([name, content]) => [make("dt", "", name), make("dd", "", null, content)]))];
  }
}

/** How calls end. */
const ENDINGS: Record<string, string> = {
  explicit: "closed by an end marker",
  next_call: "not closed: the next call begins",
  end_of_stream: "not closed: the text ends",
};
