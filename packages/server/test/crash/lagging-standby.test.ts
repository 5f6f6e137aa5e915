import { type DevChain, startChain, tokenBalance } from '@purser/devnet'
import { createPublicClient, http, parseAbiItem } from 'viem'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { runAdmin } from '../../src/admin/run.ts'
import { sql } from '../../src/platform/db/db.ts'
import { type Answer, codeOf, request } from '../world.ts'
import { countSettling } from './books.ts'
import { type Purchase, sign, startLoad } from './load.ts'
import { aReplicatedPostgres, type ReplicatedPostgres } from './replicated-postgres.ts'
import { endEveryService } from './service.ts'
import { aDeployment, type Deployment, verifyBody } from './stage.ts'
import { type Caller, someWallets, type TransferAttempt, post as transfer } from './transfer-load.ts'

const patient = { timeout: 120_000, interval: 100 }
/** A fee that was raised in the lost part leaves a hash that no block has. It counts as replaced after two minutes (`replacedMsMin`). */
const afterReplacement = { timeout: 240_000, interval: 100 }
const rawPrice = 10_000n
const cleanUps: (() => Promise<unknown>)[] = []
afterEach(async () => {
  await endEveryService()
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

interface Stage {
  readonly postgres: ReplicatedPostgres
  readonly chain: DevChain
  readonly deployment: Deployment
  call(method: 'GET' | 'POST', path: string, body?: unknown): Promise<Answer>
}

test('an asynchronous standby that lags is promoted: the loss is noticed, and after `purser admin restored` no payment that moved is sold again, all money that moved is found, and the rest goes on', {
  timeout: 600_000,
}, async () => {
  const postgres = await aReplicatedPostgres('asynchronous')
  cleanUps.push(postgres.remove)
  const chain = await startChain({ network: 'base-sepolia', blockTimeSeconds: 0.5 })
  cleanUps.push(() => chain.stop())
  const env = { SETTLE_WAIT_MS: '300', TRANSFER_WAIT_MS: '10000' }
  const deployment = await aDeployment({ databaseUrl: postgres.url, chain, env })
  const service = await deployment.start()
  const caller: Caller = { apiKey: deployment.testKey, where: async () => service.base }
  const call: Stage['call'] = (method, path, body) =>
    request(service.base, { key: deployment.testKey, method, path, body })
  const stage: Stage = { postgres, chain, deployment, call }
  const wallets = await someWallets(caller, chain, 1)
  const [from] = wallets
  if (from === undefined) throw new Error('no wallet')
  const wish = (key: string): TransferAttempt => {
    return { from, to: privateKeyToAddress(generatePrivateKey()), token: 'USDC', key }
  }
  const [kept, lost, next] = [wish('kept'), wish('lost'), wish('next')]
  const load = startLoad({ deployment, where: async () => service.base, buyers: 4 })
  const acknowledged = (more: number) => {
    const enough = load.acknowledged() + more
    return expect.poll(() => load.acknowledged(), patient).toBeGreaterThanOrEqual(enough)
  }
  await acknowledged(16)
  expect((await transfer(caller, kept, 0)).status).toBe(201)

  await postgres.lag()
  await acknowledged(40)
  const moved = await transfer(caller, lost, 0)
  expect([moved.status, moved.body.status]).toEqual([201, 'confirmed'])
  // A payment that no transaction carries yet.
  const unsent = await sign(deployment, 0)
  const verified = await verify(stage, unsent)
  expect(verified.status).toBe(200)
  await load.stop()
  expect(load.faults).toEqual([])
  await postgres.losePrimary('killed')
  await postgres.promote()

  await expect.poll(() => readiness(service.base), patient).toMatchObject({ status: 503, database: 'behind' })
  expect((await transfer(caller, next, 0)).status, 'nothing is signed').toBe(503)
  const { FILES_DIR = '' } = deployment.env
  const restored = await runAdmin(['admin', 'restored'], { DATABASE_URL: postgres.url, FILES_DIR })
  expect([restored.exitCode, restored.stderr]).toEqual([0, ''])
  await expect.poll(() => readiness(service.base), patient).toMatchObject({ status: 200 })
  await expect.poll(() => countSettling(postgres.standby), afterReplacement).toBe(0n)
  await expect.poll(() => countWaitingLanes(stage), patient).toBe(0n)

  const purchases = load.purchases.filter(({ verified: sold }) => sold !== undefined)
  const known = await listNonces(stage)
  const gone = purchases.filter(({ nonce }) => !known.has(nonce))
  const paid = await listUsed(stage)
  const goneAndPaid = gone.filter(({ nonce }) => paid.has(nonce))
  expect(goneAndPaid.length, 'payments were lost after they had moved').toBeGreaterThan(0)
  for (const purchase of goneAndPaid) {
    const again = await verify(stage, purchase)
    expect([again.status, codeOf(again)]).toEqual([402, 'payment-verification-failed'])
    expect(JSON.stringify(again.body)).toContain('nonce_already_used')
  }
  // Lost before anything was sent: the payer has not paid. Presented again, it is sold, and pays once.
  const again = await verify(stage, unsent)
  expect(again.status).toBe(200)
  expect(again.body.paymentId).not.toBe(verified.body.paymentId)
  const { paymentId, settlementToken } = again.body
  const settled = async () => (await call('POST', '/payments/settle', { paymentId, settlementToken })).status
  await expect.poll(settled, patient).toBe(200)
  const lostSale = { paymentId: verified.body.paymentId, settlementToken: verified.body.settlementToken }
  const late = await call('POST', '/payments/settle', lostSale)
  expect([late.status, codeOf(late)]).toEqual([422, 'payment-not-found'])

  const used = await listUsed(stage)
  expect(await tokenBalance(chain, 'USDC', deployment.wallet.address)).toBe(rawPrice * BigInt(used.size))
  const received = `/wallet-infra/byo-wallets/${deployment.wallet.id}/transactions?limit=100`
  await expect.poll(async () => (await call('GET', received)).list.length, patient).toBe(used.size)
  const sent = `/wallet-infra/master-wallets/${from.id}/transactions?limit=100`
  const hashes = async () => (await call('GET', sent)).list.map(({ txHash }) => txHash)
  await expect.poll(hashes, patient).toContain(moved.body.txHash)
  await expect.poll(async () => (await transfer(caller, next, 0)).status, patient).toBe(201)
  for (const { to } of [kept, lost, next])
    await expect.poll(() => tokenBalance(chain, 'USDC', to), patient).toBe(250_000n)
  console.log(JSON.stringify({ sold: purchases.length, gone: gone.length, goneAndPaid: goneAndPaid.length }))
  expect(await service.end('SIGTERM')).toBe(0)
})

function verify({ deployment, call }: Stage, { credential }: Pick<Purchase, 'credential'>): Promise<Answer> {
  return call('POST', '/payments/verify', verifyBody(deployment.wallet.id, credential))
}

async function readiness(base: string): Promise<unknown> {
  const response = await fetch(`${base}/readyz`)
  const body: Readonly<Record<string, unknown>> = await response.json()
  return { database: body.database, status: response.status }
}

/** The accounts that were not compared with their chain since the restore. */
async function countWaitingLanes({ postgres }: Stage): Promise<bigint> {
  const row = await postgres.standby.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from lanes where generation < (select generation from witness_state)`,
  )
  return row.count
}

async function listNonces({ postgres }: Stage): Promise<ReadonlySet<string>> {
  const rows = await postgres.standby.many(
    z.object({ nonce: z.string() }),
    sql`select settlement ->> 'nonce' as nonce from payments`,
  )
  return new Set(rows.map(({ nonce }) => nonce))
}

/** The nonces whose money the chain has moved. */
async function listUsed({ chain }: Stage): Promise<ReadonlySet<string>> {
  const logs = await createPublicClient({ transport: http(chain.rpcUrl) }).getLogs({
    ...{ address: chain.tokens.USDC, fromBlock: 0n, toBlock: 'latest', strict: true },
    event: parseAbiItem('event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)'),
  })
  const nonces = logs.map(({ args }) => args.nonce)
  expect(new Set(nonces).size, 'no money moved twice').toBe(nonces.length)
  return new Set(nonces)
}
