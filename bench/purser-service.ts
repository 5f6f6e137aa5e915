import { bootServer, type Config, type RunningServer } from '@purser/server'
import { foundOrganisation, upsertAccount } from '../packages/server/src/features/organisations/index.ts'
import { newId } from '../packages/server/src/platform/ids.ts'
import { releaseStartMemory } from '../packages/server/src/platform/memory.ts'
import { type Ready, runAsChild, setting } from './child-side.ts'

/**
 * The real service with all roles in one process, started as by `npm run serve`. Only its limits are raised, because
 * one key represents many customers. With BENCH_SEED it creates the organisation whose key the benchmark uses, and
 * another.
 */
await runAsChild(async () => {
  const server = await bootServer(config())
  releaseStartMemory()
  const ready: Ready = { port: String(server.port), settler: server.settlerAddress }
  const isSeeded = process.env.BENCH_SEED === 'yes'
  const seeded = isSeeded
    ? { apiKey: await foundWithKey(server, 'bench'), otherKey: await foundWithKey(server, 'other') }
    : {}
  return { ready: { ...ready, ...seeded }, stop: () => server.stop() }
})

function config(): Config {
  const generous = { perSecond: 1_000_000, burst: 1_000_000 }
  return {
    role: 'all',
    databaseUrl: setting('BENCH_DATABASE_URL'),
    databaseConnectionsMax: 16,
    host: '127.0.0.1',
    port: 0,
    metricsPort: undefined,
    baseUrl: 'http://127.0.0.1',
    dashboardUrl: 'http://127.0.0.1',
    environments: ['test', 'live'],
    keyEncryption: { file: setting('BENCH_KEY_FILE') },
    createKeyEncryptionKey: true,
    rpcUrls: { 'base-sepolia': [setting('BENCH_RPC_URL')] },
    rpcTimeoutMs: 10_000,
    eip6492Factories: [],
    logLevel: process.env.BENCH_LOG_LEVEL ?? 'warn',
    keyLimit: generous,
    addressLimit: generous,
    trustProxy: false,
    settleWaitMs: 30_000,
    transferWaitMs: 30_000,
    facilitatorWaitMs: 45_000,
    sponsorTempoFees: false,
    sandboxScreening: true,
    testClock: false,
    settleMicroUsdMin: 1_000n,
    settleNanoUsdPerDayMax: 1_000_000_000_000_000n,
    verifiedSecondsMax: 3_600,
    challengesPerCallerMax: 1_000_000,
    vaultTokensMax: 10_000,
    webhooksAllowPrivate: true,
    files: { directory: process.env.BENCH_FILES_DIR ?? `${setting('BENCH_KEY_FILE')}-files` },
  }
}

async function foundWithKey({ deps }: RunningServer, name: string): Promise<string> {
  const acting = { ...deps, actor: { kind: 'operator' }, requestId: newId('req', deps) } as const
  const { apiKeys } = await deps.db.tx(async (tx) => {
    const now = deps.clock.now()
    const account = {
      id: newId('acc', deps),
      email: `${name}@example.com`,
      name: 'Bench',
      acceptedAt: now,
      createdAt: now,
    }
    const owner = await upsertAccount(tx, account)
    return foundOrganisation(acting, tx, {
      name: 'Bench',
      type: 'enterprise',
      plan: 'enterprise',
      ownerId: owner.id,
      environments: ['test'],
    })
  })
  const key = apiKeys[0]?.key
  if (key === undefined) throw new Error('the organisation has no key')
  return key
}
