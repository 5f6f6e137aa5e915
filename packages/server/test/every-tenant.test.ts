import { afterAll, beforeAll, expect, test } from 'vitest'
import { operations } from '../src/operations.ts'
import { sql } from '../src/platform/db/db.ts'
import type { Operation } from '../src/platform/operation.ts'
import { whyNotDeclared } from './declared.ts'
import { operationOf, problemOf, sendSample } from './raw-requests.ts'
import { makeResources, type Resources, resource } from './resources.ts'
import { samplesOf } from './samples.ts'
import { aWorld, type Org, type World } from './world.ts'

let world: World
let org: Org
let other: Org
/** Resources of `org`, in the test environment and in the live one. */
let testOnes: Resources
let liveOnes: Resources

beforeAll(async () => {
  // Without the sandbox no screening changes a wallet, or its audit records, while the resources are made.
  world = await aWorld({ config: { sandboxScreening: false } })
  org = await world.organisation()
  other = await world.organisation()
  testOnes = await makeResources(world, org)
  const { body: legacy } = await world.call(org.liveKey, 'POST', '/wallets', {})
  liveOnes = { ...(await makeResources(world, org)), legacy: String(legacy.id) }
  await makeLive(liveOnes)
})
afterAll(async () => {
  await world?.stop()
})

/** Creates resources in the live environment, where no payment can be made without a mainnet. */
async function makeLive({
  byw,
  pay,
  redeemable,
  redeeming,
  unserved,
  refundable,
  voided,
  key,
  reg,
  vlt,
  vat,
  closing,
  sealed,
  sess,
  wh,
  del,
  evt,
  bac,
  mwt,
  cad,
  swp,
  wtx,
  apr,
  req,
  wdr,
}: Resources): Promise<void> {
  const { db } = world.database
  expect(await db.run(sql`update byo_wallets set environment = 'live' where id = ${byw}`)).toBe(1)
  const stub = `%${redeemable}`
  expect(
    await db.run(sql`
    update payments set environment = 'live'
    where id in (${pay}, ${redeeming}, ${unserved}, ${refundable}, ${voided}) or session_id = ${sess} or claim_key like ${stub}`),
  ).toBe(7)
  expect(await db.run(sql`update sessions set environment = 'live' where id = ${sess}`)).toBe(1)
  expect(await db.run(sql`update vaults set environment = 'live' where session_id = ${sess}`)).toBe(1)
  expect(await db.run(sql`update registry_routes set environment = 'live' where id = ${reg}`)).toBe(1)
  const vaults = [vlt, closing, sealed]
  expect(await db.run(sql`update vaults set environment = 'live' where id = any(${vaults}::text[])`)).toBe(3)
  expect(await db.run(sql`update vault_files set environment = 'live' where vault_id = ${vlt}`)).toBe(1)
  expect(await db.run(sql`update vault_documents set environment = 'live' where vault_id = ${vlt}`)).toBe(1)
  expect(await db.run(sql`update vault_tokens set environment = 'live' where vault_id = ${vlt}`)).toBe(1)
  expect(await db.run(sql`update webhooks set environment = 'live' where id = ${wh}`)).toBe(1)
  expect(await db.run(sql`update webhook_deliveries set environment = 'live' where id = ${del}`)).toBe(1)
  expect(await db.run(sql`update bank_accounts set environment = 'live' where id = ${bac}`)).toBe(1)
  expect(await db.run(sql`update master_wallets set environment = 'live' where id = ${mwt}`)).toBe(1)
  expect(await db.run(sql`update child_addresses set environment = 'live' where id = ${cad}`)).toBe(1)
  expect(await db.run(sql`update sweeps set environment = 'live' where id = ${swp}`)).toBe(1)
  expect(await db.run(sql`update transfers set environment = 'live' where id = ${wtx}`)).toBe(1)
  expect(await db.run(sql`update withdrawals set environment = 'live' where id = ${wdr}`)).toBe(1)
  expect(await db.run(sql`update movement_approvals set environment = 'live' where id = ${apr}`)).toBe(1)
  const reported = [byw, evt, wh, ...vaults].map((name) => `%${name}%`)
  expect(
    await db.run(sql`update events set environment = 'live' where id || payload::text like any(${reported}::text[])`),
  ).toBeGreaterThan(1)
  expect(await db.run(sql`update api_keys set environment = 'live' where id = ${key}`)).toBe(1)
  expect(await db.run(sql`update request_log set environment = 'live' where id = ${req}`)).toBe(1)
  expect(
    await db.run(
      sql`update audit_log set environment = 'live' where target in (${byw}, ${key}, ${wh}, ${bac}, ${mwt}, ${vat})`,
    ),
  ).toBe(7)
}

/** Keys that must not see the resources of `org`: in the test environment, and in the live one. */
function strangersTo(operation: Operation): readonly (readonly [key: string, resources: Resources])[] {
  const others = [other.testKey, other.liveKey].flatMap((key) =>
    [testOnes, liveOnes].map((ones) => [key, ones] as const),
  )
  // Members belong to the organisation. A live key may create test keys, and may also list and revoke them.
  const ofLive = /\.(members|apiKeys)\./.test(operation.id) ? [] : [[org.liveKey, testOnes] as const]
  const ofTest = /\.members\./.test(operation.id) ? [] : [[org.testKey, liveOnes] as const]
  return [...others, ...ofLive, ...ofTest]
}

const never = '01h455vb4pex5vsknk084sn02q'
/** People's own operations refuse every API key alike; the stories about signing in cover them. */
const withParams = operations.filter(({ params, id, needs }) => {
  return params !== undefined && id !== 'chains.tokens' && needs.role !== 'person'
})

test.each(withParams.map((operation) => [operation.id, operation] as const))(
  '%s answers another organisation, and the other environment, as if the resource had never existed',
  async (id, operation) => {
    for (const [key, resources] of strangersTo(operation)) {
      const sample = samplesOf(resources)[id]?.() ?? {}
      const { orgId, ...named } = sample.params ?? {}
      if (Object.keys(named).length === 0 && (key === org.testKey || key === org.liveKey)) continue
      const unknown = Object.entries(named).map(([name, value]) => [name, `${value.split('_')[0]}_${never}`])
      const params = { ...Object.fromEntries(unknown), ...(orgId === undefined ? {} : { orgId }) }
      const answers = [
        await sendSample(world.base, operation, key, sample),
        await sendSample(world.base, operation, key, { ...sample, params }),
      ]
      const isOther = key === other.testKey || key === other.liveKey
      for (const response of answers) {
        expect([response.status, whyNotDeclared(operation, response)]).toEqual([
          orgId !== undefined && isOther ? 401 : 404,
          undefined,
        ])
      }
      const [theirs, missing] = answers.map(problemOf)
      expect(theirs).toEqual(missing)
    }
  },
)

test.each([
  ['payments.challenge', 'walletId', 'byw'],
  ['payments.verify', 'walletId', 'byw'],
  ['payments.settle', 'paymentId', 'pay'],
  ['sessions.create', 'paymentId', 'pay'],
  ['registry.snapshots.create', 'paymentLogId', 'plog'],
  ['transfers.create', 'fromWalletId', 'mwt'],
  ['wallets.pay', 'fromWalletId', 'mwt'],
  ['transfers.quote', 'fromWalletId', 'mwt'],
  ['withdrawals.create', 'fromWalletId', 'mwt'],
  ['withdrawals.create', 'bankAccountId', 'bac'],
])('%s refuses to name another tenant’s %s: 422, as for one that never existed', async (id, field, prefix) => {
  const operation = operationOf(id)
  for (const [key, resources] of strangersTo(operation)) {
    const body = Object(samplesOf(resources)[id]?.().body)
    const theirs = await sendSample(world.base, operation, key, { body })
    const missing = await sendSample(world.base, operation, key, { body: { ...body, [field]: `${prefix}_${never}` } })
    expect([theirs.status, whyNotDeclared(operation, theirs)]).toEqual([422, undefined])
    expect(problemOf(theirs)).toEqual(problemOf(missing))
  }
})

const lists = operations.filter(
  ({ method, params, organisationInPath }) => method === 'GET' && (params === undefined || organisationInPath === true),
)

test.each(lists.map((operation) => [operation.id, operation] as const))(
  '%s shows nothing of another organisation or environment',
  async (id, operation) => {
    for (const [key, resources] of strangersTo(operation)) {
      // A live key reads the whole audit log, since only a whole chain can be verified; and the organisation is the same in
      // both environments.
      if (key === org.liveKey && id === 'organisations.auditLog') continue
      const { acc, org: ownId, ...ofEnvironment } = resources
      const secrets =
        key === org.testKey || key === org.liveKey
          ? Object.values(ofEnvironment)
          : [...Object.values(ofEnvironment), acc, ownId]
      const queries =
        operation.query !== undefined && /ogs\./.test(id)
          ? ['', `?walletId=${resources.byw}`, `?apiKeyId=${resources.key}`, `?route=${encodeURIComponent(resource)}`]
          : [samplesOf(resources)[id]?.().query ?? '']
      for (const query of queries) {
        const { status, text } = await sendSample(world.base, operation, key, {
          ...samplesOf(resources)[id]?.(),
          query,
        })
        if (status !== 401) expect(secrets.filter((secret) => text.includes(secret))).toEqual([])
      }
    }
  },
)

test('after all this the owner still has everything', async () => {
  for (const [key, resources] of [
    [org.testKey, testOnes],
    [org.liveKey, liveOnes],
  ] as const) {
    for (const id of ['payments.get', 'payments.logs.get', 'wallets.byo.get', 'registry.routes.get']) {
      expect((await sendSample(world.base, operationOf(id), key, samplesOf(resources)[id]?.() ?? {})).status).toBe(200)
    }
    const keys = await sendSample(world.base, operationOf('organisations.apiKeys.list'), key, {})
    expect(JSON.parse(keys.text).find(({ id }: { id: string }) => id === resources.key)).toMatchObject({
      revokedAt: null,
    })
  }
})
