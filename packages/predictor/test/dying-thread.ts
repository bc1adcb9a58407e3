/** The predictor's thread, which ends in the middle of an image that says so, as if it crashed. */
import { parentPort } from "node:worker_threads"
import type { Task } from "../protocol.ts"

/** The last byte of such an image. */
export const deadly = 0x13

/** This program. */
export const dying_thread = new URL(import.meta.url)

parentPort?.on("message", (task: Task | "end") => {
  if (task === "end" || task.kind !== "prepare") return
  if (task.image.at(-1) === deadly) process.exit(7)
})
await import("../thread.ts")
