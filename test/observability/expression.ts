/** The metrics and labels in a Prometheus expression, for the syntax that we use. */

/** PromQL keywords, and the labels in our expressions. */
const words = new Set([
  "sum",
  "min",
  "max",
  "count",
  "by",
  "on",
  "and",
  "or",
  "unless",
  "rate",
  "increase",
  "delta",
  "histogram_quantile",
  "absent",
  "vector",
  "time",
  "topk",
  "label_values",
  "instance",
])

/** The metrics in an expression, each as the name of its family. */
export const metricsOf = (expression: string): ReadonlyArray<string> => {
  const bare = expression
    .replaceAll(/\{[^}]*\}/g, " ")
    .replaceAll(/\[[^\]]*\]/g, " ")
    .replaceAll(/\b(by|on)\s*\([^)]*\)/g, " ")
  const names = bare.match(/[a-zA-Z_][a-zA-Z0-9_]*/g) ?? []
  return [...new Set(names)]
    .filter((name) => !words.has(name))
    .map((name) => name.replace(/_(bucket|sum|count)$/, ""))
}

/** Each `metric{label="value"}` of an expression, which must be among the exported series. */
export const selectorsOf = (expression: string) =>
  [...expression.matchAll(/([a-z_]+)\{([^}]*)\}/g)].flatMap(([, name = "", labels = ""]) =>
    [...labels.matchAll(/([a-z_]+)(=~|!~|!=|=)"([^"]*)"/g)].map(
      ([, label = "", how = "", value = ""]) => ({
        name: name.replace(/_(bucket|sum|count)$/, ""),
        label,
        how,
        value,
      }),
    ),
  )
