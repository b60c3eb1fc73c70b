import { decode, encode } from "./core.js";
import { DEFAULT } from "./link.js";
import { prose } from "./prose.js";
import { contentOf } from "./response.js";
import type { Choices, Detected, Dialect, Given } from "./model.js";

const TOML = "this page reads no TOML; `plaincall inspect -t tools.toml` opens a page with its tools";
/** How long the page waits after a key, in milliseconds: as long as the last input took, within these limits. */
const [SHORTEST, LONGEST] = [40, 150];

/** From this length on, in characters, the page inserts a text that is pasted. */
const LONG = 20_000;

const TEXT_FIELDS = ["key", "start_prefix", "arg_prefix", "end_prefix"] as const;
const SWITCHES = ["escaped", "strict", "self_closing", "in_reasoning"] as const;

/** The texts of the examples by name, and their tools. */
export type Samples = Record<Sample | "tools", string>;
type Sample = "valid" | "invalid" | "truncated";
const SAMPLES = new Map<string, Sample>();

/** The example that an input shows, unless it was changed. */
export function isSample({ bytes }: Given): Sample | null {
  return bytes.length > LONGEST_SAMPLE ? null : SAMPLES.get(decode(bytes)) ?? null;
}

const LONGEST_SAMPLE = 4096;

/** Returns whether the input contains tool definitions. */
const isTools = ({ is_tools: areTools, is_log: isLog }: Detected): boolean => areTools && !isLog;

/** The reply, the tools and the settings, as a person gives them. */
export class Input {
  #bytes: Uint8Array = new Uint8Array();
  /** A dialect that a person may choose. */
  #offer: Dialect | string | null = null;
  /** What was there before it was cleared. */
  #cleared: Given | null = null;
  /** The tools of an example over which a person typed another reply. */
  #dropped = "";
  /** Whether the field has a newer reply. */
  #isTyped = false;
  #pause = SHORTEST;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #reply = byId("reply");
  readonly #definitions = byId("definitions");
  readonly #form = byId("settings");
  readonly #onChange: () => void;
  readonly #detect: (bytes: Uint8Array) => Detected;
  readonly #samples: Samples;
  /** Called when a new reply should be shown. */
  onNew: () => void = () => {};
  /** Called with a mistake of the input, after its change. */
  onProblem: (problem: string) => void = () => {};

  constructor(onChange: () => void, detect: (bytes: Uint8Array) => Detected, samples: Samples) {
    this.#onChange = onChange;
    this.#detect = detect;
    this.#samples = samples;
    for (const name of ["valid", "invalid", "truncated"] as const) SAMPLES.set(samples[name], name);
    this.#reply.addEventListener("input", (event) => {
      this.#isTyped = true;
      const { inputType } = event as InputEvent;
      if (inputType === "historyUndo" && this.#dropped !== "" && SAMPLES.has(this.#reply.value)) this.#definitions.value = this.#dropped;
      if (inputType === "historyRedo" && this.#definitions.value === this.#dropped) this.#definitions.value = "";
      this.#forgetCleared();
      this.#soon();
    });
    this.#reply.addEventListener("beforeinput", ({ inputType }) => {
      if (!this.#isAllSelected || inputType.startsWith("history")) return;
      const { tools } = this.#own;
      if (tools !== this.#definitions.value) this.#dropped = this.#definitions.value;
      this.#definitions.value = tools;
    });
    this.#reply.addEventListener("paste", (event) => this.#paste(event));
    this.#definitions.addEventListener("input", () => this.#soon());
    this.#form.addEventListener("input", () => this.#soon());
    this.#form.addEventListener("submit", (event) => event.preventDefault());
    byId("clear").addEventListener("click", () => {
      const { given } = this;
      this.set({ ...given, bytes: new Uint8Array() });
      this.#reply.focus();
      this.#cleared = given;
      byId("undo").hidden = false;
    });
    byId("undo").addEventListener("click", () => this.#cleared && this.set(this.#cleared));
    byId("example").addEventListener("click", () => this.#show(() => this.showSample("invalid")));
    byId("samples").addEventListener("click", (event) => {
      const name = around(event, "[data-sample]")?.dataset["sample"] as Sample | undefined;
      if (name !== undefined) this.#show(() => this.showSample(name));
    });
    byId("own").addEventListener("click", () => {
      view("input");
      this.#reply.focus();
      this.#reply.select();
    });
    byId("offer-use").addEventListener("click", () => {
      const { given } = this;
      const offer = this.#offer;
      this.#show(() => this.set(typeof offer === "string" ? { ...given, bytes: encode(offer) } : { ...given, settings: { ...given.settings, dialect: offer } }));
      // The button is gone.
      document.querySelector<HTMLElement>("[aria-selected=true]")?.focus();
    });
    document.addEventListener("paste", (event) => {
      const text = event.clipboardData?.getData("text/plain") ?? "";
      if (text === "" || around(event, "input, textarea, select") !== null) return;
      event.preventDefault();
      const bytes = encode(text);
      this.#show(() => this.set(this.#isTools(bytes) ? { ...this.given, tools: text } : { ...this.#own, bytes }));
    });
    const file = byId("file");
    byId("open").addEventListener("click", () => file.click());
    file.addEventListener("change", () => {
      void this.#take(file.files);
      file.value = "";
    });
    this.#acceptDrops();
  }

  get given(): Given {
    if (this.#isTyped) this.#bytes = encode(this.#reply.value);
    this.#isTyped = false;
    return { bytes: this.#bytes, tools: this.#definitions.value, settings: this.#settings() };
  }

  /** The input without the tools of an example, which another reply does not have. */
  get #own(): Given {
    const { given } = this;
    const isOfSample = isSample(given) !== null || given.bytes.length === 0;
    return isOfSample && given.tools === this.#samples.tools ? { ...given, tools: "" } : given;
  }

  /** Whether other text would replace the whole reply. */
  get #isAllSelected(): boolean {
    const { selectionStart, selectionEnd, textLength } = this.#reply;
    return selectionStart === 0 && selectionEnd === textLength;
  }

  get #isDetected(): boolean {
    return this.#field("detect").checked;
  }

  /** Returns whether a text contains tool definitions. A text that cannot be read is a reply, whose error the page shows. */
  #isTools(bytes: Uint8Array): boolean {
    try {
      return isTools(this.#detect(bytes));
    } catch {
      return false;
    }
  }

  /** Shows an example with its tools. */
  showSample(name: Sample): void {
    this.set({ bytes: encode(this.#samples[name]), tools: this.#samples.tools, settings: DEFAULT });
  }

  #show(change: () => void): void {
    change();
    this.onNew();
  }

  /** Shows an input. */
  set({ bytes, tools, settings }: Given): void {
    clearTimeout(this.#timer);
    this.#bytes = bytes;
    this.#isTyped = false;
    this.#forgetCleared();
    this.#reply.value = decode(bytes);
    this.#definitions.value = tools;
    this.#showSettings(settings);
    this.#onChange();
  }

  /** Shows what was detected. */
  note(detected: Detected | null): void {
    const isDetected = this.#isDetected;
    if (isDetected && detected !== null) this.#showDialect(detected.dialect);
    for (const field of byId("dialect").querySelectorAll("input, select") as NodeListOf<HTMLInputElement>) field.disabled = isDetected;
    const found = detected === null || detected.found.length === 0 ? "" : `Detected: ${detected.found.join(", ")}.`;
    const notes = [
      this.#bytes.length > 0 ? `${this.#bytes.length.toLocaleString("en")} bytes.` : "",
      found,
      this.#hasCarriageReturns() ? "Some lines end with CR LF; an edit in this field makes them LF." : "",
    ];
    byId("reply-note").textContent = seen(notes.filter(Boolean).join(" "));
    const content = detected?.is_log ? null : contentOf(this.#bytes);
    this.#offer = content ?? detected?.offer ?? null;
    byId("offer").hidden = this.#offer === null;
    byId("offer-use").textContent = content === null ? "Use them" : "Read its text";
    const note = content === null
      ? `No known marker. The reply seems to have markers that begin like \`${detected?.offer?.start_prefix ?? ""}\`.`
      : "This is the response of an API, not the text of a model.";
    byId("offer-note").replaceChildren(...prose("span", "", note).childNodes);
  }

  #forgetCleared(): void {
    this.#cleared = null;
    byId("undo").hidden = true;
  }

  #hasCarriageReturns(): boolean {
    const at = this.#bytes.indexOf(13);
    return at >= 0 && this.#bytes[at + 1] === 10;
  }

  #soon(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      const begun = performance.now();
      this.#onChange();
      this.#pause = Math.min(Math.max(performance.now() - begun, SHORTEST), LONGEST);
    }, this.#pause);
  }

  #field(name: string): HTMLInputElement {
    return this.#form.elements.namedItem(name) as HTMLInputElement;
  }

  #settings(): Choices {
    const dialect: Dialect = {};
    const syntax = this.#field("syntax").value;
    if (syntax !== "") dialect.syntax = syntax;
    for (const name of TEXT_FIELDS) if (this.#field(name).value !== "") dialect[name] = this.#field(name).value;
    for (const name of SWITCHES) if (this.#field(name).checked) dialect[name] = true;
    if (this.#field("markers").checked) dialect.markers = "anywhere";
    const reasoning: [string, string] = [this.#field("reasoning_open").value, this.#field("reasoning_close").value];
    if (reasoning.some((marker) => marker !== "")) dialect.reasoning = reasoning;
    return { dialect: this.#isDetected ? null : dialect, no_reasoning: this.#field("no_reasoning").checked, stop: this.#field("stop").value, unclosed: this.#field("unclosed").value };
  }

  #showSettings(settings: Choices): void {
    const isDefault = JSON.stringify(settings) === JSON.stringify(DEFAULT);
    if (!isDefault) byId("options").open = true;
    this.#showChoices(settings);
  }

  #showChoices({ dialect, no_reasoning: hasNone, stop, unclosed }: Choices): void {
    this.#field("detect").checked = dialect === null;
    this.#showDialect(dialect ?? {});
    this.#field("no_reasoning").checked = hasNone;
    this.#field("stop").value = stop;
    this.#field("unclosed").value = unclosed;
  }

  #showDialect(dialect: Dialect): void {
    this.#field("syntax").value = dialect.syntax === "auto" ? "" : dialect.syntax ?? "";
    for (const name of TEXT_FIELDS) this.#field(name).value = dialect[name] ?? "";
    for (const name of SWITCHES) this.#field(name).checked = dialect[name] === true;
    this.#field("markers").checked = dialect.markers === "anywhere";
    [this.#field("reasoning_open").value, this.#field("reasoning_close").value] = dialect.reasoning ?? ["", ""];
  }

  /**
   * Takes a text that replaces all of the reply with its own line ends, which a text area would change, and a long text, whose lines
   * a text area inserts one by one.
   */
  #paste(event: ClipboardEvent): void {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    const isAll = this.#isAllSelected;
    if (text.length <= LONG && !(isAll && text.includes("\r"))) return;
    event.preventDefault();
    if (isAll) return this.set({ ...this.#own, bytes: encode(text) });
    this.#reply.setRangeText(text, this.#reply.selectionStart, this.#reply.selectionEnd, "end");
    this.#reply.dispatchEvent(new Event("input"));
  }

  #acceptDrops(): void {
    const shade = byId("drop");
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") === true;
    document.addEventListener("dragover", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      shade.hidden = false;
    });
    document.addEventListener("dragleave", (event) => {
      if (event.relatedTarget === null) shade.hidden = true;
    });
    document.addEventListener("drop", (event) => {
      shade.hidden = true;
      if (!hasFiles(event)) return;
      event.preventDefault();
      void this.#take(event.dataTransfer?.files ?? null);
    });
  }

  /** Takes files. Their content decides what they are: a log, definitions of tools, or a reply. */
  async #take(list: FileList | null): Promise<void> {
    // The list of an input element changes with it.
    const files = [...(list ?? [])];
    const { given } = this;
    let next = given;
    const problems: string[] = [];
    for (const file of files) {
      let bytes: Uint8Array;
      let detected: Detected;
      try {
        bytes = new Uint8Array(await file.arrayBuffer());
        detected = this.#detect(bytes);
      } catch {
        problems.push(`\`${file.name}\` cannot be read: drop a file that you may read, and no folder.`);
        continue;
      }
      // A reply may begin like tools, and quote them.
      if (/\.toml$/i.test(file.name)) problems.push(`\`${file.name}\` cannot be read: ${TOML}`);
      else if (/\.json$/i.test(file.name) && detected.tools_error !== null) problems.push(`\`${file.name}\` cannot be read: ${detected.tools_error}`);
      else if (isTools(detected)) next = { ...next, tools: decode(bytes) };
      else next = { ...next, tools: next.tools === given.tools ? this.#own.tools : next.tools, bytes };
    }
    // Also if no file can be used: an edit may wait.
    this.set(next);
    for (const problem of problems) this.onProblem(problem);
  }
}
