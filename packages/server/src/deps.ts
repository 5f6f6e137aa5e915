import { networks } from '@purser/protocol'
import { createChains, createLanes, createSignatures, createTempoTransactions } from './chain/index.ts'
import type { Config } from './config.ts'
import { openCustody } from './custody/index.ts'
import { createKeyDirectory } from './features/organisations/index.ts'
import { challengeSeconds, createRecorder, createSettlements, paymentRecount } from './features/payments/index.ts'
import { byoWalletRecount, createWalletDirectory } from './features/wallets/index.ts'
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

/** Builds the real ports and wires them; the only file that names them all. */
export async function buildDeps(config: Config, overrides: Overrides = {}) {
  const clock = overrides.clock ?? systemClock
  const random = overrides.random ?? systemRandom
  const log = overrides.log ?? createLog({ level: config.logLevel })
  const metrics = createMetrics()
  const db = openDb({ url: config.databaseUrl, connectionsMax: config.databaseConnectionsMax, log })
  try {
    await migrate(db)
    const signatures = await createSignatures()
    if (signatures.engine !== 'native')
      log.warn('the native curve is not there; signatures are recovered in WebAssembly, four times slower')
    const custody = await openCustody({
      db,
      clock,
      random,
      log,
      signatures,
      source: config.keyEncryption,
      createIfMissing: config.createKeyEncryptionKey,
      mppChallengeSeconds: challengeSeconds,
    })
    const outbound = createOutbound()
    const chains = createChains({
      outbound,
      clock,
      networks,
      rpcUrls: config.rpcUrls,
      rpcTimeoutMs: config.rpcTimeoutMs,
    })
    const keys = createKeyDirectory({ db, clock })
    let settlementWanted = (): void => undefined
    const floor = {
      db,
      clock,
      random,
      log,
      metrics,
      sealer: custody.sealer,
      baseUrl: config.baseUrl,
      upgradeUrl: `${config.dashboardUrl}/settings/billing`,
      environments: config.environments,
      chains,
      tempoTransactions: createTempoTransactions(signatures),
    }
    const deps: Deps = {
      ...floor,
      recounts: [paymentRecount, byoWalletRecount],
      receivingWallets: createWalletDirectory({ db }),
      recordPayment: createRecorder({ db }, { gasPerDayMax: config.settleGasPerDayMax }),
      settlements: createSettlements({ db, clock }, () => settlementWanted()),
      settlementTokens: custody.settlementTokens,
      mppSecrets: custody.mppSecrets,
      serviceSeal: custody.seal,
      signatures,
      eip6492Factories: new Set(config.eip6492Factories.map((factory) => factory.toLowerCase())),
      settleWaitMs: config.settleWaitMs,
      feeSponsor: config.sponsorTempoFees
        ? { signer: custody.settler, gasPerDayMax: config.settleGasPerDayMax }
        : undefined,
      facilitatorWaitMs: config.facilitatorWaitMs,
      settlerAddress: custody.settler.address,
      settleMicroUsdMin: config.settleMicroUsdMin,
      admitChallenge: createLimiter(
        { perSecond: config.challengesPerCallerMax / 60, burst: config.challengesPerCallerMax },
        clock,
      ),
    }
    return {
      deps,
      keys,
      lanes: createLanes({ deps, chains, signer: custody.settler }),
      settlerAddress: custody.settler.address,
      onSettlementWanted(wake: () => void) {
        settlementWanted = wake
      },
      async close() {
        await keys.stop()
        await outbound.close()
        await db.close()
      },
    }
  } catch (error) {
    await db.close().catch(() => undefined)
    throw error
  }
}
