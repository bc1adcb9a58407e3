import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, it } from "vitest"
import { makeCheckout, runNode } from "./checkout.ts"

type Checkout = ReturnType<typeof makeCheckout>

const write = (path: string, text: string) => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** A checkout with a page, and a stand-in for vite that copies it and records that it ran. */
const withPage = (vite = "") => {
  const checkout = makeCheckout(
    (root) => `mkdir -p node_modules/vite/bin; ln -s ${root}/vite.js node_modules/vite/bin/vite.js`,
  )
  const { root } = checkout
  write(join(root, "web/index.html"), "one")
  write(join(root, "web/styles/page.css"), "body {}")
  write(
    join(root, "vite.js"),
    `const { appendFileSync, cpSync, mkdirSync } = require("node:fs")
    const out = process.env.ALMANAC_WEB_OUT
    mkdirSync(out, { recursive: true })
    appendFileSync("vite-ran", process.argv.slice(2).join(" ") + "\\n")
    ${vite}
    cpSync("web/index.html", out + "/index.html")`,
  )
  return checkout
}

const run = (checkout: Checkout, more: Readonly<Record<string, string>> = {}) =>
  runNode(checkout, ["launcher/bootstrap.mjs", "start"], more).ended

const timesBuilt = ({ root }: Checkout) =>
  readFileSync(join(root, "vite-ran"), "utf8").trim().split("\n").length

const builtOf = ({ root }: Checkout) => readFileSync(join(root, "web/dist/index.html"), "utf8")

describe("the built pages", () => {
  it("are built with one log line, and then only once", async () => {
    const checkout = withPage()
    const first = await run(checkout)
    expect(first.code).toBe(0)
    expect(first.stderr).toMatch(/\nalmanac: building the pages\n$/)
    expect(builtOf(checkout)).toBe("one")
    expect(await run(checkout)).toMatchObject({ code: 0, stderr: "" })
    expect(timesBuilt(checkout)).toBe(1)
  })

  it("are built again after any change of a source, and when they are missing", async () => {
    const checkout = withPage()
    await run(checkout)
    const changes = [
      () => write(join(checkout.root, "web/index.html"), "two"),
      () => write(join(checkout.root, "web/more/new.ts"), ""),
      () => rmSync(join(checkout.root, "web/styles"), { recursive: true }),
      () => rmSync(join(checkout.root, "web/dist"), { recursive: true }),
    ]
    for (const [index, change] of changes.entries()) {
      change()
      await run(checkout)
      expect(timesBuilt(checkout)).toBe(index + 2)
    }
    expect(builtOf(checkout)).toBe("two")
  })

  it("that cannot be built stays as it was, and stops nothing unless all is needed", async () => {
    const checkout = withPage('if (require("node:fs").existsSync("broken")) fail()')
    await run(checkout)
    write(join(checkout.root, "broken"), "")
    write(join(checkout.root, "web/index.html"), "two")
    const { code, stderr } = await run(checkout)
    expect(code).toBe(0)
    const reason = "the pages could not be built: ReferenceError: fail is not defined"
    expect(stderr).toContain(`almanac: continuing without pages in the browser: ${reason}\n`)
    expect(builtOf(checkout)).toBe("one")
    const strict = await run(checkout, { ALMANAC_REQUIRE_ALL: "1" })
    expect(strict).toMatchObject({ code: 1 })
    expect(strict.stderr).toContain(reason)
    rmSync(join(checkout.root, "broken"))
    await run(checkout)
    expect(builtOf(checkout)).toBe("two")
  })

  it("is built once when two are started at the same moment", async () => {
    const checkout = withPage()
    const both = await Promise.all([run(checkout), run(checkout)])
    expect(both.map(({ code }) => code)).toEqual([0, 0])
    expect(timesBuilt(checkout)).toBe(1)
    expect(existsSync(join(checkout.root, ".cache/bootstrap.lock"))).toBe(false)
  })
})
