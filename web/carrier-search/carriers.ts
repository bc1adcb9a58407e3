/** The carrier search page: the form, the progress and the results. */
import { announce } from "../announcement.ts"
import { h, morphChildren } from "../element.ts"
import { count, sentence } from "../format.ts"
import { fillHeader } from "../header.ts"
import type { Progress, Source } from "./api.ts"
import { carrierTable } from "./carrier-table.ts"
import { download } from "./csv.ts"
import { fieldsInHash, hashOf, type Range, rangeText, total } from "./range.ts"
import { rangeForm } from "./range-form.ts"
import { addSample } from "./rate.ts"
import { failureNotice, headline, nothingFound, progressText, type Run } from "./result.ts"
import { type Outcome, search } from "./search.ts"
import { demoBadge, fetchSources, noRegistry, sourceLines } from "./source-line.ts"

/** Intervals of redraws, of announcements to screen readers, and of requests for the registry. */
const draw_ms = 120
const tick_ms = 1_000
const announce_ms = 15_000
const sources_ms = 30_000
const sources_missing_ms = 5_000
/** Largest range that a link may search without confirmation if FMCSA must be queried. */
const linked_numbers_max = 1_000

/** The registry in use first; undefined if the request failed. */
let sources: readonly Source[] | undefined
let is_source_known = false
let run: Run | undefined
let stop: AbortController | undefined
let announced_at = 0

const status = h("div", { class: "status-parts" })
fillHeader("Carriers", status)

const form = rangeForm(
  (range) => startSearch(range),
  () => stop?.abort(),
)
const table = carrierTable()
const source_place = h("div", { class: "registry" })
const setup_place = h("div", { class: "setup" })
const problem_place = h("div", { class: "problem-place" })
const title = h("h2", { id: "result", tabindex: -1 })
const bar = h("progress", { "aria-label": "Numbers looked up" })
const progress_line = h("p", { class: "words" })
const note_place = h("div")
const save = h("button", { type: "button", onclick: () => saveCsv() })
const result = h(
  "section",
  { class: "result", "aria-labelledby": "result", hidden: true },
  h("div", { class: "result-head" }, title, save),
  bar,
  progress_line,
  note_place,
  table.element,
)

const drawSource = () => {
  const now = Date.now()
  const source = sources?.[0]
  const is_missing = source?.registry === "none"
  morphChildren(setup_place, source && is_missing ? [noRegistry(source)] : [])
  morphChildren(source_place, sources ? sourceLines(sources, now) : unknownSource())
  morphChildren(status, [
    ...(source?.is_demo ? [demoBadge()] : []),
    ...(source && !source.is_healthy && !is_missing
      ? [h("span", { class: "failure" }, "registry unavailable")]
      : []),
  ])
}

const unknownSource = () =>
  is_source_known
    ? [h("p", { class: "failure" }, "The status of the registry is unavailable.")]
    : []

const titleOf = (now: Run) => {
  if (now.outcome) return `${headline(now)} \u00b7 Carriers`
  return `${Math.floor((100 * now.done) / total(now.range))}% \u00b7 Carriers`
}

const draw = () => {
  if (run === undefined) return
  const { outcome, found, range } = run
  const is_refused = outcome?.kind === "failed" && outcome.failure.status === 400
  const is_empty = found.numbers.length === 0
  document.title = titleOf(run)
  result.hidden = outcome?.kind === "failed" && is_empty
  title.textContent = headline(run)
  bar.max = total(range)
  bar.value = run.done
  bar.hidden = outcome !== undefined
  progress_line.textContent = progressText(run, performance.now())
  morphChildren(note_place, outcome?.kind === "done" && is_empty ? [nothingFound()] : [])
  save.hidden = is_empty
  save.textContent = outcome?.kind === "done" ? "Download CSV" : "Download partial CSV"
  table.show(found)
  form.setRunning(outcome === undefined)
  const failure = outcome?.kind === "failed" && !is_refused ? outcome.failure : undefined
  const retry = () => startSearch(range)
  morphChildren(problem_place, failure ? [failureNotice(failure, retry)] : [])
}

/** Announces progress to screen readers at intervals. */
const announceProgress = (now: number) => {
  if (run === undefined || run.outcome || now - announced_at < announce_ms) return
  announced_at = now
  announce(`${Math.floor((100 * run.done) / total(run.range))} percent; ${headline(run)}.`)
}

const finish = (finished: Run, outcome: Outcome) => {
  finished.outcome = outcome
  if (run !== finished) return
  draw()
  if (outcome.kind === "failed") {
    if (outcome.failure.status === 400) form.showError(sentence(outcome.failure.message))
  } else {
    announce(`${outcome.kind === "done" ? "Done" : "Cancelled"}: ${headline(finished)}.`)
  }
  void refreshSource()
}

/** Results arrive in order, so all numbers up to the last carrier have been looked up. */
const numbersBefore = ({ range, found }: Run) => {
  const last = found.numbers.at(-1)
  return last === undefined ? 0 : last - range.start + 1
}

/** Searches the range; cancels a running search. */
function startSearch(range: Range) {
  stop?.abort()
  stop = new AbortController()
  const now = performance.now()
  const new_run: Run = {
    range,
    found: { numbers: [], names: [] },
    started_at: now,
    last_message_at: now,
    done: 0,
    samples: addSample([], now, 0),
  }
  run = new_run
  announced_at = now
  table.clear()
  const hash = hashOf(range)
  if (location.hash !== hash) history.pushState(null, "", hash)
  form.fill({ start: String(range.start), end: String(range.end) })
  announce(`Searching ${count(total(range))} numbers, ${rangeText(range)}.`)
  draw()
  const onProgress = (progress?: Progress) => {
    new_run.last_message_at = performance.now()
    new_run.done = Math.max(new_run.done, progress?.done ?? 0, numbersBefore(new_run))
    if (progress)
      new_run.samples = addSample(new_run.samples, new_run.last_message_at, new_run.done)
    drawSoon()
  }
  void search(range, new_run.found, onProgress, stop.signal).then((outcome) =>
    finish(new_run, outcome),
  )
}

let is_drawing = false
function drawSoon() {
  if (is_drawing) return
  is_drawing = true
  setTimeout(() => {
    is_drawing = false
    draw()
  }, draw_ms)
}

function saveCsv() {
  if (run === undefined) return
  const { start, end } = run.range
  const part = run.outcome?.kind === "done" ? "" : "-incomplete"
  download(run.found, `carriers-${start}-${end}${part}.csv`)
}

/** Searches the range in the address. A long search on FMCSA's API waits for confirmation. */
const followAddress = () => {
  const texts = fieldsInHash(location.hash)
  if (texts === undefined) return
  form.fill(texts)
  const range = form.read()
  if (range === undefined) return
  if (run?.range.start === range.start && run.range.end === range.end) return
  if (sources?.[0]?.registry === "mirror" || total(range) <= linked_numbers_max) startSearch(range)
  else announce("The link contains a long search. Press Search to start it.")
}

let sources_timer: ReturnType<typeof setTimeout> | undefined
async function refreshSource() {
  clearTimeout(sources_timer)
  sources = await fetchSources()
  is_source_known = true
  drawSource()
  const has_registry = sources?.[0] !== undefined && sources[0].registry !== "none"
  clearTimeout(sources_timer)
  sources_timer = setTimeout(
    () => void refreshSource(),
    has_registry ? sources_ms : sources_missing_ms,
  )
}

setInterval(() => {
  if (run === undefined || run.outcome) return
  announceProgress(performance.now())
  draw()
}, tick_ms)

addEventListener("hashchange", followAddress)

const card = h(
  "section",
  { class: "search", "aria-labelledby": "search" },
  h("h2", { id: "search" }, "Active carriers in a range of MC numbers"),
  h(
    "p",
    { class: "about" },
    "Finds carriers with active authority. Excludes brokers, and carriers that are also brokers.",
  ),
  form.element,
  source_place,
)
document.querySelector("#main")?.replaceChildren(setup_place, card, problem_place, result)
drawSource()
void refreshSource().then(followAddress)
