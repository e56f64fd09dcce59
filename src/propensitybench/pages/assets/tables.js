"use strict";
// Sorting, search and filters of every table. All rows are in the HTML, in their first order.

// Rows shown at once: few enough for a phone.
const AT_ONCE = 200;
const COLLATOR = new Intl.Collator("en", { numeric: true });

// What a cell is sorted by: its own key, that of the naming shown, or its text. [1, 0] sorts empty cells last.
function keyOf(cell) {
  const { v, harmful, benign } = cell?.dataset ?? {};
  const shown = document.body.dataset.naming === "benign" ? benign : harmful;
  const text = v ?? shown ?? benign ?? cell?.textContent.trim() ?? "";
  return text === "" ? [1, 0] : [0, Number.isNaN(Number(text)) ? text : Number(text)];
}

const compareKeys = (one, other) =>
  typeof one === "number" && typeof other === "number" ? one - other : COLLATOR.compare(one, other);

// The words of a search box, all of which must occur.
const searchWords = (input) => input.value.toLowerCase().split(/\s+/).filter(Boolean);

// The rows of a table: sorted by its heads, and those that match. Others are not in the document.
class RowTable {
  constructor(table) {
    this.heads = [...table.tHead.rows[0].cells];
    this.body = table.tBodies[0];
    this.rows = [...this.body.rows];
    this.matches = () => true;
    this.onSort = () => {};
    for (const head of this.heads.filter((one) => !one.classList.contains("axis"))) {
      const button = make("button", { type: "button" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        this.sortBy(head, head.getAttribute("aria-sort") === "ascending");
        this.onSort(head);
      });
    }
    this.more = make("button", { type: "button", class: "show-more" });
    this.more.addEventListener("click", () => this.show(this.body.rows.length + AT_ONCE));
    table.after(this.more);
    this.show();
    table.classList.add("ready");
  }

  head(name) { return this.heads.find((head) => head.textContent.trim() === name); }

  get sorted() { return this.heads.find((head) => head.hasAttribute("aria-sort")); }

  sortBy(head, descending = false) {
    const column = this.heads.indexOf(head);
    this.sorted?.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const keyed = this.rows.map((row) => [keyOf(row.cells[column]), row]);
    keyed.sort(([[none, one]], [[otherNone, other]]) =>
      none - otherNone || (descending ? -1 : 1) * compareKeys(one, other));
    this.rows = keyed.map(([, row]) => row);
    this.show();
  }

  sortAgain() { if (this.sorted) this.sortBy(this.sorted, this.sorted.getAttribute("aria-sort") === "descending"); }

  // Shows the rows that match; their number.
  filter(matches) {
    this.matches = matches;
    return this.show();
  }

  show(limit = AT_ONCE) {
    const matching = this.rows.filter(this.matches);
    const body = this.body.cloneNode(false);
    body.append(...matching.slice(0, limit));
    this.body.replaceWith(body);
    this.body = body;
    this.more.hidden = matching.length <= limit;
    this.more.textContent = `Show more: ${limit} of ${matching.length.toLocaleString("en")}`;
    return matching.length;
  }
}
