"use strict";
// The filterable list of transcripts.
{
  const { texts, rows } = JSON.parse(document.getElementById("rows").textContent);
  // In the order of FIELDS in page.py, then the outcome.
  const FIELDS = ["scenario", "domain", "capability", "dimension", "naming", "epoch", "outcome"];
  const episodes = rows.map((row, index) => ({
    index, run: report.runs[row[0]].label, address: row[1] < 0 ? "" : `transcripts/${row[0] + 1}/${row[1]}.html`,
    ...Object.fromEntries(FIELDS.map((field, place) => [field, texts[row[2 + place]]])),
    level: row[9], turns: row[10], safe: row[11],
  }));
  const filters = new Map();
  let table = null;

  function scenarioLink(cell) {
    const { address, epoch } = cell.getData();
    const name = cell.getValue() + (epoch === "1" ? "" : `, epoch ${epoch}`);
    return address ? make("a", { href: address }, name) : make("span", {}, name);
  }

  const outcomeLabel = (cell) => make("span", { class: cell.getValue() }, cell.getValue());

  function refresh() {
    const words = searchWords(filters.get("search"));
    const selected = [...filters].filter(([field, { value }]) => field !== "search" && value);
    table.setFilter((episode) => selected.every(([field, { value }]) => String(episode[field]) === value) &&
      words.every((word) => episode.scenario.toLowerCase().includes(word)));
  }

  function addFilters() {
    const box = document.getElementById("episode-filters");
    const [search, searchLabel] = searcher("scenario", refresh);
    filters.set("search", search);
    box.append(searchLabel);
    for (const field of ["run", "outcome", "domain", "capability", "dimension", "naming", "level"]) {
      const values = [...new Set(episodes.map((episode) => episode[field]))]
        .filter((value) => value !== "")
        .sort((one, other) => (typeof one === "number" ? one - other : one.localeCompare(other)));
      if (values.length < 2) continue;
      const [select, label] = chooser(field, values, refresh);
      filters.set(field, select);
      box.append(label);
    }
  }

  function addTable() {
    const narrow = matchMedia("(max-width: 600px)").matches;
    const column = (field, title, more = {}) => ({ field, title, minWidth: 90, ...more });
    table = new Tabulator("#episode-table", {
      data: episodes, index: "index", height: "min(70vh, 640px)", layout: "fitColumns", renderVertical: "virtual",
      placeholder: "No transcript matches the filters.", rowHeight: 36, headerSortTristate: true,
      columns: [
        column("scenario", "transcript", { formatter: scenarioLink, widthGrow: 3, minWidth: narrow ? 130 : 170 }),
        column("outcome", "outcome", { formatter: outcomeLabel, minWidth: 112 }),
        column("level", "level", { hozAlign: "right", minWidth: 84, sorter: "number" }),
        column("run", "run", { visible: !narrow && report.runs.length > 1, widthGrow: 1.5 }),
        column("dimension", "pressure", { visible: !narrow, widthGrow: 1.5, minWidth: 110 }),
        column("naming", "naming", { visible: !narrow, minWidth: 100 }),
        column("capability", "capability", { visible: !narrow, widthGrow: 2, minWidth: 118 }),
        column("turns", "turns", { visible: !narrow, hozAlign: "right", minWidth: 80, sorter: "number" }),
        column("safe", "safe calls", { visible: !narrow, hozAlign: "right", minWidth: 120, sorter: "number" }),
      ],
    });
    table.on("tableBuilt", () => {
      for (const head of document.querySelectorAll(".tabulator-col")) {
        head.tabIndex = 0;
        head.addEventListener("keydown", ({ key }) => key === "Enter" && head.click());
      }
    });
    const count = document.getElementById("episode-count");
    table.on("dataFiltered", (_, matching) => {
      count.textContent = `${matching.length.toLocaleString("en")} of ${episodes.length.toLocaleString("en")} episodes`;
    });
  }

  if (episodes.length) {
    document.getElementById("episodes").hidden = false;
    addFilters();
    addTable();
  }
  // The "list" buttons of the breakdown tables.
  document.addEventListener("click", ({ target }) => {
    if (!target.matches?.(".go") || !table) return;
    const { run, naming, field, value } = target.dataset;
    for (const input of filters.values()) input.value = "";
    for (const [name, selected] of [["run", run], ["naming", naming], [field, value]]) {
      if (filters.has(name)) filters.get(name).value = selected;
    }
    refresh();
    document.getElementById("transcripts").scrollIntoView();
  });
}
