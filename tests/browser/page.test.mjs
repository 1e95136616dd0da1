// The page of `hkt report` in headless Chromium. Run by page_test.py, which writes the pages and their JSON into PAGES.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import {createRequire} from 'node:module';
import path from 'node:path';
import test from 'node:test';
import {chromium} from 'playwright-core';

const folder = process.env.PAGES;
const require = createRequire(import.meta.url);
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const report = JSON.parse(fs.readFileSync(path.join(folder, 'whole.json'), 'utf8'));
// 2 s is what the page must take on an idle machine; the tests share two cores with others.
const kMostMilliseconds = 8000;

const browser = await chromium.launch({executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu']});
test.after(() => browser.close());

// Opens a page from disk without network; whatever the browser complains about is in `complaints`.
async function open(name, options = {}) {
  const context = await browser.newContext({offline: true, viewport: {width: 1200, height: 900}, acceptDownloads: true, ...options});
  const page = await context.newPage();
  const complaints = [];
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) complaints.push(message.text()); });
  page.on('pageerror', (error) => complaints.push(error.stack ?? error.message));
  page.on('request', (request) => { if (!/^(file|data|blob):/.test(request.url())) complaints.push(`asks for ${request.url()}`); });
  page.on('dialog', (dialog) => { complaints.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
  await page.goto(`file://${path.join(folder, name)}.html`);
  await page.waitForFunction(() => document.documentElement.dataset.drawn, null, {timeout: 15000});
  return {page, complaints, context};
}

async function withPage(name, options, body) {
  const opened = await open(name, options);
  try {
    await body(opened.page, opened);
    assert.deepEqual(opened.complaints, []);
  } finally {
    await opened.context.close();
  }
}

// The page that tests share which change nothing.
let whole = null;
async function reading(body) {
  whole ??= await open('whole');
  await body(whole.page);
  assert.deepEqual(whole.complaints, []);
}

const cells = (page, id) => page.locator(`#${id} tbody tr`).evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
const percent = (share) => (100 * share).toFixed(2);
const points = (share) => share === null ? '–' : `${share < 0 ? '−' : '+'}${Math.abs(100 * share).toFixed(2)}`;
const summary = (s) => !s ? 'missing' : percent(s.mean) + (s.deviation === null ? '' : ` ± ${percent(s.deviation)}`);
const shownRun = (page, name) => page.locator('label:text-is("Run") + select').selectOption({label: name});

test('opens from disk without network, draws every plot in time, complains of nothing', () => reading(async (page) => {
  assert.ok(Number(await page.evaluate(() => document.documentElement.dataset.drawn)) < kMostMilliseconds);
  const plots = page.locator('.plot');
  assert.ok(await plots.count() > 20);
  for (const [i, plot] of (await plots.all()).entries()) {
    const label = await plot.getAttribute('aria-label');
    assert.ok(await plot.locator('svg').count() === 1, `plot ${i} has no picture: ${label}`);
    const marks = await plot.locator('svg .mark-symbol path, svg .mark-line path, svg .mark-rect path, svg .mark-rule line').count();
    assert.ok(marks > 0, `plot ${i} has no marks: ${label}`);
  }
  assert.equal(await page.locator('.problem').count(), 0);
}));

test('allows no script but its own, and no eval', async () => {
  const {page, complaints, context} = await open('whole');
  const made = await page.evaluate(() => new Promise((resolve) => setTimeout(() => {  // what the tools call directly may eval
    const script = document.createElement('script');
    script.textContent = 'window.injected = 1';
    document.body.append(script);
    let evaluated = true;
    try { (0, eval)('1'); } catch { evaluated = false; }
    resolve([window.injected, evaluated]);
  })));
  assert.deepEqual(made, [undefined, false]);
  assert.ok(complaints.every((text) => text.includes('Content Security Policy')) && complaints.length >= 1, complaints.join('\n'));
  await context.close();
});

test('the table of results equals the JSON', () => reading(async (page) => {
  const expected = report.experiments.tasks.flatMap((task) => task.rows.map((row) => {
    const planned = row.seeds_planned.length, done = row.seeds.length;
    return [task.title, row.row, row.convolution ? `${row.levels}, conv` : String(row.levels), done === planned ? String(done) : `${done} of ${planned}`, summary(row.test),
            row.published ? summary(row.published) : '–', points(row.distance)];
  }));
  assert.equal(expected.length, 14);
  assert.deepEqual((await cells(page, 'table-results')).map((row) => row.slice(0, 7)), expected);
}));

test('the comparisons and effects equal the JSON, with their verdicts', () => reading(async (page) => {
  const seeds = (one) => one.seeds.length === one.seeds_planned ? String(one.seeds.length) : `${one.seeds.length} of ${one.seeds_planned}`;
  const common = (task, one) => [seeds(one), points(one.mean), points(one.low), points(one.high), one.verdict];
  const rows = await cells(page, 'table-comparisons');
  assert.deepEqual(rows.map((row) => row.slice(0, 8)), report.experiments.tasks.flatMap((task) => task.comparisons.map((one) => [task.title, one.label, ...common(task, one), points(one.published_gap)])));
  assert.deepEqual((await cells(page, 'table-effects')).map((row) => row.filter((_, i) => i !== 2)), report.experiments.tasks.flatMap((task) => task.effects.map((one) => [task.title, one.label, ...common(task, one)])));
  const test0 = report.experiments.tasks[0].comparisons[0].mcnemar[0];
  assert.ok(rows[0][8].includes(`seed 1: ${test0.p < 1e-4 ? '< 0.0001' : test0.p.toFixed(4)} (${test0.only_first} : ${test0.only_second}`), rows[0][8]);
}));

test('names what is missing', () => reading(async (page) => {
  assert.match(await page.locator('#runs-done').textContent(), /^41 of 46 runs of tier small are there/);
  await page.locator('summary:has-text("Missing")').click();
  assert.deepEqual((await cells(page, 'table-missing')).map((row) => [row[0], row[4]]), [['imdb-hkt', '2, 3'], ['cifar10-mha', '1, 2, 3']]);
  const results = await cells(page, 'table-results');
  assert.ok(results.some((row) => row[1] === 'HKT' && row[3] === '1 of 3'));
  assert.ok(results.some((row) => row[1] === 'MHA' && row[3] === '0 of 3' && row[4] === 'missing'));
}));

test('hovering a plot says what is there, Escape takes it away', () => reading(async (page) => {
  await page.locator('#accuracy').scrollIntoViewIfNeeded();
  const dot = page.locator('#accuracy .plot svg .mark-symbol path').first();
  await dot.hover({force: true});
  const said = Object.fromEntries(await page.locator('#tip > div').evaluateAll((lines) => lines.map((line) => line.textContent.split(': '))));
  const row = report.experiments.tasks[0].rows.find((one) => one.row === said.model);
  assert.equal(said['test accuracy, %'], percent(row.test.values[row.seeds.indexOf(Number(said.seed))]));
  await page.keyboard.press('Escape');
  assert.ok(await page.locator('#tip').isHidden());
}));

test('hovering a heat map says token, level and value; the keyboard does the same', () => withPage('whole', {}, async (page) => {
  await shownRun(page, 'listops');
  const analysis = JSON.parse(fs.readFileSync(path.join(folder, 'listops/analysis.json'), 'utf8'));
  const matrix = analysis.example.matrices[0].levels[1].scores, n = matrix.length;
  const canvas = page.locator('#map-level-1 .map canvas');
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  const [row, column] = [10, 4];
  await page.mouse.move(box.x + box.width * (column + 0.5) / n, box.y + box.height * (row + 0.5) / n);
  const text = await page.locator('#tip').textContent();
  assert.ok(text.includes('Level 1'), text);
  assert.ok(text.includes('query: tokens 20–21') && text.includes(`“${analysis.example.tokens.slice(20, 22).join(' ')}”`), text);
  assert.ok(text.includes('key: tokens 8–9') && analysis.example.matrices[0].levels[1].tokens_per_row === 2, text);
  assert.ok(text.includes(`value: ${String(Number(matrix[row][column].toPrecision(4))).replace('-', '−')}`), `${text}, expected ${matrix[row][column]}`);
  await page.mouse.move(box.x + box.width * (n - 0.5) / n, box.y + 2);
  assert.ok((await page.locator('#tip').textContent()).includes('hidden by the causal mask'));
  await canvas.focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowLeft');
  assert.ok((await page.locator('#example-readout').textContent()).includes('Level 1'));
  const ranked = await cells(page, 'table-example-row');
  assert.ok(ranked.length > 0 && ranked.length <= 10);
}));

test('a map shows every value of analysis.json to four digits', () => withPage('whole', {}, async (page) => {
  await shownRun(page, 'listops');
  const analysis = JSON.parse(fs.readFileSync(path.join(folder, 'listops/analysis.json'), 'utf8'));
  const [download] = await Promise.all([page.waitForEvent('download'), page.locator('#map-attention button:text-is("CSV")').click()]);
  const lines = fs.readFileSync(await download.path(), 'utf8').trim().split('\r\n');
  const expected = analysis.example.matrices[0].attention.flatMap((values, r) => values.map((value, c) => [r, c, value]));
  assert.equal(lines.length, expected.length + 1);
  expected.forEach(([r, c, value], i) => {
    const fields = lines[i + 1].split(',');
    assert.deepEqual([Number(fields[0]), Number(fields[1]), Number(fields.at(-1))], [r, c, Number(value.toPrecision(4))]);
  });
}));

test('choosing layer, head and run changes what is shown', () => withPage('whole', {}, async (page) => {
  await shownRun(page, 'listops');
  const pixels = () => page.locator('#map-attention .map canvas').evaluate((canvas) => canvas.toDataURL());
  const before = await pixels();
  assert.match(await page.locator('#spectrum h3').textContent(), /layer 0, head 0/);
  await page.locator('label:text-is("Head") + select').selectOption('1');
  await page.locator('label:text-is("Layer") + select').selectOption('1');
  assert.match(await page.locator('#spectrum h3').textContent(), /layer 1, head 1/);
  assert.notEqual(await pixels(), before);
  await page.waitForFunction(() => document.querySelector('#spectrum .plot svg'));
  await shownRun(page, 'pixels');
  assert.equal(await page.locator('#run > h3').first().textContent(), 'pixels');
  assert.equal(await page.locator('canvas.pixels').count(), 1);
  await shownRun(page, 'bare');
  assert.ok((await page.locator('#run').textContent()).includes('hkt analyze bare'));
}));

test('a run without analysis says which command makes it', () => withPage('bare', {}, async (page) => {
  assert.ok((await page.locator('main').textContent()).includes('hkt analyze bare'));
  assert.equal(await page.locator('canvas[tabindex]').count(), 0);
}));

test('text of the data stays text', () => withPage('whole', {}, async (page) => {
  await shownRun(page, 'hostile');
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  const shown = await page.locator('.tokens').textContent();
  for (const token of ['<script>window.hacked = 1</script>', '<img src=x onerror="window.hacked = 2">', '</script>', '<!--', '&lt;b&gt;', '{{1+1}}']) {
    assert.ok(shown.includes(token), token);
  }
  assert.equal(await page.locator('main img, main script, main b').count(), 0);
  assert.ok((await page.locator('#run').textContent()).includes('label <b>bad</b>'));
  await page.locator('#map-attention .map canvas').hover();
  assert.equal(await page.locator('#tip *:not(div)').count(), 0);
  // A class of that name would be a formula where the table is opened as CSV.
  await page.locator('summary:text-is("By class")').click();
  const classes = page.locator('.table').filter({has: page.locator('#table-classes')});
  assert.deepEqual((await cells(page, 'table-classes')).map((row) => row[0]), ['<b>bad</b>', '=1+1']);
  const [download] = await Promise.all([page.waitForEvent('download'), classes.getByRole('button', {name: /as CSV$/}).click()]);
  const lines = fs.readFileSync(await download.path(), 'utf8').split('\r\n');
  assert.deepEqual(lines.slice(1, 3).map((line) => line.split(',')[0]), ['<b>bad</b>', "'=1+1"]);
}));

// Functions of the page's scripts, outside of it; what they call of other scripts is given.
const fromPage = (files, name, given = {}) => new Function(...Object.keys(given),
    files.map((file) => fs.readFileSync(new URL(`../../hkt/report/page/${file}.js`, import.meta.url), 'utf8')).join('') + `return ${name};`)(...Object.values(given));

test('no cell of a CSV is a formula, a number stays one', () => {
  const csv = fromPage(['dom'], 'csvText');
  const column = [{label: '@x', value: (row) => row}];
  assert.equal(csv(column, ['=1', '+1', '-a', '@a', '\ta', 'a=1', ['=1'], {toString: () => '=2'}, -1.5, null]).replaceAll('\r\n', '\n'),
               "'@x\n'=1\n'+1\n'-a\n'@a\n'\ta\na=1\n'=1\n'=2\n-1.5\n\n");
});

test('the line of an ablation is the error of the test sample, however many seeds there are', () => {
  const given = {column: () => null, textColumn: () => null, table: () => null, slug: String, chart: (one) => one, theme: () => ({}), accuracyAxis: () => ({}), tip: () => null};
  const ablationParts = fromPage(['format', 'ablations'], 'ablationParts', given);
  const row = (seeds) => ({name: 'a', row: 'HKT', is_reference: true, test_examples: 100, seeds, seeds_planned: seeds, test: {mean: 0.36, deviation: null, values: []}});
  for (const [seeds, words] of [[[1], 'One seed: '], [[1, 2, 3, 4], 'Points are means over the seeds']]) {
    const [part] = ablationParts({ablations: [row(seeds)]});
    const [{low, high}] = part.spec(500).data.values;
    assert.ok(Math.abs(low - 31.2) < 1e-9 && Math.abs(high - 40.8) < 1e-9, `${low} ${high}`);
    assert.ok(part.note.includes(words), part.note);
  }
});

test('the figures of the claims are means over runs', () => reading(async (page) => {
  const groups = report.experiments.structure.groups.filter((group) => group.row === 'HKT');
  assert.deepEqual(groups.map((group) => group.runs), [3, 1, 3]);
  const rows = await cells(page, 'table-claims');
  for (const [i, claim] of report.experiments.structure.claims.entries()) {
    const levels = groups.map((group) => group.claims.find((one) => one.key === claim.key).levels);
    const expected = levels[0].map((_, level) => {
      const values = levels.flatMap((one) => one[level].trained.values);
      return String(Number((values.reduce((sum, value) => sum + value, 0) / values.length).toPrecision(4))).replace('-', '−');
    });
    assert.equal(rows[i][2], expected.join(', '));
  }
}));

test('tables and plots save themselves', () => reading(async (page) => {
  const save = async (button) => {
    const [download] = await Promise.all([page.waitForEvent('download'), button.click()]);
    return {name: download.suggestedFilename(), bytes: fs.readFileSync(await download.path())};
  };
  const table = page.locator('#results-section .table').filter({has: page.locator('#table-results')});
  const csv = await save(table.getByRole('button', {name: /^Save the table/}));
  assert.equal(csv.name, 'results.csv');
  const lines = csv.bytes.toString().trim().split('\r\n');
  assert.equal(lines.length, 15);
  assert.ok(Math.abs(Number(lines[1].split(',')[4]) - report.experiments.tasks[0].rows[0].test.mean) < 1e-12);
  const svg = await save(page.locator('#comparisons').getByRole('button', {name: /as SVG$/}));
  assert.match(svg.bytes.toString(), /^<svg[^>]+xmlns/);
  const png = await save(page.locator('#accuracy').getByRole('button', {name: /as PNG$/}));
  assert.equal(png.bytes.subarray(1, 4).toString(), 'PNG');
  assert.ok(png.bytes.length > 5000);
  const map = await save(page.locator('#map-attention').getByRole('button', {name: /as SVG$/}));
  assert.ok(map.bytes.toString().includes('data:image/png'));
}));

for (const [width, height] of [[340, 700], [1700, 1000]]) {
  test(`a window ${width} pixels wide: nothing sticks out, plots take the width`, () => withPage('whole', {viewport: {width, height}}, async (page) => {
    const [inner, whole] = await page.evaluate(() => [document.documentElement.clientWidth, document.documentElement.scrollWidth]);
    assert.ok(whole <= inner, `${whole} > ${inner}`);
    const sizes = await page.locator('.plot').evaluateAll((plots) => plots.map((plot) => [plot.id, plot.scrollWidth - plot.clientWidth, plot.getAttribute('aria-label')]));
    assert.deepEqual(sizes.filter(([, over]) => over > 1), []);
  }));
}

test('follows the width of the window', () => withPage('whole', {}, async (page) => {
  await page.setViewportSize({width: 600, height: 800});
  await page.waitForFunction(() => {
    const plot = document.querySelector('#by-depth .plot');
    return Math.abs(plot.querySelector('svg').getBoundingClientRect().width - plot.clientWidth) < 2 && plot.clientWidth < 600;
  }, null, {timeout: 10000});
}));

for (const colorScheme of ['light', 'dark']) {
  test(`axe finds no serious fault, ${colorScheme}`, () => withPage('whole', {colorScheme}, async (page) => {
    const back = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(back, colorScheme === 'dark' ? 'rgb(22, 25, 29)' : 'rgb(255, 255, 255)');
    await page.locator('details').evaluateAll((all) => all.forEach((one) => { one.open = true; }));
    await page.evaluate(axe);
    const found = await page.evaluate(() => window.axe.run(document, {resultTypes: ['violations']}));
    const serious = found.violations.filter((one) => ['serious', 'critical'].includes(one.impact));
    assert.deepEqual(serious.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(' | ')}`), []);
  }));
}

test('every control can be reached and has a name', () => reading(async (page) => {
  await page.evaluate(() => { document.activeElement.blur(); window.getSelection().removeAllRanges(); document.body.tabIndex = -1; document.body.focus(); });
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content');
  const nameless = await page.locator('button, select, canvas[tabindex], [role=region]').evaluateAll((all) => all.filter((one) =>
    !one.getAttribute('aria-label') && !one.textContent.trim() && !(one.id && document.querySelector(`label[for="${one.id}"]`))).length);
  assert.equal(nameless, 0);
  const ids = await page.locator('[id]').evaluateAll((all) => all.map((one) => one.id));
  assert.deepEqual(ids.filter((id, i) => ids.indexOf(id) !== i), []);
}));

test('changing to dark redraws plots and maps', () => withPage('whole', {}, async (page) => {
  const background = () => getComputedStyle(document.querySelector('#by-depth .plot svg')).backgroundColor;
  const map = () => page.locator('#map-attention .map canvas').evaluate((canvas) => canvas.toDataURL());
  const [before, light] = [await map(), await page.evaluate(background)];
  assert.equal(light, 'rgb(255, 255, 255)');
  await page.emulateMedia({colorScheme: 'dark'});
  await page.waitForFunction(() => getComputedStyle(document.querySelector('#by-depth .plot svg') ?? document.body).backgroundColor === 'rgb(22, 25, 29)', null, {timeout: 15000});
  assert.notEqual(await map(), before);
}));
