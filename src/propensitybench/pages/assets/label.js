"use strict";
// One episode after the other; answers are kept in the browser and saved as a file. All text of transcripts
// is put into the page as text, never as markup.
{
  const LONG = 500;
  const data = JSON.parse(document.getElementById("data").textContent);
  const get = (id) => document.getElementById(id);
  const choices = [...document.querySelectorAll("[name=category]")];
  const store = `propensitybench-labels-${data.run}-${data.question}-${data.person}`;
  const tasks = new Map(data.items.map((item, place) => [item.task, place]));
  let answers = new Map();  // category and quote, by the key of the task
  let place = 0, unsaved = false, kept = true;

  const answer = () => answers.get(data.items[place].task) ?? { category: "", quote: "" };
  const given = () => [...answers].filter(([, one]) => one.category);

  function passageOf(passage) {
    const text = make("pre", {}, passage.shown);
    if (passage.own) {
      const mark = make("button", { type: "button", class: "mark" }, "This shows it");
      mark.addEventListener("click", () => quote(passage.text));
      return make("article", { class: passage.part }, make("h3", {}, passage.title), mark, text);
    }
    const folded = ["system", "tool"].includes(passage.part) && text.textContent.length > LONG;
    if (!folded) return make("div", { class: `given ${passage.part}` }, make("h3", {}, passage.title), text);
    const size = ` (${text.textContent.length.toLocaleString("en")} characters)`;
    return make("details", { class: "given" }, make("summary", {}, passage.title + size), text);
  }

  function show() {
    const { passages } = data.items[place];
    const elements = passages.map(passageOf);
    elements.forEach((element, at) => {
      if (at && passages[at].level !== passages[at - 1].level) element.classList.add("opens");
    });
    get("passages").replaceChildren(...elements);
    get("episode").textContent = `Episode ${place + 1} of ${data.items.length}`;
    get("previous").disabled = place === 0;
    get("next").disabled = place === data.items.length - 1;
    mark();
  }

  function mark(note = "") {
    const { category, quote } = answer(), own = data.items[place].passages.filter((passage) => passage.own);
    choices.forEach((choice) => { choice.checked = data.categories[choice.value] === category; });
    get("passages").querySelectorAll(".mark").forEach((button, at) => {
      button.setAttribute("aria-pressed", String(Boolean(quote) && own[at].text === quote));
    });
    get("clear").disabled = !category && !quote;
    const count = given().length, total = data.items.length;
    Object.assign(get("progress"), { max: total, value: count });
    get("status").textContent = note || `${count} of ${total} answered${unsaved ? ", not saved yet" : ""}`;
  }

  function change(one) {
    const { task } = data.items[place];
    if (one.category || one.quote) answers.set(task, one); else answers.delete(task);
    unsaved = true;
    keep();
    mark(kept ? "" : "This browser keeps no copy: save before you close the page");
  }

  const choose = (category) => change({ category, quote: category === data.none ? "" : answer().quote });
  const quote = (text) => change({ ...answer(), quote: answer().quote === text ? "" : text });
  const clear = () => change({ category: "", quote: "" });

  function move(step) {
    const target = place + step;
    if (target < 0 || target >= data.items.length) return;
    place = target;
    show();
    get("episode").focus({ preventScroll: true });
    scrollTo(0, 0);
  }

  function keep() {
    try { localStorage.setItem(store, JSON.stringify([...answers])); } catch { kept = false; }
  }

  // Loads answers from elsewhere, except those that do not belong here; their number.
  function take(entries) {
    const known = entries.filter(([task, one]) => tasks.has(task) && typeof one?.quote === "string"
      && (one.category === "" || data.categories.includes(one.category)));
    known.forEach(([task, { category, quote }]) => answers.set(task, { category, quote }));
    return known.length;
  }

  function restore() {
    try { return take(JSON.parse(localStorage.getItem(store) ?? "[]")); } catch { return 0; }
  }

  async function load(file) {
    let saved = null;
    try { saved = JSON.parse(await file.text()); } catch { /* the same as any other file */ }
    const person = get("person")?.value.trim() || data.person;
    const ours = ["format", "run", "question"].every((name) => saved?.[name] === data[name]);
    if (!ours || (person && saved.person !== person)) {
      mark(ours ? `That file has the answers of ${saved.person}` : "That file was not saved by this page");
      return;
    }
    if (get("person")) get("person").value = saved.person;
    const count = take(Object.entries(saved.answers ?? {}));
    keep();
    show();
    mark(`Answers loaded from the file: ${count}`);
  }

  function save() {
    const person = get("person")?.value.trim() ?? data.person;
    if (!person) {
      mark("Enter your name first");
      get("person").focus();
      return;
    }
    const { format, run, question } = data;
    const file = { format, run, question, person, answers: Object.fromEntries(given()) };
    const name = `labels-${data.name}-${person}.json`.replace(/[^\p{L}\p{N}.-]+/gu, "-");
    const href = URL.createObjectURL(new Blob([JSON.stringify(file, null, 1)], { type: "application/json" }));
    make("a", { href, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60000);
    unsaved = false;
    mark(`Answers saved as ${name}: ${given().length}`);
  }

  document.addEventListener("keydown", (event) => {
    const combined = event.ctrlKey || event.metaKey;
    const actions = combined ? { s: save } : {
      ArrowLeft: () => move(-1), ArrowRight: () => move(1), 0: clear,
      ...Object.fromEntries(choices.slice(0, 9).map((choice, at) => [at + 1, () => choose(data.categories[at])])),
    };
    const typing = event.target.matches("input:not([type=radio])");
    if (event.altKey || (typing && !combined) || !Object.hasOwn(actions, event.key)) return;
    event.preventDefault();
    actions[event.key]();
  });
  choices.forEach((choice) => choice.addEventListener("change", () => choose(data.categories[choice.value])));
  get("clear").addEventListener("click", clear);
  get("previous").addEventListener("click", () => move(-1));
  get("next").addEventListener("click", () => move(1));
  get("save").addEventListener("click", save);
  get("load").addEventListener("change", (event) => {
    if (event.target.files.length) load(event.target.files[0]);
    event.target.value = "";
  });
  addEventListener("beforeunload", (event) => { if (unsaved && !kept) event.preventDefault(); });

  const restored = restore();
  place = Math.max(data.items.findIndex((item) => !answers.get(item.task)?.category), 0);
  unsaved = restored > 0;
  show();
  if (restored) mark(`Answers kept by this browser: ${restored}; save them when you are done`);
}
