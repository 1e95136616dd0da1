// Trained models: the published claims beside ours, over all runs.

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

// Means over all runs: a task counts as often as it has runs.
function perLevel(rows, when) {
  const levels = [...new Set(rows.map((r) => r.level))];
  const text = levels.map((level) => significant(mean(rows.filter((r) => r.level === level).flatMap((r) => r[when]?.values ?? [])))).join(', ');
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
