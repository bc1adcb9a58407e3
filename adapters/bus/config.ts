/**
 * The configuration of our own nats-server, rendered from the template nats.conf.
 * Source: DECISIONS "How it is run and reached", "All services" (published events); decision 0171.
 */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { events_stream } from "#adapters/published/stream-name.ts"
import { deniedToOthers, subscriberUserText } from "#adapters/published/subscriber-users.ts"
import type { NatsFolders } from "#bus"
import { type BusUser, userText } from "#bus"

/** Environment variables that pass secrets to the child, which no file or argument may contain. */
export const variables = {
  core: "ALMANAC_NATS_CORE",
  publisher: "ALMANAC_NATS_PUBLISHER",
  subscriber: "ALMANAC_NATS_SUBSCRIBER",
} as const

/** Environment variable with the password of a named subscriber. */
export const namedVariable = (name: string) => `${variables.subscriber}_${name.toUpperCase()}`

/** The consumer that feeds the mirror, and its delivery subject. */
export const mirror_consumer = "MIRROR"
export const mirror_deliveries = `mirror.${events_stream}`

/** API prefixes: the publisher's to the mirror's account, and the mirror's to the source's. */
export const mirror_api = "MIRROR.API"
export const source_api = "EVENTS.API"

/** Maximum disk usage of all streams of our own server: `max_file_store`. */
export const store_bytes_max = 100 * 1024 ** 3

const template = fileURLToPath(new URL("../../nats.conf", import.meta.url))
const header = "# Almanac overwrites this file at each start and when a worker is added or removed."

/** Replaces a placeholder that occurs once in nats.conf. */
const fillPlaceholder = (
  text: string,
  [placeholder, value]: readonly [mark: string, value: string],
) => {
  const [before, after, ...more] = text.split(placeholder)
  if (after === undefined || more.length > 0)
    throw new Error(`${template} must contain ${placeholder} exactly once`)
  return `${before}${value}${after}`
}

const lines = (all: ReadonlyArray<string>) => all.map((line) => `${line}\n`).join("")

/**
 * Renders the child's configuration: nats.conf with its folders and users. It contains no secret:
 * `$ALMANAC_...` are environment variables, and workers are identified by public keys.
 */
export const natsConf = (
  { store, ports }: NatsFolders,
  workers: ReadonlyArray<BusUser>,
  subscribers: ReadonlyArray<string> = [],
): string => {
  const named_subscribers = subscribers.map((name) => ({
    name,
    password: `$${namedVariable(name)}`,
  }))
  const placeholders = [
    ["$ALMANAC_NATS_STORE", JSON.stringify(store)],
    ["$ALMANAC_NATS_PORTS", JSON.stringify(ports)],
    ["      # workers\n", lines(workers.map((worker) => `      ${userText(worker)}`))],
    ["deny: []", `deny: ${JSON.stringify(deniedToOthers(subscribers))}`],
    ["      # subscribers\n", lines(named_subscribers.map(subscriberUserText))],
  ] as const
  return `${header}\n${placeholders.reduce(fillPlaceholder, readFileSync(template, "utf8"))}`
}
