"use strict";
// The report's page. Its numbers are in the page already; this draws charts from the same data, sorts and
// filters tables, shows what a number was computed from, and lists the transcripts.
(() => {
  const report = JSON.parse(document.getElementById("report").textContent);
  const { wanted, texts, rows } = JSON.parse(document.getElementById("rows").textContent);
  const analysis = report.analysis;
  const labels = new Map(analysis.runs.map((run, place) => [run.name, report.runs[place].label]));
  const colour = (place) => `var(--run-${place % 8})`;
  const sides = analysis.runs.flatMap((run, place) =>
    Object.entries(run.scores.naming).map(([naming, scores]) => (
      { place, label: report.runs[place].label, naming, scores }
    )));

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  // ---- numbers ----

  const resolve = (path) => path.split("/").slice(1)
    .reduce((at, key) => at[key.replaceAll("~1", "/").replaceAll("~0", "~")], report);
  const minus = (text) => text.replaceAll("-", "\u2212");

  function written(value, unit) {
    if (value === null || value === undefined) return "not known";
    if (Array.isArray(value)) {
      return value.map((end) => written(end, unit)).join(" to ");
    }
    if (unit === "%") return `${(100 * value).toFixed(2)} %`;
    if (unit === "pp") return minus(`${value >= 0 ? "+" : ""}${(100 * value).toFixed(2)} pp`);
    const text = Number.isInteger(value) ? value.toLocaleString("en") : value.toPrecision(4);
    return minus(unit === "diff" && value > 0 ? `+${text}` : text);
  }

  // Names may hold characters that hide or reverse what is read.
  const plain = (text) => text.replace(/[^ -~]/g, (character) => encodeURIComponent(character));

  function behind(button) {
    const { p: path, u: unit, n: note } = button.dataset;
    const interval = path.match(/\/(ci95|ci95_workspace|ci95_bootstrap)$/);
    const found = resolve(path);
    const whole = interval ? resolve(path.slice(0, interval.index)) : found;
    const facts = [];
    if (whole !== null && typeof whole === "object" && "estimand" in whole) {
      facts.push(["what", whole.estimand], ["value", written(whole.value, unit)]);
      facts.push(["weight", `each ${whole.weight} counts equally`]);
      facts.push(["n", `${whole.n} tasks of ${whole.clusters} scenarios (clusters), domains: ${whole.domains}`]);
      facts.push(["95 % interval", written(whole.ci95, unit)], ["method", whole.method]);
      for (const [name, text] of Object.entries(report.standard_errors)) {
        facts.push([`error: ${name}`, `${written(whole.errors[name], unit)}, ${text}`]);
      }
      if (whole.ci95_workspace) facts.push(["new workplaces", written(whole.ci95_workspace, unit)]);
      if (whole.ci95_bootstrap) facts.push(["bootstrap", written(whole.ci95_bootstrap, unit)]);
      if (interval && note) facts.push(["shown", note]);
    } else {
      facts.push(["what", note || path.split("/").at(-1).replaceAll("_", " ")], ["value", written(found, unit)]);
      facts.push(...standing(path));
    }
    return [...facts, ["in report.json", make("code", {}, plain(path))]];
  }

  // What a number that says nothing of itself rests on: the scores or contrast that it is part of.
  function standing(path) {
    const of = path.match(/^\/analysis\/runs\/\d+\/scores\/naming\/[^/]+/);
    if (of) {
      const { propensity } = resolve(of[0]).estimates;
      const { n, clusters } = propensity.domain;
      return [["weight", "each domain counts equally"], ["rests on", `${n} finished tasks of ${clusters} scenarios`]];
    }
    const at = path.slice(0, path.lastIndexOf("/"));
    const parent = resolve(at);
    if (parent && parent.clusters) return [["rests on", `${parent.clusters} scenarios (clusters)`]];
    const { n, clusters } = (parent && (parent.contrast ?? parent).propensity) || {};
    return n === undefined ? [] : [["rests on", `${n} tasks of ${clusters} scenarios`]];
  }

  const card = document.getElementById("card");
  let opened = null;
  document.addEventListener("click", ({ target }) => {
    const button = target.closest(".n");
    if (!button) return;
    card.replaceChildren(
      make("h4", {}, button.textContent.trim()),
      make("dl", {}, ...behind(button).map(([name, value]) =>
        make("div", {}, make("dt", {}, name), make("dd", {}, value)))));
    card.showPopover();
    opened = button;
    const at = button.getBoundingClientRect(), size = card.getBoundingClientRect();
    const below = at.bottom + 6 + size.height < innerHeight ? at.bottom + 6 : Math.max(8, at.top - 6 - size.height);
    card.style.top = `${below}px`;
    card.style.left = `${Math.max(8, Math.min(at.left, innerWidth - size.width - 8))}px`;
  });
  card.addEventListener("toggle", ({ newState }) => {
    if (newState === "closed" && opened && document.activeElement === document.body) opened.focus();
  });

  // ---- charts ----

  // A list of more rows than this gets a filter, a chart of more groups a second axis.
  const MANY = 8;

  const percent = (value) => (value === null || value === undefined ? NaN : 100 * value);
  const point = (estimate) => ({
    x: percent(estimate.value ?? estimate.difference),
    low: percent(estimate.ci95?.[0]), high: percent(estimate.ci95?.[1]),
  });
  const said = (d, unit) => [
    [d.label, d.naming && `${d.naming} name`].filter(Boolean).join(", "), d.group === d.label ? "" : d.group,
    `${written(d.x / 100, unit)} (${written([d.low / 100, d.high / 100], unit)})`,
  ].filter(Boolean).join("\n");
  const TIP = { fontSize: 12, lineHeight: 1.35, textPadding: 9, stroke: "var(--soft)" };

  // Points with intervals, in groups below each other; the group's name stands above its rows.
  function forest(rows, width, { unit = "%", description, ticks = false }) {
    const known = rows.filter((row) => Number.isFinite(row.x));
    const tall = new Set(known.map((row) => row.group)).size > MANY;
    if (!known.length) return make("p", { class: "soft" }, "Nothing is known here.");
    const groups = [...new Set(known.map((row) => row.group))];
    const lanes = [...new Set(known.map((row) => row.lane))];
    const filled = known.filter((row) => row.naming !== "benign");
    const hollow = known.filter((row) => row.naming === "benign");
    const place = { fy: "group", y: "lane" };
    return Plot.plot({
      width, height: (tall ? 80 : 48) + groups.length * (lanes.length * 15 + 32), marginLeft: 12, marginRight: 16,
      marginTop: tall ? 38 : 6, marginBottom: 40, ariaLabel: description,
      x: {
        axis: tall ? "both" : "bottom",
        label: unit === "%" ? "percent of tasks" : "percentage points", grid: true, labelAnchor: "center", labelArrow: false,
        ...(unit === "%" ? { domain: [0, 100] } : { nice: true }),
      },
      y: { domain: ["", ...lanes], axis: null, padding: 0.2 },
      fy: { domain: groups, axis: null, padding: 0.14 },
      marks: [
        unit === "%" ? null : Plot.ruleX([0], { stroke: "var(--soft)" }),
        Plot.text(groups, { fy: (d) => d, text: (d) => d, frameAnchor: "top-left", dx: 4, dy: 3, fontWeight: 600, fill: "var(--ink)",
          stroke: "var(--card)", strokeWidth: 4 }),
        Plot.ruleY(known, { ...place, x1: "low", x2: "high", stroke: "colour", strokeWidth: 2 }),
        ticks ? Plot.tickX(known, { ...place, x: "before", stroke: "colour", strokeWidth: 2, insetTop: 1, insetBottom: 1 }) : null,
        Plot.dot(filled, { ...place, x: "x", r: 5, fill: "colour" }),
        Plot.dot(hollow, { ...place, x: "x", r: 4.5, stroke: "colour", strokeWidth: 2, fill: "var(--card)" }),
        Plot.tip(known, Plot.pointer({ ...TIP, ...place, x: "x", title: (d) => said(d, unit), maxRadius: 60 })),
      ],
    });
  }

  // Lines over levels with bands, one panel a naming.
  function curves(quantity, width) {
    const points = sides.flatMap(({ place, label, naming, scores }) => {
      const [values, bands] = quantity === "cumulative"
        ? [scores.levels.map((step) => step.domain.value), scores.levels.map((step) => step.domain.ci95)]
        : [scores.survival[quantity], scores.survival[`${quantity}_band`]];
      return values.map((value, level) => ({
        level, label, naming, panel: `${naming} name`, side: `${place} ${naming}`, colour: colour(place),
        x: percent(value), low: percent(bands[level]?.[0]), high: percent(bands[level]?.[1]),
      }));
    });
    const panels = [...new Set(points.map((d) => d.panel))];
    const facet = width < 620 ? "fy" : "fx";
    const last = Math.max(0, ...points.map((d) => d.level));
    const line = { x: "level", z: "side", [facet]: "panel" };
    return Plot.plot({
      width, height: facet === "fy" ? 40 + 210 * panels.length : 320, marginLeft: 44, marginBottom: 40, marginTop: 28,
      ariaLabel: `${quantity} by level`,
      x: { domain: [0, last], ticks: last + 1, tickFormat: "d", label: "level", labelAnchor: "center", labelArrow: false },
      y: { grid: true, label: "percent", zero: true, nice: true, ...(quantity === "hazard" ? {} : { domain: [0, 100] }) },
      [facet]: { domain: panels, axis: null },
      marks: [
        Plot.text(panels, { [facet]: (d) => d, text: (d) => d, frameAnchor: "top", dy: -14, fontWeight: 600 }),
        Plot.areaY(points, { ...line, y1: "low", y2: "high", fill: "colour", fillOpacity: 0.13 }),
        Plot.lineY(points, { ...line, y: "x", stroke: "colour", strokeWidth: 2 }),
        Plot.dot(points, { ...line, y: "x", r: 2.5, fill: "colour" }),
        Plot.tip(points, Plot.pointer({ ...TIP, x: "level", y: "x", [facet]: "panel",
          title: (d) => said({ ...d, group: `level ${d.level}` }, "%") })),
      ],
    });
  }

  const bySide = (estimates) => sides.flatMap(({ place, label, naming, scores }) =>
    estimates(scores).map(([group, estimate, more = {}]) => (
      { label, naming, group: group ?? label, lane: group ? `${place} ${naming}` : naming, colour: colour(place), ...point(estimate), ...more }
    )));

  const parts = (part) => (width) => forest(
    bySide((scores) => Object.entries(scores.parts[part]).map(([name, found]) => [name, found.domain])),
    width, { description: `Propensity by ${part}` });

  const charts = {
    answer: (width) => forest(bySide(({ estimates }) => [[null, estimates.propensity.domain,
      { before: percent(estimates.propensity_zero.domain.value) }]]), width,
    { description: "Propensity of each run under each naming", ticks: true }),
    domain: parts("domain"), dimension: parts("dimension"), capability: parts("capability"),
    cumulative: (width) => curves("cumulative", width),
    survival: (width) => curves("survival", width),
    hazard: (width) => curves("hazard", width),
    naming: (width) => forest(analysis.runs.flatMap((run, place) =>
      (run.families.both ?? []).flatMap((family) => family.comparisons).map((one) => (
        { label: report.runs[place].label, group: one.name, lane: String(place), colour: colour(place), ...point(one) }
      ))), width, { unit: "pp", description: "Difference between the namings by dimension" }),
    pairs: (width) => forest(Object.entries(analysis.models).flatMap(([naming, { pairs }]) =>
      pairs.map((pair) => ({
        label: "", naming, group: `${labels.get(pair.second)} minus ${labels.get(pair.first)}`, lane: naming,
        colour: "var(--link)", ...point(pair.contrast.propensity),
      }))), width, { unit: "pp", description: "Difference in propensity between runs" }),
  };

  function key(name) {
    const several = report.runs.length > 1 && name !== "pairs" && name !== "answer";
    const entries = several ? report.runs.map(({ label }, place) =>
      make("span", {}, make("i", { class: `dot r${place % 8}` }), label)) : [];
    const namings = new Set(sides.map((side) => side.naming));
    if (namings.size > 1 && ["answer", "domain", "dimension", "capability", "pairs"].includes(name)) {
      entries.push(make("span", {}, make("i", { class: "dot r7" }), "harmful name"));
      entries.push(make("span", {}, make("i", { class: "dot hollow" }), "benign name"));
    }
    return make("div", { class: "key" }, ...entries);
  }

  function draw(box) {
    const width = Math.floor(box.clientWidth - 2 * parseFloat(getComputedStyle(box).paddingLeft));
    if (width <= 0 || box.dataset.width === String(width)) return;
    box.dataset.width = String(width);
    box.replaceChildren(key(box.dataset.chart), charts[box.dataset.chart](width));
  }
  const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => draw(target)));
  document.querySelectorAll(".chart").forEach((box) => sizes.observe(box));

  // ---- tables ----

  const keyOf = (cell) => {
    const text = cell.dataset.v ?? cell.textContent.trim();
    return text === "" ? [1, 0] : Number.isNaN(Number(text)) ? [0, text] : [0, Number(text)];
  };
  function compare(one, other) {
    if (one[0] !== other[0]) return one[0] - other[0];
    if (typeof one[1] === "number" && typeof other[1] === "number") return one[1] - other[1];
    return String(one[1]).localeCompare(String(other[1]), "en", { numeric: true });
  }

  function sortable(table) {
    const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
    heads.forEach((head, column) => {
      const button = make("button", { type: "button" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const keyed = [...body.rows].map((row) => [row.cells[column] ? keyOf(row.cells[column]) : [1, 0], row]);
        keyed.sort(([one], [other]) => (one[0] !== other[0] ? one[0] - other[0] : (down ? -1 : 1) * compare(one, other)));
        body.append(...keyed.map(([, row]) => row));
      });
    });
  }

  function chooser(name, values, changed) {
    const select = make("select", {}, make("option", { value: "" }, "all"),
      ...values.map((value) => make("option", { value }, String(value))));
    select.addEventListener("change", changed);
    return [select, make("label", {}, name, select)];
  }

  function searcher(name, changed) {
    const input = make("input", { type: "search" });
    input.addEventListener("input", changed);
    return [input, make("label", {}, name, input)];
  }

  function filterable(box) {
    const table = box.querySelector("table"), lines = [...table.tBodies[0].rows];
    if (lines.length <= MANY) return;
    const [search, searchLabel] = searcher("search", update);
    const choices = [...table.tHead.rows[0].cells].flatMap((head, column) => {
      if (!("filter" in head.dataset)) return [];
      const values = [...new Set(lines.map((row) => row.cells[column].textContent.trim()))];
      return values.length > 1 ? [[column, ...chooser(head.textContent.trim(), values, update)]] : [];
    });
    const count = make("span", { role: "status" });
    function update() {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of lines) {
        const text = row.textContent.toLowerCase();
        const fits = words.every((word) => text.includes(word)) &&
          choices.every(([column, select]) => !select.value || row.cells[column].textContent.trim() === select.value);
        row.hidden = !fits;
        shown += fits;
      }
      count.textContent = `${shown} of ${lines.length} rows`;
    }
    box.prepend(make("div", { class: "controls" }, searchLabel, ...choices.map((choice) => choice[2]), count));
    update();
  }
  document.querySelectorAll(".tabular").forEach(filterable);
  document.querySelectorAll("table.sortable").forEach(sortable);
  document.querySelectorAll(".wide").forEach((box) => {
    // What scrolls can be reached, and scrolled, with the keyboard.
    const heading = [...document.querySelectorAll("h2, h3")]
      .findLast((one) => one.compareDocumentPosition(box) & Node.DOCUMENT_POSITION_FOLLOWING);
    for (const [name, value] of Object.entries({ tabindex: 0, role: "region", "aria-label": heading.textContent })) {
      box.setAttribute(name, value);
    }
  });

  // ---- tabs ----

  const bar = document.querySelector("[role=tablist]");
  const tabs = [...bar.querySelectorAll("[role=tab]")];
  function choose(tab) {
    for (const other of tabs) {
      const chosen = other === tab;
      other.setAttribute("aria-selected", String(chosen));
      other.tabIndex = chosen ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).hidden = !chosen;
    }
  }
  bar.hidden = false;
  choose(tabs[0]);
  bar.addEventListener("click", ({ target }) => tabs.includes(target) && choose(target));
  bar.addEventListener("keydown", ({ key: pressed }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[pressed];
    if (!step) return;
    const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    choose(next);
    next.focus();
  });

  // ---- transcripts ----

  const FIELDS = ["scenario", "domain", "capability", "dimension", "naming", "epoch", "outcome"];
  const episodes = rows.map((row, index) => ({
    index, run: report.runs[row[0]].label, address: row[1] < 0 ? "" : `transcripts/${row[0] + 1}/${row[1]}.html`,
    ...Object.fromEntries(FIELDS.map((field, place) => [field, texts[row[2 + place]]])),
    level: row[9], turns: row[10], safe: row[11],
  }));
  const KINDS = { "gave in": "misaligned" };
  const choices = new Map();
  let list = null;

  function linked(cell) {
    const { address, epoch } = cell.getData();
    const name = cell.getValue() + (epoch === "1" ? "" : `, epoch ${epoch}`);
    return address ? make("a", { href: address }, name) : make("span", {}, name);
  }
  const coloured = (cell) => make("span", { class: KINDS[cell.getValue()] ?? cell.getValue() }, cell.getValue());

  function refresh() {
    const words = choices.get("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = [...choices].filter(([field, { value }]) => field !== "search" && value);
    list.setFilter((episode) => chosen.every(([field, { value }]) => String(episode[field]) === value) &&
      words.every((word) => episode.scenario.toLowerCase().includes(word)));
  }

  function listEpisodes() {
    const box = document.getElementById("episode-filters");
    const [search, label] = searcher("scenario", refresh);
    choices.set("search", search);
    box.append(label);
    for (const field of ["run", "outcome", "domain", "capability", "dimension", "naming", "level"]) {
      const values = [...new Set(episodes.map((episode) => episode[field]))]
        .sort((one, other) => (typeof one === "number" ? one - other : one.localeCompare(other))).filter((value) => value !== "");
      if (values.length < 2) continue;
      const [select, choice] = chooser(field, values, refresh);
      choices.set(field, select);
      box.append(choice);
    }
    const narrow = matchMedia("(max-width: 600px)").matches;
    const column = (field, title, more = {}) => ({ field, title, minWidth: 90, ...more });
    list = new Tabulator("#episode-table", {
      data: episodes, index: "index", height: "min(70vh, 640px)", layout: "fitColumns", renderVertical: "virtual",
      placeholder: "No transcript fits the filters.", rowHeight: 36, headerSortTristate: true,
      columns: [
        column("scenario", "transcript", { formatter: linked, widthGrow: 3, minWidth: narrow ? 130 : 170 }),
        column("outcome", "outcome", { formatter: coloured, minWidth: 112 }),
        column("level", "level", { hozAlign: "right", minWidth: 84, sorter: "number" }),
        column("run", "run", { visible: !narrow && report.runs.length > 1, widthGrow: 1.5 }),
        column("dimension", "pressure", { visible: !narrow, widthGrow: 1.5 }),
        column("naming", "naming", { visible: !narrow, minWidth: 100 }),
        column("capability", "capability", { visible: !narrow, widthGrow: 2 }),
        column("turns", "turns", { visible: !narrow, hozAlign: "right", minWidth: 80, sorter: "number" }),
        column("safe", "safe calls", { visible: !narrow, hozAlign: "right", minWidth: 110, sorter: "number" }),
      ],
    });
    list.on("tableBuilt", () => {
      for (const head of document.querySelectorAll(".tabulator-col")) {
        head.tabIndex = 0;
        head.addEventListener("keydown", ({ key: pressed }) => pressed === "Enter" && head.click());
      }
    });
    const count = document.getElementById("episode-count");
    list.on("dataFiltered", (_, found) => {
      count.textContent = `${found.length.toLocaleString("en")} of ${episodes.length.toLocaleString("en")} episodes`;
    });
  }

  if (episodes.length) {
    document.getElementById("episodes").hidden = false;
    listEpisodes();
  }
  document.addEventListener("click", ({ target }) => {
    if (!target.matches?.(".go") || !list) return;
    const { run, naming, field, value } = target.dataset;
    for (const select of choices.values()) select.value = "";
    for (const [name, chosen] of [["run", run], ["naming", naming], [field, value]]) {
      if (choices.has(name)) choices.get(name).value = chosen;
    }
    refresh();
    document.getElementById("transcripts").scrollIntoView();
  });

  // ---- light, dark, paper ----

  const theme = document.getElementById("theme"), root = document.documentElement;
  const stored = (() => { try { return localStorage.getItem("propensitybench-theme"); } catch { return null; } })();
  const isDark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  function show(name) {
    if (name) root.dataset.theme = name;
    theme.textContent = isDark() ? "Light" : "Dark";
  }
  show(stored);
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const name = isDark() ? "light" : "dark";
    try { localStorage.setItem("propensitybench-theme", name); } catch { /* it then holds for this page only */ }
    show(name);
  });
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
  });
})();
