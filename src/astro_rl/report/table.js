"use strict";
(() => {
  // Rows sort within their group, so that a learner's rows stay together; what has no figure comes last.
  document.querySelectorAll("table.sortable").forEach((table) => {
    const heads = [...table.tHead.rows[0].cells];
    const bodies = [...table.tBodies].map((body) => ({
      body, rows: [...body.rows].filter((row) => !row.classList.contains("group")),
    }));
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const first = column === 0 ? "ascending" : "descending", second = column === 0 ? "descending" : "ascending";
      const now = before === null ? first : before === first ? second : null;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      if (now) head.setAttribute("aria-sort", now);
      const sign = now === "descending" ? -1 : 1;
      const compare = (one, other) => {
        if (column === 0) return sign * one.cells[0].textContent.localeCompare(other.cells[0].textContent);
        const [a, b] = [one, other].map((row) => row.cells[column].dataset.value);
        if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
        return sign * (Number(a) - Number(b));
      };
      bodies.forEach(({ body, rows }) => body.append(...(now ? [...rows].sort(compare) : rows)));
    }));
  });
})();
