// Saves plots of a report as SVG:   node tests/browser/figures.mjs report.html FOLDER ID...
// CHROMIUM names the browser. An ID that the page does not have, or cannot draw yet, is an error.

import path from 'node:path';
import {chromium} from 'playwright-core';

const [page_file, folder, ...ids] = process.argv.slice(2);
const browser = await chromium.launch({executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu']});
try {
  const context = await browser.newContext({offline: true, viewport: {width: 860, height: 900}, colorScheme: 'light', acceptDownloads: true});
  const page = await context.newPage();
  await page.goto(`file://${path.resolve(page_file)}`);
  await page.waitForFunction(() => document.documentElement.dataset.drawn, null, {timeout: 60000});
  for (const id of ids) {
    const button = page.locator(`#${id}`).getByRole('button', {name: /as SVG$/});
    if (await button.count() !== 1) throw new Error(`the report has no plot '${id}' yet`);
    const [download] = await Promise.all([page.waitForEvent('download'), button.click()]);
    await download.saveAs(path.join(folder, `${id}.svg`));
    console.log(path.join(folder, `${id}.svg`));
  }
} catch (error) {
  console.error(`figures: ${error.message.split('\n')[0]}`);
  process.exitCode = 1;
} finally {
  await browser.close();
}
