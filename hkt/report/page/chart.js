// Plots: Vega-Lite with its interpreter, so that no text is ever evaluated as a script.

const darkQuery = window.matchMedia('(prefers-color-scheme: dark)');
const isDark = () => darkQuery.matches;

// One colour, one shape a model, the same in every plot; several levels are filled lines, one level dashed.
const kRows = ['HKT', 'HKT fusion', 'MHA', 'MHA+conv', 'MHA wide'];
const kRowColors = {
  light: ['#0067a5', '#1f8a70', '#b35900', '#a8326e', '#6b6b6b'],
  dark: ['#5ab4f0', '#5fd0b0', '#f0a24a', '#f08abf', '#b5b5b5'],
};
const kMany = {  // for heads and runs: the models' colours and more
  light: [...kRowColors.light, '#5b3fb0', '#8a7300', '#00838f', '#c0392b', '#3d5a2a'],
  dark: [...kRowColors.dark, '#b49bff', '#d8c24a', '#5fd4e0', '#ff8f80', '#a9cc8e'],
};
const kShapes = ['circle', 'square', 'triangle-up', 'diamond', 'cross'];
const kDashes = [[1, 0], [6, 2], [2, 2], [8, 2, 2, 2], [4, 4]];
const theme = () => isDark()
    ? {surface: '#16191d', text: '#e4e6e8', faint: '#a9b0b7', grid: '#333a41', rows: kRowColors.dark, many: kMany.dark, good: '#5ab4f0', bad: '#f0a24a', open: '#a9b0b7'}
    : {surface: '#ffffff', text: '#1c2024', faint: '#565f68', grid: '#e1e5e9', rows: kRowColors.light, many: kMany.light, good: '#0067a5', bad: '#b35900', open: '#6b6b6b'};

function rowScale(rows) {
  const known = kRows.filter((row) => rows.includes(row)), others = rows.filter((row) => !kRows.includes(row));
  const domain = [...known, ...others];
  const index = (row) => kRows.includes(row) ? kRows.indexOf(row) : domain.indexOf(row) % kRows.length;
  return {
    domain,
    color: {domain, range: domain.map((row) => theme().rows[index(row)])},
    shape: {domain, range: domain.map((row) => kShapes[index(row)])},
    dash: {domain, range: domain.map((row) => kDashes[index(row)])},
  };
}

function config(width) {
  const t = theme(), font = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';
  return {
    font, background: t.surface, view: {stroke: null}, aria: false,
    axis: {labelColor: t.faint, titleColor: t.text, gridColor: t.grid, domainColor: t.grid, tickColor: t.grid, labelFontSize: 12,
           titleFontSize: 12, titleFontWeight: 'normal', labelLimit: 260},
    axisQuantitative: {tickCount: 8, format: ',~r'},
    legend: {labelColor: t.text, titleColor: t.text, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 'normal', orient: 'bottom',
             columns: width < 500 ? 2 : 3, symbolStrokeWidth: 2, symbolOpacity: 1},
    header: {labelColor: t.text, titleColor: t.text, labelFontSize: 13, labelFontWeight: 'bold', labelAnchor: 'start'},
    text: {color: t.text, fontSize: 12}, rule: {color: t.faint}, line: {strokeWidth: 2}, point: {filled: true, size: 60, opacity: 1}, tick: {opacity: 1},
  };
}

const charts = [];  // of the page as it is now, in order

// A plot under a title that says what to see, with its numbers as a table and as CSV, SVG and PNG. `spec(width)` gives the
// Vega-Lite specification; it is asked again when the width or the colours of the page change.
function chart({id, title, note, spec, columns, rows, description}) {
  const plot = el('div', {class: 'plot', role: 'img', 'aria-label': `${title}. ${description ?? note ?? ''} The numbers are in the table below.`});
  const entry = {id, plot, spec, view: null};
  const save = (kind, action) => button(kind, `Save the plot "${title}" as ${kind}`, action);
  const tools = el('div', {class: 'tools'},
      save('SVG', async () => download(`${id}.svg`, await entry.view.toSVG(), 'image/svg+xml')),
      save('PNG', async () => {
        const canvas = await entry.view.toCanvas(2);
        canvas.toBlob((blob) => download(`${id}.png`, blob));
      }));
  charts.push(entry);
  return el('figure', {id, 'aria-labelledby': `${id}-title`},
      el('h3', {id: `${id}-title`}, title), note ? el('p', {class: 'note'}, note) : null, plot, tools,
      el('details', {}, el('summary', {}, 'Numbers'), table(title, columns, rows, {name: id})));
}

async function draw(entry, width) {
  if (width === 0 || !entry.plot.isConnected) return;
  entry.width = width;
  await drawAt(entry, width);
  if (!entry.spec(width).facet) return;
  // Facets have no width of their own to be told: what their labels take is known once they are drawn.
  const excess = entry.plot.scrollWidth - entry.plot.clientWidth;
  if (excess > 0) await drawAt(entry, width - excess);
}

async function drawAt(entry, width) {
  if (entry.view) entry.view.finalize();
  const picture = el('div', {'aria-hidden': 'true'});  // the plot around it has the role and the name
  entry.plot.replaceChildren(picture);
  const warnings = {level: () => warnings, warn: () => warnings, info: () => warnings, debug: () => warnings,
                    error: (...what) => { console.error(...what); return warnings; }};
  const own = entry.spec(width);
  const specification = {...own, config: config(width), padding: 4, autosize: own.facet ? {type: 'pad'} : {type: 'fit-x', contains: 'padding'}};
  const compiled = vegaLite.compile(specification, {logger: warnings}).spec;
  entry.view = new vega.View(vega.parse(compiled, null, {ast: true}), {
    expr: vega.expressionInterpreter, renderer: 'svg', container: picture, hover: true, logLevel: vega.Error,
  });
  entry.view.tooltip((handler, event, item, value) => {
    if (value === null || value === undefined || value === '') {
      hideTip();
    } else {
      showTip(event, typeof value === 'object' ? Object.entries(value).map(([name, text]) => `${name}: ${text}`) : [String(value)]);
    }
  });
  await entry.view.runAsync();
}

async function drawAll(entries) {
  const widths = entries.map((entry) => entry.plot.clientWidth);  // before the first plot: each answer after one lays the page out anew
  for (const [i, entry] of entries.entries()) {
    try {
      await draw(entry, widths[i]);
    } catch (error) {
      entry.plot.replaceChildren(el('p', {class: 'problem'}, `This plot could not be drawn: ${error.message}`));
      console.error(error);
    }
  }
}

// Frequent parts of specifications.
const labelRoom = (labels, most) => Math.min(most, 20 + 6.6 * Math.max(...labels.map((label) => label.length)));
const tip = (field, title, format) => ({field, title, ...(format ? {format, type: 'quantitative'} : {type: 'nominal'})});
const accuracyAxis = (title) => ({type: 'quantitative', scale: {zero: false, nice: true, padding: 6}, title, axis: {tickCount: 6}});
