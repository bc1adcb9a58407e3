/** docs/lifecycles.md describes every chart accurately. */
import { readFileSync } from "node:fs"
import { assert, describe, expect, it } from "vitest"
import { and, not, or, setup } from "xstate"
import { edgesOf, pathOf } from "#actors/chart.ts"
import { chart_descriptions } from "#server/chart-descriptions.ts"
import { charts, chartsSection, diagramOf, eventWords, nodesOf } from "./lifecycles-page.ts"

const page = "docs/lifecycles.md"
const begin = "<!-- From here on made from the charts in actors/. -->"

const machines = await charts()
const events = eventWords()

describe(page, () => {
  it("describes each chart accurately", async () => {
    const [before] = readFileSync(page, "utf8").split(begin)
    const made = [before, begin, "\n\n", chartsSection(machines, chart_descriptions)].join("")
    await expect(made).toMatchFileSnapshot(`../../${page}`)
  })

  it("describes every chart, and no other", () => {
    assert.deepEqual(Object.keys(chart_descriptions).toSorted(), [...machines.keys()].toSorted())
    assert.isAbove(machines.size, 15)
  })

  for (const [id, machine] of machines) {
    it(`has a sentence for each state of ${id}, and for no other`, () => {
      const documented = chart_descriptions[id]?.states ?? {}
      assert.deepEqual(
        Object.keys(documented).toSorted(),
        nodesOf(machine.root).map(pathOf).toSorted(),
      )
      for (const text of [
        chart_descriptions[id]?.description ?? "",
        ...Object.values(documented),
      ]) {
        assert.match(text, /^[A-Z].*\.$/)
      }
    })
    it(`speaks of events of the log: ${id}`, () => {
      const types = edgesOf(machine.root).map(({ event }) => event)
      assert.isNotEmpty(types)
      assert.deepEqual(
        types.filter((type) => !events.has(type)),
        [],
      )
    })
    it(`draws each way of ${id} between states that it drew`, () => {
      const text = diagramOf(machine).join("\n")
      assert.equal(text.match(/\{$/gm)?.length, text.match(/^ *\}$/gm)?.length)
      const ids = nodesOf(machine.root).map(({ path }) => path.join("_"))
      for (const [, from = "", to = ""] of text.matchAll(/^ *(\S+) --> (\S+)/gm)) {
        assert.include([...ids, "[*]"], from)
        assert.include([...ids, "[*]"], to)
      }
    })
  }
})

describe("a diagram", () => {
  const machine = setup({
    guards: { a: () => true, b: () => true, c: (_, _params: { n: number }) => true },
  }).createMachine({
    id: "s.thing",
    initial: "absent",
    states: {
      absent: { on: { Made: "two" } },
      two: {
        type: "parallel",
        on: { Seen: { actions: [] }, Ended: { target: "gone", guard: "a" } },
        states: {
          left: { initial: "x", states: { x: { on: { Moved: "y" } }, y: {} } },
          right: {
            initial: "x",
            states: {
              x: {
                on: {
                  Turned: { guard: and(["a", or(["b", not({ type: "c", params: { n: 1 } })])]) },
                },
              },
            },
          },
        },
      },
      gone: { type: "final" },
    },
  })

  it("has states within states, regions, guards by name, a beginning and an end", () => {
    expect(diagramOf(machine).join("\n")).toMatchInlineSnapshot(`
      "\`\`\`mermaid
      stateDiagram-v2
        state "two" as two {
          state "left" as two_left {
            [*] --> two_left_x
            state "x" as two_left_x
            state "y" as two_left_y
          }
          --
          state "right" as two_right {
            [*] --> two_right_x
            state "x" as two_right_x
          }
        }
        gone --> [*]
        [*] --> two : Made
        two --> gone : Ended [a]
        two_left_x --> two_left_y : Moved
        two_right_x --> two_right_x : Turned [a and (b or not c)]
      \`\`\`"
    `)
  })
  it("is not made of a guard without a name", () => {
    const nameless = setup({}).createMachine({
      initial: "x",
      states: { x: { on: { Moved: { target: "y", guard: () => true } } }, y: {} },
    })
    assert.throws(() => diagramOf(nameless), "A guard has no name")
  })
})
