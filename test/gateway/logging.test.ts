import { createServer } from "node:http"
import { Context, Effect, Exit, Layer, Redacted, Scope, Tracer } from "effect"
import { describe, expect, it } from "vitest"
import { logging, redacted } from "#adapters/logging.ts"
import { telemetry } from "#adapters/telemetry.ts"
import { settingsWith } from "../http.ts"

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

  it("show control characters as escapes: nobody's text forges or hides a line", async () => {
    const forged = "x\r\n12:00:00.000 INFO  All is well\u001b[2J\u0000\u009b"
    const effect = Effect.annotateLogs(Effect.logWarning(forged), { path: forged })
    const [line = ""] = await logged(true, effect)
    expect(line.slice(0, -1)).not.toContain("\n")
    const [, said = ""] = line.split("\u001b[0m ").slice(1)
    expect(said.slice(0, -1)).not.toMatch(/\p{Cc}/u)
    expect(said).toContain("x\\x0d\\x0a12:00")
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

  it("never show what is redacted, nor credentials in a text", async () => {
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
  it("are sent to the collector that the settings name", async () => {
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
    const settings = settingsWith({ telemetry: { otlp_url: `http://127.0.0.1:${port}/` } })
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
    // Until the end of the scope, which gives up as well, nobody but the deadline does.
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
