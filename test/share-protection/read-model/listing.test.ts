/** Listings: filters, order, pages, markers, and the index that serves each listing. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { findBackup, listBackups } from "#projections/share-protection/backup.ts"
import { listJobs } from "#projections/share-protection/job.ts"
import type { Listed, Page } from "#projections/share-protection/listing.ts"
import { BackupId } from "#schemas/share-protection/id.ts"
import {
  choices,
  equals,
  filled,
  listings,
  type Row,
  rows_count,
} from "../../world/share-protection/listed.ts"
import { at, uuid } from "../../world/share-protection/samples.ts"

const whole = { limit: 1000 }

/** All pages, in order. */
const paged = (list: (page: Page) => Effect.Effect<Listed<Row>>, limit: number) =>
  Effect.gen(function* () {
    const rows: Array<Row> = []
    let marker: string | undefined
    do {
      const page = yield* list({ limit, marker })
      assert.isAtMost(page.rows.length, limit)
      rows.push(...page.rows)
      marker = page.next_marker ?? undefined
      if (marker !== undefined) assert.equal(marker, rows.at(-1)?.id)
    } while (marker !== undefined)
    return rows
  })

describe("each listing", () => {
  it.effect("shows the filtered rows in order, page by page", () =>
    Effect.gen(function* () {
      const { db } = yield* filled
      for (const [name, { list, order, count, filters, is = equals }] of Object.entries(listings)) {
        const expired = "include_expired" in filters ? { include_expired: true } : {}
        const all = (yield* list(db, expired, whole)).rows
        assert.lengthOf((yield* list(db, {}, whole)).rows, count, name)
        const sorted = all.map(({ id }) => id).sort()
        assert.deepEqual(
          all.map(({ id }) => id),
          order === "asc" ? sorted : sorted.reverse(),
        )
        for (const filter of choices(filters)) {
          const wanted = all.filter((row) => is(row, filter))
          const found = yield* list(db, filter, whole)
          const what = `${name} ${JSON.stringify(filter)}`
          assert.deepEqual(found, { rows: wanted, next_marker: null }, what)
          assert.deepEqual(yield* paged((page) => list(db, filter, page), 4), wanted, what)
        }
      }
    }).pipe(Effect.scoped),
  )

  it.effect("has no further page when the last one is full", () =>
    Effect.gen(function* () {
      const { db } = yield* filled
      const full = yield* listJobs(db, {}, { limit: rows_count })
      assert.isNull(full.next_marker)
      const short = yield* listJobs(db, {}, { limit: rows_count - 1 })
      assert.equal(short.next_marker, short.rows.at(-1)?.id)
    }).pipe(Effect.scoped),
  )

  it.effect("continues after a marker whose row is gone or never existed", () =>
    Effect.gen(function* () {
      const { db, tell } = yield* filled
      const before = yield* listBackups(db, { include_expired: true }, { limit: 10 })
      const marker = before.next_marker ?? ""
      const next = yield* listBackups(db, { include_expired: true }, { limit: 10, marker })
      yield* tell(`backup.${marker}`, 99, {
        type: "BackupDeleted",
        at,
        expired: false,
      })
      const id = BackupId.make(marker)
      assert.isUndefined(yield* findBackup(db, id))
      assert.deepEqual(
        yield* listBackups(db, { include_expired: true }, { limit: 10, marker }),
        next,
      )
      const beyond = yield* listBackups(db, {}, { limit: 10, marker: uuid(1) })
      assert.deepEqual(beyond, { rows: [], next_marker: null })
    }).pipe(Effect.scoped),
  )
})
