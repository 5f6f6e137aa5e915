import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aBrowser, ownerOf as emailOfOwner, invite } from '../../../test/people.ts'
import { type Answer, aWorld, codeOf, countByStatus, type Org, type World } from '../../../test/world.ts'
import { utcMonthOf } from '../../platform/clock.ts'
import { sql } from '../../platform/db/db.ts'
import { forTenant, systemCtx } from '../../platform/work/runner.ts'
import { addToCounter, lockCounter } from '../plans/index.ts'
import { setRoleAsOperator } from './index.ts'

let world: World

const Made = z.object({ id: z.string(), apiKeys: z.tuple([z.object({ key: z.string() })]) })

beforeAll(async () => {
  world = await aWorld()
})
afterAll(() => world.stop())

/** Another organisation of the account behind the key, on the hobby plan. */
async function another(org: Org): Promise<Org> {
  const { id, apiKeys } = Made.parse((await world.call(org.testKey, 'POST', '/organisations', { name: 'More' })).body)
  return { id: id as Org['id'], testKey: apiKeys[0].key, liveKey: '' }
}

function ctxOf(org: Org) {
  return forTenant(systemCtx(world.server.deps), { organisationId: org.id, environment: 'test' })
}

async function count(org: Org, kind: 'payments' | 'storageBytes', n: number): Promise<void> {
  const { db, clock, tenant } = ctxOf(org)
  const period = kind === 'payments' ? utcMonthOf(clock.now()) : 'all'
  await db.tx((tx) => addToCounter(tx, { tenant, kind, period, n }))
}

function vaultIn(org: Org): Promise<Answer> {
  return world.call(org.testKey, 'POST', '/vaults', {})
}

async function accountOf(org: Org): Promise<string> {
  return String((await world.call(org.testKey, 'GET', '/account')).body.id)
}

/** Makes the account the only owner, as the operator, once it has accepted an invitation. */
async function handOver(org: Org, account: string): Promise<void> {
  const accountId = account as Parameters<typeof setRoleAsOperator>[2]['accountId']
  const { deps } = world.server
  const operator = { ...deps, actor: { kind: 'operator' } as const, requestId: ctxOf(org).requestId }
  await world.call(org.testKey, 'POST', '/organisations/current/members', { accountId })
  await world.database.db.run(sql`
    update members set accepted_at = coalesce(accepted_at, now()) where organisation_id = ${org.id} and account_id = ${accountId}`)
  await setRoleAsOperator(operator, org.id, { accountId, role: 'owner' })
  const { list } = await world.call(org.testKey, 'GET', '/organisations/current/members')
  for (const other of list.filter((member) => member.role === 'owner' && member.accountId !== account))
    await setRoleAsOperator(operator, org.id, { accountId: other.accountId as typeof accountId, role: 'viewer' })
}

test('an account has at most ten organisations, made by any of its keys and at once', async () => {
  const org = await world.organisation('pro')
  const second = await another(org)
  const answers = await Promise.all(
    Array.from({ length: 14 }, (_, at) =>
      world.call(at % 2 === 0 ? org.testKey : second.testKey, 'POST', '/organisations', { name: `More ${at}` }),
    ),
  )
  expect(countByStatus(answers)).toEqual({ 201: 8, 409: 6 })
  const refused = answers.filter(({ status }) => status === 409)
  expect(new Set(refused.map(codeOf))).toEqual(new Set(['organisation-limit-reached']))
  const person = await aBrowser(world, { email: await emailOfOwner(world, org.id) })
  const { body } = await person.call('GET', '/account')
  expect(z.array(z.unknown()).parse(body.organisations)).toHaveLength(10)
})

test('hobby organisations of one account have the active vaults of one, at once too', async () => {
  const first = await world.organisation('hobby')
  const orgs = [first, await another(first), await another(first), await another(first)]
  const answers = await Promise.all(Array.from({ length: 16 }, (_, at) => vaultIn(orgs[at % 4] ?? first)))
  expect(countByStatus(answers)).toEqual({ 201: 3, 429: 13 })
  expect(answers.find(({ status }) => status === 429)?.body).toMatchObject({ limit: 3, current: 3 })
  for (const org of orgs) {
    const { body } = await world.call(org.testKey, 'GET', '/billing/usage')
    expect(body.activeVaults).toMatchObject({ used: 3, limit: 3 })
  }
})

test('they share wallets, webhooks and storage, and registrations at once do not deadlock', async () => {
  const first = await world.organisation('hobby')
  const orgs = [first, await another(first), await another(first)]
  const each = async (path: string, bodyOf: (at: number) => unknown) =>
    countByStatus(
      await Promise.all(
        Array.from({ length: 12 }, (_, at) => world.call(orgs[at % 3]?.testKey ?? '', 'POST', path, bodyOf(at))),
      ),
    )
  const addressOf = (at: number) => `0x${(at + 1).toString(16).padStart(40, '7')}`
  const wallet = (at: number) => ({ address: addressOf(at), chain: 'base', supportedTokens: ['USDC'] })
  expect(await each('/wallet-infra/byo-wallets', wallet)).toEqual({ 201: 1, 429: 11 })
  const webhook = (at: number) => ({ url: `https://example.com/${at}`, events: ['payment.received'] })
  expect(await each('/webhooks', webhook)).toEqual({ 201: 1, 429: 11 })
  const { body: vault } = await vaultIn(first)
  await count(orgs[1] ?? first, 'storageBytes', 500 * 2 ** 20 - 200)
  const document = { name: 'a', data: { text: 'x'.repeat(300) } }
  const refused = await world.call(first.testKey, 'POST', `/vaults/${vault.vaultId ?? vault.id}/documents`, document)
  expect([refused.status, codeOf(refused)]).toEqual([429, 'storage-quota-exceeded'])
})

test('organisations of one account cannot together exceed the monthly payments, even concurrently', async () => {
  const first = await world.organisation('hobby')
  const second = await another(first)
  const third = await another(first)
  const [wallet] = [await world.wallet(first)]
  await count(third, 'payments', 60)
  await count(second, 'payments', 36)
  const pay = () =>
    world.call(first.testKey, 'POST', '/payments/verify', {
      protocol: 'x402',
      credential: 'stub_payment_accepted',
      price: '0.01',
      walletId: wallet.id,
    })
  const answers = await Promise.all(Array.from({ length: 9 }, pay))
  expect(countByStatus(answers)).toEqual({ 200: 4, 429: 5 })
  expect(answers.find(({ status }) => status === 429)?.body).toMatchObject({ limit: 100, current: 100 })
  expect(codeOf(await vaultIn(second))).toBe('payment-limit-reached')
})

test('what a paid organisation uses is its own', async () => {
  const paid = await world.organisation('pro')
  const [free, other] = [await another(paid), await another(paid)]
  for (let made = 0; made < 3; made++) expect((await vaultIn(paid)).status).toBe(201)
  for (const org of [free, other, free]) expect((await vaultIn(org)).status).toBe(201)
  expect(codeOf(await vaultIn(other))).toBe('vault-quota-exceeded')
  expect((await vaultIn(paid)).status).toBe(201)
})

test('an organisation shares with its first owner, and with the next when that one is no owner any more', async () => {
  const mine = await world.organisation('hobby')
  const [given, buyer] = [await another(mine), await world.organisation('hobby')]
  for (let made = 0; made < 3; made++) await vaultIn(given)
  expect(codeOf(await vaultIn(mine))).toBe('vault-quota-exceeded')
  const accountId = (await accountOf(buyer)) as Parameters<typeof setRoleAsOperator>[2]['accountId']
  await world.call(given.testKey, 'POST', '/organisations/current/members', { accountId })
  await world.call(buyer.testKey, 'POST', `/account/invitations/${given.id}/accept`)
  const { deps } = world.server
  const operator = { ...deps, actor: { kind: 'operator' } as const, requestId: ctxOf(mine).requestId }
  await setRoleAsOperator(operator, given.id, { accountId, role: 'owner' })
  expect(codeOf(await vaultIn(mine))).toBe('vault-quota-exceeded')
  const seller = (await accountOf(mine)) as typeof accountId
  await setRoleAsOperator(operator, given.id, { accountId: seller, role: 'viewer' })
  expect(codeOf(await vaultIn(buyer))).toBe('vault-quota-exceeded')
  expect(codeOf(await vaultIn(mine)), 'the seller has the same use for 31 days').toBe('vault-quota-exceeded')
  await world.database.db.run(sql`
    update former_quota_accounts set moved_at = moved_at - interval '31 days' where organisation_id = ${given.id}`)
  expect((await vaultIn(mine)).status).toBe(201)
  const { body } = await world.call(buyer.testKey, 'GET', '/billing/usage')
  expect(body.activeVaults, 'the buyer has none of the seller’s use').toMatchObject({ used: 3 })
})

test('a hand-over on from the next account resets neither, and takes nothing from the third', async () => {
  const [first, second, third] = [
    await world.organisation('hobby'),
    await world.organisation('hobby'),
    await world.organisation('hobby'),
  ]
  const given = await another(first)
  const owners = [first, second, third].map(accountOf)
  await count(given, 'payments', 100)
  for (const owner of (await Promise.all(owners)).slice(1)) await handOver(given, owner)
  const codes = await Promise.all([first, second, third, given].map(async (org) => codeOf(await vaultIn(org))))
  expect(codes).toEqual(Array.from({ length: 4 }, () => 'payment-limit-reached'))
  await world.call(third.testKey, 'POST', '/billing/rebuild-cache')
  await count(first, 'payments', 7)
  const used = await Promise.all(
    [first, second, third].map(
      async ({ testKey }) => (await world.call(testKey, 'GET', '/billing/usage')).body.payments,
    ),
  )
  expect(used).toMatchObject([{ used: 107 }, { used: 100 }, { used: 100 }])
})

test('an account that only an invitation admitted brings no free quotas, unless the operator makes it the owner', async () => {
  const first = await world.organisation('hobby')
  const given = await another(first)
  const owner = await aBrowser(world, { email: await emailOfOwner(world, given.id), organisationId: given.id })
  const invited = { owner, organisationId: given.id, email: 'only.invited@example.com', role: 'owner' } as const
  const next = await invite(world, invited)
  const seller = await accountOf(first)
  expect((await next.call('PATCH', `/organisations/current/members/${seller}`, { role: 'viewer' })).status).toBe(200)
  expect((await next.call('DELETE', `/organisations/current/members/${seller}`)).status).toBe(204)
  for (let made = 0; made < 3; made++) expect((await vaultIn(given)).status).toBe(201)
  expect(codeOf(await vaultIn(first))).toBe('vault-quota-exceeded')
  await handOver(given, String((await next.call('GET', '/account')).body.id))
  expect((await vaultIn(await another(first))).status, 'counts for 31 days').toBe(429)
  await world.database.db.run(sql`
    update former_quota_accounts set moved_at = moved_at - interval '31 days' where organisation_id = ${given.id}`)
  expect((await vaultIn(first)).status).toBe(201)
})

test('a recount leaves the shared figure as it is', async () => {
  const first = await world.organisation('hobby')
  const second = await another(first)
  await vaultIn(first)
  await vaultIn(second)
  await world.call(second.testKey, 'POST', '/billing/rebuild-cache')
  const { db, tenant } = ctxOf(second)
  expect(await db.tx((tx) => lockCounter(tx, tenant, 'activeVaults', 'all'))).toBe(2)
  const { body } = await world.call(first.testKey, 'GET', '/billing/usage')
  expect(body.activeVaults).toMatchObject({ used: 2, limit: 3 })
})

test('event streams of the hobby organisations of one account take the places of one, and those of others are free', async () => {
  const first = await world.organisation('hobby')
  const [second, stranger] = [await another(first), await world.organisation('hobby')]
  const vaults = await Promise.all([first, second, stranger].map(async (org) => String((await vaultIn(org)).body.id)))
  const opening = {
    tenant: { organisationId: first.id, environment: 'test' },
    owner: await accountOf(first),
    vaultId: vaults[0] as `vlt_${string}`,
    right: { kind: 'guest', expiresAt: new Date('2999-01-01T00:00:00Z') },
    after: 0,
  } as const
  const line = { waiting: 0, isOpen: true, write() {}, drained: async () => {}, end() {}, cut() {} }
  const streams = Array.from({ length: 10_000 }, () =>
    world.server.deps.vaultStreams.respond(opening, 0, Buffer.from('')),
  )
  for (const stream of streams) stream.open(line)
  const statuses = await Promise.all(
    [first, second, stranger].map(async ({ testKey }, at) => {
      const stop = new AbortController()
      const headers = { authorization: `Bearer ${testKey}` }
      const { status } = await fetch(`${world.base}/vaults/${vaults[at]}/events`, { headers, signal: stop.signal })
      stop.abort()
      return status
    }),
  )
  expect(statuses).toEqual([429, 429, 200])
  await world.database.db.run(sql`update organisations set plan = 'pro' where id = ${second.id}`)
  const stop = new AbortController()
  const headers = { authorization: `Bearer ${second.testKey}` }
  const paid = await fetch(`${world.base}/vaults/${vaults[1]}/events`, { headers, signal: stop.signal })
  stop.abort()
  expect(paid.status, 'an organisation that pays has places of its own').toBe(200)
})
