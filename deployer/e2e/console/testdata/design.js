// Everything that a machine can say about the layout of a page: a list of sentences, empty for a page without faults.
(() => {
  const faults = [], root = document.documentElement, width = root.clientWidth;
  const short = element => `${element.tagName.toLowerCase()}${element.className?.baseVal ?? (element.className ? '.' + element.className.split(' ').join('.') : '')} “${element.textContent.trim().replace(/\s+/g, ' ').slice(0, 40)}”`;
  const say = (element, text) => faults.push(`${short(element)} ${text}`);
  const once = judge => { // for an element and those around it, each judged once
    const known = new Map(), ask = element => {
      if (!element || element === document.body) return false;
      if (!known.has(element)) known.set(element, judge(element, getComputedStyle(element)) || ask(element.parentElement));
      return known.get(element);
    };
    return ask;
  };
  const scrolls = once((element, style) => /auto|scroll/.test(style.overflowX + style.overflowY));
  const unseen = once((element, style) => style.clipPath !== 'none' || element.matches('.skip'));
  const floats = once((element, style) => /sticky|fixed/.test(style.position));
  const shown = [...document.body.querySelectorAll('*')].filter(e => e.checkVisibility({visibilityProperty: true}) && !unseen(e));

  // Nothing is outside the window, unless its box scrolls.
  for (const element of shown) {
    const at = element.getBoundingClientRect();
    if (at.width && (at.right > width + 1 || at.left < -1) && !scrolls(element)) say(element, `is outside the window: ${Math.round(at.left)} to ${Math.round(at.right)} of ${width}`);
  }

  // Texts do not overlap. What is sticky covers others on purpose.
  const texts = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), visible = new Set(shown);
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (!node.data.trim() || !visible.has(parent) || floats(parent) || scrolls(parent)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const at of range.getClientRects()) if (at.width > 2) texts.push({at, parent});
  }
  texts.sort((a, b) => a.at.top - b.at.top);
  for (let i = 0; i < texts.length; i++) {
    const a = texts[i];
    for (let j = i + 1; j < texts.length && texts[j].at.top < a.at.bottom - 5; j++) {
      const b = texts[j];
      if (Math.min(a.at.right, b.at.right) - Math.max(a.at.left, b.at.left) > 2 && Math.min(a.at.bottom, b.at.bottom) - b.at.top > 5) say(a.parent, `overlaps ${short(b.parent)}`);
    }
  }

  // What is scrolled out of its box is not there.
  const inBox = (element, at) => {
    const box = element.parentElement?.closest('.ticks, pre, .table');
    const edge = box && scrolls(box) && box.getBoundingClientRect();
    return !edge || at.top >= edge.top && at.bottom <= edge.bottom;
  };

  // What is pressed has 24 pixels each way, or so much room around its middle without another target (WCAG 2.2, 2.5.8).
  const targets = shown.filter(e => e.matches('a[href], button, summary, input:not([type=hidden]), select, textarea'))
    .map(element => ({element, at: element.getClientRects()[0]})).filter(({element, at}) => at && inBox(element, at));
  const middle = at => [(at.left + at.right) / 2, (at.top + at.bottom) / 2];
  const gap = ([x, y], at) => Math.hypot(Math.max(at.left - x, 0, x - at.right), Math.max(at.top - y, 0, y - at.bottom));
  for (const {element, at} of targets) {
    if (at.width >= 23.5 && at.height >= 23.5) continue;
    const crowded = targets.find(other => other.element !== element && gap(middle(at), other.at) < 12);
    if (crowded || getComputedStyle(element).display !== 'inline' && at.height < 18) say(element, `is too small to press: ${Math.round(at.width)}×${Math.round(at.height)}${crowded ? ', close to ' + short(crowded.element) : ''}`);
  }

  // Text that is cut off can be read somewhere.
  for (const element of shown) {
    const style = getComputedStyle(element);
    if (style.textOverflow === 'ellipsis' && element.scrollWidth > element.clientWidth && !element.title) say(element, 'is cut off without a title');
  }
  for (const label of document.querySelectorAll('svg text')) if (label.textContent.endsWith('…') && !label.parentNode.querySelector('title')) say(label, 'is cut off without a title');

  // Sentences have lines that an eye can follow.
  for (const element of shown.filter(e => e.matches('p, li') && !e.querySelector('p, li, pre, table') && !scrolls(e))) {
    const range = document.createRange();
    range.selectNodeContents(element);
    const lines = new Set([...range.getClientRects()].map(at => Math.round(at.bottom / 8)));
    const long = element.innerText.length / Math.max(1, Math.round(element.getBoundingClientRect().height / parseFloat(getComputedStyle(element).lineHeight)));
    if (lines.size > 1 && long > 130 && !getComputedStyle(element).display.includes('flex')) say(element, `has ${Math.round(long)} characters in a line`);
  }

  // One action stands out, and where nothing is shown something leads on.
  const primary = shown.filter(e => e.matches('.button.primary'));
  const places = new Set(primary.map(e => e.closest('article, form, .uploads > li, .apply, .outcome') ?? document.body));
  if (primary.length > places.size || primary.filter(e => !e.closest('article, .uploads > li')).length > 1) faults.push(`${primary.length} primary actions: ${primary.map(e => e.textContent.trim()).join(', ')}`);
  for (const empty of shown.filter(e => e.matches('main > .empty:only-of-type'))) if (!empty.querySelector('a, .button') && !document.querySelector('main .button.primary')) say(empty, 'leads nowhere');
  return faults;
})()
