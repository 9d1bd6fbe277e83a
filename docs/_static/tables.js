// Marks cells for site.css, which shows tables on narrow screens without their heads: each cell but the first of its row
// carries the name of its column, or is empty.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.docutils")) {
    const columns = [...table.querySelectorAll("thead th")].map((cell) => cell.textContent.trim());
    for (const row of table.querySelectorAll("tbody tr")) {
      for (const cell of [...row.cells].slice(1)) {
        if (columns[cell.cellIndex]) cell.dataset.column = columns[cell.cellIndex];
        cell.classList.toggle("empty", !cell.textContent.trim());
      }
    }
  }
});
