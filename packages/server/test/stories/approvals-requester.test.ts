import { tokenBalance } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { bootServer } from '../../src/boot.ts'
import { sql } from '../../src/platform/db/db.ts'
import { createLog } from '../../src/platform/log.ts'
import { aBrowser, type Browser, browserOf, invite, ownerOf } from '../people.ts'
import { timesCovered } from '../steady-witness.ts'
import {
  aMaster,
  aTransferStage,
  bodyFrom,
  driving,
  type Managed,
  masters,
  path,
  patient,
  stranger,
  type TransferStage,
  transferOf,
} from '../transfer-stage.ts'
import { ShiftedClock } from '../webhooks/clock.ts'
import { type Answer, codeOf, oneNanoUsdPerGas } from '../world.ts'

// Decision 0165: an approval lifts `approvalAbove` alone, so the requester must still be somebody who may make the request.

let stage: TransferStage
let owner: Browser
let admin: Browser
let master: Managed | undefined

beforeAll(async () => {
  stage = await aTransferStage({ network: 'base-sepolia' })
  const { world, org } = stage
  owner = await aBrowser(world, { email: await ownerOf(world, org.id), organisationId: org.id })
  admin = await invited('admin')
})
afterAll(() => stage?.stop())

function invited(role: string): Promise<Browser> {
  const { world, org } = stage
  const email = `${role}-${stranger().slice(2, 10)}@example.com`
  return invite(world, { owner, organisationId: org.id, email, role })
}

async function emailOf(person: Browser): Promise<string> {
  return String((await person.call('GET', '/account')).body.email)
}

async function aKey(body: Record<string, unknown> = {}): Promise<{ readonly id: string; readonly key: string }> {
  const wanted = { name: 'agent', environment: 'test', ...body }
  const made = await stage.world.call(stage.key, 'POST', '/organisations/current/api-keys', wanted)
  return z.object({ id: z.string(), key: z.string() }).parse(made.body)
}

function waitingIn(response: Answer) {
  expect([response.status, response.body.status]).toEqual([202, 'pending'])
  const approval = z.object({ id: z.string(), status: z.literal('waiting') }).parse(response.body.approval)
  return { transferId: String(response.body.id), approvalId: approval.id }
}

async function requestedBy(key: string, toAddress = stranger()) {
  const body = bodyFrom(await theMaster(), { amount: '2', toAddress })
  return { toAddress, ...waitingIn(await stage.world.call(key, 'POST', path, body)) }
}

async function requestedByPerson(person: Browser) {
  return waitingIn(await person.call('POST', path, bodyFrom(await theMaster(), { amount: '2' })))
}

/** One wallet for all tests, under a policy that wants approvals above 1 USDC. */
async function theMaster(): Promise<Managed> {
  if (master !== undefined) return master
  const made = await aMaster(stage)
  const policy = { operations: { transfer: { recipients: 'any' } }, tokens: { USDC: { approvalAbove: '1' } } }
  expect((await stage.world.call(stage.key, 'PUT', `${masters}/${made.id}/policy`, policy)).status).toBe(200)
  master = made
  return made
}

const approve = (by: Browser, id: string) => by.call('POST', `/approvals/${id}/approve`)
const revoke = (id: string) => stage.world.call(stage.key, 'DELETE', `/organisations/current/api-keys/${id}`)

async function expectStillWaiting({ approvalId, transferId }: { approvalId: string; transferId: string }) {
  const refused = await approve(admin, approvalId)
  expect([refused.status, codeOf(refused)]).toEqual([409, 'approval-requester-not-allowed'])
  expect((await stage.world.call(stage.key, 'GET', `/approvals/${approvalId}`)).body.status).toBe('waiting')
  expect((await transferOf(stage, transferId)).status).toBe('pending')
  await refuseCovered(approvalId)
  await expect.poll(async () => (await transferOf(stage, transferId)).status, patient).toBe('failed')
}

/** Refuses a request, also again: the witness covers each, since the first call may have failed only because no mark could be made. */
async function refuseCovered(approvalId: string): Promise<void> {
  const { db } = stage.world.database
  const key = `refuse-${approvalId}`
  const refuse = (headers = {}) => admin.call('POST', `/approvals/${approvalId}/refuse`, {}, headers)
  const keyed = () => refuse({ 'idempotency-key': key })
  for (const [send, status] of [
    [keyed, 200],
    [keyed, 200],
    [refuse, 409],
  ] as const) {
    const covered = await timesCovered(db)
    expect((await send()).status).toBe(status)
    expect(await timesCovered(db)).toBeGreaterThan(covered)
    // As if the first response had not been sent.
    await db.run(
      sql`update idempotency_keys set state = 'running', status = null, headers = null, sealed_body = null where key = ${key}`,
    )
  }
}

test('a movement that a revoked key requested is approved by nobody, and can be refused', async () => {
  const { id, key } = await aKey()
  const waiting = await requestedBy(key)
  expect((await revoke(id)).status).toBe(204)
  await expectStillWaiting(waiting)
  expect(await tokenBalance(stage.dev, 'USDC', waiting.toAddress)).toBe(0n)
})

test('a movement of a key that ended with the key that made it is approved by nobody', async () => {
  const maker = await aKey()
  const made = await stage.world.call(maker.key, 'POST', '/organisations/current/api-keys', {
    name: 'made',
    environment: 'test',
  })
  const waiting = await requestedBy(String(made.body.key))
  await stage.world.call(stage.key, 'DELETE', `/organisations/current/api-keys/${maker.id}?cascade=true`)
  await expectStillWaiting(waiting)
})

test('a movement of a person who was removed, or who may only read now, is approved by nobody', async () => {
  const [left, demoted] = [await invited('member'), await invited('member')]
  const waiting = [await requestedByPerson(left), await requestedByPerson(demoted)]
  const accountOf = async (person: Browser) => String((await person.call('GET', '/account')).body.id)
  const members = '/organisations/current/members'
  expect((await owner.call('DELETE', `${members}/${await accountOf(left)}`)).status).toBe(204)
  expect((await owner.call('PATCH', `${members}/${await accountOf(demoted)}`, { role: 'viewer' })).status).toBe(200)
  for (const one of waiting) await expectStillWaiting(one)
})

test('a movement of a key that has expired since, or whose creator has left, can be approved: nobody took it back', async () => {
  const expired = await aKey({ expiresAt: new Date(stage.clock.now().getTime() + 60_000).toISOString() })
  const first = await requestedBy(expired.key)
  await stage.world.database.db.run(sql`update api_keys set expires_at = now() where id = ${expired.id}`)
  expect((await approve(admin, first.approvalId)).status).toBe(200)
  await expect.poll(() => tokenBalance(stage.dev, 'USDC', first.toAddress), patient).toBe(2_000_000n)
})

test('of a revocation and an approval at once the approval holds or is refused, and the money moves as it says', async () => {
  const outcomes = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const { id, key } = await aKey()
      const { approvalId, toAddress } = await requestedBy(key)
      const [approved] = await Promise.all([approve(admin, approvalId), revoke(id)])
      return { approvalId, toAddress, status: approved.status }
    }),
  )
  for (const { status, toAddress, approvalId } of outcomes) {
    expect([200, 409]).toContain(status)
    if (status === 200) await expect.poll(() => tokenBalance(stage.dev, 'USDC', toAddress), patient).toBe(2_000_000n)
    else expect((await admin.call('POST', `/approvals/${approvalId}/refuse`, {})).status).toBe(200)
  }
})

test('of two people who approve at once at two processes one succeeds, and the money moves once', async () => {
  const { world, org } = stage
  const { base, server } = await world.another()
  try {
    const { cookie } = await invited('admin')
    const elsewhere = browserOf(world, { cookie, organisationId: org.id, base })
    const requests = await Promise.all(Array.from({ length: 6 }, () => requestedBy(stage.key)))
    const answers = await Promise.all(
      requests.map(({ approvalId }) => Promise.all([approve(admin, approvalId), approve(elsewhere, approvalId)])),
    )
    for (const both of answers) expect(both.map(({ status }) => status).toSorted()).toEqual([200, 409])
    for (const { transferId, toAddress } of requests) {
      await expect.poll(async () => (await transferOf(stage, transferId)).status, patient).toBe('confirmed')
      expect(await tokenBalance(stage.dev, 'USDC', toAddress)).toBe(2_000_000n)
    }
    const { sent } = await world.database.db.one(
      z.object({ sent: z.bigint() }),
      sql`select count(*) as sent from transfer_steps
          where transfer_id = any(${requests.map(({ transferId }) => transferId)}) and transaction_id is not null`,
    )
    expect(Number(sent)).toBe(requests.length)
  } finally {
    await server.stop()
  }
})

test('where a process has a clock that is 90 seconds ahead, each request ends once: as it was decided, or as expired', async () => {
  const ahead = new ShiftedClock()
  ahead.forward(90_000)
  const options = {
    log: createLog({ level: 'silent' }),
    gasPrices: oneNanoUsdPerGas,
    depositPollMsMax: 100,
    clock: ahead,
  }
  const second = await bootServer({ ...stage.world.config, role: 'work' }, options)
  try {
    const requests = await Promise.all(Array.from({ length: 12 }, () => requestedBy(stage.key)))
    const toTheEndMs = 86_400_000 - 89_500
    stage.clock.forward(toTheEndMs)
    ahead.forward(toTheEndMs)
    const { world, org } = stage
    const approver = await aBrowser(world, { email: await emailOf(admin), organisationId: org.id })
    await world.database.db.run(
      sql`update auth."session" set "createdAt" = ${stage.clock.now()}, "expiresAt" = ${new Date(stage.clock.now().getTime() + 60_000)}`,
    )
    const answers = await Promise.all(
      requests.map(({ approvalId }, at) =>
        at % 2 === 0
          ? approve(approver, approvalId)
          : world.call(stage.key, 'POST', `/approvals/${approvalId}/cancel`, undefined),
      ),
    )
    for (const [at, { approvalId, transferId, toAddress }] of requests.entries()) {
      const { status } = answers[at] ?? {}
      expect([200, 409]).toContain(status)
      const decided = status !== 200 ? 'expired' : at % 2 === 0 ? 'granted' : 'canceled'
      await expect
        .poll(async () => {
          await stage.chain.mine({ blocks: 1 })
          return (await transferOf(stage, transferId)).status
        }, driving)
        .toBe(decided === 'granted' ? 'confirmed' : 'failed')
      expect((await world.call(stage.key, 'GET', `/approvals/${approvalId}`)).body.status).toBe(decided)
      expect(await tokenBalance(stage.dev, 'USDC', toAddress)).toBe(decided === 'granted' ? 2_000_000n : 0n)
    }
  } finally {
    await second.stop()
  }
})
