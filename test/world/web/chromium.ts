/**
 * A real Chromium for tests: the system's, or the one from the tree that the bootstrap installs.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Browser, chromium } from "playwright-core"
import { describe } from "vitest"
import { findTree, treeEnvironment, trees } from "../../../launcher/trees.mjs"
import { describeAbsent } from "../programs/absent.ts"

const in_system = ["chromium", "chromium-browser", "google-chrome"].map((name) =>
  join("/usr/bin", name),
)

/** The same fonts on every machine, where installed, so that pages look alike. */
const fontsOf = (tree: string, cache: string) => `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${join(tree, "usr/share/fonts")}</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>${cache}</cachedir>
  ${["system-ui", "sans-serif"]
    .map(
      (family) =>
        `<alias binding="strong"><family>${family}</family><prefer><family>Inter</family>` +
        "<family>DejaVu Sans</family></prefer></alias>",
    )
    .join("\n")}
</fontconfig>
`

const findChromium = () => {
  const tree = findTree("chromium")
  if (tree !== undefined) return { tree, path: join(tree, ...trees.chromium.paths) }
  const path = in_system.find((one) => existsSync(one))
  return path === undefined ? undefined : { tree: "/", path }
}

/** One browser for all tests of a file, with its folder, until closed. */
export const launch = async (): Promise<{ browser: Browser; close: () => Promise<void> }> => {
  const found = findChromium()
  if (found === undefined) throw new Error("no Chromium")
  const folder = mkdtempSync(join(tmpdir(), "almanac-chromium-"))
  const fonts = join(folder, "fonts.conf")
  mkdirSync(join(folder, "fonts"))
  writeFileSync(fonts, fontsOf(found.tree, join(folder, "fonts")))
  const browser = await chromium.launch({
    executablePath: found.path,
    // Tests may run as root, which its sandbox does not support; they load only our own pages.
    chromiumSandbox: false,
    env: { ...process.env, ...treeEnvironment(found.tree), FONTCONFIG_FILE: fonts },
  })
  const close = async () => {
    await browser.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { browser, close }
}

/**
 * A `describe` for tests that need it: without it they are skipped with one line, and fail if
 * ALMANAC_REQUIRE_ALL=1.
 */
export const describeWithChromium = (name: string, define: () => void) => {
  if (findChromium() !== undefined) return describe(name, define)
  const why = `Chromium is needed: ${trees.chromium.install_command}`
  describeAbsent(name, "Chromium", why)
}
