import { createServer } from "node:http"
import { Context, Effect, Exit, Layer, Redacted, Scope, Tracer } from "effect"
import { describe, expect, it } from "vitest"
import { logging, redacted } from "#adapters/logging.ts"
import { isSampled, telemetry } from "#adapters/telemetry.ts"
import { spanned, traceNow } from "#events/trace.ts"
import { settingsWith } from "../world/http.ts"

const logged = async (
  is_terminal: boolean,
  effect: Effect.Effect<unknown>,
  level: () => "debug" | "info" | "warning" = () => "info",
) => {
  const lines: Array<string> = []
  const sink = { is_terminal, write: (line: string) => lines.push(line) }
  await Effect.runPromise(Effect.provide(effect, logging(level, sink)))
  return lines
}

describe("logs", () => {
  it("are JSON lines where no terminal is", async () => {
    const effect = Effect.annotateLogs(Effect.logWarning("Two\nlines"), { request_id: "r1" })
    const lines = await logged(false, effect)
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(/^\{.*\}\n$/)
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      level: "WARN",
      message: "Two\nlines",
      annotations: { request_id: "r1" },
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    })
  })

  it("are coloured lines for people on a terminal", async () => {
    const [line = ""] = await logged(
      true,
      Effect.annotateLogs(Effect.logInfo("Ready"), { port: 1 }),
    )
    expect(line).toContain("\u001b[32mINFO \u001b[0m Ready port=1\n")
  })

  it("show control characters as escapes: no text can forge or hide a line", async () => {
    const forged = "x\r\n12:00:00.000 INFO  All is well\u001b[2J\u0000\u009b"
    const effect = Effect.annotateLogs(Effect.logWarning(forged), { path: forged })
    const [line = ""] = await logged(true, effect)
    expect(line.slice(0, -1)).not.toContain("\n")
    const [, output = ""] = line.split("\u001b[0m ").slice(1)
    expect(output.slice(0, -1)).not.toMatch(/\p{Cc}/u)
    expect(output).toContain("x\\x0d\\x0a12:00")
    const [json = ""] = await logged(false, effect)
    for (const control of ["\n", "\r", "\u001b", "\u0000"]) {
      expect(json.trimEnd()).not.toContain(control)
    }
  })

  it("hold the cause of a failure", async () => {
    const [line = ""] = await logged(
      false,
      Effect.sandbox(Effect.die(new Error("why"))).pipe(
        Effect.catch((cause) => Effect.logError("It failed.", cause)),
      ),
    )
    expect(JSON.parse(line).cause).toContain("why")
  })

  it("show nothing below the level, which may change while the process runs", async () => {
    let level: "debug" | "warning" = "warning"
    const both = Effect.andThen(
      Effect.logInfo("hidden"),
      Effect.andThen(
        Effect.sync(() => {
          level = "debug"
        }),
        Effect.logDebug("shown"),
      ),
    )
    const lines = await logged(false, both, () => level)
    expect(lines.map((line) => JSON.parse(line).message)).toEqual(["shown"])
  })

  it("never show redacted values, nor credentials in a text", async () => {
    const secret = Redacted.make("hunter2hunter2")
    const [line = ""] = await logged(false, Effect.logInfo("got", { secret }))
    expect(line).not.toContain("hunter2")
    const [header = ""] = await logged(
      false,
      Effect.logInfo("Authorization: Bearer hunter2hunter2"),
    )
    expect(header).not.toContain("hunter2")
    const texts = [
      "Authorization: Bearer hunter2hunter2",
      '{"authorization":"Bearer hunter2hunter2"}',
      "x-auth-token: hunter2hunter2",
      "bearer hunter2hunter2",
      "nats://user:hunter2hunter2@localhost:4222",
      "s3://user:hunter2hunter2@localhost",
      "Basic aHVudGVyMjpodW50ZXIy",
    ]
    for (const text of texts) expect(redacted(text)).not.toMatch(/hunter2|aHVudGVy/)
    expect(redacted("A bearer token is needed.")).toContain("is needed.")
  })
})

describe("traces", () => {
  /** A collector, and the path and body of each request that it received. */
  const collecting = async () => {
    const received: Array<string> = []
    const collector = createServer((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        received.push(`${request.url} ${Buffer.concat(chunks).toString()}`)
        response.end("{}")
      })
    })
    await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve))
    const address = collector.address()
    const port = typeof address === "object" && address ? address.port : 0
    return { received, collector, otlp_url: `http://127.0.0.1:${port}` }
  }

  it("are sent to the collector that the settings name", async () => {
    const { received, collector, otlp_url } = await collecting()
    const settings = settingsWith({ telemetry: { otlp_url: `${otlp_url}/` } })
    const scope = Effect.runSync(Scope.make())
    const context = await Effect.runPromise(
      Layer.buildWithScope(telemetry(settings, "1.2.3"), scope),
    )
    await Effect.runPromise(
      Effect.withSpan(Effect.void, "put a blob").pipe(Effect.provideContext(context)),
    )
    await Effect.runPromise(Scope.close(scope, Exit.void))
    collector.close()
    expect(received.join()).toMatch(/^\/v1\/traces /)
    expect(received.join()).toContain("put a blob")
    expect(received.join()).toContain("1.2.3")
  })

  it("are sent by share of their id, and in a trace that a caller began as that says", async () => {
    const { received, collector, otlp_url } = await collecting()
    const tracesAt = async (sample_ratio: number) => {
      received.length = 0
      const scope = Effect.runSync(Scope.make())
      const given = settingsWith({
        telemetry: { otlp_url, sample_ratio },
      })
      const context = await Effect.runPromise(
        Layer.buildWithScope(telemetry(given, "1.2.3"), scope),
      )
      const run = <A>(work: Effect.Effect<A>) =>
        Effect.runPromise(Effect.provideContext(work, context))
      const roots: Array<string | undefined> = []
      for (let n = 0; n < 400; n++) {
        roots.push(await run(spanned("root")(spanned("leaf")(traceNow))))
      }
      const id = "0af7651916cd43dd8448eb211c80319c"
      for (const flags of ["00", "01"]) {
        const parent = `00-${id}-b7ad6b7169203331-${flags}`
        await run(spanned(`remote-${flags}`, { parent })(Effect.void))
      }
      await Effect.runPromise(Scope.close(scope, Exit.void))
      return { roots, spans: received.join("") }
    }
    const { roots, spans } = await tracesAt(0.25)
    const of = (name: string) => spans.split(`"name":"${name}"`).length - 1
    const chosen = roots.filter((trace) => trace?.endsWith("-01"))
    // Six standard deviations: one run in 500 million exceeds them.
    expect(Math.abs(chosen.length - 100)).toBeLessThan(52)
    for (const trace of roots) {
      expect(isSampled(trace?.slice(3, 35) ?? "", 0.25)).toBe(trace?.endsWith("-01"))
    }
    expect([of("root"), of("leaf")]).toEqual([chosen.length, chosen.length])
    expect([of("remote-00"), of("remote-01")]).toEqual([0, 1])
    const unsampled = await tracesAt(0)
    expect(unsampled.spans).not.toContain("root")
    expect(unsampled.spans).toContain("remote-01")
    collector.close()
  })

  it("are of a share that holds all smaller ones", () => {
    const at = (digits: string) => `4bf92f3577b34da6a3${digits}`
    for (const ratio of [0, 0.25, 0.5, 1]) {
      expect([
        isSampled(at("00000000000000"), ratio),
        isSampled(at("80000000000000"), ratio),
        isSampled(at("c0000000000000"), ratio),
        isSampled(at("bfffffffffffff"), ratio),
      ]).toEqual([ratio === 1, ratio >= 0.5, ratio >= 0.25, ratio >= 0.5])
    }
  })

  it("do not pile up before a collector that takes them and never answers", async () => {
    const { promise: left, resolve } = Promise.withResolvers<string>()
    const collector = createServer((request, response) => {
      request.resume()
      response.on("close", () => resolve("left"))
    })
    await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve))
    const address = collector.address()
    const port = typeof address === "object" && address ? address.port : 0
    const settings = settingsWith({ telemetry: { otlp_url: `http://127.0.0.1:${port}/` } })
    const scope = Effect.runSync(Scope.make())
    const context = await Effect.runPromise(
      Layer.buildWithScope(telemetry(settings, "1.2.3", "almanac", 50), scope),
    )
    await Effect.runPromise(
      Effect.withSpan(Effect.void, "put a blob").pipe(Effect.provideContext(context)),
    )
    // Closing the scope would also cancel the export, so only the deadline can have done it.
    expect(await left).toBe("left")
    await Effect.runPromise(Scope.close(scope, Exit.void))
    collector.closeAllConnections()
    collector.close()
  })

  it("need nothing where no collector is named", async () => {
    const built = Layer.build(telemetry(settingsWith(), "1.2.3"))
    const context = await Effect.runPromise(Effect.scoped(built))
    expect(Context.get(context, Tracer.Tracer)).toBe(Context.get(Context.empty(), Tracer.Tracer))
  })
})
