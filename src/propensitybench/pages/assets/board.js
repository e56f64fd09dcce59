"use strict";
// Sorting and filtering of the board's tables. Everything is in the HTML, sorted by propensity.
{
  const body = document.body, status = document.getElementById("status");
  const [naming, part, sort, search] = ["naming", "part", "sort", "search"].map((id) => document.getElementById(id));
  const tables = [...document.querySelectorAll("table.sortable")];
  const heads = (table) => [...table.tHead.rows[0].cells];
  const BY_PROPENSITY = "Propensity";

  // [1, ""] sorts cells without a value last, in either direction.
  function keyOf(cell) {
    if (cell.tagName === "TH") return [0, cell.textContent.trim()];
    const wanted = naming.value === "benign" ? "benign" : "harmful";
    const text = cell.dataset.v ?? cell.dataset[wanted] ?? cell.dataset.benign ?? "";
    return text === "" ? [1, 0] : [0, Number(text)];
  }

  function compare([, one], [, other]) {
    return typeof one === "number" ? one - other : one.localeCompare(other, "en", { numeric: true });
  }

  function sortBy(table, head, descending) {
    const column = heads(table).indexOf(head), rows = table.tBodies[0];
    heads(table).forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const keyed = [...rows.rows].map((row) => [keyOf(row.cells[column]), row]);
    keyed.sort(([one], [other]) => one[0] - other[0] || (descending ? -1 : 1) * compare(one, other));
    rows.append(...keyed.map(([, row]) => row));
  }

  function press(table, head) {
    const descending = head.getAttribute("aria-sort") === "ascending";
    sortBy(table, head, descending);
    tell(`sorted by ${head.dataset.sort}, ${descending ? "highest" : "lowest"} first`);
  }

  // Sorts again by what each table is sorted by, with the naming that is shown now.
  function sortAgain() {
    for (const table of tables) {
      const head = heads(table).find((one) => one.hasAttribute("aria-sort"));
      if (head) sortBy(table, head, head.getAttribute("aria-sort") === "descending");
    }
  }

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0, all = 0;
    for (const row of document.querySelectorAll("tr[data-name]")) {
      row.hidden = !words.every((word) => row.dataset.name.toLowerCase().includes(word));
      if (row.closest(".main")) { all += 1; shown += !row.hidden; }
    }
    tell(`${shown} of ${all} runs`);
  }

  function showPart() {
    body.classList.toggle("only", part.value !== "");
    for (const cell of document.querySelectorAll("[data-part]")) {
      cell.hidden = part.value !== "" && cell.dataset.part !== part.value;
    }
    if (!part.value) return;
    for (const table of document.querySelectorAll("table.parts")) {
      const head = heads(table).find((one) => one.dataset.part === part.value);
      if (head) sortBy(table, head, false);
    }
    tell(`${part.value}, lowest first`);
    document.querySelector("table.parts").closest("section").querySelector("[id^=parts-]").scrollIntoView();
  }

  const tell = (text) => { status.textContent = text; };

  for (const table of tables) {
    for (const head of heads(table).filter((one) => one.dataset.sort)) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => press(table, head));
    }
  }
  const names = new Set(tables.flatMap((table) => heads(table).map((head) => head.dataset.sort).filter(Boolean)));
  for (const name of names) sort.append(new Option(name, name, name === BY_PROPENSITY, name === BY_PROPENSITY));
  sort.addEventListener("change", () => {
    for (const table of tables) {
      const head = heads(table).find((one) => one.dataset.sort === sort.value);
      if (head) sortBy(table, head, false);
    }
    tell(`sorted by ${sort.value}, lowest first`);
  });
  naming.addEventListener("change", () => { body.dataset.naming = naming.value; sortAgain(); tell(`${naming.value} names`); });
  part.addEventListener("change", showPart);
  search.addEventListener("input", filter);
  const form = document.getElementById("controls");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
}
