// Reads the report's JSON, builds the sections, draws the plots, and draws them again for other colours or another width.

function about(report) {
  const experiments = report.experiments, parts = [`hkt ${report.hkt_version}`];
  if (experiments) {
    parts.push(`experiments of tier ${experiments.tier}`);
    if (experiments.commits.length) parts.push(`commit ${experiments.commits.join(', ')}`);
    if (experiments.processors.length) parts.push(experiments.processors.join(', '));
  }
  if (report.runs.length) parts.push(`${report.runs.length} ${report.runs.length === 1 ? 'run' : 'runs'}`);
  return parts.join(' · ');
}

async function start() {
  const begin = performance.now();
  const report = JSON.parse(document.getElementById('report-data').textContent);
  const main = document.getElementById('main'), contents = document.getElementById('contents');
  document.getElementById('about').textContent = about(report);
  const sections = [...(report.experiments ? experimentSections(report.experiments) : []), ...runSections(report.runs)];
  main.replaceChildren();
  for (const [title, parts] of sections) {
    const there = parts.filter((part) => part !== null && part !== undefined);
    if (!there.length) continue;
    const id = `${slug(title)}-section`;
    main.append(el('section', {id, 'aria-labelledby': `${id}-heading`}, el('h2', {id: `${id}-heading`}, title), there));
    contents.append(el('li', {}, el('a', {href: `#${id}`}, title)));
  }
  await drawAll(charts);
  darkQuery.addEventListener('change', async () => {
    if (shownRun?.refresh) await shownRun.refresh();  // heat maps have the page's colours in their pixels
    await drawAll(charts);
  });
  let waiting = 0;
  window.addEventListener('resize', () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => drawAll(charts.filter((entry) => entry.plot.clientWidth !== entry.width)), 150);
  });
  document.addEventListener('scroll', hideTip, {passive: true});
  document.addEventListener('keydown', (event) => { if (event.key === 'Escape') hideTip(); });
  document.documentElement.dataset.drawn = String(Math.round(performance.now() - begin));
}
