/** The process of one contestant: starts it, runs the requested rounds, stops. */
import { causeText } from "#schemas/cause-text.ts"
import type { Contestant, Running } from "./contestant.ts"
import { drive } from "./round.ts"
import type { Answer, Order } from "./stage.ts"

let running: Running | undefined
let done = 0

const start = async (module: string, name: string, home: Parameters<Contestant["start"]>[0]) => {
  const exported: Record<string, unknown> = await import(module)
  // A module of contestants exports them by name; a module that does not is a mistake in the suite.
  const contestants = Object.values(exported) as ReadonlyArray<Contestant>
  running = await contestants.find((contestant) => contestant.name === name)?.start(home)
  if (!running) throw new Error(`${module} exports no contestant ${name}`)
}

const obey = async (order: Order): Promise<Answer> => {
  if (order.order === "start") await start(order.module, order.name, order.home)
  if (order.order !== "round" || !running) return {}
  const round = await drive(running.run, done, order.effort)
  if (round.runs === 0) throw new Error("not one run in a round")
  done += round.runs
  return { round }
}

const stop = async () => {
  await running?.stop().catch(() => {})
  process.exit(0)
}

process.on("disconnect", () => void stop())
process.on("message", (order: Order) => {
  if (order.order === "stop") return void stop()
  obey(order).then(
    (answer) => process.send?.(answer),
    (cause) => process.send?.({ failed: causeText(cause).split("\n")[0] }),
  )
})
