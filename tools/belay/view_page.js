// SPDX-License-Identifier: Apache-2.0
// What the page of a recording draws and how it answers: no library, no network. All texts of the
// file go into the page as text, never as markup.
(function () {
  'use strict';
  const D = JSON.parse(document.getElementById('data').textContent);
  // States: one before the first change and one behind each.
  const N = D.n + 1, B = D.ns.length, STRIDE = 5;
  const HUES = ['#3b76af', '#e39b3c', '#5a9e6f', '#b77bb0', '#c7574f', '#4fb3bf', '#9c8a3a',
    '#7a6fc9', '#d17fa4', '#6f9a2f', '#a3672f', '#8a93a3'];
  const $ = id => document.getElementById(id);
  const dark = matchMedia('(prefers-color-scheme:dark)');
  let from = 0, to = N, byTime = false, memory = 0, selected = -1, hovered = -1, cursor = -1;
  let found = null; // of each label: is it what is looked for? null: nothing is

  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  function brief(bytes) {
    let u = 0, v = bytes;
    while (v >= 1024 && u < 4) { v /= 1024; u++; }
    return (u === 0 || Number.isInteger(v) ? v : v.toFixed(v < 10 ? 2 : 1)) + ' ' + units[u];
  }
  const size = bytes => bytes < 1024 ? bytes + ' B' : bytes + ' B (' + brief(bytes) + ')';
  // Folders say least of who asked.
  const nameOf = label => D.labels[label].replace(/(^|\s)\S*\/([^\s/]+)$/, '$1$2');
  const strength = label => found && !found[label] ? 0.12 : 1;
  const seconds = ns => (ns / 1e9).toFixed(6) + ' s';
  const bucketOf = p => Math.max(0, Math.min(B - 1, Math.floor(p * B / N)));
  const nsOf = p => p >= N ? D.end_ns : p < 1 ? 0 : D.ns[bucketOf(p)];

  // Where position p stands from left to right, 0 .. 1, before zooming.
  function place(p) {
    if (!byTime || D.end_ns === 0) return p / N;
    const b = bucketOf(p), first = b === 0 ? 0 : D.ns[b - 1], start = b * N / B;
    const part = Math.min(1, Math.max(0, (p - start) / (N / B)));
    return p >= N ? 1 : (first + (D.ns[b] - first) * part) / D.end_ns;
  }
  function position(part) {
    if (!byTime || D.end_ns === 0) return part * N;
    let low = 0, high = N;
    for (let i = 0; i < 40; i++) {
      const mid = (low + high) / 2;
      if (place(mid) < part) low = mid; else high = mid;
    }
    return high;
  }

  function setUp(canvas) {
    const ratio = devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
    if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
      canvas.width = Math.round(w * ratio);
      canvas.height = Math.round(h * ratio);
    }
    const g = canvas.getContext('2d');
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, w, h);
    g.font = '11px system-ui,sans-serif';
    return {g, w, h, a: place(from), b: place(to)};
  }
  const x = (c, p) => (place(p) - c.a) / (c.b - c.a) * c.w;
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name);

  function scale(c, top) {
    let step = 1;
    while (step <= top / 5) step *= 2;
    c.g.strokeStyle = colour('--grid');
    c.g.fillStyle = colour('--ink');
    c.g.lineJoin = 'round';
    for (let at = step; at < top; at += step) {
      const y = c.h - at / top * c.h;
      c.g.beginPath(); c.g.moveTo(0, y); c.g.lineTo(c.w, y); c.g.stroke();
      if (y <= 12) continue;
      c.g.strokeStyle = colour('--paper'); // read upon any colour
      c.g.lineWidth = 3;
      c.g.strokeText(brief(at), 4, y - 3);
      c.g.fillText(brief(at), 4, y - 3);
      c.g.strokeStyle = colour('--grid');
      c.g.lineWidth = 1;
    }
  }
  function lineAt(c, p, style, text) {
    const at = x(c, p);
    if (at < 0 || at > c.w) return;
    c.g.strokeStyle = style;
    c.g.beginPath(); c.g.moveTo(at, 0); c.g.lineTo(at, c.h); c.g.stroke();
    if (text) { c.g.fillStyle = style; c.g.fillText(text, at + 3, 10); }
  }
  function marks(c) {
    let last = -10, free = 0; // lines and texts that would hide each other are left out
    D.marks.forEach(m => {
      const at = x(c, m[0]), text = m[1].slice(0, 24);
      if (at < 0 || at > c.w || at - last < 4) return;
      last = at;
      lineAt(c, m[0], colour('--mark'), at >= free ? text : '');
      if (at >= free) free = at + c.g.measureText(text).width + 10;
    });
    D.refused.forEach(r => lineAt(c, r[0], colour('--bad'), ''));
    if (cursor >= 0) lineAt(c, cursor, colour('--ink'), '');
  }

  // A band between two series, one step a bucket.
  function band(c, top, low, high, fill) {
    const y = v => c.h - v / top * c.h;
    c.g.fillStyle = fill;
    c.g.beginPath();
    for (let i = 0; i < B; i++) {
      c.g.lineTo(x(c, i * N / B), y(high(i)));
      c.g.lineTo(x(c, (i + 1) * N / B), y(high(i)));
    }
    for (let i = B - 1; i >= 0; i--) {
      c.g.lineTo(x(c, (i + 1) * N / B), y(low(i)));
      c.g.lineTo(x(c, i * N / B), y(low(i)));
    }
    c.g.fill();
  }
  function drawCurve() {
    const c = setUp($('curve')), m = D.memories[memory];
    if (!m) return;
    const most = m.reserved ? Math.max(...m.reserved, m.peak) : m.peak, top = most * 1.08 || 1;
    if (m.reserved) band(c, top, () => 0, i => m.reserved[i], colour('--pool'));
    band(c, top, () => 0, i => m.most[i], colour('--live'));
    band(c, top, i => m.least[i], i => m.most[i], colour('--range'));
    scale(c, top);
    if (m.total > 0 && m.total < top) {
      const y = c.h - m.total / top * c.h;
      c.g.strokeStyle = colour('--bad');
      c.g.beginPath(); c.g.moveTo(0, y); c.g.lineTo(c.w, y); c.g.stroke();
    }
    marks(c);
  }
  function drawStack() {
    const c = setUp($('stack')), n = D.stack.names.length;
    let top = 1;
    D.stack.bytes.forEach(row => { top = Math.max(top, row.reduce((a, v) => a + v, 0)); });
    top *= 1.08;
    const below = new Float64Array(B);
    for (let k = 0; k <= n; k++) {
      const low = below.slice();
      for (let i = 0; i < B; i++) below[i] += D.stack.bytes[i][k];
      c.g.globalAlpha = strength(k === n ? 0 : D.stack.names[k]);
      band(c, top, i => low[i], i => below[i], HUES[k === n ? 11 : k]);
      c.g.globalAlpha = 1;
    }
    scale(c, top);
    marks(c);
  }
  const hueOf = label => {
    const k = D.stack.names.indexOf(label);
    return HUES[k < 0 ? 11 : k];
  };
  const hues = D.labels.map((text, i) => hueOf(i));
  function drawBlocks() {
    const c = setUp($('blocks')), b = D.blocks, top = D.height || 1;
    for (let i = 0; i < b.length; i += STRIDE) {
      if (b[i + 3] < from || b[i + 2] > to) continue;
      const left = x(c, b[i + 2]), right = x(c, Math.min(b[i + 3], N));
      const high = Math.max(0.4, b[i + 1] / top * c.h);
      c.g.fillStyle = hues[b[i + 4]];
      c.g.globalAlpha = strength(b[i + 4]);
      c.g.fillRect(left, c.h - b[i] / top * c.h - high, Math.max(0.6, right - left), high);
    }
    c.g.globalAlpha = 1;
    [hovered, selected].filter(i => i >= 0).forEach(i => {
      const left = x(c, b[i + 2]), right = x(c, Math.min(b[i + 3], N));
      const high = Math.max(2, b[i + 1] / top * c.h);
      c.g.strokeStyle = colour('--ink');
      c.g.lineWidth = i === selected ? 2 : 1;
      c.g.strokeRect(left, c.h - b[i] / top * c.h - high, Math.max(2, right - left), high);
    });
    c.g.lineWidth = 1;
    marks(c);
  }
  let asked = false;
  function draw() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      drawCurve(); drawStack(); drawBlocks(); ends();
    });
  }
  function ends() {
    const text = p => byTime ? seconds(nsOf(p)) : 'change ' + Math.min(D.n, Math.round(p)) + ', ' + seconds(nsOf(p));
    document.querySelectorAll('.ends').forEach(e => {
      e.firstChild.textContent = text(from);
      e.lastChild.textContent = text(to);
    });
  }

  // What is there at the cursor.
  function tell() {
    if (cursor < 0) { $('told').textContent = ''; return; }
    const b = bucketOf(cursor), m = D.memories[memory], row = D.stack.bytes[b];
    let text = seconds(nsOf(cursor));
    if (m) {
      text += ', ' + m.name + ': live ' + (m.least[b] === m.most[b] ? size(m.most[b])
        : brief(m.least[b]) + ' to ' + brief(m.most[b]));
      if (m.reserved) text += ', pool ' + brief(m.reserved[b]);
    }
    const order = D.stack.names.map((label, k) => k).sort((p, q) => row[q] - row[p]).slice(0, 3);
    order.forEach(k => {
      if (row[k] > 0) text += '; ' + brief(row[k]) + ' ' + nameOf(D.stack.names[k]);
    });
    $('told').textContent = text;
  }
  function tellBlock() {
    const b = D.blocks, i = hovered >= 0 ? hovered : selected;
    if (i < 0) { $('block').textContent = ''; return; }
    const life = b[i + 3] >= N ? 'still live at the end' : 'freed at ' + seconds(nsOf(b[i + 3]));
    $('block').textContent = D.labels[b[i + 4]] + ': ' + size(b[i + 1]) +
      (b[i + 2] === 0 ? ', there at the start, ' : ', made at ' + seconds(nsOf(b[i + 2])) + ', ') + life;
  }

  function zoom(about, factor) {
    const span = Math.min(N, Math.max(Math.min(N, 8), (to - from) * factor));
    from = Math.max(0, Math.min(N - span, about - (about - from) / (to - from) * span));
    to = from + span;
    draw();
  }
  function pan(by) {
    const span = to - from;
    from = Math.max(0, Math.min(N - span, from + by));
    to = from + span;
    draw();
  }
  const under = (canvas, e) => {
    const box = canvas.getBoundingClientRect(), a = place(from), b = place(to);
    return {p: position(a + (e.clientX - box.left) / box.width * (b - a)),
      y: (box.bottom - e.clientY) / box.height * D.height, per: D.height / box.height};
  };
  // The block at a place, else one that is less than a pixel away; -1: none.
  function blockAt(at) {
    const b = D.blocks;
    for (const slack of [0, at.per])
      for (let i = 0; i < b.length; i += STRIDE)
        if (b[i + 2] <= at.p && b[i + 3] >= at.p && b[i] <= at.y + slack && b[i] + b[i + 1] >= at.y - slack)
          return i;
    return -1;
  }
  function step(by) {
    const n = D.blocks.length / STRIDE;
    if (n === 0) return;
    let k = selected < 0 ? (by > 0 ? 0 : n - 1) : (selected / STRIDE + by + n) % n;
    selected = k * STRIDE;
    cursor = Math.max(D.blocks[selected + 2], 0);
    if (cursor < from || cursor > to) pan(cursor - (from + to) / 2);
    tellBlock(); tell(); draw();
  }

  ['curve', 'stack', 'blocks'].forEach(id => {
    const canvas = $(id);
    let grabbed = null;
    canvas.addEventListener('wheel', e => {
      if (!e.ctrlKey && !e.shiftKey && document.activeElement !== canvas) return; // let the page scroll
      e.preventDefault();
      zoom(under(canvas, e).p, e.deltaY > 0 ? 1.25 : 0.8);
    }, {passive: false});
    canvas.addEventListener('pointerdown', e => {
      grabbed = {p: under(canvas, e).p, x: e.clientX};
      canvas.setPointerCapture(e.pointerId);
    });
    canvas.addEventListener('pointermove', e => {
      const at = under(canvas, e);
      cursor = Math.floor(Math.max(0, Math.min(N - 1, at.p)));
      if (grabbed && Math.abs(e.clientX - grabbed.x) > 3) pan(grabbed.p - at.p);
      if (id === 'blocks') { hovered = grabbed ? -1 : blockAt(at); tellBlock(); }
      tell(); draw();
    });
    canvas.addEventListener('pointerleave', () => { hovered = -1; tellBlock(); draw(); });
    canvas.addEventListener('pointerup', e => {
      if (grabbed && Math.abs(e.clientX - grabbed.x) <= 3 && id === 'blocks') { selected = blockAt(under(canvas, e)); tellBlock(); }
      grabbed = null;
      draw();
    });
    canvas.addEventListener('pointercancel', () => { grabbed = null; });
    canvas.addEventListener('dblclick', e => zoom(under(canvas, e).p, 0.4));
    canvas.addEventListener('keydown', e => {
      const span = to - from, at = cursor < 0 ? (from + to) / 2 : cursor;
      const move = by => { cursor = Math.round(Math.max(0, Math.min(N - 1, at + by))); tell();
        if (cursor < from || cursor > to) pan(by); };
      const keys = {
        ArrowLeft: () => e.shiftKey ? pan(-span / 4) : move(-Math.max(1, span / 100)),
        ArrowRight: () => e.shiftKey ? pan(span / 4) : move(Math.max(1, span / 100)),
        ',': () => move(-1), '.': () => move(1),
        '+': () => zoom(at, 0.5), '=': () => zoom(at, 0.5), '-': () => zoom(at, 2),
        '0': () => { from = 0; to = N; }, Home: () => { cursor = from; tell(); },
        End: () => { cursor = Math.min(N - 1, Math.floor(to)); tell(); }, n: () => step(1), p: () => step(-1),
        t: toggle, Escape: () => { selected = cursor = -1; tell(); tellBlock(); },
      };
      if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      keys[e.key]();
      draw();
    });
  });
  function toggle() {
    byTime = !byTime;
    $('axis').setAttribute('aria-pressed', String(byTime));
    draw();
  }
  $('axis').addEventListener('click', toggle);
  $('whole').addEventListener('click', () => { from = 0; to = N; draw(); });
  const choose = $('memory');
  D.memories.forEach((m, i) => choose.add(new Option(m.name, String(i))));
  choose.addEventListener('change', () => { memory = Number(choose.value); tell(); draw(); });
  const key = $('key');
  D.stack.names.concat([-1]).forEach((label, k) => {
    const item = document.createElement('span'), box = document.createElement('i');
    box.style.background = HUES[label < 0 ? 11 : k];
    item.append(box, label < 0 ? 'all others' : nameOf(label));
    item.title = label < 0 ? 'all others' : D.labels[label];
    key.append(item);
  });
  $('drawn').textContent = D.n_blocks === 0 ? 'There are no blocks.' :
    (D.blocks.length / STRIDE < D.n_blocks
      ? 'The largest ' + D.blocks.length / STRIDE + ' of ' + D.n_blocks + ' blocks are drawn. '
      : D.n_blocks + ' blocks. ') +
    (D.packed ? 'They lie where best fit would put them: their own addresses are not told or too far apart.'
      : 'From bottom to top by address; addresses that no block ever had are left out.');

  // What is looked for: rows without it go, in drawings all else fades.
  function find() {
    const text = $('find').value.trim().toLowerCase(), has = label => label.toLowerCase().includes(text);
    let rows = 0, blocks = 0;
    found = text === '' ? null : D.labels.map((label, i) => i > 0 && has(label));
    document.querySelectorAll('table.sort tbody tr').forEach(row => {
      row.hidden = found !== null && !has(row.cells[row.cells.length - 1].textContent);
      rows += row.hidden ? 0 : 1;
    });
    for (let i = 4; found && i < D.blocks.length; i += STRIDE) blocks += found[D.blocks[i]] ? 1 : 0;
    $('found').textContent = found === null ? '' : rows + ' rows, ' + blocks + ' blocks drawn';
    draw();
  }
  $('find').addEventListener('input', find);
  addEventListener('keydown', e => {
    if (e.key !== '/' || e.target === $('find') || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    $('find').focus();
  });

  addEventListener('resize', draw);
  dark.addEventListener('change', draw);
  draw();
})();
