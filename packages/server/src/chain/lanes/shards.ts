import type { Share } from '../../platform/leases/store.ts'

/** Shares of a network's lanes: fixed, so that leases cost the same for a thousand senders and a million. */
export const shardCount = 8

/** What the lanes of a network are leased as. */
export function scopeOf(network: string): string {
  return `lanes/${network}`
}

export function sharesOf(network: string): Share[] {
  return Array.from({ length: shardCount }, (_, shard) => ({ scope: scopeOf(network), shard }))
}
