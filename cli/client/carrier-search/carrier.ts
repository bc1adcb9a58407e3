/** `almanac carriers search`. Source: document 3, carrier search §4. */
import { type CommandGroup, integer, needed } from "#cli/client/operation.ts"

export const carriers: CommandGroup = {
  name: "carriers",
  operations: [
    {
      command: "search",
      method: "GET",
      path: "/api/search",
      items: "carriers",
      what: "List the active carriers with an MC number in a range",
      example: "almanac carriers search --start 100000 --end 100500",
      columns: ["mcNumber", "name", "authorityStatus", "operatingType"],
      query: [
        integer("start", "First MC number", needed),
        integer("end", "Last MC number", needed),
      ],
    },
    {
      command: "sources",
      method: "GET",
      path: "/api/search/sources",
      items: "sources",
      what: "List the registries and their health",
      columns: ["registry", "is_healthy", "carriers", "dockets", "as_of", "last_error", "detail"],
    },
  ],
}
