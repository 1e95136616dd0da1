// Run folders: one is chosen, and everything that its files hold is shown.

function command(text, words) {
  return el('p', {class: 'note'}, `${words} `, el('code', {}, text));
}

function runsTable(runs) {
  const best = (run) => run.validation_curve.length ? Math.max(...run.validation_curve.map((point) => point[1])) : null;
  return table('Runs', [
    textColumn('run', (r) => r.name), textColumn('task', (r) => r.config.task), textColumn('model', (r) => r.config.model), column('levels', (r) => r.config.levels),
    column('steps', (r) => r.config.steps, whole), column('seed', (r) => r.config.seed),
    column('best validation accuracy, %', (r) => best(r), percent),
    textColumn('evaluated on', (r) => r.evaluation ? `${r.evaluation.split}, ${whole(r.evaluation.samples)} sequences` : 'not yet'),
    column('accuracy there, %', (r) => r.evaluation?.accuracy ?? null, (v, r) => r.evaluation ? `${percent(v)} ± ${percent(r.evaluation.standard_error)}` : dash),
    textColumn('analysed', (r) => r.analysis ? 'yes' : 'not yet')], runs, {name: 'runs'});
}

function runCurves(runs) {
  const parts = [];
  const make = (id, title, y, values, yTitle) => values.length === 0 ? null : chart({
    id, title, note: runs.length > 1 ? 'A line a run.' : null,
    spec: (width) => ({
      width, height: 260, data: {values}, mark: {type: 'line', point: y === 'accuracy' ? {size: 45} : false},
      encoding: {x: {field: 'step', type: 'quantitative', title: 'training step'}, y: {field: 'value', type: 'quantitative', scale: {zero: false}, title: yTitle},
                 color: {field: 'run', type: 'nominal', title: null, scale: {range: theme().many}, legend: runs.length > 1 ? {columns: 1} : null}, tooltip: [tip('run', 'run'), tip('step', 'step', 'd'), tip('value', yTitle, '.4f')]},
    }),
    columns: [textColumn('run', (r) => r.run), column('step', (r) => r.step), column(yTitle, (r) => r.value, significant)], rows: values});
  parts.push(make('run-loss', 'Training loss: is it still falling?', 'loss',
      runs.flatMap((run) => run.training_curve.filter((p) => p[1] !== null).map((p) => ({run: run.name, step: p[0], value: p[1]}))), 'training loss, nats'));
  parts.push(make('run-accuracy', 'Validation accuracy: where is its best?', 'accuracy',
      runs.flatMap((run) => run.validation_curve.map((p) => ({run: run.name, step: p[0], value: 100 * p[1]}))), 'validation accuracy, %'));
  return el('div', {class: 'columns'}, parts);
}

// One figure a layer, head and level, a line a head; before training dashed.
function levelChart({id, title, note, rows, initial, field, yTitle, rule}) {
  const label = (r) => r.head === undefined ? `layer ${r.layer}` : `layer ${r.layer}, head ${r.head}`;
  const value = (list, when) => (list ?? []).filter((r) => isNumber(r[field]) && r.level !== null).map((r) => ({place: label(r), level: r.level, when, value: r[field]}));
  const values = [...value(rows, 'trained'), ...value(initial, 'before training')];
  if (!values.length) return null;
  const many = values.some((v) => v.when !== 'trained');
  return chart({
    id, title, note: `${note ?? ''}${many ? ' Dashed: the same model before training.' : ''}`,
    spec: (width) => ({
      width, height: 230, data: {values},
      layer: [
        ...(rule === undefined ? [] : [{mark: {type: 'rule', strokeDash: [4, 3]}, data: {values: [{y: rule}]}, encoding: {y: {field: 'y', type: 'quantitative'}}}]),
        {mark: {type: 'line', point: {size: 55}}, encoding: {
          x: {field: 'level', type: 'ordinal', title: 'level', axis: {labelAngle: 0}}, y: {field: 'value', type: 'quantitative', scale: {zero: false}, title: yTitle},
          color: {field: 'place', type: 'nominal', title: null, scale: {range: theme().many}, legend: {columns: 2}},
          ...(many ? {strokeDash: {field: 'when', type: 'nominal', title: null, legend: null, scale: {domain: ['trained', 'before training'], range: [[1, 0], [3, 3]]}}} : {}),
          tooltip: [tip('place', 'where'), tip('level', 'level'), tip('when', 'when'), tip('value', yTitle, '.4f')]}},
      ],
    }),
    columns: [textColumn('where', (r) => r.place), column('level', (r) => r.level), textColumn('when', (r) => r.when), column(yTitle, (r) => r.value, significant)], rows: values});
}

function spectrumChart(run, layer, head) {
  const own = run.analysis.kernel.filter((r) => r.layer === layer && r.head === head);
  const shown = own.filter((r) => r.eigenvalues);
  const columns = [column('level', (r) => r.level), column('negative share', (r) => r.negative_share, significant), column('negative energy', (r) => r.negative_energy, significant),
                   column('least', (r) => r.min, significant), column('largest', (r) => r.max, significant), column('trace', (r) => r.trace, significant)];
  if (!shown.length) {
    return el('div', {}, command(`hkt analyze ${run.name}`, 'The spectra themselves are not in this analysis.json, which an older hkt wrote; write it again:'),
        table(`Eigenvalues of the score form, layer ${layer}, head ${head}`, columns, own, {name: 'spectrum'}));
  }
  const values = shown.flatMap((r) => [...r.eigenvalues].reverse().map((value, index) => ({level: `level ${r.level}`, index, value})));
  return chart({
    id: 'spectrum', title: `Eigenvalues of the score form, layer ${layer}, head ${head}: how large are the negative ones beside the positive?`,
    note: 'The symmetric part of W_Q W_K^T, largest first. That half of them are negative is an identity when 2 D <= d; their size is what training changes. ' +
        own.map((r) => `Level ${r.level}: ${percent(r.negative_energy, 0)} % of the energy is negative.`).join(' '),
    spec: (width) => ({
      width, height: 250, data: {values},
      layer: [{mark: {type: 'rule'}, data: {values: [{y: 0}]}, encoding: {y: {field: 'y', type: 'quantitative'}}},
              {mark: {type: 'line', point: {size: 25}}, encoding: {x: {field: 'index', type: 'quantitative', title: 'number, largest first'}, y: {field: 'value', type: 'quantitative', title: 'eigenvalue, score'},
                color: {field: 'level', type: 'nominal', title: null, scale: {range: theme().many}}, tooltip: [tip('level', 'level'), tip('index', 'number', 'd'), tip('value', 'eigenvalue', '.4f')]}}],
    }),
    columns: [textColumn('level', (r) => r.level), column('number', (r) => r.index), column('eigenvalue', (r) => r.value, significant)], rows: values});
}

function removedChart(run) {
  const rows = run.analysis.levels_removed.map((r) => ({...r, label: r.removed.length ? `without level ${r.removed.join(', ')}` : 'whole'}));
  return chart({
    id: 'levels-removed', title: 'Levels removed after training: which ones does this model lean on?',
    note: 'Validation accuracy; the line is one standard error of the change. This is not training without a level.',
    spec: (width) => ({
      width, height: {step: 26}, data: {values: rows.map((r) => ({label: r.label, accuracy: 100 * r.accuracy, low: 100 * (r.accuracy - r.change_standard_error), high: 100 * (r.accuracy + r.change_standard_error), change: 100 * r.change}))},
      encoding: {y: {field: 'label', type: 'nominal', sort: null, title: null}},
      layer: [{mark: {type: 'rule', strokeWidth: 2}, encoding: {x: {field: 'low', ...accuracyAxis('validation accuracy, %')}, x2: {field: 'high'}}},
              {mark: {type: 'point', size: 80, color: theme().good}, encoding: {x: {field: 'accuracy', type: 'quantitative'}, tooltip: [tip('label', 'model'), tip('accuracy', 'accuracy, %', '.2f'), tip('change', 'change, points', '+.2f')]}}],
    }),
    columns: [textColumn('model', (r) => r.label), column('accuracy, %', (r) => 100 * r.accuracy, fixed(2)), column('change, points', (r) => 100 * r.change, (v) => signed(v)),
              column('standard error', (r) => 100 * r.change_standard_error, fixed(2)), column('other answers, %', (r) => 100 * r.predictions_changed, fixed(2))], rows});
}

function costChart(run) {
  const cost = run.analysis.cost, parts = cost.causal.filter((r) => r.part !== 'layer');
  const values = parts.flatMap((r) => [{model: 'one level, no gates', part: r.part, value: r.standard / 1e6}, {model: 'this model', part: r.part, value: r.this / 1e6}]);
  return chart({
    id: 'cost', title: 'Where the multiply-adds of one attention layer go, against standard attention',
    note: `Forward, causal pairs, ${cost.tokens} tokens. Score products alone: ${significant(cost.score_factor)} times (published 1.3125 at L = 3, s = 2); the whole layer ${significant(cost.causal.find((r) => r.part === 'layer')?.ratio)} times; attention parameters ${significant(cost.parameters.ratio)} times.`,
    spec: (width) => ({
      width, height: {step: 40}, data: {values}, mark: {type: 'bar', height: 24},
      encoding: {y: {field: 'model', type: 'nominal', sort: null, title: null}, x: {field: 'value', type: 'quantitative', title: 'million multiply-adds'},
                 color: {field: 'part', type: 'nominal', sort: null, title: null, scale: {domain: parts.map((r) => r.part), range: theme().many}}, tooltip: [tip('model', 'model'), tip('part', 'part'), tip('value', 'million', '.3f')]},
    }),
    columns: [textColumn('pairs', (r) => r.pairs), textColumn('part', (r) => r.part), column('standard', (r) => r.standard, whole), column('this model', (r) => r.this, whole), column('ratio', (r) => r.ratio, fixed(4))],
    rows: [...cost.causal.map((r) => ({pairs: 'j ≤ i', ...r})), ...cost.all_pairs.map((r) => ({pairs: 'all', ...r})), {pairs: 'parameters', ...cost.parameters}]});
}

function evaluationPart(run) {
  const evaluation = run.evaluation;
  if (!evaluation) return command(`hkt eval ${run.name}`, 'No eval.json: this run was not evaluated. Make it with');
  const parts = [el('p', {}, `Accuracy on ${evaluation.split}: ${percent(evaluation.accuracy)} % ± ${percent(evaluation.standard_error)} (standard error), ${whole(evaluation.samples)} sequences; most frequent class ${evaluation.majority.class}: ${percent(evaluation.majority.share)} %.`)];
  parts.push(el('details', {}, el('summary', {}, 'By class'), table('Recall and precision by class', [textColumn('class', (r) => r.name), column('samples', (r) => r.samples, whole), column('recall, %', (r) => r.recall, percent), column('precision, %', (r) => r.precision, percent)], evaluation.classes, {name: 'classes'})));
  for (const [key, list, title] of [['depth', evaluation.by_depth, 'Accuracy by depth'], ['operator', evaluation.by_operator, 'Accuracy by root operator']]) {
    if (list) parts.push(el('details', {}, el('summary', {}, title), table(title, [textColumn(key, (r) => r[key]), column('samples', (r) => r.samples, whole), column('accuracy, %', (r) => r.accuracy, percent)], list, {name: `run-by-${key}`})));
  }
  return el('div', {}, parts);
}

// What depends on the layer and head that are chosen.
function headPanel(run, layer, head) {
  const parts = [];
  if (run.analysis.kernel) parts.push(spectrumChart(run, layer, head));
  parts.push(el('h3', {}, 'One example: fused attention, and what each level adds'));
  if (run.analysis.example) {
    parts.push(examplePanel(run, layer, head));
  } else {
    parts.push(run.example_left_out ? el('p', {class: 'note'}, 'The example was left out of this report (--no-example).') : command(`hkt analyze ${run.name}`, 'The analysis holds no example. Make it with'));
  }
  return parts;
}

function analysisParts(run) {
  const a = run.analysis;
  if (!a) {
    return [command(`hkt analyze ${run.name}`, 'No analysis.json: lambda and gates, spectra, kurtosis, attention maps and cost are not there. Make it with')];
  }
  const parts = [];
  if (!run.same_weights) parts.push(el('p', {class: 'problem'}, 'eval.json and analysis.json are of different weights: the run was trained further in between. Write both again.'));
  for (const skipped of a.skipped) parts.push(el('p', {class: 'note'}, `Left out by hkt analyze: ${skipped.subject}, ${skipped.reason}`));
  const initial = a.initial;
  parts.push(el('div', {class: 'columns'},
      a.mixture ? levelChart({id: 'lambda', title: 'Level weights λ: which levels does each head weigh more?', rows: a.mixture, initial: initial?.mixture, field: 'lambda', yTitle: 'lambda', rule: 1 / a.shape.levels, note: 'The rule is 1 / L, where training starts.'}) : null,
      a.mixture ? levelChart({id: 'beta', title: 'Gates β: how much of a level is attention (1) and how much convolution (0)?', rows: a.mixture, initial: initial?.mixture, field: 'beta', yTitle: 'beta'}) : null,
      a.mixture ? levelChart({id: 'variance-share', title: 'Share of each level in the variance of the fused scores', rows: a.mixture, initial: initial?.mixture, field: 'variance_share', yTitle: 'share of variance', note: 'Within rows, as the softmax sees them; sums to 1.'}) : null,
      a.direction ? levelChart({id: 'antisymmetric', title: 'Antisymmetric share of the score form: does it grow with the level?', rows: a.direction, initial: initial?.direction, field: 'alpha', yTitle: 'antisymmetric share', rule: a.direction[0]?.expected, note: 'The rule is what projections have that know nothing of each other.'}) : null,
      a.score_kurtosis ? levelChart({id: 'kurtosis', title: 'Kurtosis of the scores by level', rows: a.score_kurtosis, initial: initial?.score_kurtosis, field: 'kurtosis', yTitle: 'kurtosis', note: '3 is Gaussian; the published figure is about 33.'}) : null,
      a.mardia ? levelChart({id: 'mardia', title: 'Mardia’s kurtosis of the representation, relative to a Gaussian’s', rows: a.mardia, initial: initial?.mardia, field: 'gamma', yTitle: 'kappa / Gaussian − 1', rule: 0}) : null,
      a.levels_removed ? removedChart(run) : null,
      a.cost ? costChart(run) : null));
  if (a.published.length) {
    parts.push(table('Published about trained models, and this one', [textColumn('published', (r) => r.published), column('published value', (r) => r.value, significant), column('here', (r) => r.here, significant), textColumn('what it can mean', (r) => r.note)], a.published, {name: 'published'}));
    parts.at(-1).classList.add('wrap');
  }
  const layers = [...Array(a.shape.layers).keys()], heads = [...Array(a.shape.heads).keys()];
  let layer = 0, head = 0;
  const panel = el('div', {id: 'head-panel'});
  const refresh = () => {
    for (let i = charts.length - 1; i >= 0; --i) {
      if (charts[i].id === 'spectrum') charts.splice(i, 1);
    }
    panel.replaceChildren(...headPanel(run, layer, head));
    return drawAll(charts.filter((entry) => panel.contains(entry.plot)));
  };
  parts.push(el('h3', {}, 'One head'), el('div', {class: 'controls'},
      select('Layer', layers.map((i) => ({label: String(i), value: i})), 0, (value) => { layer = value; refresh(); }),
      select('Head', heads.map((i) => ({label: String(i), value: i})), 0, (value) => { head = value; refresh(); })), panel);
  panel.replaceChildren(...headPanel(run, layer, head));
  run.refresh = refresh;
  return parts;
}

function configPart(run) {
  return el('details', {}, el('summary', {}, 'Options of this run'), el('dl', {class: 'facts'}, Object.entries(run.config).flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, typeof value === 'string' ? value : JSON.stringify(value))])));
}

function runSections(runs) {
  if (!runs.length) return [];
  const box = el('div', {id: 'run'});
  const show = (run) => {
    for (let i = charts.length - 1; i >= 0; --i) {
      if (box.contains(charts[i].plot)) charts.splice(i, 1);
    }
    box.replaceChildren(el('h3', {}, run.name), configPart(run), evaluationPart(run), ...analysisParts(run));
    shownRun = run;
  };
  show(runs[0]);
  const chooser = runs.length < 2 ? null : el('div', {class: 'controls'}, select('Run', runs.map((run, i) => ({label: run.name, value: i})), 0, (i) => {
    show(runs[i]);
    drawAll(charts.filter((entry) => box.contains(entry.plot)));
  }));
  return [['Runs', [runsTable(runs), runCurves(runs)]], ['Inside a trained model', [chooser, box]]];
}

let shownRun = null;
