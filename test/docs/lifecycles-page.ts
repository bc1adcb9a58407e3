/** The charts as docs/lifecycles.md describes them: states, a diagram and transitions. */
import { readdirSync, readFileSync } from "node:fs"
import type { AnyStateMachine, AnyStateNode } from "xstate"
import { type ChartTexts, childrenOf, type Edge, edgesOf, pathOf } from "#actors/chart.ts"

/** The charts of all services, by id. */
export const charts = async (): Promise<ReadonlyMap<string, AnyStateMachine>> => {
  const files = readdirSync("actors", { recursive: true, encoding: "utf8" }).filter(
    (path) =>
      path.endsWith(".ts") &&
      readFileSync(`actors/${path}`, "utf8").includes("export const machine "),
  )
  const found = await Promise.all(
    files.map(async (path): Promise<AnyStateMachine> => {
      const [service, noun] = path.slice(0, -".ts".length).split("/")
      const { machine } = await import(`../../actors/${service}/${noun}.ts`)
      return machine
    }),
  )
  return new Map(found.map((machine) => [machine.id, machine]))
}

const documented = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\nexport const \w+ = message\(\s*"(\w+)"/g
const event = /= message\(\s*"(\w+)"/g

/** The doc comments of the events; empty if the name is self-explanatory. */
export const eventWords = (): ReadonlyMap<string, string> => {
  const texts = readdirSync("events", { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => readFileSync(`events/${path}`, "utf8"))
  const plain = texts.flatMap((text) => [...text.matchAll(event)].map(([, type = ""]) => type))
  const described = texts.flatMap((text) =>
    [...text.matchAll(documented)].map(([, comment = "", type = ""]) => {
      const lines = comment.split("\n").map((line) => line.replace(/^\s*\*?\s*/, "").trim())
      return [type, lines.join(" ").trim()] as const
    }),
  )
  return new Map([...plain.map((type) => [type, ""] as const), ...described])
}

const nounOf = (id: string) => id.split(".").at(-1)

/** The state before creation is the start of the diagram. */
const isAbsent = (node: AnyStateNode) => node.key === "absent"

/** A region has no meaning in addition to its states. */
const isRegion = (node: AnyStateNode) => node.parent?.type === "parallel"

export const nodesOf = (node: AnyStateNode): ReadonlyArray<AnyStateNode> =>
  childrenOf(node).flatMap((child) => [
    ...(isAbsent(child) || isRegion(child) ? [] : [child]),
    ...nodesOf(child),
  ])

const idOf = (node: AnyStateNode) => (isAbsent(node) ? "[*]" : node.path.join("_"))

/** The states and regions within a state, nested as in Mermaid. */
const inside = (node: AnyStateNode, indent: string): ReadonlyArray<string> => {
  const between = node.type === "parallel" ? [`${indent}--`] : []
  const parts = childrenOf(node)
    .filter((child) => !isAbsent(child))
    .map((child) => {
      if (childrenOf(child).length === 0) return named(child, indent)
      const head = `${indent}state "${child.key}" as ${idOf(child)} {`
      return [head, ...inside(child, `${indent}  `), `${indent}}`]
    })
  const begin = node.initial?.target[0]
  return [
    ...(begin === undefined || node.type === "parallel" || isAbsent(begin)
      ? []
      : [`${indent}[*] --> ${idOf(begin)}`]),
    ...parts.flatMap((part, i) => (i === 0 ? part : [...between, ...part])),
  ]
}

const named = (node: AnyStateNode, indent: string) => {
  const alias = idOf(node) === node.key ? [] : [`${indent}state "${node.key}" as ${idOf(node)}`]
  return node.type === "final" ? [...alias, `${indent}${idOf(node)} --> [*]`] : alias
}

const labelOf = ({ event, guard }: Edge) => (guard === "" ? event : `${event} [${guard}]`)

/** Whether the diagram shows a transition: not if it stays within a compound state. */
const isDrawn = ({ from, to }: Edge) => to !== undefined || childrenOf(from).length === 0

export const diagramOf = ({ root }: AnyStateMachine) => [
  "```mermaid",
  "stateDiagram-v2",
  ...(root.type === "parallel"
    ? [`  state "${nounOf(root.key)}" as whole {`, ...inside(root, "    "), "  }"]
    : inside(root, "  ")),
  ...edgesOf(root)
    .filter(isDrawn)
    .map((edge) => `  ${idOf(edge.from)} --> ${idOf(edge.to ?? edge.from)} : ${labelOf(edge)}`),
  "```",
]

const listed = (texts: ReadonlyArray<string>) => texts.map((text) => `\`${text}\``).join(", ")

const sectionOf = (
  machine: AnyStateMachine,
  { description, states }: ChartTexts,
  events: ReadonlyMap<string, string>,
) => {
  const edges = edgesOf(machine.root)
  const within = Map.groupBy(
    edges.filter((edge) => !isDrawn(edge)),
    ({ from }) => pathOf(from),
  )
  const explained = [...new Set(edges.map(({ event }) => event))].flatMap((type) => {
    const text = events.get(type)
    return text ? [`- \`${type}\`: ${text}`] : []
  })
  return [
    `### ${nounOf(machine.id)}`,
    "",
    description,
    "",
    ...Object.entries(states).map(([path, text]) => `- \`${path}\`: ${text}`),
    "",
    ...diagramOf(machine),
    "",
    ...[...within].flatMap(([path, edges]) => [
      `At any time in \`${path}\`, without another state: ${listed(edges.map(labelOf))}.`,
      "",
    ]),
    ...(explained.length === 0 ? [] : [...explained, ""]),
  ]
}

/** The section of the page that is generated from the charts. */
export const chartsSection = (
  machines: ReadonlyMap<string, AnyStateMachine>,
  words: Readonly<Record<string, ChartTexts>>,
) => {
  const events = eventWords()
  const services = Map.groupBy(Object.keys(words), (id) => id.split(".")[0] ?? "")
  const lines = [...services].flatMap(([service, ids]) => [
    `## ${service}`,
    "",
    ...ids.flatMap((id) => {
      const machine = machines.get(id)
      const chart_words = words[id]
      return machine === undefined || chart_words === undefined
        ? []
        : sectionOf(machine, chart_words, events)
    }),
  ])
  return lines.join("\n")
}
