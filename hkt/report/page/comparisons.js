// Differences and effects with their intervals, and the verdicts in words.

const kVerdicts = ['above 0', 'open', 'below 0'];

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
