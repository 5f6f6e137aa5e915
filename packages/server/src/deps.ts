import { networks } from '@purser/protocol'
import { createChains } from './chain/index.ts'
import { createSignatures } from './chain/recover.ts'
import type { Config } from './config.ts'
import { openCustody } from './custody/index.ts'
import { createKeyDirectory } from './features/organisations/index.ts'
import { createRecorder, createSettlements } from './features/payments/index.ts'
import { createWalletDirectory } from './features/wallets/index.ts'
import { type Clock, systemClock } from './platform/clock.ts'
import type { Deps } from './platform/ctx.ts'
import { openDb } from './platform/db/db.ts'
import { migrate } from './platform/db/migrate.ts'
import { createLimiter } from './platform/http/limits.ts'
import { createLog, type Log } from './platform/log.ts'
import { createMetrics } from './platform/metrics.ts'
import { createOutbound } from './platform/outbound.ts'
import { type Random, systemRandom } from './platform/random.ts'

export interface Overrides {
  readonly clock?: Clock
  readonly random?: Random
  readonly log?: Log
}
