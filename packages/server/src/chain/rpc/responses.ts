import { type Hex, isHex } from '@purser/protocol'

/** A node's response to one call: a result, or an error of the call itself (a revert, a refused transaction). */
export type RpcResponse =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly code: number; readonly message: string; readonly data: Hex | undefined }

export interface RpcCall {
  readonly method: string
  readonly params: readonly unknown[]
  /** A longer response than usual is an error of the call. For calls that are sent by themselves. */
  readonly length?: 'short'
}

/** The node responded but could not serve the call. Another node may; this one is not marked as failed. */
export class NotServed extends Error {}

/** The node's response to one call is too large. It is the node's fault only if another node returns a smaller one. */
export class TooLarge extends NotServed {}

/** "Response too large" of go-ethereum, and of jsonrpsee (Reth, Tempo) for one response and for all responses of a request. */
export const tooLargeCode = -32_003
const tooLargeCodes: readonly unknown[] = [tooLargeCode, -32_008, -32_011]

/** Whether an error of a call says that its response is too large. Code -32003 has another meaning for a sent transaction. */
export function isOfLength({ code, message }: { readonly code?: unknown; readonly message?: unknown }): boolean {
  return tooLargeCodes.includes(code) && /too (large|big)/i.test(String(message))
}

/** JSON-RPC error codes that concern the node and not the call: limits, resources, a missing method. */
const nodeFaults = new Set([-32_700, -32_600, -32_601, -32_005, -32_002, -32_001, 429])
/** The codes among them that mean that the node is overloaded. */
const tooBusy = new Set([-32_005, 429])

/** The responses in the order of the calls. Throws unless each call has exactly one. */
export function readResponses(
  entries: readonly unknown[],
  first: number,
  calls: readonly RpcCall[],
): readonly RpcResponse[] {
  const count = calls.length
  if (entries.length !== count) throw new Error('the node returned a different number of answers')
  const responses: (RpcResponse | undefined)[] = Array.from({ length: count }, () => undefined)
  for (const entry of entries) {
    if (!isRecord(entry) || typeof entry.id !== 'number') throw new Error('the node answered without an id')
    const index = entry.id - first
    if (index < 0 || index >= count || responses[index] !== undefined)
      throw new Error('the node answered a call that was not made')
    responses[index] = readResponse(entry, calls[index]?.method)
  }
  return responses.map((response) => {
    if (response === undefined) throw new Error('the node left a call unanswered')
    return response
  })
}

/**
 * Some nodes refuse a too long range of logs with codes that others use for overload, so every error of `eth_getLogs` counts as an error of the
 * call.
 */
function readResponse(entry: Readonly<Record<string, unknown>>, method: string | undefined): RpcResponse {
  if (!isRecord(entry.error)) {
    if (!('result' in entry)) throw new Error('the node answered neither a result nor an error')
    return { ok: true, result: entry.result }
  }
  const { code, message, data } = entry.error
  if (typeof code !== 'number') throw new Error('the node answered an error without a code')
  const isOfCall = method === 'eth_getLogs'
  if (tooBusy.has(code) && !isOfCall) throw new Error(`the node is too busy: ${code}`)
  if (nodeFaults.has(code) && !isOfCall) throw new NotServed(`the node could not serve the call: ${code}`)
  const revert =
    typeof data === 'string' ? data : isRecord(data) && typeof data.data === 'string' ? data.data : undefined
  return {
    ok: false,
    code,
    message: typeof message === 'string' ? message.slice(0, 1_024) : '',
    data: revert !== undefined && isHex(revert) ? revert : undefined,
  }
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
