// "−1,200 (−1,300 to 90)" is sorted as -1200, and copied without commas.
const bare = (text) => text.replace(/(?<=\d),(?=\d{3})/g, "");
const plain = (text) => bare(text).match(/^[+−-]?\d[\d.e-]*(?= \(|$| ?%)/)?.[0].replace("−", "-") ?? text;
const grouped = (number) => number.toLocaleString("en");
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
      const value = (row) => row.cells[column].dataset.value ?? plain(row.cells[column].textContent.trim());
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

// A button over each table copies it, in the order shown, with tabs between cells.
document.querySelectorAll("table.sortable").forEach((table) => {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy table";
  button.addEventListener("click", async () => {
    const text = [...table.rows]
      .map((row) => [...row.cells].map((cell) => bare(cell.textContent.trim())).join("\t"))
      .join("\n");
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Pages from a file, and old browsers, have no clipboard to write to.
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      button.focus();
    }
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy table"), 2000);
  });
  (table.closest(".scroll") ?? table).before(button);
});

// A field over each long table shows only the rows that contain its text.
document.querySelectorAll("table.filterable").forEach((table) => {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 10) return;
  const label = document.createElement("label");
  const field = document.createElement("input");
  const count = document.createElement("span");
  label.className = "filter";
  field.type = "search";
  count.setAttribute("role", "status");
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    rows.forEach((row) => {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    });
    const shown = rows.filter((row) => !row.hidden).length;
    count.textContent = field.value.trim() ? `${shown} of ${rows.length}` : "";
  });
  label.append("Filter ", field, count);
  (table.closest(".scroll") ?? table).before(label);
});

// The slider of a plan shows the loads after the first moves of the list.
document.querySelectorAll(".choice").forEach((choice) => {
  const data = JSON.parse(document.getElementById("move-data").textContent);
  const slider = choice.querySelector("input");
  const output = choice.querySelector("output");
  const rows = [...document.querySelectorAll("table.loads tbody tr")];
  const heading = document.querySelector("table.loads thead th:nth-child(3) button");
  const fastest = Math.max(...data.speeds);
  const rounded = (load) => (load < 100 ? Math.round(10 * load) / 10 : Math.round(load));
  const relative = (loads) => loads.map((load, row) => rounded((load * fastest) / data.speeds[row]));
  const column = (number) => rows.map((row) => Number(bare(row.cells[number].textContent)));
  const scale = Math.max(1, ...relative(column(1)), ...relative(column(2)));
  const imbalance = (loads) =>
    data.measure === "makespan" ? Math.max(...relative(loads)) : loads.reduce((sum, load) => sum + load * load, 0);
  const show = () => {
    const count = Number(slider.value);
    const loads = [...data.loads];
    data.moves.slice(0, count).forEach(([source, target, weight]) => {
      loads[source] -= weight;
      loads[target] += weight;
    });
    const shares = relative(loads);
    rows.forEach((row) => {
      row.cells[2].textContent = grouped(loads[row.dataset.row]);
      row.querySelector(".after").style.width = `${Math.min(100, (100 * shares[row.dataset.row]) / scale)}%`;
    });
    document.querySelectorAll("table.moves tbody tr").forEach((row) => {
      row.classList.toggle("later", Number(row.dataset.move) > count);
    });
    const best = data.frontier.filter(([moves]) => moves <= count).pop();
    const name = data.measure === "makespan" ? "maximum load" : data.measure.replaceAll("_", " ");
    const value = imbalance(loads);
    const proof = best && best[1] === best[2] ? "minimum" : "lowest value found";
    output.textContent =
      `${count} of ${data.moves.length} moves: maximum load ${grouped(Math.max(...shares))}, minimum load ${grouped(Math.min(...shares))}` +
      (best ? `; ${name} ${grouped(value)}, ${proof} with ${best[0]} moves: ${grouped(best[1])}` : "");
    heading.textContent = count === data.moves.length ? "planned" : `after ${count} moves`;
  };
  choice.hidden = false;
  slider.addEventListener("input", show);
  show();
});
