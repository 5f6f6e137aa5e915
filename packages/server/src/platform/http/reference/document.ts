import { withoutReferences } from '@purser/protocol'
import { z } from 'zod'

const Value = z.unknown()

/** The JSON Schema keywords that our schemas use. */
export const Schema = z.object({
  type: z.union([z.string(), z.array(z.string())]).optional(),
  description: z.string().optional(),
  format: z.string().optional(),
  pattern: z.string().optional(),
  const: Value.optional(),
  default: Value.optional(),
  example: Value.optional(),
  enum: z.array(Value).optional(),
  required: z.array(z.string()).default([]),
  minLength: z.number().optional(),
  maxLength: z.number().optional(),
  minItems: z.number().optional(),
  maxItems: z.number().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  get properties() {
    return z.record(z.string(), Schema).optional()
  },
  get items() {
    return Schema.optional()
  },
  get anyOf() {
    return z.array(Schema).optional()
  },
  get additionalProperties() {
    return z.union([z.boolean(), Schema]).optional()
  },
})
export type Schema = z.output<typeof Schema>

const Example = z.object({ value: Value })
const MediaType = z.object({ schema: Schema, examples: z.object({ recorded: Example }).optional() })
const Content = z.record(z.string(), MediaType)
export type MediaType = z.output<typeof MediaType>

const Reference = z.object({ $ref: z.string() })
const Header = z.union([Reference, z.object({ description: z.string() })])
const DocumentedResponse = z.object({
  description: z.string(),
  headers: z.record(z.string(), Header).default({}),
  content: Content.optional(),
})
const Parameter = z.object({
  name: z.string(),
  in: z.enum(['path', 'query', 'header']),
  required: z.boolean(),
  description: z.string().optional(),
  schema: Schema,
})
export type Parameter = z.output<typeof Parameter>

const Described = z.object({
  operationId: z.string(),
  tags: z.tuple([z.string()]),
  summary: z.string(),
  description: z.string().optional(),
  parameters: z.array(Parameter).default([]),
  requestBody: z.object({ content: Content }).optional(),
  'x-problems': z.array(z.string()).default([]),
  responses: z.record(z.string(), z.union([Reference, DocumentedResponse])),
})

export type DocumentedResponse = z.output<typeof DocumentedResponse>

const DocumentedProblem = z.object({
  status: z.int(),
  title: z.string(),
  detail: z.string(),
  ofPlatform: z.boolean().default(false),
})
export type DocumentedProblem = z.output<typeof DocumentedProblem>

const Event = z.object({
  post: z.object({
    requestBody: z.object({ content: z.object({ 'application/json': z.object({ schema: Schema }) }) }),
  }),
})

const WithProblems = z.object({ 'x-problems': z.array(z.string()) })

/** The header fields of success responses, and the errors, of every operation with one method. */
const OfMethod = WithProblems.extend({ headers: z.record(z.string(), Reference).default({}) })

/** The parts of our OpenAPI document that are shown to a reader. */
const ApiDocument = z.object({
  info: z.object({ title: z.string(), version: z.string(), description: z.string() }),
  'x-every-response': z.object({ headers: z.record(z.string(), Reference) }),
  'x-every-operation': z.record(z.string(), OfMethod),
  paths: z.record(z.string(), z.record(z.string(), Described)),
  webhooks: z.record(z.string(), Event),
  components: z.object({
    responses: z.object({ '4XX': WithProblems, '5XX': WithProblems }),
    'x-problems': z.record(z.string(), DocumentedProblem),
    headers: z.record(z.string(), z.object({ description: z.string() })),
  }),
})
export type ApiDocument = z.output<typeof ApiDocument>

/** Reads an OpenAPI document, with its named schemas, parameters and examples written out where they are used. */
export function apiDocument(openApi: unknown): ApiDocument {
  const isMeant = (reference: string): boolean => /^#\/components\/(schemas|parameters|examples)\//.test(reference)
  return ApiDocument.parse(withoutExtensions(withoutReferences(openApi, openApi, isMeant)))
}

/** Schemas that extend another one (`allOf`) with all their members in one place. */
function withoutExtensions(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutExtensions)
  if (typeof value !== 'object' || value === null) return value
  const { allOf, ...others }: Readonly<Record<string, unknown>> = { ...value }
  const own = Object.fromEntries(Object.entries(others).map(([name, inner]) => [name, withoutExtensions(inner)]))
  if (!Array.isArray(allOf)) return own
  const parts = allOf.map((part) => Object(withoutExtensions(part)))
  return {
    ...own,
    type: 'object',
    properties: Object.assign({}, ...parts.map(({ properties }) => properties)),
    required: parts.flatMap(({ required = [] }) => required),
  }
}

/** One operation, with its method and path. */
export type Described = z.output<typeof Described> & { readonly method: string; readonly path: string }

export function operationsOf(document: ApiDocument): Described[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  )
}

/** The last part of a reference, which names its target. */
export function referred({ $ref }: { readonly $ref: string }): string {
  return $ref.slice($ref.lastIndexOf('/') + 1)
}
