const alternatives = new Intl.ListFormat("en", { type: "disjunction" })

/** The names as alternatives in a sentence, such as `GET, PUT, or HEAD`. */
export const anyOf = (names: Iterable<string>) => alternatives.format(names)
