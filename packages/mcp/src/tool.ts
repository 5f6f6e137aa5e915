import type { JSONObject } from '@modelcontextprotocol/server'

/** The effect of a call: see `AgentUse` in the service. */
export type Effect = 'reads' | 'searches' | 'adds' | 'ends' | 'moves-money'

/** A self-contained JSON Schema of an object. */
export interface ObjectSchema {
  readonly type: 'object'
  readonly properties: Readonly<Record<string, JSONObject>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean
}

/** One operation of the service as a tool. `print-tools.ts` writes them from openapi.json. */
export interface Tool {
  /** The operation id with `_` for each dot, because some clients do not accept dots. */
  readonly name: string
  readonly operationId: string
  readonly title: string
  readonly description: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly effect: Effect
  /** The part of the request that each argument goes to; `key` is the Idempotency-Key. */
  readonly places: Readonly<Record<string, 'path' | 'query' | 'body' | 'key'>>
  /** `object`, `list` (an array without pages) or `pages`. */
  readonly answers: 'object' | 'list' | 'pages'
  readonly inputSchema: ObjectSchema
}

/** Whether a call changes nothing, so that it is safe to repeat. */
export function isReading({ effect }: Pick<Tool, 'effect'>): boolean {
  return effect === 'reads' || effect === 'searches'
}

/** Whether the call carries an Idempotency-Key. The result includes it. */
export function takesKey({ places }: Pick<Tool, 'places'>): boolean {
  return places.idempotencyKey === 'key'
}

/** The group of a tool: the first word of its operation. */
export function groupOf({ operationId }: Pick<Tool, 'operationId'>): string {
  return operationId.split('.')[0] ?? operationId
}

/** Hints for clients that ask for human confirmation (MCP 2025-11-25, ToolAnnotations). They enforce nothing. */
export function annotationsOf(tool: Tool) {
  return {
    readOnlyHint: isReading(tool),
    destructiveHint: tool.effect === 'ends' || tool.effect === 'moves-money',
    idempotentHint: isReading(tool) || tool.method !== 'POST',
    openWorldHint: tool.effect === 'searches' || tool.effect === 'moves-money',
  }
}

const foreign = [
  'wallets.pay',
  'vaults.documents.get',
  'events.list',
  'events.get',
  'webhooks.attempts.list',
  // The path of a paid URL is the caller's.
  'payments.get',
  'payments.logs.list',
  'payments.logs.get',
  // Names of parameters are those of callers' requests.
  'registry.routes.list',
  'registry.routes.get',
]

/** Whether the result has text that somebody else wrote. */
export function returnsForeignText({ effect, operationId }: Pick<Tool, 'effect' | 'operationId'>): boolean {
  return effect === 'searches' || foreign.includes(operationId)
}
