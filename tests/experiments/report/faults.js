const faults = [];
const report = (what, element) => faults.push(what + ': ' + element.outerHTML.slice(0, 80));
if (!document.documentElement.lang) faults.push('no language');
if (!document.title) faults.push('no title');
for (const button of document.querySelectorAll('button, a'))
  if (!button.textContent.trim()) report('no name', button);
for (const cell of document.querySelectorAll('th')) if (!cell.scope) report('no scope', cell);
for (const region of document.querySelectorAll('[role=region], [role=img]'))
  if (!region.getAttribute('aria-label')) report('no label', region);
let level = 0;
for (const heading of document.querySelectorAll('h1, h2, h3, h4')) {
  const own = Number(heading.tagName[1]);
  if (own > level + 1) report('skips a level', heading);
  level = own;
}
return faults;
