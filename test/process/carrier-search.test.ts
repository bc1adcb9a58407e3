/**
 * Carrier search as a user sees it: the real server, a registry like FMCSA's on loopback, a mirror
 * that is imported while the server runs, and kills without warning.
 */
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, expect, it } from "vitest"
import { type FakeRegistry, startRegistry } from "../carrier-search/registry-fake.ts"
import { describeWithServer } from "../world/programs/nats.ts"
import {
  cleanUp,
  newFolder,
  runVerb,
  type Server,
  startServer,
  until,
} from "../world/server/server.ts"

const minute_ms = 60_000
/** The time from a response to its audit event, on a machine that runs several tasks at once. */
const recorded_ms_max = 20_000
/** A key that must not appear outside the registry's requests. */
const web_key = "7f3a9c1e5b2d8064web"

const services = { ALMANAC_SERVICES: '["carrier-search"]' }

interface Told {
  readonly id: string
  readonly subject: string
  readonly request_id: string
  readonly actor: string
}

/** A fact as stored in the log. */
interface Fact {
  readonly request_id: string
  readonly outcome: string
  readonly end: number
}

const asAdmin = async (server: Server, path: string) => {
  const headers = { authorization: `Bearer ${server.credentials.admin.token}` }
  const answer = await fetch(`${server.url}/v1/admin/audit${path}`, { headers })
  expect(answer.status).toBe(200)
  return await answer.json()
}

/** The audit events of searches. */
const audited = async (server: Server): Promise<ReadonlyArray<Told>> => {
  const query = "?service=carrier-search&type=CarrierSearchCompleted&limit=1000"
  return (await asAdmin(server, query)).events
}

/** The facts in those events. */
const facts = async (server: Server): Promise<ReadonlyArray<Fact>> => {
  const [one] = await audited(server)
  if (one === undefined) return []
  const { commits } = await asAdmin(server, `/carrier-search/search/${one.id}?limit=1000`)
  return commits.flatMap(({ events }: { events: ReadonlyArray<Fact> }) => events)
}

const search = (server: Server, range: string, init: RequestInit = {}) =>
  fetch(`${server.url}/api/search?${range}`, init)

/** Every file below a folder. */
const filesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile())

afterAll(cleanUp)

describeWithServer("a server with carrier search", () => {
  const data_dir = newFolder()
  let registry: { fake: FakeRegistry; stop: () => Promise<void> }
  let server: Server
  let environment: Readonly<Record<string, string>>
  /** The output of every run, which the test searches for the key. */
  let output = ""

  const restart = async (more: Readonly<Record<string, string>> = {}) => {
    output += server.printed.stdout + server.printed.stderr
    server = await startServer(data_dir, { ...environment, ...more })
  }

  const plan = {
    key: web_key,
    dockets: (mc: number) =>
      mc % 10 === 0
        ? [{ mc, dot: mc, name: `HAULAGE ${mc}`, active: true, carrier_only: true }]
        : [],
  }

  beforeAll(async () => {
    registry = await startRegistry(plan)
    environment = {
      ...services,
      FMCSA_WEB_KEY: web_key,
      ALMANAC_CARRIER__REGISTRY_URL: registry.fake.url,
      ALMANAC_CARRIER__RATE_PER_SECOND: "0",
      ALMANAC_LOG__LEVEL: "debug",
    }
    server = await startServer(data_dir, environment)
  }, minute_ms)
  afterEach(() => {
    registry.fake.plan = plan
  })
  afterAll(async () => {
    await server?.stop()
    await registry.stop()
  }, minute_ms)

  it("answers a range with one question for each number, ascending", async () => {
    const before = registry.fake.counts.total
    const answer = await search(server, "start=1&end=100")
    expect(answer.status).toBe(200)
    const { carriers } = await answer.json()
    expect(carriers).toHaveLength(10)
    expect(carriers[1]).toEqual({
      mcNumber: 20,
      name: "HAULAGE 20",
      authorityStatus: "ACTIVE",
      operatingType: "CARRIER",
    })
    expect(registry.fake.counts.total - before).toBe(100)
  })

  it("has the search in the audit, once, by its request's id", { timeout: minute_ms }, async () => {
    const answer = await search(server, "start=1&end=30")
    const request_id = answer.headers.get("x-request-id")
    const mine = await until("the fact", recorded_ms_max, async () => {
      const found = (await audited(server)).filter((one) => one.request_id === request_id)
      return found.length > 0 && found
    })
    expect(mine).toHaveLength(1)
    expect(mine[0]).toMatchObject({ subject: "1-30", actor: "anonymous" })
    const fact = (await facts(server)).find((one) => one.request_id === request_id)
    expect(fact).toMatchObject({
      start: 1,
      end: 30,
      registry: "fmcsa",
      outcome: "answered",
      found: 3,
      answered: 30,
    })
  })

  it("stops asking when the client hangs up", { timeout: minute_ms }, async () => {
    registry.fake.plan = { ...plan, latency_ms: () => 30 }
    const leaving = new AbortController()
    const pending = search(server, "start=1&end=100000", { signal: leaving.signal })
    const { counts } = registry.fake
    const before = counts.total
    await until("questions under way", minute_ms, () => counts.total > before + 20)
    leaving.abort()
    await pending.catch(() => undefined)
    await until("none under way", 5000, () => counts.in_flight === 0)
    const after = counts.total
    // Long enough for several more requests if anything were still sending them.
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(counts.total).toBe(after)
    await until("the fact", recorded_ms_max, async () =>
      (await facts(server)).some(({ outcome }) => outcome === "abandoned"),
    )
  })

  it("asks no more once the key is refused, and says so", async () => {
    registry.fake.plan = { ...plan, key: "another" }
    const before = registry.fake.counts.total
    const answer = await search(server, "start=1&end=5000")
    expect(answer.status).toBe(502)
    const { error } = await answer.json()
    expect(error).toMatch(/^registry lookup failed for \d+ of 5000 MC numbers \(first: \d+, /)
    expect(error).not.toContain(web_key)
    expect(registry.fake.counts.total - before).toBeLessThanOrEqual(8)
    registry.fake.plan = plan
  })

  it("reports its registry, its trouble and its paths", { timeout: minute_ms }, async () => {
    const { sources } = await (await fetch(`${server.url}/api/search/sources`)).json()
    expect(sources).toHaveLength(1)
    expect(sources[0].registry).toBe("fmcsa")
    expect(JSON.stringify(sources)).not.toContain(web_key)
    const ready = await (await fetch(`${server.url}/readyz`)).text()
    expect(ready).toMatch(/^carrier-search ok/m)
    const { paths } = await (await fetch(`${server.url}/openapi.json`)).json()
    expect(Object.keys(paths)).toEqual(
      expect.arrayContaining(["/api/search", "/api/search/sources"]),
    )
  })

  it("has an answer's fact once after it was killed", { timeout: 3 * minute_ms }, async () => {
    // A registry that rejected the key may be skipped for a while, so a new process is started.
    await server.killAll()
    await restart()
    const ids: Array<string | null> = []
    for (let n = 1; n <= 5; n++) {
      const answer = await search(server, `start=${n}&end=50`)
      expect(answer.status).toBe(200)
      ids.push(answer.headers.get("x-request-id"))
    }
    // Facts are written within moments of the response: this is 10 times the spool's batching
    // delay.
    await new Promise((resolve) => setTimeout(resolve, 200))
    await server.killAll()
    await restart()
    const kept = async () => (await audited(server)).map(({ request_id }) => request_id)
    await until("all facts", recorded_ms_max, async () => {
      const all = await kept()
      return ids.every((id) => all.includes(`${id}`))
    })
    await server.killAll()
    await restart()
    const all = await kept()
    for (const id of ids) expect(all.filter((one) => one === id)).toHaveLength(1)
  })

  it("has what a stopping server gave up", { timeout: 2 * minute_ms }, async () => {
    registry.fake.plan = { ...plan, latency_ms: () => 200 }
    const { counts } = registry.fake
    const before = counts.total
    const answer = search(server, "start=1&end=99999")
    await until("questions under way", minute_ms, () => counts.total > before)
    const stopped = server.stop()
    expect((await answer).status).toBe(503)
    expect(await stopped).toEqual({ code: 0, signal: null })
    registry.fake.plan = plan
    await restart()
    await until("the fact", recorded_ms_max, async () =>
      (await facts(server)).some(({ end, outcome }) => end === 99_999 && outcome === "abandoned"),
    )
  })

  it("uses a mirror from the moment it is filled", { timeout: 3 * minute_ms }, async () => {
    await server.stop()
    await restart({ FMCSA_WEB_KEY: "" })
    const refused = await search(server, "start=1&end=100")
    expect(refused.status).toBe(502)
    const { error } = await refused.json()
    expect(error).toContain("FMCSA_WEB_KEY")
    expect(error).toContain("almanac carriers import")
    const none = await (await fetch(`${server.url}/api/search/sources`)).json()
    expect(none.sources[0]).toMatchObject({ registry: "none", is_healthy: false, detail: error })
    expect(await (await fetch(`${server.url}/readyz`)).text()).toContain(`searches fail: ${error}`)

    const { code, stderr } = await runVerb(data_dir, ["carriers", "import", "--demo"], services)
    expect(code, stderr).toBe(0)
    const { carriers } = await (await search(server, "start=1&end=1000000")).json()
    expect(carriers.length).toBeGreaterThan(1000)
    expect(carriers.every(({ name }: { name: string }) => name.startsWith("DEMO"))).toBe(true)
    const { sources } = await (await fetch(`${server.url}/api/search/sources`)).json()
    const counts = { carriers: carriers.length, dockets: 60_000 }
    expect(sources[0]).toMatchObject({ registry: "mirror", is_healthy: true, is_demo: true })
    expect(sources[0]).toMatchObject(counts)
    const { stdout } = await runVerb(data_dir, ["carriers", "sources"], services)
    const [names, values] = stdout.split("\n").map((line) => line.split(/ {2,}/))
    const values_by_name = Object.fromEntries(names?.map((name, at) => [name, values?.[at]]) ?? [])
    expect(values_by_name).toMatchObject({ CARRIERS: `${carriers.length}`, DOCKETS: "60000" })
    const csv = await search(server, "start=1&end=1000000", { headers: { accept: "text/csv" } })
    expect((await csv.text()).split("\r\n")).toHaveLength(carriers.length + 2)
  })

  it("has revealed its web key to no one", async () => {
    await server.stop()
    output += server.printed.stdout + server.printed.stderr
    expect(output).toContain("almanac ready")
    expect(output).not.toContain(web_key)
    const files = filesIn(data_dir)
    expect(files.length).toBeGreaterThan(5)
    for (const path of files) expect(readFileSync(path).includes(web_key), path).toBe(false)
  })
})
