// Keys for everything that the pages' buttons and links do. Without scripts the buttons and links do it alone.

const items = () => [...document.querySelectorAll('[data-item]')];
const help = document.getElementById('help');
const helpButton = document.getElementById('help-button');

function current() {
  const scope = document.activeElement?.closest('[data-scope]');
  return scope ? scope.querySelector('[data-item]') ?? scope.closest('[data-scope]') : null;
}

function move(step) {
  const all = items();
  if (!all.length) return;
  const at = all.indexOf(current());
  const to = at < 0 ? (step > 0 ? firstBelow(all) : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1);
  show(all[to]);
}

// After a scroll by mouse the keys go on from what is seen.
function firstBelow(all) {
  const at = all.findIndex(one => one.getBoundingClientRect().top >= 0);
  return at < 0 ? 0 : at;
}

function show(item) {
  item.focus({ preventScroll: true });
  item.scrollIntoView({ block: item.matches('a') ? 'nearest' : 'start' });
}

// The button of the item that has the focus, of its own and not of a part of it; else that of the whole call.
function act(does) {
  let scope = document.activeElement?.closest('[data-scope]');
  for (; scope; scope = scope.parentElement?.closest('[data-scope]')) {
    const own = [...scope.querySelectorAll(`[data-do="${does}"]`)].find(one => one.closest('[data-scope]') === scope);
    if (own) return own.click();
  }
  document.querySelector(`[data-do="${does}-call"]`)?.click();
}

const actions = {
  j: () => move(1),
  k: () => move(-1),
  u: () => act('undo'),
  r: () => act('mark'),
  U: () => document.querySelector('[data-do="undo-call"]')?.click(),
  R: () => document.querySelector('[data-do="mark-call"]')?.click(),
  s: () => document.querySelector('[data-do="seen"]')?.click(),
  x: () => near('[data-do="stop"]')?.focus(),
  a: () => near('input[name=code], [data-do="approve"]')?.focus(),
  '/': () => document.getElementById('search')?.select(),
  '?': openHelp,
};

// What the item with the focus has, else the first of the page. It gets the focus only: Enter presses it.
function near(wanted) {
  return document.activeElement?.closest('[data-scope]')?.querySelector(wanted) ?? document.querySelector(wanted);
}

function openHelp() {
  if (!help.open) help.showModal();
}

addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.matches('input, select, textarea')) {
    if (event.key === 'Escape') event.target.blur();
    return;
  }
  if (help.open) return;
  const link = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  const action = actions[event.key] ?? (link && (() => link.click()));
  if (action) {
    event.preventDefault();
    action();
  }
});

helpButton.hidden = false;
helpButton.addEventListener('click', openHelp);
