import { decode, encode } from "./core.js";
import type { Detected, Dialect, Given, Settings } from "./model.js";

/** How long the page waits after a key, in milliseconds. */
const PAUSE = 150;

const TEXT_FIELDS = ["key", "start_prefix", "arg_prefix", "end_prefix"] as const;
const SWITCHES = ["escaped", "strict", "self_closing", "in_reasoning"] as const;

/** The reply, the tools and the settings, as a person gives them. */
export class Input {
  #bytes: Uint8Array = new Uint8Array();
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #reply = byId("reply") as HTMLTextAreaElement;
  readonly #definitions = byId("definitions") as HTMLTextAreaElement;
  readonly #form = byId("settings") as HTMLFormElement;
  readonly #onChange: () => void;

  constructor(onChange: () => void, sample: Given) {
    this.#onChange = onChange;
    this.#reply.addEventListener("input", () => {
      this.#bytes = encode(this.#reply.value);
      this.#soon();
    });
    this.#reply.addEventListener("paste", (event) => this.#paste(event));
    this.#definitions.addEventListener("input", () => this.#soon());
    this.#form.addEventListener("input", () => this.#soon());
    this.#form.addEventListener("submit", (event) => event.preventDefault());
    byId("clear").addEventListener("click", () => this.set({ bytes: new Uint8Array(), tools: "", settings: null }));
    byId("example").addEventListener("click", () => this.set(sample));
    const file = byId("file") as HTMLInputElement;
    byId("open").addEventListener("click", () => file.click());
    file.addEventListener("change", () => {
      void this.#take(file.files);
      file.value = "";
    });
    this.#acceptDrops();
  }

  get given(): Given {
    return { bytes: this.#bytes, tools: this.#definitions.value, settings: this.#isDetected ? null : this.#settings() };
  }

  get #isDetected(): boolean {
    return this.#field("detect").checked;
  }

  /** The settings of the form, with a dialect that was detected. */
  settingsWith(dialect: Dialect): Settings {
    return { ...this.#settings(), dialect };
  }

  /** Shows an input. */
  set({ bytes, tools, settings }: Given): void {
    this.#bytes = bytes;
    this.#reply.value = decode(bytes);
    this.#definitions.value = tools;
    this.#field("detect").checked = settings === null;
    this.#showSettings(settings ?? { dialect: {}, no_reasoning: false, stop: "natural", unclosed: "reject" });
    this.#onChange();
  }

  /** Shows what was detected. */
  note(detected: Detected | null): void {
    const isDetected = this.#isDetected;
    if (isDetected && detected !== null) this.#showDialect(detected.dialect);
    for (const field of byId("dialect").querySelectorAll("input, select") as NodeListOf<HTMLInputElement>) field.disabled = isDetected;
    const found = detected === null || detected.found.length === 0 ? "" : `Detected: ${detected.found.join(", ")}.`;
    byId("reply-note").textContent = [this.#bytes.length > 0 ? `${this.#bytes.length.toLocaleString("en")} bytes.` : "", seen(found)].join(" ");
  }

  #soon(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#onChange, PAUSE);
  }

  #field(name: string): HTMLInputElement {
    return this.#form.elements.namedItem(name) as HTMLInputElement;
  }

  #settings(): Settings {
    const dialect: Dialect = {};
    const syntax = this.#field("syntax").value;
    if (syntax !== "") dialect.syntax = syntax;
    for (const name of TEXT_FIELDS) if (this.#field(name).value !== "") dialect[name] = this.#field(name).value;
    for (const name of SWITCHES) if (this.#field(name).checked) dialect[name] = true;
    if (this.#field("markers").checked) dialect.markers = "anywhere";
    const reasoning: [string, string] = [this.#field("reasoning_open").value, this.#field("reasoning_close").value];
    if (reasoning.some((marker) => marker !== "")) dialect.reasoning = reasoning;
    return { dialect, no_reasoning: this.#field("no_reasoning").checked, stop: this.#field("stop").value, unclosed: this.#field("unclosed").value };
  }

  #showSettings({ dialect, no_reasoning: hasNone, stop, unclosed }: Settings): void {
    this.#showDialect(dialect);
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
    const shade = byId("drop") as HTMLElement;
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

  /** Takes files: definitions of tools are JSON files, anything else is a reply or a log. */
  async #take(files: FileList | null): Promise<void> {
    let next = this.given;
    for (const file of files ?? []) {
      const bytes = new Uint8Array(await file.arrayBuffer());
      if (file.name.endsWith(".json")) next = { ...next, tools: decode(bytes) };
      else next = { ...next, bytes };
    }
    this.set(next);
  }
}
