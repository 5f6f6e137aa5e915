/** One JSON-RPC call to a local node. Throws the node's error message. */
export async function rpc(url: string, method: string, params: readonly unknown[] = []): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    signal: AbortSignal.timeout(60_000),
  })
  const received: unknown = await response.json()
  if (!isRecord(received)) throw new Error(`${method}: the node answered ${response.status} without an object`)
  if (isRecord(received.error)) throw new Error(`${method}: ${String(received.error.message)}`)
  return received.result
}

/** A call whose result is hex text. */
export async function rpcHex(url: string, method: string, params: readonly unknown[] = []): Promise<`0x${string}`> {
  const received = await rpc(url, method, params)
  if (!isHex(received)) throw new Error(`${method}: expected hex, the node answered ${JSON.stringify(received)}`)
  return received
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function isHex(value: unknown): value is `0x${string}` {
  return typeof value === 'string' && value.startsWith('0x')
}
