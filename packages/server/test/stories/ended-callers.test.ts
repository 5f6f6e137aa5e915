import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { aBrowser, invite, ownerOf } from '../people.ts'
import { aSettledPayment, mineUntilFinal } from '../refund-stage.ts'
import {
  aMaster,
  aTransferStage,
  bodyFrom,
  type Managed,
  path,
  patient,
  reservedBy,
  stranger,
  type TransferStage,
} from '../transfer-stage.ts'
import { type Answer, codeOf, request } from '../world.ts'

// Decision 0442: what a caller had begun before it lost its access moves nothing after it.

let stage: TransferStage

beforeAll(async () => {
  stage = await aTransferStage({ network: 'base-sepolia' })
})
afterAll(() => stage?.stop())

const keys = '/organisations/current/api-keys'
const call = (method: string, at: string, body?: unknown) => stage.world.call(stage.key, method, at, body)

async function anAgent() {
  const made = await call('POST', keys, { name: 'agent', environment: 'test' })
  const { id, key } = z.object({ id: z.string(), key: z.string() }).parse(made.body)
  const post = (at: string, body: unknown) => request(stage.hasty.base, { key, method: 'POST', path: at, body })
  return { post, revoke: () => call('DELETE', `${keys}/${id}`) }
}

/** A new member of the organisation, and its owner. */
async function aPerson(role: 'admin' | 'member') {
  const { world, org } = stage
  const owner = await aBrowser(world, { email: await ownerOf(world, org.id), organisationId: org.id })
  const email = `${role}-${stranger().slice(2, 10)}@example.com`
  const person = await invite(world, { owner, organisationId: org.id, email, role })
  return { owner, person, accountId: String((await person.call('GET', '/account')).body.id) }
}

/** Sends requests that store movements of a wallet, and ends the access of callers once the first of them waits for the wallet's lock. */
async function whileStoring(
  { id }: Managed,
  { send, end }: { readonly send: () => readonly Promise<Answer>[]; readonly end: () => Promise<Answer> },
): Promise<readonly Answer[]> {
  const { db } = stage.world.database
  let sent: readonly Promise<Answer>[] = []
  await db.tx(async (tx) => {
    await tx.run(sql`select from master_wallets where id = ${id} for update`)
    sent = send()
    await expect.poll(isStoring, patient).toBe(true)
    expect([200, 204]).toContain((await end()).status)
  })
  return Promise.all(sent)
}

async function isStoring(): Promise<boolean> {
  const waits = sql`select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and strpos(query, 'from master_wallets') > 0) as is`
  return (await stage.world.database.db.one(z.object({ is: z.boolean() }), waits)).is
}

const outcomeOf = (answer: Answer | undefined) => [answer?.status, answer === undefined ? '' : codeOf(answer)]
const gbp = { accountName: 'Acme Ltd', currency: 'GBP', sortCode: '20-29-59', accountNumber: '63748472' }

const movements = {
  transfer: async () => {
    const master = await aMaster(stage)
    return { master, at: path, body: bodyFrom(master) }
  },
  withdrawal: async () => {
    const master = await aMaster(stage)
    const { body: account } = await call('POST', '/wallet-infra/bank-accounts', gbp)
    const body = { fromWalletId: master.id, token: 'USDC', chain: 'base', amount: '60', bankAccountId: account.id }
    return { master, at: '/wallet-infra/withdraw', body }
  },
  refund: async () => {
    const { master, paymentId } = await aSettledPayment(stage)
    await mineUntilFinal(stage)
    return { master, at: `/payments/${paymentId}/refund`, body: {} }
  },
}

test.each(['transfer', 'withdrawal', 'refund'] as const)(
  'a %s of a key that is revoked while it waits to be stored moves nothing',
  async (kind) => {
    const { master, at, body } = await movements[kind]()
    const agent = await anAgent()
    const [refused] = await whileStoring(master, { send: () => [agent.post(at, body)], end: agent.revoke })
    expect(outcomeOf(refused)).toEqual([401, 'unauthorized'])
    expect(refused?.body.detail).toMatch(/^API key is invalid or missing/)
    expect(await reservedBy(stage, master)).toBe(0n)
    // A caller with access makes the same movement.
    const made = await request(stage.hasty.base, { key: stage.key, method: 'POST', path: at, body })
    expect(made.status).toBe(201)
  },
)

test('of transfers that share a transaction only those of the revoked key are refused', async () => {
  const master = await aMaster(stage)
  const [agent, other] = [await anAgent(), await anAgent()]
  const sends = [agent, agent, other, agent, other]
  const answers = await whileStoring(master, {
    send: () => sends.map(({ post }) => post(path, bodyFrom(master, { amount: '1', toAddress: stranger() }))),
    end: agent.revoke,
  })
  expect(answers.map(({ status }) => status)).toEqual([401, 401, 201, 401, 201])
  expect(await reservedBy(stage, master)).toBe(2n * 10n ** 18n)
})

test.each([
  ['was removed', 'DELETE', undefined],
  ['is a member now', 'PATCH', { role: 'member' }],
])('a policy of an admin who %s while it waits for the wallet is not set', async (_, method, change) => {
  const { owner, person: admin, accountId } = await aPerson('admin')
  const master = await aMaster(stage)
  const at = `/wallet-infra/master-wallets/${master.id}/policy`
  const policy = { operations: {}, tokens: {} }
  expect((await call('PUT', at, policy)).status).toBe(200)
  const looser = { operations: { transfer: { recipients: 'any' } }, tokens: { USDC: {} } }
  const [refused] = await whileStoring(master, {
    send: () => [admin.call('PUT', at, looser)],
    end: () => owner.call(method, `/organisations/current/members/${accountId}`, change),
  })
  expect(outcomeOf(refused)).toEqual([403, 'role-not-allowed'])
  expect((await call('GET', at)).body.policy).toEqual(policy)
})

test.each([
  ['was removed', 'DELETE', undefined],
  ['is a member now', 'PATCH', { role: 'member' }],
])('an approval of an admin who %s while it waits for the wallet is none', async (_, method, change) => {
  const { owner, person: admin, accountId } = await aPerson('admin')
  const master = await aMaster(stage)
  const policy = { operations: { transfer: { recipients: 'any' } }, tokens: { USDC: { approvalAbove: '1' } } }
  expect((await call('PUT', `/wallet-infra/master-wallets/${master.id}/policy`, policy)).status).toBe(200)
  const { body } = await call('POST', path, bodyFrom(master))
  const { id } = z.object({ id: z.string() }).parse(body.approval)
  const [refused] = await whileStoring(master, {
    send: () => [admin.call('POST', `/approvals/${id}/approve`)],
    end: () => owner.call(method, `/organisations/current/members/${accountId}`, change),
  })
  expect(outcomeOf(refused)).toEqual([403, 'role-not-allowed'])
  expect((await call('GET', `/approvals/${id}`)).body.status).toBe('waiting')
})

test.each([
  ['was removed', 'DELETE', undefined],
  ['may only read now', 'PATCH', { role: 'viewer' }],
])('a transfer of a person who %s while it waits to be stored moves nothing', async (_, method, change) => {
  const { owner, person: member, accountId } = await aPerson('member')
  const master = await aMaster(stage)
  const [refused] = await whileStoring(master, {
    send: () => [member.call('POST', path, bodyFrom(master))],
    end: () => owner.call(method, `/organisations/current/members/${accountId}`, change),
  })
  expect(outcomeOf(refused)).toEqual([403, 'role-not-allowed'])
  expect(await reservedBy(stage, master)).toBe(0n)
})

test('a transfer, a policy and an approval of a person who signed out while they wait for the wallet have no effect', async () => {
  const { person: admin } = await aPerson('admin')
  const master = await aMaster(stage)
  const at = `/wallet-infra/master-wallets/${master.id}/policy`
  const policy = { operations: { transfer: { recipients: 'any' } }, tokens: { USDC: { approvalAbove: '50' } } }
  expect((await call('PUT', at, policy)).status).toBe(200)
  const { body } = await call('POST', path, bodyFrom(master, { amount: '60' }))
  const { id } = z.object({ id: z.string() }).parse(body.approval)
  const reserved = await reservedBy(stage, master)
  const looser = { operations: { transfer: { recipients: 'any' } }, tokens: { USDC: {} } }
  const answers = await whileStoring(master, {
    send: () => [
      admin.call('POST', path, bodyFrom(master, { amount: '1' })),
      admin.call('PUT', at, looser),
      admin.call('POST', `/approvals/${id}/approve`),
    ],
    end: async () => {
      const { list } = await admin.call('GET', '/account/sessions')
      const own = list.find(({ isCurrent }) => isCurrent === true)?.id
      return admin.call('DELETE', `/account/sessions/${own}`)
    },
  })
  expect(answers.map(outcomeOf)).toEqual([1, 2, 3].map(() => [401, 'unauthorized']))
  for (const { body: refused } of answers) expect(refused.detail).toMatch(/session has ended/)
  expect(await reservedBy(stage, master)).toBe(reserved)
  expect((await call('GET', at)).body.policy).toEqual(policy)
  expect((await call('GET', `/approvals/${id}`)).body.status).toBe('waiting')
})
