// The experiments: the table beside the published one, comparisons, curves, ladder, ablations, structure.

const kVerdicts = ['above 0', 'open', 'below 0'];

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
    column('levels', (r) => r.levels), column('convolution', (r) => r.convolution ? 'yes' : 'no'),
    column('seeds', (r) => seedsText(r)),
    column('test accuracy, %', (r) => r.test?.mean ?? null, (v, r) => meanAndDeviation(r.test)),
    column('published, %', (r) => r.published?.mean ?? null, (v, r) => r.published ? meanAndDeviation(r.published) : dash),
    column('distance, points', (r) => r.distance, points),
    column('last validation, %', (r) => r.last?.mean ?? null, (v, r) => r.last ? meanAndDeviation(r.last) : dash),
    column('parameters', (r) => r.parameters, whole), column('steps', (r) => r.steps, whole),
    column('processor minutes a run', (r) => isNumber(r.cpu_seconds) ? r.cpu_seconds / 60 : null, fixed(1)),
    column('wall minutes a run', (r) => isNumber(r.wall_seconds) ? r.wall_seconds / 60 : null, fixed(1)),
    column('peak memory, MB', (r) => isNumber(r.peak_memory_bytes) ? r.peak_memory_bytes / 1e6 : null, fixed(0)),
  ], rows, {name: 'results', mark: (r) => r.seeds.length < r.seeds_planned.length ? 'incomplete' : null});
}

function sizesTable(experiments) {
  const rows = experiments.tasks.filter((task) => task.sizes);
  if (!rows.length) return null;
  const floor = (task, name) => task.floors?.find((one) => one.floor === name)?.test ?? null;
  const box = table('Sizes of the splits, and floors: what needs no model (accuracy on the test split, %)', [
    textColumn('task', (t) => t.title), column('train', (t) => t.sizes.train, whole), column('validation', (t) => t.sizes.validation, whole),
    column('test', (t) => t.sizes.test, whole), column('most frequent class', (t) => floor(t, 'majority'), percent),
    column('regression on token counts', (t) => floor(t, 'count_regression'), percent),
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

// Intervals of differences around 0, a facet a task.
function intervals(id, title, note, experiments, list) {
  const rows = experiments.tasks.flatMap((task) => list(task).map((one) => ({task: task.title, ...one})));
  if (!rows.length) return null;
  const values = rows.filter((r) => r.mean !== null).map((r) => ({
    task: r.task, label: r.label, mean: 100 * r.mean, low: r.low === null ? null : 100 * r.low, high: r.high === null ? null : 100 * r.high,
    published: isNumber(r.published_gap) ? 100 * r.published_gap : null, verdict: r.verdict, seeds: seedsText(r), interval: intervalText(r)}));
  const columns = [textColumn('task', (r) => r.task), textColumn('difference', (r) => r.label),
    ...(rows[0].formula ? [textColumn('formula', (r) => r.formula)] : []), column('seeds', (r) => seedsText(r)),
    column('points', (r) => isNumber(r.mean) ? 100 * r.mean : null, (v) => signed(v)),
    column('interval from', (r) => isNumber(r.low) ? 100 * r.low : null, (v) => signed(v)), column('to', (r) => isNumber(r.high) ? 100 * r.high : null, (v) => signed(v)),
    textColumn('verdict', (r) => r.verdict),
    ...(rows[0].mcnemar ? [column('published gap', (r) => isNumber(r.published_gap) ? 100 * r.published_gap : null, (v) => signed(v)),
                           textColumn('McNemar p of each seed (right only here : there)', (r) => r.mcnemar.map(pText).join('; ') || dash)] : [])];
  const box = table(title, columns, rows, {name: `${id}-table`});
  if (!values.length) return el('div', {}, box);
  const t = theme;
  const color = () => ({field: 'verdict', type: 'nominal', title: '95 % interval', scale: {domain: kVerdicts, range: [t().good, t().open, t().bad]}});
  const tooltip = [tip('label', 'difference'), tip('mean', 'points', '+.2f'), tip('interval', '95 % interval'), tip('verdict', 'verdict'), tip('seeds', 'seeds')];
  const spec = (width, xTitle = width < 600 ? 'difference, points' : 'difference in test accuracy, points') => ({
    data: {values},
    facet: {row: {field: 'task', title: null, sort: taskOrder(experiments).map((x) => x.title), header: {orient: 'top', labelAngle: 0}}},
    resolve: {scale: {x: 'independent', y: 'independent'}},
    spec: {
      width: Math.max(120, width - 30 - labelRoom(values.map((v) => v.label), width * 0.45)), height: {step: width < 600 ? 34 : 24},
      encoding: {y: {field: 'label', type: 'nominal', sort: null, title: null, axis: {labelLimit: width * 0.45 - 10, ...(width < 600 ? {labelExpr: "split(datum.label, ', ')"} : {})}}},
      layer: [
        {mark: {type: 'rule', strokeDash: [4, 3]}, data: {values: [{}]}, encoding: {x: {datum: 0, type: 'quantitative', title: xTitle}, y: null}},
        {mark: {type: 'rule', strokeWidth: 3, strokeCap: 'round'}, transform: [{filter: 'isValid(datum.low)'}],
         encoding: {x: {field: 'low', type: 'quantitative', title: xTitle}, x2: {field: 'high'}, color: color(), tooltip}},
        {mark: {type: 'point', size: 80}, encoding: {x: {field: 'mean', type: 'quantitative', title: xTitle}, color: color(), tooltip}},
        {mark: {type: 'point', shape: 'diamond', filled: false, size: 110, strokeWidth: 2, color: t().text}, transform: [{filter: 'isValid(datum.published)'}],
         encoding: {x: {field: 'published', type: 'quantitative', title: xTitle}, tooltip: [tip('published', 'published gap, points', '+.2f')]}},
      ],
    },
  });
  return chart({id, title, note, spec, columns, rows});
}

// "HKT − MHA: above 0 on ListOps, open on IMDB."
function verdictText(experiments) {
  const tasks = new Map();
  for (const task of experiments.tasks) {
    const one = task.comparisons.find((comparison) => comparison.second === 'MHA');
    if (one && one.verdict !== 'missing') tasks.set(one.verdict, [...(tasks.get(one.verdict) ?? []), task.title + (one.seeds.length < one.seeds_planned ? ` (${seedsText(one)} seeds)` : '')]);
  }
  const parts = [...tasks].map(([verdict, titles]) => `${verdict} on ${listText(titles)}`);
  return parts.length ? `HKT − MHA: ${parts.join('; ')}` : 'HKT less each other model';
}

// A point an evaluation: mean, least and largest over the seeds that have it.
function bands(task, x) {
  const groups = new Map();
  for (const curve of task.curves) {
    for (const point of curve.validation) {
      const key = `${curve.row} ${point[0]}`;
      if (!groups.has(key)) groups.set(key, {row: curve.row, step: point[0], accuracies: [], times: []});
      const group = groups.get(key);
      group.accuracies.push(100 * point[1]);
      if (isNumber(point[4])) group.times.push(point[4] / 60);
    }
  }
  return [...groups.values()].map((g) => ({row: g.row, step: g.step, minutes: mean(g.times), mean: mean(g.accuracies), low: Math.min(...g.accuracies),
                                          high: Math.max(...g.accuracies), seeds: g.accuracies.length})).filter((g) => x !== 'minutes' || g.minutes !== null);
}

function curveChart(task, x) {
  const values = bands(task, x);
  if (!values.length) return null;
  const time = x === 'minutes', xTitle = time ? 'processor time, minutes (mean over seeds)' : 'training step';
  const spec = (width) => {
    const scale = rowScale([...new Set(values.map((v) => v.row))]);
    const color = {field: 'row', type: 'nominal', scale: scale.color, title: null};
    const tooltip = [tip('row', 'model'), tip('step', 'step', 'd'), ...(time ? [tip('minutes', 'processor minutes', '.2f')] : []), tip('mean', 'accuracy, %', '.2f'),
                     tip('low', 'lowest seed', '.2f'), tip('high', 'highest seed', '.2f'), tip('seeds', 'seeds', 'd')];
    return {
      width, height: 280, data: {values},
      encoding: {x: {field: x, type: 'quantitative', title: xTitle}, color},
      layer: [
        {mark: {type: 'area', opacity: 0.18}, encoding: {y: {field: 'low', ...accuracyAxis('validation accuracy, %')}, y2: {field: 'high'}}},
        {mark: 'line', encoding: {y: {field: 'mean', type: 'quantitative'}, strokeDash: {field: 'row', type: 'nominal', scale: scale.dash, title: null}}},
        {mark: {type: 'point', size: 45}, encoding: {y: {field: 'mean', type: 'quantitative'}, shape: {field: 'row', type: 'nominal', scale: scale.shape, title: null}, tooltip}},
      ],
    };
  };
  const id = `${time ? 'time' : 'curve'}-${task.task}`;
  return chart({
    id, title: time ? `${task.title}: what accuracy a minute of processor time buys` : `${task.title}: how validation accuracy grows, and whether the seeds’ bands part`,
    note: `Line: mean over seeds; band: lowest to highest seed${time ? '; a model that is dearer a step starts and ends further right' : ''}.`, spec,
    columns: [textColumn('model', (r) => r.row), column('step', (r) => r.step), column('processor minutes', (r) => r.minutes, fixed(2)), column('mean, %', (r) => r.mean, fixed(2)),
              column('lowest, %', (r) => r.low, fixed(2)), column('highest, %', (r) => r.high, fixed(2)), column('seeds', (r) => r.seeds)], rows: values});
}

const kPredictors = {majority: 'most frequent class', root_operator: 'root operator'};
const predictorName = (name) => kPredictors[name] ?? name.replace('depth_', 'all to depth ');

function ladderParts(experiments) {
  const task = experiments.tasks.find((one) => one.task === 'listops');
  if (!task) return [];
  const parts = [], steps = (experiments.ladder?.steps ?? []).filter((s) => s.accuracy < 1).map((s) => ({predictor: predictorName(s.predictor), accuracy: 100 * s.accuracy}));
  const models = task.rows.filter((r) => r.test).map((r) => ({row: r.row, accuracy: 100 * r.test.mean, seeds: seedsText(r)}));
  if (steps.length && models.length) {
    parts.push(chart({
      id: 'ladder', title: 'How far up the ListOps ladder each model gets',
      note: 'A rule is what a predictor gets right that knows only so much of the tree; a model between two rules uses more than the one and less than the other.',
      spec: (width) => {
        const scale = rowScale(models.map((m) => m.row));
        return {
          width, height: 60 + 26 * models.length,
          layer: [
            {data: {values: steps}, mark: {type: 'rule', strokeDash: [4, 3]}, encoding: {x: {field: 'accuracy', type: 'quantitative', title: 'test accuracy, %', scale: {zero: false}}, tooltip: [tip('predictor', 'knows'), tip('accuracy', 'accuracy, %', '.1f')]}},
            {data: {values: steps}, mark: {type: 'text', angle: 270, align: 'right', baseline: 'bottom', dx: -4, dy: -3, fontSize: 11}, encoding: {x: {field: 'accuracy', type: 'quantitative'}, y: {value: 0}, text: {field: 'predictor'}}},
            {data: {values: models}, mark: {type: 'point', size: 130}, encoding: {x: {field: 'accuracy', type: 'quantitative'}, y: {field: 'row', type: 'nominal', sort: kRows, title: null},
              color: {field: 'row', type: 'nominal', scale: scale.color, legend: null}, shape: {field: 'row', type: 'nominal', scale: scale.shape, legend: null},
              tooltip: [tip('row', 'model'), tip('accuracy', 'test accuracy, %', '.2f'), tip('seeds', 'seeds')]}},
          ],
        };
      },
      columns: [textColumn('model or predictor', (r) => r.row ?? r.predictor), column('test accuracy, %', (r) => r.accuracy, fixed(2))], rows: [...steps, ...models].sort((a, b) => a.accuracy - b.accuracy)}));
  } else if (!steps.length) {
    parts.push(el('p', {class: 'note'}, 'The ladder is not there. Make it with ', el('code', {}, `hkt data ladder --json > ${experiments.folder}/results/ladder.json`)));
  }
  const by = (key, list, title, note) => {
    const rows = list.filter((r) => r.accuracy !== null).map((r) => ({row: r.row, [key]: r[key], accuracy: 100 * r.accuracy, examples: r.examples}));
    if (!rows.length) return;
    const root = key === 'operator' ? experiments.ladder?.steps.find((s) => s.predictor === 'root_operator')?.by_operator ?? {} : {};
    const rules = Object.entries(root).filter(([, share]) => share !== null).map(([operator, share]) => ({operator, accuracy: 100 * share}));
    parts.push(chart({
      id: `by-${key}`, title, note,
      spec: (width) => {
        const scale = rowScale([...new Set(rows.map((r) => r.row))]);
        const color = {field: 'row', type: 'nominal', scale: scale.color, title: null};
        const tooltip = [tip('row', 'model'), tip(key, key), tip('accuracy', 'accuracy, %', '.2f'), tip('examples', 'examples, all seeds', 'd')];
        return {
          width, height: 260, data: {values: rows},
          encoding: {x: {field: key, type: 'ordinal', title: key === 'depth' ? 'depth of the expression' : 'root operator', axis: {labelAngle: 0}}, y: {field: 'accuracy', ...accuracyAxis('test accuracy, %')}},
          layer: [
            ...(rules.length ? [{data: {values: rules}, mark: {type: 'tick', thickness: 2, size: 60, color: theme().faint}, encoding: {tooltip: [tip('operator', 'knows the root operator'), tip('accuracy', 'accuracy, %', '.1f')]}}] : []),
            ...(key === 'depth' ? [{mark: 'line', encoding: {color}}] : []),
            {mark: {type: 'point', size: 80}, encoding: {color, shape: {field: 'row', type: 'nominal', scale: scale.shape, title: null}, ...(key === 'operator' ? {xOffset: {field: 'row'}} : {}), tooltip}},
          ],
        };
      },
      columns: [textColumn('model', (r) => r.row), textColumn(key, (r) => r[key]), column('examples, all seeds', (r) => r.examples, whole), column('accuracy, %', (r) => r.accuracy, fixed(2))], rows}));
  };
  by('depth', task.by_depth, 'ListOps by depth: does accuracy fall with the depth of the expression?', 'All seeds together; depths with few examples scatter.');
  by('operator', task.by_operator, 'ListOps by root operator: which operators are learned beyond knowing the operator?',
     experiments.ladder ? 'The grey bar is what a predictor gets that knows the root operator and nothing else.' : 'All seeds together.');
  return parts;
}

function ablationParts(experiments) {
  const parts = [];
  for (const reference of experiments.ablations.filter((one) => one.is_reference)) {
    const set = [reference, ...experiments.ablations.filter((one) => one.reference === reference.name && !one.is_reference)];
    const done = set.filter((one) => one.test);
    const columns = [textColumn('row', (r) => r.row), textColumn('options that differ', (r) => r.is_reference ? 'the reference' : optionsText(r.changes)),
      column('seeds', (r) => seedsText(r)), column('test accuracy, %', (r) => r.test ? 100 * r.test.mean : null, (v, r) => meanAndDeviation(r.test)),
      column('difference, points', (r) => isNumber(r.comparison?.mean) ? 100 * r.comparison.mean : null, (v) => signed(v)),
      textColumn('McNemar p (right only here : there)', (r) => r.comparison?.mcnemar.map(pText).join('; ') || dash), column('parameters', (r) => r.parameters, whole),
      column('processor minutes', (r) => isNumber(r.cpu_seconds) ? r.cpu_seconds / 60 : null, fixed(1)), textColumn('note', (r) => r.note)];
    const title = `Ablations on ${reference.task}: what each change costs or brings against ${reference.row}`;
    const id = `ablations-${slug(reference.name)}`;
    if (!done.length) {
      parts.push(table(title, columns, set, {name: id}));
      continue;
    }
    const values = done.map((r) => {
      const error = Math.sqrt(r.test.mean * (1 - r.test.mean) / (r.test_examples * r.seeds.length));
      return {row: r.row, accuracy: 100 * r.test.mean, low: 100 * (r.test.mean - error), high: 100 * (r.test.mean + error), reference: r.is_reference, options: r.is_reference ? 'the reference' : optionsText(r.changes)};
    });
    parts.push(chart({
      id, title, note: 'Line: one standard error of the test sample to each side; the rule is the reference. One seed: what another seed would change is not in the line.',
      spec: (width) => ({
        height: {step: 24}, width, data: {values}, encoding: {y: {field: 'row', type: 'nominal', sort: [...values].sort((a, b) => b.accuracy - a.accuracy).map((v) => v.row), title: null, axis: {labelLimit: Math.min(240, width * 0.4)}}},
        layer: [
          {mark: {type: 'rule', strokeDash: [4, 3]}, transform: [{filter: 'datum.reference'}], encoding: {x: {field: 'accuracy', ...accuracyAxis('test accuracy, %')}, y: null}},
          {mark: {type: 'rule', strokeWidth: 2}, encoding: {x: {field: 'low', type: 'quantitative'}, x2: {field: 'high'}}},
          {mark: {type: 'point', size: 80}, encoding: {x: {field: 'accuracy', type: 'quantitative'}, color: {condition: {test: 'datum.reference', value: theme().text}, value: theme().good},
            tooltip: [tip('row', 'row'), tip('options', 'options that differ'), tip('accuracy', 'test accuracy, %', '.2f')]}},
        ],
      }), columns, rows: set}));
  }
  return parts;
}

function trialsTable(experiments) {
  if (!experiments.trials.length) return null;
  const names = [...new Set(experiments.trials.flatMap((one) => Object.keys(one.options)))];
  return table('Trials of the recipe: chosen by validation, HKT and MHA with the same trials', [
    textColumn('experiment', (r) => r.name), textColumn('task', (r) => r.task), textColumn('model', (r) => r.row),
    ...names.map((name) => column(name.replaceAll('_', ' '), (r) => r.options[name] ?? null, (v) => v === null ? dash : String(v))),
    column('seeds', (r) => seedsText(r)), column('best validation accuracy, %', (r) => r.best ? 100 * r.best.mean : null, (v, r) => meanAndDeviation(r.best)),
    column('processor minutes', (r) => isNumber(r.cpu_seconds) ? r.cpu_seconds / 60 : null, fixed(1)),
  ], experiments.trials, {name: 'trials'});
}

function stepParts(experiments) {
  const step = experiments.step;
  if (!step) {
    return [el('p', {class: 'note'}, 'No training step was timed. With nothing else running: ', el('code', {}, `hkt bench train --json > ${experiments.folder}/results/step.json`))];
  }
  const values = step.arms.map((arm) => ({...arm, milliseconds: 1000 * arm.seconds}));
  return [chart({
    id: 'step', title: 'What a training step costs against MHA’s, beside the published factor 1.3125',
    note: `Median time of a whole step at T = ${step.seq_len}${step.processor ? ` on ${step.processor}` : ''}, arms in turn. 1.3125 is the share of the score products alone, so a whole step may lie below or above it.`,
    spec: (width) => ({
      width, height: {step: 26}, data: {values}, encoding: {y: {field: 'arm', type: 'nominal', sort: [...values].sort((a, b) => a.ratio - b.ratio).map((v) => v.arm), title: null}},
      layer: [
        {mark: {type: 'bar', height: 14, color: theme().good}, encoding: {x: {field: 'ratio', type: 'quantitative', title: 'time of a step, MHA = 1'}, tooltip: [tip('arm', 'model'), tip('ratio', 'times MHA', '.3f'), tip('milliseconds', 'ms', '.1f')]}},
        {mark: {type: 'rule', strokeDash: [4, 3], strokeWidth: 2, color: theme().text}, data: {values: [{x: 1.3125}]}, encoding: {x: {field: 'x', type: 'quantitative'}, y: null, tooltip: [tip('x', 'published', '.4f')]}},
      ],
    }),
    columns: [textColumn('model', (r) => r.arm), column('ms a step', (r) => r.milliseconds, fixed(1)), column('times MHA’s time', (r) => r.ratio, fixed(3)),
              column('peak memory, MB', (r) => isNumber(r.peak_memory_bytes) ? r.peak_memory_bytes / 1e6 : null, fixed(0)), column('times MHA’s memory', (r) => r.memory_ratio, fixed(3)),
              column('parameters', (r) => r.parameters, whole)], rows: values})];
}

function structureParts(experiments) {
  const structure = experiments.structure;
  if (!structure) return [el('p', {class: 'note'}, 'No result of a model with several levels holds an analysis yet; ', el('code', {}, 'hkt reproduce'), ' makes it with each such run.')];
  const rows = structure.groups.flatMap((group) => group.claims.flatMap((claim) => claim.levels.map((level) => ({...level, key: claim.key, task: group.task, row: group.row, runs: group.runs}))));
  const claimOf = (key) => structure.claims.find((claim) => claim.key === key);
  const parts = [table('What was published about trained models, and ours', [
    textColumn('figure', (c) => c.title), textColumn('published', (c) => c.published || dash),
    textColumn('ours, mean over all HKT runs, levels 0, 1, …', (c) => perLevel(rows.filter((r) => r.key === c.key && r.row === 'HKT'), 'trained')),
    textColumn('the same models before training', (c) => perLevel(rows.filter((r) => r.key === c.key && r.row === 'HKT'), 'initial')),
    textColumn('what it can mean', (c) => c.note)], structure.claims, {name: 'claims'})];
  parts[0].classList.add('wrap');
  for (const [key, title, yTitle, rule] of [
    ['antisymmetric_z', 'Antisymmetric share by level, in deviations from chance: does it grow with the level?', 'deviations from chance', 0],
    ['score_kurtosis', 'Kurtosis of the scores by level, beside the published 33', 'kurtosis of the scores', 33]]) {
    const own = rows.filter((r) => r.key === key);
    if (!own.length) continue;
    const values = own.flatMap((r) => ['trained', 'initial'].filter((when) => r[when]).map((when) => ({
      group: `${r.row}, ${r.task}`, level: r.level, when: when === 'trained' ? 'trained' : 'before training', value: r[when].mean, runs: r[when].values.length})));
    parts.push(chart({
      id: slug(key), title, note: `${claimOf(key).note} Means over heads, layers and seeds.`,
      spec: (width) => ({
        width, height: 260, data: {values},
        layer: [
          {mark: {type: 'rule', strokeDash: [4, 3]}, data: {values: [{y: rule}]}, encoding: {y: {field: 'y', type: 'quantitative'}}},
          {mark: {type: 'line', point: {size: 60}}, encoding: {x: {field: 'level', type: 'ordinal', title: 'level', axis: {labelAngle: 0}}, y: {field: 'value', type: 'quantitative', title: yTitle},
            color: {field: 'group', type: 'nominal', title: null, scale: {range: theme().many}}, strokeDash: {field: 'when', type: 'nominal', title: null, scale: {domain: ['trained', 'before training'], range: [[1, 0], [3, 3]]}},
            tooltip: [tip('group', 'model'), tip('level', 'level'), tip('when', 'when'), tip('value', 'value', '.3f'), tip('runs', 'runs', 'd')]}},
        ],
      }),
      columns: [textColumn('model', (r) => r.group), column('level', (r) => r.level), textColumn('when', (r) => r.when), column('value', (r) => r.value, significant), column('runs', (r) => r.runs)], rows: values}));
  }
  const levels = structure.groups.flatMap((group) => group.heads.map((head) => head.lambda?.length ?? 0));
  const equal = levels.every((one) => one === levels[0]) ? 1 / levels[0] : null;
  parts.push(el('div', {class: 'columns'},
      headsChart(structure, 'lambda', 'Level weights λ of every head and run: did training move them from 1 / L?', 'The rule is 1 / L, where training starts.', 'lambda', equal),
      headsChart(structure, 'beta', 'Gates β of every head and run: attention (1) or convolution (0)?', null, 'beta', null)));
  return parts;
}

function perLevel(rows, when) {
  const levels = [...new Set(rows.map((r) => r.level))];
  const text = levels.map((level) => significant(mean(rows.filter((r) => r.level === level && r[when]).map((r) => r[when].mean)))).join(', ');
  return text || dash;
}

// Of every head of every run, a figure by level: how far training moved it.
function headsChart(structure, key, title, note, yTitle, start) {
  const values = structure.groups.flatMap((group) => group.heads.flatMap((head) => (head[key] ?? []).map((value, level) => ({
    group: `${group.row}, ${group.task}`, level, value, where: `seed ${head.seed}, layer ${head.layer}, head ${head.head}`})))).filter((v) => isNumber(v.value));
  if (!values.length) return null;
  return chart({
    id: `all-${key}`, title, note,
    spec: (width) => ({
      width, height: 240, data: {values},
      layer: [
        {mark: {type: 'rule', strokeDash: [4, 3]}, data: {values: start === null ? [] : [{y: start}]}, encoding: {y: {field: 'y', type: 'quantitative'}}},
        {mark: {type: 'point', size: 45, opacity: 0.75}, encoding: {
          x: {field: 'level', type: 'ordinal', title: 'level', axis: {labelAngle: 0}}, xOffset: {field: 'group'}, y: {field: 'value', type: 'quantitative', scale: {zero: false}, title: yTitle},
          color: {field: 'group', type: 'nominal', title: null, scale: {range: theme().many}, legend: {columns: 2}}, tooltip: [tip('group', 'model'), tip('where', 'where'), tip('level', 'level'), tip('value', yTitle, '.4f')]}},
      ],
    }),
    columns: [textColumn('model', (r) => r.group), textColumn('where', (r) => r.where), column('level', (r) => r.level), column(yTitle, (r) => r.value, significant)], rows: values});
}

function removedOverRuns(structure) {
  const sums = new Map();
  for (const group of structure?.groups ?? []) {
    for (const removed of group.levels_removed.filter((one) => one.removed.length)) {
      const label = `without level ${removed.removed.join(', ')}`, key = `${group.row}, ${group.task}/${label}`;
      if (!sums.has(key)) sums.set(key, {group: `${group.row}, ${group.task}`, label, changes: []});
      sums.get(key).changes.push(100 * removed.change);
    }
  }
  const values = [...sums.values()].map((one) => ({...one, change: mean(one.changes), low: Math.min(...one.changes), high: Math.max(...one.changes), runs: one.changes.length}));
  if (!values.length) return null;
  return chart({
    id: 'removed', title: 'Levels removed after training: what does each trained model lose without them?',
    note: 'Change of validation accuracy: mean over runs, line from the lowest to the highest run. The model never learned to do without: this is not training without a level.',
    spec: (width) => ({
      width, height: Math.max(120, 13 * values.length), data: {values},
      encoding: {y: {field: 'label', type: 'nominal', sort: null, title: null}, yOffset: {field: 'group'}},
      layer: [
        {mark: {type: 'rule', strokeDash: [4, 3]}, data: {values: [{}]}, encoding: {x: {datum: 0, type: 'quantitative', title: 'change, points'}, y: null, yOffset: null}},
        {mark: {type: 'rule', strokeWidth: 2}, encoding: {x: {field: 'low', type: 'quantitative', title: 'change, points'}, x2: {field: 'high'}}},
        {mark: {type: 'point', size: 60}, encoding: {x: {field: 'change', type: 'quantitative', title: 'change, points'}, color: {field: 'group', type: 'nominal', title: null, scale: {range: theme().many}, legend: {columns: width < 500 ? 1 : 3}},
          tooltip: [tip('group', 'model'), tip('label', 'removed'), tip('change', 'change, points', '+.2f'), tip('runs', 'runs', 'd')]}},
      ],
    }),
    columns: [textColumn('model', (r) => r.group), textColumn('removed', (r) => r.label), column('mean change, points', (r) => r.change, (v) => signed(v)), column('lowest', (r) => r.low, (v) => signed(v)),
              column('highest', (r) => r.high, (v) => signed(v)), column('runs', (r) => r.runs)], rows: values});
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
