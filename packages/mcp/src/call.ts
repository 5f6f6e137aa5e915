import type { CallToolResult } from '@modelcontextprotocol/server'
import { type Purser, PurserError } from '@purser/sdk'
import type { OpenKey, OpenKeys } from './keys.ts'
import { type Arguments, faultsOf, requestOf, type ServiceRequest } from './request.ts'
import { type Tool, takesKey } from './tool.ts'
import { invalidArguments, refusalOf, refused, toolResultOf } from './tool-result.ts'

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
  if (takesKey(tool) && args.idempotencyKey === undefined) return callWithOwnKey(deps, tool, args, waiting)
  const key = takesKey(tool) ? { key: String(args.idempotencyKey), isShared: true } : undefined
  return (await outcomeOf(deps.purser, { tool, args, key }, signal)).result
}

async function callWithOwnKey(
  { purser, keys }: CallDeps,
  tool: Tool,
  args: Arguments,
  { signal, isLost }: Waiting,
): Promise<CallToolResult> {
  const key = keys.open(tool, args)
  if (key === undefined) return refused(tooManyOpen)
  const { result, decidedBy } = await outcomeOf(purser, { tool, args, key }, signal)
  if (decidedBy === 'no-key') keys.closeUnshared(tool, args)
  if (decidedBy === 'key' && !isLost()) keys.close(tool, args)
  return result
}

const tooManyOpen = {
  type: 'too-many-open-calls',
  title: 'Too Many Open Calls',
  detail: 'Nothing was sent, because the outcome of too many earlier calls is unknown. Pass your own idempotencyKey.',
}

interface Call {
  readonly tool: Tool
  readonly args: Arguments
  readonly key: OpenKey | undefined
}

interface CallOutcome {
  readonly result: CallToolResult
  /** Whether the service decided the outcome with its key or before it looked at the key. It is unknown otherwise. */
  readonly decidedBy: 'key' | 'no-key' | 'unknown'
}

async function outcomeOf(purser: Purser, { tool, args, key }: Call, signal: AbortSignal): Promise<CallOutcome> {
  try {
    const response = await responseOf(purser, tool, requestOf(tool, args, key?.key), signal)
    return { result: toolResultOf(tool, response), decidedBy: 'key' }
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof PurserError)) throw error
    return { result: refusalOf(tool, error, key), decidedBy: deciderOf(error) }
  }
}

function deciderOf({ isOutcomeKnown, isBeforeKey }: PurserError): CallOutcome['decidedBy'] {
  if (!isOutcomeKnown) return 'unknown'
  return isBeforeKey ? 'no-key' : 'key'
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
