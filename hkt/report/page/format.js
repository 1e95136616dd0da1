// Numbers as text. Accuracies are shares in the data and percent on the page.

const dash = '–';
const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);
const fixed = (digits) => (value) => isNumber(value) ? value.toFixed(digits) : dash;
const percent = (share, digits) => isNumber(share) ? (100 * share).toFixed(isNumber(digits) ? digits : 2) : dash;
const signed = (value, digits = 2) => isNumber(value) ? (value < 0 ? '−' : '+') + Math.abs(value).toFixed(digits) : dash;
const points = (share) => signed(isNumber(share) ? 100 * share : null);
const whole = (value) => isNumber(value) ? Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, '\u00a0') : dash;
const minutes = (seconds) => isNumber(seconds) ? (seconds / 60).toFixed(1) : dash;
const megabytes = (bytes) => isNumber(bytes) ? (bytes / 1e6).toFixed(0) : dash;
const significant = (value) => isNumber(value) ? String(Number(value.toPrecision(4))).replace('-', '−') : dash;

function meanAndDeviation(summary) {
  if (!summary) return 'missing';
  return percent(summary.mean) + (summary.deviation === null ? '' : ` ± ${percent(summary.deviation)}`);
}

// "3", "1 of 3".
function seedsText(row) {
  const planned = Array.isArray(row.seeds_planned) ? row.seeds_planned.length : row.seeds_planned;
  return row.seeds.length === planned ? String(planned) : `${row.seeds.length} of ${planned}`;
}

function intervalText(contrast) {
  return contrast.low === null ? dash : `[${points(contrast.low)}, ${points(contrast.high)}]`;
}

function pText(test) {
  const p = test.p < 1e-4 ? '< 0.0001' : test.p.toFixed(4);
  return `seed ${test.seed}: ${p} (${test.only_first} : ${test.only_second}${test.method.startsWith('exact') ? ', exact' : ''})`;
}

function listText(items) {
  return items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`;
}

function optionsText(options) {
  const show = (value) => isNumber(value) ? String(Number(value.toPrecision(5))) : value === null ? 'default' : String(value);
  const parts = Object.entries(options ?? {}).map(([name, value]) => `${name.replaceAll('_', ' ')} ${show(value)}`);
  return parts.length ? parts.join(', ') : 'none';
}

function mean(values) {
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
}
