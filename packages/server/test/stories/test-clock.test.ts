import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { type OutgoingMovement, policyWouldDeny, reservePolicy } from '../../src/features/wallets/policy/reserve.ts'
import { sql } from '../../src/platform/db/db.ts'
import { id, newId } from '../../src/platform/ids.ts'
import { status } from '../webhooks/receiver.ts'
import { aStage, type Stage } from '../webhooks/stage.ts'
import { type Answer, codeOf, countByStatus, type Org, request } from '../world.ts'

let stage: Stage
let org: Org

beforeAll(async () => {
  stage = await aStage()
  org = await stage.world.organisation('enterprise')
})
afterAll(() => stage?.stop())

const call = (method: string, path: string, body?: unknown, key = org.testKey, headers = {}): Promise<Answer> =>
  stage.world.call(key, method, path, body, headers)
const advance = (by: unknown, key = org.testKey, headers = {}): Promise<Answer> =>
  call('POST', '/test/clock', { advance: by }, key, headers)

async function aVault(key = org.testKey): Promise<string> {
  const made = await call('POST', '/vaults', { ttl: '10d' }, key)
  expect(made.status).toBe(201)
  return String(made.body.id)
}

async function endOf(vaultId: string): Promise<number> {
  return Date.parse(String((await call('GET', `/vaults/${vaultId}`)).body.ttl))
}

test('an advance ends vaults, their tokens and sessions whose time is over, of this environment of this organisation alone', async () => {
  const other = await stage.world.organisation('enterprise')
  const [vault, live, foreign] = [await aVault(), await aVault(org.liveKey), await aVault(other.testKey)]
  const { id: walletId } = await stage.world.wallet(org)
  const resource = 'https://api.example.com/weather'
  const credential = 'stub_payment_accepted'
  const paid = await call('POST', '/payments/verify', {
    protocol: 'x402',
    credential,
    price: '0.01',
    walletId,
    resource,
  })
  const session = await call('POST', '/sessions', { paymentId: paid.body.paymentId, expiresIn: 7_200 })
  const token = await call('POST', `/vaults/${vault}/tokens`, { expiresIn: '2h' })
  const { sessionToken } = session.body
  const verify = () => call('POST', '/sessions/verify', { sessionToken, host: 'api.example.com', walletId })
  const read = () => call('GET', `/vaults/${vault}`, undefined, String(token.body.token))
  expect([(await verify()).status, (await read()).status]).toEqual([200, 200])
  const moved = await advance('3h')
  expect([moved.status, moved.body]).toEqual([
    200,
    { advancedSeconds: 10_800, moved: expect.objectContaining({ sessions: 1, vaultTokens: 1 }) },
  ])
  expect([(await verify()).status, (await read()).status]).toEqual([402, 401])
  expect((await call('GET', `/vaults/${vault}`)).status).toBe(200)
  await advance('10d')
  expect((await call('GET', `/vaults/${vault}`)).status).toBe(404)
  const ended = async () => {
    const { list } = await call('GET', '/events?type=vault.expired&limit=500')
    return list.filter(({ payload }) => Object(payload).vaultId === vault).length
  }
  await expect.poll(ended, { timeout: 30_000 }).toBe(1)
  expect((await call('GET', `/vaults/${live}`, undefined, org.liveKey)).status).toBe(200)
  expect((await call('GET', `/vaults/${foreign}`, undefined, other.testKey)).status).toBe(200)
})

test('an advance brings a retry of a webhook nearer, and the end of an approval that nobody decides', async () => {
  let isDown = true
  const own = await stage.world.organisation()
  const hook = await stage.hook(own, { answer: (...sent) => status(isDown ? 500 : 200)(...sent) })
  await stage.publish(own)
  for (let attempts = 1; attempts <= 2; attempts += 1) {
    // Each advance is more than the delay after this attempt.
    await expect.poll(async () => (await stage.attempts(own, hook)).length, { timeout: 30_000 }).toBe(attempts)
    if (attempts === 2) isDown = false
    await advance('1h', own.testKey)
  }
  await expect.poll(() => stage.deliveries(hook), { timeout: 30_000 }).toEqual({ succeeded: 1 })

  const { db } = stage.world.database
  const made = await call(
    'POST',
    '/wallet-infra/master-wallets',
    { chain: 'base', supportedTokens: ['USDC'] },
    own.testKey,
  )
  const approvalId = newId('apr', stage.world.server.deps)
  await db.run(sql`
    insert into movement_approvals (id, organisation_id, environment, master_wallet_id, wallet_id, kind, operation, subject_id, chain, token,
      decimals, raw_amount, recipient, to_chain, to_token, approval_above, account_id, created_at, expires_at)
    select ${approvalId}, ${own.id}, 'test', ${made.body.id}, ${made.body.id}, 'transfer', 'transfer', 'wtx_none', 'base', 'USDC', 6, 5, 'x',
      'base', 'USDC', '1', account_id, now(), now() + interval '24 hours' from members where organisation_id = ${own.id} limit 1`)
  const isOver = () =>
    db.one(
      z.object({ isOver: z.boolean() }),
      sql`select expires_at <= now() as is_over from movement_approvals where id = ${approvalId}`,
    )
  expect((await advance('23h', own.testKey)).body).toMatchObject({ moved: { approvals: 1 } })
  expect(await isOver()).toEqual({ isOver: false })
  expect((await advance('1h', own.testKey)).body).toMatchObject({ moved: { approvals: 1 } })
  expect(await isOver()).toEqual({ isOver: true })
})

test('an advance by a day frees what a daily cap of a policy counts, and not what a monthly one does', async () => {
  const made = await call('POST', '/wallet-infra/master-wallets', { chain: 'base', supportedTokens: ['USDC'] })
  const { deps } = stage.world.server
  const ctx = { ...deps, tenant: { organisationId: org.id, environment: 'test' as const } }
  const recipient = newId('bac', deps)
  const tokens = { USDC: { perDay: '10', perMonth: '15' } }
  const policy = { operations: { withdraw: { recipients: [recipient] } }, tokens }
  expect((await call('PUT', `/wallet-infra/master-wallets/${made.body.id}/policy`, policy)).status).toBe(200)
  const movement: OutgoingMovement = {
    ...{ masterWalletId: id('mwt').parse(made.body.id), operation: 'withdraw', token: 'USDC', decimals: 6, recipient },
    rawAmount: 10_000_000n,
  }
  await deps.db.tx((tx) => reservePolicy(ctx, tx, { ...movement, subjectId: `first-${recipient}` }))
  const denied = (tokensWanted: bigint) => policyWouldDeny(ctx, { ...movement, rawAmount: tokensWanted * 1_000_000n })
  expect(await denied(1n)).not.toBeNull()
  await advance('25h')
  expect([await denied(5n), await denied(6n)]).toEqual([null, expect.anything()])
  await advance('30d')
  expect(await denied(10n)).toBeNull()
})

test('concurrent advances at two processes add up, and a repeat under one Idempotency-Key advances once', async () => {
  const vault = await aVault()
  const before = await endOf(vault)
  const other = await stage.world.another({ role: 'api' })
  const answers = await Promise.all(
    [stage.world.base, other.base].flatMap((base) =>
      Array.from({ length: 3 }, () =>
        request(base, { key: org.testKey, method: 'POST', path: '/test/clock', body: { advance: '1h' } }),
      ),
    ),
  )
  expect(countByStatus(answers)).toEqual({ 200: 6 })
  expect(before - (await endOf(vault))).toBe(6 * 3_600_000)
  const once = { 'idempotency-key': 'clock-1' }
  await advance(60, org.testKey, once)
  expect((await advance(60, org.testKey, once)).headers.get('idempotency-replayed')).toBe('true')
  expect(before - (await endOf(vault))).toBe(6 * 3_600_000 + 60_000)
  await other.server.stop()
})

test('live keys, deployments without a test clock and spans that are no span are refused, and nothing moves', async () => {
  const vault = await aVault()
  const before = await endOf(vault)
  const without = await stage.world.another({ testClock: false, role: 'api' })
  const path = '/test/clock'
  const refusals = [
    await advance('1h', org.liveKey),
    await request(without.base, { key: org.testKey, method: 'POST', path, body: { advance: '1h' } }),
    await advance(0),
    await advance(-60),
    await advance('367d'),
    await advance('soon'),
    await advance(1.5),
  ]
  const invalid = Array.from({ length: 5 }, () => [422, 'validation-error'])
  expect(refusals.map((response) => [response.status, codeOf(response)])).toEqual([
    [403, 'test-clock-off'],
    [403, 'test-clock-off'],
    ...invalid,
  ])
  expect(await endOf(vault)).toBe(before)
  await without.server.stop()
})
