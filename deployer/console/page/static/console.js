// Every page works without this script.
//
// Nothing here turns a string into HTML or code: a changed page is fetched as a document, which the browser parses without running
// anything. The page becomes the fetched one, node by node, so that focus, selection and input stay.

const main = document.getElementById('main');
main.querySelectorAll(':scope > .preview, :scope > .head:has(~ .head)').forEach(part => part.remove());
const template = document.getElementById('words');
const words = template.dataset;
const stale = document.getElementById('stale');

// Forms: a button can be pressed when everything is agreed to.

function guard(form) {
  const button = form.querySelector('button:not([formnovalidate])');
  if (!button || !form.querySelector('[data-word], .ticks [required]')) return;
  const agreed = [...form.querySelectorAll('[data-word]')].every(input => input.value.trim() === input.dataset.word)
    && [...form.querySelectorAll('.ticks [required]')].every(box => box.checked);
  button.disabled = !agreed;
}

// Tables and lists of cards: rows without every word are hidden.

function filter(input) {
  const table = document.getElementById(input.dataset.filter);
  if (!table) return;
  const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = table.tBodies ? [...table.tBodies].flatMap(body => [...body.rows]).filter(row => row.className !== 'group') : [...table.children];
  let shown = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !wanted.every(word => text.includes(word));
    if (!row.hidden) shown++;
  }
  for (const group of table.querySelectorAll('tr.group')) group.hidden = ![...group.parentNode.rows].some(row => row !== group && !row.hidden);
  const says = document.querySelector(`[data-shown="${input.dataset.filter}"]`);
  if (says) says.textContent = words.shown.replace('{0}', shown).replace('{1}', rows.length);
}

// The searched words stay in the addresses of the page and of its other orders.

function remember(input) {
  const links = document.querySelectorAll('a[data-list]');
  if (!links.length) return;
  const add = address => {
    const url = new URL(address);
    if (input.value) url.searchParams.set('q', input.value); else url.searchParams.delete('q');
    return url.href;
  };
  history.replaceState(null, '', add(location.href));
  for (const link of links) link.href = add(link.href);
}

// Blocks of text get a button that copies them.

function copyable(block) {
  if (!navigator.clipboard || block.parentNode.classList.contains('copied')) return;
  const button = document.importNode(template.content.querySelector('.copy'), true);
  const label = button.querySelector('span');
  label.textContent = words.copy;
  label.className = 'hidden';
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(block.textContent);
    label.textContent = words.copied;
    label.className = '';
    setTimeout(() => { label.textContent = words.copy; label.className = 'hidden'; }, 2000);
  });
  const frame = document.createElement('div');
  frame.className = 'copied';
  block.replaceWith(frame);
  frame.append(block, button);
}

// Times are relative to now; the exact one, in the user's time zone, is shown on hover.

const ago = new Intl.RelativeTimeFormat(document.documentElement.lang, {style: 'short', numeric: 'auto'});
const units = [['year', 31557600], ['month', 2629800], ['day', 86400], ['hour', 3600], ['minute', 60]];

function relative(time) {
  const at = new Date(time.dateTime), seconds = (at - Date.now()) / 1000;
  const [unit, length] = units.find(([, length]) => Math.abs(seconds) >= length * .95) ?? ['second', Infinity];
  const text = ago.format(Math.round(seconds / length) || 0, unit);
  if (time.textContent !== text) time.textContent = text;
  time.title = `${words.local} ${at.toLocaleString()}`;
}

function relate() { document.querySelectorAll('time').forEach(relative); }

function enliven(root) {
  root.querySelectorAll('form').forEach(guard);
  root.querySelectorAll('input[data-filter]').forEach(input => { if (input.value) filter(input); });
  root.querySelectorAll('pre[data-copy]').forEach(copyable);
  const search = document.querySelector('.search input'); // with a keyboard
  if (search && !search.ariaKeyShortcuts && matchMedia('(hover: hover)').matches) {
    search.ariaKeyShortcuts = '/';
    search.placeholder += ' ( / )';
  }
  relate();
}

document.addEventListener('input', event => {
  const input = event.target;
  if (input.dataset.filter) { filter(input); remember(input); }
  if (input.form) guard(input.form);
});
document.addEventListener('formdata', event => { // boxes stay ticked when the plan is shown again
  const boxes = event.target.closest('.choose') ? [...document.querySelectorAll('.apply .ticks [required]')] : [];
  for (const box of boxes) event.formData.delete(box.name);
  for (const box of boxes) if (box.checked) event.formData.append(box.name, box.value);
});
setInterval(relate, 15000);

// A second click does not send a form again.
let sent = new WeakMap();
addEventListener('pageshow', () => { sent = new WeakMap(); });

document.addEventListener('submit', event => {
  if (event.target.dataset.upload) { event.preventDefault(); upload(event.target); return; }
  if (event.target.method === 'post' && event.timeStamp - sent.get(event.target) < 10000) { event.preventDefault(); return; }
  sent.set(event.target, event.timeStamp);
  keep(event.target);
  const input = event.target.querySelector('input[data-filter]');
  if (input && document.getElementById(input.dataset.filter)) event.preventDefault();
});
document.addEventListener('keydown', event => {
  if (event.key !== '/' || event.ctrlKey || event.altKey || event.metaKey || event.target.closest('input, textarea, select')) return;
  const input = document.querySelector('.search input');
  if (input) { event.preventDefault(); input.focus(); }
});

// A form that was sent after the end of the session is filled in again after the login. Secrets and confirmations are never kept, and nothing
// is shown to another user.

const user = document.querySelector('.user')?.textContent;

function keep(form) {
  if (form.method !== 'post' || !user) return;
  const fields = [...form.querySelectorAll('[name^=seen], [name]:not(button, [type=hidden], [type=password], [type=file], [type=checkbox][required], [data-word], .secret)')]
    .map(field => [field.name, field.value, field.checked]);
  try { sessionStorage.setItem('sent', JSON.stringify({user, action: form.getAttribute('action'), fields})); } catch { /* not in this browser */ }
}

function restore() {
  let sent, form;
  try {
    sent = JSON.parse(sessionStorage.getItem('sent'));
    if (sent && !user) sessionStorage.setItem('sent', JSON.stringify({...sent, back: true})); // the login
    form = [...document.forms].find(one => one.method === 'post' && one.getAttribute('action') === sent?.action);
    if (user && (form || !sent?.back || sent.user !== user)) sessionStorage.removeItem('sent');
  } catch { /* not in this browser */ }
  if (!form || !sent.back || sent.user !== user) return;
  for (const [name, value, checked] of sent.fields) {
    const field = [...form.elements].find(one => one.name === name && (one.type !== 'checkbox' || one.value === value));
    if (field?.type === 'checkbox') field.checked = checked;
    else if (field && field.type !== 'password') field.value = value;
  }
}

// Uploads: the signatures first, then the archive in pieces. After a lost connection the server is asked where to go on.

function call(method, url, headers, body, progress) {
  return new Promise(resolve => {
    const request = new XMLHttpRequest();
    request.open(method, url);
    for (const name in headers) request.setRequestHeader(name, headers[name]);
    if (progress) request.upload.onprogress = event => progress(event.loaded);
    request.onloadend = () => resolve(request);
    request.send(body);
  });
}

async function upload(form) {
  const [archive] = form.elements.archive.files, order = new FormData();
  for (const one of form.elements.bundle.files) order.append('bundle', one);
  const bar = form.querySelector('progress'), button = form.querySelector('button'), says = form.querySelector('[role=status]');
  const say = text => { if (says.textContent !== text) says.textContent = text; };
  const common = {'Tus-Resumable': '1.0.0', Accept: 'application/json'};
  const name = btoa(String.fromCharCode(...new TextEncoder().encode(archive.name)));
  let url, page, at = -1, wait = 1000;
  button.disabled = true;
  bar.hidden = false;
  bar.max = archive.size;
  while (at !== archive.size) {
    const request = !url ? await call('POST', form.dataset.upload, {...common, 'Upload-Length': archive.size, 'Upload-Metadata': `filename ${name}`}, order)
      : at < 0 ? await call('HEAD', url, common)
        : await call('PATCH', url, {...common, 'Upload-Offset': at, 'Content-Type': 'application/offset+octet-stream'},
          archive.slice(at, at + (32 << 20)), sent => { bar.value = at + sent; say(form.dataset.sending); });
    const {status} = request, offset = request.getResponseHeader('Upload-Offset');
    if (status === 401 || request.responseURL.includes('/login')) {
      button.disabled = false;
      say(form.dataset.ended);
      return leave();
    }
    if (status === 201) {
      url = request.getResponseHeader('Location');
      page = request.getResponseHeader('Solutionctl-Page');
    } else if (status < 300 && offset) {
      at = bar.value = Number(offset);
      wait = 1000;
    } else if (status >= 400 && status < 500 && ![408, 409, 423, 429].includes(status)) {
      let answer = {};
      try { answer = JSON.parse(request.responseText); } catch { /* a proxy has answered */ }
      button.disabled = false;
      bar.hidden = true;
      return say([[answer.message ?? `${status}`, ...answer.hints ?? []].join('. '), answer.command].filter(Boolean).join(' '));
    } else {
      say(form.dataset.lost);
      try { await archive.slice(Math.max(at, 0)).slice(0, 1).arrayBuffer(); } catch {
        button.disabled = false;
        bar.hidden = true;
        return say(form.dataset.unreadable);
      }
      at = -1;
      await new Promise(resolve => setTimeout(resolve, wait));
      wait = Math.min(wait * 2, 15000);
    }
  }
  location.assign(page);
}

// Live pages

function morph(from, to) {
  const keyed = new Map();
  for (const node of from.children) if (node.id) keyed.set(node.id, node);
  let at = from.firstChild;
  for (const want of [...to.childNodes]) {
    const have = (want.id && keyed.get(want.id)) || at;
    if (!have || have.nodeName !== want.nodeName || (have.id ?? '') !== (want.id ?? '')) {
      from.insertBefore(document.importNode(want, true), at);
      continue;
    }
    if (have === at) at = at.nextSibling; else from.insertBefore(have, at);
    if (have.nodeType !== Node.ELEMENT_NODE) {
      if (have.nodeValue !== want.nodeValue) have.nodeValue = want.nodeValue;
      continue;
    }
    const mine = have.matches('details, input, select, textarea, button'); // of the user
    if (!mine || have.matches('details')) {
      for (const {name} of [...have.attributes]) if (!want.hasAttribute(name) && name !== 'open' && name !== 'title') have.removeAttribute(name);
      for (const {name, value} of want.attributes) if (have.getAttribute(name) !== value && !(mine && name === 'open')) have.setAttribute(name, value);
    }
    if (!have.matches('select, textarea') && !(source && have.id === 'log')) morph(have, want);
  }
  while (at) { const next = at.nextSibling; at.remove(); at = next; }
}

// fetched resolves to the document of this page as it is now.
function fetched() {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('GET', location.href);
    request.responseType = 'document';
    request.onload = () => {
      const page = request.response?.getElementById('main');
      // After the last event the page is shown whatever came of it.
      if ((request.status < 400 || over && request.status !== 401) && page && request.responseURL === location.href.split('#')[0]) resolve(request.response);
      else reject(request);
    };
    request.onerror = reject;
    request.send();
  });
}

let refreshing, again;

async function refresh() {
  if (refreshing) { again = true; return; }
  refreshing = true;
  try {
    const page = await fetched();
    if (page.querySelector('.user')?.textContent !== document.querySelector('.user')?.textContent) { location.reload(); return; } // another user
    document.getElementById('ended')?.remove();
    for (const frame of main.querySelectorAll('.copied')) frame.replaceWith(frame.firstChild);
    morph(main, page.getElementById('main'));
    const navigation = document.querySelector('#nav ul'), now = page.querySelector('#nav ul');
    if (navigation && now) morph(navigation, now);
    enliven(main);
    if (left) { left = false; listen(); }
  } catch (request) {
    if (request.status === 401 || request.status < 400 && request.response?.body?.className === 'alone') leave(); // the login
    stale.textContent = left ? '' : words.lost;
    if (over && !left) setTimeout(refresh, 2000);
  }
  refreshing = false;
  if (again) { again = false; refresh(); }
}

// Logs: the first lines of a connection replace those of the page. A reader at the end stays there; for another one the oldest text goes later.

function write(text, begins) {
  const log = document.getElementById('log');
  if (!log) return;
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  if (begins) log.textContent = '';
  if (text) log.append(`${text}\n`);
  let size = log.textContent.length;
  while (size > (atEnd ? 3e5 : 1e6) && log.childNodes.length > 1) {
    size -= log.firstChild.length;
    log.firstChild.remove();
  }
  if (atEnd || begins) log.scrollTop = log.scrollHeight;
}

let source, over, left, silence;

// heard is called with each event, of which the server sends one every 15 seconds.
function heard() {
  clearTimeout(silence);
  silence = setTimeout(() => { stale.textContent = words.lost; hush(); listen(); }, 40000);
  const made = document.querySelector('footer time');
  if (stale.textContent) return;
  made.dateTime = new Date().toISOString();
  relative(made);
}

// leave shows that the session has ended. The page stays until its user is back.
function leave() {
  left = true;
  hush();
  if (document.getElementById('ended')) return;
  const notice = document.importNode(template.content.querySelector('#ended'), true);
  notice.querySelector('a').href = location.href.split('#')[0];
  main.querySelector('.head').after(notice);
}

function listen() {
  if (over || left || source || document.hidden || !stale.dataset.feed) return;
  source = new EventSource(stale.dataset.feed);
  source.addEventListener('alive', heard);
  source.addEventListener('changed', () => { heard(); refresh(); });
  source.addEventListener('begin', event => { stale.textContent = ''; heard(); write(event.data, true); });
  source.addEventListener('lines', event => { heard(); write(event.data); });
  source.addEventListener('stale', event => { stale.textContent = event.data; heard(); });
  source.addEventListener('end', async () => {
    over = true;
    clearTimeout(silence);
    source.close();
    await refresh();
    (main.querySelector('[role=alert]') ?? main.querySelector('h1')).focus();
  });
  heard();
  source.onopen = () => { if (stale.textContent === words.lost) refresh(); };
  source.onerror = async () => {
    if (source?.readyState !== EventSource.CLOSED) { stale.textContent = words.lost; return; }
    hush();
    await refresh(); // also where too many pages listen
    setTimeout(listen, 5000);
  };
}

function hush() { clearTimeout(silence); source?.close(); source = undefined; }

restore();
enliven(document);
document.querySelector('main [role=alert][tabindex]')?.focus();
document.getElementById('log')?.scrollTo(0, 1e9);
if (stale.dataset.feed) {
  listen();
  document.addEventListener('visibilitychange', () => { if (document.hidden) hush(); else { refresh(); listen(); } });
  addEventListener('pagehide', hush);
  addEventListener('pageshow', event => { if (event.persisted) { refresh(); listen(); } });
}
