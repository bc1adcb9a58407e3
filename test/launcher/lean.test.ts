/** The packages that a server needs, installed by two npm processes. */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { makeCheckout, runNode, writeProgram } from "./checkout.ts"

const packages = {
  "": {
    dependencies: { "@s/one": "1.0.0", "onnxruntime-node": "1.0.0" },
    devDependencies: { tester: "1.0.0" },
  },
  "node_modules/@s/one": { version: "1.0.0" },
  "node_modules/common": { version: "1.0.0" },
  "node_modules/onnxruntime-node": { version: "1.0.0", dependencies: { common: "^1.0.0" } },
  "node_modules/redis": { version: "1.0.0", peer: true },
  "node_modules/tester": { version: "1.0.0", dev: true },
}

const node = `node_modules/node-linux-${process.arch}/bin`

/** Installs the packages of a part, and keeps the part's project and lockfile in the checkout. */
const npm = (root: string) => `
part="\${PWD##*/}"
case "$part" in
  0) names="onnxruntime-node" ;;
  1) names="@s/one common"; mkdir -p ${node}; ln -s "${process.execPath}" ${node}/node ;;
esac
list=""
for name in $names; do
  mkdir -p "node_modules/$name"
  list="$list,\\"node_modules/$name\\":{\\"version\\":\\"1.0.0\\"}"
done
echo "{\\"packages\\":{\${list#,}}}" > node_modules/.package-lock.json
ln package.json "${root}/project-$part.json"
ln package-lock.json "${root}/lock-$part.json"`

it("a lean installation is two npm projects, moved into node_modules when both end", async () => {
  const checkout = makeCheckout()
  const { root, bin } = checkout
  const read = (name: string) => JSON.parse(readFileSync(join(root, name), "utf8"))
  writeFileSync(join(root, "package-lock.json"), JSON.stringify({ packages }))
  writeProgram(join(bin, "npm"), npm(root))
  const { stderr } = await runNode(checkout, ["launcher/bootstrap.mjs", "client"]).ended
  expect(stderr).toMatch(/^almanac: installing [^\n]*\n/)
  expect(read("project-0.json").dependencies).toEqual({ "onnxruntime-node": "1.0.0" })
  // A package that only the other project needs is a dependency of this one.
  expect(read("project-1.json").dependencies).toEqual({ "@s/one": "1.0.0", common: "^1.0.0" })
  expect(Object.keys(read("lock-1.json").packages)).toEqual([
    "",
    "node_modules/@s/one",
    "node_modules/common",
  ])
  for (const name of ["onnxruntime-node", "@s/one", "common"]) {
    expect(existsSync(join(root, "node_modules", name))).toBe(true)
  }
  expect(Object.keys(read("node_modules/.package-lock.json").packages)).toHaveLength(3)
})

it("a failed half is an error with npm's reason, and the next start installs again", async () => {
  const checkout = makeCheckout()
  const { root, bin } = checkout
  writeFileSync(join(root, "package-lock.json"), JSON.stringify({ packages }))
  writeProgram(
    join(bin, "npm"),
    `case "$PWD" in */0) echo 'npm error code ENOSPC' >&2; exit 7 ;; esac\n${npm(root)}`,
  )
  const { code, stderr } = await runNode(checkout, ["launcher/bootstrap.mjs", "client"]).ended
  expect(code).toBe(1)
  expect(stderr).toContain("almanac: npm error code ENOSPC\n")
  expect(stderr).toContain("npm failed (exit code 7)")
  expect(existsSync(join(root, "node_modules/.almanac-stamp"))).toBe(false)
})
