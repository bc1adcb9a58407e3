/** Renders an operation: access, parameters, bodies, examples, responses and errors. */
import { copyButton } from "../command.ts"
import { type Child, h } from "../element.ts"
import type { Answer, Media, Operation, Parameter, Schema } from "./document.ts"
import { body, describe, property, type Resolve } from "./schema.ts"

const exampleOf = ({ example, examples, schema }: Media): unknown =>
  example ?? Object.values(examples ?? {})[0]?.value ?? schema?.examples?.[0]

const textOf = (value: unknown) =>
  typeof value === "string" ? value : JSON.stringify(value, undefined, 2)

const codeBlock = (title: string, text: string, label: string) =>
  h(
    "figure",
    { class: "code" },
    h("figcaption", {}, title, copyButton(text, label)),
    h("pre", { tabindex: 0, "aria-label": label }, h("code", {}, text)),
  )

const quoted = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`

const isPublic = ({ security }: Operation) => security?.length === 0

/** The first media type; JSON if there are several. */
const mediaOf = (content: Answer["content"]) => {
  const all = Object.entries(content ?? {})
  return all.find(([type]) => type === "application/json") ?? all[0]
}

const sampleOf = ({ example, schema, name }: Parameter) => {
  const sample = example ?? schema?.examples?.[0] ?? `{${name}}`
  return typeof sample === "string" ? sample : JSON.stringify(sample)
}

/** A request as a curl command. */
const curlOf = (operation: Operation) => {
  const { method, path, parameters = [], requestBody } = operation
  const filled = parameters
    .filter((one) => one.in === "path")
    .reduce((text, one) => text.replace(`{${one.name}}`, sampleOf(one)), path)
  const query = parameters
    .filter((one) => one.in === "query" && (one.required || one.example !== undefined))
    .map((one) => `${one.name}=${sampleOf(one)}`)
    .join("&")
  const [type, media] = mediaOf(requestBody?.content) ?? []
  const example = media && exampleOf(media)
  const is_json = type?.includes("json") === true
  const body_text = is_json && example !== undefined ? `-d ${quoted(textOf(example))}` : undefined
  const url = quoted(`${location.origin}${filled}${query && `?${query}`}`)
  const lines = [
    `curl ${method === "GET" ? "" : `-X ${method} `}${url}`,
    ...(isPublic(operation) ? [] : ['-H "Authorization: Bearer $TOKEN"']),
    ...(type === undefined
      ? []
      : [`-H ${quoted(`Content-Type: ${type}`)}`, body_text ?? "--data-binary @FILE"]),
  ]
  return lines.join(" \\\n  ")
}

/** The access that the operation needs. */
const accessOf = ({ security }: Operation): Child => {
  if (security === undefined) return undefined
  if (security.length === 0) return h("p", { class: "access" }, "Public: no token required.")
  const names = [...new Set(security.flatMap((one) => one.bearer ?? []))]
  const has_identity = security.some((one) => one.keystone !== undefined)
  if (has_identity) {
    return h(
      "p",
      { class: "access" },
      "Requires a token with roles and a scope that pass the policy rule.",
    )
  }
  if (names.length === 0) return h("p", { class: "access" }, "Requires a token.")
  const codes = names.map((name, index) => [index > 0 && " or ", h("code", {}, name)])
  return h("p", { class: "access" }, "Requires a token with the scope or role ", codes, ".")
}

const part = (title: string, ...children: readonly Child[]) =>
  h("div", { class: "part" }, h("h4", {}, title), children)

const parametersOf = ({ parameters = [] }: Operation, resolve: Resolve) =>
  parameters.length > 0 &&
  part(
    "Parameters",
    h(
      "ul",
      { class: "properties" },
      parameters.map(({ name, in: place, required = false, description, schema = {} }) =>
        property({ name, schema, is_required: required, description, place }, resolve),
      ),
    ),
  )

const mediaTypes = (content: Answer["content"]) =>
  h(
    "p",
    { class: "media" },
    Object.keys(content ?? {}).map((type, index) => [index > 0 && ", ", h("code", {}, type)]),
  )

const isBinary = ({ type, format }: Schema) => type === "string" && format === "binary"

const bodyOf = (content: Answer["content"], resolve: Resolve): Child => {
  const [, media] = mediaOf(content) ?? []
  if (media === undefined) return undefined
  const { schema } = media
  return [mediaTypes(content), schema && !isBinary(schema) && body(schema, resolve)]
}

const requestOf = ({ requestBody }: Operation, resolve: Resolve) =>
  requestBody !== undefined &&
  part("Request body", describe(requestBody.description), bodyOf(requestBody.content, resolve))

const usual_descriptions = new Set(["Success", "Error", "An error."])

const responseOf = (status: string, answer: Answer, resolve: Resolve) => {
  const { description = "" } = answer
  return h(
    "details",
    { class: `response ${status < "400" ? "good" : "bad"}` },
    h(
      "summary",
      {},
      h("code", {}, status),
      " ",
      usual_descriptions.has(description) ? "" : description.split("\n")[0],
    ),
    h(
      "div",
      { class: "inner" },
      description.includes("\n") && describe(description),
      bodyOf(answer.content, resolve) ?? h("p", {}, "No body."),
    ),
  )
}

const responsesOf = ({ responses = {} }: Operation, resolve: Resolve) => {
  const all = Object.entries(responses).toSorted(([one], [other]) => one.localeCompare(other))
  const list = (is: (status: string) => boolean) =>
    all
      .filter(([status]) => is(status))
      .map(([status, answer]) => responseOf(status, answer, resolve))
  const errors = list((status) => status >= "400")
  return [
    part(
      "Responses",
      list((status) => status < "400"),
    ),
    errors.length > 0 && part("Errors", errors),
  ]
}

const examplesOf = (operation: Operation) => {
  const answers = Object.entries(operation.responses ?? {}).flatMap(([status, { content }]) => {
    const [, media] = mediaOf(content) ?? []
    const value = media && exampleOf(media)
    return value === undefined || status >= "400" ? [] : [[status, textOf(value)] as const]
  })
  const [first] = answers
  return h(
    "div",
    { class: "examples" },
    codeBlock("Request", curlOf(operation), `request of ${operation.title}`),
    first && codeBlock(`Response ${first[0]}`, first[1], `response of ${operation.title}`),
  )
}

export const operationArticle = (operation: Operation, resolve: Resolve): HTMLElement => {
  const { anchor, title, method, path, description, deprecated } = operation
  return h(
    "article",
    { class: "operation", id: anchor, tabindex: -1, "aria-labelledby": `${anchor}/title` },
    h(
      "h3",
      { id: `${anchor}/title` },
      title,
      h("a", { class: "anchor", href: `#${anchor}`, "aria-label": `Link to ${title}` }, "#"),
    ),
    h(
      "p",
      { class: "route" },
      h("span", { class: `method ${method.toLowerCase()}` }, method),
      h("code", {}, path),
    ),
    deprecated === true && h("p", { class: "access" }, "Deprecated."),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "text" },
        describe(description),
        accessOf(operation),
        parametersOf(operation, resolve),
        requestOf(operation, resolve),
        responsesOf(operation, resolve),
      ),
      examplesOf(operation),
    ),
  )
}
