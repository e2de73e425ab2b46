// A page whose content is still to come reports a lost connection and a late answer, and is loaded again when the server can be reached.

const asking = document.querySelector('.asking'), link = asking?.querySelector('a'), words = asking?.dataset; // gone when the page is whole already
const isWhole = () => !!document.querySelector('footer');
const pause = seconds => new Promise(resolve => setTimeout(resolve, seconds * 1000));

async function reaches() {
  try {
    return (await fetch(words.probe, {cache: 'no-store', signal: AbortSignal.timeout(3000)})).ok;
  } catch {
    return false;
  }
}

function report(text) {
  const place = asking.querySelector('span');
  if (place.textContent !== text) place.textContent = text;
  link.href = location.href;
  link.hidden = false;
}

const again = performance.getEntriesByType('navigation')[0]?.type === 'reload'; // an answer that ends early each time is not loaded for ever
let lost = false;
for (let waited = 0; waited += 3, await pause(3), !isWhole();) {
  const ended = document.readyState === 'complete', here = await reaches();
  if (isWhole()) break;
  if (here && (lost || ended && !again)) { location.reload(); break; }
  lost ||= !here;
  if (!here) report(words.lost);
  else if (ended || waited > 35) report(words.late);
}
