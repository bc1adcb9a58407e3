import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { findTree, treeEnvironment, trees } from "../../launcher/trees.mjs"
import { makeCheckout, makeFolder, runNode, writeProgram } from "./checkout.ts"

const cache_before = process.env.ALMANAC_CACHE_DIR
afterAll(() => {
  if (cache_before === undefined) delete process.env.ALMANAC_CACHE_DIR
  else process.env.ALMANAC_CACHE_DIR = cache_before
})

const { paths } = trees.radosgw

/** The trees that the task `test` fetches, in order, except those that this machine already has. */
const of_tests = (["radosgw", "chromium", "postgresql"] as const).filter(
  (name) => findTree(name) !== "/",
)

/** A machine that already has these fetches nothing; only such a machine can test that. */
const is_installed = (["radosgw", "chromium"] as const).some((name) => !of_tests.includes(name))

const has_debian =
  existsSync("/usr/bin/apt-get") && existsSync("/usr/share/keyrings/debian-archive-keyring.gpg")

const make = (path: string) => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, "")
}

/**
 * Stand-ins for apt and dpkg that install a package for each path of the tree and log their calls.
 */
const addDebian = (
  { root, bin }: ReturnType<typeof makeCheckout>,
  wanted = of_tests.flatMap((name) => trees[name].paths),
) => {
  // Folder names contain the package's version.
  const brought = wanted.map((path) => path.replaceAll("*", "17"))
  const files = brought.map((_path, index) => `package${index}_1_all.deb`).join(" ")
  writeProgram(
    join(bin, "apt-get"),
    `echo "$@" >> ${root}/apt-ran
folder="\${2%/apt.conf}"
case "$*" in
  *install*)
    /bin/cat "$2" > ${root}/apt-conf
    for file in ${files}; do : > "$folder/cache/archives/$file"; done ;;
esac`,
  )
  const cases = brought.map(
    (path, index) => `*/package${index}_*) mkdir -p "$3/${dirname(path)}"; : > "$3/${path}" ;;`,
  )
  writeProgram(join(bin, "dpkg-deb"), `case "$2" in\n${cases.join("\n")}\nesac`)
}

const run = (
  checkout: ReturnType<typeof makeCheckout>,
  task: string,
  more: Readonly<Record<string, string>> = {},
) => runNode(checkout, ["launcher/bootstrap.mjs", task], more).ended

const treeOf = ({ root }: ReturnType<typeof makeCheckout>) => join(root, "cache/trees/radosgw")

describe("a tree", () => {
  const at = (folder: string) => {
    process.env.ALMANAC_CACHE_DIR = folder
    return findTree("radosgw")
  }

  it.skipIf(is_installed)("is there when it is whole, and of this machine's release", () => {
    const folder = makeFolder()
    const tree = join(folder, "trees/radosgw")
    for (const path of paths) make(join(tree, path))
    expect(at(folder)).toBeUndefined()
    writeFileSync(join(tree, ".system"), "plan9 4 pdp11\n")
    expect(at(folder)).toBeUndefined()
  })

  it("needs no environment of its own where the system has it", () => {
    expect(treeEnvironment("/")).toEqual({})
  })

  it("finds its programs and libraries before the system's", () => {
    const folder = makeFolder()
    make(join(folder, "usr/lib/x86_64-linux-gnu/ceph/libceph-common.so.2"))
    const found = treeEnvironment(folder, { PATH: "/bin" })
    expect(found.PATH).toBe(
      `${folder}/usr/bin:${folder}/usr/sbin:${folder}/bin:${folder}/sbin:/bin`,
    )
    const library = `${folder}/usr/lib/x86_64-linux-gnu`
    expect(found.LD_LIBRARY_PATH).toBe(`${library}:${library}/ceph:${folder}/usr/lib`)
  })
})

describe.runIf(has_debian && !is_installed)("fetching a tree", () => {
  it("takes one line, and then there is nothing to do or to say", async () => {
    const checkout = makeCheckout()
    addDebian(checkout)
    const { code, stderr } = await run(checkout, "test")
    expect(code).toBe(0)
    const from = "and its dependencies from Debian's signed archive"
    const lines = of_tests.map(
      (name) => `almanac: fetching ${name} ${from} (about ${trees[name].megabytes} MB)`,
    )
    expect(stderr.trim().split("\n").slice(-lines.length)).toEqual(lines)
    for (const path of paths) expect(existsSync(join(treeOf(checkout), path))).toBe(true)
    expect(await run(checkout, "test")).toMatchObject({ code: 0, stderr: "" })
    expect(await run(checkout, "demo")).toMatchObject({ code: 0, stderr: "" })
  })

  it("asks the machine's own sources and pins, for what is needed alone", async () => {
    const checkout = makeCheckout()
    addDebian(checkout)
    await run(checkout, "test")
    const [, install = ""] = readFileSync(join(checkout.root, "apt-ran"), "utf8").split("\n")
    const names = trees.radosgw.packages.join(" ")
    expect(install).toMatch(
      new RegExp(` install --yes --download-only --no-install-recommends ${names}$`),
    )
    const conf = readFileSync(join(checkout.root, "apt-conf"), "utf8")
    expect(conf).not.toMatch(/Dir::Etc::|Default-Release/)
    for (const line of [
      'APT::Get::AllowUnauthenticated "false";',
      'Acquire::AllowInsecureRepositories "false";',
      "#clear DPkg::Post-Invoke;",
    ]) {
      expect(conf).toContain(line)
    }
  })

  it.skipIf(findTree("swift") === "/")("is done for the benchmarks by hand", async () => {
    const checkout = makeCheckout()
    addDebian(checkout, [...trees.swift.paths])
    const { stderr } = await run(checkout, "peers")
    expect(existsSync(join(checkout.root, "cache/trees/swift", ".system"))).toBe(true)
    expect(stderr).toMatch(/continuing without radosgw, required by benchmarks: /)
    expect(stderr).not.toMatch(/without swift/)
  })

  it("is not done for a start", async () => {
    const checkout = makeCheckout()
    addDebian(checkout)
    await run(checkout, "start")
    expect(existsSync(join(checkout.root, "apt-ran"))).toBe(false)
  })

  it("that fails is one line, and fatal where everything is required", async () => {
    const checkout = makeCheckout()
    writeProgram(join(checkout.bin, "apt-get"), "echo 'E: Unable to connect' >&2; exit 100")
    const optional = await run(checkout, "test")
    expect(optional.code).toBe(0)
    const lines = optional.stderr
      .trim()
      .split("\n")
      .slice(-1 - of_tests.length)
    expect(lines).toEqual([
      "almanac: Debian's archive failed: Unable to connect",
      ...of_tests.map(
        (name) =>
          `almanac: continuing without ${name}, required by tests: ` +
          `install it with \`${trees[name].install_command}\`.`,
      ),
    ])
    const required = await run(checkout, "test", { ALMANAC_REQUIRE_ALL: "1" })
    expect(required.code).toBe(1)
    expect(required.stderr).toContain(trees.radosgw.install_command)
  })

  it("goes on where a source of somebody else's fails", async () => {
    const checkout = makeCheckout()
    addDebian(checkout)
    const apt = join(checkout.bin, "apt-get")
    writeProgram(
      apt,
      `case "$*" in *update*) echo 'E: gone' >&2; exit 100 ;; esac
${readFileSync(apt, "utf8")}`,
    )
    expect(await run(checkout, "test")).toMatchObject({ code: 0 })
    expect(existsSync(treeOf(checkout))).toBe(true)
  })

  it("leaves nothing where a package cannot be unpacked, and the rest as it was", async () => {
    const checkout = makeCheckout()
    addDebian(checkout)
    await run(checkout, "test")
    writeFileSync(join(treeOf(checkout), ".system"), "debian 11 x64\n")
    make(join(treeOf(checkout), "old"))
    writeProgram(join(checkout.bin, "dpkg-deb"), "exit 2")
    const { stderr } = await run(checkout, "test")
    expect(stderr).toMatch(/archive failed: package0_1_all\.deb could not be unpacked\n/)
    expect(existsSync(join(treeOf(checkout), "old"))).toBe(true)
    addDebian(checkout)
    await run(checkout, "test")
    expect(existsSync(join(treeOf(checkout), "old"))).toBe(false)
  })

  it("names packages that lack a required file", async () => {
    const checkout = makeCheckout()
    addDebian(checkout, [...paths.slice(1), ...trees.chromium.paths])
    const { stderr } = await run(checkout, "test")
    expect(stderr).toContain("archive failed: its packages lack required files\n")
  })
})
