/** The syntax of cron expressions, for the API document. The scheduler parses them itself. */

const anyCase = (name: string) =>
  name.replaceAll(/[A-Z]/g, (letter) => `[${letter}${letter.toLowerCase()}]`)

const names = (text: string) => text.split(" ").map(anyCase).join("|")

const months = names("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")
const weekdays = names("SUN MON TUE WED THU FRI SAT")

/** A field: values, ranges and steps, separated by commas; `others` are forms of its own. */
const field = (value: string, step: string, ...others: ReadonlyArray<string>) => {
  const forms = [`[*?](/(${step}))?`, `(${value})(-(${value})(/(${step}))?)?`, ...others]
  const form = `(${forms.join("|")})`
  return `${form}(,${form})*`
}

const minute = "0?[0-9]|[1-5][0-9]"
const hour = "0?[0-9]|1[0-9]|2[0-3]"
const day = "0?[1-9]|[12][0-9]|3[01]"
const month = `0?[1-9]|1[0-2]|${months}`
const weekday = `0?[0-7]|${weekdays}`

const fields = [
  field(minute, "0?[1-9]|[1-5][0-9]"),
  field(hour, "0?[1-9]|1[0-9]|2[0-3]"),
  field(day, day, "[Ll][Ww]?", `(${day})[Ww]`),
  field(month, "0?[1-9]|1[0-2]"),
  field(weekday, "0?[1-7]", `(${weekday})([Ll]|#[1-5Ll])`),
]

const nicknames = names("YEARLY ANNUALLY MONTHLY WEEKLY DAILY MIDNIGHT HOURLY")

/** A cron expression of five fields, or a nickname such as `@daily`. */
export const cron_pattern = `^ *(${fields.join(" +")}|@(${nicknames})) *$`
