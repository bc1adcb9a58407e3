/** Columns: `-o` names existing ones, and wide tables fit the terminal. */
import { assert, describe, it } from "@effect/vitest"
import { readings } from "#cli/client/capital-pressure/reading.ts"
import { requireColumns } from "#cli/client/columns.ts"
import { isFailure } from "#cli/client/failure.ts"
import { formatAge } from "#cli/client/format.ts"
import type { CommandGroup } from "#cli/client/operation.ts"
import { requireFlags } from "#cli/client/request.ts"
import { type RunInput, runOperation } from "#cli/client/run.ts"
import { screen } from "#cli/client/screen.ts"
import type { Output } from "#cli/client/session.ts"
import { coverage, scheduling } from "#cli/client/share-protection/fleet.ts"
import { jobs } from "#cli/client/share-protection/job.ts"
import { policies } from "#cli/client/share-protection/policy.ts"
import { targets } from "#cli/client/share-protection/target.ts"
import { endingOf, json, sessionWith, withServer } from "./scripted.ts"

const nothing: RunInput = { arguments: {}, fields: {}, limit: 100, wait: false }
const operationOf = ({ operations }: CommandGroup, name: string) => {
  const found = operations.find(({ command }) => command === name)
  if (found === undefined) throw new Error(name)
  return found
}

/** Runs an operation against a server that sends `bodies` by path; counts the requests. */
const run = async (
  operation: ReturnType<typeof operationOf>,
  bodies: Readonly<Record<string, unknown>>,
  { columns, ...output }: Partial<Output> & { readonly columns?: number } = {},
) =>
  await withServer(
    ({ path }, answer) => json(answer, 200, bodies[path.split("?")[0] ?? ""] ?? {}),
    async ({ url, heard }) => {
      const { session, written } = sessionWith(url, output, columns)
      const outcome = await endingOf(runOperation(session, operation, nothing))
      return { ...outcome, ...written, sent: heard.length }
    },
  )

describe("an unknown column in -o", () => {
  it("is an error that lists the columns, before anything is sent", async () => {
    const list = operationOf(jobs, "list")
    const bodies = { "/v1/jobs": { jobs: [] } }
    const { ending, message, sent, out } = await run(list, bodies, { fields: ["id", "nope"] })
    assert.deepEqual([ending, sent, out], ["usage", 0, ""])
    assert.match(message, /^Unknown column 'nope'\n {2}next: use any of id, job_type, state, /)
    assert.match(message, /error\.code, error\.detail, age, target$/)
    const known = ["id", "error.code", "error", "age", "target"]
    assert.equal((await run(list, bodies, { fields: known })).ending, "ok")
    const in_json = await run(list, bodies, { fields: ["age"], json: true })
    assert.equal(in_json.ending, "usage", "the API has no such member")
  })

  it("is an error where only the response shows which columns exist", async () => {
    const show = operationOf(scheduling, "show")
    const bodies = { "/v1/admin/scheduling": { paused: true, since: null } }
    for (const as_json of [true, false]) {
      const output = { fields: ["pause"], json: as_json }
      const { ending, message } = await run(show, bodies, output)
      assert.equal(ending, "usage")
      assert.equal(message, "Unknown column 'pause'\n  next: use any of paused, since")
    }
    assert.equal((await run(show, bodies, { fields: ["since.year"] })).ending, "ok")
  })

  it("does not hide that a change was made", async () => {
    const pause = operationOf(scheduling, "pause")
    const bodies = { "/v1/admin/scheduling/pause": { paused: true } }
    const { ending, out, sent } = await run(pause, bodies, { fields: ["nope"] })
    assert.deepEqual([ending, out, sent], ["ok", "nope  -\n", 1])
  })

  it("is none below a map, or in a list of rules", () => {
    requireColumns(
      ["labels.stage", "retention", "retention.keep_daily"],
      ["labels", "retention.keep_daily"],
    )
    assert.throws(() => requireColumns(["retention.nope"], ["retention.keep_daily"]), /Unknown/)
  })
})

describe("a table of jobs", () => {
  const job = (id: number, more: object) => ({
    id: `01990000-0000-7000-8000-00000000000${id}`,
    job_type: "backup",
    state: "available",
    target_id: "01990000-0000-7000-8000-0000000000a1",
    created_at: new Date(Date.now() - 3_700_000).toISOString(),
    progress: 100,
    ...more,
  })
  const bodies = {
    "/v1/jobs": {
      jobs: [
        job(1, { job_type: "restore_test", state: "provisioning_network" }),
        job(2, { target_id: "01990000-0000-7000-8000-0000000000a2" }),
      ],
    },
    "/v1/targets": { targets: [{ id: "01990000-0000-7000-8000-0000000000a1", name: "nightly" }] },
  }

  it("shows age and target in 80 columns", async () => {
    const { out } = await run(operationOf(jobs, "list"), bodies, { columns: 80 })
    const [head = "", first = "", second = ""] = out.split("\n")
    assert.match(head, /^ID +JOB TYPE +STATE +AGE +TARGET *$/)
    assert.match(first, / 1h {3}nightly$/)
    assert.match(second, / 1h {3}0199\S+…$/, "a target that the caller cannot read")
    for (const line of [head, first, second]) assert.isAtMost(line.length, 80)
  })

  it("leaves JSON as the API has it", async () => {
    const { out, sent } = await run(operationOf(jobs, "list"), bodies, { json: true })
    assert.deepEqual(JSON.parse(out), bodies["/v1/jobs"].jobs)
    assert.equal(sent, 1)
  })

  it("rounds an age down to one unit", () => {
    const ages = [-1, 59.9, 60, 3599, 3600, 86_399, 86_400].map(formatAge)
    assert.deepEqual(ages, ["0s", "59s", "1m", "59m", "1h", "23h", "1d"])
  })
})

describe("the dashboard in a terminal", () => {
  const metric = { tier: 1, metric_id: "hy_spread", value: "3.71%", z: -0.9, sparkline: [1, 2] }
  const body = {
    composite: { z: 0.27, z_label: "tightening", tally: { bull: 6 } },
    tiers: [{ tier: 1, name: "Liquidity and Credit", avg_z: -0.7, metrics: [metric] }],
    composite_history: [{ ts: "2026-11-27", z: 0.27 }],
    demo: true,
  }

  it("is three tables that fit", async () => {
    const show = operationOf(readings, "show")
    const { out } = await run(show, { "/api/dashboard": body }, { columns: 80 })
    for (const line of out.split("\n")) assert.isAtMost(line.length, 80, line)
    assert.match(out, /^COMPOSITE\nz +0\.27\n[\s\S]*tally\.bull +6\n[\s\S]*date +2026-11-27\n/)
    assert.match(out, /\nTIERS\nTIER +NAME +Z SCORE[\s\S]*\n +1 +Liquidity and Credit +-0\.7 +1 /)
    assert.match(out, /\nMETRICS\nTIER +METRIC ID +VALUE[\s\S]*\n +1 +hy_spread +3\.71%/)
    const whole = await run(show, { "/api/dashboard": body }, { json: true })
    assert.deepEqual(JSON.parse(whole.out), body)
  })

  it("is without tables where the folder has no data", async () => {
    const empty = { composite: null, tiers: [], composite_history: null, demo: null }
    const { out } = await run(operationOf(readings, "show"), { "/api/dashboard": empty })
    assert.match(out, /^COMPOSITE\ncomposite {2}-\ndemo +-\n/)
  })
})

describe("a page", () => {
  it("shows a list of objects as a table, and truncates other lists", async () => {
    const show = operationOf(scheduling, "show")
    const loops = [{ loop: "shares", found: 1 }]
    const body = { loops, many: Array.from({ length: 99 }, (_, i) => i) }
    const { out } = await run(show, { "/v1/admin/scheduling": body }, { columns: 40 })
    assert.match(out, /^many {2}0, 1, 2.*…\n\nloops\nLOOP +FOUND\nshares +1\n$/)
    for (const line of out.split("\n")) assert.isAtMost(line.length, 40, line)
  })
})

describe("the width", () => {
  it("is that of COLUMNS, also without a terminal", () => {
    assert.equal(screen({ COLUMNS: "72" }).columns, 72)
    for (const COLUMNS of ["", "0", "x", "-3"]) assert.notEqual(screen({ COLUMNS }).columns, 0)
  })
})

describe("a command line without required flags", () => {
  const messageOf = (operation: ReturnType<typeof operationOf>, fields: RunInput["fields"]) => {
    try {
      requireFlags(operation, fields)
      return ""
    } catch (cause) {
      return isFailure(cause) && cause.ending === "usage" ? cause.message : String(cause)
    }
  }

  it("lists all of them, of the shape that it began with", () => {
    const create = operationOf(targets, "create")
    const [what = "", next = ""] = messageOf(create, {}).split("\n")
    assert.match(what, /^Missing required flags: --name, --endpoint, --bucket, or in Shape B /)
    assert.match(what, /Shape B --bucket-name, --template-id, --s3-access-key-ref, /)
    assert.match(next, /next: almanac targets create --name nightly/)
    const b = messageOf(create, { bucket_name: "b", template_id: "t" })
    assert.match(b, /^Missing required flags: --s3-access-key-ref, --s3-secret-key-ref\n/)
    const a = messageOf(operationOf(policies, "create"), { name: "n", target_id: "t" })
    assert.match(a, /^Missing required flags: --share-id, --schedule\n/)
    assert.equal(messageOf(create, { name: "n", endpoint: "e", bucket: "b" }), "")
  })

  it("names a change without a new value", () => {
    const update = operationOf(targets, "update")
    assert.match(messageOf(update, {}), /^Nothing to change: /)
    assert.equal(messageOf(update, { name: "n" }), "")
  })
})

it("lists coverage with its columns", async () => {
  const row = { share_id: "01990000-0000-7000-8000-000000000001", protected: true, backup_count: 3 }
  const bodies = { "/v1/admin/coverage": { coverage: [row] } }
  const { out } = await run(operationOf(coverage, "list"), bodies, { columns: 80 })
  assert.match(out, /^SHARE ID +PROTECTED +BACKUP COUNT\n\S{36} +yes +3\n$/)
})
