import { type DevChain, fundNative, startChain } from '@purser/devnet'
import { l1FeeOf } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { aLane, planPayment, runLane, statusOf } from '../../../test/lane-stage.ts'
import { type LyingNode, startLyingNode, withHighBaseFee } from '../../../test/lying-node.ts'
import { sql } from '../../platform/db/db.ts'
import { compareNetwork, comparisonOf } from './compare.ts'

let database: TestDatabase
let dev: DevChain
let liar: LyingNode

beforeAll(async () => {
  database = await freshDatabase()
  dev = await startChain({ network: 'base-sepolia' })
  liar = await startLyingNode(dev.rpcUrl)
})
afterAll(async () => {
  await liar?.stop()
  await dev?.stop()
  await database?.drop()
})

/** A lane whose next nonce is `next` and that has no open transactions. */
function idleLane(next: bigint) {
  return { nextNonce: next, lowestOpen: next, isFilling: false }
}

test.each([
  ['nothing was lost', idleLane(7n), [7n, 7n, 7n], { outcome: 'compared' }],
  ['the chain is not deep enough yet', idleLane(7n), [6n, 7n, 7n], { outcome: 'wait' }],
  ['the chain is behind the lane', idleLane(7n), [3n, 3n, 3n], { outcome: 'wait' }],
  ['the lost transactions are mined', idleLane(7n), [7n, 9n, 9n], { outcome: 'fill', nonces: [], nextNonce: 9n }],
  [
    'the lost transactions are pending',
    idleLane(7n),
    [7n, 7n, 9n],
    { outcome: 'fill', nonces: [7n, 8n], nextNonce: 9n },
  ],
  [
    'some lost transactions are mined and some are pending',
    idleLane(7n),
    [7n, 8n, 10n],
    { outcome: 'fill', nonces: [8n, 9n], nextNonce: 10n },
  ],
  ['fill transactions are open', { nextNonce: 9n, lowestOpen: 8n, isFilling: true }, [8n, 8n, 9n], { outcome: 'wait' }],
  [
    'its own transactions are open',
    { nextNonce: 9n, lowestOpen: 7n, isFilling: false },
    [7n, 7n, 9n],
    { outcome: 'compared' },
  ],
  ['nodes report far too many', idleLane(7n), [7n, 7n, 10n ** 9n], { outcome: 'too-many' }],
  ['half of the nodes report pending transactions', idleLane(7n), [7n, 7n, 7n, 9n], { outcome: 'disputed' }],
  [
    'the nodes disagree about its own transactions',
    { nextNonce: 9n, lowestOpen: 7n, isFilling: false },
    [7n, 7n, 7n, 9n],
    { outcome: 'compared' },
  ],
] as const)(
  'after a restore, when %s, a lane gets the right comparison',
  (_, lane, [deep, mined, pending, pendingMax = pending], expected) => {
    expect(comparisonOf(lane, { deep, mined, pending, pendingMax })).toEqual(expected)
  },
)

test.each([1, 2])(
  'after a restore, one node beside %s others cannot move a lane to a nonce that the chain has not reached',
  async (others) => {
    const { db } = database
    const rpcUrls = [liar.url, ...Array.from({ length: others }, () => dev.rpcUrl)]
    const stage = await aLane({ db, dev, rpcUrls })
    const { deps, chains, lanes, network, lane } = stage
    try {
      await planPayment(stage)
      await runLane(stage)
      await db.run(sql`update lanes set generation = -1 where sender = ${lane.sender}`)
      liar.lie('eth_getTransactionCount', ({ params, truth }) =>
        params[1] === 'latest' ? { result: '0x100000' } : truth(),
      )
      await compareNetwork({ ...deps, chains, lanes }, network)
      const Row = z.object({ nextNonce: z.bigint() })
      expect(await db.one(Row, sql`select next_nonce from lanes where sender = ${lane.sender}`)).toEqual({
        nextNonce: 1n,
      })
      liar.tellTheTruth()
      await compareNetwork({ ...deps, chains, lanes }, network)
      const next = await planPayment(stage)
      await runLane(stage)
      expect(await statusOf(db, next.id)).toBe('final')
    } finally {
      liar.tellTheTruth()
      await lanes.stop()
      await stage.outbound.close()
    }
  },
)

test.each([
  ['no coin', 0n],
  ['less coin than an empty transaction costs', 1_000n],
])(
  'after a restore, nodes that report pending transactions of an account with %s do not block the account',
  async (_, wei) => {
    const { db } = database
    const stage = await aLane({ db, dev, rpcUrls: [liar.url, liar.url, dev.rpcUrl], funded: false })
    const { deps, chains, lanes, network, lane } = stage
    try {
      await db.run(
        sql`insert into lanes (network, sender, next_nonce, generation) values (${network.name}, ${lane.sender}, 0, -1)`,
      )
      if (wei > 0n) await fundNative(dev, lane.sender, wei)
      liar.lie('eth_getTransactionCount', ({ params, truth }) =>
        params[1] === 'pending' ? { result: '0x5' } : truth(),
      )
      await compareNetwork({ ...deps, chains, lanes }, network)
      liar.tellTheTruth()
      const Row = z.object({ nextNonce: z.bigint(), count: z.bigint() })
      const found = await db.one(
        Row,
        sql`select next_nonce, (select count(*) from chain_transactions where sender = ${lane.sender}) as count
        from lanes where sender = ${lane.sender}`,
      )
      expect(found).toEqual({ nextNonce: 0n, count: 0n })
      await fundNative(dev, lane.sender, 10n ** 18n)
      const first = await planPayment(stage)
      await runLane(stage)
      expect(await statusOf(db, first.id)).toBe('final')
    } finally {
      liar.tellTheTruth()
      await lanes.stop()
      await stage.outbound.close()
    }
  },
)

test('after a restore, an account is given no more empty transactions than its coin pays for', async () => {
  const { db } = database
  const stage = await aLane({ db, dev, rpcUrls: [liar.url, liar.url, dev.rpcUrl], funded: false })
  const { deps, chains, lanes, network, lane } = stage
  try {
    await db.run(
      sql`insert into lanes (network, sender, next_nonce, generation) values (${network.name}, ${lane.sender}, 0, -1)`,
    )
    const { baseFee } = await chains.on(network).head()
    const { l1Fee } = await chains.on(network).offeredFees()
    await fundNative(dev, lane.sender, ((50_000n * baseFee + l1FeeOf(l1Fee, 0)) * 5n) / 2n)
    liar.lie('eth_getTransactionCount', ({ params, truth }) => (params[1] === 'pending' ? { result: '0x5' } : truth()))
    await compareNetwork({ ...deps, chains, lanes }, network)
    const { count } = await db.one(
      z.object({ count: z.bigint() }),
      sql`select count(*) as count from chain_transactions where sender = ${lane.sender}`,
    )
    expect(count).toBe(2n)
  } finally {
    liar.tellTheTruth()
    await lanes.stop()
    await stage.outbound.close()
  }
})

/** A funded lane at its first nonce, as a restore leaves it, whose first node lies about pending transactions. */
async function aRestoredLane(rpcUrls: readonly string[]) {
  const { db } = database
  const stage = await aLane({ db, dev, rpcUrls })
  const { deps, chains, lanes, network, lane } = stage
  await db.run(
    sql`insert into lanes (network, sender, next_nonce, generation) values (${network.name}, ${lane.sender}, 0, -1)`,
  )
  liar.lie('eth_getTransactionCount', ({ params, truth }) => (params[1] === 'pending' ? { result: '0x5' } : truth()))
  const Row = z.object({ nextNonce: z.bigint(), count: z.bigint(), isCompared: z.boolean() })
  return {
    stage,
    compare: () => compareNetwork({ ...deps, chains, lanes }, network),
    found: () =>
      db.one(
        Row,
        sql`select next_nonce, (select count(*) from chain_transactions where sender = ${lane.sender}) as count, generation >= 0 as is_compared
          from lanes where sender = ${lane.sender}`,
      ),
    async stop() {
      liar.tellTheTruth()
      await lanes.stop()
      await stage.outbound.close()
    },
  }
}

test('after a restore, one of three nodes that invents pending transactions costs no empty transaction and no delay', async () => {
  const restored = await aRestoredLane([liar.url, dev.rpcUrl, dev.rpcUrl])
  try {
    await restored.compare()
    expect(await restored.found()).toEqual({ nextNonce: 0n, count: 0n, isCompared: true })
  } finally {
    await restored.stop()
  }
})

test('after a restore, an account waits while one of two nodes invents pending transactions, and goes on when it recovers', async () => {
  const restored = await aRestoredLane([liar.url, dev.rpcUrl])
  try {
    await restored.compare()
    expect(await restored.found()).toEqual({ nextNonce: 0n, count: 0n, isCompared: false })
    liar.tellTheTruth()
    await restored.compare()
    expect(await restored.found()).toEqual({ nextNonce: 0n, count: 0n, isCompared: true })
    const first = await planPayment(restored.stage)
    await runLane(restored.stage)
    expect(await statusOf(database.db, first.id)).toBe('final')
  } finally {
    await restored.stop()
  }
})

test('after a restore, one of three nodes that refuses to count pending transactions delays no account', async () => {
  const restored = await aRestoredLane([liar.url, dev.rpcUrl, dev.rpcUrl])
  liar.lie('eth_getTransactionCount', ({ params, truth }) =>
    params[1] === 'pending' ? { error: { code: -32_602, message: 'unknown block' } } : truth(),
  )
  try {
    await restored.compare()
    expect(await restored.found()).toEqual({ nextNonce: 0n, count: 0n, isCompared: true })
  } finally {
    await restored.stop()
  }
})

test('after a restore, a first node that invents a high base fee hides no pending transactions that the others report', async () => {
  const first = await startLyingNode(dev.rpcUrl)
  const restored = await aRestoredLane([first.url, liar.url, liar.url])
  first.lie('eth_getBlockByNumber', withHighBaseFee)
  try {
    await restored.compare()
    expect(await restored.found()).toEqual({ nextNonce: 5n, count: 5n, isCompared: false })
  } finally {
    await restored.stop()
    await first.stop()
  }
})
