import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { systemClock } from '../src/platform/clock.ts'
import type { Deps } from '../src/platform/ctx.ts'
import type { Db } from '../src/platform/db/db.ts'
import { createFairDb } from '../src/platform/db/fair-db.ts'
import { createLog } from '../src/platform/log.ts'
import { createMetrics } from '../src/platform/metrics.ts'
import { systemRandom } from '../src/platform/random.ts'
import type { Sealer } from '../src/platform/secret.ts'
import { createSemaphores } from '../src/platform/semaphores.ts'
import { createProbe } from '../src/platform/work/due-work.ts'
import { steadyWitness } from './steady-witness.ts'

/** A sealer with a new key, for tests of the platform alone. */
function toySealer(): Sealer {
  const key = randomBytes(32)
  const sealing: Pick<Sealer, 'seal' | 'open'> = {
    seal(plaintext, associatedData) {
      const iv = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(createHash('sha256').update(associatedData).digest())
      return Buffer.concat([iv, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()])
    },
    open(sealed, associatedData) {
      const bytes = Buffer.from(sealed)
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12)).setAAD(
        createHash('sha256').update(associatedData).digest(),
      )
      decipher.setAuthTag(bytes.subarray(-16))
      return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()])
    },
  }
  return { ...sealing, ofMany: sealing }
}

/** The platform's own ports, for tests that need no feature. */
export function toyDeps(db: Db, baseUrl = 'http://purser.test'): Deps {
  const log = createLog({ level: 'silent' })
  const floor = {
    db,
    probe: createProbe({ db, log }),
    fairDb: createFairDb(16),
    withSemaphores: createSemaphores(16),
    keptBytes: { beyondShare: async () => undefined, add: () => undefined },
    clock: systemClock,
    random: systemRandom,
    log,
    metrics: createMetrics(),
    sealer: toySealer(),
    witness: steadyWitness,
    baseUrl,
    upgradeUrl: `${baseUrl}/settings/billing`,
    environments: ['test', 'live'] as const,
  }
  return floor
}
