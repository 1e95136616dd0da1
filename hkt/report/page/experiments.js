// The experiments: what is there, the table beside the published one, and the order of the sections.

function taskOrder(experiments) {
  return experiments.tasks.filter((task) => task.rows.length);
}

// What of the experiments is there, and what is not.
function stateOf(experiments) {
  const missing = experiments.missing;
  const box = el('div', {class: missing.length || experiments.notes.length ? 'missing' : null},
      el('p', {id: 'runs-done'}, `${experiments.runs_done} of ${experiments.runs_planned} runs of tier ${experiments.tier} are there` +
          (missing.length ? '; each figure below says how many of its seeds it is of.' : '.')));
  if (missing.length) {
    box.append(el('details', {}, el('summary', {}, `Missing: ${missing.length} rows`),
        table('Missing runs', [textColumn('experiment', (r) => r.name), textColumn('task', (r) => r.task), textColumn('model', (r) => r.row),
                               textColumn('group', (r) => r.group), textColumn('seeds', (r) => r.seeds.join(', '))], missing, {name: 'missing'})),
        el('p', {class: 'note'}, 'To run what is missing: ', el('code', {}, `hkt reproduce --tier ${experiments.tier}`)));
  }
  if (experiments.notes.length) box.append(el('p', {}, 'To be read with care:'), el('ul', {}, experiments.notes.map((note) => el('li', {}, note))));
  return box;
}

function mainTable(experiments) {
  const rows = experiments.tasks.flatMap((task) => task.rows.map((row) => ({task, ...row})));
  return table('Test accuracy of the best-on-validation weights, evaluated once (mean ± sample standard deviation over seeds)', [
    textColumn('task', (r) => r.task.title), textColumn('model', (r) => r.row),
    column('levels', (r) => r.levels, (v, r) => r.convolution ? `${v}, conv` : String(v)),
    column('seeds', (r) => seedsText(r)),
    column('test accuracy, %', (r) => r.test?.mean ?? null, (v, r) => meanAndDeviation(r.test)),
    column('published, %', (r) => r.published?.mean ?? null, (v, r) => r.published ? meanAndDeviation(r.published) : dash),
    column('distance, points', (r) => r.distance, points),
    column('last validation, %', (r) => r.last?.mean ?? null, (v, r) => r.last ? meanAndDeviation(r.last) : dash),
    column('parameters', (r) => r.parameters, whole), column('steps', (r) => r.steps, whole),
    column('processor minutes', (r) => isNumber(r.cpu_seconds) ? r.cpu_seconds / 60 : null, fixed(1)),
    column('wall minutes', (r) => isNumber(r.wall_seconds) ? r.wall_seconds / 60 : null, fixed(1)),
    column('memory, MB', (r) => isNumber(r.peak_memory_bytes) ? r.peak_memory_bytes / 1e6 : null, fixed(0)),
  ], rows, {name: 'results', mark: (r) => r.seeds.length < r.seeds_planned.length ? 'incomplete' : null});
}

function sizesTable(experiments) {
  const rows = experiments.tasks.filter((task) => task.sizes);
  if (!rows.length) return null;
  const floor = (task, name) => task.floors?.find((one) => one.floor === name)?.test ?? null;
  const box = table('Sizes of the splits, and floors: what needs no model (accuracy on the test split, %)', [
    textColumn('task', (t) => t.title), column('train', (t) => t.sizes.train, whole), column('validation', (t) => t.sizes.validation, whole),
    column('test', (t) => t.sizes.test, whole), column('most frequent class', (t) => floor(t, 'majority'), percent),
    column('regression on token counts', (t) => floor(t, 'count_regression'), percent), column('regression on grey values', (t) => floor(t, 'value_regression'), percent),
    textColumn('the published figures are', (t) => t.published_note)], rows, {name: 'sizes'});
  box.classList.add('wrap');
  return box;
}

function accuracyChart(experiments) {
  const values = [], marks = [];
  for (const task of taskOrder(experiments)) {
    for (const row of task.rows) {
      const common = {task: task.title, row: row.row};
      (row.test?.values ?? []).forEach((value, i) => values.push({...common, seed: row.seeds[i], accuracy: 100 * value}));
      if (row.test) {
        const deviation = row.test.deviation ?? 0;
        marks.push({...common, mean: 100 * row.test.mean, low: 100 * (row.test.mean - deviation), high: 100 * (row.test.mean + deviation),
                    text: meanAndDeviation(row.test), seeds: seedsText(row)});
      }
      if (row.published) marks.push({...common, published: 100 * row.published.mean, text: meanAndDeviation(row.published)});
    }
  }
  if (!values.length) return null;
  const scale = () => rowScale([...new Set(values.map((v) => v.row))]);
  const spec = (width) => ({
    data: {values: [...values, ...marks]},
    facet: {row: {field: 'task', title: null, sort: taskOrder(experiments).map((t) => t.title), header: {orient: 'top', labelAnchor: 'start', labelAngle: 0}}},
    resolve: {scale: {x: 'independent', y: 'independent'}},
    spec: {
      width: Math.max(120, width - 30 - labelRoom(values.map((v) => v.row), width / 2)),
      height: {step: 22},
      encoding: {y: {field: 'row', type: 'nominal', sort: kRows, title: null}},
      layer: [
        {mark: {type: 'rule', strokeWidth: 2}, transform: [{filter: 'isValid(datum.mean)'}],
         encoding: {x: {field: 'low', ...accuracyAxis('test accuracy, %')}, x2: {field: 'high'}, color: {field: 'row', type: 'nominal', scale: scale().color, legend: null},
                    tooltip: [tip('row', 'model'), tip('text', 'mean ± deviation, %'), tip('seeds', 'seeds')]}},
        {mark: {type: 'tick', thickness: 3, size: 16}, transform: [{filter: 'isValid(datum.mean)'}],
         encoding: {x: {field: 'mean', type: 'quantitative'}, color: {field: 'row', type: 'nominal', scale: scale().color, legend: null},
                    tooltip: [tip('row', 'model'), tip('text', 'mean ± deviation, %'), tip('seeds', 'seeds')]}},
        {mark: {type: 'point', size: 40, opacity: 0.75}, transform: [{filter: 'isValid(datum.accuracy)'}],
         encoding: {x: {field: 'accuracy', type: 'quantitative'}, color: {field: 'row', type: 'nominal', scale: scale().color, legend: null},
                    tooltip: [tip('row', 'model'), tip('seed', 'seed'), tip('accuracy', 'test accuracy, %', '.2f')]}},
        {mark: {type: 'point', shape: 'diamond', size: 110, filled: false, strokeWidth: 2, color: theme().text}, transform: [{filter: 'isValid(datum.published)'}],
         encoding: {x: {field: 'published', type: 'quantitative'}, tooltip: [tip('row', 'model'), tip('text', 'published, %')]}},
      ],
    },
  });
  const rows = experiments.tasks.flatMap((task) => task.rows.flatMap((row) => row.seeds.map((seed, i) => ({task: task.title, row: row.row, seed, value: row.test.values[i]}))));
  return chart({
    id: 'accuracy', title: 'Every seed’s test accuracy: which models lie apart, and where the published figures are',
    note: 'A dot is a seed, the bar the mean, the line one standard deviation to each side; a diamond is the published mean.', spec,
    columns: [textColumn('task', (r) => r.task), textColumn('model', (r) => r.row), column('seed', (r) => r.seed), column('test accuracy, %', (r) => 100 * r.value, fixed(2))], rows,
  });
}

function experimentSections(experiments) {
  const curves = taskOrder(experiments).flatMap((task) => [curveChart(task, 'step'), curveChart(task, 'minutes')]).filter((part) => part !== null);
  return [
    ['Results', [stateOf(experiments), mainTable(experiments), sizesTable(experiments), accuracyChart(experiments)]],
    ['Comparisons', [
      el('p', {class: 'note'}, 'Differences of test accuracy on the same seeds, with the 95 % t-interval of the seeds: above 0, below 0, or open, which includes every comparison of one seed. McNemar’s test is over the test examples of one seed’s two models; it says nothing about other seeds.'),
      intervals('comparisons', verdictText(experiments), 'A line right of 0: HKT is better. The diamond is the published gap.', experiments, (task) => task.comparisons),
      intervals('effects', 'What the hierarchy does, what the convolution does, and whether they add up', 'Effects in the two-by-two table of levels (one, three) and convolution (without, with).', experiments, (task) => task.effects)]],
    ['Training', [curves.length ? el('div', {class: 'columns'}, curves) : null]],
    ['ListOps ladder', ladderParts(experiments)],
    ['Ablations', [...ablationParts(experiments), removedOverRuns(experiments.structure)]],
    ['Recipe', [trialsTable(experiments)]],
    ['Cost of a step', stepParts(experiments)],
    ['Trained models', structureParts(experiments)],
  ];
}
