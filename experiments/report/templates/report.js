// Click a heading to sort its table; click again to turn the order round.
document.querySelectorAll("table.sortable").forEach((table) => {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = heading.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const descending = heading.getAttribute("aria-sort") !== "descending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const rows = [...table.tBodies[0].rows];
      rows.sort((one, two) => {
        const [a, b] = [value(one), value(two)];
        const both = a !== "" && b !== "" && !isNaN(a) && !isNaN(b);
        const order = both ? a - b : a.localeCompare(b, "en", { numeric: true });
        return descending ? -order : order;
      });
      table.tBodies[0].append(...rows);
    });
  });
});
