import { networkByName } from '@purser/protocol'
import { createChains } from '../packages/server/src/chain/index.ts'
import { takeLease } from '../packages/server/src/features/wallets/deposits/cursor-store.ts'
import { createFollower } from '../packages/server/src/features/wallets/deposits/follow.ts'
import { createWatched } from '../packages/server/src/features/wallets/deposits/watched.ts'
import type { Deps } from '../packages/server/src/modules.ts'
import { systemClock } from '../packages/server/src/platform/clock.ts'
import { openDb } from '../packages/server/src/platform/db/db.ts'
import { createLog } from '../packages/server/src/platform/log.ts'
import { createMetrics } from '../packages/server/src/platform/metrics.ts'
import { createOutbound } from '../packages/server/src/platform/outbound.ts'
import { systemRandom } from '../packages/server/src/platform/random.ts'
import { createFakeScreening } from '../packages/server/test/screening-double.ts'
import { runAsChild, setting } from './child-side.ts'
import { residentBytes } from './memory.ts'

/**
 * The watcher of one network in a process of its own, with its real parts: it reads the blocks of a node over HTTP, matches them against the
 * addresses of a database, and stores what it finds. It is measured from a first look, when everything is loaded.
 */
const nodeUrl = setting('BENCH_RPC_URL')
const blocks = Number(setting('BENCH_BLOCKS'))
const failuresMax = 20
const log = createLog({ level: 'silent' })
const db = openDb({ url: setting('BENCH_DATABASE_URL'), connectionsMax: 4, log })
const outbound = createOutbound()

await runAsChild(async () => {
  const network = networkByName('base-sepolia')
  if (network === undefined) throw new Error('the registry has no base-sepolia')
  const chains = createChains({
    outbound,
    clock: systemClock,
    networks: [network],
    rpcUrls: { 'base-sepolia': [nodeUrl] },
    rpcTimeoutMs: 20_000,
  })
  const screening = createFakeScreening(() => systemClock.now())
  const deps = {
    db,
    clock: systemClock,
    random: systemRandom,
    log,
    metrics: createMetrics(),
    screening,
  } as unknown as Deps
  const watched = createWatched(deps, 'test')
  const lease = await takeLease(db, network.name, { name: 'bench', leaseMs: 600_000 })
  if (lease === undefined) throw new Error('another process leads')
  const balances = chains.on(network)
  const reads = balances.blocks
  const follow = createFollower({
    deps,
    network,
    reads,
    balances,
    watched,
    lease,
    stopped: new AbortController().signal,
  })

  const before = memory()
  const loading = performance.now()
  await watched.refresh()
  const loadMs = performance.now() - loading
  const after = memory()
  const warmUp = 20
  await goTo(warmUp)
  await persistently(follow)
  await goTo(warmUp + blocks)
  const cpuBefore = process.cpuUsage()
  const began = performance.now()
  await persistently(follow)
  const ms = performance.now() - began
  const cpu = process.cpuUsage(cpuBefore)
  const figures = {
    addresses: String(watched.size),
    loadMs: String(loadMs),
    setBytes: String(after - before),
    residentBytes: String(residentBytes(process.pid)),
    msPerBlock: String(ms / blocks),
    cpuMsPerBlock: String((cpu.user + cpu.system) / 1_000 / blocks),
    lookupsPerSecond: String(lookups(watched)),
  }
  return {
    ready: figures,
    async stop() {
      await outbound.close()
      await db.close()
    },
  }
})

/** As the watcher's own loop does, but without its pauses: the first ranges are longer than a response may be, and are made shorter. */
async function persistently(follow: () => Promise<void>): Promise<void> {
  for (let failures = 0; ; failures += 1) {
    try {
      return await follow()
    } catch (error) {
      if (failures === failuresMax) throw error
    }
  }
}

function memory(): number {
  globalThis.gc?.()
  return residentBytes(process.pid)
}

async function goTo(head: number): Promise<void> {
  await fetch(`${nodeUrl}/head/${head}`)
}

function lookups(watched: { hasTopic(topic: string): boolean }): number {
  const topics = Array.from(
    { length: 4_096 },
    (_, n) => `0x${'0'.repeat(24)}${(n * 2_654_435_761).toString(16).padStart(40, 'a')}`,
  )
  const rounds = 250
  const began = performance.now()
  let found = 0
  for (let round = 0; round < rounds; round += 1) for (const topic of topics) if (watched.hasTopic(topic)) found += 1
  if (found > 0) throw new Error('a stranger is watched')
  return (rounds * topics.length * 1_000) / (performance.now() - began)
}
