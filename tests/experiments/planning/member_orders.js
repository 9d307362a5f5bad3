// Members of the table of loads, and of each drawing with members.
const texts = (root, selector, text) => [...root.querySelectorAll(selector)].map(text);
return [
  texts(document, 'table.loads tbody th', cell => cell.title),
  ...texts(document, 'svg.drawing', drawing => texts(drawing, '.member title', title => title.textContent))
    .filter(names => names.length),
];
