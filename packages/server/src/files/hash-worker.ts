import { createHash, type Hash } from 'node:crypto'
import { parentPort } from 'node:worker_threads'

/** Messages to the thread about the content with this id: more bytes, its end, or that it was abandoned. */
export type HashOrder =
  | { readonly kind: 'bytes'; readonly id: number; readonly bytes: Uint8Array }
  | { readonly kind: 'end'; readonly id: number }
  | { readonly kind: 'drop'; readonly id: number }

/** One answer for each order except `drop`, in order: undefined after bytes were read, and the digest in hex at the end. */
export type HashResult = string | undefined

const hashes = new Map<number, Hash>()

parentPort?.on('message', (order: HashOrder) => {
  if (order.kind === 'drop') {
    hashes.delete(order.id)
    return
  }
  const hash = hashes.get(order.id) ?? createHash('sha256')
  parentPort?.postMessage(carryOut(order, hash))
})

function carryOut(order: Exclude<HashOrder, { readonly kind: 'drop' }>, hash: Hash): HashResult {
  if (order.kind === 'end') {
    hashes.delete(order.id)
    return hash.digest('hex')
  }
  hashes.set(order.id, hash.update(order.bytes))
  return undefined
}
