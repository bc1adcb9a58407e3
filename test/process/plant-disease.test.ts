/**
 * Plant disease prediction as a user sees it: the real server, the demo model, drawn leaves, many
 * concurrent clients, kills without warning, and an invalid model.
 */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import sharp from "sharp"
import { afterAll, beforeAll, expect, it } from "vitest"
import { demo_classes, drawLeaf } from "#trainer"
import { describeWithServer } from "../world/programs/nats.ts"
import { cleanUp, newFolder, type Server, startServer, until } from "../world/server/server.ts"
import { buildIfNeeded } from "../world/web/built.ts"
import { describeWithChromium, launch } from "../world/web/chromium.ts"

const minute_ms = 60_000
/** The time from a response to its audit event, on a machine that runs several tasks at once. */
const recorded_ms_max = 20_000
const clients = 200
/** Like a phone's picture, larger than 224 by 224. */
const leaf_side = 256

const threads = 3
const services = {
  ALMANAC_SERVICES: '["plant-disease"]',
  ALMANAC_PLANT__WORKERS: String(threads),
}

/** One leaf of each class. */
const leaves = await Promise.all(
  demo_classes.map(async (name, index) => {
    const raw = { width: leaf_side, height: leaf_side, channels: 3 } as const
    const jpeg = await sharp(drawLeaf(index, 7_100_001, leaf_side), { raw })
      .jpeg()
      .toBuffer()
    return { name, bytes: jpeg, sha256: createHash("sha256").update(jpeg).digest("hex") }
  }),
)

const predict = (server: Server, bytes: Buffer, query = "") => {
  const form = new FormData()
  form.append("file", new Blob([Uint8Array.from(bytes)], { type: "image/jpeg" }), "leaf.jpg")
  return fetch(`${server.url}/predict${query}`, { method: "POST", body: form })
}

interface Told {
  readonly subject: string
  readonly request_id: string
  readonly actor: string
}

/** The audit events of predictions. */
const audited = async (server: Server): Promise<ReadonlyArray<Told>> => {
  const headers = { authorization: `Bearer ${server.credentials.admin.token}` }
  const query = "?service=plant-disease&type=PredictionMade&limit=1000"
  const answer = await fetch(`${server.url}/v1/admin/audit${query}`, { headers })
  expect(answer.status).toBe(200)
  return (await answer.json()).events
}

afterAll(cleanUp)

describeWithServer("a server with plant disease prediction", () => {
  const data_dir = newFolder()
  let server: Server

  beforeAll(async () => {
    server = await startServer(data_dir, services)
  }, 2 * minute_ms)
  afterAll(async () => {
    await server?.stop()
  }, minute_ms)

  it("knows leaves that were drawn for this test, and says which model does", async () => {
    let right = 0
    for (const { name, bytes } of leaves) {
      const answer = await predict(server, bytes)
      expect(answer.status).toBe(200)
      const { prediction, ...others } = await answer.json()
      expect(others).toEqual({})
      expect(demo_classes).toContain(prediction)
      if (prediction === name) right++
    }
    expect(right).toBeGreaterThan(leaves.length * 0.7)
    const model = await (await fetch(`${server.url}/predict/model`)).json()
    expect(model).toMatchObject({ is_demo: true, classes: demo_classes, format: "tfjs" })
    const ready = await (await fetch(`${server.url}/readyz`)).text()
    expect(ready).toMatch(/^plant-disease ok; uses the demo model: set plant\.model/m)
  })

  it.skipIf(process.platform !== "linux")("has all its threads once it serves", async () => {
    const args = ["-L", "-o", "comm=", "-p", String(server.pid)]
    const names = () => execFileSync("ps", args, { encoding: "utf8" }).split("\n")
    // Threads inherit the name of the thread that starts them.
    const last = `plant ${threads}`
    await until("the last thread", minute_ms, () => names().some((name) => name.trim() === last))
  })

  it("answers many at once as it does one by one, or says when", {
    timeout: minute_ms,
  }, async () => {
    const expected = new Map<string, string>()
    for (const { sha256, bytes } of leaves) {
      expected.set(sha256, await (await predict(server, bytes, "?top_k=16")).text())
    }
    const answers = await Promise.all(
      Array.from({ length: clients }, async (_, n) => {
        const leaf = leaves[n % leaves.length]
        if (leaf === undefined) throw new Error("there is no leaf")
        const answer = await predict(server, leaf.bytes, "?top_k=16")
        const retry_after = answer.headers.get("retry-after")
        return {
          sha256: leaf.sha256,
          status: answer.status,
          retry_after,
          text: await answer.text(),
        }
      }),
    )
    for (const { sha256, status, retry_after, text } of answers) {
      if (status === 503) expect(Number(retry_after)).toBeGreaterThan(0)
      else expect({ status, text }).toEqual({ status: 200, text: expected.get(sha256) })
    }
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(64)
  })

  it("counts what it predicts, and documents its paths", async () => {
    await predict(server, leaves[0]?.bytes ?? Buffer.of())
    const headers = { authorization: `Bearer ${server.credentials.admin.token}` }
    const metrics = await (await fetch(`${server.url}/metrics`, { headers })).text()
    expect(metrics).toMatch(
      /^almanac_http_requests_total\{method="POST",route="\/predict",status="200"\} \d+$/m,
    )
    expect(metrics).toMatch(/^almanac_plant_predictions_total\{outcome="predicted"\} \d+$/m)
    expect(metrics).toMatch(/^almanac_plant_waiting 0$/m)
    const { paths } = await (await fetch(`${server.url}/openapi.json`)).json()
    expect(Object.keys(paths)).toEqual(
      expect.arrayContaining(["/predict", "/predict/batch", "/predict/model"]),
    )
  })

  it("has an answer's fact once after it was killed", { timeout: 3 * minute_ms }, async () => {
    const ids: Array<string | null> = []
    for (const { bytes } of leaves.slice(0, 5)) {
      const answer = await predict(server, bytes)
      expect(answer.status).toBe(200)
      ids.push(answer.headers.get("x-request-id"))
    }
    // Facts are written within moments of the response: this is 10 times the spool's batching
    // delay.
    await new Promise((resolve) => setTimeout(resolve, 200))
    await server.killAll()
    server = await startServer(data_dir, services)
    await until("all facts", recorded_ms_max, async () => {
      const all = (await audited(server)).map(({ request_id }) => request_id)
      return ids.every((id) => all.includes(`${id}`))
    })
    await server.killAll()
    server = await startServer(data_dir, services)
    const all = await audited(server)
    for (const [n, id] of ids.entries()) {
      const mine = all.filter(({ request_id }) => request_id === id)
      expect(mine).toHaveLength(1)
      expect(mine[0]).toMatchObject({ subject: leaves[n]?.sha256, actor: "anonymous" })
    }
  })
})

describeWithServer("a server whose model is none", () => {
  const model = join(newFolder(), "model.h5")

  beforeAll(() => {
    mkdirSync(join(model, ".."), { recursive: true })
    writeFileSync(model, "no model at all")
    writeFileSync(join(model, "..", "class_indices.json"), '["a", "b"]')
  })

  const withModel = { ALMANAC_PLANT__MODEL: model }

  it("serves the others, and says why not this one", { timeout: 2 * minute_ms }, async () => {
    const both = { ALMANAC_SERVICES: '["carrier-search", "plant-disease"]' }
    const server = await startServer(newFolder(), { ...withModel, ...both })
    for (const path of ["/predict/model", "/predict", "/predict/batch"]) {
      const method = path.endsWith("model") ? "GET" : "POST"
      const answer = await fetch(`${server.url}${path}`, { method })
      expect([answer.status, await answer.json()]).toEqual([
        503,
        { error: "The service plant-disease could not start." },
      ])
    }
    const ready = await fetch(`${server.url}/readyz`)
    expect(ready.status).toBe(503)
    const failed = "(not started: plant-disease)"
    expect(server.printed.stdout).toBe(`almanac ready ${server.url} ${failed}\n`)
    const why = "could not start: The model file is damaged: it does not start like a .h5 file."
    expect(await ready.text()).toContain(`plant-disease ${why}\n`)
    const lines = server.printed.stderr.split("\n").filter((line) => line.includes("plant-disease"))
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain(why)
    expect((await fetch(`${server.url}/api/search/sources`)).status).toBe(200)
    expect(await server.stop()).toEqual({ code: 0, signal: null })
  })

  it("ends where there is no other", { timeout: minute_ms }, async () => {
    await expect(startServer(newFolder(), { ...withModel, ...services })).rejects.toThrow(
      /plant-disease could not start: The model file is damaged[\s\S]*No service could start/,
    )
  })

  it.each([
    ["nothing", /does not exist/],
    ['{"a": 0, "b": 5}', /could not start: The class file/],
  ])("says so of a class file that has %s", { timeout: minute_ms }, async (text, why) => {
    const classes = join(newFolder(), "classes.json")
    if (text !== "nothing") writeFileSync(classes, text)
    const given = { ALMANAC_PLANT__CLASSES: classes, ...services }
    await expect(startServer(newFolder(), given)).rejects.toThrow(why)
  })
})

describeWithChromium("the page of plant disease prediction on a real server", () => {
  it("shows a leaf's class on its page", { timeout: 2 * minute_ms }, async () => {
    buildIfNeeded()
    const server = await startServer(newFolder(), services)
    const [leaf] = leaves
    const browser = await launch()
    const page = await browser.browser.newPage()
    const complaints: Array<string> = []
    page.on("console", (message) => {
      if (message.type() === "error") complaints.push(message.text())
    })
    await page.goto(`${server.url}/plants`)
    const file = { name: "leaf.jpg", mimeType: "image/jpeg", buffer: leaf?.bytes ?? Buffer.of() }
    await page.locator('input[type="file"]').first().setInputFiles(file)
    await page.locator(".raw").waitFor()
    const answer = await predict(server, file.buffer)
    expect(await page.locator(".raw").textContent()).toBe((await answer.json()).prediction)
    expect(await page.locator(".bars li").count()).toBe(5)
    await browser.close()
    await server.stop()
    expect(complaints).toEqual([])
  })
})
