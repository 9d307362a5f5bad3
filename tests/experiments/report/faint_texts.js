const parse = text => {
  const parts = text.match(/[\d.]+/g).map(Number);
  return {rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1};
};
const over = (top, alpha, below) => top.map((value, i) => value * alpha + below[i] * (1 - alpha));
const family = element => {
  const found = [];
  for (let one = element; one; one = one.parentElement) found.unshift(one);
  return found;
};
const behind = element => family(element).reduce((below, one) => {
  const {rgb, alpha} = parse(getComputedStyle(one).backgroundColor);
  return over(rgb, alpha, below);
}, [255, 255, 255]);
const luminance = rgb => {
  const [red, green, blue] = rgb.map(value => value / 255).map(
    value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const contrast = (one, other) => {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
};
const unseen = 'svg, script, style, template, noscript';
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const faint = [];
let checked = 0;
while (texts.nextNode()) {
  const text = texts.currentNode, element = text.parentElement;
  if (!text.data.trim() || element.closest(unseen) || !element.checkVisibility()) continue;
  if (getComputedStyle(element).visibility !== 'visible') continue;
  const below = behind(element), {rgb, alpha} = parse(getComputedStyle(element).color);
  const opacity = family(element).reduce((all, one) => all * getComputedStyle(one).opacity, 1);
  const ratio = contrast(over(rgb, alpha * opacity, below), below);
  checked += 1;
  if (ratio < 4.5) faint.push(`${ratio.toFixed(2)}: ${element.tagName} ${text.data.trim()}`);
}
return {checked, faint};
