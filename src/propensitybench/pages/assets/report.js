"use strict";
// The tables of a report: search and filters of the long ones, the tabs of the breakdown, the list of transcripts.
{
  // Tables with more rows get a search box and filters.
  const LONG = 8;
  // The text of a cell, without the explanation that may follow a score's name.
  const filterValue = (cell) => (cell?.querySelector("strong") ?? cell)?.textContent.trim();
  const texts = new WeakMap();
  const textOf = (row) => texts.get(row) ?? texts.set(row, row.textContent.toLowerCase()).get(row);

  // The search box and filters of a table; the function returned sets the filters by the names of columns.
  function addFilters(box, table) {
    const { rows } = table, count = make("span", { role: "status" });
    const search = make("input", { type: "search" });
    const filters = table.heads.flatMap((head, column) => {
      const values = "filter" in head.dataset ? [...new Set(rows.map((row) => filterValue(row.cells[column])))] : [];
      if (values.filter(Boolean).length < 2) return [];
      const select = make("select", {}, make("option", { value: "" }, "all"),
        ...values.filter(Boolean).sort(COLLATOR.compare).map((value) => make("option", { value }, value)));
      return [{ name: head.textContent.trim(), column, select }];
    });

    function update() {
      const words = searchWords(search), chosen = filters.filter(({ select }) => select.value);
      const matching = table.filter((row) => words.every((word) => textOf(row).includes(word)) &&
        chosen.every(({ column, select }) => filterValue(row.cells[column]) === select.value));
      count.textContent = `${matching.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows`;
    }

    const labels = [["search", search], ...filters.map(({ name, select }) => [name, select])]
      .map(([name, input]) => make("label", {}, name, input));
    box.prepend(make("div", { class: "controls" }, ...labels, count));
    search.addEventListener("input", update);
    filters.forEach(({ select }) => select.addEventListener("change", update));
    update();
    return (wanted) => {
      search.value = "";
      filters.forEach(({ name, select }) => { select.value = wanted[name] ?? ""; });
      update();
    };
  }

  // A scrollable box must be reachable and scrollable with the keyboard. It is a group: as a region, each table
  // would be a landmark.
  function makeFocusable(box) {
    const heading = box.closest("details")?.querySelector("summary") ?? [...document.querySelectorAll("h1, h2, h3")]
      .findLast((one) => one.compareDocumentPosition(box) & Node.DOCUMENT_POSITION_FOLLOWING);
    for (const [name, value] of Object.entries({ tabindex: 0, role: "group", "aria-label": heading.textContent })) {
      box.setAttribute(name, value);
    }
  }

  let chooseTranscripts = () => {};
  for (const table of document.querySelectorAll("table.sortable")) {
    const rows = new RowTable(table), box = table.closest(".tabular");
    const choose = rows.rows.length > LONG ? addFilters(box, rows) : chooseTranscripts;
    if (box.id === "episodes") chooseTranscripts = choose;
  }
  document.querySelectorAll(".wide").forEach(makeFocusable);

  // The buttons of the breakdown that lead to the transcripts behind a number.
  document.addEventListener("click", ({ target }) => {
    if (!target.matches?.(".go")) return;
    const { run, naming, field, value } = target.dataset;
    chooseTranscripts({ run, naming, [field]: value });
    document.getElementById("transcripts").scrollIntoView();
  });

  const bar = document.querySelector("[role=tablist]");
  const tabs = [...bar.querySelectorAll("[role=tab]")];

  function select(tab) {
    for (const other of tabs) {
      const selected = other === tab;
      other.setAttribute("aria-selected", String(selected));
      other.tabIndex = selected ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).hidden = !selected;
    }
  }

  bar.hidden = false;
  select(tabs[0]);
  bar.addEventListener("click", ({ target }) => tabs.includes(target) && select(target));
  bar.addEventListener("keydown", ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!step) return;
    const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    select(next);
    next.focus();
  });
}
