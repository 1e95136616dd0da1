// Curves over seeds, by step and by processor time, and how far up the ListOps ladder they lead.

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
    const rows = list.filter((r) => r.accuracy !== null).map((r) => ({row: r.row, [key]: r[key], accuracy: 100 * r.accuracy, examples: r.examples, error: 100 * Math.sqrt(r.accuracy * (1 - r.accuracy) / r.examples)}));
    if (!rows.length) return;
    const root = key === 'operator' ? experiments.ladder?.steps.find((s) => s.predictor === 'root_operator')?.by_operator ?? {} : {};
    const rules = Object.entries(root).filter(([, share]) => share !== null).map(([operator, share]) => ({operator, accuracy: 100 * share}));
    parts.push(chart({
      id: `by-${key}`, title, note,
      spec: (width) => {
        const scale = rowScale([...new Set(rows.map((r) => r.row))]);
        const color = {field: 'row', type: 'nominal', scale: scale.color, title: null};
        const tooltip = [tip('row', 'model'), tip(key, key), tip('accuracy', 'accuracy, %', '.2f'), tip('error', 'standard error', '.2f'), tip('examples', 'examples, all seeds', 'd')];
        return {
          width, height: 260, data: {values: rows},
          encoding: {x: {field: key, type: 'ordinal', title: key === 'depth' ? 'depth of the expression' : 'root operator', axis: {labelAngle: 0}}, y: {field: 'accuracy', ...accuracyAxis('test accuracy, %')}},
          layer: [
            ...(rules.length ? [{data: {values: rules}, mark: {type: 'tick', thickness: 2, size: 60, color: theme().faint}, encoding: {tooltip: [tip('operator', 'knows the root operator'), tip('accuracy', 'accuracy, %', '.1f')]}}] : []),
            {transform: [{calculate: 'datum.accuracy - datum.error', as: 'low'}, {calculate: 'datum.accuracy + datum.error', as: 'high'}],
             mark: {type: 'rule', strokeWidth: 2}, encoding: {y: {field: 'low', ...accuracyAxis('test accuracy, %')}, y2: {field: 'high'}, xOffset: {field: 'row'}, color}},
            {mark: {type: 'point', size: 80}, encoding: {color, shape: {field: 'row', type: 'nominal', scale: scale.shape, title: null}, xOffset: {field: 'row'}, tooltip}},
          ],
        };
      },
      columns: [textColumn('model', (r) => r.row), textColumn(key, (r) => r[key]), column('examples, all seeds', (r) => r.examples, whole), column('accuracy, %', (r) => r.accuracy, fixed(2)), column('standard error', (r) => r.error, fixed(2))], rows}));
  };
  by('depth', task.by_depth, 'ListOps by depth: does accuracy fall with the depth of the expression?', 'All seeds together; the line is one standard error to each side.');
  by('operator', task.by_operator, 'ListOps by root operator: which operators are learned beyond knowing the operator?',
     experiments.ladder ? 'The grey bar is what a predictor gets that knows the root operator and nothing else. The line is one standard error to each side.' : 'All seeds together.');
  return parts;
}
