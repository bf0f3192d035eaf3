// What the page shows is asked for again every second or two, and exchanged when it changed: an agent may be at work.

const SOON = 1000;
const LATER = 3000;
const live = document.getElementById('live');
const news = document.getElementById('news');

// What tells an element of the old content from those of the new: so the focus stays where it was.
function name(element) {
  if (!element || !live.contains(element)) return null;
  if (element.id) return `#${CSS.escape(element.id)}`;
  return element.name && element.value ? `[name="${CSS.escape(element.name)}"][value="${CSS.escape(element.value)}"]` : null;
}

// While somebody types or has text selected, nothing is taken away under their hands.
function busy() {
  return document.activeElement?.matches('input, select') || !getSelection().isCollapsed || document.getElementById('help').open;
}

function exchange(page) {
  const fresh = page.getElementById('live');
  if (!fresh) return;
  const place = name(document.activeElement);
  const output = document.getElementById('output');
  const atEnd = output && output.scrollTop + output.clientHeight >= output.scrollHeight - 4;
  const before = live.querySelector('.call a')?.id;
  live.replaceChildren(...fresh.childNodes);
  live.dataset.live = fresh.dataset.live;
  if (place) document.querySelector(place)?.focus({ preventScroll: true });
  const now = document.getElementById('output');
  if (now && atEnd) now.scrollTop = now.scrollHeight;
  const newest = live.querySelector('.call a')?.id;
  if (newest && newest !== before) news.textContent = 'The list has new calls.';
}

async function look() {
  if (document.hidden || busy()) return LATER;
  const answer = await fetch(location.href, { headers: { 'if-none-match': live.dataset.live }, cache: 'no-store' });
  if (answer.status === 401) {
    news.textContent = 'This page is no longer served. Start rye review again.';
    return null;
  }
  if (answer.status !== 200 || busy()) return LATER;
  exchange(new DOMParser().parseFromString(await answer.text(), 'text/html'));
  return SOON;
}

async function watch() {
  let wait = SOON;
  try {
    wait = await look();
  } catch {
    news.textContent = 'The server does not answer. What is shown may be old.';
    wait = LATER;
  }
  if (wait !== null) setTimeout(watch, wait);
}

if (live?.dataset.live) setTimeout(watch, SOON);
const output = document.getElementById('output');
if (output) output.scrollTop = output.scrollHeight;
