import { type Auditing, auditOperator } from '../platform/audit.ts'
import type { Db } from '../platform/db/db.ts'
import { refuseOtherKeys } from './current-key.ts'
import type { KeyRing } from './key-encryption.ts'
import { type KeyRotation, replaceKey } from './service-keys.ts'

export interface RotationOptions extends Auditing {
  readonly db: Db
  readonly ring: KeyRing
}

/** Audit actions in the operator's log. */
const actions = { 'mpp-challenge': 'keys.rotateMppSecret', seal: 'keys.rotateSeal' } as const

/**
 * Creates a new secret for MPP challenges and retires the previous one, in one transaction. Running processes load it automatically; challenges of
 * the retired secret can be paid until they expire. Needs the deployment's key-encryption key and never creates one.
 */
export function rotateMppSecret(options: RotationOptions): Promise<KeyRotation> {
  return replace('mpp-challenge', options)
}

/**
 * Creates a new Ed25519 key for offers, receipts, seals and deliveries. It is in the key set at once and signs in every process after ten minutes.
 * The previous key stays in the key set forever.
 */
export function rotateSealKey(options: RotationOptions): Promise<KeyRotation> {
  return replace('seal', options)
}

async function replace(purpose: 'mpp-challenge' | 'seal', options: RotationOptions): Promise<KeyRotation> {
  await refuseOtherKeys(options)
  const making = { ...options, isPrivateKey: () => true }
  return replaceKey(purpose, making, async (tx, { current: target, retired }) =>
    auditOperator(options, tx, { action: actions[purpose], target, details: { retired } }),
  )
}
