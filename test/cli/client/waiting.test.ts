/** The client's messages while the job that it watches is queued. */
import { assert, describe, it } from "@effect/vitest"
import { watchJob } from "#cli/client/share-protection/watch.ts"
import { json, sessionWith, withServer } from "./scripted.ts"

const id = "01990000-0000-7000-8000-000000000001"
const job = { id, job_type: "backup", state: "queued", target_id: "t1", project_id: "p1" }
const whole = { id: "t1", name: "nightly", trust_id: "trust", vault_secret_map: {} }

/** The messages while the job is queued, given the target as returned by each poll. */
const toldOf = async (
  targets: ReadonlyArray<object | undefined>,
  { is_operator = false, type = "backup" } = {},
) => {
  let looks = 0
  let written = ""
  await withServer(
    ({ path }, answer) => {
      if (path.includes("/jobs/")) {
        const state = looks < targets.length ? "queued" : "available"
        looks++
        return json(answer, 200, { ...job, job_type: type, state })
      }
      const target = targets[looks - 1]
      if (target === undefined) return json(answer, 404, { code: "svc.not_found", detail: "None." })
      return json(answer, 200, is_operator ? { targets: [{ id: "t0" }, target] } : target)
    },
    async ({ url, heard }) => {
      const session = sessionWith(url)
      await watchJob(session.session, id, is_operator)
      const paths = heard.filter(({ path }) => path.includes("/targets")).map(({ path }) => path)
      const wanted = is_operator ? "/v1/admin/targets?project_id=p1" : "/v1/targets/t1"
      assert.deepEqual(
        paths,
        targets.map(() => wanted),
      )
      written = session.written.err
    },
  )
  return written.split("\n").filter((line) => !/^(backup|target_enroll) /.test(line))
}

describe("watching a job that is queued", () => {
  it("reports a failed enrollment of its target once, with advice", async () => {
    const failed = { ...whole, status: "error", reason: "object_lock: it is off." }
    for (const is_operator of [false, true]) {
      const result = await toldOf([failed, failed], { is_operator })
      assert.deepEqual(result, [
        "The job waits because the enrollment of target nightly failed: object_lock: it is off.",
        "  next: fix the cause, then almanac targets enroll t1; the job starts once it is enrolled",
        "",
      ])
    }
  })

  it("reports the missing members of its target", async () => {
    const lacking = { ...whole, status: "pending", trust_id: null, vault_secret_map: null }
    const result = await toldOf([lacking], { type: "target_enroll" })
    assert.include(result[0], "target nightly lacks trust_id, vault_secret_map")
    assert.include(result[1], "almanac targets update t1 --trust-id ID --access-key HREF")
  })

  it("reports an enrollment in progress, and nothing if it only waits for its turn", async () => {
    const pending = { ...whole, status: "pending" }
    const available = { ...whole, status: "available" }
    assert.include((await toldOf([pending, available]))[0], "until target nightly is enrolled")
    assert.deepEqual(await toldOf([available]), [""])
    assert.deepEqual(await toldOf([pending], { type: "target_enroll" }), [""])
  })

  it("continues if its target cannot be read", async () => {
    assert.deepEqual(await toldOf([undefined]), [""])
  })
})

describe("watching a job that runs", () => {
  it("shows the bytes and the elapsed time, which move between two polls", async () => {
    const bytes_total = 1000
    const running = [100, 300, 300, 600, 900].map((bytes_done) => ({
      ...job,
      state: "transferring",
      progress: bytes_done / 10,
      bytes_done,
      bytes_total,
    }))
    const text = await withServer(
      (_, answer, nth) => json(answer, 200, running[nth - 1] ?? { ...job, state: "available" }),
      async ({ url }) => {
        const { session, written } = sessionWith(url, {}, 100)
        await watchJob(session, id, false)
        return written.err
      },
    )
    const lines = text.split("\r\u001b[K").filter((line) => line !== "")
    assert.match(
      lines[0] ?? "",
      /^backup transferring {2}\[#+-+\] {3}10% {2}100 B \/ 1000 B .*0:00 elapsed/,
    )
    assert.match(lines.at(-1) ?? "", / 90% {2}900 B \/ 1000 B .*0:0[1-9] elapsed/)
    assert.isAbove(lines.length, running.length, "redrawn between polls")
  })
})
