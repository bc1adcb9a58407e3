import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect, Logger } from "effect"
import type { Spool } from "#actors/spool.ts"
import { spoolFile } from "#adapters/spool/file.ts"
import { spoolSqlite } from "#adapters/spool/sqlite.ts"
import { SearchFact } from "#schemas/carrier-search/search.ts"
import { promises } from "../../contract/spool.ts"
import { temporaryFolder } from "../../world/programs/nats.ts"
import { searchFact, until } from "../../world/spooled.ts"

const openSpool = (path: string) => spoolSqlite(path, SearchFact)

/** Opens, uses and closes the spool at `path`. */
const life = <A, E, R>(path: string, body: (spool: Spool<SearchFact>) => Effect.Effect<A, E, R>) =>
  Effect.scoped(Effect.flatMap(openSpool(path), body))

const addAll = (spool: Spool<SearchFact>, ...numbers: ReadonlyArray<number>) =>
  Effect.forEach(numbers, (n) => spool.add(searchFact(n)), { discard: true })

const numbersIn = (spool: Spool<SearchFact>) =>
  Effect.map(spool.scan(0, 1_000), (spooled) => spooled.map(({ fact }) => fact.start))

const lastIn = (spool: Spool<SearchFact>) =>
  Effect.map(spool.scan(0, 1_000), (spooled) => spooled.at(-1)?.cursor ?? 0)

/** Copies the file as a kill at this moment would leave it. */
const copyTo = (path: string, to: string) => {
  for (const suffix of ["", "-wal"]) {
    if (existsSync(path + suffix)) copyFileSync(path + suffix, to + suffix)
    else rmSync(to + suffix, { force: true })
  }
}

/** Passes a path in a new folder and the lines logged meanwhile. */
const tested = (
  body: (path: string, lines: ReadonlyArray<string>) => Effect.Effect<void, unknown>,
) => {
  const lines: Array<string> = []
  const heard = Logger.make(({ logLevel, message }) => {
    lines.push(`${logLevel}: ${message}`)
  })
  return Effect.flatMap(temporaryFolder, (folder) =>
    body(join(folder, "spool.sqlite"), lines),
  ).pipe(Effect.scoped, Effect.provide(Logger.layer([heard])))
}

describe("a spool in a file", () => {
  for (const [sentence, promise] of Object.entries(promises)) {
    it.effect(sentence, () => tested((path) => life(path, promise)))
  }

  it.effect("has all that was added when it is opened again, as the same epoch", () =>
    tested(
      Effect.fnUntraced(function* (path, lines) {
        const numbers = Array.from({ length: 1_234 }, (_, n) => n + 1)
        const epoch = yield* life(path, (spool) =>
          Effect.as(addAll(spool, ...numbers), spool.epoch),
        )
        yield* life(
          path,
          Effect.fnUntraced(function* (spool) {
            assert.equal(spool.epoch, epoch)
            const spooled = yield* spool.scan(0, 2_000)
            assert.deepEqual(
              spooled.map(({ fact }) => fact),
              numbers.map(searchFact),
            )
            yield* spool.acknowledge(spooled[1_199]?.cursor ?? 0)
          }),
        )
        assert.deepEqual(yield* life(path, numbersIn), numbers.slice(1_200))
        assert.deepEqual(lines, [])
      }),
    ),
  )

  it.effect("returns written and unwritten facts in one sequence, and removes both", () =>
    tested(
      Effect.fnUntraced(function* (path) {
        yield* life(path, (spool) => addAll(spool, 1, 2))
        yield* life(
          path,
          Effect.fnUntraced(function* (spool) {
            // The test clock does not advance, so nothing more is written.
            yield* addAll(spool, 3, 4)
            assert.deepEqual(yield* numbersIn(spool), [1, 2, 3, 4])
            const [, second, third] = yield* spool.scan(0, 3)
            assert.equal(third?.fact.start, 3)
            assert.lengthOf(yield* spool.scan(0, 3), 3)
            assert.lengthOf(yield* spool.scan(second?.cursor ?? 0, 1), 1)
            yield* spool.acknowledge(third?.cursor ?? 0)
            assert.deepEqual(yield* numbersIn(spool), [4])
          }),
        )
        assert.deepEqual(yield* life(path, numbersIn), [4])
      }),
    ),
  )

  it.live("has on disk what was added some milliseconds before it is killed", () =>
    tested(
      Effect.fnUntraced(function* (path) {
        const copy = `${path}.copy`
        const rows = Effect.sync(() => {
          copyTo(path, copy)
          return spoolFile(copy, 0)({ call: "close" }).count
        })
        yield* life(
          path,
          Effect.fnUntraced(function* (spool) {
            yield* addAll(spool, 1, 2)
            yield* until(Effect.map(rows, (count) => count === 2))
            yield* addAll(spool, 3)
            yield* until(Effect.map(rows, (count) => count === 3))
          }),
        )
      }),
    ),
  )

  it.effect("uses no cursor again of what was never written, though no time passes", () =>
    tested(
      Effect.fnUntraced(function* (path) {
        const killed = `${path}.killed`
        const lost = yield* life(
          path,
          Effect.fnUntraced(function* (spool) {
            yield* addAll(spool, 1, 2, 3)
            copyTo(path, killed)
            return yield* lastIn(spool)
          }),
        )
        yield* life(
          killed,
          Effect.fnUntraced(function* (spool) {
            assert.deepEqual(yield* numbersIn(spool), [])
            yield* addAll(spool, 4)
            assert.isAbove(yield* lastIn(spool), lost)
          }),
        )
      }),
    ),
  )

  it.live("uses no cursor again where its file is put back from a copy", () =>
    tested(
      Effect.fnUntraced(function* (path) {
        const copy = `${path}.copy`
        yield* life(path, (spool) => addAll(spool, 1))
        copyTo(path, copy)
        let last = 0
        for (let n = 2; n < 5; n++) {
          last = yield* life(path, (spool) => Effect.andThen(addAll(spool, n), lastIn(spool)))
        }
        // Longer than anyone needs to restore a file, and past the cursors reserved before.
        const now_ms = Date.now() + 10_000
        copyTo(copy, path)
        assert.isAbove(spoolFile(path, now_ms)({ call: "close" }).first, last)
      }),
    ),
  )

  it.effect("uses no cursor again after all was acknowledged and it was opened again", () =>
    tested(
      Effect.fnUntraced(function* (path) {
        let before = 0
        for (let n = 1; n < 5; n++) {
          const last = yield* life(
            path,
            Effect.fnUntraced(function* (spool) {
              yield* addAll(spool, n)
              const last = yield* lastIn(spool)
              yield* spool.acknowledge(last)
              return last
            }),
          )
          assert.isAbove(last, before)
          before = last
        }
      }),
    ),
  )

  it.effect("starts another epoch if its file was deleted, regardless of leftover files", () =>
    tested(
      Effect.fnUntraced(function* (path, lines) {
        const first = yield* life(path, (spool) => Effect.as(addAll(spool, 1), spool.epoch))
        rmSync(path)
        writeFileSync(`${path}-wal`, "left over")
        yield* life(
          path,
          Effect.fnUntraced(function* (spool) {
            assert.notEqual(spool.epoch, first)
            assert.deepEqual(yield* numbersIn(spool), [])
            yield* addAll(spool, 2)
          }),
        )
        assert.deepEqual(yield* life(path, numbersIn), [2])
        assert.deepEqual(lines, [])
      }),
    ),
  )
})

describe("a spool whose file cannot be used", () => {
  const prepared: Readonly<Record<string, (path: string) => void>> = {
    "is no database": (path) => writeFileSync(path, "text of another program\n".repeat(1_000)),
    "is a folder": (path) => mkdirSync(path),
    "holds other tables": (path) => {
      const other = new Sqlite(path)
      other.exec("create table spool (id integer primary key, other text)")
      other.close()
    },
  }
  for (const [what, prepare] of Object.entries(prepared)) {
    it.effect(`is kept in memory, which one line says: it ${what}`, () =>
      tested(
        Effect.fnUntraced(function* (path, lines) {
          prepare(path)
          yield* life(
            path,
            Effect.fnUntraced(function* (spool) {
              yield* addAll(spool, 1, 2)
              assert.deepEqual(yield* numbersIn(spool), [1, 2])
              yield* spool.acknowledge(yield* lastIn(spool))
              assert.deepEqual(yield* numbersIn(spool), [])
            }),
          )
          assert.lengthOf(lines, 1)
          assert.match(lines[0] ?? "", /^Error: The spool cannot be opened: .*spool\.sqlite: /)
        }),
      ),
    )
  }

  /** A file with space for this many facts, as on a full disk. */
  const smallFile = (path: string, facts_max: number) => {
    spoolFile(path, 0)({ call: "close" })
    const file = new Sqlite(path)
    file.exec(
      `create trigger small before insert on fact when (select count(*) from fact) >= ${facts_max}
      begin select raise(abort, 'database or disk is full'); end`,
    )
    file.close()
  }

  it.live("holds facts in memory while the disk is full, and writes them when it is not", () =>
    tested(
      Effect.fnUntraced(function* (path, lines) {
        smallFile(path, 3)
        yield* life(
          path,
          Effect.fnUntraced(function* (spool) {
            yield* addAll(spool, 1, 2, 3, 4)
            yield* until(Effect.sync(() => lines.length === 1))
            yield* addAll(spool, 5)
            const spooled = yield* spool.scan(0, 10)
            assert.deepEqual(
              spooled.map(({ fact }) => fact.start),
              [1, 2, 3, 4, 5],
            )
            assert.match(lines[0] ?? "", /^Error: .*wait in memory: .* disk is full$/)
            // The log accepted them, so there is space again.
            yield* spool.acknowledge(spooled[2]?.cursor ?? 0)
            yield* until(Effect.sync(() => lines.length === 2))
            assert.match(lines[1] ?? "", /^Warn: The spool file is writable again\.$/)
          }),
        )
        assert.deepEqual(yield* life(path, numbersIn), [4, 5])
        assert.lengthOf(lines, 2)
      }),
    ),
  )

  it.live("says how many facts it could not keep at its end", () =>
    tested(
      Effect.fnUntraced(function* (path, lines) {
        smallFile(path, 0)
        yield* life(path, (spool) => addAll(spool, 1, 2, 3))
        assert.match(
          lines.at(-1) ?? "",
          /^Error: 3 facts could not be written to the spool: .* disk is full$/,
        )
      }),
    ),
  )

  it.effect("says once that it drops facts, and once how many, where it holds a million", () =>
    tested(
      Effect.fnUntraced(function* (path, lines) {
        spoolFile(path, 0)({ call: "close" })
        const file = new Sqlite(path)
        file.exec(
          `insert into fact with recursive n(i) as (
            select 1 union all select i + 1 from n where i < 1000000) select i, '' from n`,
        )
        file.close()
        yield* life(
          path,
          Effect.fnUntraced(function* (spool) {
            yield* addAll(spool, 1, 2, 3)
            assert.lengthOf(lines, 1)
            assert.match(
              lines[0] ?? "",
              /^Error: .* is full: new facts are dropped until it has room\.$/,
            )
            yield* spool.acknowledge(1_000_000)
            assert.deepEqual(yield* numbersIn(spool), [])
            yield* addAll(spool, 4)
            assert.deepEqual(yield* numbersIn(spool), [4])
            assert.match(lines[1] ?? "", /^Error: .* has room again: 3 facts were dropped\.$/)
          }),
        )
        assert.lengthOf(lines, 2)
      }),
    ),
  )

  it.effect("drops what is no fact, or too long for one, and says so", () =>
    tested(
      Effect.fnUntraced(function* (path, lines) {
        yield* life(
          path,
          Effect.fnUntraced(function* (spool) {
            yield* spool.add({ ...searchFact(1), start: 0 })
            yield* spool.add({ ...searchFact(2), actor: "x".repeat(64 * 1024) })
            yield* addAll(spool, 3)
            assert.deepEqual(yield* numbersIn(spool), [3])
          }),
        )
        assert.lengthOf(lines, 2)
        assert.match(lines[0] ?? "", /^Error: An invalid fact was dropped: /)
        assert.match(lines[1] ?? "", /^Error: A fact of \d{5} characters was dropped/)
      }),
    ),
  )

  it.effect("does not skip what it cannot read", () =>
    tested(
      Effect.fnUntraced(function* (path) {
        yield* life(path, (spool) => addAll(spool, 1, 2))
        const file = new Sqlite(path)
        file.exec(
          "update fact set fact = '{\"later\": 1}' where cursor = (select min(cursor) from fact)",
        )
        file.close()
        yield* life(
          path,
          Effect.fnUntraced(function* (spool) {
            const error = yield* Effect.flip(spool.scan(0, 10))
            assert.equal(error._tag, "SpoolFailed")
          }),
        )
      }),
    ),
  )
})
