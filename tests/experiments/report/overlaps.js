// Texts that overlap in a drawing or in the page, or that exceed their drawing.
const faults = [];
const words = text => text.trim().slice(0, 40);
const find = (boxes, region) => boxes.forEach((one, index) => {
  for (const other of boxes.slice(index + 1)) {
    if (region(one.element) !== region(other.element)) continue;
    const width = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
    const height = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
    if (width > 1 && height > 3) faults.push(`overlap: ${one.text} / ${other.text}`);
  }
});
const drawn = [...document.querySelectorAll('svg text')]
  .filter(element => element.textContent.trim() && element.checkVisibility())
  .map(element => ({element, box: element.getBoundingClientRect(), text: words(element.firstChild?.data ?? element.textContent)}));
for (const {element, box, text} of drawn) {
  const frame = element.ownerSVGElement.getBoundingClientRect();
  if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
    faults.push('outside of the drawing: ' + text);
}
find(drawn, element => element.ownerSVGElement);
const written = [];
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const text = texts.currentNode, element = text.parentElement;
  if (!text.data.trim() || element.closest('svg, script, style') || !element.checkVisibility()) continue;
  if (parseFloat(getComputedStyle(element).fontSize) === 0) continue;
  const range = document.createRange();
  range.selectNodeContents(text);
  for (const box of range.getClientRects()) if (box.width > 0.5) written.push({element, box, text: words(text.data)});
}
find(written, element => element.closest('.scroll'));
return faults;
