import type { Clock } from '../platform/clock.ts'
import type { Db } from '../platform/db/db.ts'
import type { Random } from '../platform/random.ts'
import { localKeyEncryption } from './envelope.ts'
import { type KeySource, readKey } from './key-file.ts'
import { makeKey, refuseOtherKey } from './service-keys.ts'
import { lockKeys, markRetired } from './store.ts'

/** Whom a rotation replaced, by their names; the secrets themselves are never shown. */
export interface MppRotation {
  readonly current: string
  readonly retired: string | null
  readonly at: Date
}

/**
 * Makes a new secret for MPP challenges and retires the one before, in one transaction. Processes that run take it up
 * by themselves; challenges made under the retired one can be paid until they expire. Needs the deployment's key-encryption key, and never makes one.
 */
export async function rotateMppSecret(options: {
  readonly db: Db
  readonly clock: Clock
  readonly random: Random
  readonly source: KeySource
}): Promise<MppRotation> {
  const kek = localKeyEncryption(readKey(options.source, { ...options, createIfMissing: false }), options.random)
  const making = { ...options, isPrivateKey: () => true }
  return options.db.tx(async (tx) => {
    await lockKeys(tx)
    await refuseOtherKey(tx, kek, options.clock)
    const at = options.clock.now()
    const retired = await markRetired(tx, 'mpp-challenge', at)
    const { kid } = await makeKey(tx, kek, 'mpp-challenge', making)
    return { current: kid, retired: retired ?? null, at }
  })
}
