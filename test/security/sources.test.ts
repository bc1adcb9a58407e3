/** Patterns that no source file may contain, so that no review has to look for them. */
import { describe, expect, it } from "vitest"
import { readTree, withoutComments } from "../house/tree.ts"

const tree = readTree()

const holding = (files: RegExp, words: RegExp) =>
  tree
    .filter(({ path, text }) => files.test(path) && words.test(withoutComments(text)))
    .map(({ path }) => path)

const browser = /^web\/.*\.(ts|html)$/
const folders = "actors|adapters|cli|gateway|packages|projections|schemas|server"
const server = new RegExp(`^(${folders})/(?!.*\\btest/).*\\.ts$|^main\\.ts$`)

describe("the sources", () => {
  it("no page turns text into markup or code", () => {
    const makers =
      /\b(innerHTML|outerHTML|insertAdjacentHTML|setHTMLUnsafe|document\.write|DOMParser)\b/
    expect(holding(browser, makers)).toEqual([])
    expect(holding(browser, /\beval\(|new Function\(|javascript:|\son\w+=["']/)).toEqual([])
    expect(tree.filter(({ path }) => browser.test(path)).length).toBeGreaterThan(30)
  })

  it("no cookie is set or read", () => {
    expect(holding(browser, /document\.cookie/)).toEqual([])
    expect(holding(server, /["'`]set-cookie["'`]|setCookie|headers\.cookie/i)).toEqual([])
  })

  it("no command is run by a shell", () => {
    const by_shell = /\bexec(Sync)?\b[^}]*\} from "node:child_process"|\bshell: true/
    expect(holding(server, by_shell)).toEqual([])
  })

  it("secrets are compared in constant time", () => {
    const compared = holding(server, /timingSafeEqual\(/)
    for (const name of [
      "identity/static",
      "blob-storage/cursor-key",
      "share-protection/trusts-embedded",
      "blob-storage/peer/proof",
    ]) {
      expect(compared).toContain(`adapters/${name}.ts`)
    }
    // The time that such a comparison takes reveals how much of a guess is correct.
    const hasty =
      /\b(secret|signature|hmac|digest|mac|proof)\w* [!=]==? \w*(given|expected|right)\b/i
    expect(holding(server, hasty)).toEqual([])
  })

  it("no answer goes to a subject that the asker of the bus chose", () => {
    expect(holding(server, /\.respond\(/)).toEqual([])
    // Only one place reads the reply subject of a message, and one other that of JetStream's
    // messages.
    expect(holding(server, /\bmessage\.reply\b|\{[^}]*\breply\b[^}]*\}: (Pick<)?Msg\b/)).toEqual([
      "packages/bus/connection/response.ts",
      "packages/journal/jetstream/consumer.ts",
    ])
  })
})
