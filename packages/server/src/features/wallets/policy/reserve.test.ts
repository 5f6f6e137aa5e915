import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, type Org, type World } from '../../../../test/world.ts'
import { instantOf } from '../../../platform/clock.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import { id, newId } from '../../../platform/ids.ts'
import { type OutgoingMovement, policyWouldDeny, releasePolicy, reservePolicy } from './reserve.ts'

let world: World
let otherDeps: World['server']['deps']
let org: Org
let tenant: Tenant

beforeAll(async () => {
  world = await aWorld()
  otherDeps = (await world.another()).server.deps
  org = await world.organisation()
  tenant = { organisationId: org.id, environment: 'test' }
})
afterAll(() => world?.stop())

const masters = '/wallet-infra/master-wallets'

/** A wallet whose policy permits ten USDC a day to one bank account, and a withdrawal of one of them. */
async function aWithdrawal(): Promise<OutgoingMovement> {
  const made = await world.call(org.testKey, 'POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
  const masterWalletId = id('mwt').parse(made.body.id)
  const recipient = newId('bac', world.server.deps)
  const operations = { withdraw: { recipients: [recipient] } }
  const policy = { operations, tokens: { USDC: { perDay: '10' } } }
  expect((await world.call(org.testKey, 'PUT', `${masters}/${masterWalletId}/policy`, policy)).status).toBe(200)
  return { masterWalletId, operation: 'withdraw', token: 'USDC', rawAmount: 1_000_000n, decimals: 6, recipient }
}

function reserve(movement: OutgoingMovement, subjectId: string, deps = world.server.deps): Promise<unknown> {
  return deps.db.tx((tx) => reservePolicy({ ...deps, tenant }, tx, { ...movement, subjectId }))
}

function release(subjectId: string): Promise<void> {
  const { db, clock } = world.server.deps
  return db.tx((tx) => releasePolicy(tx, tenant, subjectId, clock.now()))
}

/** How many more whole tokens may leave. */
async function remainingOf(movement: OutgoingMovement): Promise<number> {
  for (let tokens = 10; tokens > 0; tokens -= 1) {
    const requested = { ...movement, rawAmount: BigInt(tokens) * 1_000_000n }
    if ((await policyWouldDeny({ ...world.server.deps, tenant }, requested)) === null) return tokens
  }
  return 0
}

test('of forty concurrent withdrawals over two processes, under a cap for ten, exactly ten are reserved', async () => {
  const withdrawal = await aWithdrawal()
  const outcomes = await Promise.allSettled(
    Array.from({ length: 40 }, (_, n) =>
      reserve(withdrawal, `${withdrawal.masterWalletId}-${n}`, n % 2 === 0 ? world.server.deps : otherDeps),
    ),
  )
  const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
  expect(refused).toHaveLength(30)
  for (const problem of refused)
    expect(problem).toMatchObject({ code: 'policy-denied', members: { rule: 'perDay', cap: '10', used: '10' } })
  expect(await remainingOf(withdrawal)).toBe(0)
})

test('a movement that is not stored reserves nothing', async () => {
  const withdrawal = await aWithdrawal()
  const { deps } = world.server
  const died = deps.db.tx(async (tx) => {
    await reservePolicy({ ...deps, tenant }, tx, { ...withdrawal, subjectId: `${withdrawal.masterWalletId}-died` })
    throw new Error('the process died')
  })
  await expect(died).rejects.toThrow('the process died')
  expect(await remainingOf(withdrawal)).toBe(10)
})

test('one movement is counted once and released once, however often it is repeated, and not counted again afterwards', async () => {
  const withdrawal = await aWithdrawal()
  const [kept, failed] = [`${withdrawal.masterWalletId}-kept`, `${withdrawal.masterWalletId}-failed`]
  for (const subject of [kept, kept, failed, failed]) await reserve(withdrawal, subject)
  expect(await remainingOf(withdrawal)).toBe(8)
  await Promise.all([release(failed), release(failed), release('of nobody')])
  expect(await remainingOf(withdrawal)).toBe(9)
  await reserve(withdrawal, failed)
  expect(await remainingOf(withdrawal)).toBe(9)
})

test('another tenant releases nothing', async () => {
  const withdrawal = await aWithdrawal()
  const subject = `${withdrawal.masterWalletId}-theirs`
  await reserve(withdrawal, subject)
  const stranger = { organisationId: (await world.organisation()).id, environment: 'test' } as const
  await world.server.deps.db.tx((tx) => releasePolicy(tx, stranger, subject, instantOf(0)))
  expect(await remainingOf(withdrawal)).toBe(9)
})

test('a movement of an unknown wallet reserves nothing', async () => {
  const nobodys = { ...(await aWithdrawal()), masterWalletId: newId('mwt', world.server.deps) }
  await expect(reserve(nobodys, 'a-movement')).rejects.toThrow('an unknown wallet')
})
