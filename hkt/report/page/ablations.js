// What stands beside the table: ablations, trials of the recipe, the cost of a step.

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
      const error = Math.sqrt(r.test.mean * (1 - r.test.mean) / r.test_examples);  // every seed has the same test split
      return {row: r.row, accuracy: 100 * r.test.mean, low: 100 * (r.test.mean - error), high: 100 * (r.test.mean + error), reference: r.is_reference, options: r.is_reference ? 'the reference' : optionsText(r.changes)};
    });
    parts.push(chart({
      id, title, note: `Line: one standard error of the test sample to each side; the rule is the reference. ${done.every((r) => r.seeds.length === 1) ? 'One seed' : 'Points are means over the seeds, which share the test sample'}: what another seed would change is not in the line.`,
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
              column('memory of a step, MiB', (r) => isNumber(r.memory_bytes) ? r.memory_bytes / 2 ** 20 : null, fixed(1)), column('times MHA’s memory', (r) => r.memory_ratio, fixed(3)),
              column('parameters', (r) => r.parameters, whole)], rows: values})];
}
