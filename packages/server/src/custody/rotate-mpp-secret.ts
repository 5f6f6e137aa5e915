import type { Clock } from '../platform/clock.ts'
import type { Db } from '../platform/db/db.ts'
import type { Random } from '../platform/random.ts'
import { refuseOtherKeys } from './current-key.ts'
import type { KeyRing } from './key-encryption.ts'
import { type KeyRotation, replaceKey } from './service-keys.ts'

/**
 * Makes a new secret for MPP challenges and retires the one before, in one transaction. Processes that run take it up by themselves;
 * challenges made under the retired one can be paid until they expire. Needs the deployment's key-encryption key, and never makes one.
 */
export async function rotateMppSecret(options: {
  readonly db: Db
  readonly clock: Clock
  readonly random: Random
  readonly ring: KeyRing
}): Promise<KeyRotation> {
  await refuseOtherKeys(options)
  return replaceKey('mpp-challenge', { ...options, isPrivateKey: () => true })
}
