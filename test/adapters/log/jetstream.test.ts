import { Effect } from "effect"
import { logJetStream } from "#journal"
import { logContract } from "../../contract/log.ts"
import { describeNats } from "../../world/programs/nats.ts"

let logs = 0

/** A separate log on the shared server. */
const fresh = () => {
  const name = `LOG_${++logs}`
  return logJetStream({ stream: name, head: `commit-${logs}` })
}

describeNats("the log on JetStream", (it) => {
  logContract((name, body) => it.effect(name, () => Effect.provide(body, fresh())))
})
