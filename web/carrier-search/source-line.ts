/** Shows the registries: their kind, age and health, and how to set one up. */
import { copyableCommand } from "../command.ts"
import { h } from "../element.ts"
import { count, date, daysAgo, relativeTime, sentence } from "../format.ts"
import { badge } from "../mark.ts"
import type { Source, Sources } from "./api.ts"

const timeout_ms = 20_000

/** The server's registries, the one in use first; undefined if the request failed. */
export const fetchSources = async (): Promise<readonly Source[] | undefined> => {
  try {
    const response = await fetch("/api/search/sources", {
      headers: { accept: "application/json" },
      cache: "no-store",
      signal: AbortSignal.timeout(timeout_ms),
    })
    if (!response.ok) return undefined
    // The cast trusts the server; a test compares the types with its schemas.
    const { sources } = (await response.json()) as Sources
    return Array.isArray(sources) ? sources : undefined
  } catch {
    return undefined
  }
}

/** Drops the zone, as the functions for times expect. */
const zoneless = (instant: string) => instant.replace(/Z$/, "")

type Parts = ReadonlyArray<string | false>

const mirrorParts = ({ carriers, dockets, as_of, imported_at }: Source, now: number): Parts => [
  carriers !== null && `${count(carriers)} carriers`,
  dockets !== null && `${count(dockets)} dockets`,
  as_of !== null && `as of ${date(as_of)} (${daysAgo(as_of.slice(0, 10), now)})`,
  imported_at !== null && `imported ${relativeTime(zoneless(imported_at), now)}`,
]

const fmcsaParts = ({ last_answer_at, concurrency }: Source, now: number): Parts => [
  "live lookup of each number",
  concurrency !== null && `${count(concurrency)} concurrent requests`,
  last_answer_at !== null && `last response ${relativeTime(zoneless(last_answer_at), now)}`,
]

const names = {
  fmcsa: "FMCSA QCMobile",
  mirror: "Mirror of FMCSA's public files",
  none: "No registry",
} as const

const nameOf = ({ registry, is_demo }: Source) => (is_demo ? "Demo mirror" : names[registry])

export const demoBadge = () =>
  badge("demo", "Demo", "Generated carriers, not from FMCSA's registry")

const errorOf = ({ is_healthy, detail, last_error, last_error_at }: Source, now: number) => {
  if (!is_healthy) {
    return h("p", { class: "failure" }, sentence(detail ?? "The registry is unavailable"))
  }
  if (last_error === null || last_error_at === null) return null
  const when = relativeTime(zoneless(last_error_at), now)
  return h("p", { class: "remark" }, `Last error ${when}: ${sentence(last_error)}`)
}

const sourceLine = (source: Source, is_used: boolean, now: number): HTMLElement => {
  const parts = source.registry === "mirror" ? mirrorParts(source, now) : fmcsaParts(source, now)
  const all = is_used ? parts : ["configured, not in use", ...parts]
  return h(
    "div",
    { class: is_used ? "source" : "source spare", "data-key": source.registry },
    h(
      "p",
      {},
      h("span", { class: `standing ${source.is_healthy ? "live" : "failing"}` }, nameOf(source)),
      source.is_demo && demoBadge(),
      h("span", { class: "about" }, all.filter(Boolean).join(" \u00b7 ")),
    ),
    is_used &&
      source.is_demo &&
      h("p", { class: "remark" }, "These carriers are generated. Their names begin with DEMO."),
    is_used && errorOf(source, now),
  )
}

/** One line per registry, the one in use first. */
export const sourceLines = (sources: readonly Source[], now: number): HTMLElement[] =>
  sources
    .map((source, index) => [source, index === 0] as const)
    .filter(([{ registry }]) => registry !== "none")
    .map(([source, is_used]) => sourceLine(source, is_used, now))

const setups = [
  {
    title: "Try it with demo data",
    why: "Creates a mirror of generated carriers, offline. Their names begin with DEMO.",
    command: "npm run almanac -- carriers import --demo",
  },
  {
    title: "Or import FMCSA's public files",
    why:
      "FMCSA publishes its licensing records at data.transportation.gov, as a legacy CSV file " +
      "and a Motus CSV file. Searches then need no network.",
    command: "npm run almanac -- carriers import legacy.csv motus.csv",
  },
  {
    title: "Or query FMCSA",
    why:
      "With your own free QCMobile web key, each search looks up the current data of every " +
      "number.",
    command: "FMCSA_WEB_KEY=your-key npm start",
  },
] as const

/** Explains how to set up a registry if there is none. */
export const noRegistry = ({ detail }: Source): HTMLElement =>
  h(
    "section",
    { class: "empty", "aria-labelledby": "no-registry", "data-key": "no-registry" },
    h("h2", { id: "no-registry" }, "No registry configured"),
    h(
      "p",
      {},
      sentence(detail ?? "") ||
        "A search needs a registry of carriers. Run one of these commands in the project's folder.",
    ),
    h(
      "ol",
      {},
      setups.map(({ title, why, command }) =>
        h("li", {}, h("h3", {}, title), h("p", {}, why), copyableCommand(command)),
      ),
    ),
  )
