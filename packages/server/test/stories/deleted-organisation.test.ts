import { type DevChain, startChain } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { runAdmin } from '../../src/admin/run.ts'
import { sql, type Tx } from '../../src/platform/db/db.ts'
import { aBrowser, ageSessions, type Browser, invite, ownerOf } from '../people.ts'
import { bankAccount, makeResources } from '../resources.ts'
import { type Answer, aPayer, aWorld, codeOf, type Org, type Payer, unreachableMain, type World } from '../world.ts'

let chain: DevChain
let world: World
let payer: Payer

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain], rpcUrls: unreachableMain })
  payer = await aPayer(chain)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

interface Owned {
  readonly org: Org
  readonly owner: Browser
  readonly email: string
}

async function anOwner(plan: 'enterprise' | 'hobby' = 'enterprise'): Promise<Owned> {
  const org = await world.organisation(plan)
  const email = await ownerOf(world, org.id)
  return { org, email, owner: await aBrowser(world, { email, organisationId: org.id }) }
}

const remove = (owner: Browser, { id }: Org) => owner.call('DELETE', `/organisations/${id}`)
const outcome = (response: Answer) => [response.status, codeOf(response)]
const admin = (...args: string[]) => runAdmin(['admin', ...args], { DATABASE_URL: world.database.url })
const Blockers = z.array(z.object({ kind: z.string(), count: z.number(), ids: z.array(z.string()) }))
const blockersOf = ({ body }: Answer) => Blockers.parse(body.blockers).map(({ kind, count }) => `${count} ${kind}`)

async function aSale(org: Org): Promise<() => Promise<Answer>> {
  const wallet = await world.wallet(org)
  const terms = { walletId: wallet.id, resource: 'https://api.example.com/weather', price: '0.01' }
  const credential = await payer.credential(await world.call(org.testKey, 'POST', '/payments/challenge', terms))
  const sale = { ...terms, protocol: 'x402', currency: 'USD', method: 'GET', credential }
  return () => world.call(org.testKey, 'POST', '/payments/verify', sale)
}

async function aWebhook({ testKey }: Org): Promise<string> {
  const body = { url: 'https://example.com/hook', events: ['*'] }
  return String((await world.call(testKey, 'POST', '/webhooks', body)).body.id)
}

async function countOf(table: 'payments' | 'vaults' | 'webhooks', { id }: Org): Promise<number> {
  const { count } = await world.database.db.one(z.object({ count: z.number() }), {
    text: `select count(*)::int as count from ${table} where organisation_id = $1`,
    values: [id],
  })
  return count
}

/** Runs `work` while a transaction of the test has the lock, and ends that transaction afterwards. */
async function whileLocked<T>(
  lock: (tx: Tx) => Promise<unknown>,
  work: (release: () => void) => Promise<T>,
): Promise<T> {
  const released = Promise.withResolvers<void>()
  const locked = Promise.withResolvers<void>()
  const holding = world.database.db.tx(async (tx) => {
    await lock(tx)
    locked.resolve()
    await released.promise
  })
  await locked.promise
  try {
    return await work(released.resolve)
  } finally {
    released.resolve()
    await holding
  }
}

/** The queue of the webhook, which a deletion locks after it has revoked the keys. */
const ofWebhook = (id: string) => (tx: Tx) =>
  tx.run(sql`select from webhook_queues where webhook_id = ${id} for update`)

/** Statements with this text that wait for a lock; loops of the service may wait for others. */
const waitingFor = (words: string) => sql`
  pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and strpos(query, ${words}) > 0`

async function untilWaiting(words: string): Promise<void> {
  const read = async () => {
    const counting = sql`select count(*)::int as count from ${waitingFor(words)}`
    return (await world.database.db.one(z.object({ count: z.number() }), counting)).count
  }
  await expect.poll(read, { timeout: 20_000 }).toBe(1)
}

const [deletion, deletionFirst] = [
  'webhook_queues q join webhooks',
  'select pg_advisory_xact_lock(hashtextextended(name, 0)) from (',
]

test('an owner deletes the organisation: keys, members, invitations, webhooks, bank accounts and vault tokens end at once, and the records stay', async () => {
  const { org, owner, email } = await anOwner()
  const member = await invite(world, { owner, organisationId: org.id, email: `m-${org.id}@example.com`, role: 'admin' })
  const guest = `g-${org.id}@example.com`
  await owner.call('POST', '/organisations/current/members', { email: guest, role: 'viewer' })
  const [again, invited] = [await aBrowser(world, { email }), await aBrowser(world, { email: guest })]
  const webhook = await aWebhook(org)
  const bank = (await world.call(org.testKey, 'POST', '/wallet-infra/bank-accounts', bankAccount)).body.id
  const vault = (await world.call(org.testKey, 'POST', '/vaults', {})).body
  const { token } = (await owner.call('POST', `/vaults/${vault.id}/tokens`, { kind: 'token', expiresIn: 600 })).body
  const readVault = () =>
    fetch(`${world.base}/vaults/${vault.id}`, { headers: { authorization: `Bearer ${token}` } }).then(
      ({ status }) => status,
    )
  expect(await readVault()).toBe(200)
  expect((await remove(owner, org)).status).toBe(204)
  for (const key of [org.testKey, org.liveKey])
    expect((await world.call(key, 'GET', '/organisations/current')).status).toBe(401)
  for (const person of [owner, member])
    expect(outcome(await person.call('GET', '/organisations/current'))).toEqual([404, 'organisation-not-found'])
  const outside = { 'x-service-organisation': undefined }
  for (const { call } of [again, invited])
    expect((await call('GET', '/account', undefined, outside)).body).toMatchObject({
      organisations: [],
      invitations: [],
    })
  expect(await readVault()).toBe(401)
  expect(outcome(await remove(owner, org))).toEqual([404, 'organisation-not-found'])
  const { db } = world.database
  const row = await db.one(
    z.object({ active: z.boolean(), vaults: z.number(), details: z.unknown(), hasBank: z.boolean() }),
    sql`select (select is_active from webhooks where id = ${webhook}) as active,
      (select count(*)::int from vaults where organisation_id = ${org.id}) as vaults,
      details, deleted_at is null as has_bank from bank_accounts where id = ${bank}`,
  )
  expect(row).toEqual({ active: false, vaults: 1, details: null, hasBank: false })
  const { details } = await db.one(
    z.object({ details: z.record(z.string(), z.unknown()) }),
    sql`select details from audit_log where organisation_id = ${org.id} and action = 'organisations.delete'`,
  )
  expect(details).toMatchObject({ name: 'Acme', keys: 2, webhooks: 1, bankAccounts: 1, members: expect.any(Array) })
  expect((await admin('verify-audit-log', '--organisation', org.id)).exitCode).toBe(0)
  expect((await admin('list-organisations', '--find', org.id)).stdout).toMatch(/ {2}deleted 20\d\d-\d\d-\d\d\n$/)
  for (const command of ['suspend-organisation', 'create-key'])
    expect(
      (
        await admin(
          command,
          '--organisation',
          org.id,
          ...(command === 'create-key' ? ['--environment', 'test', '--name', 'x'] : ['--reason', 'x']),
        )
      ).exitCode,
    ).toBe(1)
})

test('nobody else deletes it: no key, no admin, no owner of another one, and no owner who signed in ten minutes ago', async () => {
  const { org, owner } = await anOwner()
  const other = await anOwner()
  const admins = await invite(world, { owner, organisationId: org.id, email: `a-${org.id}@example.com`, role: 'admin' })
  expect(outcome(await world.call(org.liveKey, 'DELETE', `/organisations/${org.id}`))).toEqual([403, 'person-required'])
  expect(outcome(await remove(admins, org))).toEqual([403, 'role-not-allowed'])
  expect(outcome(await remove(other.owner, org))).toEqual([404, 'organisation-not-found'])
  expect(outcome(await remove(owner, other.org))).toEqual([404, 'organisation-not-found'])
  await ageSessions(world, 10)
  expect(outcome(await remove(owner, org))).toEqual([403, 'fresh-authentication-required'])
  expect((await world.call(org.testKey, 'GET', '/organisations/current')).status).toBe(200)
})

test('money and obligations keep it, each is named, and nothing changes', async () => {
  const { org, owner } = await anOwner()
  await makeResources(world, org)
  await (await aSale(org))()
  const refused = await remove(owner, org)
  expect(outcome(refused)).toEqual([409, 'organisation-not-empty'])
  expect(blockersOf(refused)).toEqual(expect.arrayContaining([expect.stringMatching(/^\d+ payments$/), '1 approvals']))
  expect(refused.body.detail).toMatch(
    /^The organisation has \d+ payments? that .*1 movement that waits for approval.*\. Nothing was changed\.$/,
  )
  expect((await world.call(org.testKey, 'GET', '/organisations/current')).status).toBe(200)
})

test('of the live environment also wallets, paid vaults and paid sessions keep it, and of test none of these do', async () => {
  const { org, owner } = await anOwner()
  const { db } = world.database
  const make = async (key: string, chainName: string) =>
    String(
      (await world.call(key, 'POST', '/wallet-infra/master-wallets', { chain: chainName, supportedTokens: ['USDC'] }))
        .body.id,
    )
  await make(org.testKey, 'base-sepolia')
  const live = await make(org.liveKey, 'base')
  const paid = (await world.call(org.liveKey, 'POST', '/vaults', {})).body.id
  await db.run(sql`update vaults set payment_id = 'pay_of_the_vault' where id = ${paid}`)
  await db.run(sql`
    insert into sessions (id, organisation_id, environment, payment_id, vault_id, expires_at, created_at)
    values (${`sess_${org.id}`}, ${org.id}, 'live', 'pay_of_the_session', 'vlt_of_the_session', now() + interval '1 hour', now())`)
  expect(blockersOf(await remove(owner, org))).toEqual(['1 wallets', '1 vaults', '1 sessions'])
  await db.run(sql`update vaults set expires_at = now() where id = ${paid}`)
  await db.run(sql`update sessions set expires_at = now() where organisation_id = ${org.id}`)
  await db.run(sql`update master_wallets set retired_at = now() where id = ${live}`)
  await db.run(sql`
    insert into wallet_transactions (id, organisation_id, environment, wallet_id, network, chain, tx_hash, log_index, direction, kind, status, token,
      token_symbol, decimals, raw_amount, from_address, to_address, block_number, block_hash, block_time, aml_status, created_at)
    values (${`wtx_${org.id}`}, ${org.id}, 'live', ${live}, 'base', 'base', ${`0x${org.id}`}, 0, 'in', 'transfer', 'confirmed', '0x01', 'USDC', 6, 1000000, '0x02',
      '0x03', 1, '0x04', now(), 'clear', now() + interval '1 second')`)
  expect(blockersOf(await remove(owner, org))).toEqual(['1 wallets'])
  await db.run(sql`update master_wallets set retired_at = now() + interval '2 seconds' where id = ${live}`)
  expect((await remove(owner, org)).status).toBe(204)
})

test('ten deletions at once are one, and the audit log has it once', async () => {
  const { org, owner } = await anOwner()
  const answers = await Promise.all(Array.from({ length: 10 }, () => remove(owner, org)))
  expect(answers.map(({ status }) => status).sort()).toEqual([204, ...Array.from({ length: 9 }, () => 404)])
  const { count } = await world.database.db.one(
    z.object({ count: z.number() }),
    sql`select count(*)::int as count from audit_log where organisation_id = ${org.id} and action = 'organisations.delete'`,
  )
  expect(count).toBe(1)
})

test('a payment or a vault that comes while the organisation is deleted is refused, and nothing of it is stored', async () => {
  const { org, owner } = await anOwner()
  const sell = await aSale(org)
  const webhook = await aWebhook(org)
  const [deleted, ...late] = await whileLocked(ofWebhook(webhook), async (release) => {
    const deleting = remove(owner, org)
    await untilWaiting(deletion)
    const selling = [sell(), world.call(org.testKey, 'POST', '/vaults', {})]
    for (const words of ['with locked as materialized', 'insert into usage_counters']) await untilWaiting(words)
    release()
    return Promise.all([deleting, ...selling])
  })
  expect(deleted.status).toBe(204)
  for (const response of late) {
    expect(outcome(response)).toEqual([401, 'unauthorized'])
    expect(response.body.detail).toBe('API key is invalid or missing: the organisation was deleted.')
  }
  expect([await countOf('payments', org), await countOf('vaults', org)]).toEqual([0, 0])
})

test('a payment that is recorded while the deletion waits is found by it', async () => {
  const { org, owner } = await anOwner()
  const sell = await aSale(org)
  const name = `payments:${org.id}/live`
  const take = (tx: Tx) => tx.run(sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`)
  const [deleted, sold] = await whileLocked(take, async (release) => {
    const deleting = remove(owner, org)
    await untilWaiting(deletionFirst)
    const sold = await sell()
    release()
    return [await deleting, sold] as const
  })
  expect(sold.status).toBe(200)
  expect([outcome(deleted), blockersOf(deleted)]).toEqual([[409, 'organisation-not-empty'], ['1 payments']])
})

test('whoever inserts a withdrawal waits for no bank account while the deletion waits: each would wait for the other', async () => {
  const { org, owner } = await anOwner()
  const bank = (await world.call(org.testKey, 'POST', '/wallet-infra/bank-accounts', bankAccount)).body.id
  const name = `payments:${org.id}/live`
  const take = (tx: Tx) => tx.run(sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`)
  const deleted = await whileLocked(take, async (release) => {
    const deleting = remove(owner, org)
    await untilWaiting(deletionFirst)
    // What a foreign key locks.
    await world.database.db.tx(async (tx) => {
      await tx.run(sql`select set_config('lock_timeout', '2000', true)`)
      await tx.run(sql`select from organisations where id = ${org.id} for key share`)
      await tx.run(sql`select from bank_accounts where id = ${bank} for key share`)
    })
    release()
    return deleting
  })
  expect(deleted.status).toBe(204)
})

test('a deletion that is refused waits for no lock of payments, so that it stops none', async () => {
  const { org, owner } = await anOwner()
  await (await aSale(org))()
  const name = `payments:${org.id}/live`
  const take = (tx: Tx) => tx.run(sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`)
  const refused = await whileLocked(take, () => remove(owner, org))
  expect([outcome(refused), blockersOf(refused)]).toEqual([[409, 'organisation-not-empty'], ['1 payments']])
})

test('a deletion whose connection breaks half way changes nothing', async () => {
  const { org, owner } = await anOwner()
  const webhook = await aWebhook(org)
  const broken = await whileLocked(ofWebhook(webhook), async () => {
    const deleting = remove(owner, org)
    await untilWaiting(deletion)
    await world.database.db.run(sql`select pg_terminate_backend(pid) from ${waitingFor(deletion)}`)
    return deleting
  })
  expect(broken.status).toBe(503)
  expect((await world.call(org.testKey, 'GET', '/organisations/current')).body).toMatchObject({
    id: org.id,
    suspendedAt: null,
  })
  expect((await owner.call('GET', `/webhooks/${webhook}`)).body).toMatchObject({ isActive: true })
  expect((await remove(owner, org)).status).toBe(204)
})

test('who deletes an organisation gains no place of its quotas, may found another one, and the operator restores the first', async () => {
  const { org, owner, email } = await anOwner('hobby')
  const outside = { 'x-service-organisation': undefined }
  const found = () => owner.call('POST', '/organisations', { name: 'Next' }, outside)
  for (let made = 1; made < 10; made += 1) expect((await found()).status).toBe(201)
  expect((await remove(owner, org)).status).toBe(204)
  expect(outcome(await found())).toEqual([409, 'organisation-limit-reached'])
  await world.database.db.run(
    sql`update organisations set deleted_at = now() - interval '32 days' where id = ${org.id}`,
  )
  expect((await found()).status).toBe(201)
  const restored = await admin('restore-organisation', '--organisation', org.id, '--email', email)
  expect([restored.exitCode, restored.stdout.split('\n')[0]]).toEqual([
    0,
    `${org.id}  Acme is restored; its owner is ${email}`,
  ])
  expect((await owner.call('GET', '/organisations/current')).body).toMatchObject({ id: org.id, suspendedAt: null })
  expect((await world.call(org.testKey, 'GET', '/organisations/current')).status).toBe(401)
  expect((await admin('restore-organisation', '--organisation', org.id, '--email', email)).exitCode).toBe(1)
})

test('a restored organisation shares the quotas of its new owner, and its founder may still found others', async () => {
  const { org, owner, email } = await anOwner('hobby')
  const outside = { 'x-service-organisation': undefined }
  const found = () => owner.call('POST', '/organisations', { name: 'Next' }, outside)
  const restore = (to: string) => admin('restore-organisation', '--organisation', org.id, '--email', to)
  const quotaOwner = async () => {
    const reading = sql`select email from organisations join accounts on accounts.id = quota_account_id where organisations.id = ${org.id}`
    return (await world.database.db.one(z.object({ email: z.string() }), reading)).email
  }
  expect((await remove(owner, org)).status).toBe(204)
  expect((await restore(email)).exitCode).toBe(0)
  expect(await quotaOwner()).toBe(email)
  expect((await found()).status).toBe(201)
  expect((await remove(owner, org)).status).toBe(204)
  const another = `restored-${org.id}@example.com`
  expect((await restore(another)).exitCode).toBe(0)
  expect(await quotaOwner()).toBe(another)
  expect((await found()).status).toBe(201)
})

test('a suspension that comes while the deletion waits stays, and nothing is deleted', async () => {
  const { org, owner } = await anOwner()
  const name = `payments:${org.id}/live`
  const take = (tx: Tx) => tx.run(sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`)
  const refused = await whileLocked(take, async (release) => {
    const deleting = remove(owner, org)
    await untilWaiting(deletionFirst)
    expect((await admin('suspend-organisation', '--organisation', org.id, '--reason', 'Fraud')).exitCode).toBe(0)
    release()
    return deleting
  })
  expect(outcome(refused)).toEqual([403, 'organisation-suspended'])
  expect((await owner.call('GET', '/organisations/current')).body).toMatchObject({ suspensionReason: 'Fraud' })
})

test('a webhook that is turned on or a wallet that is restored while the organisation is deleted is refused, and neither changes', async () => {
  const { org, owner } = await anOwner()
  const [on, off] = [await aWebhook(org), await aWebhook(org)]
  expect((await world.call(org.testKey, 'PATCH', `/webhooks/${off}`, { isActive: false })).status).toBe(200)
  const masters = '/wallet-infra/master-wallets'
  const { id } = (await world.call(org.testKey, 'POST', masters, { chain: 'base', supportedTokens: ['USDC'] })).body
  await world.database.db.run(sql`update master_wallets set retired_at = now() where id = ${id}`)
  const [deleted, ...late] = await whileLocked(ofWebhook(on), async (release) => {
    const deleting = remove(owner, org)
    await untilWaiting(deletion)
    const changing = [
      world.call(org.testKey, 'PATCH', `/webhooks/${off}`, { isActive: true }),
      world.call(org.testKey, 'POST', `${masters}/${id}/restore`),
    ]
    for (const words of ['update webhooks set url', 'update master_wallets set retired_at']) await untilWaiting(words)
    release()
    return Promise.all([deleting, ...changing])
  })
  expect(deleted.status).toBe(204)
  for (const response of late) expect(outcome(response)).toEqual([401, 'unauthorized'])
  const { active, retired } = await world.database.db.one(
    z.object({ active: z.boolean(), retired: z.boolean() }),
    sql`select (select is_active from webhooks where id = ${off}) as active, retired_at is not null as retired from master_wallets where id = ${id}`,
  )
  expect([active, retired]).toEqual([false, true])
})
