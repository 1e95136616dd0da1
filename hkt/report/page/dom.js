// Elements, tables, downloads. Text gets into the page as text nodes only: no markup is ever parsed.

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') {
      node.addEventListener(name, value);
    } else {
      node.setAttribute(name, value === true ? '' : String(value));
    }
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

function slug(text) {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '');
}

let ids = 0;
const newId = (stem) => `${stem}-${++ids}`;

function download(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], {type}));
  const link = el('a', {href: url, download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// RFC 4180. Text that a spreadsheet would take for a formula gets an apostrophe before it.
function csvText(columns, rows) {
  const cell = (value) => {
    if (value === null || value === undefined) return '';
    let text = String(value);
    if (typeof value !== 'number' && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns.map((column) => cell(column.label)),
          ...rows.map((row) => columns.map((column) => cell(column.value(row))))]
      .map((line) => line.join(',') + '\r\n').join('');
}

function button(label, description, action) {
  return el('button', {type: 'button', 'aria-label': description, click: action}, label);
}

// A column: {label, value: row => raw, show: value => text (optional), number: right-aligned}.
const column = (label, value, show, number = true) => ({label, value, show: show ?? ((v) => v ?? '–'), number});
const textColumn = (label, value) => column(label, value, undefined, false);

// A real table under a caption, in a box that scrolls by itself, with its numbers as CSV. The first
// column heads its row; `mark` gives a row a class.
function table(caption, columns, rows, {name = slug(caption), mark = () => null} = {}) {
  const head = el('tr', {}, columns.map((c) => el('th', {scope: 'col', class: c.number ? 'number' : null}, c.label)));
  const body = rows.map((row) => el('tr', {class: mark(row)}, columns.map((c, i) => {
    const text = String(c.show(c.value(row), row) ?? '–');
    return i === 0 ? el('th', {scope: 'row'}, text) : el('td', {class: c.number ? 'number' : null}, text);
  })));
  return el('div', {class: 'table'},
      el('div', {class: 'scroll', role: 'region', tabindex: 0, 'aria-label': caption},
          el('table', {id: `table-${name}`}, el('caption', {}, caption), el('thead', {}, head), el('tbody', {}, body))),
      el('div', {class: 'tools'}, button('CSV', `Save the table "${caption}" as CSV`,
          () => download(`${name}.csv`, csvText(columns, rows), 'text/csv;charset=utf-8'))));
}

function select(label, options, chosen, change) {
  const id = newId('select');
  const box = el('select', {id, change: () => change(options[box.selectedIndex].value)},
      options.map((option) => el('option', {selected: option.value === chosen}, option.label)));
  return el('span', {class: 'control'}, el('label', {for: id}, label), box);
}

// The box that follows the pointer.
function showTip(event, lines) {
  const tip = document.getElementById('tip');
  tip.replaceChildren(...lines.map((line) => el('div', {}, line)));
  tip.hidden = false;
  const right = event.clientX + 16 + tip.offsetWidth > document.documentElement.clientWidth;
  tip.style.left = `${Math.max(4, right ? event.clientX - tip.offsetWidth - 12 : event.clientX + 14)}px`;
  tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8))}px`;
}

function hideTip() {
  document.getElementById('tip').hidden = true;
}
