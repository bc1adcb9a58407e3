/** A table in its own section, which scrolls sideways on narrow screens. */
import { type Child, h } from "./element.ts"

export interface Column<Row> {
  readonly title: string
  /** Tooltip that explains a short title. */
  readonly hint?: string
  readonly cell: (row: Row) => Child
  /** Right-aligned. */
  readonly is_number?: boolean
  readonly class?: string
}

export interface Table<Row> {
  readonly id: string
  readonly title: string
  readonly caption: string
  /** The first column is the row header. */
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string
  readonly rowClass?: (row: Row) => string | null
  readonly note?: Child
}

const classOf = <Row>({ is_number, class: own }: Column<Row>) =>
  [is_number && "number", own].filter(Boolean).join(" ") || null

export const table = <Row>(options: Table<Row>): HTMLElement =>
  h(
    "section",
    { class: `sheet ${options.id}`, "aria-labelledby": options.id, "data-key": options.id },
    h("h2", { id: options.id }, options.title),
    options.note && h("p", { class: "note" }, options.note),
    h(
      "div",
      { class: "scroll", role: "region", tabindex: 0, "aria-labelledby": options.id },
      h(
        "table",
        {},
        h("caption", { class: "visually-hidden" }, options.caption),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            options.columns.map((column) =>
              h("th", { scope: "col", class: classOf(column), title: column.hint }, column.title),
            ),
          ),
        ),
        h(
          "tbody",
          {},
          options.rows.map((row) =>
            h(
              "tr",
              { "data-key": options.keyOf(row), class: options.rowClass?.(row) ?? null },
              options.columns.map((column, index) =>
                index === 0
                  ? h("th", { scope: "row", class: classOf(column) }, column.cell(row))
                  : h("td", { class: classOf(column) }, column.cell(row)),
              ),
            ),
          ),
        ),
      ),
    ),
  )
