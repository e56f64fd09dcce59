"use strict";
// Sorting and filtering of tables, and the tabs of the breakdown.
{
  // [1, 0] sorts empty cells last.
  const keyOf = (cell) => {
    const text = cell?.dataset.v ?? cell?.textContent.trim() ?? "";
    return text === "" ? [1, 0] : Number.isNaN(Number(text)) ? [0, text] : [0, Number(text)];
  };

  function compare(one, other) {
    if (typeof one === "number" && typeof other === "number") return one - other;
    return String(one).localeCompare(String(other), "en", { numeric: true });
  }

  function makeSortable(table) {
    const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
    heads.forEach((head, column) => {
      const button = make("button", { type: "button" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const descending = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        const keyed = [...body.rows].map((row) => [keyOf(row.cells[column]), row]);
        keyed.sort(([one], [other]) => one[0] - other[0] || (descending ? -1 : 1) * compare(one[1], other[1]));
        body.append(...keyed.map(([, row]) => row));
      });
    });
  }

  function makeFilterable(box) {
    const table = box.querySelector("table"), rows = [...table.tBodies[0].rows];
    if (rows.length <= MANY) return;
    const [search, searchLabel] = searcher("search", update);
    const choices = [...table.tHead.rows[0].cells].flatMap((head, column) => {
      if (!("filter" in head.dataset)) return [];
      const values = [...new Set(rows.map((row) => filterValue(row.cells[column])))];
      if (values.length < 2) return [];
      const [select, label] = chooser(head.textContent.trim(), values, update);
      return [{ column, select, label }];
    });
    const count = make("span", { role: "status" });

    function update() {
      const words = searchWords(search);
      let matching = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        const matches = words.every((word) => text.includes(word)) &&
          choices.every(({ column, select }) => !select.value || filterValue(row.cells[column]) === select.value);
        row.hidden = !matches;
        matching += matches;
      }
      count.textContent = `${matching} of ${rows.length} rows`;
    }

    box.prepend(make("div", { class: "controls" }, searchLabel, ...choices.map(({ label }) => label), count));
    update();
  }

  // The text of a cell, without the explanation that may follow a score's name.
  const filterValue = (cell) => (cell.querySelector("strong") ?? cell).textContent.trim();

  // A scrollable box must be reachable and scrollable with the keyboard. It is a group: as a region, each table
  // would be a landmark.
  function makeFocusable(box) {
    const heading = box.closest("details")?.querySelector("summary") ?? [...document.querySelectorAll("h1, h2, h3")]
      .findLast((one) => one.compareDocumentPosition(box) & Node.DOCUMENT_POSITION_FOLLOWING);
    for (const [name, value] of Object.entries({ tabindex: 0, role: "group", "aria-label": heading.textContent })) {
      box.setAttribute(name, value);
    }
  }

  document.querySelectorAll(".tabular").forEach(makeFilterable);
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  document.querySelectorAll(".wide").forEach(makeFocusable);

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
