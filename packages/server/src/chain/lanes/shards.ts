import type { Share } from '../../platform/leases/store.ts'

/** Shards per network. Fixed, so that the cost of leases does not grow with the number of senders. */
const shardCount = 8

/** The lease scope of a network's lanes. */
export function scopeOf(network: string): string {
  return `lanes/${network}`
}

export function sharesOf(network: string): Share[] {
  return Array.from({ length: shardCount }, (_, shard) => ({ scope: scopeOf(network), shard }))
}
