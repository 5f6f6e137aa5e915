import type { CallToolResult } from '@modelcontextprotocol/server'
import { type Purser, PurserError } from '@purser/sdk'
import type { OpenKeys } from './keys.ts'
import { type Arguments, faultsOf, requestOf, type ServiceRequest } from './request.ts'
import { type Tool, takesKey } from './tool.ts'
import { invalidArguments, isFinal, refusalOf, refused, toolResultOf } from './tool-result.ts'

/** The dependencies of a call: the client, the open keys and the tools. */
export interface CallDeps {
  readonly purser: Purser
  readonly keys: OpenKeys
}

/** The caller's wait for the result. */
export interface Waiting {
  /** Aborts when the call is canceled. */
  readonly signal: AbortSignal
  /** Whether the result no longer reaches the caller. */
  readonly isLost: () => boolean
  /** Call once when the call has ended. */
  readonly end: () => void
}

/**
 * Calls a tool. A refusal is a result, not an exception. Only a canceled call throws: its outcome is unknown, so its
 * key stays open for an equal call.
 */
export async function callTool(deps: CallDeps, tool: Tool, args: Arguments, waiting: Waiting): Promise<CallToolResult> {
  const { signal } = waiting
  const faults = faultsOf(tool, args)
  if (faults.length > 0) return invalidArguments(faults)
  if (!takesKey(tool)) return send(deps.purser, tool, requestOf(tool, args, undefined), signal)
  if (args.idempotencyKey !== undefined)
    return send(deps.purser, tool, requestOf(tool, args, String(args.idempotencyKey)), signal)
  return callWithOwnKey(deps, tool, args, waiting)
}

async function callWithOwnKey(
  { purser, keys }: CallDeps,
  tool: Tool,
  args: Arguments,
  { signal, isLost }: Waiting,
): Promise<CallToolResult> {
  const key = keys.open(tool, args)
  if (key === undefined) return refused(tooManyOpen)
  const { result, isKnown } = await outcomeOf(purser, tool, requestOf(tool, args, key), signal)
  if (isKnown && !isLost()) keys.close(tool, args)
  return result
}

const tooManyOpen = {
  type: 'too-many-open-calls',
  title: 'Too Many Open Calls',
  detail: 'Nothing was sent, because the outcome of too many earlier calls is unknown. Pass your own idempotencyKey.',
}

async function send(purser: Purser, tool: Tool, request: ServiceRequest, signal: AbortSignal): Promise<CallToolResult> {
  return (await outcomeOf(purser, tool, request, signal)).result
}

async function outcomeOf(
  purser: Purser,
  tool: Tool,
  request: ServiceRequest,
  signal: AbortSignal,
): Promise<{ readonly result: CallToolResult; readonly isKnown: boolean }> {
  try {
    return { result: toolResultOf(tool, await responseOf(purser, tool, request, signal)), isKnown: true }
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof PurserError)) throw error
    return { result: refusalOf(tool, error, request.idempotencyKey), isKnown: isFinal(error) }
  }
}

async function responseOf(
  purser: Purser,
  { method, answers: responses }: Tool,
  { path, query, body, idempotencyKey }: ServiceRequest,
  signal: AbortSignal,
): Promise<Readonly<Record<string, unknown>>> {
  if (responses === 'pages') {
    const { items, cursor } = await purser.list(path, { query, signal }).page()
    return { items, ...(cursor === undefined ? {} : { nextCursor: cursor }) }
  }
  const response = await purser.request(method, path, { query, body, idempotencyKey, signal })
  if (responses === 'list') return { items: response }
  // Bulk operations return an array. A `credential` member is removed, because a model has no use for it.
  const { credential: _, ...members } = Array.isArray(response) ? { items: response } : Object(response)
  return { ...members, ...(idempotencyKey === undefined ? {} : { idempotencyKey }) }
}
