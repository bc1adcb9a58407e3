/** A running server with its pages, and a browser to view them, for the tests of one file. */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll } from "vitest"
import { buildIfNeeded } from "../web/built.ts"
import { launch } from "../web/chromium.ts"
import { cleanUp, newFolder, startServer } from "./server.ts"

export const minute_ms = 60_000

/** A new page, and the errors that its scripts report from then on. */
export const watchedPage = async (browser: Browser) => {
  const page = await browser.newPage()
  const complaints: Array<string> = []
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text())
  })
  page.on("pageerror", (error) => complaints.push(String(error)))
  return { page, complaints }
}

/** Starts before the first test of the caller's suite, and ends after its last. */
export const pageServer = (environment: Readonly<Record<string, string>>) => {
  const data_dir = newFolder()
  const begin = async () => {
    buildIfNeeded()
    const server = await startServer(data_dir, environment)
    return { server, ...(await launch()) }
  }
  let begun: Awaited<ReturnType<typeof begin>> | undefined
  beforeAll(async () => {
    begun = await begin()
  }, minute_ms)
  afterAll(async () => {
    await begun?.close()
    await cleanUp()
  }, minute_ms)
  const running = () => {
    if (begun === undefined) throw new Error("The server is started before the first test.")
    return begun
  }
  return {
    data_dir,
    server: () => running().server,
    newPage: () => watchedPage(running().browser),
  }
}
