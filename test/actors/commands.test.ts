import { describe } from "@effect/vitest"
import { Layer } from "effect"
import { host } from "#actors/host.ts"
import { logJetStream, logMemory } from "#journal"
import { commandsContract } from "../contract/commands.ts"
import { describeWithServer, nats } from "../world/programs/nats.ts"

const over = <A, E>(log: Layer.Layer<A, E>) => Layer.fresh(Layer.provideMerge(host, log))

describe("commands in this process, over an in-memory log", () => {
  commandsContract(() => over(logMemory))
})

describeWithServer("commands in this process, over a log in JetStream", () => {
  commandsContract(() => over(logJetStream({ stream: "LOG" }).pipe(Layer.provide(nats))))
})
