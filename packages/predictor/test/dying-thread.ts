/** A predictor thread that exits during an image that ends with `deadly`, like a crash. */
import { parentPort } from "node:worker_threads"
import type { Task } from "../protocol.ts"

/** The last byte of an image that kills the thread. */
export const deadly = 0x13

/** This program. */
export const dying_thread = new URL(import.meta.url)

parentPort?.on("message", (task: Task | "end") => {
  if (task === "end" || task.kind !== "prepare") return
  if (task.image.at(-1) === deadly) process.exit(7)
})
await import("../thread.ts")
