import { type Auditing, auditOperator } from '../platform/audit.ts'
import type { Db } from '../platform/db/db.ts'
import { refuseOtherKeys } from './current-key.ts'
import type { KeyRing } from './key-encryption.ts'
import { type KeyRotation, replaceKey } from './service-keys.ts'

export interface RotationOptions extends Auditing {
  readonly db: Db
  readonly ring: KeyRing
}

/** What the operator's log calls it. */
const actions = { 'mpp-challenge': 'keys.rotateMppSecret', seal: 'keys.rotateSeal' } as const

/**
 * Makes a new secret for MPP challenges and retires the one before, in one transaction. Processes that run take it up by themselves;
 * challenges made under the retired one can be paid until they expire. Needs the deployment's key-encryption key, and never makes one.
 */
export function rotateMppSecret(options: RotationOptions): Promise<KeyRotation> {
  return replace('mpp-challenge', options)
}

/**
 * Makes a new Ed25519 key for offers, receipts, seals and deliveries. It is in the key set at once and signs ten minutes later, in every
 * process; the one before stays in the key set for ever.
 */
export function rotateSealKey(options: RotationOptions): Promise<KeyRotation> {
  return replace('seal', options)
}

async function replace(purpose: 'mpp-challenge' | 'seal', options: RotationOptions): Promise<KeyRotation> {
  await refuseOtherKeys(options)
  const making = { ...options, isPrivateKey: () => true }
  return replaceKey(purpose, making, (tx, { current: target, retired }) =>
    auditOperator(options, tx, { action: actions[purpose], target, details: { retired } }),
  )
}
