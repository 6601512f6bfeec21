// SPDX-License-Identifier: Apache-2.0
// Tables of the page sort by the column that is clicked.
(function () {
  'use strict';
  document.querySelectorAll('table.sort').forEach(table => {
    table.querySelectorAll('th button').forEach(button => button.addEventListener('click', () => {
      const column = button.parentNode.cellIndex, body = table.tBodies[0];
      const value = row => {
        const cell = row.cells[column];
        return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
      };
      const down = table.dataset.by === String(column) ? -Number(table.dataset.down) : 1;
      table.dataset.by = String(column);
      table.dataset.down = String(down);
      Array.from(body.rows).sort((a, b) => {
        const p = value(a), q = value(b);
        return typeof p === 'number' ? (q - p) * down : p.localeCompare(q) * down;
      }).forEach(row => body.append(row));
      table.querySelectorAll('th').forEach(th => th.removeAttribute('aria-sort'));
      button.parentNode.setAttribute('aria-sort', down > 0 ? 'descending' : 'ascending');
    }));
  });
})();
