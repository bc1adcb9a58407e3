/** A page in a real Chromium, with its console messages and requests. */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { expect } from "vitest"
import { canned_now } from "./canned.ts"

const root = join(import.meta.dirname, "../../..")
const pictures = join(root, "test-results", "web")

/** Phone, tablet and desktop: width and height in CSS pixels. */
export const sizes = {
  phone: { width: 360, height: 780 },
  tablet: { width: 768, height: 1024 },
  desktop: { width: 1440, height: 900 },
} as const
export type Size = keyof typeof sizes

export interface View {
  readonly page: Page
  /** Console errors and warnings, and exceptions. */
  readonly complaints: string[]
  /** Requests to any server other than the page's own. */
  readonly outside: string[]
}

interface Looked extends BrowserContextOptions {
  readonly size?: Size
  readonly hash?: string
  /** The page's path; defaults to the dashboard. */
  readonly path?: string
  /** An element that is present after the first render. */
  readonly wait?: string
}

/** The browser's own message about an API error that a test caused. */
const is_ordered = /^Failed to load resource: (the server responded with a status|net::ERR_)/

/** Opens the page in its own context, with the clock at the evening of the canned responses. */
export const look = async (
  browser: Browser,
  served: { readonly origin: string },
  { size = "desktop", hash = "", path = "/", wait = "#main > section", ...options }: Looked = {},
): Promise<View> => {
  const context = await browser.newContext({ viewport: sizes[size], ...options })
  const page = await context.newPage()
  page.setDefaultTimeout(20_000)
  const complaints: string[] = []
  const outside: string[] = []
  page.on("console", (message) => {
    const is_ours = ["error", "warning"].includes(message.type())
    if (is_ours && !is_ordered.test(message.text())) complaints.push(message.text())
  })
  page.on("pageerror", (error) => complaints.push(String(error)))
  page.on("request", (request) => {
    if (!request.url().startsWith(served.origin)) outside.push(request.url())
  })
  await page.clock.install({ time: canned_now })
  await page.goto(`${served.origin}${path}${hash}`)
  await page.locator(wait).first().waitFor()
  return { page, complaints, outside }
}

/** Closes the page; fails on complaints and on requests to other servers. */
export const leave = async ({ page, complaints, outside }: View): Promise<void> => {
  await page.context().close()
  expect(complaints).toEqual([])
  expect(outside).toEqual([])
}

/** Saves a screenshot for people: `test-results/web/<name>.png`. */
export const picture = async (page: Page, name: string, fullPage = true): Promise<void> => {
  mkdirSync(pictures, { recursive: true })
  await page.screenshot({ path: join(pictures, `${name}.png`), fullPage })
}

/** How far content extends beyond the page's right edge, in pixels. */
export const overflowOf = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
