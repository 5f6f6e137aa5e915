import { fundNative, fundToken, tokenBalance } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { applyTransferDecisions } from '../../src/features/transfers/begin-waiting.ts'
import { sql } from '../../src/platform/db/db.ts'
import { newId } from '../../src/platform/ids.ts'
import { systemCtx } from '../../src/platform/work/runner.ts'
import { lifeOf, mortalDb } from '../mortal.ts'
import { makeMovementsOlder } from '../older-movements.ts'
import { aBrowser, type Browser, ownerOf } from '../people.ts'
import {
  aMaster,
  aTransferStage,
  bodyFrom,
  driving,
  eventsOf,
  type Managed,
  masters,
  path,
  patient,
  reservedBy,
  stranger,
  type TransferStage,
  transferOf,
} from '../transfer-stage.ts'
import { type Answer, codeOf, request } from '../world.ts'

// Rows 13 (Approvals) of the decisions: a movement above approvalAbove moves when a person says so, once, and otherwise never.

const dayMs = 86_400_000
const policy = {
  operations: { transfer: { recipients: 'any' }, withdraw: { recipients: 'any' } },
  tokens: { USDC: { perDay: '60', approvalAbove: '5' } },
}

let stage: TransferStage
let owner: Browser
let admin: Browser

beforeAll(async () => {
  stage = await aTransferStage({ network: 'base-sepolia' })
})
/** Browsers are new for each test: a test may move the clock past the ten minutes of a fresh sign-in. */
beforeEach(async () => {
  const { world, org } = stage
  owner = await signedIn(await ownerOf(world, org.id))
  admin = await aMember('admin', 'second@example.com')
})
afterAll(async () => {
  await stage?.stop()
})

async function aMember(role: string, email: string): Promise<Browser> {
  const { world, org } = stage
  const { db } = world.database
  await db.run(sql`
    insert into accounts (id, email, accepted_at, created_at) values (${newId('acc', world.server.deps)}, ${email}, now(), now())
    on conflict do nothing`)
  await db.run(sql`
    insert into members (organisation_id, account_id, role, created_at, accepted_at)
    select ${org.id}, id, ${role}, now(), now() from accounts where email = ${email} on conflict do nothing`)
  return signedIn(email)
}

/** Signed in just now, by the clock that the test moves. */
async function signedIn(email: string): Promise<Browser> {
  const { world, org, clock } = stage
  const browser = await aBrowser(world, { email, organisationId: org.id })
  await world.database.db.run(sql`
    update auth."session" set "createdAt" = ${clock.now()}, "expiresAt" = ${new Date(clock.now().getTime() + dayMs)}
    where "userId" = (select user_id from accounts where email = ${email})`)
  return browser
}

async function underPolicy(document: unknown = policy): Promise<Managed> {
  const master = await aFundedMaster()
  const set = await stage.world.call(stage.key, 'PUT', `${masters}/${master.id}/policy`, document)
  expect(set.status).toBe(200)
  return master
}

/** Where no process works, deposits count at once. */
async function aFundedMaster(): Promise<Managed> {
  if (stage.world.config.role !== 'api') return aMaster(stage)
  const made = await stage.world.call(stage.key, 'POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
  const master = { id: String(made.body.id), address: made.body.address as Address }
  await fundNative(stage.dev, master.address, 10n ** 18n)
  await fundToken(stage.dev, 'USDC', master.address, 100_000_000n)
  return master
}

function ask(master: Managed, changes: Record<string, unknown> = {}): Promise<Answer> {
  return stage.world.call(stage.key, 'POST', path, bodyFrom(master, { amount: '10', ...changes }))
}

async function aWaiting(master: Managed, changes: Record<string, unknown> = {}) {
  const response = await ask(master, changes)
  expect([response.status, response.body.status]).toEqual([202, 'pending'])
  const approval = z.object({ id: z.string(), status: z.literal('waiting') }).parse(response.body.approval)
  return { transferId: String(response.body.id), approvalId: approval.id }
}

const decide = (browser: Browser, approvalId: string, how: 'approve' | 'refuse', body?: unknown) =>
  browser.call('POST', `/approvals/${approvalId}/${how}`, body ?? (how === 'refuse' ? {} : undefined))
const cancel = (approvalId: string, key = stage.key) => stage.world.call(key, 'POST', `/approvals/${approvalId}/cancel`)
const get = (approvalId: string) => stage.world.call(stage.key, 'GET', `/approvals/${approvalId}`)

/** Mines until the transfer has ended, and returns its status and reason. */
async function endOf(transferId: string): Promise<unknown[]> {
  await expect
    .poll(async () => {
      await stage.chain.mine({ blocks: 1 })
      return (await transferOf(stage, transferId)).status
    }, driving)
    .not.toBe('pending')
  const { status, reason } = await transferOf(stage, transferId)
  return [status, reason]
}

async function approvalEvents(approvalId: string): Promise<Record<string, unknown>[]> {
  const rows = await stage.world.database.db.many(
    z.object({ type: z.string(), payload: z.record(z.string(), z.unknown()) }),
    sql`select type, payload from events where payload ->> 'approvalId' = ${approvalId} order by id`,
  )
  return rows.map(({ type, payload }) => ({ type, ...payload }))
}

async function countTransactions(transferId: string): Promise<number> {
  const { count } = await stage.world.database.db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from transfer_steps where transfer_id = ${transferId} and transaction_id is not null`,
  )
  return Number(count)
}

async function countReservations(subjectId: string): Promise<number> {
  const { count } = await stage.world.database.db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from reservations where subject_id = ${subjectId} and ended_at is null`,
  )
  return Number(count)
}

test('the audit log says when whoever approves became an owner or admin only after the request', async () => {
  const { approvalId } = await aWaiting(await underPolicy())
  const late = await aMember('viewer', 'late@example.com')
  const { list } = await owner.call('GET', '/organisations/current/members')
  const { accountId } = list.find(({ email }) => email === 'late@example.com') ?? {}
  const promoted = await owner.call('PATCH', `/organisations/current/members/${accountId}`, { role: 'admin' })
  expect(promoted.status).toBe(200)
  expect((await decide(late, approvalId, 'approve')).status).toBe(200)
  const earlier = await aWaiting(await underPolicy())
  expect((await decide(late, earlier.approvalId, 'approve')).status).toBe(200)
  const records = (await owner.call('GET', '/organisations/current/audit-log?action=approvals.approve&limit=500')).list
  const newer = (id: string) => records.filter(({ target }) => target === id).map(({ details }) => details)
  expect(newer(approvalId)).toEqual([expect.objectContaining({ isApproverNewer: true })])
  expect(newer(earlier.approvalId)).toEqual([expect.not.objectContaining({ isApproverNewer: true })])
})

test('a transfer above approvalAbove waits with its funds reserved, and moves when another person approves', async () => {
  const master = await underPolicy()
  const toAddress = stranger()
  expect((await ask(master, { amount: '5', toAddress })).status).toBe(201)
  const { transferId, approvalId } = await aWaiting(master, { toAddress, reference: 'Invoice 7' })

  const { body } = await get(approvalId)
  expect(body).toMatchObject({
    kind: 'transfer',
    status: 'waiting',
    transferId,
    fromWalletId: master.id,
    to: toAddress,
    amount: '10',
    token: 'USDC',
    approvalAbove: '5',
    note: 'Invoice 7',
    deniedBy: null,
    remaining: { perHour: null, perDay: '45', perMonth: null },
    requestedBy: { apiKeyId: expect.stringMatching(/^key_/), email: await ownerOf(stage.world, stage.org.id) },
    decidedAt: null,
  })
  // Reserved: of 100, 5 are gone and 10 wait.
  const short = await ask(await withoutPolicy(master), { amount: '86' })
  expect([short.status, codeOf(short)]).toEqual([422, 'insufficient-balance'])
  expect(await countTransactions(transferId)).toBe(0)

  const byKey = await stage.world.call(stage.key, 'POST', `/approvals/${approvalId}/approve`)
  expect([byKey.status, codeOf(byKey)]).toEqual([403, 'approval-needs-person'])
  const own = await decide(owner, approvalId, 'approve')
  expect([own.status, codeOf(own)]).toEqual([403, 'approval-own-request'])

  const granted = await decide(admin, approvalId, 'approve')
  expect([granted.status, granted.body.status]).toEqual([200, 'granted'])
  expect(await endOf(transferId)).toEqual(['confirmed', null])
  expect(await tokenBalance(stage.dev, 'USDC', toAddress)).toBe(15_000_000n)
  expect((await approvalEvents(approvalId)).map(({ type }) => type)).toEqual(['approval.requested', 'approval.granted'])
  await expect.poll(() => eventsOf(stage, transferId), patient).toContain('transfer.completed')
  expect((await transferOf(stage, transferId)).approval).toMatchObject({ id: approvalId, status: 'granted' })
})

/** The operator removes the policy: what waits stays as it is. */
async function withoutPolicy(master: Managed): Promise<Managed> {
  await stage.world.database.db.run(sql`delete from wallet_policies where master_wallet_id = ${master.id}`)
  return master
}

test('of two people who approve at once one succeeds, and the money moves once', async () => {
  const master = await underPolicy()
  const third = await aMember('admin', 'third@example.com')
  const toAddress = stranger()
  const { transferId, approvalId } = await aWaiting(master, { toAddress })
  const answers = await Promise.all([admin, third, admin, third].map((one) => decide(one, approvalId, 'approve')))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409])
  expect(await endOf(transferId)).toEqual(['confirmed', null])
  expect(await countTransactions(transferId)).toBe(1)
  expect(await tokenBalance(stage.dev, 'USDC', toAddress)).toBe(10_000_000n)
})

test('of an approval and a cancellation at once one holds, and the transfer ends as that one says', async () => {
  const master = await underPolicy({ ...policy, tokens: { USDC: { approvalAbove: '5' } } })
  const ended: unknown[] = []
  for (let round = 0; round < 4; round += 1) {
    const { transferId, approvalId } = await aWaiting(master)
    const answers = await Promise.all([decide(admin, approvalId, 'approve'), cancel(approvalId)])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409])
    const wins = answers[0]?.status === 200 ? ['confirmed', null] : ['failed', 'approval-canceled']
    expect(await endOf(transferId)).toEqual(wins)
    ended.push(wins[0])
  }
  expect(await reservedBy(stage, master)).toBe(BigInt(ended.filter((one) => one === 'confirmed').length) * 10n ** 19n)
})

test('a refused or canceled transfer fails, and gives back what it reserved', async () => {
  const master = await underPolicy()
  const refused = await aWaiting(master)
  const reported = await decide(admin, refused.approvalId, 'refuse', { reason: 'Unknown recipient.' })
  expect([reported.status, reported.body.status, reported.body.reason]).toEqual([200, 'refused', 'Unknown recipient.'])
  const canceled = await aWaiting(master)
  expect((await cancel(canceled.approvalId)).status).toBe(200)
  expect(await endOf(refused.transferId)).toEqual(['failed', 'approval-refused'])
  expect(await endOf(canceled.transferId)).toEqual(['failed', 'approval-canceled'])
  expect(await reservedBy(stage, master)).toBe(0n)
  expect([await countReservations(refused.transferId), await countTransactions(refused.transferId)]).toEqual([0, 0])
  expect((await approvalEvents(refused.approvalId))[1]).toMatchObject({
    type: 'approval.refused',
    status: 'refused',
    reason: 'Unknown recipient.',
  })
  expect(await eventsOf(stage, refused.transferId)).toContain('transfer.failed')
  expect(codeOf(await decide(admin, refused.approvalId, 'approve'))).toBe('approval-not-waiting')
})

test('a request that ends without an approval gives back the gas that it counted, too', async () => {
  const coin = { perDay: '0.01', perTransaction: '0' }
  const master = await underPolicy({ ...policy, tokens: { ...policy.tokens, ETH: coin } })
  const { transferId, approvalId } = await aWaiting(master)
  const gasCounted = async () => {
    const statement = sql`select atto_amount > 0 as is from policy_reservations where subject_id = ${`${transferId} gas`}`
    return (await stage.world.database.db.one(z.object({ is: z.boolean() }), statement)).is
  }
  expect(await gasCounted()).toBe(true)
  expect((await cancel(approvalId)).status).toBe(200)
  expect(await endOf(transferId)).toEqual(['failed', 'approval-canceled'])
  expect(await gasCounted()).toBe(false)
})

test('only the requester cancels a request', async () => {
  const { approvalId } = await aWaiting(await underPolicy())
  const made = await stage.world.call(stage.key, 'POST', '/organisations/current/api-keys', {
    name: 'other',
    environment: 'test',
  })
  const other = await cancel(approvalId, String(made.body.key))
  expect([other.status, codeOf(other)]).toEqual([403, 'approval-not-yours'])
  expect(codeOf(await admin.call('POST', `/approvals/${approvalId}/cancel`))).toBe('approval-not-yours')
  // The person who created the key.
  expect((await owner.call('POST', `/approvals/${approvalId}/cancel`)).status).toBe(200)
})

test('an admin who was invited and has not accepted approves nothing, and does not count as the second person', async () => {
  const { world, org } = stage
  const { approvalId } = await aWaiting(await underPolicy())
  expect(codeOf(await decide(owner, approvalId, 'approve'))).toBe('approval-own-request')
  const accept = (at: Date | null) =>
    world.database.db.run(
      sql`update members set accepted_at = ${at} where organisation_id = ${org.id} and role = 'admin'`,
    )
  await accept(null)
  try {
    expect(codeOf(await decide(admin, approvalId, 'approve'))).toBe('organisation-not-found')
    expect((await decide(owner, approvalId, 'approve')).status).toBe(200)
  } finally {
    await accept(new Date())
  }
})

test('a member and a viewer approve nothing, and an owner who signed in long ago signs in again first', async () => {
  const { approvalId } = await aWaiting(await underPolicy())
  for (const role of ['member', 'viewer']) {
    const person = await aMember(role, `${role}@example.com`)
    expect(codeOf(await decide(person, approvalId, 'approve'))).toBe('role-not-allowed')
    expect(codeOf(await decide(person, approvalId, 'refuse'))).toBe('role-not-allowed')
  }
  stage.clock.forward(11 * 60_000)
  expect(codeOf(await decide(admin, approvalId, 'approve'))).toBe('fresh-authentication-required')
})

test('a policy that is tighter at the approval refuses it, and the request waits on', async () => {
  const master = await underPolicy()
  const { transferId, approvalId } = await aWaiting(master)
  const tighter = { ...policy, tokens: { USDC: { perDay: '9', approvalAbove: '5' } } }
  expect((await stage.world.call(stage.key, 'PUT', `${masters}/${master.id}/policy`, tighter)).status).toBe(200)
  expect((await get(approvalId)).body).toMatchObject({ deniedBy: 'perDay', remaining: { perDay: '0' } })
  const denied = await decide(admin, approvalId, 'approve')
  expect([denied.status, codeOf(denied), denied.body.rule]).toEqual([403, 'policy-denied', 'perDay'])
  expect((await get(approvalId)).body.status).toBe('waiting')
  expect((await transferOf(stage, transferId)).status).toBe('pending')
})

test('requests that waited for hours count in the window in which they are approved', async () => {
  const master = await underPolicy({ ...policy, tokens: { USDC: { perHour: '10', approvalAbove: '5' } } })
  const first = await aWaiting(master)
  await makeMovementsOlder(stage.world.database.db, master.id, 61 * 60_000)
  const second = await aWaiting(master)
  const fresh = await signedIn('second@example.com')
  expect(codeOf(await decide(fresh, first.approvalId, 'approve'))).toBe('policy-denied')
  expect((await decide(fresh, second.approvalId, 'approve')).status).toBe(200)
  expect(await endOf(second.transferId)).toEqual(['confirmed', null])
})

test('after 24 hours a request expires: nothing moves, and what was reserved is free', async () => {
  const master = await underPolicy()
  const { transferId, approvalId } = await aWaiting(master)
  stage.clock.forward(dayMs)
  const late = await signedIn('second@example.com')
  expect(codeOf(await decide(late, approvalId, 'approve'))).toBe('approval-not-waiting')
  expect(await endOf(transferId)).toEqual(['failed', 'approval-expired'])
  expect(await reservedBy(stage, master)).toBe(0n)
  expect((await approvalEvents(approvalId))[1]).toMatchObject({ type: 'approval.refused', status: 'expired' })
})

test('a wallet has at most 20 open requests, whatever the number of processes that ask', async () => {
  const master = await underPolicy({ ...policy, tokens: { USDC: { approvalAbove: '1' } } })
  const bodies = Array.from({ length: 24 }, () => bodyFrom(master, { amount: '2' }))
  const answers = await Promise.all(
    bodies.map((body, index) =>
      request(index % 2 === 0 ? stage.world.base : stage.hasty.base, { key: stage.key, method: 'POST', path, body }),
    ),
  )
  const over = answers.filter(({ status }) => status !== 202)
  expect(over.map((response) => [response.status, codeOf(response)])).toEqual(
    Array.from({ length: 4 }, () => [429, 'too-many-open-approvals']),
  )
  const list = await stage.world.call(stage.key, 'GET', `/approvals?walletId=${master.id}&status=waiting&limit=15`)
  expect(list.list).toHaveLength(15)
  expect(await reservedBy(stage, master)).toBe(20n * 2n * 10n ** 18n)
})

test('a repeat with the Idempotency-Key answers the same transfer, as it is then', async () => {
  const master = await underPolicy()
  const body = bodyFrom(master, { amount: '10' })
  const send = () => stage.world.call(stage.key, 'POST', path, body, { 'idempotency-key': `approval-${master.id}` })
  const [first, again] = [await send(), await send()]
  expect([first.status, again.status, again.body.id]).toEqual([202, 202, first.body.id])
  const { id } = z.object({ id: z.string() }).parse(first.body.approval)
  expect((await decide(admin, id, 'approve')).status).toBe(200)
  expect(await endOf(String(first.body.id))).toEqual(['confirmed', null])
  const last = await send()
  expect([last.status, last.body.id, last.body.status]).toEqual([201, first.body.id, 'confirmed'])
})

test('a process that dies anywhere between the approval and the sending leaves a transfer that moves once', async () => {
  const idle = await aTransferStage({ network: 'base-sepolia', config: { role: 'api' } })
  const own = stage
  stage = idle
  try {
    const { world, clock } = idle
    const master = await underPolicy()
    const person = await aMember('admin', 'second@example.com')
    const toAddress = stranger()
    const { transferId, approvalId } = await aWaiting(master, { toAddress })
    expect((await decide(person, approvalId, 'approve')).status).toBe(200)
    const run = (db = world.server.deps.db) => applyTransferDecisions.run(systemCtx({ ...world.server.deps, db }))
    for (let lifetime = 1; lifetime < 60 && (await countTransactions(transferId)) === 0; lifetime += 1) {
      clock.forward(10_001)
      await run(mortalDb(world.server.deps.db, lifeOf(lifetime))).catch(() => undefined)
      expect(await countReservations(transferId)).toBeGreaterThan(0)
    }
    clock.forward(10_001)
    await Promise.all([run(), run(), run()])
    expect(await countTransactions(transferId)).toBe(1)
    await world.another({ role: 'all' })
    expect(await endOf(transferId)).toEqual(['confirmed', null])
    expect(await tokenBalance(idle.dev, 'USDC', toAddress)).toBe(10_000_000n)
  } finally {
    stage = own
    await idle.stop()
  }
})
