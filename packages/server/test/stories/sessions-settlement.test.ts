import { type DevChain, sendFromDevAccount, startChain } from '@purser/devnet'
import { type Address, encodeFunctionData, parseAbi } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { recordSettled } from '../../src/features/payments/settlement-outcome.ts'
import { sessionRecurring } from '../../src/features/sessions/index.ts'
import { followVaults } from '../../src/features/vaults/index.ts'
import { sql } from '../../src/platform/db/db.ts'
import { id } from '../../src/platform/ids.ts'
import { systemCtx } from '../../src/platform/work/runner.ts'
import { type Answer, aPayer, aWorld, codeOf, type Org, type Payer, type World } from '../world.ts'

let chain: DevChain
let world: World
let org: Org
let wallet: { id: string; address: Address }

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain], config: { settleWaitMs: 20_000 } })
  org = await world.organisation()
  wallet = await world.wallet(org)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const resource = 'https://api.example.com/weather'

function post(path: string, body: unknown): Promise<Answer> {
  return world.call(org.testKey, 'POST', path, body)
}

async function verified(payer: Payer): Promise<Answer> {
  const requested = { walletId: wallet.id, resource, price: '0.01' }
  const credential = await payer.credential(await post('/payments/challenge', { ...requested, intent: 'session' }))
  const response = await post('/payments/verify', { protocol: 'x402', credential, ...requested })
  expect(response.status).toBe(200)
  return response
}

function settle({ body: { paymentId, settlementToken } }: Answer): Promise<Answer> {
  return post('/payments/settle', { paymentId, settlementToken })
}

function open({ body: { paymentId } }: Answer): Promise<Answer> {
  return post('/sessions', { paymentId })
}

function verify({ body: { sessionToken } }: Answer): Promise<Answer> {
  return post('/sessions/verify', { sessionToken, host: 'api.example.com', walletId: wallet.id })
}

async function blacklist(account: Address): Promise<void> {
  const abi = parseAbi(['function blacklist(address)'])
  await sendFromDevAccount(
    chain,
    chain.tokens.USDC ?? '0x',
    encodeFunctionData({ abi, functionName: 'blacklist', args: [account] }),
  )
}

/** Makes the chain show that a payment paid after all, as the checks of voided payments find it. */
async function settleLate({ body: { paymentId } }: Answer): Promise<void> {
  const { deps } = world.server
  const settled = { id: id('pay').parse(paymentId), txHash: `0x${'ab'.repeat(32)}`, gasNanoUsd: 0n }
  await deps.db.tx((tx) => recordSettled(systemCtx(deps), tx, [settled]))
}

async function runJob(): Promise<void> {
  for (const { run } of sessionRecurring) await run(systemCtx(world.server.deps))
}

/** Whether the database still has a token hash, and when the session was revoked. */
function stored(sessionId: unknown): Promise<{ hasHash: boolean; revokedAt: Date | null }> {
  const row = z.object({ hasHash: z.boolean(), revokedAt: z.date().nullable() })
  const statement = sql`select token_hash is not null as has_hash, revoked_at from sessions where id = ${String(sessionId)}`
  return world.database.db.one(row, statement)
}

test('a session is opened before its payment settles, and continues after it', async () => {
  const payment = await verified(await aPayer(chain))
  const opened = await open(payment)
  expect([opened.status, (await verify(opened)).status]).toEqual([201, 200])
  expect((await settle(payment)).status).toBe(200)
  await runJob()
  expect((await verify(opened)).status).toBe(200)
})

test('a payment whose settlement fails ends its session at once and forever, and then its vault', async () => {
  const payer = await aPayer(chain)
  const payment = await verified(payer)
  const opened = await open(payment)
  const { sessionId, vaultId } = opened.body
  expect((await verify(opened)).status).toBe(200)

  expect((await world.call(org.testKey, 'GET', `/vaults/${vaultId}`)).status).toBe(200)

  await blacklist(payer.account.address)
  const failed = await settle(payment)
  expect([failed.status, codeOf(failed)]).toEqual([409, 'settlement-failed'])
  const refused = await verify(opened)
  expect([refused.status, codeOf(refused)]).toEqual([402, 'session-not-found'])
  expect((await world.call(org.testKey, 'GET', `/sessions/${sessionId}`)).body).toMatchObject({ isExpired: true })
  const again = await open(payment)
  expect([again.status, codeOf(again), again.body.reason]).toEqual([409, 'settlement-failed', failed.body.reason])

  await runJob()
  const { hasHash, revokedAt } = await stored(sessionId)
  expect([hasHash, revokedAt === null]).toEqual([false, false])
  await runJob()
  expect((await stored(sessionId)).revokedAt).toEqual(revokedAt)
  const shown = (await world.call(org.testKey, 'GET', `/sessions/${sessionId}`)).body
  expect(shown).toMatchObject({ isExpired: true, expiresAt: revokedAt?.toISOString() })
  expect((await verify(opened)).status).toBe(402)
  expect(codeOf(await world.call(org.testKey, 'GET', `/vaults/${vaultId}`))).toBe('vault-not-found')
})

test('a payment that failed, and one that expired, open no session', async () => {
  for (const [status, code] of [
    ['settlement_failed', 'settlement-failed'],
    ['voided', 'payment-voided'],
  ]) {
    const payment = await verified(await aPayer(chain))
    const opened = await open(payment)
    const paymentId = String(payment.body.paymentId)
    await world.database.db.run(sql`update payments set status = ${status} where id = ${paymentId}`)
    expect((await verify(opened)).status).toBe(402)
    expect(codeOf(await open(payment))).toBe(code)
  }
})

test('a payment that settles late has its session again, with a new token, its full time and a vault', async () => {
  const payment = await verified(await aPayer(chain))
  const opened = await open(payment)
  const { sessionId, vaultId: first } = opened.body
  await world.database.db.run(
    sql`update payments set status = 'voided', failure_reason = 'expired' where id = ${String(payment.body.paymentId)}`,
  )
  await runJob()
  await followVaults.run(systemCtx(world.server.deps))
  await settleLate(payment)

  const again = await open(payment)
  expect([again.status, again.body.sessionId, again.body.isExpired]).toEqual([200, sessionId, false])
  expect(Date.parse(String(again.body.expiresAt))).toBeGreaterThan(Date.parse(String(opened.body.expiresAt)))
  expect([(await verify(again)).status, (await verify(opened)).status]).toEqual([200, 402])
  const { vaultId } = again.body
  expect(vaultId).not.toBe(first)
  expect((await world.call(org.testKey, 'GET', `/vaults/${vaultId}`)).body).toMatchObject({ sessionId })
  const { body: shown } = await world.call(org.testKey, 'GET', `/payments/${payment.body.paymentId}`)
  expect(shown).toMatchObject({ sessionId, vaultId })

  await runJob()
  expect((await verify(again)).status).toBe(200)
  expect((await open(payment)).body).toMatchObject({ sessionId, vaultId, expiresAt: again.body.expiresAt })
})

test('a session whose payment settles late keeps a vault that was persisted', async () => {
  const payment = await verified(await aPayer(chain))
  const { sessionId, vaultId } = (await open(payment)).body
  expect((await post(`/vaults/${vaultId}/persist`, {})).status).toBe(200)
  const paymentId = String(payment.body.paymentId)
  await world.database.db.run(
    sql`update payments set status = 'voided', failure_reason = 'expired' where id = ${paymentId}`,
  )
  await runJob()
  await settleLate(payment)
  const again = await open(payment)
  expect(again.body).toMatchObject({ sessionId, vaultId, isExpired: false })
  expect((await verify(again)).status).toBe(200)
})
