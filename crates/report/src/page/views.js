// The views, of which one is shown, and the keys.

const isNarrow = matchMedia("(max-width: 820px)");

// The view without another wish.
/** @type {() => string} */
let defaultView = () => (isNarrow.matches ? "transcript" : "timeline");

/** @param {string} name */
function view(name) {
  document.body.dataset.view = name;
  keepAddress();
  for (const tab of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[role=tab]"))) {
    const isOn = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(isOn));
    tab.tabIndex = isOn ? 0 : -1;
    if (isOn) tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  notify("view", name);
}

function buildViews() {
  const tabs = () => [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[role=tab]"))].filter((tab) => tab.offsetParent !== null);
  byId("views").addEventListener("click", (event) => {
    const tab = around(event, "[role=tab]");
    if (tab) view(tab.id.slice(4));
  });
  byId("views").addEventListener("keydown", (event) => {
    const by = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : null;
    if (by === null) return;
    const all = tabs();
    const next = all[(all.findIndex((tab) => tab === document.activeElement) + by + all.length) % all.length];
    view(next.id.slice(4));
    next.focus();
  });
  isNarrow.addEventListener("change", () => {
    if (!isNarrow.matches && document.body.dataset.view === "transcript") view(defaultView());
  });
  addEventListener("resize", () => notify("resized"));
  for (const colors of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
    matchMedia(colors).addEventListener("change", () => notify("resized"));
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      if (document.activeElement === byId("search")) byId("search").blur();
      else choose(null, "key");
      return;
    }
    if (around(event, "input, textarea, select")) return;
    const number = Number(event.key);
    const numbered = tabs().filter((tab) => !tab.classList.contains("narrow"))[number - 1];
    /** @type {Record<string, () => void>} */
    const acts = {
      "/": () => {
        // Not every view can be searched.
        if (byId("search").offsetParent === null && byId("tab-graph").offsetParent !== null) view("graph");
        byId("search").focus();
      },
      j: () => step(1, "key"),
      k: () => step(-1, "key"),
    };
    const act = numbered ? () => view(numbered.id.slice(4)) : acts[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  });
}

