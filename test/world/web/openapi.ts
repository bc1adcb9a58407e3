/** A small API description with every kind of part that the API reference renders. */

const error = {
  type: "object",
  properties: { code: { type: "string" }, detail: { type: "string" } },
  required: ["code", "detail"],
}

const folder = {
  type: "object",
  description: "A folder of things.",
  properties: {
    name: {
      type: "string",
      minLength: 1,
      maxLength: 64,
      pattern: "^[a-z]+$",
      description: "Name of the folder. Unique in its **project**.",
    },
    depth: { type: "integer", minimum: 0, maximum: 9, default: 3 },
    kind: { type: "string", enum: ["plain", "mirror"] },
    note: { anyOf: [{ type: "string" }, { type: "null" }] },
    folders: { type: "array", items: { $ref: "#/components/schemas/Folder" }, maxItems: 8 },
    labels: { type: "object", additionalProperties: { type: "string" } },
  },
  required: ["name"],
}

const introduction = `All requests use JSON.

## Authentication

Send \`Authorization: Bearer TOKEN\`. See [the document](/openapi.json).

## Errors

| status | when |
| ------ | ---- |
| 404    | The resource does not exist. |

- One item with \`code\`
  - A nested item
- Another item

\`\`\`sh
echo <b>not bold</b>
\`\`\`
`

const folder_id = {
  name: "folder_id",
  in: "path",
  required: true,
  description: "Id of the folder.",
  schema: { type: "string", format: "uuid" },
  example: "0191d3a0-0000-7000-8000-000000000001",
}

const example = { name: "photos", depth: 2 }

export const openapi = {
  openapi: "3.1.0",
  info: { title: "Almanac", version: "1.2.3", description: introduction },
  tags: [
    { name: "folders", description: "Folders hold **things**." },
    { name: "health-checks", description: "The state of the process." },
    { name: "unused" },
  ],
  paths: {
    "/v1/folders": {
      get: {
        tags: ["folders"],
        operationId: "folders.list",
        summary: "List folders",
        security: [{ bearer: ["folders:read", "admin"] }],
        parameters: [
          {
            name: "limit",
            in: "query",
            description: "Maximum number of folders.",
            schema: { allOf: [{ type: "integer" }, { minimum: 1, maximum: 1000 }], default: 100 },
          },
        ],
        responses: {
          200: {
            description: "The folders, by name.",
            content: {
              "application/json": {
                schema: { type: "array", items: { $ref: "#/components/schemas/Folder" } },
                example: [example],
              },
            },
          },
        },
      },
      post: {
        tags: ["folders"],
        operationId: "folders.create",
        summary: "Create a folder",
        description:
          "Creates a folder.\n\nThe name must be unused:\n\n1. Choose a name.\n2. Send it.",
        security: [{ keystone: [] }, { bearer: [] }],
        requestBody: {
          content: {
            "application/json": { schema: { $ref: "#/components/schemas/Folder" }, example },
          },
        },
        responses: {
          201: {
            description: "The new folder.",
            content: {
              "application/json": {
                schema: { $ref: "#/components/schemas/Folder" },
                examples: { usual: { value: { ...example, note: null } } },
              },
            },
          },
          409: {
            description: "A folder with this name exists.",
            content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
          },
        },
      },
    },
    "/v1/folders/{folder_id}": {
      delete: {
        tags: ["folders"],
        operationId: "folders.delete",
        summary: "Delete a folder",
        security: [{ bearer: [] }],
        parameters: [folder_id],
        responses: { 204: { description: "The folder is deleted." } },
      },
    },
    "/livez": {
      get: {
        tags: ["health-checks"],
        operationId: "health-checks.livez",
        summary: "Check that the process runs",
        security: [],
        responses: { 200: { description: "It runs.", content: { "text/plain": {} } } },
      },
    },
  },
  components: {
    schemas: { Folder: folder, Error: error },
    securitySchemes: {
      bearer: { type: "http", scheme: "bearer", description: "A token." },
      keystone: { type: "apiKey", in: "header", name: "X-Auth-Token", description: "Keystone." },
    },
  },
}
