// Heat maps of one example's attention and scores, on canvas: 256 x 256 cells are one image each.

// {rows, causal, values}: float32 without their lowest byte, three bytes a number; see run_report.cc.
function unpackMatrix(packed) {
  const text = atob(packed.values), n = packed.rows;
  const cells = new Float32Array(n * n).fill(NaN), bits = new DataView(new ArrayBuffer(4));
  let at = 0;
  for (let r = 0; r < n; ++r) {
    for (let c = 0; c < (packed.causal ? r + 1 : n); ++c) {
      for (let byte = 0; byte < 3; ++byte) bits.setUint8(byte, text.charCodeAt(at++));
      cells[r * n + c] = bits.getFloat32(0);
    }
  }
  return {n, cells, at: (r, c) => cells[r * n + c]};
}

function extremes(cells) {
  let low = Infinity, high = -Infinity;
  for (const value of cells) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 0];
}

// Where the colours end: beyond the last 0.5 % of the values of a large matrix, so that one cell does not bleach all others.
function colorRange(cells) {
  const values = cells.filter((value) => !Number.isNaN(value)).sort(), cut = values.length < 1000 ? 0 : Math.floor(values.length * 0.005);
  return values.length ? {low: values[cut], high: values[values.length - 1 - cut], clipped: cut > 0} : {low: 0, high: 0, clipped: false};
}

const mix = (a, b, share) => a.map((x, i) => Math.round(x + (b[i] - x) * share));

// Value -> [r, g, b]. Attention: the square root, so that small weights are seen. Scores: blue above 0, orange below.
function colorMap(kind, {low, high}) {
  const paper = isDark() ? [22, 25, 29] : [255, 255, 255];
  const blue = isDark() ? [108, 188, 244] : [0, 74, 130], orange = isDark() ? [244, 160, 70] : [170, 76, 0];
  if (kind === 'attention') return (value) => mix(paper, blue, high > 0 ? Math.min(1, Math.sqrt(Math.max(0, value) / high)) : 0);
  const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
  return (value) => mix(paper, value < 0 ? orange : blue, Math.min(1, Math.abs(value) / most));
}

function paint(canvas, matrix, color) {
  canvas.width = canvas.height = matrix.n;
  const context = canvas.getContext('2d'), image = context.createImageData(matrix.n, matrix.n);
  matrix.cells.forEach((value, i) => {
    if (Number.isNaN(value)) return;  // hidden by the causal mask
    const [r, g, b] = color(value);
    image.data.set([r, g, b, 255], 4 * i);
  });
  context.putImageData(image, 0, 0);
}

function legendOf(kind, range, color) {
  const bar = el('canvas', {width: 128, height: 1, 'aria-hidden': 'true'}), context = bar.getContext('2d');
  const most = Math.max(Math.abs(range.low), Math.abs(range.high));
  const [from, to] = kind === 'attention' ? [0, range.high] : [-most, most];
  for (let x = 0; x < 128; ++x) {
    context.fillStyle = `rgb(${color(from + (to - from) * x / 127).join(',')})`;
    context.fillRect(x, 0, 1, 1);
  }
  return el('div', {class: 'legend'}, el('span', {}, (range.clipped && kind !== 'attention' ? '≤ ' : '') + significant(from)), bar, el('span', {}, (range.clipped ? '≥ ' : '') + significant(to)), kind === 'attention' ? el('span', {}, '(√ scale)') : null);
}

// The tokens that a row or column stands for, as text.
function tokenText(example, task, cell, index, most = 28) {
  const first = index * cell, last = Math.min(example.tokens.length, first + cell) - 1;
  const place = first === last ? `token ${first}` : `tokens ${first}–${last}`;
  let text = example.tokens.slice(first, last + 1).join(task === 'listops' || task === 'cifar10' ? ' ' : '');
  if (text.length > most) text = `${text.slice(0, most)}…`;
  return `${place} “${text}”`;
}

// One map: {kind, title, matrix, cell (tokens a row), level}. `choose(map, row, column)` is told what is looked at.
function heatMap(id, map, example, task, choose) {
  const range = colorRange(map.matrix.cells), color = colorMap(map.kind, range);
  const canvas = el('canvas', {tabindex: 0, role: 'application', 'aria-roledescription': 'heat map',
                               'aria-label': `${map.title}: ${map.matrix.n} rows (queries) by ${map.matrix.n} columns (keys). Arrow keys move, the line below says what is there.`,
                               'aria-describedby': 'example-readout'});
  const marker = el('div', {class: 'marker', hidden: true});
  paint(canvas, map.matrix, color);
  let at = [map.matrix.n - 1, 0];
  const words = ([r, c]) => [`${map.title}`, `query: ${tokenText(example, task, map.cell, r)}`, `key: ${tokenText(example, task, map.cell, c)}`,
                             Number.isNaN(map.matrix.at(r, c)) ? 'hidden by the causal mask' : `value: ${significant(map.matrix.at(r, c))}`];
  const look = (cell) => {
    at = cell;
    const size = 100 / map.matrix.n;
    marker.hidden = false;
    Object.assign(marker.style, {left: `${at[1] * size}%`, top: `${at[0] * size}%`, width: `max(6px, ${size}%)`, height: `max(6px, ${size}%)`});
    choose(map, at[0], at[1], words(at));
  };
  const cellAt = (event) => {
    const box = canvas.getBoundingClientRect(), clamp = (x) => Math.min(map.matrix.n - 1, Math.max(0, Math.floor(x * map.matrix.n)));
    return [clamp((event.clientY - box.top) / box.height), clamp((event.clientX - box.left) / box.width)];
  };
  canvas.addEventListener('mousemove', (event) => {
    look(cellAt(event));
    showTip(event, words(at));
  });
  canvas.addEventListener('click', (event) => look(cellAt(event)));
  canvas.addEventListener('mouseleave', hideTip);
  canvas.addEventListener('focus', () => look(at));
  canvas.addEventListener('keydown', (event) => {
    const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    if (!step) return;
    event.preventDefault();
    look(at.map((x, i) => Math.min(map.matrix.n - 1, Math.max(0, x + step[i] * (event.shiftKey ? 10 : 1)))));
  });
  const large = () => {
    const scale = Math.max(1, Math.ceil(768 / map.matrix.n)), copy = el('canvas', {width: scale * map.matrix.n, height: scale * map.matrix.n});
    const context = copy.getContext('2d');
    context.imageSmoothingEnabled = false;
    context.drawImage(canvas, 0, 0, copy.width, copy.height);
    return copy;
  };
  const escape = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const svg = () => `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 430" font-family="sans-serif" font-size="12"><rect width="400" height="430" fill="${theme().surface}"/>` +
      `<text x="10" y="20" fill="${theme().text}">${escape(map.title)}, from ${significant(extremes(map.matrix.cells)[0])} to ${significant(extremes(map.matrix.cells)[1])}</text>` +
      `<image x="10" y="35" width="380" height="380" preserveAspectRatio="none" style="image-rendering:pixelated" href="${large().toDataURL()}"/></svg>`;
  const csv = () => {
    const rows = [];
    for (let r = 0; r < map.matrix.n; ++r) {
      for (let c = 0; c < map.matrix.n; ++c) {
        const value = map.matrix.at(r, c);
        if (!Number.isNaN(value)) rows.push({r, c, query: tokenText(example, task, map.cell, r), key: tokenText(example, task, map.cell, c), value: Number(value.toPrecision(4))});
      }
    }
    return csvText([textColumn('row', (x) => x.r), textColumn('column', (x) => x.c), textColumn('query', (x) => x.query), textColumn('key', (x) => x.key), textColumn('value', (x) => x.value)], rows);
  };
  return el('figure', {id, 'aria-labelledby': `${id}-title`}, el('h4', {id: `${id}-title`}, map.title), el('div', {class: 'map'}, canvas, marker),
      legendOf(map.kind, range, color),
      el('div', {class: 'tools'}, button('CSV', `Save "${map.title}" as CSV`, () => download(`${id}.csv`, csv(), 'text/csv;charset=utf-8')),
          button('SVG', `Save "${map.title}" as SVG`, () => download(`${id}.svg`, svg(), 'image/svg+xml')),
          button('PNG', `Save "${map.title}" as PNG`, () => large().toBlob((blob) => download(`${id}.png`, blob)))));
}

// The example's own tokens, coloured by one row of a map; images as their pixels.
function tokenView(example, task) {
  const values = (map, row, t) => map.matrix.at(row, Math.floor(t / map.cell));
  const side = Math.sqrt(example.tokens.length);
  if (task === 'cifar10' && Number.isInteger(side)) {
    const canvas = el('canvas', {class: 'pixels', width: side, height: side, role: 'img', 'aria-label': 'The image; the pixels that the chosen row looks at are coloured'});
    const show = (map, row) => {
      const context = canvas.getContext('2d'), image = context.createImageData(side, side);
      const range = map ? extremes(map.matrix.cells.subarray(row * map.matrix.n, (row + 1) * map.matrix.n)) : [0, 0], most = Math.max(...range.map(Math.abs)) || 1;
      example.tokens.forEach((token, t) => {
        const parts = token.split(',').map(Number), rgb = parts.length === 3 ? parts : [parts[0], parts[0], parts[0]];
        const value = map ? values(map, row, t) : NaN, share = Number.isNaN(value) ? 0 : Math.min(0.85, Math.sqrt(Math.abs(value) / most));
        const here = map && Math.floor(t / map.cell) === row;
        image.data.set([...(here ? [255, 220, 0] : mix(rgb, value < 0 ? [230, 110, 0] : [0, 110, 230], share)), 255], 4 * t);
      });
      context.putImageData(image, 0, 0);
    };
    show(null, 0);
    return {node: canvas, show};
  }
  const gap = task === 'listops' ? ' ' : '';
  const spans = example.tokens.map((token) => el('span', {}, token + gap));
  const show = (map, row) => {
    const [low, high] = extremes(map.matrix.cells.subarray(row * map.matrix.n, (row + 1) * map.matrix.n)), color = colorMap(map.kind, {low, high});
    spans.forEach((span, t) => {
      const value = values(map, row, t), here = Math.floor(t / map.cell) === row;
      span.className = here ? 'here' : '';
      const rgb = Number.isNaN(value) ? null : color(value);
      span.style.backgroundColor = rgb ? `rgb(${rgb.join(',')})` : '';
      span.style.color = !rgb ? '' : (0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] > 140 ? '#000' : '#fff');
    });
  };
  return {node: el('div', {class: 'tokens', tabindex: 0, role: 'region', 'aria-label': 'Tokens of the example'}, spans), show};
}

const kLow = '₀₁₂₃₄₅₆₇₈₉', kHigh = '⁰¹²³⁴⁵⁶⁷⁸⁹';
const small = (number, digits) => String(number).replace(/\d/g, (digit) => digits[digit]);

function examplePanel(run, layer, head) {
  const example = run.analysis.example, task = run.config.task;
  const matrices = example.matrices.find((one) => one.layer === layer && one.head === head);
  if (!matrices) return el('p', {class: 'problem'}, `The example has no matrices of layer ${layer}, head ${head}.`);
  const maps = [{kind: 'attention', title: 'Fused attention', matrix: unpackMatrix(matrices.attention), cell: example.tokens_per_row, level: null},
    ...matrices.levels.map((level) => ({kind: 'scores', title: `Level ${level.level}: λ${small(level.level, kLow)} S⁽${small(level.level, kHigh)}⁾`, matrix: unpackMatrix(level.scores),
                                        cell: level.tokens_per_row, level: level.level}))];
  const readout = el('p', {id: 'example-readout', class: 'readout', role: 'status'}, 'Point at a cell, or move there with the arrow keys.');
  const view = tokenView(example, task);
  const ranking = el('div');
  const showRow = (map, row) => {
    const rows = [];
    for (let c = 0; c < map.matrix.n; ++c) {
      if (!Number.isNaN(map.matrix.at(row, c))) rows.push({key: tokenText(example, task, map.cell, c), value: map.matrix.at(row, c)});
    }
    rows.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    ranking.replaceChildren(table(`${map.title}: the ten largest of the row of ${tokenText(example, task, map.cell, row)}`,
        [textColumn('key', (r) => r.key), column('value', (r) => Number(r.value.toPrecision(4)), significant)], rows.slice(0, 10), {name: 'example-row'}));
  };
  let shown = '';
  const choose = (map, row, key, words) => {
    readout.textContent = words.join(' · ');
    const now = `${map.title} ${row}`;
    if (now === shown) return;
    shown = now;
    view.show(map, row);
    showRow(map, row);
  };
  const grid = el('div', {class: 'maps'}, maps.map((map, i) => heatMap(`map-${i === 0 ? 'attention' : `level-${map.level}`}`, map, example, task, choose)));
  const last = maps[0].matrix.n - 1;
  view.show(maps[0], last);
  showRow(maps[0], last);
  return el('div', {},
      el('p', {class: 'note'}, (isNumber(example.index) ? `Validation sequence ${example.index}, ${example.length} tokens: label ${example.label}, ` : `A text given to the analysis, ${example.length} tokens: `) + `predicted ${example.predicted}` +
          (isNumber(example.probability) ? ` (${percent(example.probability, 1)} %)` : '') + '. ' +
          (example.tokens_per_row > 1 ? `A row of the attention is the mean over ${example.tokens_per_row} tokens. ` : '') + 'Rows are queries, columns keys; a cell of level l stands for its own tokens. Scores are as they enter the softmax: with gates λ is the level’s weight among the attention parts, and score_gain is in them.'),
      grid, readout, el('h4', {}, task === 'cifar10' ? 'The pixels, coloured by the chosen row' : 'The tokens, coloured by the chosen row'), view.node, ranking);
}
