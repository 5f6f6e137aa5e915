import { type DevChain, fundNative, fundToken, startChain } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { follow } from '../../src/features/withdrawals/withdraw/follow.ts'
import { NewWithdrawal } from '../../src/features/withdrawals/withdraw/schema.ts'
import { createWithdrawal } from '../../src/features/withdrawals/withdraw/withdraw.ts'
import type { Ctx } from '../../src/modules.ts'
import type { OffRamp, Payout } from '../../src/partners/offramp/port.ts'
import { type Sql, sql } from '../../src/platform/db/db.ts'
import { id, newId } from '../../src/platform/ids.ts'
import { forTenant, systemCtx } from '../../src/platform/work/runner.ts'
import { aKeptLog } from '../log-lines.ts'
import { aPartner } from '../off-ramp-partner.ts'
import { aWorld, type Org, type World } from '../world.ts'

/** A deployment without running jobs: the test does its work. */
let world: World
let base: DevChain
let org: Org

beforeAll(async () => {
  base = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [base], config: { role: 'api' } })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await base?.stop()
})

const gbp = { accountName: 'Acme Ltd', currency: 'GBP', sortCode: '20-29-59', accountNumber: '63748472' }

function ctxWith(partner: OffRamp): Ctx {
  const { deps } = world.server
  const own = { ...deps, offRamps: { test: partner, live: undefined } }
  const tenant = { organisationId: org.id, environment: 'test' } as const
  return { ...forTenant(systemCtx(own), tenant), requestId: newId('req', deps) }
}

async function newWithdrawal(): Promise<NewWithdrawal> {
  const call = (path: string, body: unknown) => world.call(org.testKey, 'POST', `/wallet-infra/${path}`, body)
  const { body: wallet } = await call('master-wallets', { chain: 'base', supportedTokens: ['USDC'] })
  const address = wallet.address as Address
  await fundNative(base, address, 10n ** 18n)
  await fundToken(base, 'USDC', address, 200_000_000n)
  const { body: account } = await call('bank-accounts', gbp)
  const moved = { token: 'USDC', chain: 'base', amount: '100' }
  return NewWithdrawal.parse({ fromWalletId: wallet.id, ...moved, bankAccountId: account.id })
}

const Found = z.object({ id: id('wdr'), status: z.string(), reason: z.string().nullable(), transfers: z.number() })

function withdrawalOf({ fromWalletId }: NewWithdrawal) {
  return world.database.db.one(
    Found,
    sql`
    select id, status, reason, (select count(*)::int from transfers where wallet_id = ${fromWalletId}) as transfers
    from withdrawals where wallet_id = ${fromWalletId}`,
  )
}

const address: Address = `0x${'1'.repeat(40)}`

test.each([
  ['another address', { address: `0x${'2'.repeat(40)}` as Address, rawAmount: 100_000_000n }],
  ['another amount', { address, rawAmount: 99_000_000n }],
  ['no deposit', undefined],
])('a payout that shows %s by the time of its tokens gets none', async (_, changed) => {
  const request = await newWithdrawal()
  const reported: Pick<Payout, 'deposit'> = { deposit: { address, rawAmount: 100_000_000n } }
  const { partner } = aPartner({ payout: () => reported })
  await createWithdrawal(ctxWith(partner), request)
  const made = await withdrawalOf(request)
  // As if the process had died before it stored the transfer of the tokens.
  await world.database.db.run(sql`update withdrawals set transfer_id = null where id = ${made.id}`)
  Object.assign(reported, { deposit: changed })
  await follow(ctxWith(partner), made.id)
  expect(await withdrawalOf(request)).toEqual({ ...made, status: 'failed', reason: 'partner-refused' })
})

const remove = async ({ bankAccountId }: NewWithdrawal) =>
  expect((await world.call(org.testKey, 'DELETE', `/wallet-infra/bank-accounts/${bankAccountId}`)).status).toBe(204)

test('a created payout gets no tokens once its bank account is deleted, also while the partner does not respond', async () => {
  const request = await newWithdrawal()
  const { partner } = aPartner()
  await createWithdrawal(ctxWith(partner), request)
  const made = await withdrawalOf(request)
  // As if the process had died before it stored the transfer of the tokens.
  await world.database.db.run(sql`update withdrawals set transfer_id = null where id = ${made.id}`)
  await remove(request)
  const down: OffRamp = { ...partner, readPayout: () => Promise.reject(new Error('the partner is down')) }
  await follow(ctxWith(down), made.id)
  await follow(ctxWith(partner), made.id)
  expect(await withdrawalOf(request)).toEqual({ ...made, status: 'failed', reason: 'bank-account-not-found' })
})

test('a payout gets no tokens if its bank account is deleted while the partner creates it', async () => {
  const request = await newWithdrawal()
  const { partner } = aPartner()
  const createPayout: OffRamp['createPayout'] = async (requested) => {
    await remove(request)
    return partner.createPayout(requested)
  }
  await expect(createWithdrawal(ctxWith({ ...partner, createPayout }), request)).rejects.toMatchObject({
    code: 'withdrawal-refused',
  })
  expect(await withdrawalOf(request)).toMatchObject({
    status: 'failed',
    reason: 'bank-account-not-found',
    transfers: 0,
  })
})

test('a process that reads a payout after another has sent its tokens logs no failure', async () => {
  const request = await newWithdrawal()
  const { partner } = aPartner()
  const setTransfer = (sent: Sql) =>
    world.database.db.run(sql`update withdrawals set transfer_id = (${sent}) where wallet_id = ${request.fromWalletId}`)
  await createWithdrawal(ctxWith(partner), request)
  const made = await withdrawalOf(request)
  // As this process had read it.
  await setTransfer(sql`null`)
  const readPayout: OffRamp['readPayout'] = async (...about) => {
    await setTransfer(sql`select id from transfers where wallet_id = ${request.fromWalletId}`)
    const payout = await partner.readPayout(...about)
    return payout && { ...payout, awaitsDeposit: false }
  }
  const { lines, log } = aKeptLog()
  await follow({ ...ctxWith({ ...partner, readPayout }), log }, made.id)
  log.info('followed')
  await expect.poll(() => lines.join('')).toContain('followed')
  expect(lines.join('')).not.toContain('failed before anything was signed')
  expect(await withdrawalOf(request)).toEqual(made)
})
