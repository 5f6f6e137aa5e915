/** One JSON-RPC call to a local node. Throws the node's error message. */
export async function rpc(url: string, method: string, params: readonly unknown[] = []): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    signal: AbortSignal.timeout(60_000),
  })
  const answer: unknown = await response.json()
  if (!isRecord(answer)) throw new Error(`${method}: the node answered ${response.status} without an object`)
  if (isRecord(answer.error)) throw new Error(`${method}: ${String(answer.error.message)}`)
  return answer.result
}

/** A call whose result is hex text. */
export async function rpcHex(url: string, method: string, params: readonly unknown[] = []): Promise<`0x${string}`> {
  const answer = await rpc(url, method, params)
  if (!isHex(answer)) throw new Error(`${method}: expected hex, the node answered ${JSON.stringify(answer)}`)
  return answer
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function isHex(value: unknown): value is `0x${string}` {
  return typeof value === 'string' && value.startsWith('0x')
}
