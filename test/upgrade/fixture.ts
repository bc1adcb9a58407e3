/** Data of the previous release: its log, its read models, and its event schemas. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gunzipSync, gzipSync } from "node:zlib"
import type { Commit } from "#events/log.ts"
import type { Promised } from "../docs/events-page.ts"
import type { Tables } from "./rows.ts"
import type { Form } from "./wider.ts"

const at = (name: string) => join(import.meta.dirname, name)
const log_file = at("previous-log.ndjson.gz")
const expected_file = at("previous-read-models.json.gz")
const schemas_file = at("previous-schemas.json.gz")

export interface Line {
  readonly position: number
  readonly stream: string
  /** SHA-256 (hex) of the commit as stored. */
  readonly hash: string
  readonly commit: Commit
}

const unzipped = (path: string) => gunzipSync(readFileSync(path)).toString()

/** Has no timestamp in its header, so that the same text gives the same file. */
const zipped = (text: string) => gzipSync(text, { level: 9 })

export const readLog = (): ReadonlyArray<Line> =>
  unzipped(log_file)
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line))

export const readExpected = (): Tables => JSON.parse(unzipped(expected_file))

/** The events of one kind of aggregate, as a JSON Schema. */
export interface Kind {
  readonly schema: Form
  readonly definitions: Readonly<Record<string, Form>>
  /** The version of its machine, as in snapshots. */
  readonly machine: number
}

/** A release's description of its events. */
export interface Schemas {
  /** By kind of aggregate, as stored in the log. */
  readonly events: Readonly<Record<string, Kind>>
  /** Versions by service. */
  readonly read_models: Readonly<Record<string, number>>
  /** By subject, as in `docs/events.schema.json`. */
  readonly published: Readonly<Record<string, Promised>>
}

export const readSchemas = (): Schemas => JSON.parse(unzipped(schemas_file))

export const writeFixture = (lines: ReadonlyArray<Line>, expected: Tables, schemas: Schemas) => {
  writeFileSync(schemas_file, zipped(JSON.stringify(schemas)))
  writeFileSync(log_file, zipped(`${lines.map((line) => JSON.stringify(line)).join("\n")}\n`))
  writeFileSync(expected_file, zipped(JSON.stringify(expected)))
}
