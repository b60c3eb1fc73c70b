import { decode, encode } from "./core.js";
import { DEFAULT } from "./link.js";
import type { Choices, Detected, Dialect, Given } from "./model.js";

const TOML = "this page reads no TOML; `plaincall inspect -t tools.toml` opens a page with its tools";
/** How long the page waits after a key, in milliseconds: as long as the last input took, within these limits. */
const [SHORTEST, LONGEST] = [40, 150];

const TEXT_FIELDS = ["key", "start_prefix", "arg_prefix", "end_prefix"] as const;
const SWITCHES = ["escaped", "strict", "self_closing", "in_reasoning"] as const;

/** The reply, the tools and the settings, as a person gives them. */
export class Input {
  #bytes: Uint8Array = new Uint8Array();
  /** A dialect that a person may choose. */
  #offer: Dialect | null = null;
  /** Whether the field has a newer reply. */
  #isTyped = false;
  #pause = SHORTEST;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #reply = byId("reply");
  readonly #definitions = byId("definitions");
  readonly #form = byId("settings");
  readonly #onChange: () => void;
  readonly #detect: (bytes: Uint8Array) => Detected;
  /** Called with a mistake of the input, after its change. */
  onProblem: (problem: string) => void = () => {};

  constructor(onChange: () => void, detect: (bytes: Uint8Array) => Detected, sample: Given) {
    this.#onChange = onChange;
    this.#detect = detect;
    this.#reply.addEventListener("input", () => {
      this.#isTyped = true;
      this.#soon();
    });
    this.#reply.addEventListener("paste", (event) => this.#paste(event));
    this.#definitions.addEventListener("input", () => this.#soon());
    this.#form.addEventListener("input", () => this.#soon());
    this.#form.addEventListener("submit", (event) => event.preventDefault());
    byId("clear").addEventListener("click", () => this.set({ bytes: new Uint8Array(), tools: "", settings: DEFAULT }));
    for (const id of ["example", "first-example"] as const) byId(id).addEventListener("click", () => this.set(sample));
    byId("offer-use").addEventListener("click", () => {
      const { given } = this;
      this.set({ ...given, settings: { ...given.settings, dialect: this.#offer } });
      // The button is gone.
      this.#field("start_prefix").focus();
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

  get #isDetected(): boolean {
    return this.#field("detect").checked;
  }

  /** Shows an input. */
  set({ bytes, tools, settings }: Given): void {
    clearTimeout(this.#timer);
    this.#bytes = bytes;
    this.#isTyped = false;
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
    this.#offer = detected?.offer ?? null;
    byId("offer").hidden = this.#offer === null;
    byId("offer-note").textContent = seen(`No known marker. The reply seems to have markers that begin like \`${this.#offer?.start_prefix ?? ""}\`.`);
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

  #showSettings({ dialect, no_reasoning: hasNone, stop, unclosed }: Choices): void {
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

  /** Takes a text that replaces all of the reply with its own line ends, which a text area would change. */
  #paste(event: ClipboardEvent): void {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    const isAll = this.#reply.selectionStart === 0 && this.#reply.selectionEnd === this.#reply.value.length;
    if (!isAll || !text.includes("\r")) return;
    event.preventDefault();
    this.set({ ...this.given, bytes: encode(text) });
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
    let next = this.given;
    const problems: string[] = [];
    for (const file of files) {
      let bytes: Uint8Array;
      try {
        bytes = new Uint8Array(await file.arrayBuffer());
      } catch {
        problems.push(`\`${file.name}\` cannot be read: drop a file that you may read, and no folder.`);
        continue;
      }
      const detected = this.#detect(bytes);
      // A reply may begin like tools, and quote them.
      if (/\.toml$/i.test(file.name)) problems.push(`\`${file.name}\` cannot be read: ${TOML}`);
      else if (/\.json$/i.test(file.name) && detected.tools_error !== null) problems.push(`\`${file.name}\` cannot be read: ${detected.tools_error}`);
      else if (detected.is_tools && !detected.is_log) next = { ...next, tools: decode(bytes) };
      else next = { ...next, bytes };
    }
    // Also if no file can be used: an edit may wait.
    this.set(next);
    for (const problem of problems) this.onProblem(problem);
  }
}
