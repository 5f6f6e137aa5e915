import { createHash, type Hash } from 'node:crypto'
import { parentPort } from 'node:worker_threads'

/** What the thread is told of the content with this number: bytes that follow, that it is whole, or that nobody wants it any more. */
export type HashOrder =
  | { readonly kind: 'bytes'; readonly id: number; readonly bytes: Uint8Array }
  | { readonly kind: 'end'; readonly id: number }
  | { readonly kind: 'drop'; readonly id: number }

/** One for each order but `drop`, in their order: the digest in hex at the end, and before that only that the bytes were read. */
export type HashAnswer = string | undefined

const hashes = new Map<number, Hash>()

parentPort?.on('message', (order: HashOrder) => {
  if (order.kind === 'drop') {
    hashes.delete(order.id)
    return
  }
  const hash = hashes.get(order.id) ?? createHash('sha256')
  parentPort?.postMessage(carryOut(order, hash))
})

function carryOut(order: Exclude<HashOrder, { readonly kind: 'drop' }>, hash: Hash): HashAnswer {
  if (order.kind === 'end') {
    hashes.delete(order.id)
    return hash.digest('hex')
  }
  hashes.set(order.id, hash.update(order.bytes))
  return undefined
}
