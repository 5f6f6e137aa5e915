import type { Relays } from './port.ts'
import { insertRelays } from './queue-store.ts'
import { markWithdrawn } from './store.ts'

/** The queue as other features use it; it needs nothing but the caller's database. */
export const relays: Relays = {
  enqueue: insertRelays,
  async withdraw(tx, purpose, subjectId) {
    return (await markWithdrawn(tx, purpose, subjectId)) === 1
  },
}
